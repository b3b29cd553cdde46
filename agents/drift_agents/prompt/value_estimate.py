"""Value estimates: the highest score reachable according to memory, by value iteration over its records.

GLOVE's appendix B.6 prints it beside every record ("Max score achievable from this path"):
"through concatenating experiences' s' with other experiences whose s is the same, the agent
constructs its internal world model". Actions never tried have no value.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable

from drift_agents.prompt.view import Recollection, Sightings, add_sighting, check_conflict, settle_all
from drift_agents.types import AgentClock, Outcome, Record

SWEEPS = 10_000
"""The maximum number of sweeps; only `frequency` needs it, whose values are reached in the limit."""
CLOSE = 1e-9
"""The tolerance: a sweep that changes no value by more than this is the last."""


def _identity(state: str) -> Hashable:
    return state


def as_records(items: Iterable[Recollection]) -> list[Record]:
    """The recollections of a prompt as records, each with its one outcome.

    Args:
        items: the recollections.
    """
    return [
        Record(i, item.state, item.action, ((item.outcome, 1.0),), max(1, round(item.n)), AgentClock(0, item.last))
        for i, item in enumerate(items)
    ]


class ValueEstimate:
    """The values of all states of one memory content.

    Args:
        records: the content, as in `memory.records()`.
        conflict: how several outcomes of one (state, action) are weighed (`drift_agents.prompt.view`).
        key: states with equal keys count as the same, as in `Matching.state_key`.

    Raises:
        ArgumentError: if there is no such rule.

    Example:
        >>> from drift_agents.types import AgentClock
        >>> there = Record(0, "a", "1", ((Outcome("b", 0.0, False), 1.0),), 1, AgentClock())
        >>> gold = Record(1, "b", "1", ((Outcome("c", 0.5, True), 1.0),), 1, AgentClock())
        >>> ValueEstimate([there, gold])(there.outcome)
        0.5
    """

    def __init__(
        self, records: Iterable[Record], conflict: str = "majority", key: Callable[[str], Hashable] = _identity
    ) -> None:
        check_conflict(conflict)
        self._key = key
        seen: dict[Hashable, dict[str, Sightings[Outcome]]] = {}
        for record in records:
            outcomes = seen.setdefault(key(record.state), {}).setdefault(record.action, {})
            for outcome, p in record.outcomes:
                add_sighting(outcomes, outcome, p * record.n, record.now.step)
        choices = {
            state: [settle_all(outcomes, conflict) for outcomes in actions.values()] for state, actions in seen.items()
        }
        self._best: dict[Hashable, float] = dict.fromkeys(choices, 0.0)
        for _ in range(SWEEPS):
            change = 0.0
            for state, actions in choices.items():
                best = max(self._action_value(outcomes, conflict) for outcomes in actions)
                change, self._best[state] = max(change, best - self._best[state]), best
            if change <= CLOSE:
                break

    def _action_value(self, outcomes: list[tuple[Outcome, float]], conflict: str) -> float:
        values = [share * self(outcome) for outcome, share in outcomes]
        return max(values) if conflict == "max" else sum(values)

    def __call__(self, outcome: Outcome) -> float:
        """The highest score reachable after this outcome, at least the score so far."""
        if outcome.ended:
            return outcome.score
        return max(outcome.score, self._best.get(self._key(outcome.state), 0.0))


_Place = tuple[Hashable, float, bool]
"""An outcome with its state's key in place of the state: key, score, whether the episode ended."""


