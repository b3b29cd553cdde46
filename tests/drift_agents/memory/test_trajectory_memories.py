"""AdaMEM's memory, Synapse and ReasoningBank: what they learn from, recall, and lose."""

from __future__ import annotations

import copy
import itertools
import json
import re
from collections.abc import Iterable
from typing import Any

import hypothesis.strategies as st
import pytest
from drift_agents.errors import ArgumentError
from drift_agents.llm.base import Completion
from drift_agents.memory.base import ExemplarMemory, Memory, StepObserver, make_memory, recall_exemplars
from drift_agents.memory.episodic import EpisodicMemory
from drift_agents.memory.reasoning_bank import ITEMS, ReasoningBank
from drift_agents.memory.trajectory import AdaMemMemory, StepKeys, Synapse
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.prompt.builder import FocusedMemory
from drift_agents.types import AgentClock, Episode, Experience, Outcome
from hypothesis import given

from tests.drift_agents.memory.contents import contents

NAMES = ("adamem", "synapse", "reasoning_bank")
TASK = "Reach the goal. The highest score is 1."


class Life:
    """Lives episodes through a memory, as the agent does."""

    def __init__(self, memory: EpisodicMemory) -> None:
        self.memory, self.now = memory, AgentClock()

    def step(self, state: str, action: str, after: str, score: float = 0.0, ended: bool = False) -> int:
        experience = Experience(state, action, Outcome(after, score, ended), score, self.now)
        self.memory.follow(experience)
        written = self.memory.observe(experience, self.now)
        self.now = AgentClock(self.now.episode, self.now.step + 1)
        return written

    def end(self, score: float, task: str = TASK) -> None:
        self.memory.end_episode(Episode(task, score, 1, True), self.now)
        self.now = AgentClock(self.now.episode + 1, self.now.step)

    def walk(self, states: Iterable[str], score: float, task: str = TASK) -> list[int]:
        """An episode through these states."""
        path = list(states)
        ids = [
            self.step(state, "go", after, score if after == path[-1] else 0.0, after == path[-1])
            for state, after in itertools.pairwise(path)
        ]
        self.end(score, task)
        return ids

    def shown(self, *states: str) -> list[str]:
        """What is shown, the present state asked first."""
        answers = [self.memory.retrieve(state, None, self.now) for state in states]
        return [f"{r.state}>{r.outcome.state}" for answer in answers for r in answer.records]


PLACES = ("[1]", "[2]", "[3]", "[4]", "[5]")


@pytest.mark.parametrize("name", [*NAMES, "voyager", "consensus", "memory_bank"])
def test_a_step_that_a_verifier_held_back_begins_no_later_episode(name: str) -> None:
    """A quarantined surprise is written with its own time when the same action has its usual outcome again."""
    memory = make_memory(name, **({"mode": "skills"} if name == "voyager" else {}))
    fell = Experience("[1]", "go", Outcome("[9]", 0.0, True), 0.0, AgentClock(0, 1))
    memory.observe(fell, fell.now)
    for place, score in ((0, 0.0), (1, 1.0)):
        now = AgentClock(1, 2 + place)
        memory.observe(Experience(f"[{place}]", "go", Outcome(f"[{place + 1}]", score, bool(score)), score, now), now)
    memory.end_episode(Episode(TASK, 1.0, 2, True), AgentClock(1, 4))
    memory.retrieve("[0]", None, AgentClock(2, 4))
    notes = memory.retrieve("[0]", None, AgentClock(2, 4)).notes
    recalled = recall_exemplars(memory, "[0]", 1, AgentClock(2, 4))
    told = " ".join([*(note.text for note in notes), *(step.state for one in recalled for step in one.steps)])
    assert told.index("[0]") < f"{told}[1]".index("[1]")
    assert "[9]" not in told


@pytest.mark.parametrize("name", NAMES)
def test_only_what_belongs_to_the_pool_is_learned(name: str) -> None:
    for pool, learned in (("success", 1), ("all", 2)):
        memory = make_memory(name, pool=pool)
        assert isinstance(memory, EpisodicMemory)
        assert isinstance(memory, StepObserver)
        assert isinstance(memory, FocusedMemory)
        life = Life(memory)
        life.walk(PLACES, 1.0)
        life.walk(PLACES[:3], 0.5)
        kept = memory.items() if isinstance(memory, ReasoningBank) else memory.trajectories()  # type: ignore[attr-defined]
        assert len(kept) == learned
        assert len(list(memory.records())) == 6, "the transition store holds every transition"


