"""Wrong but coherent items in ReasoningBank: rendered, counted and cited."""

from __future__ import annotations

from drift_agents.memory.reasoning_bank import ReasoningBank
from drift_agents.prompt.lessons import parse_trajectories
from drift_agents.types import AgentClock, Episode, Experience, Outcome


def play_episode(memory: ReasoningBank, number: int) -> None:
    """Fall to the left, then walk to the goal on the right."""
    start = '{"at": 0}'
    steps = [("l", Outcome('{"at": 9}', 0.0, number % 2 == 0)), ("r", Outcome('{"at": 1}', 1.0, True))]
    for place, (action, outcome) in enumerate(steps):
        now = AgentClock(number, 2 * number + place)
        memory.observe(Experience(start, action, outcome, 0.0, now), now)
    memory.end_episode(Episode("Go.", 1.0, 2, True), AgentClock(number, 2 * number + 2))


def test_every_other_item_is_wrong_and_claims_false_transitions() -> None:
    memory = ReasoningBank(contaminate=0.5)
    for number in range(4):
        play_episode(memory, number)
    assert len(memory.items()) == 8
    wrong = [item for item in memory.items() if item.description == "What these actions lead to."]
    assert len(wrong) == 4
    lies = {(way.actions[0], way.states[1]) for item in wrong for way in parse_trajectories(item.content)}
    assert lies == {("l", '{"at": 1}'), ("r", '{"at": 9}')}
    evidence = {number: cited for number, _, cited in memory.audited()}
    records = {record.id: record for record in memory.records()}
    stated = {(records[n].action, records[n].outcome.state) for n in evidence[max(evidence)]}
    assert stated == lies, "the item cites the lies, so that a verifier can find them out"
    assert not any(item.description == wrong[0].description for item in ReasoningBank().items())
