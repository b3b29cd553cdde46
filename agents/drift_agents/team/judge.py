"""The team that weighs proposed actions.

* `Judge` - every member proposes an action, one model chooses: EDV's baseline of that name
* `choose` - the declared rule in the place of a model
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from drift_agents.llm.base import Model, ask
from drift_agents.llm.rules import RuleModel
from drift_agents.llm.template import read_messages
from drift_agents.team.base import Member, Rollout, Solo
from drift_agents.types import Episode

PROPOSALS = "Proposed actions: "
CHOICE: Mapping[str, Any] = {
    "title": "judge",
    "type": "object",
    "properties": {"reason": {"type": "string"}, "choice": {"type": "integer", "minimum": 1}},
    "required": ["choice"],
    "additionalProperties": False,
}


def choose(text: str) -> dict[str, int]:
    """The action that most members propose; of equally many the one proposed first.

    Args:
        text: the prompt, with the line that lists the proposals.

    Example:
        >>> choose('Proposed actions: ["2", "0", "0"]')
        {'choice': 2}
    """
    line = next(line for line in reversed(text.split("\n")) if line.startswith(PROPOSALS))
    proposals = json.loads(line[len(PROPOSALS) :])
    return {"choice": proposals.index(max(proposals, key=proposals.count)) + 1}


class Judge(Solo):
    """Each member proposes an action at each step, and a judge chooses one (EDV's baseline "Judge").

    It chooses among *proposed actions* before any is executed. Choosing among executed episodes would be
    best-of-N, which no other agent has. If all proposals are equal the judge is not called. All members
    decide at each step, so the number of replies is that of the members.

    Args:
        members: the members; the judge is the model of the first member with one.
        model: the judge, if it is not one of theirs; without any model, the majority (`choose`).

    Example:
        >>> from drift_agents.policy.random_policy import RandomPolicy
        >>> team = Judge([Member(name, RandomPolicy()) for name in "abc"])
        >>> team.propose("Any prompt.", ["2", "0", "0"], np.random.default_rng(0))
        '0'
    """

    name = "judge"
    adjudicates = True

    def __init__(self, members: Iterable[Member], *, model: Model | None = None) -> None:
        super().__init__(members)
        own = next((member.model for member in self.members if member.model is not None), None)
        self.model: Model = model or own or RuleModel({"judge": choose})

    def propose(self, prompt: str, proposals: Sequence[str], rng: np.random.Generator) -> str:
        """The action that the judge chooses; the majority's when it names no proposal."""
        if len(set(proposals)) == 1:
            return proposals[0]
        listed = PROPOSALS + json.dumps(list(proposals), ensure_ascii=False)
        messages = read_messages("team/templates/judge.txt", prompt=prompt, proposals=listed)
        place = int(ask(self.model, messages, CHOICE).data["choice"])
        if place > len(proposals):
            place = choose(listed)["choice"]
        return proposals[place - 1]

    def train(self, task: str, rollout: Rollout) -> list[Episode]:
        """One episode, played as in the test: memory keeps its own rule."""
        return [rollout(self.solver(task))]
