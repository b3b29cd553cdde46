"""Trajectories as text, and the items that a model or a rule distils from them.

Source: EDV, section 4.3, appendices B.1 and C.2. The rule reads the text and nothing else.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from drift_agents.llm.base import Model, Rule, ask, object_schema, read_messages
from drift_agents.memory.transcript import count_runs, count_steps, truncate
from drift_agents.types import Episode, Record, RecordId, Transition

MOST = 5
"""The largest number of items from one task (appendix C.2; figure 7 says 1 to 3)."""
LONGEST = {"title": 200, "description": 1000, "content": 4000}
"""The largest number of characters in each text of an item; the rule shortens what it writes to fit."""
_ITEM = object_schema(
    "",
    title={"type": "string", "minLength": 1, "maxLength": LONGEST["title"]},
    description={"type": "string", "minLength": 1, "maxLength": LONGEST["description"]},
    content={"type": "string", "minLength": 1, "maxLength": LONGEST["content"]},
    evidence={"type": "array", "items": {"type": "string"}},
)
DISTIL = object_schema(
    "edv_distil",
    best_trajectory={"type": "string"},
    items={"type": "array", "maxItems": MOST, "items": _ITEM},
    optional=["best_trajectory"],
)


class ProposedItem(NamedTuple):
    """An item before the vote.

    Args:
        title: its title.
        description: one sentence about it.
        content: what to do, or to avoid, and why.
        evidence: the records that it cites, in order.
        ordered: whether they are consecutive steps of one trajectory.
        forged: its false claims, for a wrong item; voters do not receive them.
        refs: the lines of the trajectories that it cites.
    """

    title: str
    description: str
    content: str
    evidence: tuple[RecordId, ...] = ()
    ordered: bool = False
    forged: tuple[Transition, ...] = ()
    refs: tuple[str, ...] = ()

    def text(self) -> str:
        """The item without its evidence."""
        return f"{self.title}. {self.description} {self.content}"


Attempts = Sequence[tuple[Episode, Sequence[Record]]]
"""Attempts at one task: each episode with its records, in order."""


def propose(model: Model, attempts: Attempts, most: int = MOST) -> list[ProposedItem]:
    """Items from several attempts at one task, by a model or by the rule.

    Cited lines that do not exist are ignored; an item without any cited line is dropped, since it could
    neither be checked nor be removed with its evidence.

    Args:
        most: the largest number of items.

    Raises:
        ModelError: if the model's answer has the wrong form.

    Example:
        >>> from drift_agents.llm.base import RuleModel
        >>> from drift_agents.types import AgentClock, Outcome
        >>> fell = Record(7, "ice", "1", ((Outcome("hole", 0.0, True), 1.0),), 1, AgentClock())
        >>> [(c.title, c.evidence) for c in propose(RuleModel(RULES), [(Episode("Cross.", 0.0, 1, True), [fell])])]
        [('Avoid "1"', (7,))]
    """
    text = render_trajectories(attempts)
    messages = read_messages("memory/templates/edv_distil.txt", trajectories=text, most=str(most))
    lines = number_lines(attempts)
    found = []
    for item in ask(model, messages, DISTIL).data["items"][:most]:
        refs = tuple(dict.fromkeys(ref.strip("[] ") for ref in item["evidence"]))
        known = tuple(ref for ref in refs if ref in lines)
        if known:
            found.append(
                ProposedItem(
                    item["title"],
                    item["description"],
                    item["content"],
                    tuple(lines[ref].id for ref in known),
                    _is_ordered(known),
                    refs=known,
                )
            )
    return found


def _is_ordered(refs: Sequence[str]) -> bool:
    """Whether these lines are at least two steps of one trajectory, in order."""
    places = [tuple(map(int, ref.split("."))) for ref in refs]
    return len(refs) > 1 and len({number for number, _ in places}) == 1 and places == sorted(places)


HEAD, TAIL = 60, 130
"""The characters quoted from the beginning and the end of a long state; a page ends with its URL."""
_CLAIM = re.compile(
    r'in (?P<state>\S.*?) action (?P<action>"(?:[^"\\]|\\.)*") led to (?P<after>\S.*?) '
    r"\(score (?P<score>-?[\d.e+-]+)(?P<ended>; the episode ended)?\)"
)
_LINE = re.compile(rf"\[(?P<ref>\d+\.\d+)\] {_CLAIM.pattern}")
_STATED = re.compile(rf"(?:: |; and ){_CLAIM.pattern}")
"""A statement of a transition: after a colon, or after another statement."""
_TITLE = re.compile(
    r"Trajectory (?P<number>\d+): score (?P<score>\S+) after (?P<steps>\d+) steps?; (the episode ended|time ran out)"
)
_MOST = re.compile(r"^At most (\d+) items", re.MULTILINE)


class Line(NamedTuple):
    """One parsed line of a trajectory.

    Args:
        ref: its number, as in `2.14`; empty for a claim.
        state: the quoted state before.
        action: the action as JSON text.
        after: the quoted next state.
        score: the score after the step.
        ended: whether the episode ended there.
    """

    ref: str
    state: str
    action: str
    after: str
    score: float
    ended: bool

    @property
    def query(self) -> tuple[str, str]:
        """State and action."""
        return self.state, self.action

    @property
    def outcome(self) -> tuple[str, float, bool]:
        """Next state, score, and whether the episode ended."""
        return self.after, self.score, self.ended


class ParsedTrajectory(NamedTuple):
    """One parsed trajectory: its number, its score at the end and its lines."""

    number: int
    score: float
    lines: tuple[Line, ...]


def quote_ends(state: str) -> str:
    """A state in one line; of a long one its beginning and end."""
    text = " ".join(state.split())
    return text if len(text) <= HEAD + TAIL + 5 else f"{text[:HEAD]} ... {text[-TAIL:]}"


def render_claim(transition: Transition) -> str:
    """A transition in words.

    Example:
        >>> from drift_agents.types import Outcome
        >>> render_claim(Transition("ice", "2", Outcome("hole", 0.0, True)))
        'in ice action "2" led to hole (score 0; the episode ended)'
    """
    state, action, (after, score, ended) = transition
    return _render_line(
        Line("", quote_ends(state), json.dumps(action, ensure_ascii=False), quote_ends(after), score, ended)
    )


def read_claims(text: str) -> tuple[Line, ...]:
    """The statements about transitions in a text: after a colon, or after another statement.

    Example:
        >>> [one.action for one in read_claims('Be careful in spring: in ice action "1" led to hole (score 0).')]
        ['"1"']
    """
    return tuple(_make_line(found, "") for found in _STATED.finditer(text))


def _make_line(found: re.Match[str], ref: str) -> Line:
    ended = found["ended"] is not None
    return Line(ref, found["state"], found["action"], found["after"], float(found["score"]), ended)


def render_trajectories(attempts: Attempts) -> str:
    """Several attempts at one task as text; every step has a number that can be cited.

    Example:
        >>> from drift_agents.types import AgentClock, Outcome
        >>> step = Record(0, "ice", "1", ((Outcome("hole", 0.0, True), 1.0),), 1, AgentClock())
        >>> print(render_trajectories([(Episode("Cross.", 0.0, 1, True), [step])]))
        Task: Cross.
        Trajectory 1: score 0 after 1 step; the episode ended
        [1.1] in ice action "1" led to hole (score 0; the episode ended)
    """
    lines = [f"Task: {attempts[0][0].task}"] if attempts else []
    for number, (episode, steps) in enumerate(attempts, 1):
        end = "the episode ended" if episode.terminated else "time ran out"
        lines.append(f"Trajectory {number}: score {episode.score:g} after {count_steps(episode)}; {end}")
        for place, record in enumerate(steps, 1):
            claim = render_claim(Transition(record.state, record.action, record.outcome))
            lines.append(f"[{number}.{place}] {claim}")
    return "\n".join(lines)


def number_lines(attempts: Attempts) -> dict[str, Record]:
    """The records by the numbers of their lines in `render_trajectories`."""
    return {
        f"{number}.{place}": record
        for number, (_, steps) in enumerate(attempts, 1)
        for place, record in enumerate(steps, 1)
    }


def read_trajectories(text: str) -> tuple[ParsedTrajectory, ...]:
    """Parse the text of trajectories; other lines are ignored."""
    attempts: list[tuple[int, float, list[Line]]] = []
    for row in text.split("\n"):
        title = _TITLE.fullmatch(row)
        if title is not None:
            attempts.append((int(title["number"]), float(title["score"]), []))
        elif attempts and (found := _LINE.fullmatch(row)) is not None:
            attempts[-1][2].append(_make_line(found, found["ref"]))
    return tuple(ParsedTrajectory(number, score, tuple(lines)) for number, score, lines in attempts)


def is_majority(line: Line, attempts: Iterable[ParsedTrajectory]) -> bool:
    """Whether its outcome is more frequent than any other outcome of its state and action.

    Example:
        >>> lines = [Line("1.1", "a", '"1"', after, 0.0, False) for after in "bbc"]
        >>> attempt = ParsedTrajectory(1, 0.0, tuple(lines))
        >>> is_majority(lines[0], [attempt]), is_majority(lines[2], [attempt])
        (True, False)
    """
    counts = Counter(other.outcome for attempt in attempts for other in attempt.lines if other.query == line.query)
    own = counts.pop(line.outcome, 0)
    return own > max(counts.values(), default=0)


def distil(text: str) -> dict[str, Any]:
    """The rule that answers `DISTIL` offline: compares the steps of the trajectories.

    In this order, up to the allowed number: the shortest path to each end with a score, the best end first;
    each step that ended an episode with less than the best score; each step that changed nothing. Steps
    whose outcome is not the majority (`is_majority`) are left out, and so are paths that contain them.

    Args:
        text: the result of `render_trajectories`, with a line that gives the largest number of items.

    Returns:
        JSON by the schema `DISTIL`.
    """
    attempts = read_trajectories(text)
    allowed = _MOST.search(text)
    most = int(allowed[1]) if allowed else MOST
    if not attempts:
        return {"items": []}
    best = min(attempts, key=lambda attempt: (-attempt.score, len(attempt.lines), attempt.number))
    items = [*_paths(attempts), *_traps(attempts, best.score), *_useless_steps(attempts)]
    return {"best_trajectory": str(best.number), "items": items[:most]}


def _paths(attempts: Sequence[ParsedTrajectory]) -> list[dict[str, Any]]:
    """The shortest path to each end with a score."""
    paths: dict[tuple[str, float, bool], tuple[Line, ...]] = {}
    for attempt in attempts:
        path = _without_detours(attempt.lines)
        if attempt.score > 0 and path and all(is_majority(line, attempts) for line in path):
            known = paths.get(path[-1].outcome)
            if known is None or len(path) < len(known):
                paths[path[-1].outcome] = path
    found = sorted(paths.values(), key=lambda path: (-path[-1].score, len(path)))
    return [
        _item(
            f"Way to score {path[-1].score:g} in {len(path)} steps",
            "The shortest way that any trajectory took to this end.",
            _render_path(path),
            path,
        )
        for path in found
    ]


def _without_detours(lines: Sequence[Line]) -> tuple[Line, ...]:
    """The lines without those between two visits to one state."""
    path: list[Line] = []
    for line in lines:
        states = [step.state for step in path]
        if line.state in states:
            del path[states.index(line.state) :]
        path.append(line)
    return tuple(path)


def _traps(attempts: Sequence[ParsedTrajectory], best: float) -> list[dict[str, Any]]:
    """Steps that ended an episode with less than the best score, or without any."""
    ends = [line for attempt in attempts for line in attempt.lines if line.ended and (line.score < best or not best)]
    return [
        _item(
            truncate(f"Avoid {cited[0].action}", LONGEST["title"] - len("...")),
            f"It ended {len(cited)} of {len(attempts)} trajectories for {cited[0].score:g}.",
            f"Do not do this: {_render_line(cited[0])}.",
            cited,
        )
        for cited in _grouped(ends)
        if is_majority(cited[0], attempts)
    ]


def _useless_steps(attempts: Sequence[ParsedTrajectory]) -> list[dict[str, Any]]:
    """Steps that changed nothing."""
    unchanged = [line for attempt in attempts for line in attempt.lines if line.state == line.after and not line.ended]
    return [
        _item(
            truncate(f"Useless {cited[0].action}", LONGEST["title"] - len("...")),
            "It changed nothing.",
            f"Save this step: {_render_line(cited[0])}.",
            cited,
        )
        for cited in _grouped(unchanged)
        if is_majority(cited[0], attempts)
    ]


def _grouped(lines: Iterable[Line]) -> list[tuple[Line, ...]]:
    """Groups of equal lines, in order of first mention."""
    groups: dict[tuple[Any, ...], list[Line]] = {}
    for line in lines:
        groups.setdefault((*line.query, *line.outcome), []).append(line)
    return [tuple(group) for group in groups.values()]


def _item(title: str, description: str, content: str, cited: Iterable[Line]) -> dict[str, Any]:
    return {
        "title": title,
        "description": description,
        "content": content,
        "evidence": [line.ref for line in cited],
    }


def _render_path(path: Sequence[Line]) -> str:
    """The actions from the first state, and the last line.

    Of a path that is too long for an item, the first actions that fit and the number of steps left out: the
    actions of a continuous space rarely repeat, so that a few hundred steps are a few thousand characters.
    """
    first, last = f"From {path[0].state} do ", f". At the end: {_render_line(path[-1])}."
    runs = count_runs(line.action for line in path)
    words = [action if times == 1 else f"{action} {times} times" for action, times in runs]
    text = f"{first}{', '.join(words)}{last}"
    while len(text) > LONGEST["content"] and words:
        words.pop()
        left_out = f"{sum(times for _, times in runs[len(words) :])} more steps"
        text = f"{first}{', '.join([*words, left_out])}{last}"
    return text


def _render_line(line: Line) -> str:
    """A line as a claim."""
    end = "; the episode ended" if line.ended else ""
    return f"in {line.state} action {line.action} led to {line.after} (score {line.score:g}{end})"


def describe_claims(claims: Sequence[Transition]) -> ProposedItem:
    """An item that states these transitions: a wrong one, in the words of a correct one.

    Args:
        claims: its statements; at least one.
    """
    statements = "; and ".join(map(render_claim, claims))
    actions = ", ".join(json.dumps(one.action, ensure_ascii=False) for one in claims)
    return ProposedItem(
        f"Mind {actions}", "What these actions lead to.", f"Keep to this: {statements}.", forged=tuple(claims)
    )


RULES: Mapping[str, Rule] = {DISTIL["title"]: distil}
"""The table for `drift_agents.llm.base.RuleModel`."""
