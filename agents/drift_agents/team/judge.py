"""The decisions of a team by question and answer: the vote on items, the choice among actions, and their rules.

Source of the vote: EDV, section 4.4, appendix B.2 and figure 8. The default is to reject. `Judge` is EDV's baseline of
that name. `RULES` answers offline in the place of a team's language models.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from drift_agents.errors import ArgumentError
from drift_agents.llm.base import Model, Options, Rule, RuleModel, ask, object_schema, read_messages
from drift_agents.memory.distillation import RULES as DISTILLING
from drift_agents.memory.distillation import (
    Attempts,
    Line,
    ParsedTrajectory,
    ProposedItem,
    is_majority,
    read_claims,
    read_trajectories,
    render_trajectories,
)
from drift_agents.prompt.view import PromptView
from drift_agents.team.base import Member, Solo

VOTE = object_schema("edv_vote", accepted={"type": "array", "items": {"type": "integer"}})
WARNING = "Do not "
"""What a text says that does not advise."""
HELD = "Items that you hold: "
OWN = "Your trajectories: "
_CANDIDATE = re.compile(r"^Candidate (?P<number>\d+): (?P<text>.*)\nEvidence: (?P<refs>.*)$", re.MULTILINE)


def vote(
    model: Model,
    attempts: Attempts,
    candidates: Sequence[ProposedItem],
    own: Iterable[int],
    held: Iterable[str],
    parameters: Options = None,
) -> set[int]:
    """The places of the candidates that a voter accepts, counted from 0.

    Args:
        attempts: all trajectories with their records.
        own: the numbers of the voter's own trajectories, counted from 1.
        held: contents of the items that the voter can read already.
        parameters: of the request, for a language model.

    Raises:
        ModelError: if the model's answer does not have the form that it should have.
    """
    listed = "\n".join(
        f"Candidate {number}: {one_line(candidate.text())}\nEvidence: {', '.join(candidate.refs) or 'none'}"
        for number, candidate in enumerate(candidates, 1)
    )
    messages = read_messages(
        "team/templates/edv_vote.txt",
        trajectories=render_trajectories(attempts),
        standing=OWN + (", ".join(map(str, own)) or "none"),
        held=json.dumps([one_line(text) for text in held], ensure_ascii=False),
        candidates=listed,
    )
    accepted = ask(model, messages, VOTE, parameters).data["accepted"]
    return {number - 1 for number in accepted if 1 <= number <= len(candidates)}


def one_line(text: str) -> str:
    """A text in one line."""
    return " ".join(text.split())


def judge(text: str) -> dict[str, list[int]]:
    """The rule that answers `VOTE` offline; it reads all trajectories, and rejects by default.

    Accepted is a candidate that passes all gates:

    * grounded: it cites lines, all of them exist, and every statement of its text stands in one of them;
    * a majority: no trajectory contradicts a cited line as often as others confirm it;
    * useful: what is advised must reach at least the best score of the voter's own trajectories;
    * new: the voter does not hold the same text, and no candidate before it says the same.

    Args:
        text: trajectories, their members, items held and candidates.

    Returns:
        JSON by the schema `VOTE`.
    """
    attempts = read_trajectories(text)
    lines = {line.ref: line for attempt in attempts for line in attempt.lines}
    own = _after(text, OWN)
    best = max((a.score for a in attempts if str(a.number) in own.split(", ")), default=0.0)
    said: set[str] = set(json.loads(_after(text, HELD) or "[]"))
    accepted = []
    for found in _CANDIDATE.finditer(text):
        cited = [lines.get(ref) for ref in found["refs"].split(", ")]
        if _passes(found["text"], [line for line in cited if line is not None], len(cited), attempts, best):
            if not any(found["text"].endswith(known) for known in said if known):
                accepted.append(int(found["number"]))
            said.add(found["text"])
    return {"accepted": accepted}


def _passes(text: str, cited: Sequence[Line], count: int, attempts: Sequence[ParsedTrajectory], best: float) -> bool:
    """Whether a candidate is grounded, a majority and useful."""
    if not cited or len(cited) < count:
        return False
    known = {(*line.query, *line.outcome) for line in cited}
    if any((*claim.query, *claim.outcome) not in known for claim in read_claims(text)):
        return False
    if not all(is_majority(line, attempts) for line in cited):
        return False
    advises = cited[-1].score > 0 and WARNING not in text
    return not advises or cited[-1].score >= best


def _after(text: str, mark: str) -> str:
    """What stands behind a mark in the last line that begins with it."""
    return next((row[len(mark) :] for row in reversed(text.split("\n")) if row.startswith(mark)), "")


PROPOSALS = "Proposed actions: "
CHOICE = object_schema(
    "judge", reason={"type": "string"}, choice={"type": "integer", "minimum": 1}, optional=["reason"]
)


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

    Raises:
        ArgumentError: if `model` is none, as its name in an experiment file is.

    Example:
        >>> from drift_agents.policy.base import RandomPolicy
        >>> team = Judge([Member(name, RandomPolicy()) for name in "abc"])
        >>> team.propose(PromptView("Any task.", "{}", ("0", "2")), ["2", "0", "0"], np.random.default_rng(0))
        '0'
    """

    name = "judge"
    adjudicates = True

    def __init__(self, members: Iterable[Member], *, model: Model | None = None) -> None:
        super().__init__(members)
        if model is not None and not isinstance(model, Model):
            raise ArgumentError(f"`model` of the team 'judge' should be a language model itself. Received {model!r}")
        own = next((member.model for member in self.members if member.model is not None), None)
        self.model: Model = model or own or RuleModel({"judge": choose})

    def propose(self, view: PromptView, proposals: Sequence[str], rng: np.random.Generator) -> str:
        """The action that the judge chooses; the majority's when it names no proposal."""
        if len(set(proposals)) == 1:
            return proposals[0]
        listed = PROPOSALS + json.dumps(list(proposals), ensure_ascii=False)
        messages = read_messages("team/templates/judge.txt", prompt=view.render(), proposals=listed)
        place = int(ask(self.model, messages, CHOICE).data["choice"])
        if place > len(proposals):
            place = choose(listed)["choice"]
        return proposals[place - 1]


RULES: Mapping[str, Rule] = {**DISTILLING, VOTE["title"]: judge, CHOICE["title"]: choose}
"""Title of a question -> rule."""
