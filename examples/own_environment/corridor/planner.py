"""An offline policy: it reads the view, and nothing else."""

import json

from drift_agents.policy.base import Reply
from drift_agents.prompt.conflict import check_conflict

END = 6


class CorridorPlanner:
    """Opens each chest once, then walks to the one that held more when it was opened last."""

    name = "corridor"

    def __init__(self, *, conflict="majority"):
        self.conflict = check_conflict(conflict)

    def decide(self, view, rng):
        held = {}
        for item in sorted((*view.here, *view.elsewhere), key=lambda item: item.last):
            if item.outcome.ended:
                held[json.loads(item.outcome.state)["cell"]] = item.outcome.score
        unopened = [end for end in (0, END) if end not in held]
        end = unopened[int(rng.integers(len(unopened)))] if unopened else max(held, key=lambda end: held[end])
        return Reply("1" if end == END else "0")
