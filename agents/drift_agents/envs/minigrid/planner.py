"""The planner for Minigrid's environments: a map of what was seen, and ways over it."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from drift_agents.envs.minigrid.states import NOTHING, STEPS, Place, ShownRoom, cell_ahead, read_room_state
from drift_agents.policy.base import ParsedPlanner, pick
from drift_agents.prompt.view import PromptView, Recollection
from drift_envs.checks import check_flag

EFFECTS = ("left", "right", "forward", "pickup", "drop", "toggle")
"""What actions do, in the order of their numbers in the task."""

UNKNOWN = 2.0
"""The cost of a step into a cell that was never seen; into a free one it is 1."""

MOST_POSES = 4000
"""The places and directions that are examined for a way."""

_MISSION = re.compile(r"Your mission: (?P<text>.+?)\. The highest score")
_NAMED = re.compile(r"(?:pick up|go to) (?:the|a) (?P<color>\w+) (?P<kind>\w+)")


class _Dated(NamedTuple):
    """A fact with the interaction at which it was last seen."""

    value: str
    last: int


def _rank(fact: _Dated | None, is_meant: bool = False) -> tuple[int, float]:
    """What worked last comes first; then what was not tried, first what is meant; then the oldest failure."""
    if fact is None:
        return (1 if is_meant else 2), 0.0
    return (0, -float(fact.last)) if fact.value == "yes" else (3, float(fact.last))


class _Errand(NamedTuple):
    """A mission: `reach`, `take`, `open` or `face` a thing of a colour and kind."""

    verb: str
    color: str
    kind: str


class MinigridPlanner(ParsedPlanner[ShownRoom]):
    """Maps what was seen, walks to what pays, and fetches keys for locked doors.

    * Cells are what was last seen there, in this state or in records; cells that the agent had changed then are not.
    * An action does what the newest record of it shows; without one, what the task says.
    * Of several things that may be meant, the one that paid last; those that were tried in vain come last.
    * The key of a door is the one that opened it last, else one of its colour; those tried in vain come last.
    * Where nothing that pays is known or reachable, the nearest cell that was never seen is visited.
    * Where what is known leaves no way, records are dropped: those before memory was found wrong, then those not
      newer than one that a newer view has contradicted, then all.

    Args:
        conflict: how several outcomes of one (state, action) are weighed; here the newest counts.
        explores: whether it looks for what pays where nothing known does; otherwise it acts at random there.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> state = '{"pos": [1, 1], "facing": "north", "carries": "nothing", "changed": {}, "corner": [0, 0], '
        >>> state += '"rows": ["####", "#.o#", "####"], "things": {"2,1": "green goal"}}'
        >>> task = "Your mission: get to the green goal square. The highest score is 1."
        >>> view = PromptView(task, state, ("0", "1", "2"))
        >>> MinigridPlanner().decide(view, np.random.default_rng(0)).text
        '1'
    """

    name, shows = "minigrid", "one of Minigrid's environments"
    parse = staticmethod(read_room_state)

    def __init__(self, *, conflict: str = "majority", explores: bool = True) -> None:
        super().__init__(conflict=conflict)
        self.explores = check_flag("explores", explores)

    def _choose(self, shown: ShownRoom, view: PromptView, rng: np.random.Generator) -> str:
        errand = _read_errand(view.task)
        records = sorted((*view.here, *view.elsewhere), key=lambda item: item.last)
        wanted, view_alone = None, view.step + 1
        known = _RoomKnowledge(shown, errand, records)
        for since in (-1, view.doubt_since, known.superseded + 1, view_alone):
            if since is not None and wanted is None:
                known = _RoomKnowledge(shown, errand, [item for item in records if item.last >= since])
                wanted = _RoomDecision(shown, errand, known, rng).choose(self.explores)
        if wanted is None:
            wanted = pick(("forward", "left", "right"), rng)
        action = known.action_for(wanted)
        return action if action in view.actions else pick(view.actions, rng)


def _read_errand(task: str) -> _Errand:
    found = _MISSION.search(task)
    text = found["text"] if found else task
    named = _NAMED.search(text)
    if named is not None:
        return _Errand("take" if text.startswith("pick up") else "face", named["color"], named["kind"])
    return _Errand("open", "", "door") if text.startswith("open") else _Errand("reach", "green", "goal")


class _RoomKnowledge:
    """What the present state and the records show.

    Args:
        shown: the present state.
        errand: the mission.
        records: recollections, the oldest first.
    """

    def __init__(self, shown: ShownRoom, errand: _Errand, records: Iterable[Recollection]) -> None:
        self.cells: dict[Place, str] = {}
        self.does: dict[str, _Dated] = {}
        """What an action did last."""
        self.paid: dict[str, _Dated] = {}
        """Things, by name: `yes` or `no`."""
        self.keys: dict[tuple[str, str], _Dated] = {}
        """Colour of a door, and key: `yes` or `no`."""
        self.superseded = -1
        """The newest interaction whose view a later one has contradicted."""
        self._seen_at: dict[Place, int] = {}
        self._errand = errand
        for item in records:
            before, after = read_room_state(item.state), read_room_state(item.outcome.state)
            if before is not None and after is not None:
                for one in (before, after):
                    self._see(one, item.last)
                self._learn(item, before, after)
        self._see(shown, -1)
        self.cells.update(shown.changed)

    def _see(self, shown: ShownRoom, last: int) -> None:
        for place, thing in shown.seen.items():
            if place not in shown.changed:
                if self.cells.get(place, thing) != thing:
                    self.superseded = max(self.superseded, self._seen_at[place])
                self.cells[place] = thing
                self._seen_at[place] = last

    def _learn(self, item: Recollection, before: ShownRoom, after: ShownRoom) -> None:
        effect = _effect(before, after)
        thing = before.changed.get(before.ahead, before.seen.get(before.ahead, NOTHING))
        if effect:
            self.does[item.action] = _Dated(effect, item.last)
        if thing.startswith("locked ") and before.carries.endswith(" key") and self.effect_of(item.action) == "toggle":
            answer = "yes" if effect == "toggle" else "no"
            self.keys[thing.split()[1], before.carries] = _Dated(answer, item.last)
        if self._errand.verb == "reach":
            tried = after.seen.get(after.place, NOTHING) if item.outcome.ended else NOTHING
        elif self._errand.verb == "take":
            tried = after.carries if effect == "pickup" else NOTHING
        else:
            tried = after.seen.get(after.ahead, NOTHING)
        if tried.endswith(f" {self._errand.kind}"):
            self.paid[tried] = _Dated("yes" if item.outcome.score > 0 else "no", item.last)

    def effect_of(self, action: str) -> str:
        """What an action does, as far as is known."""
        if action in self.does:
            return self.does[action].value
        number = int(action) if action.isdecimal() else len(EFFECTS)
        return EFFECTS[number] if number < len(EFFECTS) else ""

    def action_for(self, effect: str) -> str:
        """The action with an effect: the one that was seen to have it last, else the task's, else an untried one."""
        proven = [(fact.last, action) for action, fact in self.does.items() if fact.value == effect]
        if proven:
            return max(proven)[1]
        usual = str(EFFECTS.index(effect))
        if usual not in self.does:
            return usual
        # Two actions have changed places: the other one has this effect, unless it was seen to differ since.
        other = str(EFFECTS.index(self.does[usual].value))
        if other not in self.does or self.does[other].last < self.does[usual].last:
            return other
        free = [str(number) for number in range(len(EFFECTS)) if str(number) not in self.does]
        return free[0] if free else usual


