"""What the project computes is what was recorded: see `record_digests.py`.

Where behaviour was meant to change, `python tests/record_digests.py --write` records anew, and the difference
in `digests.json` and `digests/` shows how far the change reaches.
"""

from __future__ import annotations

import pytest

from tests import record_digests as digests


@pytest.mark.integration
def test_nothing_differs_in_the_short_form() -> None:
    found = digests.differences(digests.record(short=True), digests.recorded(), short=True)
    assert not found, "\n".join(found)


@pytest.mark.slow
def test_nothing_differs() -> None:
    found = digests.differences(digests.record(), digests.recorded())
    assert not found, "\n".join(found)


def test_a_difference_is_told_by_name() -> None:
    before = digests.recorded()
    key = next(key for key in before.digests if key.startswith("cell/teams/"))
    cell = {**before.digests[key], "steps": -1}
    texts = {**before.texts, "prompts/lake-2.txt": "Another text.\n"}
    found = digests.differences(digests.Recorded({**before.digests, key: cell}, texts), before)
    assert [line.partition(": ")[0] for line in found] == [key, "prompts/lake-2.txt"]
    assert found[0].endswith(f"steps {before.digests[key]['steps']} -> -1")


def test_figures_are_numbers_of_rows_without_their_first_column() -> None:
    table = "| agent 1 | at 5 |\n| --- | ---: |\n| Vanilla 3 | 97 (n = 2) |\n| GLOVE | +12.5 % |\n| none | - |\n"
    assert digests.figures(f"12 agents\n\n{table}\nsee 7\n") == "97 2\n+12.5\n-\n"
