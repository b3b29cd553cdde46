"""A prompt as messages to a language model, by a template: which parts of it, in which order.

The formats `paper`, `full` and `react` are filled in here, those of `FACTS_FORMATS` by their renderers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

import numpy as np

from drift_agents.llm.base import Message
from drift_agents.policy.brief import BRIEF, BriefRenderer
from drift_agents.policy.prompt_template import PromptTemplate
from drift_agents.policy.ranked import PLAIN, RANKED, RAW, FactsRenderer, PlainFacts
from drift_agents.prompt.value_estimate import ValueEstimate, as_records
from drift_agents.prompt.view import ANSWER, PromptView, Recollection
from drift_agents.types import Outcome

FACTS_FORMATS: Mapping[str, type[FactsRenderer]] = {BRIEF: BriefRenderer, RANKED: FactsRenderer, RAW: FactsRenderer}
"""Formats that show the present episode, and steps to go beside every score. `brief`: see `drift_agents.policy.brief`.
`ranked`: each known outcome with the highest score reachable from there and the steps to it, best first. `raw`: the
same without any estimate of ours, and all transitions of other states."""
FORMATS = (*FACTS_FORMATS, "paper", "full", "react")
"""`paper`: this state's experience and lessons, as in GLOVE's
appendix B.6. `full`: also other states' experience, and when memory was contradicted. `react`: the
same as `full`, and all steps of the episode, by the template of AdaMEM's ReAct agent, reasons first."""

_PRESENT = (BRIEF, RANKED, "paper")
"""Formats that leave out other states' experience, but for what ended an episode."""
_COMPLETE = ("full", "react")
"""Formats that contain other states' experience, and when memory was contradicted."""

ARRANGEMENTS = ("memory", "oldest", "newest", "shuffled")
"""As retrieved, the oldest first, the newest first, at random."""


def render_messages(
    view: PromptView, template: PromptTemplate, facts: PlainFacts = PLAIN, form: str = "paper", examples: bool = False
) -> list[Message]:
    """The system message and the user message for a language model.

    Args:
        view: the prompt, its records in the order of the messages.
        template: the texts with placeholders.
        facts: the environment in words, for a template of its own.
        form: one of `FORMATS`.
        examples: whether the template's worked example is shown, for `FACTS_FORMATS`.

    Raises:
        ArgumentError: if the template has a placeholder without a value.

    Example:
        >>> from drift_agents.policy.prompt_template import load_template
        >>> view = PromptView("Go on.", '{"at": 1}', ("0", "1"))
        >>> render_messages(view, load_template("drift_agents.policy:plain"))[1].content.splitlines()[0]
        'Go on.'
    """
    if form in FACTS_FORMATS:
        known = {"actions": ", ".join(map(_json, view.actions)), **_keys(view.state)}
        example = template.fill("example", {}) if examples and "example" in template else ""
        return FACTS_FORMATS[form](view, template, facts, form).render(known, example)
    values = {  # the form of the answer is added later (`drift_agents.llm.answer_format`)
        "task": view.task,
        "prompt": view.render().removesuffix(ANSWER).rstrip(),
        "step": str(view.step),
        "taken": str(view.taken or 0),
        "next": str((view.taken or 0) + 1),
        "episode": _episode(view, template),
        "actions": ", ".join(map(_json, view.actions)),
        **_keys(view.state),
        **facts.task_fields(view.task),
    }
    user = template.fill("user", {**values, "memory": _memory(view, template, form)})
    return [Message("system", template.fill("system", values)), Message("user", user)]


def _episode(view: PromptView, template: PromptTemplate) -> str:
    """The steps of this episode, the oldest first; where some were left out, the newest ones."""
    if not view.moves or "episode" not in template:
        return ""
    first = (view.taken or 0) - len(view.moves) + 1
    entries = [
        template.fill("episode record", {"number": str(number), **_placeholders(move)})
        for number, move in enumerate(view.moves, first)
    ]
    return template.fill(
        "episode", {"count": str(len(entries)), "records": template.listing("episode record", entries)}
    )


