"""What is believed in one decision: what the task's word means, and which doors open.

* `HouseBeliefs` - the state, the task and what is known, with what follows about words and doors
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from drift_agents.envs.house.errand import LIKE, Errand, kind_of
from drift_agents.envs.house.knowledge import Attempt, DatedFact, HouseKnowledge, Way, failed_puts
from drift_agents.envs.house.matching import NOTHING, ShownHouse
from drift_agents.prompt.view import PromptView


class HouseBeliefs:
    """The state, the task and what is known, with what follows about words and doors.

    Args:
        view: the prompt.
        shown: its state.
        errand: its task.
        known: what its records show.
        explores: whether untried meanings of the word are considered.
        common_sense: whether it is known where kinds of things are commonly kept.
        rng: for ties.
    """

    def __init__(
        self,
        view: PromptView,
        shown: ShownHouse,
        errand: Errand,
        known: HouseKnowledge,
        explores: bool,
        common_sense: bool,
        rng: np.random.Generator,
    ) -> None:
        self.shown, self.errand, self.known, self.rng = shown, errand, known, rng
        self.explores, self.common_sense = explores, common_sense
        self.actions = view.actions
        self.doubt = -1 if view.doubt_since is None else view.doubt_since
        gos = [action[6:] for action in view.actions if action.startswith("go to ")]
        self.furniture = tuple(gos if shown.at == NOTHING else (*gos, shown.at))

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The kinds that the word may refer to, the most believable first."""
        word = self.errand.thing
        candidates = [word] + ([LIKE[word]] if word in LIKE else [])
        if not self.explores and len(candidates) > 1:
            candidates = candidates[:1]
        failures = {kind_of(thing) for thing, place, ways in self.own_failures() if self._blames_word(thing, ways)}
        beliefs = {kind: self._believe_word(kind) for kind in candidates}

        def rank(kind: str) -> tuple[int, float]:
            belief = beliefs[kind]
            if kind in failures:
                return 3, 0.0
            if belief is None or belief.last < self.doubt:
                return 1, float(kind != word)
            return (0, -belief.last) if belief.value else (2, belief.last)

        return tuple(sorted(candidates, key=rank))

    def _believe_word(self, kind: str) -> DatedFact | None:
        """Whether the word was found to refer to a kind; a failed attempt with a treatment shows nothing."""
        found: DatedFact | None = None
        tables: tuple[Mapping[Attempt, DatedFact], ...] = (self.known.attempts, self.known.elsewhere)
        for table in tables:
            for attempt, fact in table.items():
                if attempt.word != self.errand.thing or attempt.kind != kind:
                    continue
                if not fact.value and attempt.mark:
                    continue
                if found is None or fact.last > found.last:
                    found = DatedFact(fact.value > 0, fact.last)
        return found

    def own_failures(self) -> list[tuple[str, str, tuple[Way, ...]]]:
        """What was put at the wanted place in this episode, without completing the task."""
        if self.errand.is_light:
            return []
        found = [one for one in failed_puts(self.shown.done) if kind_of(one[1]) == self.errand.target]
        kinds = [kind_of(thing) for thing in {thing: None for thing, _, _ in found}]
        return [one for one in found if kinds.count(kind_of(one[0])) >= self.errand.number]

    def _blames_word(self, thing: str, ways: tuple[Way, ...]) -> bool:
        """Whether a failed attempt shows that the word means something else."""
        marks = self.known.marks
        return not self.errand.mark or any(way in marks and self.errand.mark in marks[way].value for way in ways)

    def is_shut(self, place: str) -> bool:
        """Whether it could not be reached."""
        fact = self.known.shut.get(place)
        return fact is not None and bool(fact.value) and fact.last >= self.doubt

    def is_locked(self, place: str) -> bool:
        """Whether it did not open with an empty hand."""
        fact = self.known.keys.get((place, NOTHING))
        return fact is not None and not fact.value and fact.last >= self.doubt

    def pick(self, among: Sequence[str]) -> str:
        """One of several that are equally good, drawn at random."""
        return among[int(self.rng.integers(len(among)))]

    def wander(self) -> str:
        """Where nothing is left to do: look behind closed doors again, or anywhere."""
        gos = [action for action in self.actions if action.startswith(("go to ", "open "))]
        return self.pick(gos or list(self.actions))
