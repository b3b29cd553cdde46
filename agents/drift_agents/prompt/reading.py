r"""The text of a view, read back.

* `read_view` - a text that `PromptView.render` made
* `read_line` - one line of it

Policies get views. Kept steps of a run are text, and so are questions to language models, which rules answer offline:
they read it with these functions.
"""

from __future__ import annotations

import json
import re

from drift_agents.errors import ArgumentError
from drift_agents.prompt.view import (
    ACTIONS,
    ANSWER,
    DOUBT,
    ELSEWHERE,
    HERE,
    LESSONS,
    MOVES,
    STATE,
    STEP,
    TAKEN,
    VISITS,
    PromptView,
    Recollection,
)
from drift_agents.types import Outcome

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


def read_line(line: str) -> Recollection:
    """One line of a text.

    Args:
        line: what `Recollection.line` made, for states that are JSON texts.

    Raises:
        ArgumentError: if it is no such line.

    Example:
        >>> read_line('- in [1] action "0" led to [2] (score 0; seen once; last at step 3)').last
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


def read_view(text: str, environment: str = "generic") -> PromptView:
    """The view of a text.

    Args:
        text: what `PromptView.render` made, for an environment whose states are JSON texts of one line.
        environment: the environment's name, which is no part of the text.

    Raises:
        ArgumentError: if the text is none of a view; the message has the line.

    Example:
        >>> view = PromptView("Reach the goal.", '{"at": 1}', ("0", "1"))
        >>> read_view(view.render()) == view
        True
    """
    lines = text.split("\n")
    # The last one is the true one: a task may contain anything, what follows it is all lines of known kinds.
    place = next((n for n in range(len(lines) - 1, 1, -1) if lines[n].startswith(STATE) and not lines[n - 1]), None)
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
        elif section is None and (name := next((one for one in _HEADER if line.startswith(one)), None)):
            header[name] = line[len(name) :]
        elif line not in ("", ANSWER):
            raise ArgumentError(f"not a line of a prompt: {line!r}")
    try:
        return PromptView(
            "\n".join(lines[: place - 1]),
            lines[place][len(STATE) :],
            tuple(json.loads(header[ACTIONS])),
            tuple(map(read_line, sections[HERE])),
            tuple(map(read_line, sections[ELSEWHERE])),
            tuple(json.loads(line[2:]) for line in sections[LESSONS]),
            int(header[STEP]),
            int(header[DOUBT]) if DOUBT in header else None,
            tuple(json.loads(header[VISITS]).items()) if VISITS in header else None,
            tuple(map(read_line, sections[MOVES])),
            int(header[TAKEN]) if TAKEN in header else None,
            environment,
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError(f"not a rendered prompt, its head is {header!r}") from error


_HEADER = (ACTIONS, STEP, DOUBT, TAKEN, VISITS)
