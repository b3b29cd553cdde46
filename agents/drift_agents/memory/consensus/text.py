"""Trajectories in words, what is distilled out of them, and the rule that does it offline.

* `DISTIL` - the question to the distiller: several trajectories in, a few items out
* `ProposedItem` - an item before anybody has voted on it
* `tell_trajectories`, `read_trajectories` - several attempts at one task, as text and back
* `Line`, `ParsedTrajectory` - what is read back
* `upheld` - whether nothing in the trajectories outvotes a line
* `distil` - the rule: ways that paid, steps that ended for nothing, steps that changed nothing
* `claim`, `read_claims`, `describe_claims` - statements about transitions, in the words of a trajectory
* `RULES` - the table for `drift_agents.llm.rules.RuleModel`

Source: EDV, section 4.3, appendices B.1 and C.2. A rule reads this text and nothing else.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from drift_agents.llm.rules import Rule
from drift_agents.types import Episode, Record, RecordId, Transition

MOST = 5
"""Items out of one task, at the most (appendix C.2; figure 7 says 1 to 3)."""
DISTIL: Mapping[str, Any] = {
    "title": "edv_distil",
    "type": "object",
    "properties": {
        "best_trajectory": {"type": "string"},
        "items": {
            "type": "array",
            "maxItems": MOST,
            "items": {
                "type": "object",
                "properties": {
                    "title": {"type": "string", "minLength": 1, "maxLength": 200},
                    "description": {"type": "string", "minLength": 1, "maxLength": 1000},
                    "content": {"type": "string", "minLength": 1, "maxLength": 4000},
                    "evidence": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["title", "description", "content", "evidence"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["items"],
    "additionalProperties": False,
}

HEAD, TAIL = 60, 130
"""Characters of a long state that are quoted: how it begins and how it ends, where a page has its address."""
_CLAIM = re.compile(
    r'in (?P<state>\S.*?) action (?P<action>"(?:[^"\\]|\\.)*") led to (?P<after>\S.*?) '
    r"\(score (?P<score>-?[\d.e+-]+)(?P<ended>; the episode ended)?\)"
)
_LINE = re.compile(rf"\[(?P<ref>\d+\.\d+)\] {_CLAIM.pattern}")
_STATED = re.compile(rf"(?:: |; and ){_CLAIM.pattern}")
"""Where a text states a transition: behind a colon, or behind another statement."""
_TITLE = re.compile(
    r"Trajectory (?P<number>\d+): score (?P<score>\S+) after (?P<steps>\d+) steps?; (the episode ended|time ran out)"
)
_MOST = re.compile(r"^At most (\d+) items", re.MULTILINE)


class ProposedItem(NamedTuple):
    """An item before anybody has voted on it.

    Args:
        title: what it is called.
        description: one sentence about it.
        content: what is to be done, or not to be done, and why.
        evidence: the records that it rests on, in order.
        ordered: whether they are the steps of one way, one after the other.
        forged: what it claims, where it is wrong on purpose; nobody who votes is told.
        refs: the lines of the trajectories that it cites.
    """

    title: str
    description: str
    content: str
    evidence: tuple[RecordId, ...] = ()
    ordered: bool = False
    forged: tuple[Transition, ...] = ()
    refs: tuple[str, ...] = ()

    def tell(self) -> str:
        """The item in words, without its evidence."""
        return f"{self.title}. {self.description} {self.content}"


class Line(NamedTuple):
    """One line of a trajectory, read back.

    Args:
        ref: its number, as in `2.14`; empty for a claim.
        state: the state before, as it is quoted.
        action: the action as JSON text.
        after: the state that followed, as it is quoted.
        score: the score told then.
        ended: whether the episode ended there.
    """

    ref: str
    state: str
    action: str
    after: str
    score: float
    ended: bool

    @property
    def asked(self) -> tuple[str, str]:
        """State and action."""
        return self.state, self.action

    @property
    def answer(self) -> tuple[str, float, bool]:
        """What followed."""
        return self.after, self.score, self.ended


class ParsedTrajectory(NamedTuple):
    """One trajectory, read back: its number, its score at the end and its lines."""

    number: int
    score: float
    lines: tuple[Line, ...]


def quote(state: str) -> str:
    """A state in one line: how it begins and how it ends, when it is long."""
    text = " ".join(state.split())
    return text if len(text) <= HEAD + TAIL + 5 else f"{text[:HEAD]} ... {text[-TAIL:]}"


def claim(transition: Transition) -> str:
    """A transition in words.

    Example:
        >>> from drift_agents.types import Outcome
        >>> claim(Transition("ice", "2", Outcome("hole", 0.0, True)))
        'in ice action "2" led to hole (score 0; the episode ended)'
    """
    outcome, action = transition.outcome, json.dumps(transition.action, ensure_ascii=False)
    end = "; the episode ended" if outcome.ended else ""
    return f"in {quote(transition.state)} action {action} led to {quote(outcome.state)} (score {outcome.score:g}{end})"


def read_claims(text: str) -> tuple[Line, ...]:
    """The statements about transitions in a text: behind a colon, or behind another statement.

    Example:
        >>> [one.action for one in read_claims('Be careful in spring: in ice action "1" led to hole (score 0).')]
        ['"1"']
    """
    return tuple(_line(found, "") for found in _STATED.finditer(text))


def _line(found: re.Match[str], ref: str) -> Line:
    ended = found["ended"] is not None
    return Line(ref, found["state"], found["action"], found["after"], float(found["score"]), ended)


def tell_trajectories(attempts: Sequence[tuple[Episode, Sequence[Record]]]) -> str:
    """Several attempts at one task in words; every step has a number that can be cited.

    Args:
        attempts: each episode with what memory wrote of it, in order.

    Example:
        >>> from drift_agents.types import AgentClock, Outcome
        >>> step = Record(0, "ice", "1", ((Outcome("hole", 0.0, True), 1.0),), 1, AgentClock())
        >>> print(tell_trajectories([(Episode("Cross.", 0.0, 1, True), [step])]))
        Task: Cross.
        Trajectory 1: score 0 after 1 step; the episode ended
        [1.1] in ice action "1" led to hole (score 0; the episode ended)
    """
    lines = [f"Task: {attempts[0][0].task}"] if attempts else []
    for number, (episode, steps) in enumerate(attempts, 1):
        end = "the episode ended" if episode.terminated else "time ran out"
        count = "1 step" if episode.steps == 1 else f"{episode.steps} steps"
        lines.append(f"Trajectory {number}: score {episode.score:g} after {count}; {end}")
        for place, record in enumerate(steps, 1):
            told = claim(Transition(record.state, record.action, record.outcome))
            lines.append(f"[{number}.{place}] {told}")
    return "\n".join(lines)


def read_trajectories(text: str) -> tuple[ParsedTrajectory, ...]:
    """Read trajectories back from their text; what else stands there is passed over."""
    attempts: list[tuple[int, float, list[Line]]] = []
    for row in text.split("\n"):
        title = _TITLE.fullmatch(row)
        if title is not None:
            attempts.append((int(title["number"]), float(title["score"]), []))
        elif attempts and (found := _LINE.fullmatch(row)) is not None:
            attempts[-1][2].append(_line(found, found["ref"]))
    return tuple(ParsedTrajectory(number, score, tuple(lines)) for number, score, lines in attempts)


def upheld(line: Line, attempts: Iterable[ParsedTrajectory]) -> bool:
    """Whether its answer was seen more often than any other answer to the same state and action.

    Example:
        >>> lines = [Line("1.1", "a", '"1"', after, 0.0, False) for after in "bbc"]
        >>> attempt = ParsedTrajectory(1, 0.0, tuple(lines))
        >>> upheld(lines[0], [attempt]), upheld(lines[2], [attempt])
        (True, False)
    """
    answers = Counter(other.answer for attempt in attempts for other in attempt.lines if other.asked == line.asked)
    mine = answers.pop(line.answer, 0)
    return mine > max(answers.values(), default=0)


def distil(text: str) -> dict[str, Any]:
    """The rule that answers `DISTIL` offline: compares what the trajectories say of the same and of other steps.

    In this order, as many as may be: the shortest way to each end that paid, the best end first; each
    step that ended an episode for less than the best end; each step that changed nothing. A step whose
    answer another trajectory contradicts as often as not is left out, and so is what rests on it.

    Args:
        text: what `tell_trajectories` made, with a line that says how many items there may be.

    Returns:
        JSON by the schema `DISTIL`.
    """
    attempts = read_trajectories(text)
    allowed = _MOST.search(text)
    most = int(allowed[1]) if allowed else MOST
    if not attempts:
        return {"items": []}
    best = min(attempts, key=lambda attempt: (-attempt.score, len(attempt.lines), attempt.number))
    items = [*_ways(attempts), *_traps(attempts, best.score), *_idle(attempts)]
    return {"best_trajectory": str(best.number), "items": items[:most]}


def _ways(attempts: Sequence[ParsedTrajectory]) -> list[dict[str, Any]]:
    """The shortest way to each end that paid."""
    ways: dict[tuple[str, float, bool], tuple[Line, ...]] = {}
    for attempt in attempts:
        way = _straight(attempt.lines)
        if attempt.score > 0 and way and all(upheld(line, attempts) for line in way):
            known = ways.get(way[-1].answer)
            if known is None or len(way) < len(known):
                ways[way[-1].answer] = way
    found = sorted(ways.values(), key=lambda way: (-way[-1].score, len(way)))
    return [
        _item(
            f"Way to score {way[-1].score:g} in {len(way)} steps",
            "The shortest way that any trajectory took to this end.",
            f"From {way[0].state} do {_program(way)}. At the end: {_words(way[-1])}.",
            way,
        )
        for way in found
    ]


def _straight(lines: Sequence[Line]) -> tuple[Line, ...]:
    """A way without its detours: what lies between two visits to one state is left out."""
    way: list[Line] = []
    for line in lines:
        states = [step.state for step in way]
        if line.state in states:
            del way[states.index(line.state) :]
        way.append(line)
    return tuple(way)


def _traps(attempts: Sequence[ParsedTrajectory], best: float) -> list[dict[str, Any]]:
    """Steps that ended an episode for less than the best end, and for nothing in any case."""
    ends = [line for attempt in attempts for line in attempt.lines if line.ended and (line.score < best or not best)]
    return [
        _item(
            f"Avoid {cited[0].action}",
            f"It ended {len(cited)} of {len(attempts)} trajectories for {cited[0].score:g}.",
            f"Do not do this: {_words(cited[0])}.",
            cited,
        )
        for cited in _grouped(ends)
        if upheld(cited[0], attempts)
    ]


def _idle(attempts: Sequence[ParsedTrajectory]) -> list[dict[str, Any]]:
    """Steps that changed nothing."""
    still = [line for attempt in attempts for line in attempt.lines if line.state == line.after and not line.ended]
    return [
        _item(
            f"Useless {cited[0].action}",
            "It changed nothing.",
            f"Save this step: {_words(cited[0])}.",
            cited,
        )
        for cited in _grouped(still)
        if upheld(cited[0], attempts)
    ]


def _grouped(lines: Iterable[Line]) -> list[tuple[Line, ...]]:
    """Lines that say the same, together, in order of first mention."""
    groups: dict[tuple[Any, ...], list[Line]] = {}
    for line in lines:
        groups.setdefault((*line.asked, *line.answer), []).append(line)
    return [tuple(group) for group in groups.values()]


def _item(title: str, description: str, content: str, cited: Iterable[Line]) -> dict[str, Any]:
    return {
        "title": title,
        "description": description,
        "content": content,
        "evidence": [line.ref for line in cited],
    }


def _program(way: Iterable[Line]) -> str:
    runs = ((action, len(list(run))) for action, run in groupby(line.action for line in way))
    return ", ".join(action if times == 1 else f"{action} {times} times" for action, times in runs)


def _words(line: Line) -> str:
    """A line as a claim."""
    end = "; the episode ended" if line.ended else ""
    return f"in {line.state} action {line.action} led to {line.after} (score {line.score:g}{end})"


def describe_claims(claims: Sequence[Transition]) -> ProposedItem:
    """An item that states these transitions and no other: how a wrong one is told, in the words of a sound one.

    Args:
        claims: what it states; at least one.
    """
    told = "; and ".join(map(claim, claims))
    actions = ", ".join(json.dumps(one.action, ensure_ascii=False) for one in claims)
    return ProposedItem(
        f"Mind {actions}", "What these actions lead to.", f"Keep to this: {told}.", forged=tuple(claims)
    )


RULES: Mapping[str, Rule] = {DISTIL["title"]: distil}
"""The table for `drift_agents.llm.rules.RuleModel`."""
