"""Rule-based message policies: they parse the messages to a language model and nothing else, without a model.

* `MessageReader` - follows the highest score that the messages show, and common sense where they show none
* `ForgetfulReader` - the same, which overlooks a part of the known outcomes
* `ErringReader` - the same, which answers with another action at a stated rate
* `MessageModel` - the model behind them: messages in, an action out
* `read_text`, `MessageText`, `KnownOutcome` - what the messages say, in any format
* `CommonSense` and its subclasses, one an environment - what is done where the messages show no score

They measure what a prompt lets a policy do: a prompt with which these policies move in circles cannot be expected
to serve a language model. Experiments name them by this file and its hash, so the file stands alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from drift_agents.envs.house.states import WAYS, Errand, kind_of, likely_rank, parse_errand
from drift_agents.envs.tools.beliefs import DeskBeliefs
from drift_agents.envs.tools.desk import read_manual, read_wish
from drift_agents.envs.tools.planner import DeskPlan
from drift_agents.envs.tools.states import read_desk_state
from drift_agents.envs.webshop.instructions import ParsedInstruction, parse_instruction, prior_colors, read_price, stems
from drift_agents.envs.webshop.states import PRICE, Listing, OptionGroup, find_options, read_results, read_title
from drift_agents.llm.base import Completion, Message
from drift_agents.policy.base import Reply
from drift_agents.policy.brief import BRIEF, unfold_alternatives
from drift_agents.policy.llm import LanguageModelPolicy
from drift_agents.prompt.view import CONFLICTS, PromptView

from drift_envs.checks import check_choice, check_interval


class KnownOutcome(NamedTuple):
    """One outcome that the messages report.

    Args:
        action: the action.
        outcome: what it led to, in the words of the messages.
        before: the state before, in those words; empty for the present state.
        score: the highest score that is reachable from there, or the score that was reached.
        steps: the steps to that score; 0 if the messages do not say.
        ended: whether the episode ended.
        last: when it was last seen; -1 if the messages do not say.
        visits: how often the episode has been in the state that it led to; 0 if the messages do not say.
    """

    action: str
    outcome: str
    before: str = ""
    score: float = 0.0
    steps: int = 0
    ended: bool = False
    last: int = -1
    visits: int = 0


class MessageText(NamedTuple):
    """What the messages say.

    Args:
        text: the messages.
        actions: the admissible actions.
        known: outcomes in the present state.
        elsewhere: outcomes in other states.
        lessons: what lessons say of the present state, with the score at the end of the way that they tell.
        moves: the newest steps of the episode, oldest first.
        visits: how often each action was executed in this state earlier in this episode.
        doubt_since: the step before which experience may not hold any more.
        is_shut: whether the messages say that no known way leads on.
    """

    text: str
    actions: tuple[str, ...]
    known: tuple[KnownOutcome, ...] = ()
    elsewhere: tuple[KnownOutcome, ...] = ()
    lessons: tuple[KnownOutcome, ...] = ()
    moves: tuple[KnownOutcome, ...] = ()
    visits: tuple[tuple[str, int], ...] = ()
    doubt_since: int = -1
    is_shut: bool = False

    def times(self, action: str) -> int:
        """How often an action was executed in this state earlier in this episode."""
        return dict(self.visits).get(action, 0)

    def is_stale(self, known: KnownOutcome) -> bool:
        """Whether an outcome was last seen before the messages say that the environment has changed."""
        return 0 <= known.last < self.doubt_since


_NUMBER = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"
_ACTION = r"(?P<action>\w+\[.*?\]|.+?)(?: \([^)]*\))?"
_LINE = re.compile(
    rf"^- (?:(?:(?:in|on|from) (?P<before>.*?) )?action )?{_ACTION} led to:? (?P<outcome>.*?)"
    rf"(?:\. (?:Seen (?:once|{_NUMBER} times), l|L)ast at (?:step )?(?P<last>-?\d+)(?P<rest>.*))?\.?$"
)
_AHEAD = re.compile(
    rf"(?:Highest score reachable from there:|\. Score) (?P<score>{_NUMBER})(?:, in (?P<steps>\d+) more step)?"
)
_ENDED = re.compile(rf"(?:the episode|:) ended with score (?P<score>{_NUMBER})")
_SO_FAR = re.compile(rf", score so far (?P<score>{_NUMBER})$")
_REACT = re.compile(rf" \(score (?P<score>{_NUMBER})\)\. (?P<end>The episode (?:ended there|went on))$")
_PAPER = re.compile(
    r"^  (?:(?P<names>[\w ]+) then: (?P<values>.*)\n  )?"
    r"Action taken: (?P<action>.*)\n(?P<body>(?:  .*\n?)*)",
    re.MULTILINE,
)
_PAPER_SCORE = re.compile(rf"Max score achievable from this path: (?P<score>{_NUMBER})")
_RESULT = re.compile(r"Result (\w+): ")
_BEEN = re.compile(r"(?:You have been \S.*?|Been there) (?P<count>\d+) time\(s\)(?: in this episode)?\.?$")
_VISITED = re.compile(
    r"^(?:Earlier in this episode .*? and executed|Executed here in this episode): (?P<visits>.*)$", re.MULTILINE
)
_VISIT = re.compile(rf"{_ACTION}:? (?P<count>\d+) time\(s\)(?:, |$)")
_DOUBT = re.compile(r"before step (?P<since>\d+),? may not hold any more")
_ENDS = re.compile(rf"^- (?:old, )?score (?P<score>{_NUMBER}): (?P<ends>.*)$")
_END = re.compile(r"(?P<end>.*?) at (?P<last>\d+)(?:; |$)")

_SHUT = re.compile(r"^All known ways (?:from here )?are shut", re.MULTILINE)
_PRESENT = re.compile(r"^Current (?:position|state): (?P<state>.*?)\.(?: This is step|$)", re.MULTILINE)
_WAY = re.compile(
    rf"From (?P<start>(?:(?!From ).)*?) do (?P<steps>\".*?): score (?P<score>{_NUMBER})(?:, the end)?, "
    r"last seen at step (?P<last>\d+)"
)

_HERE, _ELSEWHERE, _MOVES = "here", "elsewhere", "moves"
_SECTIONS = (
    (re.compile(r"^What is known of other "), _ELSEWHERE),
    (re.compile(r"^(?:What is known|Known) "), _HERE),
    (re.compile(r"^(?:Your n|N)ewest steps"), _MOVES),
    (re.compile(r"^Ends seen elsewhere"), _ELSEWHERE),
    (re.compile(r"^Below are observations of other steps"), _ELSEWHERE),
    (re.compile(r"^Below are observations of steps from the current"), _HERE),
)


def read_text(text: str, actions: tuple[str, ...]) -> MessageText:
    """Parse the text of messages.

    Args:
        text: the messages, one after the other.
        actions: the admissible actions.

    Example:
        >>> line = "- action 1 (down) led to [1, 0], tile F. Seen once, last at step 3. "
        >>> line += "Highest score reachable from there: 1, in 4 more steps."
        >>> read_text("What is known in this position:" + chr(10) + line, ("0", "1")).known[0].steps
        4
    """
    found: dict[str, list[KnownOutcome]] = {_HERE: [], _ELSEWHERE: [], _MOVES: []}
    section = ""
    for line in text.split("\n"):
        if not line.startswith("- "):
            section = next((name for mark, name in _SECTIONS if mark.match(line)), "")
        elif section and (ends := _ENDS.match(line)):
            found[section] += _read_ends(ends)
        elif section and (known := _read_line(line)):
            found[section].append(known)
    visited, doubt = _VISITED.search(text), _DOUBT.search(text)
    visits = [(one["action"], int(one["count"])) for one in _VISIT.finditer(visited["visits"])] if visited else []
    return MessageText(
        text,
        actions,
        (*found[_HERE], *_read_paper(text)),
        tuple(found[_ELSEWHERE]),
        tuple(_read_lessons(text)),
        tuple(found[_MOVES]),
        tuple(visits),
        int(doubt["since"]) if doubt else -1,
        _SHUT.search(text) is not None,
    )


def _read_ends(ends: re.Match[str]) -> Iterator[KnownOutcome]:
    """The ends with one score, in the format `brief`."""
    for end in _END.finditer(ends["ends"]):
        yield KnownOutcome("", end["end"], score=float(ends["score"]), ended=True, last=int(end["last"]))


def _read_line(line: str) -> KnownOutcome | None:
    """A line of the formats `brief`, `ranked`, `raw` and `react`."""
    match = _LINE.match(line)
    if match is None:
        return None
    outcome, rest = match["outcome"], match["rest"] or ""
    ahead = _AHEAD.search(rest) or _SO_FAR.search(outcome) or _REACT.search(outcome)
    ended = _ENDED.search(outcome)
    steps = ahead.groupdict().get("steps") if ahead else None
    been = _BEEN.search(rest)
    return KnownOutcome(
        match["action"],
        _REACT.sub("", outcome),
        match["before"] or "",
        float((ended or ahead or {"score": 0.0})["score"]),
        int(steps or 0),
        ended is not None or "The episode ended there" in outcome,
        int(match["last"] or -1),
        int(been["count"]) if been else 0,
    )


def _read_lessons(text: str) -> Iterator[KnownOutcome]:
    """The steps from the present state in the trajectories of lessons."""
    present = _PRESENT.search(text)
    for way in _WAY.finditer(text) if present else ():
        states, actions = [way["start"]], []
        for step in way["steps"].split(", then do "):
            action, _, after = step.partition(" to get to ")
            actions.append(action.strip('"'))
            states.append(after)
        for place, action in enumerate(actions):
            if present is not None and states[place] == present["state"]:
                score, ahead = float(way["score"]), len(actions) - place - 1
                yield KnownOutcome(action, states[place + 1], "", score, ahead, not ahead, int(way["last"]))


def _read_paper(text: str) -> Iterator[KnownOutcome]:
    """The records of the formats `paper` and `full`."""
    ends = ("The episode ended there", *(["tile H"] if _sense_of(text) is FrozenLakeSense else []))
    for match in _PAPER.finditer(text):
        body = match["body"]
        score = _PAPER_SCORE.search(body)
        outcome = ", ".join(part.strip() for part in body.split("\n") if part.strip() and "Max score" not in part)
        outcome = _RESULT.sub(lambda found: f"{found[1].lower()} ", outcome)
        names, values = (match["names"] or "").lower().split(" and "), (match["values"] or "").split(", ")
        before = ", ".join(f"{name} {value}" for name, value in zip(names, values, strict=False) if value)
        yield KnownOutcome(
            match["action"],
            outcome,
            before,
            float(score["score"]) if score else 0.0,
            ended=any(words in outcome for words in ends),
        )


OLD_FAILURE, NEW_FAILURE = -0.25, -0.5
"""Values of an action that brought no score, before and after memory was contradicted; 0 for an untried one."""
ENOUGH = 0.999
"""A score from which on no better one is looked for."""


class CommonSense:
    """What is sensible in any environment: to repeat what pays, else to try what is untried.

    Example:
        >>> CommonSense().choose(MessageText("", ("wait", "open")))
        ['wait', 'open']
    """

    follows_scores = True
    """Whether an action is taken because of the score that the messages show for it."""

    def choose(self, read: MessageText) -> list[str]:
        """The actions that make sense, equally good ones in the order of the messages.

        Args:
            read: the parsed messages.
        """
        return choose_untried(read)


def choose_untried(read: MessageText) -> list[str]:
    """Actions with the highest score, then untried ones, then those that brought none; repeated ones last.

    Of actions that brought none, those last seen before memory was contradicted come first: that may have changed.

    Args:
        read: the parsed messages.
    """
    scores: dict[str, float] = {}
    fresh = {known.action for known in read.known if not read.is_stale(known)}
    for known in read.known:
        brought = known.score or (NEW_FAILURE if known.action in fresh else OLD_FAILURE)
        scores[known.action] = max(scores.get(known.action, -1.0), brought)
    values = {action: scores.get(action, 0.0) - read.times(action) for action in read.actions}
    return [action for action, value in values.items() if value == max(values.values())]


_POSITION = re.compile(r"\[(\d+), (\d+)\]")
_TILE = re.compile(r"^- (\[\d+, \d+\])$", re.MULTILINE)
"""A tile of the episode, in the format `brief`."""
_DIRECTIONS = {"left": (0, -1), "down": (1, 0), "right": (0, 1), "up": (-1, 0)}

ENDS, BLOCKED, REPEATED = 100.0, 90.0, 4.0
"""Costs, in tiles, of an action that led to an end without score, that changed nothing, and of each repetition."""
STALE = REPEATED
"""The cost of an action that led to an end without score before memory was contradicted: it may have changed."""


class FrozenLakeSense(CommonSense):
    """Directions towards a destination, away from known holes and from where the episode has been."""

    def choose(self, read: MessageText) -> list[str]:
        """The directions that cost least, in the order of the messages.

        Args:
            read: the parsed messages.
        """
        here, goals, size = _read_lake(read.text)
        dead = _dead_ends(read)
        paid = [known for known in read.elsewhere if known.ended and known.score > 0]
        paying = {place for known in paid for place in _places(known.outcome)}
        targets = [goal for goal in goals if goal not in paying] or goals
        walked = [place for move in read.moves for place in _places(move.before)]
        walked += [place for line in _TILE.findall(read.text) for place in _places(line)]
        costs: dict[str, float] = {}
        for action, name in re.findall(r"(\d) (left|down|right|up)\b", read.text):
            if action not in read.actions or action in costs:
                continue
            row, column = here[0] + _DIRECTIONS[name][0], here[1] + _DIRECTIONS[name][1]
            is_inside = 0 <= row < size[0] and 0 <= column < size[1]
            cost = float(min((abs(row - r) + abs(column - c) for r, c in targets), default=0))
            cost += max(0.0 if is_inside else BLOCKED, _newest_cost(read, action, dead.get((row, column), (-1, 0.0))))
            been = max([walked.count((row, column)), *(known.visits for known in read.known if known.action == action)])
            costs[action] = cost + REPEATED * read.times(action) + 2 * been
        return [action for action, cost in costs.items() if cost == min(costs.values())]


def _known_cost(read: MessageText, known: KnownOutcome) -> float:
    if known.ended and known.score == 0:
        return STALE if read.is_stale(known) else ENDS
    return BLOCKED if "nothing changed" in known.outcome else 0.0


def _newest_cost(read: MessageText, action: str, dead: tuple[int, float]) -> float:
    """The cost of what was seen last: of an action, or of the tile that it leads to from another one."""
    seen = [dead, *((known.last, _known_cost(read, known)) for known in read.known if known.action == action)]
    newest = max(last for last, _ in seen)
    return max(cost for last, cost in seen if last == newest)


def _dead_ends(read: MessageText) -> dict[tuple[int, int], tuple[int, float]]:
    """When a tile was last seen to end an episode without score, and what that costs."""
    found: dict[tuple[int, int], tuple[int, float]] = {}
    for known in read.elsewhere:
        if known.ended and known.score == 0:
            for place in _places(known.outcome):
                found[place] = max(found.get(place, (-1, 0.0)), (known.last, _known_cost(read, known)))
    return found


def _places(words: str) -> list[tuple[int, int]]:
    return [(int(row), int(column)) for row, column in _POSITION.findall(words)]


def _read_lake(text: str) -> tuple[tuple[int, int], list[tuple[int, int]], tuple[int, int]]:
    """The present position, the destinations, and the number of rows and columns."""
    at = re.search(r"(?:[Cc]urrent [Pp]osition: |current observation is: \{\"cur_pos\": )(\[\d+, \d+\])", text)
    goals = re.search(r"(?:Destinations: |destination\(s\): )((?:\[\d+, \d+\](?:, )?)+)", text)
    size = re.search(r"(\d+) rows x (\d+) columns", text)
    return (
        _places(at[1])[0] if at else (0, 0),
        _places(goals[1]) if goals else [],
        (int(size[1]), int(size[2])) if size else (99, 99),
    )


_SIGNED = r"(-?\d+(?:\.\d+)?(?:e-?\d+)?)"
_MOTION = re.compile(rf"[Pp]osition\W*? {_SIGNED}\W+(?:Current )?[Vv]elocity\W*? {_SIGNED}")

_CHANGE = re.compile(r"velocity ([+-]\d+\.\d+)")
"""What an action did to the velocity, in the format `brief`."""


class MountainCarSense(CommonSense):
    """The push in the direction of the motion, by what pushes did to the velocity in the messages."""

    follows_scores = False
    """A score that is reachable from a cell does not say from which motion in it."""

    def choose(self, read: MessageText) -> list[str]:
        """The push in the direction of the motion; all actions if none is recognised.

        Args:
            read: the parsed messages.
        """
        current = re.search(rf"Current [Pp]osition: {_SIGNED}\W+Current [Vv]elocity: {_SIGNED}", read.text)
        found = current or _MOTION.search(read.text.rpartition("current observation is")[2])
        velocity = float(found[2]) if found else 0.0
        fresh = [known for known in (*read.known, *read.elsewhere) if not read.is_stale(known)]
        direction = _push_direction([*fresh, *read.moves], float(found[1]) if found else 0.0)
        names = dict(re.findall(r"(\d) push (left|right)", read.text))
        wanted = "right" if (velocity >= 0) == (direction >= 0) else "left"
        return [action for action in read.actions if names.get(action) == wanted] or list(read.actions)


def _push_direction(steps: list[KnownOutcome], position: float) -> float:
    """How much a push to the right changes the velocity: a straight line through the steps of the messages."""
    rows, changes = [], []
    for step in steps:
        if (change := _CHANGE.match(step.outcome)) and step.action in ("0", "1", "2"):
            rows.append((np.cos(3 * position), int(step.action) - 1.0))
            changes.append(float(change[1]))
            continue
        before, after = _MOTION.search(step.before), _MOTION.search(step.outcome)
        if after and step.action in ("0", "1", "2") and abs(float(after[2])) > 1e-9:
            x, v = (float(before[1]), float(before[2])) if before else (position, np.nan)
            if not np.isnan(v):
                rows.append((np.cos(3 * x), int(step.action) - 1.0))
                changes.append(float(after[2]) - v)
    if not rows:
        return 1.0
    slope, *_ = np.linalg.lstsq(np.array(rows), np.array(changes), rcond=None)
    return float(slope[1]) if abs(slope[1]) > 1e-6 else 1.0


_HOUSE = re.compile(
    r"^You are at (?P<at>.*?)(?:, (?:seeing|which is) .*?)?\. In your hand: (?P<holds>.*?)\. "
    r"Done so far: (?P<done>.*?)\. Open: .*?\. Visited: (?P<visited>.*?)\.$",
    re.MULTILINE,
)
_TASK = re.compile(r"^Task: (.*)$", re.MULTILINE)
_SEEN = re.compile(r"^(?P<place>[a-z]+ \d+), seeing (?P<things>.*?)(?:, holding |$)")
_SEEN_AT_END = re.compile(r"\b(?P<place>[a-z]+ \d+) \(seeing (?P<things>.*?)\)$")
_TOOK = re.compile(r"\btake (?P<thing>[a-z]+ \d+) from (?P<place>[a-z]+ \d+)")


class _Place(NamedTuple):
    """Where the agent is, and what it has done."""

    at: str
    holds: str
    done: tuple[str, ...]
    visited: tuple[str, ...]


class HouseSense(CommonSense):
    """Takes the thing that is wanted, treats it, and brings it to its place; looks first where it was seen last."""

    def choose(self, read: MessageText) -> list[str]:
        """The commands that make sense, equally good ones in the order of the messages.

        Args:
            read: the parsed messages.
        """
        here, task = _HOUSE.search(read.text), _TASK.search(read.text)
        errand = parse_errand(task[1]) if task else None
        if here is None or errand is None:
            return choose_untried(read)
        visited = [place for places in here["visited"].split(", ") for place in unfold_alternatives(places)]
        place = _Place(here["at"], here["holds"], tuple(here["done"].split(", ")), tuple(visited))
        carries = kind_of(place.holds) == errand.thing
        steps = _bring(read, place, errand) if carries else _find(read, place, errand)
        return next(([step] for step in steps if step in read.actions), None) or choose_untried(read)


def _bring(read: MessageText, place: _Place, errand: Errand) -> Iterator[str]:
    """Commands with the thing in the hand, the best ones first."""
    if errand.mark and not any(re.match(rf"(?:heat|cool|clean) {place.holds} ", step) for step in place.done):
        for verb, kind in WAYS[errand.mark]:
            yield f"{verb} {place.holds} with {place.at}"
            yield from _go(read, kind)
    if errand.is_light:
        yield from (action for action in read.actions if action.startswith(f"use {errand.target} "))
        yield from _search(read, place, errand.target)
    if kind_of(place.at) == errand.target:
        yield f"move {place.holds} to {place.at}"
        yield f"open {place.at}"
    yield from _go(read, errand.target, place.visited)
    yield from _go(read, errand.target)


def _find(read: MessageText, place: _Place, errand: Errand) -> Iterator[str]:
    """Commands with an empty hand, or another thing in it, the best ones first."""
    moved = {step.split(" to ")[0].removeprefix("move ") for step in place.done if step.startswith("move ")}
    for action in read.actions:
        took = _TOOK.fullmatch(action)
        if took and kind_of(took["thing"]) == errand.thing and took["thing"] not in moved:
            yield action
    yield from _search(read, place, errand.thing)
    yield from (action for action in read.actions if action.startswith(f"move {place.holds} to "))


def _search(read: MessageText, place: _Place, kind: str) -> Iterator[str]:
    """Opens what is closed here, goes where the kind was seen, newest first, then where such things are kept."""
    if not any(move.action == f"open {place.at}" for move in read.moves):
        yield f"open {place.at}"
    seen = sorted(((last, where) for last, where in _sightings(read, kind) if where not in place.visited), reverse=True)
    yield from (f"go to {where}" for _, where in seen)
    unseen = [action for action in read.actions if action.startswith("go to ") and action[6:] not in place.visited]
    yield from sorted(unseen, key=lambda action: likely_rank(kind, kind_of(action[6:])))


def _sightings(read: MessageText, kind: str) -> Iterator[tuple[int, str]]:
    """When and where things of a kind were seen or taken, but for what may not hold any more."""
    for known in (*read.known, *read.elsewhere):
        if read.is_stale(known):
            continue
        found = _SEEN.match(known.outcome) or _SEEN_AT_END.search(known.outcome)
        if found and any(kind_of(thing) == kind for thing in found["things"].split(", ")):
            yield known.last, found["place"]
        yield from (
            (known.last, took["place"]) for took in _TOOK.finditer(known.outcome) if kind_of(took["thing"]) == kind
        )


def _go(read: MessageText, kind: str, visited: tuple[str, ...] = ()) -> Iterator[str]:
    """Ways to furniture of a kind that was not visited."""
    for action in read.actions:
        if action.startswith("go to ") and kind_of(action[6:]) == kind and action[6:] not in visited:
            yield action


_STATE = re.compile(r'(?:Current state|current observation is): (?=\{"shop": )')


class ToolsSense(CommonSense):
    """Looks up, writes, checks and ends; of several ways that make sense one that was not tried in this state."""

    def choose(self, read: MessageText) -> list[str]:
        """The calls that make sense, the best ones first.

        Args:
            read: the parsed messages.
        """
        found = _STATE.search(read.text)
        shown = read_desk_state(_first_object(read.text[found.end() :])) if found else None
        wish = None if shown is None else read_wish(shown.request)
        if shown is None or wish is None:
            return choose_untried(read)
        beliefs = DeskBeliefs(PromptView(read.text, "{}", read.actions), CONFLICTS[0])
        calls = DeskPlan(shown, wish, read_manual(read.text), beliefs, read.actions).calls()
        if not calls:
            return choose_untried(read)
        return [min(calls, key=lambda call: (read.times(call), self._has_failed(read, call), calls.index(call)))]

    def _has_failed(self, read: MessageText, call: str) -> bool:
        """Whether the newest known outcome of a call in this state is no score at the end."""
        known = [one for one in read.known if one.action == call and not read.is_stale(one)]
        newest = max(known, key=lambda one: one.last, default=None)
        return newest is not None and newest.ended and not newest.score


def _first_object(text: str) -> str:
    """The JSON object with which a text begins."""
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return ""
    return text[:end]


_ADVERTISEMENT = re.compile(r'^"Advertisement|/ad/')
_ORDER = re.compile(r"^click\[(?:confirm|place|complete)")
FEATURES, BACK = "click[features]", "click[< prev]"


class WebShopSense(CommonSense):
    """Searches, opens the listing with most words of the instruction, chooses what it names, buys."""

    def choose(self, read: MessageText) -> list[str]:
        """The actions that make sense on this page, equally good ones in the order of the messages.

        Args:
            read: the parsed messages.
        """
        if len(read.actions) == 1:
            return list(read.actions)
        lines = _page_lines(read.text)
        if any(line.startswith("Advertisement") for line in lines[:3]):
            leaving = [one.action for one in read.known if not _ADVERTISEMENT.search(one.outcome)]
            return [action for action in leaving if not read.times(action)] or choose_untried(read)
        if orders := [action for action in read.actions if _ORDER.search(action)]:
            return orders
        title, _, shown = read_title(lines)
        instruction = _instruction(read.text)
        if title:
            return _choose_on_listing(read, title, shown, instruction)
        listings = [one for one in read_results(lines).listings if one.action in read.actions]
        if listings:
            return _choose_listing(read, listings, instruction)
        back = [action for action in read.actions if action == BACK]
        return back or choose_untried(read)


def _page_lines(text: str) -> tuple[str, ...]:
    body = re.search(r"(?:The page shows|Your current observation is):\n(.*?)\n\n", text, re.DOTALL)
    lines = body[1].split("\n") if body else []
    if lines and "Instruction:" in lines[:2]:  # other formats show the instruction on the page
        at = lines.index("Instruction:")
        lines = lines[:at] + lines[at + 2 :]
    return tuple(" ".join(line.split()) for line in lines)


def _instruction(text: str) -> str:
    found = re.search(r"(?:^Instruction: |Your task is to: )(.*)$", text, re.MULTILINE)
    return found[1] if found else ""


def _score_of(read: MessageText, action: str) -> float | None:
    """The highest score that the messages show for an action; `None` for an untried one."""
    return max((known.score for known in read.known if known.action == action), default=None)


def _choose_listing(read: MessageText, listings: list[Listing], instruction: str) -> list[str]:
    wanted = parse_instruction(instruction)
    values = {}
    for listing in listings:
        known = _score_of(read, listing.action)
        price = read_price(listing.price)
        value = len(wanted.words & stems(listing.title)) / max(1, len(wanted.words))
        value -= 1.0 if price is not None and price > wanted.limit else 0.0
        # What was bought and scored less than wanted comes after what was not bought yet.
        value -= 0.0 if not known else 1.0 - known / 2
        values[listing.action] = value - read.times(listing.action) * 0.5
    best = max(values.values())
    if best < 0 and "click[next >]" in read.actions and read.times("click[next >]") == 0:
        return ["click[next >]"]
    return [action for action, value in values.items() if value == best]


def _choose_on_listing(read: MessageText, title: str, shown: tuple[str, ...], instruction: str) -> list[str]:
    chosen = re.search(r"^Chosen options: (.*)$", read.text, re.MULTILINE)
    has = dict(pair.split(": ", 1) for pair in chosen[1].split(", ") if ": " in pair) if chosen else {}
    wanted = parse_instruction(instruction)
    groups = _option_groups(read, shown)
    if not has and (look := _look_closer(read, title, wanted, groups)):
        return [look]
    colors = prior_colors(wanted.color_class)
    for group in groups:
        found = find_options(wanted, [group]).get(group.name)
        if found is None and colors and any(stems(value) & colors for value, _ in group.values):
            found = _choose_color(read, group, colors, has)
        if found is not None and has.get(group.name, "").lower() != found[0].lower() and not read.times(found[1]):
            return [found[1]]
    buys = [action for action in read.actions if action == "click[buy now]"]
    return buys or choose_untried(read)


def _look_closer(read: MessageText, title: str, wanted: ParsedInstruction, groups: Sequence[OptionGroup]) -> str | None:
    """The way back where an option of the instruction is missing; its features, where the title lacks words of it.

    The way back again, where the features lack the words too; a listing that the episode comes back to is bought.
    """
    if BACK not in read.actions or read.times(BACK):
        return None
    if any(f"{group.name}: ".lower() in wanted.text and not find_options(wanted, [group]) for group in groups):
        return BACK
    missing = wanted.words - stems(title)
    if not missing or FEATURES not in read.actions:
        return None
    seen = [one.outcome for one in (*read.moves, *read.known) if one.action == FEATURES]
    if not seen:
        return None if read.times(FEATURES) else FEATURES
    return BACK if missing - stems(seen[-1]) else None


def _choose_color(
    read: MessageText, group: OptionGroup, colors: frozenset[str], has: Mapping[str, str]
) -> tuple[str, str] | None:
    """A colour of the class that did not score too little yet, where none is chosen."""
    if group.name in has:
        return None
    likely = [(value, action) for value, action in group.values if stems(value) & colors]
    scores = {action: _score_of(read, action) or ENOUGH for _, action in likely}
    return max(likely, key=lambda pair: scores[pair[1]])


def _option_groups(read: MessageText, shown: tuple[str, ...]) -> list[OptionGroup]:
    groups: list[tuple[str, list[tuple[str, str]]]] = []
    for line in shown:
        if line.startswith(PRICE):
            break
        action = f"click[{line.lower()}]"
        if groups and f"click[{groups[-1][0]}: {line}]".lower() in read.actions:
            action = f"click[{groups[-1][0]}: {line}]".lower()
        if action not in read.actions:
            groups.append((line, []))
        elif groups:
            groups[-1][1].append((line, action))
    return [OptionGroup(name, tuple(values)) for name, values in groups]


_SENSES: tuple[tuple[tuple[str, ...], type[CommonSense]], ...] = (
    (("frozen lake",), FrozenLakeSense),
    (("in a valley",), MountainCarSense),
    (("in a building of rooms", "you use a web page"), CommonSense),
    (("you are in a house",), HouseSense),
    (("policy of the service desk",), ToolsSense),
    (("instruction:", "shop"), WebShopSense),
)
"""The common sense of each environment, after phrases of its messages in lower case, of which one is enough."""


def _sense_of(text: str) -> type[CommonSense]:
    """The common sense of the environment of messages; the first whose phrase they have."""
    words = text.lower()
    return next((sense for phrases, sense in _SENSES if any(one in words for one in phrases)), CommonSense)


TIES = ("first", "last", "random")
"""Which of several equally good actions is taken, in the order of the messages."""

EAGER, CONTENT, CAUTIOUS = "eager", "content", "cautious"
TEMPERS = (EAGER, CONTENT, CAUTIOUS)
"""What is done about scores and dangers: look for a better score than the best known one; take the best known one as
it is; and, as the eager one, but believe a known failure until the messages say that all known ways are shut."""

REPEATS = 2
"""How often an action may be executed in one state within an episode before others are preferred."""


class MessageModel:
    """A model that reads messages in any format of `drift_agents.policy.messages` and answers with an action.

    It takes the action with the highest score that the messages show, in records or at the end of a way in a lesson,
    of equal ones that with the fewest steps where the messages show steps. Where no score is shown it uses common
    sense of the environment (`CommonSense`), if it is declared any.

    Args:
        ties: one of `TIES`.
        temper: one of `TEMPERS`.
        forget: the probability with which each known outcome is overlooked, in [0, 1).
        err: the probability of another action than the chosen one, in [0, 1].

    Raises:
        ArgumentError: if an argument breaks its rule.

    Example:
        >>> lines = ["What is known in this state:", "- action open led to the hall. Seen once, last at step 4."]
        >>> lines[1] += " Highest score reachable from there: 1, in 2 more steps."
        >>> schema = {"title": "action", "properties": {"action": {"enum": ["wait", "open"]}}}
        >>> MessageModel().complete([Message("user", chr(10).join(lines))], schema).data
        {'action': 'open'}
    """

    name = "message_reader"

    def __init__(self, *, ties: str = "first", temper: str = EAGER, forget: float = 0.0, err: float = 0.0) -> None:
        self.ties = check_choice("ties", ties, TIES)
        self.temper = check_choice("temper", temper, TEMPERS)
        self.forget = check_interval("forget", forget, "[0, 1)")
        self.err = check_interval("err", err, "[0, 1]")

    def complete(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        sample_index: int = 0,
    ) -> Completion:
        """Answer with an action.

        Args:
            messages: the messages.
            schema: the form of the answer; its `action` lists the admissible actions.
            parameters: are ignored.
            sample_index: seeds ties and errors.
        """
        rng = np.random.default_rng(sample_index)
        properties = {} if schema is None else schema["properties"]
        actions = tuple(properties["action"]["enum"])
        action = self._choose("\n".join(message.content for message in messages), actions, rng)
        if self.err and rng.random() < self.err:
            others = [one for one in actions if one != action]
            action = others[int(rng.integers(len(others)))]
        data = {**({"reasoning": ""} if "reasoning" in properties else {}), "action": action}
        return Completion(json.dumps(data), data)

    def _choose(self, text: str, actions: tuple[str, ...], rng: np.random.Generator) -> str:
        read = read_text(text, actions)
        if self.forget:
            read = read._replace(known=tuple(known for known in read.known if rng.random() >= self.forget))
        return self._tied(self._choices(read), rng)

    def choices(self, text: str, actions: tuple[str, ...]) -> list[str]:
        """The equally good actions, of which `complete` takes one.

        Args:
            text: the messages, one after the other.
            actions: the admissible actions.
        """
        return self._choices(read_text(text, actions))

    def _choices(self, read: MessageText) -> list[str]:
        if self.temper == CAUTIOUS and not read.is_shut:
            read = read._replace(doubt_since=-1)
        return self._best(read) or _sense_of(read.text)().choose(read)

    def _best(self, read: MessageText) -> list[str]:
        """The actions with the highest score, if that is enough; those executed here too often are left out."""
        if not _sense_of(read.text)().follows_scores:
            return []
        ranks: dict[str, tuple[float, int]] = {}
        failed = {known.action for known in read.known if known.ended and known.score < ENOUGH}
        told = [one for one in read.lessons if one.action not in failed and not read.is_stale(one)]
        for known in (*read.known, *told):
            if read.times(known.action) < REPEATS and known.action in read.actions:
                rank = (known.score, -known.steps)
                ranks[known.action] = max(ranks.get(known.action, rank), rank)
        best = max(ranks.values(), default=(0.0, 0))
        is_enough = best[0] > 0 if self.temper == CONTENT else best[0] >= ENOUGH
        return [action for action, rank in ranks.items() if rank == best] if is_enough else []

    def _tied(self, actions: Sequence[str], rng: np.random.Generator) -> str:
        if self.ties == "random":
            return actions[int(rng.integers(len(actions)))]
        return actions[0 if self.ties == "first" else -1]


class MessageReader:
    """A rule-based message policy: follows the highest score that the messages to a language model show.

    The messages are those of the policy `llm` in the same format, so what this policy can do is in them.

    Args:
        format: one of `drift_agents.policy.messages.FORMATS`.
        ties: which of several equally good actions is taken: `first`, `last` or `random`.
        temper: `eager` looks for a better score than the best known one, `content` takes that one, and `cautious`
            believes a known failure until the messages say that all known ways are shut.

    Raises:
        ArgumentError: if an argument breaks its rule.

    Example:
        >>> MessageReader(ties="random").name
        'message_reader'
    """

    name = "message_reader"
    forget, err = 0.0, 0.0

    def __init__(self, *, format: str = BRIEF, ties: str = "first", temper: str = EAGER) -> None:
        self._read = self._make(format, ties, temper)
        self.needs_history = self._read.needs_history

    def _make(self, format: str, ties: str, temper: str) -> LanguageModelPolicy:
        # The temperature is above 0, so that ties and errors are drawn anew at each decision.
        model = MessageModel(ties=ties, temper=temper, forget=self.forget, err=self.err)
        return LanguageModelPolicy(model, format=format, temperature=1.0)

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        """Choose an action.

        Args:
            view: what the policy decides by.
            rng: for ties and errors.

        Raises:
            ArgumentError: if the template does not fit the environment.
        """
        return self._read.decide(view, rng)


class ForgetfulReader(MessageReader):
    """`message_reader` that overlooks a part of the known outcomes, drawn anew at each decision.

    Args:
        forget: the probability with which each known outcome is overlooked, in [0, 1).
        format: as for `MessageReader`.
        ties: as for `MessageReader`.

    Raises:
        ArgumentError: if an argument breaks its rule.

    Example:
        >>> ForgetfulReader().forget
        0.1
    """

    name = "forgetful_reader"

    def __init__(self, *, forget: float = 0.1, format: str = BRIEF, ties: str = "first") -> None:
        self.forget = forget
        super().__init__(format=format, ties=ties)


class ErringReader(MessageReader):
    """`message_reader` that answers with another action than the chosen one at a stated rate.

    Args:
        err: the probability of another action, in [0, 1].
        format: as for `MessageReader`.
        ties: as for `MessageReader`.

    Raises:
        ArgumentError: if an argument breaks its rule.

    Example:
        >>> ErringReader(err=0.2).err
        0.2
    """

    name = "erring_reader"

    def __init__(self, *, err: float = 0.05, format: str = BRIEF, ties: str = "first") -> None:
        self.err = err
        super().__init__(format=format, ties=ties)
