r"""Advice in words: a way that somebody went, told in one sentence and read back from it.

* `Trajectory` - steps that follow each other, and how they ended
* `join_ways` - steps that follow each other, as ways
* `tell_way` - a way in words
* `read_ways` - the ways that a text tells
* `read_advice` - what lessons say about single steps, as recollections of little weight
* `ADVICE` - that weight

Strategies and items of a memory reach a policy as lessons, that is as words. A language model reads
any words. The offline planner reads this one form, wherever it stands in a lesson, and nothing else:
a way is as good to it as `ADVICE` times one lived response for each of its steps. That is declared, and
the same for every agent. What it shows is that a mechanism works, not that words were understood.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from drift_agents.prompt.view import Recollection
from drift_agents.types import Outcome

ADVICE = 0.5
"""How much a step of a way counts beside a lived response: what was lived, or verified, outweighs words."""

FROM, TO, THEN = "From ", " to get to ", ", then do "
_START = re.compile(r"From (?=\S)")
_END = re.compile(
    r": score (?P<score>-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?P<ended>, the end)?, last seen at step (?P<last>-?\d+)\.",
    re.ASCII,
)
_DECODER = json.JSONDecoder()


class Trajectory(NamedTuple):
    """Steps that follow each other, and how they ended.

    Args:
        states: where the way leads along, its start included; one more than there are actions.
        actions: what is done.
        score: the score at its end.
        ended: whether the episode ended there.
        last: when its end was last seen, in the agent's interactions.
    """

    states: tuple[str, ...]
    actions: tuple[str, ...]
    score: float
    ended: bool
    last: int

    def steps(self) -> tuple[Recollection, ...]:
        """What it says about single steps; scores on the way are not told, so they count as 0."""
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
                weight=ADVICE,
            )
            for place, action in enumerate(self.actions)
        )


def join_ways(steps: Iterable[Recollection]) -> tuple[Trajectory, ...]:
    """Steps that follow each other, as ways; where one does not begin where the last one led to, a new way begins.

    Args:
        steps: in the order in which they were lived.

    Example:
        >>> steps = [Recollection(f"[{n}]", "0", Outcome(f"[{n + 1}]", 0.0, False), 1.0, n) for n in (1, 2, 7)]
        >>> [way.states for way in join_ways(steps)]
        [('[1]', '[2]', '[3]'), ('[7]', '[8]')]
    """
    ways: list[list[Recollection]] = []
    for step in steps:
        if ways and not ways[-1][-1].outcome.ended and ways[-1][-1].outcome.state == step.state:
            ways[-1].append(step)
        else:
            ways.append([step])
    return tuple(
        Trajectory(
            (way[0].state, *(step.outcome.state for step in way)),
            tuple(step.action for step in way),
            way[-1].outcome.score,
            way[-1].outcome.ended,
            way[-1].last,
        )
        for way in ways
    )


def tell_way(way: Trajectory) -> str:
    """A way in words.

    Args:
        way: states are texts of one line.

    Example:
        >>> tell_way(Trajectory(("[1]", "[2]", "[3]"), ("0", "1"), 1.0, True, 7))
        'From [1] do "0" to get to [2], then do "1" to get to [3]: score 1, the end, last seen at step 7.'
    """
    does = [
        json.dumps(action, ensure_ascii=False) + TO + after
        for action, after in zip(way.actions, way.states[1:], strict=True)
    ]
    end = ", the end" if way.ended else ""
    return f"{FROM}{way.states[0]} do {THEN.join(does)}: score {way.score:.6g}{end}, last seen at step {way.last}."


def read_ways(text: str) -> tuple[Trajectory, ...]:
    """The ways that a text tells, in order; states that are no JSON texts are not read.

    Args:
        text: any text.

    Example:
        >>> way = Trajectory(('{"at": 1}', '{"at": 2}'), ("0",), 0.5, False, 3)
        >>> read_ways(f"Be careful. {tell_way(way)} From then on it is easy.") == (way,)
        True
    """
    ways = []
    for start in _START.finditer(text):
        way = _read_way(text, start.end())
        if way is not None:
            ways.append(way)
    return tuple(ways)


def _read_way(text: str, place: int) -> Trajectory | None:
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
def _read_lesson(text: str) -> tuple[Trajectory, ...]:
    return read_ways(text)


def read_advice(lessons: Sequence[str]) -> tuple[Recollection, ...]:
    """What lessons say about single steps, as recollections of little weight.

    A step that several ways tell alike is told once, as often as they do.

    Args:
        lessons: derived items in words, as they stand in a prompt.

    Example:
        >>> lesson = tell_way(Trajectory(('{"at": 1}', '{"at": 2}'), ("0",), 1.0, True, 3))
        >>> [(item.action, item.outcome.score, item.support) for item in read_advice(("Keep calm.", lesson))]
        [('0', 1.0, 0.5)]
    """
    told: dict[tuple[str, str, Outcome], Recollection] = {}
    for item in _steps(lessons):
        key = item.state, item.action, item.outcome
        known = told.get(key)
        told[key] = item if known is None else known._replace(n=known.n + item.n, last=max(known.last, item.last))
    return tuple(told.values())


def _steps(lessons: Iterable[str]) -> Iterable[Recollection]:
    for lesson in lessons:
        for way in _read_lesson(lesson):
            yield from way.steps()
