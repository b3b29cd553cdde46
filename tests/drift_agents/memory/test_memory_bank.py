"""MemoryBank: strengths and weights by hand, recalls, summaries, and GLOVE on top."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import gymnasium as gym
import pytest
from drift_agents.agent.agent import Agent
from drift_agents.envs.matching import Exact
from drift_agents.errors import ArgumentError, ModelError
from drift_agents.llm.base import RuleModel
from drift_agents.memory.memory_bank import FAINTEST, MemoryBank, MemoryStrength
from drift_agents.policy.base import make_policy
from drift_agents.prompt.builder import PromptBuilder, Recall
from drift_agents.types import AgentClock, Episode, Experience, Outcome
from drift_agents.verifier.glove import Glove
from drift_agents.verifier.prober import ReplayProber
from hypothesis import given
from hypothesis import strategies as st

import drift_envs
from tests.drift_agents.memory.contents import contents


def at(episode: int, step: int | None = None) -> AgentClock:
    """A moment; episodes have ten steps by default."""
    return AgentClock(episode, 10 * episode if step is None else step)


def write(memory: MemoryBank, now: AgentClock, state: str = "s", action: str = "1", after: str = "t") -> int:
    return memory.observe(Experience(state, action, Outcome(after, 0.0, False), 0.0, now), now)


def weights(memory: MemoryBank, now: AgentClock, state: str = "s", k: int | None = None) -> dict[int, float]:
    answer = memory.retrieve(state, k, now)
    return dict(zip([record.id for record in answer.records], answer.weights, strict=True))


def test_retention_falls_with_time_and_rises_with_recalls() -> None:
    """By hand: S = 1, 2, 3, 4 at the recalls, t = 1, 1, 3, 2 episodes since the one before."""
    memory = MemoryBank()
    write(memory, at(0))
    for episode, strength, t in ((1, 1, 1), (2, 2, 1), (5, 3, 3), (7, 4, 2)):
        assert weights(memory, at(episode)) == {0: pytest.approx(math.exp(-t / strength))}
        assert memory.strength(0) == MemoryStrength(strength + 1, at(episode))


def test_only_the_first_query_at_a_time_recalls() -> None:
    """The prompt asks where the agent stands first; what it asks about other states is looked up."""
    for recalls, strength in (("here", 1.0), ("all", 2.0)):
        memory = MemoryBank(recalls=recalls)
        write(memory, at(0), "here"), write(memory, at(0), "there")
        weights(memory, at(1, 11), "here"), weights(memory, at(1, 11), "there")
        assert [memory.strength(i).strength for i in (0, 1)] == [2.0, strength]


def test_other_queries_do_not_strengthen_and_follow_every_change() -> None:
    memory = MemoryBank()
    write(memory, at(0), "here")
    for after in "abc":
        write(memory, at(0), "there", after=after)
    for episode in (1, 2, 3):
        weights(memory, at(episode), "here")
        assert set(weights(memory, at(episode), "there").values()) == {math.exp(-episode)}
    memory.remove([2])
    assert list(weights(memory, at(3), "there")) == [3, 1]
    new = write(memory, at(3), "there")
    assert list(weights(memory, at(3), "there")) == [new, 3, 1]


def test_the_highest_retention_comes_first_and_others_are_not_recalled() -> None:
    memory = MemoryBank(k=2)
    for step in range(3):
        write(memory, at(0, step))
    weights(memory, at(1))  # recalls the newest two of three equals
    write(memory, at(1, 19), action="2")
    assert [memory.strength(i).strength for i in (0, 1, 2, 3)] == [1, 2, 2, 1]
    found = weights(memory, at(3))
    assert list(found) == [2, 1, 3]
    assert list(found.values()) == pytest.approx([math.exp(-2 / 2), math.exp(-2 / 2), math.exp(-2)])
    assert list(weights(memory, at(3), k=1)) == [3, 2], "all fresh now: the newest first"


def test_k_can_count_all_actions_of_a_state() -> None:
    memory = MemoryBank(k=2, per="state")
    write(memory, at(0), action="2")
    write(memory, at(1), action="1"), write(memory, at(1), action="1")
    assert list(weights(memory, at(2))) == [2, 1]


def test_a_weight_is_never_zero_and_the_order_is_still_by_retention() -> None:
    memory = MemoryBank()
    weights(memory, at(0))
    first = write(memory, at(0))
    assert memory.retrieve("s", None, at(1)).records
    second = write(memory, at(1))
    found = weights(memory, at(5000))
    assert list(found) == [first, second], "S = 2 against S = 1, though both have faded"
    assert set(found.values()) == {FAINTEST}


def test_a_query_with_a_past_time_changes_nothing() -> None:
    memory = MemoryBank()
    write(memory, at(5))
    assert weights(memory, at(2)) == {0: 1.0}
    assert memory.strength(0) == MemoryStrength(1.0, at(5))


def test_a_weight_can_be_looked_up() -> None:
    memory = MemoryBank()
    write(memory, at(0))
    before = contents(memory)
    assert memory.weight(0, at(3)) == pytest.approx(math.exp(-3))
    assert contents(memory) == before
    assert memory.strength(1) is None
    with pytest.raises(ArgumentError, match=re.escape("`record_id` should be the id of a record. Received 1")):
        memory.weight(1, at(3))


moves = st.lists(
    st.tuples(st.sampled_from(["ask", "write", "episode"]), st.sampled_from("ab"), st.sampled_from("12")), max_size=60
)


@pytest.mark.parametrize("unit", ["episode", "step"])
@pytest.mark.parametrize("recall_unit", ["episode", "step"])
@given(history=moves)
def test_it_agrees_with_a_direct_implementation_of_the_rule(unit: str, recall_unit: str, history: list[Any]) -> None:
    memory = MemoryBank(k=2, unit=unit, recall_unit=recall_unit)
    known: list[dict[str, Any]] = []
    now = AgentClock()
    for kind, state, action in history:
        if kind == "write":
            known.append({"id": write(memory, now, state, action), "of": (state, action), "S": 1.0, "since": now})
        elif kind == "ask":
            expected: dict[int, float] = {}
            for act in "12":
                mine = [x for x in known if x["of"] == (state, act)]
                for x in mine:
                    x["R"] = math.exp(-(getattr(now, unit) - getattr(x["since"], unit)) / x["S"])
                mine.sort(key=lambda x: (-x["R"], -x["id"]))
                for x in mine[:2]:
                    expected[x["id"]] = x["R"]
                    x["S"] += getattr(now, recall_unit) > getattr(x["since"], recall_unit)
                    x["since"] = now
            assert weights(memory, now, state) == pytest.approx(expected)
        now = AgentClock(now.episode + (kind == "episode"), now.step + 1)
    assert [memory.strength(x["id"]) for x in known] == [MemoryStrength(x["S"], x["since"]) for x in known]


def lived(memory: MemoryBank, episode: int, *afters: str) -> list[int]:
    """An episode that writes one record for each outcome."""
    ids = [write(memory, at(episode, 10 * episode + i), after=after) for i, after in enumerate(afters)]
    memory.end_episode(Episode("Go.", 0.0, len(afters), False), at(episode))
    return ids


def test_every_episode_ends_with_a_summary_that_cites_it() -> None:
    memory = MemoryBank(days=2)
    first, second, third = lived(memory, 0, "a"), lived(memory, 1, "b", "c"), lived(memory, 2, "d")
    assert [note.evidence for note in memory.summaries()] == [tuple(first), tuple(second), tuple(third)]
    assert [note.text for note in memory.summaries()][1] == 'From s 2 times "1" led to score 0, without an end.'
    diaries = memory.retrieve("anywhere", None, at(3)).notes
    assert [note.evidence for note in diaries] == [tuple(third), tuple(second)]
    assert [note.weight for note in diaries] == pytest.approx([math.exp(-1), math.exp(-2)])


def test_a_day_without_experience_has_no_summary_and_days_can_be_left_out() -> None:
    memory = MemoryBank()
    lived(memory, 0)
    memory.remove([write(memory, at(1))])
    lived(memory, 1)
    assert memory.summaries() == ()
    memory = MemoryBank(days=0)
    lived(memory, 0, "a")
    assert memory.summaries() == memory.retrieve("s", None, at(1)).notes == ()


@pytest.mark.parametrize("cascade", ["any", "majority", "cut"])
def test_a_daily_summary_is_removed_with_its_evidence(cascade: str) -> None:
    """Of the four records of the day go two, then a third."""
    memory = MemoryBank(cascade=cascade)
    ids = lived(memory, 0, "a", "b", "c", "d")
    (note,) = memory.summaries()
    fell = memory.remove(ids[:2])
    assert fell.records == tuple(ids[:2])
    assert fell.notes == ((note.id,) if cascade == "any" else ())
    assert memory.remove([ids[2]]).notes == (() if cascade == "any" else (note.id,))
    assert memory.retrieve("s", None, at(1)).notes == memory.summaries() == ()


def test_a_model_reads_the_day_alone() -> None:
    shown: list[str] = []

    def note(text: str) -> dict[str, str]:
        shown.append(text)
        return {"summary": "Mind the ice."}

    memory = MemoryBank(model=RuleModel({"memory_bank_day": note}))
    lived(memory, 0, "a")
    assert shown == ['Task: Go.\nSteps:\n- in s action "1" led to a (score 0)']
    assert [n.text for n in memory.retrieve("s", None, at(1)).notes] == ["Mind the ice."]


def test_an_answer_that_is_no_summary_is_an_error() -> None:
    memory = MemoryBank(model=RuleModel({"memory_bank_day": lambda text: {"summary": ""}}))
    with pytest.raises(ModelError, match="should answer 'memory_bank_day' by its schema"):
        lived(memory, 0, "a")


def test_weights_and_summaries_are_in_the_prompt() -> None:
    memory = MemoryBank()
    states = [json.dumps({"at": i}) for i in range(2)]
    for state in states:
        write(memory, at(0), state, after=states[1])
    memory.end_episode(Episode("Go.", 0.0, 2, False), at(0))
    maker = PromptBuilder(Exact(), Recall())
    views = [maker.make(memory, "Go.", states[0], ("1",), at(2, step))[0] for step in (20, 21)]
    assert [(view.here[0].weight, view.elsewhere[0].weight) for view in views] == [(0.135, 0.135), (1.0, 0.135)]
    assert views[0].here[0].support == 0.135
    assert views[0].lessons == ('From {"at": 0} 2 times "1" led to score 0, without an end.',)


def test_glove_removes_same_transitions_and_their_dependents(OneAnswer) -> None:
    memory, hole = MemoryBank(), Outcome("hole", 0.0, True)
    old = [lived(memory, episode, "ice")[0] for episode in range(9)]
    days = [note.id for note in memory.summaries()]
    glove = Glove(prober=OneAnswer(hole))
    glove.bind(Exact(), None)  # type: ignore[arg-type]  # GLOVE draws nothing
    verdict = glove.verify(Experience("s", "1", hole, 0.0, at(9)), memory, [], at(9))
    assert verdict.removed.records == tuple(old)
    assert verdict.removed.notes == tuple(days)
    (record,) = memory.retrieve("s", None, at(9, 91)).records
    assert (record.outcome, record.verified) == (hole, True)
    assert memory.weight(record.id, at(10)) == pytest.approx(math.exp(-1)), "a summary fades like any other record"


@pytest.mark.integration
def test_glove_recovers_a_lake() -> None:
    """Sixty rounds over two drifts: plain, the strong old records stand; with GLOVE they fall."""
    scores, size = {}, {}
    for verified in (False, True):
        env = gym.make("DriftFrozenLake-v0", text=True)
        verifier = Glove(prober=ReplayProber(drift_envs.twin(env))) if verified else None
        agent = Agent(make_policy("planner"), MemoryBank(), verifier, keep_trace=False)
        episodes = [agent.run_episode(env, seed=0 if i == 0 else None) for i in range(60)]
        env.close()
        scores[verified] = [sum(e.score for e in episodes[i : i + 10]) / 10 for i in (10, 30, 50)]
        size[verified] = len(agent.memory.summaries())  # type: ignore[attr-defined]
    assert min(scores[True]) > 0.8
    assert scores[False][0] > 0.8 > scores[False][1]
    assert size[True] < size[False] == 60, "days of which too little is left are forgotten"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"days": -1}, "`days` should be a whole number, at least 0. Received -1"),
        ({"days": 1.0}, "`days` should be a whole number, at least 0. Received 1.0"),
        ({"recalls": "none"}, "`recalls` should be one of here, all. Received 'none'"),
        ({"per": "prompt"}, "`per` should be one of action, state. Received 'prompt'"),
    ],
)
def test_wrong_values_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        MemoryBank(**options)
