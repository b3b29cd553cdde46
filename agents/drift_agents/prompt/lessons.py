"""Text that is read back: trajectories in lessons, and the lines of kept steps and of questions to models.

Strategies and derived items of a memory reach a policy as lessons, that is, as text. A language model reads any text.
The offline planner reads this one form, wherever it stands in a lesson, and nothing else: each step of a trajectory
counts as `LESSON_WEIGHT` responses. This is the same for all agents. It shows that a mechanism works, not that text was
understood.

Policies get views. Kept steps of a run are text, and so are questions to language models, which rules answer offline:
they read it with `read_view` and `read_line`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

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

LESSON_WEIGHT = 0.5
"""How much a step of a trajectory in a lesson counts beside a recorded response, which outweighs it."""

FROM, TO, THEN = "From ", " to get to ", ", then do "
_START = re.compile(r"From (?=\S)")
_END = re.compile(
    r": score (?P<score>-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?P<ended>, the end)?, last seen at step (?P<last>-?\d+)\.",
    re.ASCII,
)
_DECODER = json.JSONDecoder()


class Trajectory(NamedTuple):
    """Consecutive steps, and how they ended.

    Args:
        states: the states passed, the first one included; one more than there are actions.
        actions: the actions.
        score: the score at its end.
        ended: whether the episode ended there.
        last: when its last step was last seen, in the agent's interactions.
    """

    states: tuple[str, ...]
    actions: tuple[str, ...]
    score: float
    ended: bool
    last: int

    def steps(self) -> tuple[Recollection, ...]:
        """Its single steps; scores before the last step are not part of the text, so they are 0."""
        final = len(self.actions) - 1
        return tuple(
            Recollection(
                self.states[place],
                action,
                Outcome(
                    self.states[place + 1],
                    self.score if place == final else 0.0,
                    self.ended and place == final,
                ),
                1.0,
                self.last,
                weight=LESSON_WEIGHT,
            )
            for place, action in enumerate(self.actions)
        )


def build_trajectories(steps: Iterable[Recollection]) -> tuple[Trajectory, ...]:
    """Split steps into trajectories: a step that does not begin where the last one led to begins a new one.

    Args:
        steps: in order of time.

    Example:
        >>> steps = [Recollection(f"[{n}]", "0", Outcome(f"[{n + 1}]", 0.0, False), 1.0, n) for n in (1, 2, 7)]
        >>> [trajectory.states for trajectory in build_trajectories(steps)]
        [('[1]', '[2]', '[3]'), ('[7]', '[8]')]
    """
    groups: list[list[Recollection]] = []
    for step in steps:
        if groups and not groups[-1][-1].outcome.ended and groups[-1][-1].outcome.state == step.state:
            groups[-1].append(step)
        else:
            groups.append([step])
    return tuple(
        Trajectory(
            (group[0].state, *(step.outcome.state for step in group)),
            tuple(step.action for step in group),
            group[-1].outcome.score,
            group[-1].outcome.ended,
            group[-1].last,
        )
        for group in groups
    )


def render_trajectory(trajectory: Trajectory) -> str:
    """A trajectory as one sentence.

    Args:
        trajectory: its states are texts of one line.

    Example:
        >>> render_trajectory(Trajectory(("[1]", "[2]", "[3]"), ("0", "1"), 1.0, True, 7))
        'From [1] do "0" to get to [2], then do "1" to get to [3]: score 1, the end, last seen at step 7.'
    """
    steps = [
        json.dumps(action, ensure_ascii=False) + TO + after
        for action, after in zip(trajectory.actions, trajectory.states[1:], strict=True)
    ]
    end = f"score {trajectory.score:.6g}{', the end' if trajectory.ended else ''}"
    return f"{FROM}{trajectory.states[0]} do {THEN.join(steps)}: {end}, last seen at step {trajectory.last}."


def parse_trajectories(text: str) -> tuple[Trajectory, ...]:
    """The trajectories of a text, in order; those with states that are no JSON texts are skipped.

    Example:
        >>> one = Trajectory(('{"at": 1}', '{"at": 2}'), ("0",), 0.5, False, 3)
        >>> parse_trajectories(f"Be careful. {render_trajectory(one)} From then on it is easy.") == (one,)
        True
    """
    found = (_parse_trajectory(text, start.end()) for start in _START.finditer(text))
    return tuple(trajectory for trajectory in found if trajectory is not None)


def _parse_trajectory(text: str, place: int) -> Trajectory | None:
    states: list[str] = []
    actions: list[str] = []
    try:
        state, place = _decode(text, place)
        states.append(state)
        mark = " do "
        while text.startswith(mark, place):
            action, place = _DECODER.raw_decode(text, place + len(mark))
            if not isinstance(action, str) or not text.startswith(TO, place):
                return None
            state, place = _decode(text, place + len(TO))
            actions.append(action)
            states.append(state)
            mark = THEN
    except (ValueError, RecursionError):
        return None
    end = _END.match(text, place)
    if end is None or not actions:
        return None
    return Trajectory(tuple(states), tuple(actions), float(end["score"]), end["ended"] is not None, int(end["last"]))


def _decode(text: str, place: int) -> tuple[str, int]:
    """The JSON text that begins there, and where it ends."""
    _, end = _DECODER.raw_decode(text, place)
    return text[place:end], end


@lru_cache(maxsize=4096)
def _parse_lesson(text: str) -> tuple[Trajectory, ...]:
    return parse_trajectories(text)


def parse_lessons(lessons: Sequence[str]) -> tuple[Recollection, ...]:
    """The steps of all trajectories of some lessons, as recollections of low weight.

    Equal steps of several trajectories become one recollection with the sum of their responses.

    Args:
        lessons: derived items as text, as they stand in a prompt.

    Example:
        >>> lesson = render_trajectory(Trajectory(('{"at": 1}', '{"at": 2}'), ("0",), 1.0, True, 3))
        >>> [(item.action, item.outcome.score, item.support) for item in parse_lessons(("Keep calm.", lesson))]
        [('0', 1.0, 0.5)]
    """
    merged: dict[tuple[str, str, Outcome], Recollection] = {}
    for item in (step for lesson in lessons for trajectory in _parse_lesson(lesson) for step in trajectory.steps()):
        key = item.state, item.action, item.outcome
        known = merged.get(key)
        merged[key] = item if known is None else known._replace(n=known.n + item.n, last=max(known.last, item.last))
    return tuple(merged.values())


def has_trajectory(lesson: str) -> bool:
    """Whether a lesson holds a trajectory; to the offline planner any other is empty.

    Example:
        >>> has_trajectory("Keep calm.")
        False
    """
    return bool(_parse_lesson(lesson))


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
        state, end = _decode_after("- in ", line, 0)
        action, end = _decode_after(" action ", line, end)
        after, end = _decode_after(" led to ", line, end)
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


def _decode_after(mark: str, line: str, start: int) -> tuple[str, int]:
    """The JSON text after `mark`, which must stand at `start`; and where it ends."""
    if not line.startswith(mark, start):
        raise ValueError(mark)
    start += len(mark)
    return _decode(line, start)


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
