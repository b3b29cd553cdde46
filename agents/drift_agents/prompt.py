"""The one thing that a policy sees.

* `Recollection` - what memory says about one (state, action, outcome), equal records folded into one
* `PromptView` - everything that goes into a prompt; `render` makes the text
* `fold` - records into recollections
* `parse_prompt` - the text back into a `PromptView`, for policies that compute instead of read

The text is all that a policy gets, the offline planner and the language model alike: a policy
that plans parses the rendered text, so nothing can reach it that does not stand there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from drift_agents.errors import ArgumentError
from drift_agents.types import Outcome, Record

HERE = "--- Experience from this state ---"
ELSEWHERE = "--- Experience from other states ---"
LESSONS = "--- Lessons ---"
ANSWER = "Answer with one admissible action alone, exactly as it is written above."


class Recollection(NamedTuple):
    """What memory says about one (state, action, outcome).

    Args:
        state: the state before.
        action: the action, as text.
        outcome: what followed.
        n: how many responses speak for it; a real number, since a summary shares its responses out.
        last: when it was last written, in the agent's own interactions.
        verified: whether a verifier vouches for it.
        outlook: the highest score that memory believes reachable from there, if that is shown.
    """

    state: str
    action: str
    outcome: Outcome
    n: float
    last: int
    verified: bool = False
    outlook: float | None = None

    def line(self) -> str:
        """The line that stands in the prompt."""
        times = "once" if self.n == 1 else f"{self.n:.6g} times"
        parts = [f"score {self.outcome.score:.6g}", f"seen {times}", f"last at step {self.last}"]
        if self.outcome.ended:
            parts.insert(0, "the episode ended")
        if self.verified:
            parts.append("verified")
        if self.outlook is not None:
            parts.append(f"highest score believed reachable from there {self.outlook:.6g}")
        action = json.dumps(self.action, ensure_ascii=False)
        return f"- in {self.state} action {action} led to {self.outcome.state} ({'; '.join(parts)})"


@dataclass(frozen=True)
class PromptView:
    """Everything that goes into a prompt.

    Args:
        task: the task in words, as the world gave it.
        state: the present state, as the text that the world showed.
        actions: the admissible actions, as text.
        here: what memory says about this state.
        elsewhere: what memory says about other states.
        lessons: derived items in words.
        step: the agent's interactions so far.
        doubt_since: the interaction at which memory was first found wrong, `None` if it never was.

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

    def render(self) -> str:
        """The text that the policy is given."""
        lines = [self.task.rstrip("\n"), "", f"Current state: {self.state}"]
        lines.append(f"Admissible actions: {json.dumps(list(self.actions), ensure_ascii=False)}")
        lines.append(f"Interactions so far: {self.step}")
        if self.doubt_since is not None:
            lines.append(f"Memory was first found wrong at step: {self.doubt_since}")
        for title, recollections in ((HERE, self.here), (ELSEWHERE, self.elsewhere)):
            if recollections:
                lines += ["", title, *(item.line() for item in recollections)]
        if self.lessons:
            lines += ["", LESSONS, *(f"- {json.dumps(text, ensure_ascii=False)}" for text in self.lessons)]
        lines += ["", ANSWER]
        return "\n".join(lines)


def fold(records: Iterable[Record]) -> tuple[Recollection, ...]:
    """Fold records into recollections: equal (state, action, outcome) become one, in order of first mention.

    Example:
        >>> from drift_agents.types import AgentClock
        >>> fell = Outcome("hole", 0.0, True)
        >>> twice = [Record(i, "a", "1", ((fell, 1.0),), 1, AgentClock(0, i)) for i in (3, 7)]
        >>> [(item.n, item.last) for item in fold(twice)]
        [(2.0, 7)]
    """
    folded: dict[tuple[str, str, Outcome], tuple[float, int, bool]] = {}
    for record in records:
        for outcome, p in record.outcomes:
            key = (record.state, record.action, outcome)
            n, last, verified = folded.get(key, (0.0, -1, False))
            folded[key] = (n + p * record.n, max(last, record.now.step), verified or record.verified)
    return tuple(Recollection(*key, *value) for key, value in folded.items())


_DECODER = json.JSONDecoder()
_DETAILS = re.compile(
    r"^ \((?P<ended>the episode ended; )?score (?P<score>[^;]+); seen (?P<n>once|[^;]+ times); "
    r"last at step (?P<last>-?\d+)(?P<verified>; verified)?"
    r"(?:; highest score believed reachable from there (?P<outlook>[^;]+))?\)$"
)


@lru_cache(maxsize=65536)
def _parse_line(line: str) -> Recollection:
    """One line back into a recollection; cached, since most lines of a prompt stood in the one before."""
    try:
        start = len("- in ")
        _, end = _DECODER.raw_decode(line, start)
        state = line[start:end]
        action, end = _DECODER.raw_decode(line, end + len(" action "))
        start = end + len(" led to ")
        _, end = _DECODER.raw_decode(line, start)
    except ValueError as error:
        raise ArgumentError(f"not a line of a prompt: {line!r}") from error
    details = _DETAILS.match(line[end:])
    if details is None:
        raise ArgumentError(f"not a line of a prompt: {line!r}")
    n = details["n"]
    return Recollection(
        state,
        action,
        Outcome(line[start:end], float(details["score"]), details["ended"] is not None),
        1.0 if n == "once" else float(n.removesuffix(" times")),
        int(details["last"]),
        details["verified"] is not None,
        None if details["outlook"] is None else float(details["outlook"]),
    )


def parse_prompt(text: str) -> PromptView:
    """Turn a rendered prompt back into its view.

    Args:
        text: what `PromptView.render` made, for a world whose states are JSON texts of one line.

    Raises:
        ArgumentError: if the text is not a rendered prompt.
    """
    task, mark, rest = text.partition("\n\nCurrent state: ")
    if not mark:
        raise ArgumentError(f"not a rendered prompt, `Current state:` is missing: {text[:80]!r}")
    lines = rest.split("\n")
    state, doubt_since, step = lines[0], None, 0
    actions: tuple[str, ...] = ()
    sections: dict[str, list[str]] = {HERE: [], ELSEWHERE: [], LESSONS: []}
    section: list[str] | None = None
    for line in lines[1:]:
        if line in sections:
            section = sections[line]
        elif section is not None:
            if line.startswith("- "):
                section.append(line)
        elif line.startswith("Admissible actions: "):
            actions = tuple(json.loads(line.removeprefix("Admissible actions: ")))
        elif line.startswith("Interactions so far: "):
            step = int(line.removeprefix("Interactions so far: "))
        elif line.startswith("Memory was first found wrong at step: "):
            doubt_since = int(line.removeprefix("Memory was first found wrong at step: "))
    return PromptView(
        task,
        state,
        actions,
        tuple(map(_parse_line, sections[HERE])),
        tuple(map(_parse_line, sections[ELSEWHERE])),
        tuple(json.loads(line[2:]) for line in sections[LESSONS]),
        step,
        doubt_since,
    )
