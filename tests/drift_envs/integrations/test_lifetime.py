"""A lifetime as text: its clock, its end, what it refuses, and how it is scored."""

from __future__ import annotations

import re

import pytest

from drift_envs.errors import ArgumentError, StateError
from drift_envs.integrations.dialogue import Dialogue
from drift_envs.integrations.lifetime import TextLifetime, lifetime_scores

TURN = {
    "version": 1, "name": "turn", "env": "DriftFrozenLake-v0",
    "base": {"map": ["SFF", "HHG"]},
    "drifts": [{"name": "moved", "at": 20, "set": {"map": ["SHF", "FFG"]}}],
}  # fmt: skip


def play(dialogue, actions):
    """The lifetime with the same actions in every episode; returns the turns that ended one."""
    message, ends = dialogue.open(), []
    while True:
        for action in actions:
            turn = dialogue.reply(f"Action: {action}")
            if "Its score is" in turn.message:
                ends.append(turn)
                break
        if ends[-1].is_over:
            return message, ends


def test_rounds_jump_over_the_rest_of_a_phase():
    lines = []
    life = TextLifetime("DriftFrozenLake-v0", TURN, on_episode=lines.append, rounds=2)
    assert life.planned == ("source", "source", "moved", "moved")
    _, ends = play(Dialogue(life), (2, 2, 1))
    assert [(line["tick"], line["phase"], line["score"]) for line in lines] == [
        (0, "source", 1.0), (1, "source", 1.0), (20, "moved", 0.0), (21, "moved", 0.0),
    ]  # fmt: skip
    assert [turn.reward for turn in ends] == [1.0, 1.0, 0.0, 0.0]
    assert [turn.is_over for turn in ends] == [False, False, False, True]
    assert "Episode" not in ends[-1].message
    with pytest.raises(StateError, match="over after 4 episodes"):
        life.reset()


def test_episodes_let_time_go_on():
    lines = []
    life = TextLifetime("DriftFrozenLake-v0", TURN, on_episode=lines.append, episodes=22)
    play(Dialogue(life), (2, 2, 1))
    assert [line["tick"] for line in lines] == list(range(22))
    assert tuple(line["phase"] for line in lines) == life.planned == ("source",) * 20 + ("moved",) * 2


def test_the_plan_of_a_lifetime_does_not_disturb_it():
    """With and without a plan the seeded environment is the same, also where the ice is slippery."""
    with_plan = TextLifetime("DriftFrozenLake-v0", "frozen_lake/slippery", seed=3, episodes=5)
    without = TextLifetime("DriftFrozenLake-v0", "frozen_lake/slippery", seed=3)
    for _ in range(5):
        assert with_plan.reset() == without.reset()
        while not with_plan.observe()["ended"]:
            assert with_plan.act("1") == without.act("1")


def test_episodes_that_were_not_played_score_zero():
    planned = ["source", "source", "ice", "ice"]
    lines = [{"phase": "source", "score": 1.0}] * 2 + [{"phase": "ice", "score": 1.0}]
    assert lifetime_scores(lines, planned)["score_ice"] == 0.5
    assert lifetime_scores(lines)["score_ice"] == 1.0


def test_an_agent_without_a_score_before_the_drift_does_not_recover() -> None:
    lines = [{"phase": "source", "score": 0.0}, {"phase": "ice", "score": 1.0}, {"phase": "ice", "score": 1.0}]
    found = lifetime_scores(lines)
    assert (found["recovered"], found["recovery_episodes"]) == (0.0, 2.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rounds": 21}, "`rounds` should be at most the episodes of the shortest phase. Received 21, phase 'source'"),
        ({"rounds": 0}, "`rounds` should be"),
        ({"rounds": 1, "episodes": 1}, "exclude each other"),
        ({"schedule": "frozen_lake/explicit:mid-episode", "rounds": 1}, "give `episodes` instead"),
        ({"schedule": "frozen_lake/tides", "rounds": 1}, "give `episodes` instead"),
        ({"schedule": {**TURN, "drifts": [{"at": 2, "rate": 0.1, "walk": {"slip": 0.1}}]}, "rounds": 1}, "has `rate`"),
    ],
)
def test_a_plan_that_cannot_be_played_is_refused(arguments, message):
    with pytest.raises(ArgumentError, match=re.escape(message)):
        TextLifetime("DriftFrozenLake-v0", **{"schedule": TURN, **arguments})


def test_environments_of_other_packages_are_lifetimes_too(tmp_path) -> None:
    file = tmp_path / "heavy.yaml"
    file.write_text("version: 1\nenv: Pendulum-v1\ndrifts: [{at: 1, set: {g: 2.0}}]\n", encoding="utf-8")
    for life in (TextLifetime("Pendulum-v1", str(file), episodes=2), TextLifetime.of_schedule(str(file), rounds=1)):
        assert life.planned == ("source", "drift-1")
        life.reset()
        with pytest.raises(ArgumentError, match="`action` should be"):
            life.act("[0.5, 0.5]")
        assert life.act("[0.5]")["score"] == life.observe()["reward"]
        life.reset()
        assert life.act("2")["reward"] > -20
    with pytest.raises(
        ArgumentError, match=r"`env_id` should be one of .* come with a `schedule` .*Received 'Pendulum-v1'"
    ):
        TextLifetime("Pendulum-v1")
    file.write_text("version: 1\nname: nowhere\n", encoding="utf-8")
    with pytest.raises(ArgumentError, match="should name its environment under `env`"):
        TextLifetime.of_schedule(str(file))


def test_a_log_that_cannot_be_written_is_refused_before_anything_is_played(tmp_path):
    for path in (tmp_path / "absent" / "mine.jsonl", tmp_path):
        with pytest.raises(ArgumentError, match=re.escape("`log` should be a file that can be written: [Errno")):
            TextLifetime("DriftFrozenLake-v0", log=path)
    with pytest.raises(ArgumentError, match="`log` should be a file that can be written: "):
        TextLifetime("DriftFrozenLake-v0", log=5)
    with pytest.raises(ArgumentError, match=r"`on_episode` should be a function or None\. Received 3"):
        TextLifetime("DriftFrozenLake-v0", on_episode=3, log=tmp_path / "mine.jsonl")
    with pytest.raises(ArgumentError, match=r"None should name its environment under `env`\."):
        TextLifetime.of_schedule(None)
    with pytest.raises(ArgumentError, match="`rounds` and `episodes` exclude each other"):
        TextLifetime("DriftFrozenLake-v0", log=tmp_path / "mine.jsonl", rounds=1, episodes=1)
    assert list(tmp_path.iterdir()) == []


def test_a_desk_shows_its_tools_and_takes_calls_as_mappings():
    life = TextLifetime.of_schedule("tools/names", rounds=1)
    first = life.reset()
    assert first["tools"][0]["inputSchema"]["type"] == "object"
    name = first["tools"][0]["name"]
    required = first["tools"][0]["inputSchema"]["required"]
    result = life.act({"tool": name, "arguments": dict.fromkeys(required, "nobody@example.org")})
    assert (result["step"], result["tools"]) == (1, first["tools"])
    with pytest.raises(ArgumentError, match="`action` should be data that JSON has"):
        life.act({"tool": object()})
    assert "tools" not in TextLifetime("DriftFrozenLake-v0").reset()
