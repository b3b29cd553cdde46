"""What tests of Voyager retrieve, and the task of its episodes."""

from drift_agents.memory.voyager import Voyager
from drift_agents.types import AgentClock

TASK = "Reach the goal. The highest score is 1. Actions: 0 left, 1 down."


def retrieve_weights(memory: Voyager, state: str, episode: int, k: int | None = None) -> dict[int, float]:
    answer = memory.retrieve(state, k, AgentClock(episode, 10 * episode))
    return dict(zip([record.id for record in answer.records], answer.weights, strict=True))


def retrieve_notes(memory: Voyager, state: str, episode: int) -> list[str]:
    return [note.text for note in memory.retrieve(state, None, AgentClock(episode, 10 * episode)).notes]
