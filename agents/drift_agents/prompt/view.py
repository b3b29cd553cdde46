"""The view: all that a policy gets, and its text.

A policy gets the view alone, the offline planner like the language model. It holds texts, numbers and tuples of them,
so nothing else can reach a policy, and a policy can write into nothing. The text is for language models and for
people who look at kept steps; policies that plan read the fields.

GLOVE's appendix B.6 does not say how contradicting records are weighed, and results depend on it, so the rule is a
named option of whatever reads a view, never of a memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from typing import NamedTuple, TypeVar

from drift_agents.types import Outcome, Record
from drift_envs.checks import check_choice

STATE = "Current state: "
ACTIONS = "Admissible actions: "
STEP = "Interactions so far: "
DOUBT = "Memory was contradicted at step: "
TAKEN = "Steps of this episode so far: "
VISITS = "Actions here earlier in this episode: "
MOVES = "--- This episode ---"
HERE = "--- Experience from this state ---"
ELSEWHERE = "--- Experience from other states ---"
LESSONS = "--- Lessons ---"
ANSWER = "Answer with one admissible action alone, exactly as it is written above."


_encode = json.JSONEncoder(ensure_ascii=False).encode


class Recollection(NamedTuple):
    """Equal records folded into one: a (state, action, outcome) with its number of responses.

    Args:
        state: the state before.
        action: the action, as text.
        outcome: what followed.
        n: the number of responses; a real number, since a summary distributes its responses over outcomes.
        last: when it was last written, in the agent's interactions.
        verified: whether it comes from a verified summary.
        value_estimate: the highest score reachable from there according to memory, if that is shown.
        weight: how strongly memory recalls it, in (0, 1]; the mean over its responses.
        steps_to_go: the least number of steps after the outcome to that score, where the prompt has it.
        visits: how often this episode has been in the outcome's state, where the prompt has it.
    """

    state: str
    action: str
    outcome: Outcome
    n: float
    last: int
    verified: bool = False
    value_estimate: float | None = None
    weight: float = 1.0
    steps_to_go: int | None = None
    visits: int = 0

    @property
    def support(self) -> float:
        """The number of responses times their weight: what planners count."""
        return self.n * self.weight

    def line(self) -> str:
        """The line of the text; cached, since most lines of a prompt stood in the one before."""
        return _line(self)


@lru_cache(maxsize=65536)
def _line(item: Recollection) -> str:
    times = "once" if item.n == 1 else f"{_number(item.n)} times"
    parts = [f"score {_number(item.outcome.score)}", f"seen {times}", f"last at step {item.last}"]
    if item.outcome.ended:
        parts.insert(0, "the episode ended")
    if item.verified:
        parts.append("verified")
    if item.weight != 1:
        parts.append(f"recalled with weight {_number(item.weight)}")
    if item.value_estimate is not None:
        ahead = "" if item.steps_to_go is None else f" in {item.steps_to_go} steps"
        parts.append(f"highest score believed reachable from there {_number(item.value_estimate)}{ahead}")
    if item.visits:
        parts.append(f"{item.visits} times there in this episode")
    return f"- in {item.state} action {_encode(item.action)} led to {item.outcome.state} ({'; '.join(parts)})"


# Consecutive prompts share recollection objects, and hashing one costs more than looking up its id. Each is kept
# together with its line, so that its id is not used again.
_lines: dict[int, tuple[Recollection, str]] = {}
_KEPT = 1 << 16


def _keep_line(item: Recollection) -> tuple[Recollection, str]:
    if len(_lines) >= _KEPT:
        _lines.clear()
    kept = _lines[id(item)] = item, _line(item)
    return kept


def _number(x: float) -> str:
    """The shortest text that reads back as the same number, whole numbers without a point."""
    whole = float(x).is_integer() and abs(x) < 1e15
    return str(int(x)) if whole else repr(float(x))


@dataclass(frozen=True)
class PromptView:
    """What a policy decides by: texts, numbers and tuples of them, and nothing else.

    Args:
        task: the task in words, as the environment gave it.
        state: the present state, as text.
        actions: the admissible actions, as text.
        here: recollections of this state.
        elsewhere: recollections of other states.
        lessons: derived items as text.
        step: the agent's interactions so far.
        doubt_since: the interaction at which an outcome contradicted memory, `None` if none did; what was last
            seen before may be stale. The words are the same with and without a verifier
            (`drift_agents.agent.agent` defines what counts as a contradiction, and when this moves).
        visits: how often each action was executed in this state earlier in this episode; `None` in prompts
            without the episode's history, as planners get them.
        moves: the newest steps of this episode, in order.
        taken: the number of its steps so far, in prompts that show all of them.
        environment: the name of the environment's `drift_agents.envs.base.AgentEnvironment`.

    Example:
        >>> print(PromptView("Reach the goal.", '{"at": 1}', ("0", "1")).render())
        Reach the goal.
        <BLANKLINE>
        Current state: {"at": 1}
        Admissible actions: ["0", "1"]
        Interactions so far: 0
        <BLANKLINE>
        Answer with one admissible action alone, exactly as it is written above.
    """

    task: str
    state: str
    actions: tuple[str, ...]
    here: tuple[Recollection, ...] = ()
    elsewhere: tuple[Recollection, ...] = ()
    lessons: tuple[str, ...] = ()
    step: int = 0
    doubt_since: int | None = None
    visits: tuple[tuple[str, int], ...] | None = None
    moves: tuple[Recollection, ...] = ()
    taken: int | None = None
    environment: str = "generic"

    @property
    def trusted_since(self) -> int:
        """The interaction from which on records are trusted: `doubt_since`, or -1 if nothing contradicted memory."""
        return -1 if self.doubt_since is None else self.doubt_since

    def render(self) -> str:
        """The text, the same for every environment."""
        lines = [self.task, "", STATE + self.state, ACTIONS + _encode(list(self.actions)), f"{STEP}{self.step}"]
        if self.doubt_since is not None:
            lines.append(f"{DOUBT}{self.doubt_since}")
        if self.taken is not None:
            lines.append(f"{TAKEN}{self.taken}")
        if self.visits is not None:
            lines.append(VISITS + _encode(dict(self.visits)))
        for title, recollections in ((MOVES, self.moves), (HERE, self.here), (ELSEWHERE, self.elsewhere)):
            if recollections:
                lines += ["", title, *((_lines.get(id(one)) or _keep_line(one))[1] for one in recollections)]
        if self.lessons:
            lines += ["", LESSONS, *(f"- {_encode(text)}" for text in self.lessons)]
        lines += ["", ANSWER]
        return "\n".join(lines)


def fold(
    records: Iterable[Record],
    value_estimate: Callable[[Outcome], float] | None = None,
    weights: Iterable[float] | None = None,
    steps_to_go: Callable[[Outcome], int | None] | None = None,
    visits: Callable[[Outcome], int] | None = None,
) -> tuple[Recollection, ...]:
    """Fold records into recollections: equal (state, action, outcome) become one, in order of first mention.

    Args:
        records: the retrieved records.
        value_estimate: the highest score reachable after an outcome, if that is to be shown.
        weights: one for each record, how strongly memory recalls it, in (0, 1]; all 1 if not given.
        steps_to_go: the least number of steps after an outcome to that score, if that is to be shown.
        visits: how often this episode has been in an outcome's state, if that is to be shown.

    Example:
        >>> from drift_agents.types import AgentClock
        >>> fell = Outcome("hole", 0.0, True)
        >>> twice = [Record(i, "a", "1", ((fell, 1.0),), 1, AgentClock(0, i)) for i in (3, 7)]
        >>> [(item.n, item.last) for item in fold(twice)]
        [(2.0, 7)]
        >>> [(item.weight, item.support) for item in fold(twice, weights=(0.2, 0.6))]
        [(0.4, 0.8)]
    """
    folded: dict[tuple[str, str, Outcome], tuple[float, float, int, bool]] = {}
    weighed = zip(records, repeat(1.0)) if weights is None else zip(records, weights, strict=True)
    for record, weight in weighed:
        for outcome, p in record.outcomes:
            key = (record.state, record.action, outcome)
            n, support, last, verified = folded.get(key, (0.0, 0.0, -1, False))
            added = p * record.n
            folded[key] = (n + added, support + added * weight, max(last, record.now.step), verified or record.verified)
    return tuple(
        Recollection(
            *key,
            _rounded(n),
            last,
            verified,
            None if value_estimate is None else _rounded(value_estimate(key[2])),
            # Equal when no weight was below 1, since both sums were then made of the same terms.
            1.0 if support == n else float(f"{support / n:.3g}"),
            None if steps_to_go is None else steps_to_go(key[2]),
            0 if visits is None else visits(key[2]),
        )
        for key, (n, support, last, verified) in folded.items()
    )


def _rounded(x: float) -> float:
    """Six significant digits: sums of shares have rounding errors beyond."""
    return float(x) if x.is_integer() else float(f"{x:.6g}")


T = TypeVar("T")

CONFLICTS = ("majority", "newest", "frequency", "max")


def check_conflict(conflict: str) -> str:
    """Return the name of a rule.

    Raises:
        ArgumentError: if it is none of `CONFLICTS`.
    """
    return check_choice("conflict", conflict, CONFLICTS)


def settle(sightings: Sequence[tuple[T, float, int]], conflict: str) -> list[tuple[T, float]]:
    """The outcomes that count, with their shares.

    Args:
        sightings: triples of an outcome, its support (the number of responses, weighted as memory
            recalls them), and when it was last seen; not empty.
        conflict: `majority` keeps the outcome with most responses, ties to the newest; `newest`
            the one seen last; `frequency` keeps all, each with its share of the responses; `max`
            keeps all with share 1, and the caller takes the best.

    Returns:
        Pairs of outcome and share. Shares sum to 1, except under `max`.

    Example:
        >>> seen = [("ice", 3.0, 20), ("hole", 1.0, 31)]
        >>> settle(seen, "majority"), settle(seen, "newest")
        ([('ice', 1.0)], [('hole', 1.0)])
        >>> settle(seen, "frequency"), settle(seen, "max")
        ([('ice', 0.75), ('hole', 0.25)], [('ice', 1.0), ('hole', 1.0)])
    """
    if len(sightings) == 1:
        return [(sightings[0][0], 1.0)]
    if conflict == "majority":
        return [(max(sightings, key=lambda s: (s[1], s[2]))[0], 1.0)]
    if conflict == "newest":
        return [(max(sightings, key=lambda s: (s[2], s[1]))[0], 1.0)]
    if conflict == "max":
        return [(outcome, 1.0) for outcome, _, _ in sightings]
    total = sum(n for _, n, _ in sightings)
    return [(outcome, n / total) for outcome, n, _ in sightings]


Sightings = dict[T, tuple[float, int]]
"""By outcome, the sum of its support and when it was last seen."""


def add_sighting(seen: Sightings[T], outcome: T, support: float, last: int) -> None:
    """Add what one recollection or record shows.

    Args:
        seen: changed in place.
        outcome: what was seen.
        support: the number of responses, weighted as memory recalls them.
        last: when it was last seen, in the agent's interactions.
    """
    n, before = seen.get(outcome, (0.0, -1))
    seen[outcome] = n + support, max(before, last)


def settle_all(seen: Sightings[T], conflict: str) -> list[tuple[T, float]]:
    """The outcomes that count, with their shares, by `settle`; `seen` is not empty."""
    return settle([(outcome, *times) for outcome, times in seen.items()], conflict)


def believe(seen: Sightings[T], conflict: str) -> T:
    """The most probable outcome; of equals the newest.

    Example:
        >>> believe({"ice": (1.0, 20), "hole": (1.0, 31)}, "frequency")
        'hole'
    """
    return max(settle_all(seen, conflict), key=lambda pair: (pair[1], seen[pair[0]][1]))[0]


def believe_newer(sightings: Sequence[tuple[T, float, int]], since: int, conflict: str) -> tuple[T, bool]:
    """The most probable outcome, and whether it was seen since a time.

    Sightings before it count only where there are no others.

    Args:
        sightings: triples of an outcome, its support, and when it was last seen; not empty.
        since: the time, as `PromptView.trusted_since`.
        conflict: the rule, as for `settle`.

    Example:
        >>> seen = [("ice", 3.0, 20), ("hole", 1.0, 31)]
        >>> believe_newer(seen, 30, "majority"), believe_newer(seen, 40, "majority")
        (('hole', True), ('ice', False))
    """
    newer = [one for one in sightings if one[2] >= since]
    seen: Sightings[T] = {}
    for sighting in newer or sightings:
        add_sighting(seen, *sighting)
    return believe(seen, conflict), bool(newer)
