"""What Generative Agents recall: scores by hand, ties and weights, and what a recall leaves behind."""

from __future__ import annotations

import copy
import re
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from drift_agents.envs.matching import Exact
from drift_agents.errors import ArgumentError
from drift_agents.memory.generative_agents import GenerativeAgents
from drift_agents.memory.memory_stream import AccessRecord, salience, scaled
from drift_agents.types import AgentClock, Experience, Outcome
from hypothesis import given

ICE, HOLE = Outcome("ice", 0.0, False), Outcome("hole", 0.0, True)


def live(memory: GenerativeAgents, episode: int, state: str, action: str, outcome: Outcome, step: int = 0) -> int:
    now = AgentClock(episode, 10 * episode + step)
    return memory.observe(Experience(state, action, outcome, 0.0, now), now)


def retrieve_ids(memory: GenerativeAgents, state: str, k: int | None = None) -> list[int]:
    """What a question much later brings up; the memory itself is left alone."""
    answer = copy.deepcopy(memory).retrieve(state, k, AgentClock(99, 990))
    return [record.id for record in answer.records]


def recall_insights(memory: GenerativeAgents, episode: int, state: str, step: int = 5) -> list[str]:
    return [note.text for note in memory.retrieve(state, None, AgentClock(episode, 10 * episode + step)).notes]


# -- the score -------------------------------------------------------------------------------------


def test_the_score_by_hand() -> None:
    # Recency .995 ** (20, 10, 0) = .904610, .951110, 1, scaled 0, .487471, 1.
    # Importance 1, .125, 0; relevance 0, 1, .5.
    scores = salience([0, 10, 20], [9, 2, 1], [0.2, 0.6, 0.4])
    assert scores.tolist() == pytest.approx([1.0, 1.612471, 1.5], abs=1e-6)
    assert salience([0, 10, 20], [9, 2, 1], [0.2, 0.6, 0.4], 0.995, (0, 2, 0)).tolist() == [2.0, 0.25, 0.0]


def test_more_recent_is_better() -> None:
    """The authors' code ranks the least recent highest; the paper, and this, the most recent."""
    assert np.argmax(salience([1, 5, 3], [1, 1, 1], [0, 0, 0])) == 1


columns = st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 10), st.floats(-1, 1)), min_size=1, max_size=20)


@given(columns, st.integers(0, 10**9))
def test_a_common_shift_in_time_changes_no_score(items: list[tuple[int, int, float]], passed: int) -> None:
    access, importance, relevance = zip(*items, strict=True)
    scores = salience(access, importance, relevance)
    assert scores.tolist() == salience([hour + passed for hour in access], importance, relevance).tolist()
    assert scores.min() >= 0
    assert scores.max() <= 3
    assert scaled(importance).min() == 0


def test_observations_of_a_state_are_ranked_by_recency_and_importance() -> None:
    memory = GenerativeAgents(per="state")
    live(memory, 0, "s", "1", HOLE)  # recency 0, importance 1
    live(memory, 10, "s", "1", ICE)  # .4874, 0
    live(memory, 20, "s", "2", ICE)  # 1, 0
    live(memory, 20, "s", "3", ICE)  # 1, 0, newer than the last one
    live(memory, 19, "t", "3", HOLE)
    assert retrieve_ids(memory, "s") == [3, 2, 0, 1]
    assert retrieve_ids(memory, "s", 2) == [3, 2]
    assert retrieve_ids(memory, "t") == [4]
    assert retrieve_ids(memory, "u") == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"ties": "oldest"}, [0, 2, 3, 1]),
        ({"weights": [1, 0, 0]}, [3, 2, 1, 0]),
        ({"weights": [0, 1, 0]}, [0, 3, 2, 1]),
        ({"weights": [0, 0.5, 1], "ties": "oldest"}, [0, 1, 2, 3]),
        ({"weights": [2, 1, 0]}, [3, 2, 0, 1]),
        ({"decay": 1.0}, [0, 3, 2, 1]),
        ({"unit": "step"}, [3, 2, 0, 1]),
    ],
)
def test_weights_ties_decay_and_unit_decide(options: dict[str, Any], expected: list[int]) -> None:
    memory = GenerativeAgents(per="state", **options)
    for episode, outcome, action in ((0, HOLE, "1"), (10, ICE, "1"), (20, ICE, "2"), (20, ICE, "3")):
        live(memory, episode, "s", action, outcome)
    assert retrieve_ids(memory, "s") == expected


def test_by_default_there_are_k_of_each_action() -> None:
    memory = GenerativeAgents(k=1)
    for episode, action in ((0, "1"), (1, "2"), (2, "2"), (3, "2")):
        live(memory, episode, "s", action, ICE)
    assert retrieve_ids(memory, "s") == [3, 0]


def test_in_the_whole_stream_similar_states_are_retrieved_too(OneLetter) -> None:
    memory = GenerativeAgents(per="stream", k=2, embedding=OneLetter())
    for state in "cba":
        live(memory, 0, state, "1", ICE)
    assert retrieve_ids(memory, "a") == [2, 1]
    live(memory, 0, "c", "1", HOLE)
    assert retrieve_ids(memory, "a", 3) == [3, 2, 1], "relevance 0 and importance 1 against 1 and 0: a tie"


def test_the_state_itself_has_relevance_one_whatever_the_words(OneLetter) -> None:
    class ByLetter(Exact):
        def state_key(self, state: str) -> str:
            return state[-1]

    memory = GenerativeAgents(per="stream", k=1, embedding=OneLetter(), matching=ByLetter())
    live(memory, 0, "cx", "1", ICE)
    live(memory, 0, "bz", "1", ICE)
    assert retrieve_ids(memory, "ax") == [0], "0 by its words, 1 by the rule"
    assert retrieve_ids(memory, "ay") == [1]


