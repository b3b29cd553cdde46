"""The full transcript: what its window shows."""

from __future__ import annotations

from itertools import pairwise

from drift_agents.memory.vanilla import FullTranscript
from drift_agents.prompt.lessons import parse_trajectories
from drift_agents.types import AgentClock, Experience, Outcome

NOW = AgentClock(9, 99)


def walk(memory: FullTranscript, episode: int, *places: int, start: int) -> list[int | None]:
    """Steps of one episode from place to place."""
    ids = []
    for step, (here, there) in enumerate(pairwise(places), start):
        now, after = AgentClock(episode, step), Outcome(f"[{there}]", 0.0, there == 0)
        ids.append(memory.observe(Experience(f"[{here}]", "a", after, 0.0, now), now))
    return ids


def test_the_newest_steps_are_shown_by_episode_wherever_the_agent_is() -> None:
    memory = FullTranscript(window=4)
    walk(memory, 0, 1, 2, 3, 4, start=0)
    walk(memory, 1, 5, 6, 0, start=3)
    shown = memory.retrieve("[7]", 1, NOW)
    assert shown.records == ()
    assert [note.text.split(".")[0] for note in shown.notes] == ["Episode 0", "Episode 1"]
    assert [parse_trajectories(note.text)[0].states for note in shown.notes] == [
        ("[2]", "[3]", "[4]"),
        ("[5]", "[6]", "[0]"),
    ]
    assert shown == memory.retrieve("[1]", None, NOW)


def test_a_removed_step_leaves_the_transcript_and_an_older_one_takes_its_place() -> None:
    memory = FullTranscript(window=3)
    ids = walk(memory, 0, 1, 2, 3, 4, 5, start=0)
    memory.remove([one for one in ids[2:3] if one is not None])
    (note,) = memory.retrieve("[1]", None, NOW).notes
    assert [way.states for way in parse_trajectories(note.text)] == [("[1]", "[2]", "[3]"), ("[4]", "[5]")]
