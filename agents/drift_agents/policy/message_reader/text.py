"""The messages to a language model, parsed for rule-based message policies.

* `KnownOutcome` - one outcome that the messages report
* `MessageText` - what the messages say
* `read_text` - parses the text, in any format
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from drift_agents.environment import recognise_messages


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
    ends = ("The episode ended there", *filter(None, (recognise_messages(text).dead_end,)))
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
