"""The study `traffic`: policies of addition and deletion over a stream of labelled feature vectors.

* `make_stream`, `TrafficStream` - 46 features and 34 classes in the form of the paper's CIC-IoT task; generated
* `similarities` - the two formulas of appendix A.2
* `TrafficPolicy`, `play_stream` - an agent that follows its three nearest records, under a policy
* `stream_rows`, `stream_tables` - the study

Source: Xiong et al., "How memory management impacts LLM agents", sections 3 to 6, appendices A.2 and A.3. The data set
is not here: only the kinds of its features, the number of its classes and the sizes are the paper's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from drift_agents.analysis.rows import estimate
from drift_agents.analysis.table import Table, format_estimate
from drift_agents.memory.executions import ExecutionStore, noisy_oracle, strict
from drift_agents.types import Episode
from numpy.typing import NDArray

from research.experience.following import Pair, correlation

Floats = NDArray[np.float64]

CLASSES, CONTINUOUS, FLAGS, PROTOCOLS = 34, 24, 21, 6
"""Attack types; features: lengths, rates and counts, then 21 flags, then the protocol with so many values."""
INITIAL, TASKS, K = 100, 1200, 3
"""Correct records at the beginning, tasks, and records that a task retrieves (section 3)."""
PERIOD, ALPHA, USES, BETA = 300, 1, 5, 0.5
"""The constants of deletion for CIC-IoT (appendix A.2)."""
SPREAD, WITHIN = 0.3, 0.6
"""Standard deviations of the logarithm of a continuous feature: of the means of classes, and within a class. Set so
that a fixed memory answers about as well as the paper's, 60 %."""
OWN, ERRORS = 0.4, 0.2
"""How often the agent's own guess is right, and how often the coarse evaluator is wrong; declared here."""
STREAMS: Mapping[str, str] = {
    "stationary": "nothing changes",
    "task shift": "a third of the classes after the other",
    "moved": "half of the classes look different from the middle on",
    "exchanged": "half of the classes look like another one from the middle on",
}
_STREAM = 0x107


class TrafficStream(NamedTuple):
    """Records and tasks.

    Args:
        features: of the initial records, then of the tasks; shape (INITIAL + TASKS, 46).
        labels: their classes.
        guesses: what the agent would answer by itself.
    """

    features: Floats
    labels: NDArray[np.int64]
    guesses: NDArray[np.int64]


class _Classes(NamedTuple):
    """The class-conditional distributions: means of logarithms, chances of flags, usual protocols."""

    means: Floats
    chances: Floats
    protocols: NDArray[np.int64]

    @classmethod
    def draw(cls, random: np.random.Generator, spread: float) -> _Classes:
        return cls(
            random.normal(0.0, spread, (CLASSES, CONTINUOUS)),
            random.random((CLASSES, FLAGS)),
            random.integers(PROTOCOLS, size=CLASSES),
        )

    def select(self, rows: NDArray[np.int64]) -> _Classes:
        return _Classes(self.means[rows], self.chances[rows], self.protocols[rows])

    def sample(self, random: np.random.Generator) -> Floats:
        """One feature vector for every row."""
        count = len(self.means)
        continuous = np.exp(random.normal(self.means, WITHIN))
        flags = random.random((count, FLAGS)) < self.chances
        is_usual = random.random(count) < 0.9
        protocol = np.where(is_usual, self.protocols, random.integers(PROTOCOLS, size=count))
        return np.column_stack([continuous, flags, protocol])


