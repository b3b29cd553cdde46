"""One day: what was heard, and a question.

* `FactsEpisode` - answers, asks, and writes observations
* `ASK`, `PASS` - the commands that are no answers
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from drift_envs.envs.facts.model import FactsModel

ASK, PASS = "ask", "pass"


class FactsEpisode:
    """The state of a day.

    Args:
        model: the world; replaced from outside when knobs change.
        number: the fact that is asked about.
        day: the number of the day.
        heard: the sentences of the day.
        question: the question.

    Example:
        >>> from drift_envs.envs.facts.model import make_model
        >>> model = make_model(7, {})
        >>> episode = FactsEpisode(model, 0, 3, model.news(3, None, [0]), model.question(0, 0))
        >>> print(episode.write_answer())
        Day 3. Ana's address is fegege.
        The plants need water.
        What is Ana's address?
        >>> episode.act("ask"), episode.act("fegege"), episode.score
        ("Asked today: Ana's address is fegege.", 'The answer was right.', 0.9)
    """

    def __init__(self, model: FactsModel, number: int, day: int, heard: Sequence[str], question: str) -> None:
        self.model, self.number, self.day = model, number, day
        self.heard, self.question = tuple(heard), question
        self.asked, self.answer, self.score, self.is_over = 0, "", 0.0, False

    def act(self, text: str) -> str:
        """Ask, pass, or answer with a value.

        Args:
            text: the command.

        Returns:
            What follows, in words.
        """
        command = " ".join(text.lower().split())
        if self.is_over:
            return self.answer
        if command == ASK:
            return self._tell(self.model.value(self.number))
        self.is_over = True
        right = command != PASS and command == self.model.value(self.number)
        self.score += float(right)
        self.answer = "The answer was right." if right else "No answer." if command == PASS else "The answer was wrong."
        return self.answer

    def lose(self) -> str:
        """Answer `ask` with a false value."""
        which = self.asked + 7 * self.day
        return self.answer if self.is_over else self._tell(self.model.false_value(self.number, which))

    def _tell(self, value: str) -> str:
        self.asked += 1
        self.score = -self.model.price * self.asked
        self.answer = self.model.tell(self.number, value)
        self.heard = (*(one for one in self.heard if one != self.answer), self.answer)
        return self.answer

    def write_answer(self) -> str:
        """The day in words, or what followed the answer."""
        return self.answer if self.is_over else f"Day {self.day}. " + "\n".join((*self.heard, self.question))

    def write_state(self) -> str:
        """The state as JSON."""
        return _write_state(self.day, self.heard, self.asked, self.question)

    def save(self) -> dict[str, Any]:
        """The state as plain data."""
        return {name: value for name, value in vars(self).items() if name != "model"}

    def load(self, saved: Mapping[str, Any]) -> None:
        """Restore a state.

        Args:
            saved: from `save`.
        """
        vars(self).update(saved)


@lru_cache(maxsize=256)
def _write_state(day: int, heard: tuple[str, ...], asked: int, question: str) -> str:
    return json.dumps({"day": day, "heard": heard, "asked": asked, "question": question})