histories = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from("st"), st.sampled_from("sstu"), st.booleans(), st.integers(0, 40)),
    max_size=20,
)


@given(histories, st.sampled_from(["newest", "oldest"]), st.integers(1, 4))
def test_it_agrees_with_a_direct_implementation_of_the_score(history: list[Any], ties: str, k: int) -> None:
    memory = GenerativeAgents(per="state", ties=ties, k=k)
    traces: dict[int, list[Any]] = {}
    episode = 0
    for time, (passed, state, written, ended, gone) in enumerate(history):
        episode += passed
        now = AgentClock(episode, time)
        answer = memory.retrieve(state, None, now)
        here = {i: t for i, t in traces.items() if t[0] == state}
        powers = {i: 0.995 ** (max(u[2] for u in here.values()) - t[2]) for i, t in here.items()}

        def scale(values: dict[int, float], i: int) -> float:
            low, high = min(values.values()), max(values.values())
            return (values[i] - low) / (high - low) if high > low else 0.0

        scores = {i: round(scale(powers, i) + scale({j: t[1] for j, t in here.items()}, i), 9) for i in here}
        best = sorted(here, key=lambda i: (-scores[i], -i if ties == "newest" else i))[:k]
        assert [record.id for record in answer.records] == best
        for i in best:
            traces[i][2] = episode
        new = memory.observe(Experience(written, "1", HOLE if ended else ICE, 0.0, now), now)
        traces[new] = [written, 10 if ended else 2, episode]
        for fell in memory.remove([gone]).records:
            del traces[fell]
        assert {i: memory.access(i) for i in traces} == {i: AccessRecord(t[1], t[2]) for i, t in traces.items()}


# -- recalling -------------------------------------------------------------------------------------


def test_the_first_query_at_a_time_recalls() -> None:
    memory = GenerativeAgents()
    here, there = live(memory, 0, "s", "1", HOLE), live(memory, 0, "t", "1", HOLE)
    assert len(recall_insights(memory, 7, "s")) == 1
    assert recall_insights(memory, 7, "t") == [], "a question at the same moment brings no insights"
    assert memory.access(here) == AccessRecord(10, 7)
    assert memory.access(there) == AccessRecord(10, 0)
    memory.retrieve("t", None, AgentClock(7, 76))
    assert memory.access(there) == AccessRecord(10, 7), "the next moment"


def test_every_query_can_recall() -> None:
    memory = GenerativeAgents(recalls="all")
    live(memory, 0, "s", "1", HOLE), live(memory, 0, "t", "1", HOLE)
    assert len(recall_insights(memory, 7, "s")) == len(recall_insights(memory, 7, "t")) == 1


def test_items_that_are_not_retrieved_keep_their_last_access() -> None:
    memory = GenerativeAgents(k=1, per="state")
    old, new = live(memory, 0, "s", "1", ICE), live(memory, 1, "s", "1", ICE)
    recall_insights(memory, 5, "s")
    assert (memory.access(old), memory.access(new)) == (AccessRecord(2, 0), AccessRecord(2, 5))


def test_a_recall_changes_the_next_answer() -> None:
    memory = GenerativeAgents(per="state")
    live(memory, 0, "s", "1", HOLE), live(memory, 9, "s", "1", ICE)
    answers = [memory.retrieve("s", None, AgentClock(9, 95 + time)).records for time in range(2)]
    assert [[record.id for record in records] for records in answers] == [[1, 0], [0, 1]], "equally recent now"


def test_a_query_with_a_past_time_does_not_lower_the_last_access() -> None:
    memory = GenerativeAgents()
    live(memory, 5, "s", "1", ICE)
    recall_insights(memory, 3, "s")
    assert memory.access(0) == AccessRecord(2, 5)


def test_a_recalled_insight_is_refreshed() -> None:
    memory = GenerativeAgents(insights=1)
    live(memory, 0, "s", "1", HOLE), live(memory, 0, "s", "2", HOLE)
    recall_insights(memory, 1, "s")
    (chosen,) = memory.retrieve("s", None, AgentClock(8, 85)).notes
    assert {memory.access(note.id).access for note in memory.notes() if note.id != chosen.id} == {1}
    assert memory.access(chosen.id) == AccessRecord(10, 8)


# -- options ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"insights": -1}, "`insights` should be a whole number, at least 0. Received -1"),
        ({"threshold": True}, "`threshold` should be a whole number, at least 1. Received True"),
        ({"recent": 0}, "`recent` should be"),
        ({"questions": 0}, "`questions` should be"),
        ({"focus": 1.5}, "`focus` should be"),
        ({"inferred": 0}, "`inferred` should be"),
        ({"per": "page"}, "`per` should be one of action, state, stream. Received 'page'"),
        ({"recalls": "none"}, "`recalls` should be one of here, all. Received 'none'"),
        ({"reflect": "never"}, "`reflect` should be one of retrieval, threshold. Received 'never'"),
        ({"ties": "random"}, "`ties` should be one of newest, oldest. Received 'random'"),
        ({"decay": 0}, "`decay` should be in the interval (0, 1]. Received 0"),
        ({"decay": float("nan")}, "`decay` should be in the interval (0, 1]. Received nan"),
        ({"weights": [1, 1]}, "`weights` should be three finite numbers, not negative. Received [1, 1]"),
        ({"weights": [1, -1, 1]}, "`weights` should be three finite numbers"),
        ({"weights": "111"}, "`weights` should be three finite numbers"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        GenerativeAgents(**options)