def make_stream(kind: str, seed: int, *, own: float = OWN, spread: float = SPREAD) -> TrafficStream:
    """A stream; half of the classes change in the middle of the tasks where `kind` says so.

    Args:
        kind: one of `STREAMS`.
        seed: of all draws.
        own: how often the agent's own guess is right.
        spread: the standard deviation of the means of classes.

    Example:
        >>> stream = make_stream("moved", 0)
        >>> stream.features.shape, len(set(stream.labels.tolist()))
        ((1300, 46), 34)
    """
    classes, tasks, guesses = (np.random.default_rng([seed, _STREAM, part]) for part in range(3))
    source, other = _Classes.draw(classes, spread), _Classes.draw(classes, spread)
    labels = tasks.integers(CLASSES, size=INITIAL + TASKS)
    if kind == "task shift":
        labels[INITIAL:] = labels[INITIAL:][np.argsort(labels[INITIAL:] % 3, kind="stable")]
    features = source.select(labels).sample(tasks)
    changed = classes.permutation(CLASSES)[: CLASSES // 2]
    late = (np.arange(len(labels)) >= INITIAL + TASKS // 2) & np.isin(labels, changed)
    if kind == "moved":
        features[late] = other.select(labels[late]).sample(tasks)
    elif kind == "exchanged":
        looks = np.arange(CLASSES)
        looks[changed] = np.roll(changed, 1)
        features[late] = source.select(looks[labels[late]]).sample(tasks)
    is_right = guesses.random(len(labels)) < own
    return TrafficStream(features, labels, np.where(is_right, labels, guesses.integers(CLASSES, size=len(labels))))


def similarities(one: Floats, others: Floats) -> Floats:
    """One less the mean relative change of all features (appendix A.2).

    A continuous feature changes by |a - b| / max(|a|, |b|), a discrete one by 1 where a and b differ. The paper calls
    the mean a similarity, though equal inputs have 0; here more similar is more.

    Args:
        one: a feature vector; shape (46,).
        others: shape (n, 46).

    Returns:
        Shape (n,), in [0, 1] for features that are not negative.

    Example:
        >>> vectors = np.ones((2, 46))
        >>> vectors[1, 0], vectors[1, -1] = 2.0, 0.0
        >>> (46 * (1 - similarities(vectors[0], vectors))).round(6).tolist()
        [0.0, 1.5]
    """
    a, b = one[:CONTINUOUS], others[:, :CONTINUOUS]
    largest = np.maximum(np.abs(a), np.abs(b))
    continuous = np.divide(np.abs(a - b), largest, out=np.zeros_like(b), where=largest > 0)
    discrete = one[CONTINUOUS:] != others[:, CONTINUOUS:]
    change: Floats = (continuous.sum(axis=1) + discrete.sum(axis=1)) / len(one)
    return 1.0 - change


class TrafficPolicy(NamedTuple):
    """A policy of addition and one of deletion.

    Args:
        addition: `fixed`, `all`, `coarse` or `strict`.
        deletion: `none`, `periodical`, `history` or `combined`.
        capacity: the largest number of records, or `None`.
        error_free: whether the records that are retrieved have the true class; which ones are added, deleted and
            retrieved is as without (section 4.4: "the same retrieved examples").
        noise: the share of initial records with a wrong class (appendix C.3).
        ties: which of equal utility is deleted first at a capacity, as `ExecutionStore.worst` has it.
    """

    addition: str
    deletion: str = "none"
    capacity: int | None = None
    error_free: bool = False
    noise: float = 0.0
    ties: str = "oldest"

    @property
    def label(self) -> str:
        """Its name in tables."""
        more = [self.deletion] * (self.deletion != "none") + ["error-free"] * self.error_free
        more += [f"capacity {self.capacity}"] * (self.capacity is not None)
        more += [f"{self.ties} of equals first"] * (self.ties != "oldest")
        return ", ".join([self.addition, *more, *[f"noise {self.noise:g}"] * (self.noise > 0)])


POLICIES = (
    *map(TrafficPolicy, ("fixed", "all", "coarse", "strict")),
    *(TrafficPolicy(*pair) for pair in (("coarse", "periodical"), ("coarse", "history"), ("coarse", "combined"))),
    *(TrafficPolicy(*pair) for pair in (("strict", "periodical"), ("strict", "history"), ("strict", "combined"))),
    *(TrafficPolicy(one, "combined", capacity=INITIAL) for one in ("coarse", "strict")),
    *(TrafficPolicy(one, "combined", capacity=INITIAL, ties="newest") for one in ("coarse", "strict")),
    *(TrafficPolicy(one, error_free=True) for one in ("all", "coarse", "strict")),
    *(TrafficPolicy(one, noise=0.5) for one in ("fixed", "all", "strict")),
)
"""Tables 1 and 2, figures 4, 7 and 17."""


def play_stream(
    stream: TrafficStream, near: Floats, policy: TrafficPolicy, seed: int, *, weight: float = 1.0
) -> dict[str, Any]:
    """Answer all tasks in order.

    The answer is the class with the largest sum of similarities among the retrieved records, where the agent's own
    guess counts as one more record of similarity `weight`: of 1, one record never outvotes it, two that agree do.

    Args:
        stream: the stream.
        near: the similarity of each task to each record and task before it; shape (TASKS, INITIAL + TASKS).
        seed: of the coarse evaluator's errors, and of the noise.
        weight: of the agent's own guess.

    Returns:
        Accuracy in percent, in all tasks and in the last quarter, records at the end, mean input and output
        similarity to the nearest record, and their correlation.
    """
    answers = stream.labels.copy()
    random = np.random.default_rng([seed, _STREAM, 9])
    wrong = random.permutation(INITIAL)[: round(policy.noise * INITIAL)]
    answers[wrong] = (answers[wrong] + random.integers(1, CLASSES, size=len(wrong))) % CLASSES
    memory = ExecutionStore(period=PERIOD, alpha=ALPHA, uses=USES, beta=BETA, grace=PERIOD)
    held = np.zeros(INITIAL + TASKS, dtype=bool)
    held[:INITIAL] = True
    for record in range(INITIAL):
        memory.write([record], episode=record, own=1.0)
    pairs: list[Pair] = []
    scores: list[float] = []
    for task in range(TASKS):
        place = INITIAL + task
        known = np.flatnonzero(held)
        retrieved = known[np.argsort(-near[task, known], kind="stable")[:K]]
        told = stream.labels if policy.error_free else answers
        own, answer = (
            _vote(classes[retrieved], near[task, retrieved], stream.guesses[place], weight)
            for classes in (answers, told)
        )
        is_right = float(answer == stream.labels[place])
        scores.append(is_right)
        if len(retrieved):
            follows = float(told[retrieved[0]] == answer)
            pairs.append(Pair(task, int(retrieved[0]), float(near[task, retrieved[0]]), follows, is_right))
        result = Episode("", float(own == stream.labels[place]), 1, True)
        is_coarse = policy.addition == "coarse"
        judged = noisy_oracle(result, 1.0, ERRORS, seed, task) if is_coarse else strict(result, 1.0)
        memory.record_uses(retrieved.tolist(), judged.utility)
        if policy.addition == "all" or (policy.addition != "fixed" and judged.good):
            memory.write([place], episode=place, own=judged.utility)
            held[place] = True
        answers[place] = own
        for gone in _delete(memory, policy):
            held[gone] = False
    return {
        "accuracy": 100 * sum(scores) / TASKS,
        "late": 100 * sum(scores[-TASKS // 4 :]) / (TASKS // 4),
        "size": int(held.sum()),
        "input": sum(pair.input for pair in pairs) / len(pairs),
        "output": sum(pair.output for pair in pairs) / len(pairs),
        "correlation": correlation(pairs),
    }


def _vote(classes: NDArray[np.int64], near: Floats, guess: int, weight: float) -> int:
    """The class with the largest sum of similarities; the agent's own guess counts `weight`."""
    votes = np.bincount(classes, near, CLASSES)
    votes[guess] += weight
    return int(votes.argmax())


def _delete(memory: ExecutionStore, policy: TrafficPolicy) -> list[int]:
    """Delete by the policy, as `Managed` does after an episode; returns the deleted records."""
    deleted: list[int] = []
    if policy.deletion in ("periodical", "combined"):
        deleted += _drop(memory, memory.seldom_used())
    if policy.capacity is not None:
        deleted += _drop(memory, memory.worst(policy.capacity, policy.ties))
    elif policy.deletion in ("history", "combined"):
        deleted += _drop(memory, memory.of_low_utility())
    return deleted


def _drop(memory: ExecutionStore, entries: Sequence[Any]) -> list[int]:
    gone = [record for entry in entries for record in entry.ids]
    memory.remove(gone)
    return gone


HEADS = ("policy", "accuracy", "last\nquarter", "records\nat the end", "input\nalike", "output\nalike", "correlation")


def stream_rows(seeds: Sequence[int], policies: Sequence[TrafficPolicy] = POLICIES) -> Iterator[dict[str, Any]]:
    """One row for every stream, policy and instance.

    Args:
        seeds: the instances.
        policies: the policies.
    """
    for kind in STREAMS:
        for seed in seeds:
            stream = make_stream(kind, seed)
            near = np.array([similarities(one, stream.features) for one in stream.features[INITIAL:]])
            for policy in policies:
                yield {"stream": kind, "seed": seed, "policy": policy.label, **play_stream(stream, near, policy, seed)}


def stream_tables(rows: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Accuracy, size and experience following of each policy, a table for each stream; means over instances.

    Args:
        rows: those of `stream_rows`.
    """
    tables = []
    for kind in dict.fromkeys(row["stream"] for row in rows):
        here = [row for row in rows if row["stream"] == kind]
        table = Table(f"Stream of traffic, {kind}: {STREAMS[kind]}; accuracy in percent", HEADS)
        for policy in dict.fromkeys(row["policy"] for row in here):
            own = [row for row in here if row["policy"] == policy]
            cells = [
                format_estimate(estimate([row[field] for row in own]), digits)
                for field, digits in (("accuracy", 1), ("late", 1), ("size", 0), ("input", 2), ("output", 2))
            ]
            table.add(policy, *cells, format_estimate(estimate([row["correlation"] for row in own]), 2))
        tables.append(table)
    return tables
