"""ReasoningBank: a few items of reasoning about every episode, recalled once, when an episode begins.

* `ReasoningBank` - the memory

Source: Ouyang et al., "ReasoningBank: scaling agent self-evolving with reasoning memory" (2025), as
AdaMEM compares with it (section 4.1). `docs/memories/reasoning_bank.md` says what was decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from drift_agents.embedding.base import Embedding
from drift_agents.embedding.hashed import HashedEmbedding
from drift_agents.llm.base import Model, ask
from drift_agents.llm.rules import RuleModel
from drift_agents.llm.template import read_messages
from drift_agents.matching.base import Matching
from drift_agents.memory.citations import Citations
from drift_agents.memory.contaminate import Contaminator
from drift_agents.memory.episodic import Choice, EpisodicMemory, is_success
from drift_agents.memory.ledger import Ledger
from drift_agents.memory.reasoning_bank.items import ITEMS, RULES, ReasoningItem, tell_episode
from drift_agents.memory.synapse import TaskIndex
from drift_agents.prompt.lessons import build_trajectories, render_trajectory
from drift_agents.prompt.view import Recollection
from drift_agents.types import (
    AgentClock,
    Episode,
    Experience,
    Note,
    Plain,
    Record,
    RecordId,
    Retrieved,
    Transition,
)


class PastTask(NamedTuple):
    """What is kept of an episode.

    Args:
        start: what it began with: its key.
        task: its task in words.
        items: the numbers of its items that are left.
    """

    start: str
    task: str
    items: tuple[RecordId, ...]


class ReasoningBank(EpisodicMemory):
    """A few items of reasoning about every episode, recalled once, when an episode begins.

    When an episode is over, a model makes at most 3 items {title, description, content} of it. They are
    only ever added. When an episode begins, the items of the `k` past tasks whose first observation is
    most similar are chosen, and stand in every prompt of the episode, whatever happens in it.

    The items cite the steps of their episode; they are texts, so they fall when most of these went
    (`cut` and `majority`) or when any did (`any`).

    Args:
        k: past tasks whose items are recalled, from 1 to 16; 1 in both papers.
        pool: `success`, as in AdaMEM's comparison; `all` learns from failures too, as the original does.
        cascade: what becomes of an item whose evidence goes (`drift_agents.memory.citations`).
        contaminate: the share of wrong but coherent items among all, in [0, 1), for tests of what they do
            (`drift_agents.memory.contaminate`).
        model: who makes items; a declared rule if not given.
        embedding: of first observations; hashed words and letters if not given.
        matching: when two states count as the same; texts must be equal if not given.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> from drift_agents.types import Experience, Outcome
        >>> memory = ReasoningBank()
        >>> step = Experience("[1]", "1", Outcome("[2]", 1.0, True), 1.0, AgentClock())
        >>> memory.observe(step, AgentClock())
        0
        >>> memory.end_episode(Episode("Reach the goal.", 1.0, 1, True), AgentClock(0, 1))
        >>> [note.text[:60] for note in memory.retrieve("[1]", None, AgentClock(1, 1)).notes]
        ['A way that worked. It reached a score of 1 in 1 steps. From ']
    """

    name = "reasoning_bank"

    def __init__(
        self,
        *,
        k: int = 1,
        pool: str = "success",
        cascade: str = "cut",
        contaminate: float = 0.0,
        model: Model | None = None,
        embedding: Embedding | None = None,
        matching: Matching | None = None,
    ) -> None:
        super().__init__(k, pool, matching)
        self.cascade = cascade
        self.model: Model = RuleModel(RULES) if model is None else model
        self.contaminator = Contaminator(contaminate)
        # How many items were written, sound and wrong ones; what falls stays counted.
        self._sound = self._wrong = 0
        self._citations = Citations(cascade)
        self._items: dict[RecordId, ReasoningItem] = {}
        self._tasks: dict[RecordId, PastTask] = {}
        self._starts = TaskIndex(HashedEmbedding() if embedding is None else embedding)

    def items(self) -> tuple[ReasoningItem, ...]:
        """All items, oldest first."""
        return tuple(self._items.values())

    def audited(self) -> Iterator[tuple[RecordId, str, tuple[RecordId, ...]]]:
        """For audits: number, owner (nobody's own) and evidence of every item, oldest first."""
        return ((number, "", self._citations.evidence(number)) for number in self._items)

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """What is shown of this state, with the items that were chosen when the episode began."""
        answer = super().retrieve(state, k, now)
        numbers = [number for choice in self._chosen for number in self._tasks[choice.item].items]
        return answer._replace(
            notes=tuple(Note(number, self._items[number].text, self._citations.evidence(number)) for number in numbers)
        )

    def _is_new(self, now: AgentClock) -> bool:
        return self._moment is None or self._moment.episode != now.episode

    def _choose(self, state: str, k: int, now: AgentClock) -> tuple[Choice, ...]:
        return tuple(Choice(number, 0, similar) for number, similar in self._starts.nearest(state, k))

    def _choose_again(self) -> None:
        self._chosen = tuple(choice for choice in self._chosen if choice.item in self._tasks)

    def _recalled(self) -> Iterable[RecordId]:
        return ()

    def _learn(self, result: Episode, steps: list[Record], now: AgentClock) -> None:
        kind = "success" if is_success(result) else "failure"
        template = f"memory/templates/reasoning_bank_{kind}.txt"
        made = ask(self.model, read_messages(template, attempt=tell_episode(result, steps)), ITEMS).data["items"]
        numbers = []
        for entry in made:
            numbers.append(self._write(ReasoningItem(**entry), [record.id for record in steps]))
        self._sound += len(numbers)
        for _ in range(self.contaminator.due(self._sound, self._wrong)):
            claims = self.contaminator.claims(self._ledger, self._ledger.matching.state_key, self._wrong)
            if not claims:
                break
            numbers.append(self._write_wrong(claims, now))
        if numbers:
            task = self._ledger.new_id()
            self._tasks[task] = PastTask(steps[0].state, result.task, tuple(numbers))
            self._starts.put(task, steps[0].state)

    def _write(self, item: ReasoningItem, evidence: Sequence[RecordId]) -> RecordId:
        number = self._ledger.new_id()
        self._items[number] = item
        self._citations.add(number, evidence)
        return number

    def _write_wrong(self, claims: Sequence[Transition], now: AgentClock) -> RecordId:
        """An item that claims what nobody lived, in the words of a sound one."""
        self._wrong += 1
        steps = [Recollection(*claim, 1.0, now.step) for claim in claims]
        ways = " ".join(render_trajectory(way) for way in build_trajectories(steps))
        evidence = [self._ledger.append(Experience(*claim, 0.0, now), now) for claim in claims]
        return self._write(ReasoningItem("A way that worked.", "What these actions lead to.", ways), evidence)

    def _fall(self, gone: Sequence[RecordId]) -> tuple[RecordId, ...]:
        fell = self._citations.fall(gone)
        for number in fell:
            del self._items[number]
        for number, task in list(self._tasks.items()) if fell else ():
            left = tuple(item for item in task.items if item in self._items)
            if left:
                self._tasks[number] = task._replace(items=left)
            else:
                del self._tasks[number]
                self._starts.drop(number)
        return fell

    def _snapshot(self) -> dict[str, Any]:
        return {
            "items": [[n, list(item), list(self._citations.evidence(n))] for n, item in self._items.items()],
            "written": [self._sound, self._wrong],
            "tasks": [[n, task.start, task.task, list(task.items)] for n, task in self._tasks.items()],
        }

    def _restored(self, data: Plain, ledger: Ledger) -> dict[str, Any]:
        sound, wrong = map(int, data["written"])
        items: dict[RecordId, ReasoningItem] = {}
        citations = Citations(self.cascade)
        for number, (title, description, content), evidence in data["items"]:
            items[int(number)] = ReasoningItem(str(title), str(description), str(content))
            citations.add(int(number), map(int, evidence), {n for n in evidence if n not in ledger})
        tasks: dict[RecordId, PastTask] = {}
        starts = TaskIndex(self._starts.embedding)
        for number, start, task, numbers in data["tasks"]:
            tasks[int(number)] = PastTask(str(start), str(task), tuple(map(int, numbers)))
            starts.put(int(number), str(start))
        if any(item not in items for task in tasks.values() for item in task.items):
            raise ValueError("the items of past tasks should be there")
        if any(number in ledger or number >= data["ledger"]["next_id"] for number in (*items, *tasks)):
            raise ValueError("items and past tasks should have numbers of their own")
        if any(number not in tasks for number, _, _ in data["chosen"]):
            raise ValueError("what was chosen should be there")
        own = {"_items": items, "_citations": citations, "_tasks": tasks, "_starts": starts}
        return {**own, "_sound": sound, "_wrong": wrong}