def _effect(before: ShownRoom, after: ShownRoom) -> str:
    """What an action did; empty if nothing changed."""
    if after.place != before.place:
        return "forward"
    if after.facing != before.facing:
        return "right" if (before.facing + 1) % 4 == after.facing else "left"
    if after.carries != before.carries:
        return "pickup" if before.carries == NOTHING else "drop"
    return "toggle" if after.changed != before.changed else ""


class _RoomDecision:
    """One decision.

    Args:
        shown: the present state.
        errand: the mission.
        known: what state and records show.
        rng: for ties.
    """

    def __init__(self, shown: ShownRoom, errand: _Errand, known: _RoomKnowledge, rng: np.random.Generator) -> None:
        self.shown, self.errand, self.known, self.rng = shown, errand, known, rng
        columns, rows = ([place[axis] for place in known.cells] for axis in (0, 1))
        self._box = (min(columns) - 1, min(rows) - 1), (max(columns) + 1, max(rows) + 1)
        """What was seen, with a margin of one cell: no way leads farther."""

    def choose(self, explores: bool) -> str | None:
        """The effect that is wanted now; `None` if there is no way."""
        for target in self._targets():
            step = self._act_on(target)
            if step is not None:
                return step
        # The nearest cell that was never seen.
        step = self._first(lambda pose: cell_ahead(*pose) not in self.known.cells) if explores else None
        return step or self._fetch_key()

    def _targets(self) -> list[Place]:
        """The things that may pay, the most believable first."""
        verb, color, kind = self.errand
        found = [(place, thing) for place, thing in self.known.cells.items() if thing.endswith(f" {kind}")]

        def rank(one: tuple[Place, str]) -> tuple[int, float]:
            place, thing = one
            if (fact := self.known.paid.get(thing)) is not None:
                return _rank(fact)
            way = self._way(lambda pose: pose[0] == place or cell_ahead(*pose) == place)
            is_meant = thing == f"{color} {kind}" or verb == "open"
            return _rank(None, is_meant)[0], way[0] if way else float("inf")

        return [place for place, thing in sorted(found, key=rank) if not self._is_futile(thing)]

    def _is_futile(self, thing: str) -> bool:
        """Whether a thing was tried in vain, and others may be found."""
        fact = self.known.paid.get(thing)
        others = [one for one in self.known.cells.values() if one.endswith(f" {self.errand.kind}") and one != thing]
        return fact is not None and fact.value == "no" and not others

    def _act_on(self, target: Place) -> str | None:
        """The next step to a thing, and what is done there."""
        verb, thing = self.errand.verb, self.known.cells.get(target, NOTHING)
        if verb == "reach":
            return self._first(lambda pose: pose[0] == target)
        if (
            verb == "take"
            and self.shown.carries != NOTHING
            and self._way(lambda pose: cell_ahead(*pose) == target, unlocks=False)
        ):
            return self._put_down(target)
        if verb == "open" and thing.startswith("locked ") and not self._opens(thing):
            return self._fetch_key()
        if self.shown.ahead != target:
            return self._first(lambda pose: cell_ahead(*pose) == target)
        if verb == "take":
            return "pickup"
        return "toggle"  # opens the door; where it faces what pays already, any action does

    def _fetch_key(self) -> str | None:
        """The next step to a key for a locked door that is known."""
        shown = self.shown
        doors = [thing for thing in self.known.cells.values() if thing.startswith("locked ")]
        for door in doors:
            color = door.split()[1]
            for key in sorted(self._keys, key=self._rank(color)):
                if shown.carries == key:
                    place = next(place for place, thing in self.known.cells.items() if thing == door)
                    if shown.ahead == place:
                        return "toggle"
                    return self._first(lambda pose, place=place: cell_ahead(*pose) == place)  # type: ignore[misc]
                places = [place for place, thing in self.known.cells.items() if thing == key]
                if shown.carries != NOTHING and places:
                    return self._put_down(places[0])
                if shown.ahead in places:
                    return "pickup"
                step = self._first(lambda pose, places=places: cell_ahead(*pose) in places)  # type: ignore[misc]
                if step is not None:
                    return step
        return None

    @property
    def _keys(self) -> set[str]:
        """The keys that are known, the one in the hand included."""
        return {thing for thing in (*self.known.cells.values(), self.shown.carries) if thing.endswith(" key")}

    def _rank(self, color: str) -> Callable[[str], tuple[int, float, str]]:
        """The order in which keys are tried on a door."""
        return lambda key: (*_rank(self.known.keys.get((color, key)), key == f"{color} key"), key)

    def _opens(self, door: str) -> bool:
        """Whether what is carried is the key to be tried on a door."""
        color = door.split()[1]
        return self.shown.carries.endswith(" key") and min(self._keys, key=self._rank(color)) == self.shown.carries

    def _put_down(self, target: Place) -> str:
        """Drop what is carried at the nearest free cell that is no doorway, and where it does not bar the way."""
        cells = self.known.cells

        def is_room(pose: tuple[Place, int]) -> bool:
            x, y = cell_ahead(*pose)
            walls = [cells.get((x + across, y + down)) == "wall" for across, down in STEPS]
            if cells.get((x, y)) != NOTHING or (walls[0] and walls[2]) or (walls[1] and walls[3]):
                return False
            cells[x, y] = self.shown.carries
            found = self._way(lambda pose: cell_ahead(*pose) == target, unlocks=False)
            cells[x, y] = NOTHING
            return found is not None

        if is_room((self.shown.place, self.shown.facing)):
            return "drop"
        step = self._first(is_room)
        if step is not None:
            return step
        return "drop" if cells.get(self.shown.ahead) == NOTHING else pick(("left", "right"), self.rng)

    # Ways over the map.

    def _first(self, is_there: Callable[[tuple[Place, int]], bool]) -> str | None:
        """The first step of a cheapest way; where it is there already, forward."""
        way = self._way(is_there)
        if way is None:
            return None
        return way[1][0] if way[1] else "forward"

    def _way(
        self, is_there: Callable[[tuple[Place, int]], bool], unlocks: bool = True
    ) -> tuple[float, Sequence[str]] | None:
        """Cost and steps of a cheapest way to a place and direction, by Dijkstra's algorithm."""
        start = (self.shown.place, self.shown.facing)
        done: set[tuple[Place, int]] = set()
        queue: list[tuple[float, int, tuple[Place, int], tuple[str, ...]]] = [(0.0, 0, start, ())]
        count = 0
        while queue:
            cost, _, pose, steps = heapq.heappop(queue)
            if pose in done:
                continue
            done.add(pose)
            if is_there(pose):
                return cost, steps
            if len(done) > MOST_POSES:
                return None
            place, facing = pose
            ahead = cell_ahead(place, facing)
            moves: list[tuple[float, tuple[Place, int], str]] = [
                (1.0, (place, (facing - 1) % 4), "left"),
                (1.0, (place, (facing + 1) % 4), "right"),
            ]
            price, thing = self._price(ahead), self.known.cells.get(ahead, NOTHING)
            if price is not None and (unlocks or not thing.startswith("locked ")):
                is_shut = thing.startswith(("closed ", "locked "))
                moves.append((price, (ahead, facing), "toggle" if is_shut else "forward"))
            for more, after, step in moves:
                if after not in done:
                    count += 1
                    heapq.heappush(queue, (cost + more, count, after, (*steps, step)))
        return None

    def _price(self, place: Place) -> float | None:
        """The cost of entering a cell; `None` if it cannot be entered."""
        (left, top), (right, bottom) = self._box
        if not (left <= place[0] <= right and top <= place[1] <= bottom):
            return None
        thing = self.known.cells.get(place)
        if thing is None:
            return UNKNOWN
        if thing == NOTHING or thing.startswith("open "):
            return 1.0
        if thing.endswith(" goal"):
            return 1.0 if self._is_aim(thing) else None
        if thing.startswith("closed "):
            return 2.0
        if thing.startswith("locked ") and self._opens(thing):
            return 2.0
        return None

    def _is_aim(self, thing: str) -> bool:
        """Whether a goal may be entered: it is the most believable one."""
        goals = sorted({one for one in self.known.cells.values() if one.endswith(" goal")})
        paid, color = self.known.paid, self.errand.color
        best = min(goals, key=lambda goal: _rank(paid.get(goal), goal.startswith(color)))
        return self.errand.verb == "reach" and thing == best