def _memory(view: PromptView, template: PromptTemplate, form: str) -> str:
    """The part of the user message that comes from memory."""
    estimate = _value_estimate(view)
    blocks = [_records("here", view.here, template, estimate)]
    if form in _COMPLETE:
        blocks.append(_records("elsewhere", view.elsewhere, template, estimate))
    if view.lessons and "lessons" in template:
        entries = [template.fill("lesson", {"lesson": lesson}) for lesson in view.lessons]
        blocks.append(template.fill("lessons", {"lessons": template.listing("lesson", entries)}))
    if form in _COMPLETE and view.doubt_since is not None:
        blocks.append(template.fill("doubt", {"since": str(view.doubt_since), "step": str(view.step)}))
    return "\n\n".join(block for block in blocks if block)


def _records(
    section: str, items: tuple[Recollection, ...], template: PromptTemplate, estimate: Callable[[Outcome], float]
) -> str:
    if not items or section not in template:
        return ""
    entry = f"{section} record"
    if not template.uses(entry, "outlook"):
        entries = [template.fill(entry, _placeholders(item)) for item in items]
    else:
        entries = [template.fill(entry, {**_placeholders(item), "outlook": _outlook(item, estimate)}) for item in items]
    return template.fill(section, {"count": str(len(items)), "records": template.listing(entry, entries)})


def _outlook(item: Recollection, estimate: Callable[[Outcome], float]) -> str:
    value = estimate(item.outcome) if item.value_estimate is None else item.value_estimate
    return f"{value:.3g}" if value % 1 else f"{value:.1f}"


def _placeholders(item: Recollection) -> dict[str, str]:
    return {
        "action": item.action,
        "times": f"{item.n:g}",
        "last": str(item.last),
        "score": f"{item.outcome.score:g}",
        "end": "The episode ended there." if item.outcome.ended else "The episode went on.",
        "verified": "verified" if item.verified else "lived",
        **{f"from_{name}": value for name, value in _keys(item.state).items()},
        **{f"result_{name}": value for name, value in _keys(item.outcome.state).items()},
    }


def _value_estimate(view: PromptView) -> Callable[[Outcome], float]:
    """The highest score reachable after an outcome, according to the records of the prompt; computed when called."""

    @cache
    def fit() -> ValueEstimate:
        return ValueEstimate(as_records((*view.here, *view.elsewhere)))

    return lambda outcome: fit()(outcome)


@lru_cache(maxsize=8192)
def _keys(state: str) -> Mapping[str, str]:
    """The keys of a state's JSON object with their values; texts and fractions as written, all else as JSON."""
    try:
        data = json.loads(state, parse_float=str)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        return {"state": state}
    return {"state": state, **{str(key): v if isinstance(v, str) else _json(v) for key, v in data.items()}}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def arrange(view: PromptView, order: str, rng: np.random.Generator) -> PromptView:
    """The same prompt with its records in another order.

    Args:
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


def count_entries(view: PromptView, form: str) -> int:
    """The number of records and lessons in the messages of a format, and of steps of the episode where all are."""
    steps = 0 if view.taken is None else len(view.moves)
    return len(view.here) + len(view.lessons) + (len(view.elsewhere) if form not in _PRESENT else 0) + steps


def without_oldest(view: PromptView, form: str, count: int) -> PromptView:
    """The prompt without `count` records, the oldest first; then without lessons, then without the oldest steps.

    Args:
        form: one of `FORMATS`; records that it does not contain are not counted.
        count: how many are left out.

    Example:
        >>> from drift_agents.types import Outcome
        >>> items = tuple(Recollection("{}", "0", Outcome("{}", 0.0, False), 1.0, last) for last in (5, 3, 9))
        >>> [item.last for item in without_oldest(PromptView("", "{}", ("0",), items), "paper", 2).here]
        [9]
    """
    if not count:
        return view
    shown = list(enumerate((*view.here, *(view.elsewhere if form not in _PRESENT else ()))))
    shown.sort(key=lambda pair: pair[1].last)
    dropped = {place for place, _ in shown[:count]}
    lessons = view.lessons[max(0, count - len(shown)) :]
    moves = view.moves[max(0, count - len(shown) - len(view.lessons)) :] if view.taken is not None else view.moves
    here = tuple(item for place, item in enumerate(view.here) if place not in dropped)
    elsewhere = view.elsewhere
    if form not in _PRESENT:
        elsewhere = tuple(item for place, item in enumerate(view.elsewhere, len(view.here)) if place not in dropped)
    return replace(view, here=here, elsewhere=elsewhere, lessons=lessons, moves=moves)
