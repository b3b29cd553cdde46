"""The formats `ranked` and `raw`: what memory knows about the present state, in words of the environment.

Goal, rules and actions come first and change least, so that the prefix caches of servers apply; the present state
and what is known about it come last.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from drift_agents.llm.base import Message
from drift_agents.policy.prompt_template import PromptTemplate
from drift_agents.prompt.lessons import THEN, TO
from drift_agents.prompt.view import PromptView, Recollection

RANKED, RAW = "ranked", "raw"

LEAST_WEIGHT = 0.01
"""Smaller weights are shown as below this value."""

LONG = 20
"""From so many steps on equal consecutive actions of a trajectory in a lesson are counted instead of listed."""

_DECODER = json.JSONDecoder()
_HIGHEST = re.compile(r"The highest score is (?P<score>\d+(?:\.\d+)?)")
_MEANINGS = re.compile(r"Actions: (?P<meanings>.*?)\.?\s*$", re.DOTALL)


class PlainFacts:
    """How an environment's states and tasks are put in words: here as they are, for environments without their own.

    A subclass replaces what its environment can say better; templates use what it supplies as placeholders.

    Example:
        >>> PlainFacts().describe_state('{"at": 1}')
        '{"at": 1}'
    """

    best_score: float | None = None
    """The highest score of every task, where tasks do not name it."""
    cut_states: tuple[str, str] | None = None
    """The beginning of a state that a memory has cut off, and what stands for it; left as it is without this."""

    def describe_state(self, state: str) -> str:
        """A state in few words, for records.

        Raises:
            ValueError, KeyError, TypeError: if the text is no state of this environment.
        """
        return state

    def goal(self, task: str) -> str:
        """What is shown as the goal."""
        return task

    def highest_score(self, task: str) -> float | None:
        """The highest score that the task can pay, `None` if it is not known."""
        found = _HIGHEST.search(task) if self.best_score is None else None
        return float(found["score"]) if found else self.best_score

    def is_of_other_task(self, item: Recollection, view: PromptView) -> bool:
        """Whether what an outcome leads to is the score of another task than the present one.

        Args:
            item: a recollection of the present state.
        """
        return False

    def brief_fields(self, view: PromptView) -> Mapping[str, str]:
        """Placeholders of the format `brief` that differ from those of `ranked`."""
        return {}

    def brief_outcome(self, item: Recollection) -> str:
        """What followed an action, in as few words as tell it from other outcomes."""
        return describe_state(self, item.outcome.state)

    def brief_end(self, item: Recollection) -> str:
        """What ended an episode in another state.

        Args:
            item: a recollection of another state.
        """
        return f"{describe_state(self, item.state)}, {item.action}"

    def brief_move(self, item: Recollection) -> str:
        """A step of the present episode."""
        return f"{item.action} led to {self.brief_outcome(item)}"

    def find_barriers(self, view: PromptView) -> Mapping[str, int] | None:
        """What shuts all known ways, each with when it was last seen; `None` while a way may be open.

        Here: the actions of the present state, where all were tried and none is known to lead to a score.
        """
        if any(map(score_ahead, view.here)):
            return None
        tried = dict.fromkeys(view.actions, -1)
        for item in view.here:
            if item.action in tried:
                tried[item.action] = max(tried[item.action], item.last)
        return tried if tried and min(tried.values()) >= 0 else None

    def state_fields(self, state: str) -> Mapping[str, str]:
        """Placeholders of the present state, beside the keys of its JSON object."""
        return {}

    def task_fields(self, task: str) -> Mapping[str, str]:
        """Placeholders that are parsed from the task."""
        return {}


PLAIN = PlainFacts()


@lru_cache(maxsize=8192)
def describe_state(facts: PlainFacts, state: str) -> str:
    """A state in words."""
    return facts.describe_state(state)


def without_meanings(task: str) -> str:
    """A task without its last sentence, if that says what the actions do.

    Example:
        >>> without_meanings("Reach the flag. Actions: 0 left, 1 right.")
        'Reach the flag.'
    """
    return _MEANINGS.sub("", task).strip()


def _in_words(facts: PlainFacts, text: str) -> str:
    """A lesson with the states in it in words, and long trajectories shortened."""
    parts: list[str] = []
    place = 0
    while (start := text.find('{"', place)) >= 0:
        try:
            _, end = _DECODER.raw_decode(text, start)
            words = describe_state(facts, text[start:end])
        except (ValueError, KeyError, TypeError):
            # Memories cut long states off.
            is_cut = facts.cut_states is not None and text.startswith(facts.cut_states[0], start)
            cut = text.find("...", start) if is_cut else -1
            end = start + 1 if cut < 0 else cut + len("...")
            words = text[start:end] if cut < 0 or facts.cut_states is None else facts.cut_states[1]
        parts += [text[place:start], words]
        place = end
    return _shorten("".join([*parts, text[place:]]))


def _shorten(text: str) -> str:
    """A lesson whose long trajectories count equal consecutive actions; other text stays as it is."""
    first, *rest = text.split(THEN)
    if len(rest) < LONG:
        return text
    head, do, step = first.rpartition(" do ")
    runs: list[tuple[str, int, str]] = []
    for action, _, after in (part.partition(TO) for part in (step, *rest)):
        # A trajectory that has ended is followed by other text, which stays.
        same = bool(runs) and runs[-1][0] == action and ": score " not in runs[-1][2]
        count = runs.pop()[1] + 1 if same else 1
        runs.append((action, count, after))
    steps = [f"{action}{f' {count} times' if count > 1 else ''}{TO}{after}" for action, count, after in runs]
    return f"{head}{do}{THEN.join(steps)}"


def _meanings(task: str) -> str:
    found = _MEANINGS.search(task)
    return found["meanings"] if found else ""


class FactsRenderer:
    """The messages of the formats `ranked` and `raw`.

    Args:
        view: the prompt.
        template: the environment's for these formats, as `frozen_lake_facts`.
        facts: the environment in words.
        form: `RANKED`, `RAW`, or the format of a subclass.
    """

    once, many, old = "Seen once, last at step", "Seen {n:g} times, last at step", "before the contradiction"
    """How an outcome is marked that was seen once, and one that was last seen before memory was contradicted."""

    def __init__(self, view: PromptView, template: PromptTemplate, facts: PlainFacts, form: str) -> None:
        here = tuple(
            item._replace(value_estimate=0.0, steps_to_go=None) if facts.is_of_other_task(item, view) else item
            for item in view.here
        )
        self.view, self.template, self.facts, self.form = replace(view, here=here), template, facts, form
        names = (entry.strip().partition(" ") for entry in _meanings(view.task).split(","))
        self._names = {action: name for action, _, name in names if action in view.actions and name}

    def render(self, values: Mapping[str, str], example: str) -> list[Message]:
        """The system message and the user message for a language model.

        Args:
            values: placeholders that are known already: the keys of the state, and `actions`.
            example: a worked example, or an empty text.

        Raises:
            ArgumentError: if the template has a placeholder without a value.
        """
        filled = {**values, **self._fields()}
        blocks = {  # an empty text where there is nothing to show
            "lessons": self._lessons(),
            "elsewhere": self._elsewhere(),
            "doubt": self._doubt(),
            "episode": self._episode(),
            "visits": self._visits(),
            "here": self._records("here", self._ranked()),
            "untried": self._untried(),
            "below": self._below(),
            "shut": self._shut(),
        }
        system = self.template.fill("system", filled)
        user = self.template.fill("user", {**filled, **blocks, "example": example})
        return [Message("system", system), Message("user", user)]

    def _fields(self) -> dict[str, str]:
        """Placeholders of the environment's words."""
        view = self.view
        fields = {"meanings": _meanings(view.task), "now": str(view.step), "task": self.facts.goal(view.task)}
        return fields | dict(self.facts.state_fields(view.state))

    def _elsewhere(self) -> str:
        """All of it, or the steps that ended an episode: dangers and goals."""
        return self._records("elsewhere", self.view.elsewhere if self.form == RAW else self._ends())

    def _ends(self) -> list[Recollection]:
        return [item for item in self.view.elsewhere if item.outcome.ended]

    def _ranked(self) -> Sequence[Recollection]:
        if self.form == RAW:
            return self.view.here
        return sorted(self.view.here, key=lambda item: (-score_ahead(item), item.steps_to_go or 0))

    def _episode(self) -> str:
        return self._records("episode", self.view.moves)

    def _records(self, section: str, items: Sequence[Recollection]) -> str:
        if not items:
            return ""
        entries = [self.template.fill(f"{section} record", self._placeholders(item)) for item in items]
        return self.template.fill(section, {"records": "\n".join(entries), "count": str(len(items))})

    def _placeholders(self, item: Recollection) -> dict[str, str]:
        others = [one for one in self.view.here if one.action == item.action and one.outcome != item.outcome]
        others = [one for one in others if one.state == item.state]
        newer = "newer ones among them" if any(one.last > item.last for one in others) else "all of them older"
        visited = self.template.fill("visited", {"count": str(item.visits)}) if item.visits else ""
        return {
            "action": item.action,
            "action_words": self._name(item.action),
            "from": describe_state(self.facts, item.state),
            "outcome": self._outcome(item),
            "evidence": self._evidence(item),
            "contradicted": _joined(self.template.fill("contradicted", {"newer": newer})) if others else "",
            "estimate": self._estimate(item),
            "visited": _joined(visited) if visited else "",
        }

    def _outcome(self, item: Recollection) -> str:
        words = describe_state(self.facts, item.outcome.state)
        if item.outcome.ended:
            return f"{words}: the episode ended with score {item.outcome.score:g}"
        if item.outcome.state == item.state:
            return f"{words}: nothing changed"
        return words if not item.outcome.score else f"{words}, score so far {item.outcome.score:g}"

    def _evidence(self, item: Recollection) -> str:
        words = [f"{self.once if item.n == 1 else self.many.format(n=item.n)} {item.last}"]
        if self._is_old(item.last):
            words.append(self.old)
        if item.verified:
            words.append("verified")
        if item.weight != 1:
            words.append(f"weight {item.weight:.2g}" if item.weight >= LEAST_WEIGHT else f"weight below {LEAST_WEIGHT}")
        return ", ".join(words)

    def _is_old(self, last: int) -> bool:
        """Whether something was last seen before memory was contradicted."""
        return self.view.doubt_since is not None and last < self.view.doubt_since

    def _estimate(self, item: Recollection) -> str:
        if self.form == RAW or item.outcome.ended:
            return ""
        score, ahead = score_ahead(item), item.steps_to_go
        steps = "" if ahead is None else f", in {ahead} more step{'' if ahead == 1 else 's'}"
        # Zero would read as if memory knew that nothing can be reached.
        words = {"score_ahead": f"{score:g}" if score else "none known", "steps_ahead": steps}
        return _joined(self.template.fill("estimate", words))

    def _untried(self) -> str:
        known = {item.action for item in self.view.here}
        names = [self._name(action) for action in self.view.actions if action not in known]
        words = ", ".join(names) if known else "every action"
        return self.template.fill("untried", {"untried": words}) if names else ""

    def _below(self) -> str:
        """That the best score known is not the highest that the task can pay."""
        best = max(map(score_ahead, self.view.here), default=0.0)
        highest = self.facts.highest_score(self.view.task)
        if self.form == RAW or highest is None or not 0 < best < highest:
            return ""
        return self.template.fill("below", {"best": f"{best:g}", "highest": f"{highest:g}"})

    def _shut(self) -> str:
        """That all known ways are shut, and what of that may have changed."""
        if self.form == RAW or "shut" not in self.template:
            return ""
        barriers = self.facts.find_barriers(self.view)
        if barriers is None:
            return ""
        old = [self._name(name) for name, last in barriers.items() if self._is_old(last)]
        older = _joined(self.template.fill("older", {"older": ", ".join(old)})) if old else ""
        return self.template.fill("shut", {"older": older})

    def _visits(self) -> str:
        counts = dict(self.view.visits or ())
        words = ", ".join(f"{self._name(action)} {count} time(s)" for action, count in counts.items())
        return self.template.fill("visits", {"count": str(sum(counts.values())), "visits": words}) if words else ""

    def _doubt(self) -> str:
        since = self.view.doubt_since
        return "" if since is None else self.template.fill("doubt", {"since": str(since), "step": str(self.view.step)})

    def _lessons(self) -> str:
        if not self.view.lessons:
            return ""
        counts = Counter(_in_words(self.facts, lesson).removeprefix("- ") for lesson in self.view.lessons)
        texts = [text if count == 1 else f"{text} ({count} times)" for text, count in counts.items()]
        entries = [self.template.fill("lesson", {"lesson": text}) for text in texts]
        return self.template.fill("lessons", {"lessons": "\n".join(entries)})

    def _name(self, action: str) -> str:
        return f"{action} ({self._names[action]})" if action in self._names else action


def score_ahead(item: Recollection) -> float:
    """The highest score that memory believes reachable after an outcome."""
    return item.outcome.score if item.value_estimate is None else item.value_estimate


def _joined(text: str) -> str:
    """A part of a line: what the template has between spaces, with one space before it."""
    return f" {stripped}" if (stripped := text.strip()) else ""
