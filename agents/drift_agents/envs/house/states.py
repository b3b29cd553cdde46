"""States and tasks of the house: the words in them, errands, when two states are the same, and words for models."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import NamedTuple

from drift_agents.envs.matching import ParsedMatching
from drift_agents.policy.brief import fold_alternatives
from drift_agents.policy.ranked import PlainFacts
from drift_agents.prompt.view import PromptView, Recollection

_NAME = r"[a-z]+ \d+"
_COMMAND = re.compile(rf"(?P<verb>[a-z]+)(?: [a-z]+)? (?P<one>{_NAME})(?: [a-z/]+ (?P<other>{_NAME}))?")

_LIKE = {
    "go to": "go walk head run",
    "open": "open unlatch",
    "close": "close shut",
    "use": "use toggle switch",
    "examine": "examine inspect",
    "take from": "take grab get pick",
    "move to": "move put place set",
    "heat with": "heat warm",
    "cool with": "cool chill",
    "clean with": "clean wash rinse",
    "slice with": "slice cut",
}
"""By command, the verbs that mean it; `with` and its like stand between two names."""

_MEANT = {(" " in words and words != "go to", verb): words for words, verbs in _LIKE.items() for verb in verbs.split()}


@lru_cache(maxsize=65536)
def plain(command: str) -> str:
    """A command in the usual words; as it is where its verb is not known.

    Args:
        command: the command.

    Example:
        >>> plain("walk to shelf 2"), plain("put mug 1 in/on shelf 2"), plain("look"), plain("sing to mug 1")
        ('go to shelf 2', 'move mug 1 to shelf 2', 'look', 'sing to mug 1')
    """
    found = _COMMAND.fullmatch(command)
    if found is None:
        return command
    one, other = found["one"], found["other"]
    words = _MEANT.get((other is not None, found["verb"]))
    if words is None:
        return command
    if other is None:
        return f"{words} {one}"
    first, second = words.split(" ")
    return f"{first} {one} {second} {other}"


_LOOK = re.compile(r"(?:look at|examine) (?:an? |the |some )?(?P<thing>[a-z]+) (?:under|with) the (?P<target>[a-z]+)")
_PUT = re.compile(
    r"put (?P<count>two |an? |some |the )?(?P<mark>hot |cool |cold |clean )?(?P<thing>[a-z]+) (?:in|on|in/on) "
    r"(?:an? |the )?(?P<target>[a-z]+)"
)
_MARKS = {"hot": "hot", "cool": "cold", "cold": "cold", "clean": "clean"}

WAYS: dict[str, tuple[tuple[str, str], ...]] = {
    "hot": (("heat", "microwave"), ("cool", "fridge")),
    "cold": (("cool", "fridge"), ("heat", "microwave")),
    "clean": (("clean", "sinkbasin"), ("clean", "bathtubbasin")),
}
"""Pairs of a command and the kind of appliance that takes it."""

LIKE = {
    one: other
    for pair in (("mug", "cup"), ("pen", "pencil"), ("fork", "spoon"), ("knife", "butterknife"), ("plate", "bowl"))
    for one, other in (pair, pair[::-1])
}

LIKELY: dict[str, tuple[str, ...]] = {
    "kitchen": ("countertop", "cabinet", "diningtable", "fridge", "sinkbasin", "drawer", "garbagecan", "stoveburner"),
    "desk": ("desk", "drawer", "dresser", "sidetable", "shelf", "coffeetable", "tvstand", "sofa", "bed", "armchair"),
    "bath": ("countertop", "cabinet", "toilet", "cart", "bathtubbasin", "sinkbasin", "shelf"),
}
_GROUPS = {
    "kitchen": "apple bread egg lettuce potato tomato mug cup bowl plate pan pot fork spoon knife butterknife spatula "
    "ladle peppershaker saltshaker winebottle dishsponge",
    "desk": "pen pencil cd cellphone creditcard keychain watch alarmclock book newspaper laptop statue box "
    "remotecontrol",
    "bath": "soapbar soapbottle cloth spraybottle toiletpaper candle",
}
GROUP_OF = {kind: group for group, kinds in _GROUPS.items() for kind in kinds.split()}


class Errand(NamedTuple):
    """What is wanted.

    Args:
        thing: the word for the things.
        target: the kind of furniture to put them in or on, or the lamp to look at them under.
        mark: `hot`, `cold` or `clean`, or "".
        number: how many.
        is_light: whether it is to be looked at under a lamp.
    """

    thing: str
    target: str
    mark: str = ""
    number: int = 1
    is_light: bool = False


@lru_cache(maxsize=4096)
def parse_errand(task: str) -> Errand | None:
    """Parse a task; `None` if it is no task of a house.

    Args:
        task: the task in words.

    Example:
        >>> parse_errand("put a hot mug in shelf")
        Errand(thing='mug', target='shelf', mark='hot', number=1, is_light=False)
        >>> parse_errand("look at book under the desklamp").is_light
        True
    """
    text = task.lower().strip().rstrip(".")
    if (found := _LOOK.search(text)) is not None:
        return Errand(found["thing"], found["target"], is_light=True)
    if (found := _PUT.search(text)) is None:
        return None
    mark = _MARKS.get((found["mark"] or "").strip(), "")
    return Errand(found["thing"], found["target"], mark, 2 if found["count"] == "two " else 1)


def kind_of(name: str) -> str:
    """The kind in a name.

    Example:
        >>> kind_of("shelf 12")
        'shelf'
    """
    return name.rpartition(" ")[0]


def is_common(thing: str, furniture: str) -> bool:
    """Whether a kind of thing is commonly kept in or on a kind of furniture; unknown kinds may be anywhere.

    Args:
        thing: the kind of thing.
        furniture: the kind of furniture.
    """
    return thing not in GROUP_OF or furniture in LIKELY[GROUP_OF[thing]]


def likely_rank(thing: str, furniture: str) -> int:
    """How far down the list of common places a kind of furniture stands, from 0.

    Args:
        thing: the kind of thing.
        furniture: the kind of furniture.
    """
    places = LIKELY[GROUP_OF.get(thing, "desk")]
    return places.index(furniture) if furniture in places else len(places)


NOTHING = "nothing"
"""What a state shows for an empty hand, and as the place before the first step."""

_TEXTS = ("task", "at", "door", "holds", "says")
_LISTS = ("sees", "done", "opened", "visited")


class ShownHouse(NamedTuple):
    """A state of a house, parsed from its JSON text.

    Args:
        house: the number of the house.
        task: the task in words.
        at: the furniture where the agent stands, or `nothing`.
        door: `open`, `closed` or `locked`, or `none` where it has no door.
        holds: the thing in the hand, or `nothing`.
        says: the last answer, where the other fields do not show it.
        sees: the things that are seen.
        done: the commands of this episode that had an effect.
        opened: the furniture that is open.
        visited: the furniture into which the agent has looked in this episode.
    """

    house: int
    task: str
    at: str
    door: str
    holds: str
    says: str
    sees: tuple[str, ...]
    done: tuple[str, ...]
    opened: tuple[str, ...]
    visited: tuple[str, ...]

    @property
    def is_seen(self) -> bool:
        """Whether the agent sees into or onto the furniture where it stands."""
        return self.at != NOTHING and self.door in ("none", "open")


@lru_cache(maxsize=32768)
def read_house_state(state: str) -> ShownHouse | None:
    """Parse a state; `None` if the text is no state of a house.

    Args:
        state: the text state.

    Example:
        >>> text = '{"house": 7, "task": "put a mug in bed", "at": "bed 1", "door": "none", "sees": ["book 1"], '
        >>> shown = read_house_state(text + '"holds": "nothing", "done": [], "opened": [], "visited": [], "says": ""}')
        >>> shown.at, shown.sees, shown.is_seen
        ('bed 1', ('book 1',), True)
    """
    try:
        shown = json.loads(state)
        texts = [str(shown[name]) for name in _TEXTS]
        lists = [tuple(map(str, shown[name])) for name in _LISTS]
        return ShownHouse(int(shown["house"]), *texts, *lists)  # type: ignore[arg-type]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


class HouseMatching(ParsedMatching[ShownHouse]):
    """Place, hand and what was done so far; the task while something was done.

    With an empty hand and nothing done, no command can complete a task, so that records of one task apply to all
    others in the same house. As soon as something was done the task belongs to the state. What was opened and
    visited before does not: it decides what is seen of furniture, so an outcome that shows a closed door is the
    same as one that shows what is behind it.

    Texts that are no states of a house are compared as they are.

    Example:
        >>> rule = HouseMatching()
        >>> one = '{"house": 7, "task": "put a mug in bed", "at": "bed 1", "door": "none", "sees": [], '
        >>> one += '"holds": "nothing", "done": [], "opened": [], "visited": ["bed 1"], "says": ""}'
        >>> rule.state_key(one) == rule.state_key(one.replace("a mug", "a cup"))
        True
        >>> rule.state_key(one) == rule.state_key(one.replace("bed 1", "sofa 1"))
        False
    """

    name = "house"
    parse = staticmethod(read_house_state)

    def key(self, shown: ShownHouse) -> Hashable:
        """House, place, hand and what was done; the task if anything was done."""
        return shown.house, shown.at, shown.holds, shown.done, shown.task if shown.done else ""

    def path_key(self, state: str) -> Hashable:
        """The key with the task and what is open: a path leads to the score of its own task, through opened doors."""
        shown = self.parse(state)
        return state if shown is None else (self.key(shown), shown.task, shown.door)

    def is_same(self, one: ShownHouse, other: ShownHouse) -> bool:
        """Whether place, hand, what was done and what is seen are the same."""
        if (one.at, one.holds, one.done, one.says) != (other.at, other.holds, other.done, other.says):
            return False
        if not (one.is_seen and other.is_seen):
            return "locked" not in (one.door, other.door) or one.door == other.door
        return set(one.sees) == set(other.sees)

    def is_relevant(self, here: ShownHouse, there: ShownHouse) -> bool:
        """In the same house all are; in another one those where nothing was done, or something was treated.

        Kinds of things are kept in like places.
        """
        return not there.done or here.house == there.house or len(there.done) > 1


class HouseFacts(PlainFacts):
    """Where the agent stands, what it sees, holds and has done.

    Example:
        >>> state = '{"house": 7, "task": "put a mug in bed", "at": "shelf 1", "door": "none", "sees": ["mug 2"], '
        >>> state += '"holds": "nothing", "done": [], "opened": [], "visited": ["shelf 1"], "says": ""}'
        >>> HouseFacts().describe_state(state)
        'shelf 1, seeing mug 2, holding nothing'
    """

    best_score = 1.0
    cut_states = ('{"house": ', "a place")

    def describe_state(self, state: str) -> str:
        """Place, door, what is seen, the hand, what was done, and the last answer; another text as it is."""
        shown = read_house_state(state)
        if shown is None:
            return state
        words = [_place(shown), f"holding {shown.holds}"]
        if shown.done:
            words.append(f"after {', '.join(shown.done)}")
        if shown.says:
            words.append(f'with the answer "{shown.says}"')
        return ", ".join(words)

    def is_of_other_task(self, item: Recollection, view: PromptView) -> bool:
        """Whether the outcome was seen in another task: its way may lead to that task's score."""
        then, now = read_house_state(item.outcome.state), read_house_state(view.state)
        return then is not None and now is not None and then.task != now.task

    def brief_fields(self, view: PromptView) -> Mapping[str, str]:
        """`opened` and `visited`, folded, and `said`, a line with the last answer."""
        shown = read_house_state(view.state)
        if shown is None:
            return {"said": ""}
        lists = {"opened": shown.opened, "visited": shown.visited}
        folded = {name: fold_alternatives(values) if values else NOTHING for name, values in lists.items()}
        return {**folded, "said": f"\nThe last answer: {shown.says}" if shown.says else ""}

    def brief_outcome(self, item: Recollection) -> str:
        """The place, and what differs from before; another text as it is."""
        before, after = read_house_state(item.state), read_house_state(item.outcome.state)
        if before is None or after is None:
            return item.outcome.state
        words = [_place(after)]
        if after.holds != before.holds:
            words.append(f"holding {after.holds}")
        words += [step for step in after.done if step not in before.done and step != item.action]
        if after.says:
            words.append(f'with the answer "{after.says}"')
        return ", ".join(words)

    def brief_end(self, item: Recollection) -> str:
        """What was done, and what was there before; where nothing was done, the place and the action."""
        before, shown = read_house_state(item.state), read_house_state(item.outcome.state)
        if shown is None or not shown.done:
            return super().brief_end(item)
        sights = ", ".join(before.sees) if before is not None and before.at == shown.at else ""
        return ", ".join(shown.done) + f" (seeing {sights})" * bool(sights)

    def state_fields(self, state: str) -> Mapping[str, str]:
        """`place`, `hand`, `done`, `opened`, `visited` and `says`, each in words."""
        shown = read_house_state(state)
        if shown is None:
            return {"place": state} | dict.fromkeys(("hand", "done", "opened", "visited", "says"), "unknown")
        lists = {"done": shown.done, "opened": shown.opened, "visited": shown.visited}
        return {
            "place": _place(shown),
            "hand": shown.holds,
            **{name: ", ".join(values) or NOTHING for name, values in lists.items()},
            "says": shown.says or NOTHING,
        }


def _place(shown: ShownHouse) -> str:
    if shown.at == NOTHING:
        return "the start"
    if not shown.is_seen:
        return f"{shown.at}, which is {shown.door}"
    return f"{shown.at}, seeing {', '.join(shown.sees) or NOTHING}"
