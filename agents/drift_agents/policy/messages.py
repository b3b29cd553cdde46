"""A prompt in the words of a template: what a language model reads.

* `render_messages` - the messages
* `ARRANGEMENTS`, `arrange` - in which order records are told
* `FORMATS` - how much of the prompt is told
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from drift_agents.errors import ArgumentError
from drift_agents.llm.base import Message
from drift_agents.policy.prompt_template import DOUBTS, PromptTemplate
from drift_agents.prompt.value_estimate import ValueEstimate
from drift_agents.prompt.view import ANSWER, PromptView, Recollection
from drift_agents.types import AgentClock, Outcome, Record

FORMATS = ("paper", "full", "plain", "react")
"""`paper`: this state's experience and lessons, as in GLOVE's appendix B.6. `full`: also other states'
experience, and when memory was found wrong. `plain`: the text that every policy is given.
`react`: the same as `full` in the words of AdaMEM's ReAct agent, reasons first."""

_WHOLE = ("full", "react")
"""Formats that tell other states' experience, and doubt."""

ARRANGEMENTS = ("memory", "oldest", "newest", "shuffled")
"""As memory recalls it, the oldest first, the newest first, at random."""

_FACTS: Mapping[str, re.Pattern[str]] = {
    "lake": re.compile(
        r"of (?P<rows>\d+) rows x (?P<columns>\d+) columns.*?"
        r"total of (?P<destinations>\d+) destination\(s\): (?P<goals>[^.]*)\..*?Actions: (?P<meanings>.*)\.",
        re.DOTALL,
    ),
}
"""What the task of a world tells beside its text."""


def render_messages(view: PromptView, template: PromptTemplate, world: str, form: str = "paper") -> list[Message]:
    """The messages that a language model reads.

    Args:
        view: the prompt, in the order in which it is told.
        template: the words.
        world: which world it is, one of `drift_agents.policy.prompt_template.TEMPLATES`.
        form: one of `FORMATS`.

    Raises:
        ArgumentError: if the template has a gap that nothing is known for.

    Example:
        >>> from drift_agents.policy.prompt_template import load_template
        >>> view = PromptView("Go on.", '{"at": 1}', ("0", "1"))
        >>> render_messages(view, load_template("plain"), "plain")[1].content.splitlines()[0]
        'Go on.'
    """
    gaps = {  # how to answer is added by whoever asks for a form (`drift_agents.llm.answer_format`)
        "task": view.task,
        "prompt": view.render().removesuffix(ANSWER).rstrip(),
        "step": str(view.step),
        "actions": ", ".join(map(_json, view.actions)),
        **_keys(view.state),
        **_facts(world, view.task),
    }
    told = _memory(view, template, form)
    user = template.fill("user", {**gaps, "memory": told})
    return [Message("system", template.fill("system", gaps)), Message("user", user)]


def _memory(view: PromptView, template: PromptTemplate, form: str) -> str:
    """What memory says, in words."""
    worth = _outlook(view)
    blocks = [_records("here", view.here, template, worth)]
    if form in _WHOLE:
        blocks.append(_records("elsewhere", view.elsewhere, template, worth))
    if view.lessons and "lessons" in template:
        entries = [template.fill("lesson", {"lesson": lesson}) for lesson in view.lessons]
        blocks.append(template.fill("lessons", {"lessons": template.listing("lesson", entries)}))
    if form in _WHOLE:
        for section, since in zip(DOUBTS, (view.doubt_since, view.surprised_since), strict=True):
            if since is not None and section in template:
                blocks.append(template.fill(section, {"since": str(since), "step": str(view.step)}))
    return "\n\n".join(block for block in blocks if block)


def _records(
    section: str, items: tuple[Recollection, ...], template: PromptTemplate, worth: Callable[[Outcome], float]
) -> str:
    if not items or section not in template:
        return ""
    entry = f"{section} record"
    entries = [template.fill(entry, _gaps(item, worth)) for item in items]
    return template.fill(section, {"count": str(len(items)), "records": template.listing(entry, entries)})


