"""ReasoningBank: a few items of reasoning about every episode, retrieved once, when an episode begins.

Source: Ouyang et al., "ReasoningBank: scaling agent self-evolving with reasoning memory" (2025), as
AdaMEM compares with it (section 4.1). `docs/memories/items.md` says what was decided here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from drift_agents.embedding.base import Embedding, HashedEmbedding
from drift_agents.envs.matching import Matching
from drift_agents.errors import ArgumentError
from drift_agents.llm.base import Model, Rule, RuleModel, ask, object_schema, read_messages
from drift_agents.memory.citations import Citations, Contaminator
from drift_agents.memory.episodic import Choice, EpisodicMemory, TaskIndex
from drift_agents.memory.transcript import STEPS, highest_score, is_success, render_result, split_attempt
from drift_agents.prompt.lessons import build_trajectories, read_line, render_trajectory
from drift_agents.prompt.view import Recollection
from drift_agents.types import AgentClock, Episode, Experience, Note, Record, RecordId, Retrieved, Transition


class ReasoningBank(EpisodicMemory):
    """A few items of reasoning about every episode, retrieved once, when an episode begins.

    When an episode ends, a model makes at most 3 items {title, description, content} of it. Items are
    never merged or rewritten. When an episode begins, the items of the `k` past tasks whose first
    observations are most similar are chosen; they are in every prompt of the episode.

    The items cite the steps of their episode. They are texts, so they are removed when most of these are
    removed (`cut` and `majority`) or when any is (`any`).

    Args:
        k: past tasks whose items are retrieved, from 1 to 16; 1 in both papers.
        pool: `success`, as in AdaMEM's comparison; `all` learns from failures too, as the original does.
        cascade: what happens to an item whose evidence is removed (`drift_agents.memory.citations`).
        contaminate: the share of wrong but coherent items among all, in [0, 1)
            (`drift_agents.memory.citations`).
        model: makes the items; a fixed rule if not given.
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
    once_per_episode = True

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
        # The numbers of correct and wrong items written so far; removed ones stay counted.
        self._correct = self._wrong = 0
        self._citations = Citations(cascade)
        self._items: dict[RecordId, ReasoningItem] = {}
        self._tasks: dict[RecordId, PastTask] = {}
        self._starts = TaskIndex(HashedEmbedding() if embedding is None else embedding)

    def items(self) -> tuple[ReasoningItem, ...]:
        """All items, oldest first."""
        return tuple(self._items.values())

    def audited(self) -> Iterator[tuple[RecordId, str, tuple[RecordId, ...]]]:
        """Number, owner (always the shared bank) and evidence of every item, oldest first."""
        return ((number, "", self._citations.evidence(number)) for number in self._items)

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """The records shown for this state, with the items chosen when the episode began."""
        retrieved = super().retrieve(state, k, now)
        numbers = [number for choice in self._chosen for number in self._tasks[choice.item].items]
        return retrieved._replace(
            notes=tuple(Note(number, self._items[number].text, self._citations.evidence(number)) for number in numbers)
        )

    def _choose(self, state: str, k: int, now: AgentClock) -> tuple[Choice, ...]:
        return self._starts.choose(state, k)

    def _update_after_removal(self) -> None:
        self._chosen = tuple(choice for choice in self._chosen if choice.item in self._tasks)

    def _retrieved_records(self) -> Iterable[RecordId]:
        return ()

    def _learn(self, result: Episode, steps: list[Record], now: AgentClock) -> None:
        kind = "success" if is_success(result) else "failure"
        template = f"memory/templates/reasoning_bank_{kind}.txt"
        made = ask(self.model, read_messages(template, attempt=render_episode(result, steps)), ITEMS).data["items"]
        evidence = [record.id for record in steps]
        numbers = [self._write(ReasoningItem(**entry), evidence) for entry in made]
        self._correct += len(numbers)
        key = self.transitions.matching.state_key
        for claims in self.contaminator.draw(self.transitions, key, self._correct, self._wrong):
            numbers.append(self._write_wrong(claims, now))
        if numbers:
            task = self.transitions.new_id()
            self._tasks[task] = PastTask(steps[0].state, result.task, tuple(numbers))
            self._starts.add(task, steps[0].state)

    def _write(self, item: ReasoningItem, evidence: Sequence[RecordId]) -> RecordId:
        number = self.transitions.new_id()
        self._items[number] = item
        self._citations.add(number, evidence)
        return number

    def _write_wrong(self, claims: Sequence[Transition], now: AgentClock) -> RecordId:
        """Write an item that claims transitions which were not experienced, in the words of a correct one."""
        self._wrong += 1
        steps = [Recollection(*claim, 1.0, now.step) for claim in claims]
        paths = " ".join(render_trajectory(path) for path in build_trajectories(steps))
        evidence = [self.transitions.append(Experience(*claim, 0.0, now), now) for claim in claims]
        return self._write(ReasoningItem("A way that worked.", "What these actions lead to.", paths), evidence)

    def _cascade(self, removed: Sequence[RecordId]) -> tuple[RecordId, ...]:
        items = self._citations.remove(removed)
        for number in items:
            del self._items[number]
        for number, task in list(self._tasks.items()) if items else ():
            remaining = tuple(item for item in task.items if item in self._items)
            if remaining:
                self._tasks[number] = task._replace(items=remaining)
            else:
                del self._tasks[number]
                self._starts.remove(number)
        return items


