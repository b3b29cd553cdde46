"""What differs between two phases, and the score of statements about it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift_envs.cli import main
from drift_envs.cli.scheduled import open_schedule
from drift_envs.errors import ArgumentError
from drift_envs.metrics import KnobDifference, compare_phases, score_statement

NAMES = ["frozen_lake/explicit:family", "frozen_lake/implicit:choice", "mountain_car/tangle", "frozen_lake/tides"]


@cache
def numbered(name: str) -> tuple[object, list[str]]:
    scheduled = open_schedule(name, seed=3)
    return scheduled.timeline, [phase.id for phase in scheduled.phases(4)]


@given(data=st.data(), name=st.sampled_from(NAMES))
def test_the_truth_scores_one_and_the_way_back_is_the_other_way_round(data: st.DataObject, name: str) -> None:
    timeline, phases = numbered(name)
    before, after = data.draw(st.sampled_from(phases)), data.draw(st.sampled_from(phases))
    there, back = compare_phases(timeline, before, after), compare_phases(timeline, after, before)
    assert [(one.knob, one.old, one.new) for one in there] == [(one.knob, one.new, one.old) for one in back]
    old, new = (timeline.values(timeline.first_tick(phase)) for phase in (before, after))
    assert {one.knob for one in there} == {name for name in old if old[name] != new[name]}
    statement = json.loads(json.dumps({"changes": [one._asdict() for one in there]}))
    score = score_statement(there, statement)
    some = 1.0 if there else None
    assert (score.precision, score.recall, score.exact) == (some, some, some)
    assert set(score.agreement.values()) <= {1.0}


TRUTH = [
    KnobDifference("slip", 0.0, 0.5, ""),
    KnobDifference("map", ["SF", "FG"], ["SH", "FG"], ""),
    KnobDifference("goal_rewards", {"1,1": 1.0, "0,1": 0.5}, {"1,1": 0.5, "0,1": 1.0}, ""),
    KnobDifference("ad_page", False, True, ""),
]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([], (None, 0.0, None, {})),
        ([{"knob": "slip", "new": 0.5}], (1.0, 0.25, 1.0, {"slip": 1.0})),
        ([{"knob": "slip", "new": 0.5, "old": 0.1}], (1.0, 0.25, 0.0, {"slip": 1.0})),
        ([{"knob": "slip"}, {"knob": "transient", "new": 1}], (0.5, 0.25, 0.0, {"slip": 0.0})),
        ([{"knob": "map", "new": ["S?", "FG"]}], (1.0, 0.25, 0.0, {"map": 0.75})),
        ([{"knob": "map", "new": ["SHF", "FGF"]}], (1.0, 0.25, 0.0, {"map": 0.0})),
        ([{"knob": "goal_rewards", "new": {"1,1": 0.5}}], (1.0, 0.25, 0.0, {"goal_rewards": 0.5})),
        ([{"knob": "ad_page", "new": 1}], (1.0, 0.25, 0.0, {"ad_page": 0.0})),
    ],
)
def test_statements(changes: list[dict], expected: tuple) -> None:
    assert tuple(score_statement(TRUTH, {"changes": changes})) == expected


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ([], "an object with a list `changes`"),
        ({"changes": {}}, "an object with a list `changes`"),
        ({"changes": [{"name": "slip"}]}, "`changes[0]` of the statement should be an object with `knob`"),
        ({"changes": [{"knob": "slip"}, {"knob": "slip"}]}, "name each knob once. Received 'slip'"),
    ],
)
def test_what_is_no_statement_is_refused(statement: object, message: str) -> None:
    with pytest.raises(ArgumentError) as raised:
        score_statement(TRUTH, statement)
    assert message in str(raised.value)


def test_the_command_takes_back_what_it_prints(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    phases = ["diff", "frozen_lake/explicit:family", "source", "drift-1", "--seed", "2"]
    assert main([*phases, "--json"]) == 0
    printed = capsys.readouterr().out
    (change,) = json.loads(printed)["changes"]
    file = tmp_path / "statement.json"
    file.write_text(printed)
    assert main([*phases, "--score", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "version": 1, "precision": 1.0, "recall": 1.0, "exact": 1.0, "agreement": {"map": 1.0}
    }  # fmt: skip
    assert main(phases) == 0
    shown = capsys.readouterr().out
    first = " ".join(change["old"][0].replace("F", ".")), " ".join(change["new"][0].replace("F", "."))
    assert any(
        line.split("    ")[0].strip() == first[0] and line.strip().endswith(first[1]) for line in shown.splitlines()
    )
    file.write_text("{")
    assert main([*phases, "--score", str(file)]) == 1
    assert main(["diff", "frozen_lake/explicit", "source", "drift-9"]) == 2
    assert main(["diff", "frozen_lake/null", "source", "source"]) == 0
    assert capsys.readouterr().out.endswith("nothing differs\n")
