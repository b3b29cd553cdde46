"""Controllers and teams as axes: labels in logs and reports; defaults change nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drift_agents.analysis.inspect.page import gather
from drift_agents.analysis.report import make_report
from drift_agents.analysis.rows import Player
from drift_agents.controller.base import Decision, Direct, Render
from drift_agents.errors import ExperimentError
from drift_agents.experiment.config import Experiment, PartSpec
from drift_agents.experiment.episode import play
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.logs import read_rows, to_line
from drift_agents.experiment.plan import MemberSpec, plan_cells, read_members
from drift_agents.experiment.runner import Progress, run_experiment
from drift_agents.memory.base import Memory
from drift_agents.policy.base import Policy
from drift_agents.registry.tables import CONTROLLERS, TEAMS
from drift_agents.team.base import Member, Rollout, Solo
from drift_agents.types import Episode

from tests.drift_agents.experiment.cells import cell_files


class Coin(Direct):
    """A controller that leaves memory out of every other decision.

    Args:
        every: how often memory is asked.
    """

    def __init__(self, every: int = 2) -> None:
        self.name, self.every, self._asked = "coin", every, 0

    def act(self, state: str, memory: Memory, policy: Policy, render: Render, rng: np.random.Generator) -> Decision:
        """Decide."""
        self._asked += 1
        view, retrieved = render(recall=self._asked % self.every == 0)
        return Decision(view, policy.decide(view, rng), retrieved)


class Twice(Solo):
    """A team that plays every task of the training phase with each member."""

    name = "twice"

    def __init__(self, members: list[Member], last: bool = False) -> None:
        super().__init__(members)
        self.last = last

    def solver(self, task: str) -> str:
        """The last or the first one."""
        return self.members[-1 if self.last else 0].name

    def train(self, task: str, rollout: Rollout) -> list[Episode]:
        """One episode of each."""
        return [rollout(member.name) for member in self.members]


@pytest.fixture(autouse=True)
def _parts(monkeypatch: pytest.MonkeyPatch) -> None:
    for registry, name, kind in ((CONTROLLERS, "coin", Coin), (TEAMS, "twice", Twice)):
        known, load = registry.names(), type(registry).load
        monkeypatch.setattr(registry, "names", lambda known=known, name=name: (*known, name))
        monkeypatch.setattr(
            registry,
            "load",
            lambda asked, registry=registry, name=name, kind=kind, load=load: (
                kind if asked == name else load(registry, asked)
            ),
        )


MEMBERS = {"members": ["planner", {"policy": "random", "name": "luck"}]}


@pytest.fixture
def data(data: dict[str, Any]) -> dict[str, Any]:
    data["agents"] = [
        {"memory": "vanilla", "verifier": ["none", "glove"], "policy": "planner"},
        {"memory": "vanilla", "controller": ["coin", {"coin": {"every": 3}}], "policy": "planner"},
        {"memory": ["none", "vanilla"], "team": [{"twice": MEMBERS}], "policy": "planner"},
    ]
    return data | {"references": ["oracle_reset"], "seeds": 1}


def test_ways_are_told_apart_and_the_usual_one_is_left_out(data: dict[str, Any]) -> None:
    cells = plan_cells(parse_experiment(data))
    assert [(*cell.labels, *cell.decision.labels) for cell in cells] == [
        ("vanilla", "none", "planner", "direct", "solo"),
        ("vanilla", "glove", "planner", "direct", "solo"),
        ("vanilla", "oracle_reset", "planner", "direct", "solo"),
        ("vanilla", "none", "planner", "coin", "solo"),
        ("vanilla", "oracle_reset", "planner", "coin", "solo"),
        ("vanilla", "none", "planner", "coin(every=3)", "solo"),
        ("vanilla", "oracle_reset", "planner", "coin(every=3)", "solo"),
        ("none", "none", "planner", "direct", "twice"),
        ("vanilla", "none", "planner", "direct", "twice"),
        ("vanilla", "oracle_reset", "planner", "direct", "twice"),
    ]
    assert [cell.key.split("puddle.yaml--")[1] for cell in cells][:4:3] == [
        "vanilla--none--planner--0",
        "vanilla--none--planner--coin--0",
    ]
    assert cells[-2].key.endswith("vanilla--none--planner--twice--0")
    assert len({cell.key for cell in cells}) == len(cells)


def test_the_usual_way_changes_neither_hash_nor_plan(data: dict[str, Any]) -> None:
    data["agents"] = {"memory": "vanilla", "policy": "planner"}
    plain = parse_experiment(data)
    data["agents"] |= {"controller": "direct", "team": "solo"}
    said = parse_experiment(data | {"learning": "online", "trace": "none"})
    assert said.config_hash() == plain.config_hash()
    assert plan_cells(said) == plan_cells(plain)
    assert "controller" not in json.dumps(said.to_dict())


def test_the_hashes_of_shipped_experiments_stay() -> None:
    """Runs of earlier versions can go on: what is not said does not count."""
    agents = {"memory": ["none", "vanilla"], "verifier": ["none", "glove"], "policy": "planner"}
    data = {"name": "old", "schedules": ["frozen_lake/explicit"], "agents": agents, "seeds": 3, "rounds": 2}
    assert parse_experiment(data).config_hash() == "0c7e604a778cd51d"
    assert parse_experiment({**data, "train": {"episodes": 2}}).config_hash() != "0c7e604a778cd51d"


def test_a_controller_decides_and_a_team_plays(data: dict[str, Any]) -> None:
    experiment = parse_experiment(data | {"train": {"episodes": 2, "where": "same"}})
    rows = {cell.key: list(play(cell, experiment.settings_of(cell.schedule))) for cell in plan_cells(experiment)}
    plain, coin, thrice = (
        next(rows[key] for key in rows if key.endswith(end))
        for end in ("vanilla--none--planner--0", "none--planner--coin--0", "none--planner--coin-every=3--0")
    )
    assert [row["steps"] for row in plain] != [row["steps"] for row in coin]
    assert {row["controller"] for row in coin} == {"coin"}
    assert {row["controller"] for row in thrice} == {"coin(every=3)"}
    team = next(rows[key] for key in rows if key.endswith("vanilla--none--planner--twice--0"))
    assert {row["team"] for row in team} == {"twice"}
    assert [row["round"] for row in team if row["stage"] == "train"] == [1, 1, 2, 2]
    assert [row["episode"] for row in team] == list(range(4 + 8))
    alone = next(rows[key] for key in rows if key.endswith("none--none--planner--twice--0"))
    assert len(alone) == 4 + 8, "a team without memory trains too: it may learn who is able"


def test_a_schedules_own_options_are_laid_over_ways(data: dict[str, Any]) -> None:
    (schedule,) = data["schedules"]
    data["environments"] = {schedule: {"controller": {"coin": {"every": 5}}, "team": {"twice": {"last": True}}}}
    cells = plan_cells(parse_experiment(data))
    assert {cell.decision.controller.options.get("every") for cell in cells if "coin" in cell.decision.labels[0]} == {5}
    assert next(cell.decision.team.options for cell in cells if cell.decision.labels[1] == "twice") == {
        **MEMBERS,
        "last": True,
    }
    assert {cell.decision.labels[0] for cell in cells} == {"direct", "coin", "coin(every=3)"}
    lines = [to_line(row) for row in play(cells[-2], parse_experiment(data).settings_of(schedule))]
    other = plan_cells(parse_experiment({key: data[key] for key in data if key != "environments"}))[-2]
    assert lines != [to_line(row) for row in play(other, parse_experiment(data).settings_of(schedule))]


def test_members_as_a_file_has_them() -> None:
    members = ["planner", {"planner": {"conflict": "newest"}}, {"policy": {"random": {}}, "errs": 0.2}]
    assert read_members(PartSpec(name="edv", options={"members": members})) == (
        MemberSpec("planner", PartSpec(name="planner")),
        MemberSpec("planner(conflict=newest)", PartSpec(name="planner", options={"conflict": "newest"})),
        MemberSpec("random", PartSpec(name="random"), 0.2),
    )
    assert read_members(PartSpec(name="edv")) == ()


@pytest.mark.parametrize(
    ("agents", "expected"),
    [
        ({"controller": "dirct"}, "agents.controller: no controller is called 'dirct', did you mean 'direct'"),
        ({"team": [{"twice": {"members": 3}}]}, "agents.team[0]: `members` of the team 'twice' should be a l"),
        ({"team": {"twice": {"members": []}}}, "or one of planners, erring, alike, weak. Received []"),
        ({"team": {"twice": {"members": [3]}}}, "agents.team: `members` of the team 'twice' should be policies"),
        ({"team": {"twice": {"members": ["planer"]}}}, "no policy is called 'planer', did you mean 'planner'"),
    ],
)
def test_mistakes_are_told(data: dict[str, Any], agents: dict[str, Any], expected: str) -> None:
    data["agents"] = {"memory": "vanilla", "policy": "planner", **agents}
    with pytest.raises(ExperimentError, match=re.escape(expected)):
        parse_experiment(data)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"train": {"episodes": -1}}, "train.episodes: should be at least 0. Received -1"),
        ({"train": {"episodes": 1, "were": "same"}}, "train.were: no key is called 'were', did you mean 'wh"),
        ({"train": {"episodes": 1, "policy": "randm"}}, "train.policy: no policy is called 'randm', did you"),
        ({"learning": "offline"}, "learning: should be 'online' or 'frozen'. Received 'offline'"),
    ],
)
def test_mistakes_about_stages_are_told(data: dict[str, Any], more: dict[str, Any], expected: str) -> None:
    data["agents"] = {"memory": "vanilla", "policy": "planner"}
    with pytest.raises(ExperimentError, match=re.escape(expected)):
        parse_experiment(data | more)


def test_a_training_by_another_policy_is_no_teams(data: dict[str, Any], tmp_path: Path) -> None:
    asked = {"episodes": 1, "where": "same", "policy": "random"}
    with pytest.raises(ExperimentError, match=r"vanilla \+ none \+ planner \+ twice: .* needs the team 'solo'"):
        run_experiment(
            parse_experiment(data | {"agents": [data["agents"][2] | {"memory": "vanilla"}], "train": asked}),
            tmp_path / "run",
        )


@pytest.fixture
def experiment(data: dict[str, Any]) -> Experiment:
    return parse_experiment(data | {"train": {"episodes": 2, "where": "same"}})


@pytest.mark.integration
def test_runs_reports_and_pages_tell_them_apart(experiment: Experiment, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run_experiment(experiment, folder, trace="all")
    manifest, rows = json.loads((folder / "run.json").read_text()), read_rows(folder / "episodes.jsonl")
    players = {Player.of(one): one["reference"] for one in manifest["players"]}
    assert players[Player("vanilla", "oracle_reset", "planner", "coin")] == "oracle_reset"
    assert players[Player("vanilla", "none", "planner", "direct", "twice")] is None
    (section,) = [section for section in make_report(manifest, rows).sections if section.subject == "puddle"]
    names = [cells[0] for cells, _ in section.tables[0].rows]
    assert names == [
        "Vanilla",
        "  + GLOVE",
        "  oracle reset",
        "Vanilla (coin)",
        "  oracle reset (coin)",
        "Vanilla (coin(every=3))",
        "  oracle reset (coin(every=3))",
        "No memory (twice)",
        "Vanilla (twice)",
        "  oracle reset (twice)",
    ]
    cells = gather(folder).index["cells"]
    assert len({(cell["memory"], cell["verifier"], cell["controller"], cell["team"]) for cell in cells}) == 10
    assert all(cell["chunk"] is not None for cell in cells)


class Noted(Progress):
    """Keeps the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Keep it."""
        self.notes.append(text)


def test_the_file_says_which_steps_are_kept(data: dict[str, Any], tmp_path: Path) -> None:
    data["agents"] = {"memory": "vanilla", "policy": "planner"}
    plain, kept = parse_experiment(data), parse_experiment(data | {"trace": "all"})
    assert plain.config_hash() == kept.config_hash()
    whole = run_experiment(kept, tmp_path / "kept").read_bytes()
    assert len(list((tmp_path / "kept" / "traces").iterdir())) == 2
    assert run_experiment(kept, tmp_path / "plain", trace="none").read_bytes() == whole
    assert not (tmp_path / "plain" / "traces").exists(), "who asks for the run has the last word"
    progress = Noted()
    cell_files(tmp_path / "plain")[1].unlink()
    assert run_experiment(kept, tmp_path / "plain", resume=True, progress=progress).read_bytes() == whole
    assert len(progress.notes) == 1
    assert progress.notes[0].startswith("1 of the cells that are done were played without keeping steps")
    assert len(list((tmp_path / "plain" / "traces").iterdir())) == 1
    silent = Noted()
    run_experiment(plain, tmp_path / "plain", resume=True, progress=silent)
    run_experiment(kept, tmp_path / "kept", resume=True, progress=silent)
    assert silent.notes == []
