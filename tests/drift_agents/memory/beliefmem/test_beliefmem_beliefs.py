"""What BeliefMem believes: probabilities by hand, ablations, evidence, and a lake."""

from __future__ import annotations

import json
from typing import Any

import gymnasium as gym
import pytest
from drift_agents.agent.agent import Agent
from drift_agents.envs.matching import Exact
from drift_agents.errors import ModelError
from drift_agents.llm.base import RuleModel
from drift_agents.memory.base import NoMemory
from drift_agents.memory.beliefmem import BeliefMem
from drift_agents.policy.base import make_policy
from drift_agents.prompt.builder import PromptBuilder, Recall
from drift_agents.types import AgentClock, Experience, Outcome
from drift_agents.verifier.glove import Glove
from drift_agents.verifier.prober import ReplayProber
from hypothesis import given
from hypothesis import strategies as st

import drift_envs


def at(step: int) -> AgentClock:
    """A moment; episodes have ten steps."""
    return AgentClock(step // 10, step)


def write(memory: BeliefMem, step: int, after: str = "t", state: str = "s", action: str = "1") -> int | None:
    return memory.observe(Experience(state, action, Outcome(after, 0.0, False), 0.0, at(step)), at(step))


def retrieve_beliefs(memory: BeliefMem, state: str = "s", k: int | None = None) -> list[tuple[str, str, Any]]:
    """What an answer says: action, outcome, weight."""
    answer = memory.retrieve(state, k, at(99))
    pairs = zip(answer.records, answer.weights, strict=True)
    return [(record.action, record.outcome.state, pytest.approx(weight)) for record, weight in pairs]


def test_every_candidate_is_recalled_with_its_probability() -> None:
    memory = play_history("aab")
    assert retrieve_beliefs(memory) == [("1", "a", 0.968), ("1", "b", 0.8)]
    assert [record.now.step for record in memory.retrieve("s", None, at(9)).records] == [1, 2], "by the newest record"
    assert retrieve_beliefs(memory, "elsewhere") == retrieve_beliefs(memory), "a bank has nothing nearer"
    assert retrieve_beliefs(play_history("aab", per="state"), "elsewhere") == []


def test_at_most_four_candidates_of_an_attribute_are_shown() -> None:
    memory = BeliefMem()
    for step, after in enumerate("abcdef"):
        write(memory, step, after)
    assert retrieve_beliefs(memory) == [("1", "e", 0.84), ("1", "f", 0.8), ("1", "d", 0.25), ("1", "c", 0.25)]
    assert len(memory.beliefs("s", "1")) == 6
    assert [after for _, after, _ in retrieve_beliefs(play_history("abcdef", candidates=1))] == ["e"]


def play_history(history: str, **options: Any) -> BeliefMem:
    memory = BeliefMem(**options)
    for step, after in enumerate(history):
        write(memory, step, after)
    return memory


@given(st.lists(st.tuples(st.sampled_from("st"), st.sampled_from("12"), st.sampled_from("abc")), max_size=40))
def test_it_agrees_with_a_direct_implementation_of_the_rule(history: list[tuple[str, str, str]]) -> None:
    memory, plain, last = BeliefMem(per="state"), {}, {}
    for step, (state, action, after) in enumerate(history):
        write(memory, step, after, state, action)
        held, seen = plain.setdefault((state, action), {}), last.setdefault((state, action), [])
        newest = {outcome: max(i for i, one in enumerate(seen) if one == outcome) for outcome in held}
        leader = max(held, key=lambda outcome: (held[outcome], newest[outcome]), default=after)
        supported = {after: 0.8}
        if leader != after and seen[-1] == leader:
            supported[leader] = 0.2
        for outcome in held:
            p = held[outcome]
            held[outcome] = min(1 - (1 - p) * (1 - supported[outcome]), 0.99) if outcome in supported else min(p, 0.25)
        held.setdefault(after, 0.8)
        seen.append(after)
    for (state, action), held in plain.items():
        believed = {belief.record.outcome.state: belief.p for belief in memory.beliefs(state, action)}
        assert believed == pytest.approx(held)
    for state in "st":
        expected = {(a, h): p for (s, a), held in plain.items() if s == state for h, p in held.items()}
        assert {(a, h): p for a, h, p in retrieve_beliefs(memory, state)} == expected


def test_without_belief_the_most_probable_conclusion_has_weight_one() -> None:
    memory = play_history("aab", without="belief")
    assert retrieve_beliefs(memory) == [("1", "a", 1.0)]
    assert len(memory.same_transitions("s", "1")) == 3, "what a verifier asks about is all there"


def test_without_belief_aware_retrieval_all_weights_are_equal() -> None:
    memory = play_history("aab", without="retrieval")
    assert retrieve_beliefs(memory) == [("1", "b", 1.0), ("1", "a", 1.0)]
    assert [belief.p for belief in memory.beliefs("s", "1")] == pytest.approx([0.968, 0.8]), (
        "they are stored all the same"
    )


def test_without_add_only_existing_attributes_are_updated() -> None:
    memory = BeliefMem(without="add")
    assert write(memory, 0, "a") is None
    assert list(memory.records()) == []
    memory.insert_summary("s", "1", [(Outcome("a", 0.0, False), 1.0)], 1, at(1))
    assert write(memory, 5, "a") is not None
    assert retrieve_beliefs(memory) == [("1", "a", 0.96)]
    write(memory, 6, "b"), write(memory, 6, "b")
    assert retrieve_beliefs(memory) == [("1", "a", 0.25)], "contradicted, and b is not added"
    assert write(memory, 7, "a", action="2") is None
    memory.insert_summary("s", "2", [(Outcome("c", 0.0, False), 1.0)], 1, at(8))
    assert ("2", "c", 0.8) in retrieve_beliefs(memory), "a verifier's summary is no inference of the agent"


def test_without_merge_every_observation_is_an_attribute() -> None:
    memory = play_history("aab", without="merge", decay=1.0)
    assert retrieve_beliefs(memory) == [("1", "b", 0.8), ("1", "a", 0.8), ("1", "a", 0.8)]
    assert memory.archive("s", "1") == ()
    assert len(retrieve_beliefs(memory, k=2)) == 2


def test_the_responses_of_a_summary_share_its_probability() -> None:
    """By hand: 10 responses, 1 - .2^10, clipped to .9; weight .09; planners count .9 * .7 and .9 * .3."""
    memory, ice, hole = BeliefMem(), Outcome('{"at": 2}', 0.0, False), Outcome('{"at": 3}', 0.0, True)
    memory.insert_summary('{"at": 1}', "1", [(ice, 0.7), (hole, 0.3)], 10, at(0))
    assert memory.retrieve('{"at": 1}', None, at(1)).weights == pytest.approx((0.09,))
    view, _ = PromptBuilder(Exact(), Recall()).make(memory, "Go.", '{"at": 1}', ("1",), at(1))
    assert [item.support for item in view.here] == pytest.approx([0.63, 0.27])
    memory.observe(Experience('{"at": 1}', "1", hole, 0.0, at(2)), at(2))
    (belief,) = memory.beliefs('{"at": 1}', "1")
    assert belief.p == pytest.approx(0.98)


def test_probabilities_are_in_the_prompt() -> None:
    memory, state = BeliefMem(), json.dumps({"at": 0})
    for step, after in enumerate((1, 1, 2)):
        write(memory, step, json.dumps({"at": after}), state)
    maker = PromptBuilder(Exact(), Recall())
    view, _ = maker.make(memory, "Go.", state, ("1",), at(3))
    assert [(item.outcome.state, item.support) for item in view.here] == [
        ('{"at": 1}', pytest.approx(0.968, abs=0.01)),
        ('{"at": 2}', 0.8),
    ]
    assert "recalled with weight 0.8" in view.render()
    memory.remove([memory.same_transitions(state, "1")[-1].id])
    view, _ = maker.make(memory, "Go.", state, ("1",), at(3))
    assert [item.support for item in view.here] == [0.96], "as if it had never been"


def test_a_model_extracts_conclusions_with_their_strengths() -> None:
    shown: list[str] = []

    def extract(text: str) -> dict[str, Any]:
        shown.append(text)
        observed = text.splitlines()[0].removeprefix("Observation: ")
        found = [{"conclusion": observed, "prob": 0.5}]
        if "led to b" in observed:
            found += [{"conclusion": "Rate limited, for now", "prob": 0.85}, {"conclusion": " ", "prob": 1}]
        return {"candidates": found}

    memory = play_history("aab", model=RuleModel({"beliefmem_candidates": extract}))
    assert retrieve_beliefs(memory) == [("1", "b", 0.7), ("1", "a", 0.25)], "clip(.5); a was not supported"
    (note,) = memory.retrieve("s", None, at(9)).notes
    assert note.text == "With probability 0.85: Rate limited, for now"
    a = 'In s action "1" led to a (score 0)'
    assert shown[0].splitlines() == [f"Observation: {a}", "Known conclusions, the most probable first:", "- none"]
    assert shown[2].splitlines()[2:] == [f"- {a}"]
    write(memory, 3, "a")
    assert shown[3].splitlines()[2:] == ["- Rate limited, for now", '- In s action "1" led to b (score 0)', f"- {a}"]
    memory.remove([record.id for record in memory.same_transitions("s", "1") if record.outcome.state == "b"])
    assert memory.retrieve("s", None, at(9)).notes == ()
    assert retrieve_beliefs(memory) == [("1", "a", 0.925)], "1 - .3 * .5 * .5, as if b had never been"


def test_where_a_model_finds_nothing_the_rules_decide() -> None:
    memory = play_history("aab", model=BeliefMem().rules)
    assert retrieve_beliefs(memory) == retrieve_beliefs(play_history("aab"))
    wrong = RuleModel({"beliefmem_candidates": lambda text: {"candidates": [{"conclusion": "a", "prob": 1.2}]}})
    with pytest.raises(ModelError, match="should answer 'beliefmem_candidates' by its schema"):
        play_history("a", model=wrong)


@pytest.mark.parametrize(("cascade", "left"), [("any", []), ("majority", [0.96]), ("cut", [0.96])])
def test_a_conclusion_is_removed_with_its_evidence(cascade: str, left: list[float]) -> None:
    """Of four records that say the same go two, then a third."""
    memory = play_history("aaaa", cascade=cascade)
    fell = memory.remove([0, 2])
    assert fell.records == (0, 2)
    assert [p for _, _, p in retrieve_beliefs(memory)] == pytest.approx(left)
    assert len(fell.notes) == (not left), "the attribute falls with its last conclusion"
    memory.remove([3])
    assert [p for _, _, p in retrieve_beliefs(memory)] == ([0.8] if left else [])
    assert len(memory.same_transitions("s", "1")) == 1
    write(memory, 9, "a")
    assert [p for _, _, p in retrieve_beliefs(memory)] == pytest.approx([0.96] if left else [0.8])


def test_a_majority_removes_the_rest_of_the_evidence() -> None:
    memory = play_history("aaab", cascade="majority")
    assert memory.remove([0, 2]).notes == ()
    assert retrieve_beliefs(memory) == [("1", "b", 0.8)]
    assert len(memory.same_transitions("s", "1")) == 2, "the records are still there"


def test_former_conclusions_can_be_shown() -> None:
    memory = play_history("aab", archived=2, one_off=0)
    (note,) = memory.retrieve("s", None, at(9)).notes
    assert note.text == 'Until step 2, with probability 0.96: In s action "1" led to a (score 0).'
    assert note.evidence == tuple(record.id for record in memory.same_transitions("s", "1"))
    assert [(b.record.outcome.state, b.p) for b in memory.beliefs("s", "1", at(1))] == [("a", pytest.approx(0.96))]
    assert [round(version.p, 2) for version in memory.archive("s", "1")] == [0.8, 0.96]
    assert play_history("aa", archived=2).retrieve("s", None, at(9)).notes == (), "nothing else was believed"
    memory.remove([0, 2])
    assert memory.retrieve("s", None, at(9)).notes == memory.archive("s", "1") == ()


@pytest.mark.integration
def test_with_one_conclusion_an_observation_a_deterministic_lake_is_recovered_without_probing() -> None:
    """The newest outcome wins there: GLOVE has nothing to add."""
    scores = {}
    for verified in (False, True):
        env = gym.make("DriftFrozenLake-v0", text=True)
        verifier = Glove(prober=ReplayProber(drift_envs.twin(env))) if verified else None
        memory = BeliefMem(per="state", decay=1.0, one_off=0)
        agent = Agent(make_policy("planner"), memory, verifier, keep_trace=False)
        episodes = [agent.run_episode(env, seed=0 if i == 0 else None) for i in range(60)]
        env.close()
        scores[verified] = [e.score for e in episodes]
    assert scores[False] == scores[True]
    assert all(sum(scores[True][i : i + 10]) > 8 for i in (10, 30, 50))


def test_without_add_a_run_is_that_of_no_memory() -> None:
    runs = []
    for memory in (BeliefMem(without="add"), NoMemory()):
        env = gym.make("DriftFrozenLake-v0", text=True)
        agent = Agent(make_policy("planner"), memory, seed=3)
        runs.append([agent.run_episode(env, seed=0 if i == 0 else None).trace for i in range(3)])
        env.close()
    assert runs[0] == runs[1]