class PathEstimate:
    """The highest score reachable after an outcome, and the fewest steps to it.

    An undiscounted value does not distinguish a step towards a goal from one away from it as long as both
    can still lead there, so a reader that follows it may move in a circle. The number of steps distinguishes
    them. A step that stays within one state by the key counts as many times as it was observed for each
    departure.

    Args:
        conflict: how several outcomes of one (state, action) are weighed (`drift_agents.prompt.view`); of
            outcomes that all count, the best one is followed.
        key: states with equal keys count as the same.

    Raises:
        ArgumentError: if there is no such rule.

    Example:
        >>> from drift_agents.types import AgentClock
        >>> steps = [("a", "b", 0.0, False), ("b", "a", 0.0, False), ("b", "c", 1.0, True)]
        >>> records = [
        ...     Record(i, state, str(i), ((Outcome(after, score, ended), 1.0),), 1, AgentClock(0, i))
        ...     for i, (state, after, score, ended) in enumerate(steps)
        ... ]
        >>> paths = PathEstimate()
        >>> paths.update(records)
        >>> paths.find(Outcome("b", 0.0, False)), paths.find(Outcome("a", 0.0, False))
        ((1.0, 1), (1.0, 2))
    """

    def __init__(self, conflict: str = "majority", key: Callable[[str], Hashable] = _identity) -> None:
        self._conflict, self._key = check_conflict(conflict), key
        self._clear()

    def _clear(self) -> None:
        self._content: list[Record] = []
        self._seen: dict[tuple[Hashable, str], Sightings[_Place]] = {}
        self._edges: dict[tuple[Hashable, str], list[tuple[_Place, float]]] = {}
        self._best: dict[Hashable, tuple[float, float]] = {}

    def update(self, records: Iterable[Record]) -> None:
        """Take the content of a memory; only what is new is computed if nothing was removed.

        Args:
            records: the content, as in `memory.records()`.
        """
        content = list(records)
        known = len(self._content)
        if content[:known] != self._content:
            self._clear()
            known = 0
        changed: dict[tuple[Hashable, str], None] = {}
        for record in content[known:]:
            pair = (self._key(record.state), record.action)
            places = self._seen.setdefault(pair, {})
            for outcome, p in record.outcomes:
                place = (self._key(outcome.state), outcome.score, outcome.ended)
                add_sighting(places, place, p * record.n, record.now.step)
            changed[pair] = None
        self._content = content
        settled = {pair: self._settle(pair) for pair in changed}
        if any(self._edges.get(pair) != edges for pair, edges in settled.items()):
            self._edges |= settled
            self._search()

    def _settle(self, pair: tuple[Hashable, str]) -> list[tuple[_Place, float]]:
        """The outcomes that count, each with the number of steps until it occurs."""
        places = self._seen[pair]
        leaving = {place: times for place, times in places.items() if place[0] != pair[0] or place[2]}
        if not leaving:
            return []
        counted = settle_all(leaving, self._conflict)
        stays = sum(n for place, (n, _) in places.items() if place not in leaving)
        if self._conflict == "majority" and stays and not self._passes(pair, leaving):
            return []
        departures = sum(n for n, _ in leaving.values())
        return [(place, 1 + stays / departures) for place, _ in counted]

    def _passes(self, pair: tuple[Hashable, str], leaving: Sightings[_Place]) -> bool:
        """Whether leaving is the rule and not the exception: keys of cells hold several texts, texts do not."""
        if not isinstance(pair[0], str):
            return True
        return sum(n for n, _ in leaving.values()) * 2 >= sum(n for n, _ in self._seen[pair].values())

    def _search(self) -> None:
        """Dijkstra's algorithm from the ends of all paths backwards, the highest scores first."""
        before: dict[Hashable, list[tuple[Hashable, float]]] = {}
        queue: list[tuple[float, float, int, Hashable]] = []
        for number, ((state, _), edges) in enumerate(self._edges.items()):
            for (after, score, ended), steps in edges:
                if score > 0:
                    queue.append((-score, steps, number, state))
                if not ended:
                    before.setdefault(after, []).append((state, steps))
        heapq.heapify(queue)
        self._best = {}
        number = len(queue)
        while queue:
            score, steps, _, state = heapq.heappop(queue)
            if state in self._best:
                continue
            self._best[state] = (-score, steps)
            for earlier, one in before.get(state, ()):
                if earlier not in self._best:
                    number += 1
                    heapq.heappush(queue, (score, steps + one, number, earlier))

    def find(self, outcome: Outcome) -> tuple[float, int | None]:
        """The highest score reachable after an outcome, and the steps to it; `None` for a score of 0.

        Args:
            outcome: an outcome; after the end of an episode nothing can be reached.
        """
        score, steps = (0.0, 0.0) if outcome.ended else self._best.get(self._key(outcome.state), (0.0, 0.0))
        if outcome.score >= score:
            return outcome.score, 0 if outcome.score > 0 else None
        return score, round(steps)

    def value(self, outcome: Outcome) -> float:
        """The highest score reachable after an outcome."""
        return self.find(outcome)[0]

    def steps_to_go(self, outcome: Outcome) -> int | None:
        """The fewest steps to the highest score; `None` for a score of 0."""
        return self.find(outcome)[1]
