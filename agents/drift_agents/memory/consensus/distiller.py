"""Who distils: several attempts at a task in, candidates for memory out.

* `propose` - asks a model, or rules in its place
"""

from __future__ import annotations

from collections.abc import Sequence

from drift_agents.llm.base import Model, ask
from drift_agents.llm.template import read_messages
from drift_agents.memory.consensus.text import DISTIL, MOST, ProposedItem, tell_trajectories
from drift_agents.types import Episode, Record


def propose(model: Model, attempts: Sequence[tuple[Episode, Sequence[Record]]], most: int = MOST) -> list[ProposedItem]:
    """What a distiller makes of several attempts at one task.

    Lines that it cites and that do not exist are passed over; an item that cites no line at all is
    dropped, since nothing could be checked in it and it could never fall.

    Args:
        model: the distiller.
        attempts: each episode with what memory wrote of it, in order.
        most: how many items, at the most.

    Raises:
        ModelError: if the model's answer does not have the form that it should have.

    Example:
        >>> from drift_agents.llm.rules import RuleModel
        >>> from drift_agents.memory.consensus.text import RULES
        >>> from drift_agents.types import AgentClock, Outcome
        >>> fell = Record(7, "ice", "1", ((Outcome("hole", 0.0, True), 1.0),), 1, AgentClock())
        >>> [(c.title, c.evidence) for c in propose(RuleModel(RULES), [(Episode("Cross.", 0.0, 1, True), [fell])])]
        [('Avoid "1"', (7,))]
    """
    text = tell_trajectories(attempts)
    messages = read_messages("memory/templates/edv_distil.txt", trajectories=text, most=str(most))
    lines = {
        f"{number}.{place}": record.id
        for number, (_, steps) in enumerate(attempts, 1)
        for place, record in enumerate(steps, 1)
    }
    found = []
    for item in ask(model, messages, DISTIL).data["items"][:most]:
        refs = tuple(dict.fromkeys(ref.strip("[] ") for ref in item["evidence"]))
        known = tuple(ref for ref in refs if ref in lines)
        if known:
            found.append(
                ProposedItem(
                    item["title"],
                    item["description"],
                    item["content"],
                    tuple(lines[ref] for ref in known),
                    _is_way(known),
                    refs=known,
                )
            )
    return found


def _is_way(refs: Sequence[str]) -> bool:
    """Whether these lines are steps of one trajectory, one after the other."""
    places = [tuple(map(int, ref.split("."))) for ref in refs]
    return len(refs) > 1 and len({number for number, _ in places}) == 1 and places == sorted(places)
