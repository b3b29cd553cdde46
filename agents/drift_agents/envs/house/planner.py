"""The planner for the house: a function of the view and a generator for ties.

* `HousePlanner` - chooses a command from the state and the recollections

Its prior knowledge is where kinds of things are commonly kept and what appliances commonly do, as a language model
has it, and nothing about this house: neither places nor habits nor keys.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from drift_agents.envs.house.beliefs import HouseBeliefs
from drift_agents.envs.house.errand import kind_of, parse_errand
from drift_agents.envs.house.knowledge import DatedFact, failed_puts, learn_house, placed
from drift_agents.envs.house.matching import NOTHING, read_house_state
from drift_agents.envs.house.search import HouseSearch
from drift_agents.envs.house.treatment import Treatment
from drift_agents.envs.house.words import plain
from drift_agents.errors import ArgumentError
from drift_agents.policy.base import Reply
from drift_agents.prompt.conflict import check_conflict
from drift_agents.prompt.view import PromptView
from drift_envs.checks import check_flag

SATISFIED = 0.9
"""The score from which on a place is used again without a search for a better one."""


class HousePlanner:
    """Fetches, treats and puts down; records of the prompt override what is common.

    * Empty hand: go to where the thing is recorded to be kept, else look into furniture that was not visited in
      this episode, the most likely kinds first; take it.
    * A thing in the hand: treat it, if the task wants that; then put it down, or look at it under the lamp.
    * A treatment: the appliance that is recorded to do this; else the common one; after a failure others. A
      treatment that is not known to work is checked with `examine` once anything has failed.
    * The place: of several of the wanted kind, one that was worth `SATISFIED` or more; else an untried one.
    * A word: its kind; after a failure the kind that is easily taken for it.
    * A door that does not open is opened with a keychain: the recorded one, else an untried one.

    What was seen before memory was found wrong counts as untried.

    Args:
        conflict: how several outcomes of one (state, action) are weighed (`drift_agents.prompt.conflict`).
        explores: whether it looks for better places, ways and meanings once it knows one that is worth something.
        common_sense: whether it knows where kinds of things are commonly kept.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> at = '{"house": 7, "task": "put a mug in bed", "at": "shelf 1", "door": "none", "sees": ["mug 2"], '
        >>> at += '"holds": "nothing", "done": [], "opened": [], "visited": ["shelf 1"], "says": ""}'
        >>> view = PromptView("put a mug in bed", at, ("go to bed 1", "take mug 2 from shelf 1"))
        >>> HousePlanner().decide(view, np.random.default_rng(0)).text
        'take mug 2 from shelf 1'
    """

    name = "house"

    def __init__(self, *, conflict: str = "majority", explores: bool = True, common_sense: bool = True) -> None:
        self.conflict = check_conflict(conflict)
        self.explores = check_flag("explores", explores)
        self.common_sense = check_flag("common_sense", common_sense)

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        """Choose an action.

        Args:
            view: what the policy decides by.
            rng: for ties and exploration.

        Raises:
            ArgumentError: if the prompt has no state of a house.
        """
        words = {plain(action): action for action in view.actions}
        view = replace(view, actions=tuple(words))
        shown = read_house_state(view.state)
        if shown is None:
            raise ArgumentError(f"the state should be one of a house. Received {view.state!r}")
        errand = parse_errand(shown.task)
        if errand is None or not view.actions:
            return Reply(words[view.actions[int(rng.integers(len(words)))]] if words else "look")
        known = learn_house(shown, (*view.elsewhere, *view.here), self.conflict)
        beliefs = HouseBeliefs(view, shown, errand, known, self.explores, self.common_sense, rng)
        wanted = _HouseDecision(beliefs).choose()
        return Reply(words[wanted if wanted in words else view.actions[int(rng.integers(len(words)))]])


class _HouseDecision:
    """One decision.

    Args:
        beliefs: what is believed in it.
    """

    def __init__(self, beliefs: HouseBeliefs) -> None:
        self._beliefs = beliefs
        self._treatment = Treatment(beliefs)
        self._search = HouseSearch(beliefs, self._treatment)
        self._shown, self._errand, self._known = beliefs.shown, beliefs.errand, beliefs.known

    def choose(self) -> str:
        """The command."""
        holds = self._shown.holds
        if holds == NOTHING:
            return self._search.fetch()
        if kind_of(holds) == "keychain":
            return self._use_key()
        if kind_of(holds) not in self._beliefs.kinds[:1] and not self._is_worth_trying(holds):
            return self._put_down()
        if self._errand.is_light:
            return self._look_under_lamp()
        if self._errand.mark and (step := self._treatment.next_step(holds)):
            return step
        return self._bring()

    def _is_worth_trying(self, thing: str) -> bool:
        return kind_of(thing) in self._beliefs.kinds and not any(
            kind_of(other) == self._beliefs.kinds[0] for other in self._shown.sees
        )

    def _use_key(self) -> str:
        """Open the door for which the key was fetched, then put the key down."""
        shown, key = self._shown, self._shown.holds
        if shown.door == "closed" and self._beliefs.is_locked(shown.at):
            fact = self._known.keys.get((shown.at, key))
            if not shown.says and (fact is None or fact.value or fact.last < self._beliefs.doubt):
                return f"open {shown.at}"
        elif shown.door == "open" and self._beliefs.is_locked(shown.at):
            return self._put_down()
        for place in self._locked_places():
            if place != shown.at and self._search.key_for(place) == key:
                return f"go to {place}"
        return self._put_down()

    def _locked_places(self) -> list[str]:
        """Doors that did not open, those with what is wanted first."""
        found = [
            place
            for place in self._beliefs.furniture
            if self._beliefs.is_locked(place) and place not in self._shown.opened
        ]
        wanted = self._beliefs.kinds[0]

        def has(place: str) -> bool:
            fact = self._known.contents.get(place)
            return fact is not None and any(kind_of(thing) == wanted for thing in fact.value)

        return sorted(found, key=lambda place: (not has(place), kind_of(place) != self._errand.target))

    def _bring(self) -> str:
        """Put the thing down at the best place of the wanted kind."""
        shown, target = self._shown, self._errand.target
        places = [
            place for place in self._beliefs.furniture if kind_of(place) == target and not self._beliefs.is_shut(place)
        ]
        if not places:
            return self._beliefs.wander()
        place = self._best_place(places)
        if place != shown.at:
            return f"go to {place}"
        if shown.door == "closed":
            if self._beliefs.is_locked(place):
                return self._put_down()  # to fetch the key first
            return f"open {place}" if not shown.says else self._beliefs.wander()
        return f"move {shown.holds} to {place}"

    def _best_place(self, places: list[str]) -> str:
        """One that was worth `SATISFIED`, else an untried one, else the best."""
        kind = kind_of(self._shown.holds)
        worth: dict[str, DatedFact] = {}
        for attempt, fact in self._known.attempts.items():
            is_good = attempt.kind == kind and attempt.place in places and fact.value > 0
            if is_good and (attempt.place not in worth or fact.last > worth[attempt.place].last):
                worth[attempt.place] = fact
        fresh = {place: fact for place, fact in worth.items() if fact.last >= self._beliefs.doubt}
        good = [place for place in places if place in fresh and fresh[place].value >= SATISFIED]
        untried = [place for place in places if place not in fresh]
        used = {place for _, place, _ in failed_puts(self._shown.done)}
        if self._errand.number > 1 and (
            same := [place for place in places if place in placed(self._shown.done).values()]
        ):
            return same[0]
        if good:
            choice = good
        elif untried and (self._beliefs.explores or not fresh):
            choice = [place for place in untried if place not in used] or untried
        else:
            best = max(fact.value for fact in worth.values())
            choice = [place for place in places if place in worth and worth[place].value == best]
        return self._shown.at if self._shown.at in choice else choice[0]

    def _put_down(self) -> str:
        """Put down what is in the hand, here or nearby."""
        shown = self._shown
        move = f"move {shown.holds} to {shown.at}"
        if move in self._beliefs.actions:
            return move
        flat = [place for place in shown.visited if place in self._beliefs.furniture and place != shown.at]
        return f"go to {flat[-1]}" if flat else self._beliefs.wander()

    def _look_under_lamp(self) -> str:
        """Use the lamp, or look for it."""
        shown, lamp = self._shown, self._errand.target
        for thing in shown.sees:
            if kind_of(thing) == lamp:
                return f"use {thing}"
        for place, fact in sorted(self._known.contents.items(), key=lambda pair: -pair[1].last):
            is_there = any(kind_of(thing) == lamp for thing in fact.value) and place != shown.at
            if is_there and place in self._beliefs.furniture and not self._beliefs.is_shut(place):
                return f"go to {place}"
        return self._search.look_for(lamp) or self._beliefs.wander()
