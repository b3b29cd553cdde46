"""A planner with an imperfect reading of the prompt: policies of graded ability without a language model.

* `Reader` - ignores some records, and confuses the outcomes of others
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from drift_agents.checks import check_integer, check_number
from drift_agents.policy.base import Reply
from drift_agents.policy.planner import Planner
from drift_agents.prompt.view import PromptView, Recollection, parse_prompt


class Reader:
    """The planner with an imperfect reading of the prompt, a model of a weak language model.

    It reads the first `records` records of the prompt, those of the present state first, and replaces the
    outcome of each by that of a random record with probability `misread`, drawn anew at each decision.

    Args:
        records: how many records it reads, not negative; by default all.
        misread: the probability of replacing an outcome, in [0, 1].
        options: those of `Planner`.

    Raises:
        ArgumentError: if an option is unknown or out of its range.

    Example:
        >>> Reader(records=20, misread=0.1).name
        'reader'
        >>> Reader(misread=2)
        Traceback (most recent call last):
        drift_agents.errors.ArgumentError: `misread` should be in the interval [0, 1]. Received 2
    """

    name = "reader"

    def __init__(self, *, records: int | None = None, misread: float = 0.0, **options: Any) -> None:
        self.records = check_integer("records", records, 0, optional=True)
        self.misread = check_number("misread", misread, "[0, 1]")
        self._planner = Planner(**options)

    @staticmethod
    def option_names() -> tuple[str, ...]:
        """The names of all options."""
        return ("records", "misread", *Planner.option_names())

    def decide(self, prompt: str, rng: np.random.Generator) -> Reply:
        """Answer a prompt.

        Args:
            prompt: the rendered text.
            rng: for misreading, and for the planner's ties and exploration.

        Raises:
            ArgumentError: if the prompt lacks what the planner needs.
        """
        return self._planner.decide(self._read(parse_prompt(prompt), rng).render(), rng)

    def _read(self, view: PromptView, rng: np.random.Generator) -> PromptView:
        here = list(view.here[: self.records])
        elsewhere = list(view.elsewhere[: None if self.records is None else self.records - len(here)])
        if self.misread > 0:
            known = here + elsewhere
            wrong, others = rng.random(len(known)) < self.misread, rng.integers(max(1, len(known)), size=len(known))
            read = [
                self._mistaken(item, known[other]) if is_wrong else item
                for item, is_wrong, other in zip(known, wrong, others, strict=True)
            ]
            here, elsewhere = read[: len(here)], read[len(here) :]
        return replace(view, here=tuple(here), elsewhere=tuple(elsewhere))

    @staticmethod
    def _mistaken(item: Recollection, other: Recollection) -> Recollection:
        return item._replace(outcome=other.outcome)
