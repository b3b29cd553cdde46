"""How an agent follows what it remembers: pure functions over executions, and their tables."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.plan import plan_cells

from research.__main__ import main
from research.experience.command import watch_cell
from research.experience.curves import cumulative, so_far
from research.experience.following import (
    Execution,
    ExecutionStep,
    Pair,
    correlation,
    follow_executions,
    follow_steps,
    output_similarity,
    split_by_fate,
)


def lived(number: int, way: list[tuple[str, str]], retrieved: tuple[int, ...] = (), **more: Any) -> Execution:
    """An execution that writes 10 * number and on; all of its steps see the same records."""
    steps = tuple(ExecutionStep(s, a, 10 * number + place, retrieved, s) for place, (s, a) in enumerate(way))
    return Execution(number, more.pop("task", "go"), more.pop("score", 1.0), steps, **more)


def test_the_most_similar_input_is_followed() -> None:
    red = lived(0, [("home", "search red shoe"), ("list", "red")], task="buy a red shoe")
    blue = lived(1, [("home", "search blue lamp"), ("list", "blue")], task="buy a blue lamp")
    now = lived(2, [("home", "search red shoe"), ("list", "other")], (0, 1, 10, 11), task="buy a big red shoe")
    (pair,) = follow_executions([red, blue, now])
    assert (pair.number, pair.source, pair.output) == (2, 0, 0.5)
    assert 0.5 < pair.input < 1.0
    swapped = now._replace(steps=tuple(s._replace(action=a) for s, a in zip(now.steps, blue.actions, strict=True)))
    assert follow_executions([red, blue, swapped])[0].source == 0
    assert follow_executions([red, blue, swapped], by="output")[0].source == 1


def test_of_equals_the_newest_is_followed() -> None:
    way = [("a", "1"), ("b", "2")]
    assert follow_executions([lived(0, way), lived(1, way), lived(2, way, (0, 10))])[-1].source == 1


def test_only_records_about_the_place_count_and_none_of_its_own() -> None:
    first = lived(0, [("a", "1")])
    assert follow_executions([first, lived(1, [("b", "1")], (0,))]) == []
    assert follow_executions([first, lived(1, [("a", "1")], (10,))]) == []


def test_step_by_step_the_share_of_equal_actions_counts() -> None:
    first, second = lived(0, [("a", "1"), ("b", "1")]), lived(1, [("a", "2"), ("b", "1")])
    (pair,) = follow_steps([first, second, lived(2, [("a", "1"), ("b", "1")], (0, 1, 10, 11))])
    assert pair == Pair(2, 1, 1.0, 0.75, 1.0)


def test_pairs_are_split_by_what_became_of_their_source() -> None:
    way = [("a", "1"), ("b", "2")]
    executions = [
        lived(0, way),
        lived(1, [("a", "3")]),
        lived(2, way, (0, 1, 10)),
        lived(3, way, (10,), dropped=(0, 1)),
    ]
    pairs = follow_executions(executions, by="output")
    deleted, retained = split_by_fate(executions, pairs)
    assert [pair.number for pair in deleted] == [2]
    assert [pair.number for pair in retained] == [3]
    half = [*executions[:3], lived(3, way, (10,), dropped=(0,))]
    assert split_by_fate(half, pairs)[0] == [], "part of it is still there"


def test_sums() -> None:
    assert cumulative([]) == []
    assert cumulative([1, 0, 2]) == [1.0, 0.5, 1.0]
    assert output_similarity([], []) == 1.0
    line = [Pair(0, 0, x, y, 0.0) for x, y in ((0.0, 1.0), (0.5, 0.5), (1.0, 0.0))]
    assert correlation(line) == pytest.approx(-1.0)
    assert math.isnan(correlation([pair._replace(input=1.0) for pair in line]))
    assert math.isnan(correlation(line[:1]))


@pytest.mark.integration
def test_the_command_plays_and_tells(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    path = tmp_path / "few.yaml"
    path.write_text(
        "name: few\nschedules: frozen_lake/explicit:family\nseeds: 9\nrounds: 6\nagents:\n  policy: planner\n"
        "  memory: {managed: {deletion: history, uses: 1}}\n",
        encoding="utf-8",
    )
    plots = tmp_path / "new" / "plots"
    assert main(["experience", str(path), "--seeds", "2", "--plot", str(plots)]) == 0
    titles = {"Experience following on frozen_lake/explicit:family", "step by step", "input alike, mean so far"}
    titles |= {"output by input", "score by input", "score by episode", "by what became of the source"}
    (drawn,) = plots.glob("*-following.svg")
    assert titles | {"managed"} <= texts_of(drawn)
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| frozen_lake")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    followed, *numbers = cells[3:8]
    assert int(followed) == 34, "all but the first of 18 episodes, twice"
    assert all(-1.0 <= float(number.split()[0]) <= 1.0 for number in numbers if number != "-")
    assert cells[8].count("/") == 2
    assert main(["experience", "no-such-experiment"]) == 2
    assert "no-such-experiment" in capsys.readouterr().err


@pytest.mark.integration
def test_executions_that_memory_began_with_are_followed_and_follow_none() -> None:
    memory = {"managed": {"store": {"synapse": {"k": 2}}, "counts": "shown", "addition": "fixed", "initial": 3}}
    experiment = load_experiment(
        {"name": "few", "schedules": "house/null", "seeds": [4], "rounds": 3}
        | {"agents": {"memory": memory, "policy": "planner"}}
    )
    (cell,) = plan_cells(experiment)
    watched = watch_cell(cell, experiment.settings_of(cell.schedule))
    assert [one.number for one in watched.executions][:4] == [-3, -2, -1, 0]
    assert len({one.task for one in watched.executions[:3]}) > 1, "tasks of their own"
    pairs = follow_executions(watched.executions)
    assert [pair.number for pair in pairs] == list(range(len(watched.success)))
    assert {pair.source for pair in pairs} <= {-3, -2, -1}, "nothing else is in memory"
    assert watched.size == sum(len(one.steps) for one in watched.executions[:3])


def test_curves_begin_with_the_first_pair_and_go_on_where_nothing_is_recalled() -> None:
    pairs = [Pair(1, 0, 0.5, 1.0, 0.0), Pair(3, 1, 1.0, 0.0, 0.0)]
    first, *inputs = so_far(pairs, "input", 5)
    assert math.isnan(first)
    assert inputs == [0.5, 0.5, 0.75, 0.75]
    assert so_far(pairs, "output", 4)[1:] == [1.0, 1.0, 0.5]


def texts_of(path: Path) -> set[str]:
    root = ElementTree.parse(path).getroot()
    return {"".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")}