def test_adamem_retrieves_the_rest_from_the_most_similar_step() -> None:
    life = Life(AdaMemMemory())
    life.walk(PLACES, 1.0)
    life.step("[1]", "go", "[2]")
    life.step("[2]", "go", "[3]")
    assert life.shown("[3]", "[4]") == ["[3]>[4]", "[4]>[5]"]
    assert life.shown("[1]", "[2]") == ["[1]>[2]", "[2]>[3]"], "this episode's own; what led up to it is not recalled"
    (found,) = life.memory.exemplars("[3]", None, life.now)  # type: ignore[attr-defined]
    assert [step.state for step in found.steps] == ["[3]", "[4]"]
    assert (found.score, found.task) == (1.0, TASK)


def test_history_distinguishes_equal_observations() -> None:
    life = Life(AdaMemMemory())
    life.walk(["[0]", "[left]", "[door]", "[exit]"], 1.0)
    life.walk(["[0]", "[right]", "[door]", "[lift]"], 1.0)
    life.step("[0]", "go", "[left]")
    life.step("[left]", "go", "[door]")
    assert "[door]>[exit]" in life.shown("[door]")


def test_history_counts_where_nothing_is_written() -> None:
    memory = AdaMemMemory()
    life = Life(memory)
    life.walk(["[0]", "[left]", "[door]", "[exit]"], 1.0)
    life.walk(["[0]", "[right]", "[door]", "[lift]"], 1.0)
    for state, after in (("[0]", "[left]"), ("[left]", "[door]")):
        memory.follow(Experience(state, "go", Outcome(after, 0.0, False), 0.0, life.now))
        life.now = AgentClock(life.now.episode, life.now.step + 1)
    assert life.shown("[door]") == ["[door]>[exit]"]


def test_of_equal_keys_the_newest_comes_first() -> None:
    life = Life(AdaMemMemory())
    life.walk(["[1]", "[2]"], 1.0)
    life.walk(["[1]", "[3]"], 1.0)
    assert life.shown("[1]") == ["[1]>[3]"]
    assert len(AdaMemMemory(k=2)._keys.nearest([], "[1]", 2)) == 0


def test_a_trajectory_is_cut_after_the_last_removed_step() -> None:
    memory = AdaMemMemory()
    life = Life(memory)
    ids = life.walk(PLACES, 1.0)
    assert memory.remove([ids[1]]).notes == ()
    assert [trajectory.steps for trajectory in memory.trajectories()] == [tuple(ids[2:])]
    life.step("[1]", "go", "[2]")
    life.step("[2]", "go", "[3]")
    assert life.shown("[3]", "[4]") == ["[3]>[4]", "[4]>[5]"]
    gone = memory.remove([ids[3]])
    assert len(gone.notes) == 1
    assert memory.trajectories() == ()
    assert life.shown("[3]") == []


@pytest.mark.parametrize(("cascade", "left"), [("any", 0), ("majority", 1)])
def test_other_cascades(cascade: str, left: int) -> None:
    memory = AdaMemMemory(cascade=cascade)
    life = Life(memory)
    ids = life.walk(PLACES, 1.0)
    memory.remove([ids[1]])
    assert len(memory.trajectories()) == left
    memory.remove([ids[0], ids[2]])
    assert memory.trajectories() == ()


def test_verified_summaries_are_always_shown() -> None:
    life = Life(AdaMemMemory())
    life.walk(PLACES, 1.0)
    life.memory.insert_summary("[2]", "go", [(Outcome("[9]", 0.0, True), 1.0)], 3, life.now)
    assert life.shown("[5]", "[2]") == ["[2]>[9]"] or "[2]>[9]" in life.shown("[5]", "[2]")


def test_synapse_chooses_once_an_episode() -> None:
    memory = Synapse()
    life = Life(memory)
    first = life.walk(["[red hat]", "[2]", "[3]"], 1.0)
    life.walk(["[blue axe]", "[2]", "[4]"], 1.0)
    assert life.shown("[red hat]", "[2]") == ["[red hat]>[2]", "[2]>[3]"]
    life.step("[red hat]", "go", "[blue axe]")
    assert "[2]>[3]" in life.shown("[blue axe]", "[2]"), "whatever happens in the episode"
    memory.remove(first)
    assert "[2]>[4]" not in life.shown("[2]"), "nothing takes its place within the episode"
    life.end(0.0)
    assert life.shown("[red hat]", "[2]") == ["[2]>[4]"], "the other one begins otherwise, but is the nearest left"


def test_reasoning_bank_shows_items_and_no_trajectories() -> None:
    memory = ReasoningBank()
    life = Life(memory)
    ids = life.walk(PLACES, 1.0)
    answer = memory.retrieve("[1]", None, life.now)
    assert answer.records == ()
    assert len(answer.notes) == 1
    assert answer.notes[0].evidence == tuple(ids)
    assert "A way that worked." in answer.notes[0].text
    assert 'From [1] do "go" to get to [2]' in answer.notes[0].text
    memory.remove(ids[:2])
    assert len(memory.items()) == 1, "half of the evidence went, not most of it"
    fell = memory.remove(ids[2:3])
    assert len(fell.notes) == 1
    assert memory.items() == ()
    assert memory.retrieve("[1]", None, life.now).notes == ()


