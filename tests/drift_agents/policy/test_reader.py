"""The weak reader: what it takes in, and what it takes for something else."""

from __future__ import annotations

import numpy as np
import pytest
from drift_agents.errors import ArgumentError
from drift_agents.policy.base import make_policy
from drift_agents.policy.planner import Planner
from drift_agents.policy.reader import Reader
from drift_agents.prompt.view import PromptView, Recollection, parse_prompt
from drift_agents.types import Outcome


def view(n: int = 6) -> PromptView:
    def state(column: int) -> str:
        return f'{{"cur_pos": [0, {column}], "tile_type": "F", "gold_collected": 0}}'

    items = tuple(Recollection(state(i), "2", Outcome(state(i + 1), 0.0, False), 1.0, i) for i in range(n))
    return PromptView("a task", state(0), ("0", "1", "2", "3"), items[:1], items[1:], (), n)


class Recorder:
    """Stands where the planner would, and keeps what it is given."""

    def __init__(self) -> None:
        self.views: list[PromptView] = []

    def decide(self, prompt: str, rng: np.random.Generator) -> None:
        self.views.append(parse_prompt(prompt))


def read(monkeypatch: pytest.MonkeyPatch, times: int = 1, **options: float) -> list[PromptView]:
    reader, recorder = Reader(**options), Recorder()
    monkeypatch.setattr(reader, "_planner", recorder)
    rng = np.random.default_rng(0)
    for _ in range(times):
        reader.decide(view().render(), rng)
    return recorder.views


def test_a_perfect_reader_is_the_planner(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(monkeypatch) == [view()]


@pytest.mark.parametrize(("records", "kept"), [(0, (0, 0)), (1, (1, 0)), (3, (1, 2)), (99, (1, 5))])
def test_the_first_records_are_read(records: int, kept: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = read(monkeypatch, records=records)
    assert (found.here, found.elsewhere) == (view().here[: kept[0]], view().elsewhere[: kept[1]])


def test_the_misread_share_is_kept_and_only_outcomes_change(monkeypatch: pytest.MonkeyPatch) -> None:
    views = read(monkeypatch, times=400, misread=0.3)
    right = [item for one in (view(),) for item in one.here + one.elsewhere]
    wrong = 0
    for one in views:
        for item, truth in zip(one.here + one.elsewhere, right, strict=True):
            assert item._replace(outcome=truth.outcome) == truth
            assert item.outcome in {each.outcome for each in right}
            wrong += item != truth
    # One in six draws hits the record's own outcome.
    assert wrong / (400 * 6) == pytest.approx(0.3 * 5 / 6, abs=0.03)


def test_the_same_generator_misreads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(monkeypatch, times=5, misread=0.5) == read(monkeypatch, times=5, misread=0.5)


def test_options_of_the_planner_reach_it() -> None:
    reader = make_policy("reader", records=3, conflict="newest", frozen_lake={"risk": 0.5})
    assert isinstance(reader, Reader)
    assert reader._planner.conflict == Planner(conflict="newest").conflict


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"records": -1}, "`records` should be a whole number, at least 0, or None. Received -1"),
        ({"records": True}, "`records` should be a whole number, at least 0, or None. Received True"),
        ({"misread": 1.5}, r"`misread` should be in the interval \[0, 1\]. Received 1.5"),
        ({"nonsense": 1}, "the planner has options for the environments frozen_lake"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], expected: str) -> None:
    with pytest.raises(ArgumentError, match=expected):
        Reader(**options)  # type: ignore[arg-type]