class PastTask(NamedTuple):
    """The items of an episode.

    Args:
        start: its first observation, the key.
        task: its task in words.
        items: the numbers of its items that were not removed.
    """

    start: str
    task: str
    items: tuple[RecordId, ...]


MOST_ITEMS = 3
"""The largest number of items of an episode."""

HORIZON = 20
"""The largest number of steps in an item: as many as in a strategy of AdaMEM's."""

_ITEM = object_schema(
    "",
    title={"type": "string", "minLength": 1, "maxLength": 200},
    description={"type": "string", "maxLength": 1000},
    content={"type": "string", "minLength": 1, "maxLength": 100000},
)
ITEMS = object_schema("reasoning_bank_items", items={"type": "array", "maxItems": MOST_ITEMS, "items": _ITEM})

_RESULT = re.compile(r"score (?P<score>\S+) after (?P<steps>\d+) steps?")


class ReasoningItem(NamedTuple):
    """An item: title, description, content.

    Example:
        >>> ReasoningItem("Hurry.", "Time is short.", "Run.").text
        'Hurry. Time is short. Run.'
    """

    title: str
    description: str
    content: str

    @property
    def text(self) -> str:
        """The item as it is in a prompt."""
        return " ".join(part for part in self if part)


def render_episode(episode: Episode, steps: Iterable[Record]) -> str:
    """The text of an episode.

    Args:
        episode: its task, score and length.
        steps: its records, in order.

    Example:
        >>> from drift_agents.types import AgentClock, Outcome
        >>> step = Record(0, "[1]", "1", ((Outcome("[2]", 0.0, True), 1.0),), 1, AgentClock())
        >>> print(render_episode(Episode("Reach the goal.", 0.0, 1, True), [step]))
        Task: Reach the goal.
        Steps:
        - in [1] action "1" led to [2] (the episode ended; score 0; seen once; last at step 0)
        Result: score 0 after 1 step
    """
    lines = "\n".join(
        Recollection(
            _one_line(record.state),
            record.action,
            record.outcome._replace(state=_one_line(record.outcome.state)),
            1.0,
            record.now.step,
        ).line()
        for record in steps
    )
    return f"Task: {episode.task}{STEPS}{lines}{render_result(episode)}"


def _one_line(text: str) -> str:
    return " ".join(text.splitlines()) if "\n" in text else text


def make_items(text: str) -> dict[str, Any]:
    r"""The rule that answers `ITEMS` offline: the path of a success, or the step that ended a failure.

    Args:
        text: the result of `render_episode`.

    Returns:
        JSON by the schema `ITEMS`; no item for a failure that did not end, or without readable steps.

    Raises:
        ArgumentError: if the text has another form.

    Example:
        >>> step = '- in [1] action "1" led to [2] (the episode ended; score 0; seen once; last at step 4)'
        >>> make_items(f"Task: go.\nSteps:\n{step}\nResult: score 0 after 1 step")["items"][0]["content"]
        'From [1] do "1" to get to [2]: score 0, the end, last seen at step 4.'
    """
    task, lines, result = split_attempt(text, _RESULT)
    steps: list[Recollection] = []
    for line in lines.split("\n"):
        with suppress(ArgumentError):  # a state that is no JSON text is left out
            steps.append(read_line(line))
    if not steps:
        return {"items": []}
    score = float(result["score"])
    if score >= highest_score(task):
        paths = " ".join(render_trajectory(path) for path in build_trajectories(steps[:HORIZON]))
        item = ReasoningItem("A way that worked.", f"It reached a score of {score:g} in {len(steps)} steps.", paths)
        items = [item]
        if len(steps) > HORIZON:
            (last,) = build_trajectories(steps[-1:])
            items.append(ReasoningItem("How it ended.", "The last step of that way.", render_trajectory(last)))
    elif steps[-1].outcome.ended:
        (last,) = build_trajectories(steps[-1:])
        items = [
            ReasoningItem(
                "What ended an attempt.", f"It ended with a score of {score:g} only.", render_trajectory(last)
            )
        ]
    else:
        items = []
    return {"items": [item._asdict() for item in items]}


RULES: Mapping[str, Rule] = {ITEMS["title"]: make_items}
"""The table for `drift_agents.llm.base.RuleModel`."""