def test_reasoning_bank_learns_the_ends_of_failures() -> None:
    memory = ReasoningBank(pool="all")
    Life(memory).walk(PLACES[:3], 0.0)
    (item,) = memory.items()
    assert item.title == "What ended an attempt."
    assert item.content == 'From [2] do "go" to get to [3]: score 0, the end, last seen at step 1.'


def test_long_paths_are_cut_and_end_with_their_last_step() -> None:
    memory = ReasoningBank()
    Life(memory).walk([f"[{n}]" for n in range(41)], 1.0)
    way, end = memory.items()
    assert "[20]" in way.content
    assert "[21]" not in way.content
    assert end.content.startswith("From [39]")


class Talker:
    """A model that makes five items, or a given answer."""

    name = "talker"

    def __init__(self, data: Any) -> None:
        self.data = data
        self.asked: list[tuple[Any, Any]] = []

    def complete(self, messages: Any, schema: Any = None, parameters: Any = None, sample_index: int = 0) -> Completion:
        self.asked.append((messages, schema))
        return Completion(json.dumps(self.data), self.data)


def test_a_model_makes_the_items() -> None:
    item = {"title": "Hurry", "description": "", "content": "Run."}
    model = Talker({"items": [item, item]})
    memory = ReasoningBank(model=model)
    life = Life(memory)
    life.walk(PLACES, 1.0)
    (messages, schema) = model.asked[0]
    assert schema is ITEMS
    assert "accomplished" in messages[0].content
    assert "[4]" in messages[1].content
    assert [note.text for note in memory.retrieve("[1]", None, life.now).notes] == ["Hurry Run.", "Hurry Run."]


moves = st.tuples(st.sampled_from(PLACES), st.sampled_from(["0", "1"]), st.sampled_from(PLACES))
lives = st.lists(st.tuples(st.lists(moves, min_size=1, max_size=4), st.sampled_from([0.0, 1.0])), max_size=5)


@pytest.mark.parametrize("name", NAMES)
@given(before=lives, gone=st.lists(st.integers(0, 20), max_size=5), after=lives)
def test_successes_survive_a_copy(name: str, before: Any, gone: list[int], after: Any) -> None:
    """The contract suite never succeeds; here episodes do."""

    def live(memory: EpisodicMemory, episodes: Any, start: AgentClock) -> AgentClock:
        life = Life(memory)
        life.now = start
        for steps, score in episodes:
            for state, action, following in steps:
                memory.retrieve(state, None, life.now)
                life.step(state, action, following)
            life.end(score)
        return life.now

    memory = make_memory(name, k=2)
    assert isinstance(memory, EpisodicMemory)
    now = live(memory, before, AgentClock())
    memory.remove(gone)
    twins = (memory, copy.deepcopy(memory))
    for twin in twins:
        live(twin, after, now)
        twin.remove(gone)
    later = AgentClock(now.episode + 50, now.step + 500)
    answers = {repr([twin.retrieve(state, None, later) for state in PLACES]) for twin in twins}
    assert len(answers) == 1 == len({contents(twin) for twin in twins})
    known = {record.id for record in memory.records()}
    for exemplar in recall_exemplars(memory, "[1]", None, later):
        assert {step.id for step in exemplar.steps} <= known


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pool": "best"}, "`pool` should be one of success, all. Received 'best'"),
    ],
)
def test_options_outside_their_range_are_refused(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        make_memory(name, **options)


def test_any_memory_has_exemplars() -> None:
    memory: Memory = VanillaMemory()
    assert not isinstance(memory, ExemplarMemory)
    for episode in range(2):
        now = AgentClock(episode, episode)
        memory.observe(Experience("a", "0", Outcome("b", 0.5, True), 0.5, now), now)
    (found,) = recall_exemplars(memory, "a", None, AgentClock(1, 2))
    assert (len(found.steps), found.score) == (1, 0.5), "of earlier episodes alone"


def test_a_key_is_half_observation_and_half_history() -> None:
    keys = StepKeys(AdaMemMemory()._keys.embedding)
    life = AdaMemMemory()
    Life(life).walk(PLACES, 1.0)
    (trajectory,) = life.trajectories()
    keys.add(trajectory)
    assert keys.nearest([("[1]", "go")], "[2]", 1)[0][1:] == (1, 1.0)
    ((_, place, similar),) = keys.nearest([("quite another history", "x")], "[2]", 1)
    assert place == 1
    assert 0.4 < similar < 0.7
