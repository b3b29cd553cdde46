"""`base+extra` as a player of a cell."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from drift_agents.agent import Agent
from drift_agents.errors import ArgumentError
from drift_agents.experiment.config import PartSpec, ScheduleSettings
from drift_agents.experiment.episode import make_setup, play
from drift_agents.experiment.evaluator import DetectionTracker, GroundTruth
from drift_agents.experiment.logs import to_line
from drift_agents.experiment.plan import Cell

FAMILY = "frozen_lake/explicit:family"
LENGTH = ScheduleSettings(rounds=6)


def cell(verifier: str = "base+extra", seed: int = 1, source: str = FAMILY, **options: Any) -> Cell:
    parts = PartSpec(name="vanilla"), PartSpec(name=verifier, options=options), PartSpec(name="planner")
    return Cell(source, *parts, seed, ("vanilla", verifier, "planner"))


def rows_of(what: Cell, settings: ScheduleSettings = LENGTH) -> list[dict[str, Any]]:
    return list(play(what, settings))


def test_it_takes_as_many_steps_as_glove_probes_episode_by_episode() -> None:
    glove, extra = rows_of(cell("glove")), rows_of(cell())
    assert [row["probe_steps"] for row in extra] == [row["probe_steps"] for row in glove]
    assert sum(row["probe_steps"] for row in extra) > 0
    assert all((row["probe_resets"] > 0) == (row["probe_steps"] > 0) for row in extra)
    assert not any(row["realignments"] for row in extra)
    assert all(row["probe_falls"] + row["probe_purchases"] <= row["probe_resets"] for row in extra)


def test_it_is_the_plain_agent_until_glove_probes() -> None:
    extra, plain = rows_of(cell()), rows_of(cell("none"))
    first = next(index for index, row in enumerate(extra) if row["probe_steps"])
    ours = [{**row, "verifier": "none"} for row in extra[:first]]
    assert ours == plain[:first]
    assert extra[first]["memory_size"] == plain[first]["memory_size"] + extra[first]["probe_steps"]
    assert extra[first]["score"] == plain[first]["score"], "the extra episodes come behind the ordinary one"


@pytest.mark.integration
def test_the_budget_is_that_of_the_verifier_it_is_compared_with() -> None:
    like = {"glove": {"budget": 4}}
    assert sum(r["probe_steps"] for r in rows_of(cell(like=like))) == sum(
        r["probe_steps"] for r in rows_of(cell("glove", budget=4))
    )
    overlaid = ScheduleSettings(rounds=6, verifier={"glove": {"budget": 4}})
    assert rows_of(cell(like=like)) == rows_of(cell(), overlaid), "what the file says of glove on a schedule counts"


def test_equal_seeds_equal_lines() -> None:
    assert [to_line(row) for row in rows_of(cell())] == [to_line(row) for row in rows_of(cell())]


def test_time_stands_still_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the clock of steps too; and what was written then is known to be of that time."""
    schedule = {
        "version": 1,
        "name": "short",
        "env": "DriftFrozenLake-v0",
        "clock": "step",
        "base": {"map": ["SFFF", "FHFH", "FFFF", "HFFG"]},
        "drifts": [{"at": 60, "set": {"map": ["SFFF", "HFHF", "FFFF", "HFFG"]}}],
    }
    source = tmp_path / "short.yaml"
    source.write_text(json.dumps(schedule), encoding="utf-8")
    rows = rows_of(cell(source=str(source)), ScheduleSettings(episodes=25))
    assert sum(row["probe_steps"] for row in rows) > 0
    assert [row["tick"] for row in rows] == [sum(row["steps"] for row in rows[:index]) for index in range(25)]

    setup = make_setup(cell(source=str(source)), ScheduleSettings(episodes=3))
    env, agent = setup.env, setup.agent
    assert isinstance(agent, Agent)
    assert setup.extra is not None
    env.env.reset(seed=1)
    agent.run_episode(env, seed=1, options={"drift_tick": 0})
    before = env.tick
    monkeypatch.setattr(setup.extra, "_budgets", iter([100]))
    assert setup.extra.play(agent).steps == 100
    assert agent.clock.step == before + 100
    assert env.tick == env.tick_of(before + 3) == before
    agent.run_episode(env)
    assert env.start == before
    assert env.tick_of(before + 100) == before
    assert env.tick_of(before + 102) == before + 2


def test_extra_episodes_have_the_environments_step_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    setup = make_setup(cell(), LENGTH)
    assert setup.extra is not None
    assert isinstance(setup.agent, Agent)
    setup.env.reset(seed=1)
    monkeypatch.setattr(setup.extra, "_budgets", iter([250]))
    monkeypatch.setattr("drift_agents.policy.planner.Planner.decide", _stay)
    assert setup.extra.play(setup.agent) == (250, 3, 0, 0), "100, 100 and 50 steps"
    assert setup.agent.clock.episode == 3


def _stay(self: Any, prompt: str, rng: Any) -> Any:
    from drift_agents.policy.base import Reply

    return Reply("0")


@pytest.mark.parametrize(
    ("like", "message"),
    [
        ("overwrite", "`like` should name a verifier that probes. Received 'overwrite'"),
        ({"glove": {}, "none": {}}, "`like` should be a verifier's name, or one with its options."),
        ({"glove": {"budget": 0}}, "`budget` should be a whole number, at least 1. Received 0"),
    ],
)
def test_refusals(like: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        make_setup(cell(like=like), LENGTH)


@pytest.mark.parametrize(("last", "false"), [(3, 1), (25, 0)], ids=["before the drift", "behind it"])
def test_an_alarm_about_all_of_memory_is_judged(last: int, false: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wipe behind a drift touches what has changed; one before it touches nothing that has."""
    setup = make_setup(cell("page_hinkley"), ScheduleSettings(rounds=20))
    env, agent, truth, noticing = setup.env, setup.agent, GroundTruth(setup.env), DetectionTracker(setup.env)
    env.env.reset(seed=1)
    for tick in (0, 1, 2, last):
        monkeypatch.setattr("drift_agents.verifier.detectors.PageHinkley._has_fallen", lambda *_: tick == last)  # noqa: B023
        episode = agent.run_episode(env, seed=tick, options={"drift_clock": "continue", "drift_tick": tick})
        judged, noticed = truth.evaluate(episode, setup.memory), noticing.evaluate(episode, setup.memory)
        assert len(episode.closing) == episode.realignments == (tick == last)
    assert (judged.false_realignments, judged.memory_size) == (false, 0)
    assert noticed.delay == (None if false else episode.steps)
