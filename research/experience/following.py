"""How an agent follows what it remembers: measures over executions, as pure functions.

* `ExecutionStep`, `Execution` - what is known of an episode: states, actions, what was written, recalled and deleted
* `execution_of` - the execution of an episode
* `Pair` - the similarity of an input with a remembered one, and of the outputs
* `follow_executions` - experience following, execution by execution
* `follow_steps` - the same, step by step
* `split_by_fate` - misaligned replay: pairs whose remembered execution was deleted later, and the others
* `correlation` - over pairs

Source: Xiong et al., "How memory management impacts LLM agents", sections 4.3, 4.4 and 5.3, appendix A.2.
`python -m research experience` plays an experiment's cells and prints them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

import numpy as np
from drift_agents.embedding.base import Embedding, HashedEmbedding
from drift_agents.types import Episode, RecordId

DECIMALS = 9
"""Of a similarity: the last bits of a sum, which differ between machines, decide no tie."""


class ExecutionStep(NamedTuple):
    """One step of an execution.

    Args:
        state: where the agent stood.
        action: what it did.
        wrote: the id under which it was remembered, if it was.
        retrieved: the ids of the records in the prompt.
        place: the state by the agent's matching rule; a record counts as retrieved in steps of its own place.
    """

    state: str
    action: str
    wrote: RecordId | None
    retrieved: tuple[RecordId, ...]
    place: Hashable


class Execution(NamedTuple):
    """What is known of an episode.

    Args:
        number: of the episode.
        task: in words.
        score: at the end.
        steps: one by one.
        dropped: what memory itself deleted when it was over.
    """

    number: int
    task: str
    score: float
    steps: tuple[ExecutionStep, ...]
    dropped: tuple[RecordId, ...] = ()

    @property
    def query(self) -> str:
        """The input: the task and the first state."""
        return f"{self.task}\n{self.steps[0].state}" if self.steps else self.task

    @property
    def actions(self) -> tuple[str, ...]:
        """The output."""
        return tuple(step.action for step in self.steps)


class Pair(NamedTuple):
    """An execution beside one that was remembered.

    Args:
        number: of the execution.
        source: the number of the remembered one.
        input: the similarity of the inputs, in [-1, 1].
        output: the similarity of the outputs, in [0, 1].
        score: of the execution.
    """

    number: int
    source: int
    input: float
    output: float
    score: float


def execution_of(
    number: int, episode: Episode, dropped: Iterable[RecordId] = (), key: Callable[[str], Hashable] = str
) -> Execution:
    """The execution of an episode.

    Args:
        number: of the episode.
        episode: what happened, with its steps.
        dropped: what memory itself deleted when it was over.
        key: the key of a state by the agent's matching rule; its text if not given.
    """
    steps = tuple(
        ExecutionStep(lived.state, lived.action, step.verdict.observed, step.retrieved, key(lived.state))
        for step in episode.trace
        for lived in (step.experience,)
    )
    return Execution(number, episode.task, episode.score, steps, tuple(dropped))


def output_similarity(first: Sequence[str], second: Sequence[str]) -> float:
    """How alike two sequences of actions are: twice what they share in order over their lengths, in [0, 1].

    Example:
        >>> output_similarity("1122", "1122"), output_similarity("1122", "11"), output_similarity("1", "2")
        (1.0, 0.6666666666666666, 0.0)
    """
    return SequenceMatcher(None, first, second, autojunk=False).ratio()


class _Nearness:
    """Cosines of texts, each embedded once."""

    def __init__(self, embedding: Embedding | None) -> None:
        self._embedding = HashedEmbedding() if embedding is None else embedding
        self._known: dict[str, np.ndarray] = {}

    def __call__(self, text: str, others: Sequence[str]) -> list[float]:
        new = [one for one in dict.fromkeys([text, *others]) if one not in self._known]
        self._known.update(zip(new, self._embedding.embed(new), strict=True))
        return [round(float(self._known[text] @ self._known[other]), DECIMALS) for other in others]


def follow_executions(
    executions: Sequence[Execution],
    *,
    by: str = "input",
    embedding: Embedding | None = None,
) -> list[Pair]:
    """Experience following, execution by execution.

    An execution is beside the one of those retrieved in it whose input (`by="input"`, figure 3) or output
    (`by="output"`, figure 5) is most like its own; of equals the newest. It is retrieved when one of its records is
    recalled in a step of its own place, as for the deletion policies. Executions that retrieved none are left out.

    Args:
        executions: those of one cell, in order.
        by: `input` or `output`.
        embedding: of the inputs; hashed words and letters if not given.

    Example:
        >>> before = (ExecutionStep("a", "1", 0, (), "a"), ExecutionStep("b", "2", 1, (), "b"))
        >>> after = (ExecutionStep("a", "1", 2, (0,), "a"), ExecutionStep("b", "3", 3, (1,), "b"))
        >>> first, second = Execution(0, "go", 1.0, before), Execution(1, "go", 0.0, after)
        >>> follow_executions([first, second])
        [Pair(number=1, source=0, input=1.0, output=0.5, score=0.0)]
    """
    near = _Nearness(embedding)
    origin: dict[RecordId, tuple[int, Hashable]] = {}
    seen: dict[int, Execution] = {}
    pairs = []
    for execution in executions:
        found = {
            origin[record_id][0]
            for step in execution.steps
            for record_id in step.retrieved
            if record_id in origin and origin[record_id][1] == step.place
        }
        sources = [seen[number] for number in sorted(found)]
        likeness = near(execution.query, [source.query for source in sources])
        beside = [
            Pair(execution.number, source.number, alike, output_similarity(execution.actions, source.actions), 0.0)
            for source, alike in zip(sources, likeness, strict=True)
        ]
        if beside:
            best = max(beside, key=lambda pair: (getattr(pair, by), pair.source))
            pairs.append(best._replace(score=execution.score))
        seen[execution.number] = execution
        origin.update((s.wrote, (execution.number, s.place)) for s in execution.steps if s.wrote is not None)
    return pairs


def follow_steps(executions: Sequence[Execution], *, embedding: Embedding | None = None) -> list[Pair]:
    """Experience following, step by step, where all tasks read alike.

    The input is the state, the output the action. A step is beside those of the remembered steps in its
    prompt whose state is most like its own; the output's similarity is the share of these with its action.
    A pair is the mean over the steps of an execution that recalled anything; its source is the newest step's.

    Args:
        executions: those of one cell, in order.
        embedding: of the states; hashed words and letters if not given.
    """
    near = _Nearness(embedding)
    origin: dict[RecordId, tuple[int, str, str]] = {}
    pairs = []
    for execution in executions:
        inputs, outputs, newest = [], [], -1
        for step in execution.steps:
            known = [origin[record_id] for record_id in step.retrieved if record_id in origin]
            known = [one for one in known if one[0] != execution.number]
            if not known:
                continue
            likeness = near(step.state, [state for _, state, _ in known])
            best = max(likeness)
            beside = [one for one, alike in zip(known, likeness, strict=True) if alike == best]
            inputs.append(best)
            outputs.append(sum(action == step.action for *_, action in beside) / len(beside))
            newest = max(newest, *(number for number, *_ in beside))
        if inputs:
            pair = Pair(execution.number, newest, _mean(inputs), _mean(outputs), execution.score)
            pairs.append(pair)
        origin.update((s.wrote, (execution.number, s.state, s.action)) for s in execution.steps if s.wrote is not None)
    return pairs


def split_by_fate(executions: Sequence[Execution], pairs: Iterable[Pair]) -> tuple[list[Pair], list[Pair]]:
    """Misaligned replay: pairs whose remembered execution was deleted later, and the others (figure 5).

    Args:
        executions: those of one cell.
        pairs: those of `follow_executions` with `by="output"`.

    Returns:
        The deleted group and the retained group.
    """
    dropped = {record_id for execution in executions for record_id in execution.dropped}
    gone = {
        execution.number
        for execution in executions
        if (wrote := {step.wrote for step in execution.steps if step.wrote is not None}) and wrote <= dropped
    }
    all_pairs = list(pairs)
    return [pair for pair in all_pairs if pair.source in gone], [pair for pair in all_pairs if pair.source not in gone]


def correlation(pairs: Iterable[Pair]) -> float:
    """Pearson's correlation of input and output similarity; not a number where one of them never changes.

    Example:
        >>> round(correlation([Pair(0, 0, x, y, 0.0) for x, y in ((0.1, 0.2), (0.5, 0.6), (0.9, 1.0))]), 6)
        1.0
    """
    points = [(pair.input, pair.output) for pair in pairs]
    if len(points) < 2:
        return math.nan
    inputs, outputs = np.array(points, dtype=np.float64).T
    inputs, outputs = inputs - inputs.mean(), outputs - outputs.mean()
    scale = math.sqrt(float(inputs @ inputs) * float(outputs @ outputs))
    return float(inputs @ outputs) / scale if scale > 1e-12 else math.nan


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