def _gaps(item: Recollection, worth: Callable[[Outcome], float]) -> dict[str, str]:
    outlook = worth(item.outcome) if item.value_estimate is None else item.value_estimate
    return {
        "action": item.action,
        "times": f"{item.n:g}",
        "last": str(item.last),
        "score": f"{item.outcome.score:g}",
        "outlook": f"{outlook:.3g}" if outlook % 1 else f"{outlook:.1f}",
        "end": "The episode ended there." if item.outcome.ended else "The episode went on.",
        "verified": "verified" if item.verified else "lived",
        **{f"from_{name}": value for name, value in _keys(item.state).items()},
        **{f"result_{name}": value for name, value in _keys(item.outcome.state).items()},
    }


def _outlook(view: PromptView) -> Callable[[Outcome], float]:
    """The highest score that follows from all that the prompt says, joined end to end."""
    records = [
        Record(i, item.state, item.action, ((item.outcome, 1.0),), max(1, round(item.n)), AgentClock(0, item.last))
        for i, item in enumerate((*view.here, *view.elsewhere))
    ]
    return ValueEstimate(records)


def _facts(world: str, task: str) -> dict[str, str]:
    if world not in _FACTS:
        return {}
    found = _FACTS[world].search(task)
    if found is None:
        raise ArgumentError(f"the task of a {world} should tell its size, destinations and actions. Received {task!r}")
    return found.groupdict()


def _keys(state: str) -> dict[str, str]:
    """What a state's text says, key by key; texts and fractions as they are written, all else as JSON."""
    try:
        data = json.loads(state, parse_float=str)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        return {"state": state}
    told = {str(key): value if isinstance(value, str) else _json(value) for key, value in data.items()}
    return {"state": state, **told}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def arrange(view: PromptView, order: str, rng: np.random.Generator) -> PromptView:
    """The same prompt with its records in another order.

    Args:
        view: the prompt.
        order: one of `ARRANGEMENTS`.
        rng: for `shuffled`.
    """
    if order == "memory":
        return view
    return replace(view, here=_ordered(view.here, order, rng), elsewhere=_ordered(view.elsewhere, order, rng))


def _ordered(items: tuple[Recollection, ...], order: str, rng: np.random.Generator) -> tuple[Recollection, ...]:
    if order == "shuffled":
        return tuple(items[i] for i in rng.permutation(len(items)))
    return tuple(sorted(items, key=lambda item: item.last, reverse=order == "newest"))


def size(view: PromptView, form: str) -> int:
    """How many records and lessons are told."""
    return len(view.here) + len(view.lessons) + (len(view.elsewhere) if form != "paper" else 0)


def without_oldest(view: PromptView, form: str, count: int) -> PromptView:
    """The same prompt without so many records: the oldest ones first, lessons when no record is left.

    Args:
        view: the prompt.
        form: one of `FORMATS`; what it does not tell is not counted.
        count: how many are left out.

    Example:
        >>> from drift_agents.types import Outcome
        >>> items = tuple(Recollection("{}", "0", Outcome("{}", 0.0, False), 1.0, last) for last in (5, 3, 9))
        >>> [item.last for item in without_oldest(PromptView("", "{}", ("0",), items), "paper", 2).here]
        [9]
    """
    if not count:
        return view
    told = list(enumerate((*view.here, *(view.elsewhere if form != "paper" else ()))))
    told.sort(key=lambda pair: pair[1].last)
    gone = {place for place, _ in told[:count]}
    lessons = view.lessons[max(0, count - len(told)) :]
    here = tuple(item for place, item in enumerate(view.here) if place not in gone)
    elsewhere = view.elsewhere
    if form != "paper":
        elsewhere = tuple(item for place, item in enumerate(view.elsewhere, len(view.here)) if place not in gone)
    return replace(view, here=here, elsewhere=elsewhere, lessons=lessons)
