"""The prompt: the only input of a policy.

* `Recollection` - equal records folded into one: a (state, action, outcome) with its number of responses
* `PromptView` - the content of a prompt; `render` makes the text
* `fold` - records into recollections
* `render_prompt` - the text from lines that are rendered already
* `parse_line` - one line of a prompt back into a recollection
* `parse_prompt` - the text back into a `PromptView`, for policies that plan

A policy gets the text alone, the offline planner like the language model: a policy that plans
parses the rendered text, so no other information can reach it.

Rendering and parsing are exact inverses for environments whose states are JSON texts of one line, as
`text=True` makes them. Both are cached by line, since most lines of a prompt stood in the one before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from typing import NamedTuple

from drift_agents.errors import ArgumentError
from drift_agents.types import Outcome, Record

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
        """The line of the prompt.

        Raises:
            ArgumentError: if a state has more than one line.
        """
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
    before, after = _one_line(item.state), _one_line(item.outcome.state)
    return f"- in {before} action {_encode(item.action)} led to {after} ({'; '.join(parts)})"


def _number(x: float) -> str:
    """The shortest text that reads back as the same number, whole numbers without a point."""
    whole = float(x).is_integer() and abs(x) < 1e15
    return str(int(x)) if whole else repr(float(x))


def _one_line(state: str) -> str:
    if "\n" in state:
        raise ArgumentError(f"a state should be a text of one line. Received {state!r}")
    return state


@dataclass(frozen=True)
class PromptView:
    """The content of a prompt.

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
            (`drift_agents.agent` defines what counts as a contradiction, and when this moves).
        visits: how often each action was executed in this state earlier in this episode; `None` in prompts
            without the episode's history, as planners get them.
        moves: the newest steps of this episode, in order.
        taken: the number of its steps so far, in prompts that show all of them.

    Example:
        >>> view = PromptView("Reach the goal.", '{"at": 1}', ("0", "1"))
        >>> parse_prompt(view.render()) == view
        True
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

    def render(self) -> str:
        """The text.

        Raises:
            ArgumentError: if a state has more than one line.
        """
        return render_prompt(
            self.task,
            self.state,
            self.actions,
            [item.line() for item in self.here],
            [item.line() for item in self.elsewhere],
            self.lessons,
            self.step,
            self.doubt_since,
            self.visits,
            [move.line() for move in self.moves],
            self.taken,
        )


def render_prompt(
    task: str,
    state: str,
    actions: Iterable[str],
    here: list[str],
    elsewhere: list[str],
    lessons: Iterable[str],
    step: int,
    doubt_since: int | None = None,
    visits: Iterable[tuple[str, int]] | None = None,
    moves: list[str] | None = None,
    taken: int | None = None,
) -> str:
    """The text of a prompt, from lines that are rendered already.

    Args:
        task: the task in words.
        state: the present state.
        actions: the admissible actions.
        here: lines about this state; an entry may hold several.
        elsewhere: lines about other states; an entry may hold several.
        lessons: derived items as text.
        step: the agent's interactions so far.
        doubt_since: when an outcome contradicted memory.
        visits: how often each action was executed in this state earlier in this episode.
        moves: lines about the newest steps of this episode.
        taken: the number of its steps so far.
    """
    lines = [task, "", STATE + _one_line(state), ACTIONS + _encode(list(actions))]
    lines.append(f"{STEP}{step}")
    if doubt_since is not None:
        lines.append(f"{DOUBT}{doubt_since}")
    if taken is not None:
        lines.append(f"{TAKEN}{taken}")
    if visits is not None:
        lines.append(VISITS + _encode(dict(visits)))
    for title, recollections in ((MOVES, moves), (HERE, here), (ELSEWHERE, elsewhere)):
        if recollections:
            lines += ["", title, *recollections]
    learned = [f"- {_encode(text)}" for text in lessons]
    if learned:
        lines += ["", LESSONS, *learned]
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
    return x if x.is_integer() else float(f"{x:.6g}")


_DECODER = json.JSONDecoder()
_NUMBER = r"-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|inf)"
_DETAILS = re.compile(
    rf" \((?P<ended>the episode ended; )?score (?P<score>{_NUMBER}); seen (?:once|(?P<n>{_NUMBER}) times); "
    rf"last at step (?P<last>-?\d+)(?P<verified>; verified)?"
    rf"(?:; recalled with weight (?P<weight>{_NUMBER}))?"
    rf"(?:; highest score believed reachable from there (?P<value>{_NUMBER})"
    rf"(?: in (?P<steps>\d+) steps)?)?(?:; (?P<visits>\d+) times there in this episode)?\)",
    re.ASCII,
)


