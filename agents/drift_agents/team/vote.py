"""Votes on candidates: the question, and the rule that answers it offline.

* `VOTE` - the question to a voter: which candidates are accepted
* `vote` - queries a member's model, or applies the rules in its place
* `judge` - the rule: grounded, not outvoted, useful to this voter, not held already

Source: EDV, section 4.4, appendix B.2 and figure 8. The default is to reject.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from drift_agents.llm.base import Model, Options, ask
from drift_agents.llm.template import read_messages
from drift_agents.memory.distillation import (
    Line,
    ParsedTrajectory,
    ProposedItem,
    is_majority,
    read_claims,
    read_trajectories,
    render_trajectories,
)
from drift_agents.types import Episode, Record

VOTE: Mapping[str, Any] = {
    "title": "edv_vote",
    "type": "object",
    "properties": {"accepted": {"type": "array", "items": {"type": "integer"}}},
    "required": ["accepted"],
    "additionalProperties": False,
}
WARNING = "Do not "
"""What a text says that does not advise."""
HELD = "Items that you hold: "
OWN = "Your trajectories: "
_CANDIDATE = re.compile(r"^Candidate (?P<number>\d+): (?P<text>.*)\nEvidence: (?P<refs>.*)$", re.MULTILINE)


def vote(
    model: Model,
    attempts: Sequence[tuple[Episode, Sequence[Record]]],
    candidates: Sequence[ProposedItem],
    own: Iterable[int],
    held: Iterable[str],
    parameters: Options = None,
) -> set[int]:
    """The places of the candidates that a voter accepts, counted from 0.

    Args:
        model: the voter.
        attempts: all trajectories with their records.
        candidates: what is voted on.
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

