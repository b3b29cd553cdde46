"""The planner for facts: a function of the view and a generator for ties.

* `FactsPlanner` - answers with what is believed, or asks
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from drift_agents.envs.facts.statements import FactClaim, ShownDay, read_day
from drift_agents.errors import ArgumentError
from drift_agents.policy.base import Reply
from drift_agents.prompt.conflict import check_conflict, settle
from drift_agents.prompt.view import PromptView, Recollection
from drift_envs.checks import check_choice

ASK, PASS = "ask", "pass"
ASKS = ("doubt", "always", "never")


class FactsPlanner:
    r"""Answers with what is believed, or asks.

    * What was told or said last is believed; news with a date counts from that date. What somebody is said to have
      said counts only where nothing else was said.
    * A value that was a wrong answer since is not believed; how right and wrong answers are weighed says `conflict`.
      Of other values, one that was a right answer is believed.
    * Where nothing is believed, or only what was last seen before memory was found wrong, it asks.

    Args:
        conflict: how several outcomes of one (state, action) are weighed (`drift_agents.prompt.conflict`).
        asks: when it asks: in `doubt`, `always` before an answer, or `never`; then it passes where nothing is believed,
            and ignores doubt.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> at = '{"day": 4, "heard": ["Ana\'s office is bolitu."], "asked": 0, "question": "What is Ana\'s office?"}'
        >>> view = PromptView("What is Ana's office?", at, ("bolitu", "nofeze", "ask", "pass"))
        >>> FactsPlanner().decide(view, np.random.default_rng(0)).text
        'bolitu'
    """

    name = "facts"

    def __init__(self, *, conflict: str = "majority", asks: str = "doubt") -> None:
        self.conflict, self.asks = check_conflict(conflict), check_choice("asks", asks, ASKS)

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        """Choose an action.

        Args:
            view: what the policy decides by.
            rng: for ties and exploration.

        Raises:
            ArgumentError: if the prompt has no state of this environment.
        """
        shown = read_day(view.state)
        if shown is None:
            raise ArgumentError(f"the state should be a day of facts. Received {view.state!r}")
        answers = [action for action in view.actions if action not in (ASK, PASS)]
        wanted = self._believe(view, shown)
        if wanted not in answers:
            wanted = ASK if self.asks != "never" and not shown.asked else PASS
        return Reply(wanted if wanted in view.actions else view.actions[int(rng.integers(len(view.actions)))])

    def _believe(self, view: PromptView, shown: ShownDay) -> str | None:
        """The value that is believed; `None` if there is none."""
        claims = sorted(_claims(view, shown), key=lambda dated: (not dated[1].is_hearsay, dated[0]))
        today = [claim.value for claim in shown.claims if claim.about == shown.about and claim.is_told]
        if today:
            return today[-1]
        if self.asks == "always":
            return None
        doubt = -1 if view.doubt_since is None or self.asks == "never" else view.doubt_since
        answers = self._read_answers(view, shown)
        right = {value: seen for value, seen in answers.items() if seen[0]}
        if claims:
            (day, _, last), claim = claims[-1]
            is_right, seen, answered = answers.get(claim.value, (True, -1, -1))
            if (is_right or seen < day) and max(last, answered) >= doubt:
                return claim.value
        fresh = {value: seen for value, seen in right.items() if seen[2] >= doubt}
        return max(fresh, key=lambda value: fresh[value][1]) if fresh else None

    def _read_answers(self, view: PromptView, shown: ShownDay) -> dict[str, tuple[bool, int, int]]:
        """By value: whether it is a right answer, the last day and the last step on which it was one or was not."""
        sightings: dict[str, dict[bool, tuple[float, int]]] = {}
        days: dict[str, int] = {}
        for item in (*view.elsewhere, *view.here):
            then = read_day(item.state)
            if then is None or then.about != shown.about or not item.outcome.ended or item.action == PASS:
                continue
            seen = sightings.setdefault(item.action, {})
            support, last = seen.get(item.outcome.score > 0, (0.0, -1))
            seen[item.outcome.score > 0] = (support + item.support, max(last, item.last))
            days[item.action] = max(days.get(item.action, -1), then.day)
        found = {}
        for value, seen in sightings.items():
            settled = settle([(is_right, *times) for is_right, times in seen.items()], self.conflict)
            is_right = max(settled, key=lambda pair: pair[1])[0]
            found[value] = (is_right, days[value], seen[is_right][1])
        return found


def _claims(view: PromptView, shown: ShownDay) -> Iterator[tuple[tuple[int, int, int], FactClaim]]:
    """What was said about the fact: the day that counts, the place on that day, and the agent's step; and the claim."""
    seen: list[tuple[ShownDay | None, int]] = [(shown, view.step)]
    for item in (*view.elsewhere, *view.here):
        seen += [(read_day(item.state), item.last), (_outcome(item), item.last)]
    for then, last in seen:
        for place, claim in enumerate(() if then is None else then.claims):
            if claim.about == shown.about:
                yield ((then.day if claim.day is None else claim.day), place, last), claim  # type: ignore[union-attr]


def _outcome(item: Recollection) -> ShownDay | None:
    """The day after an answer to `ask`."""
    return read_day(item.outcome.state) if item.action == ASK else None