@lru_cache(maxsize=65536)
def parse_line(line: str) -> Recollection:
    """One line of a prompt back into a recollection.

    Args:
        line: what `Recollection.line` made, for states that are JSON texts.

    Raises:
        ArgumentError: if it is no such line.

    Example:
        >>> parse_line('- in [1] action "0" led to [2] (score 0; seen once; last at step 3)').last
        3
    """
    try:
        state, end = _decode(line, 0, "- in ")
        action, end = _decode(line, end, " action ")
        after, end = _decode(line, end, " led to ")
        text = json.loads(action)
    except (ValueError, RecursionError) as error:
        raise ArgumentError(f"not a line of a prompt: {line!r}") from error
    details = _DETAILS.fullmatch(line, end)
    if details is None or not isinstance(text, str):
        raise ArgumentError(f"not a line of a prompt: {line!r}")
    return Recollection(
        state,
        text,
        Outcome(after, float(details["score"]), details["ended"] is not None),
        1.0 if details["n"] is None else float(details["n"]),
        int(details["last"]),
        details["verified"] is not None,
        None if details["value"] is None else float(details["value"]),
        1.0 if details["weight"] is None else float(details["weight"]),
        None if details["steps"] is None else int(details["steps"]),
        int(details["visits"] or 0),
    )


def _decode(line: str, start: int, mark: str) -> tuple[str, int]:
    """The JSON text after `mark`, which must stand at `start`; and where it ends."""
    if not line.startswith(mark, start):
        raise ValueError(mark)
    start += len(mark)
    _, end = _DECODER.raw_decode(line, start)
    return line[start:end], end


@lru_cache(maxsize=8)
def parse_prompt(text: str) -> PromptView:
    """Parse a rendered prompt.

    The last few are cached, since several parts of an agent parse the same prompt.

    Args:
        text: what `PromptView.render` made, for an environment whose states are JSON texts of one line.

    Raises:
        ArgumentError: if the text is not a rendered prompt; the message has the line.
    """
    lines = text.split("\n")
    # The last mark is the true one: a task may contain anything, what follows the mark is all
    # lines of known kinds, none of which begins like it.
    places = (n for n in range(len(lines) - 1, 1, -1) if lines[n].startswith(STATE) and not lines[n - 1])
    place = next(places, None)
    if place is None:
        raise ArgumentError(f"not a rendered prompt, {STATE!r} is missing: {text[:80]!r}")
    header: dict[str, str] = {}
    sections: dict[str, list[str]] = {MOVES: [], HERE: [], ELSEWHERE: [], LESSONS: []}
    section: list[str] | None = None
    for line in lines[place + 1 :]:
        if section is not None and line.startswith("- "):
            section.append(line)
        elif line in sections:
            section = sections[line]
        elif section is None and (name := _header_mark(line)):
            header[name] = line[len(name) :]
        elif line not in ("", ANSWER):
            raise ArgumentError(f"not a line of a prompt: {line!r}")
    if ACTIONS not in header:
        raise ArgumentError(f"not a rendered prompt, {ACTIONS!r} is missing: {text[:80]!r}")
    return PromptView(
        "\n".join(lines[: place - 1]),
        lines[place][len(STATE) :],
        _parse_actions(header[ACTIONS]),
        tuple(map(parse_line, sections[HERE])),
        tuple(map(parse_line, sections[ELSEWHERE])),
        tuple(_parse_text(line[2:]) for line in sections[LESSONS]),
        _parse_whole(header.get(STEP, "0")),
        _parse_whole(header[DOUBT]) if DOUBT in header else None,
        _parse_visits(header[VISITS]) if VISITS in header else None,
        tuple(map(parse_line, sections[MOVES])),
        _parse_whole(header[TAKEN]) if TAKEN in header else None,
    )


def _header_mark(line: str) -> str | None:
    return next((mark for mark in (ACTIONS, STEP, DOUBT, TAKEN, VISITS) if line.startswith(mark)), None)


@lru_cache(maxsize=1024)
def _parse_actions(text: str) -> tuple[str, ...]:
    try:
        actions = json.loads(text)
    except ValueError as error:
        raise ArgumentError(f"the admissible actions should be a JSON list. Received {text!r}") from error
    if not isinstance(actions, list) or not all(isinstance(action, str) for action in actions):
        raise ArgumentError(f"the admissible actions should be a JSON list of texts. Received {text!r}")
    return tuple(actions)


def _parse_visits(text: str) -> tuple[tuple[str, int], ...]:
    try:
        counts = json.loads(text)
    except ValueError as error:
        raise ArgumentError(f"visits should be a JSON object. Received {text!r}") from error
    if not isinstance(counts, dict) or not all(type(count) is int for count in counts.values()):
        raise ArgumentError(f"visits should map actions to whole numbers. Received {text!r}")
    return tuple(counts.items())


def _parse_text(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError as error:
        raise ArgumentError(f"a lesson should be a JSON text. Received {text!r}") from error


def _parse_whole(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise ArgumentError(f"a step should be a whole number. Received {text!r}") from error
