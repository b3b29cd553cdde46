"""The success rates of members by kind of task, and the team that only chooses the member by them.

Source: EDV, section 4.5. The paper defines neither the kinds of tasks nor the estimate for a member without trials of a
kind; `docs/memories/edv.md` has the definitions used here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from drift_agents.memory.transcript import highest_score
from drift_agents.team.base import Member, Rollout, Solo
from drift_agents.types import Episode
from drift_envs.checks import check_flag

_DETAIL = re.compile(r"\[[^\]]*\]|\([^)]*\)|\"[^\"]*\"|\d+(?:[.,]\d+)*")
# A purchase: what is bought, up to the options, the class of colours or the price; and the options' values.
_THING = re.compile(
    r"(?<=\bfind me ).*?(?= with (?:(?!with )[\w ])+:| in an? \w+ colou?r\b|,? and price\b|$)",
    re.IGNORECASE | re.DOTALL,
)
_VALUE = re.compile(r"(?<=: )(?!\[)[^,]+(?=, and )")
PRIOR = (1.0, 2.0)
"""Prior successes and attempts of each member: a rate of one half."""


@lru_cache(maxsize=4096)
def kind_of_task(task: str) -> str:
    """What a task has in common with others of its kind: its words without numbers, quotations and lists.

    Of a purchase what is bought is left out, and the values of options.

    Example:
        >>> kind_of_task("Reach [3, 5] on a lake of 6 rows.") == kind_of_task("Reach [1, 1] on a lake of 4 rows.")
        True
        >>> kind_of_task("Find me a mug with a lid with color: red, and price lower than 9.00 dollars")
        'find me # with color: #, and price lower than # dollars'
    """
    return " ".join(_DETAIL.sub("#", _VALUE.sub("#", _THING.sub("#", task))).split()).lower()


class AbilityMatrix:
    """Success rate by kind of task and member.

    An attempt is a success if it reached the highest score that the task names, 1 where it names none. A rate is shrunk
    towards one half (`PRIOR`), so that one attempt has a limited effect. For an untried kind the rate over all kinds is
    used.

    Args:
        members: their names; ties are resolved in this order.

    Example:
        >>> matrix = AbilityMatrix(["bold", "careful"])
        >>> matrix.note("Cross the lake.", "careful", 1.0)
        >>> matrix.best("Cross the lake."), round(matrix.rate("Cross the lake.", "careful"), 2)
        ('careful', 0.67)
    """

    def __init__(self, members: Sequence[str]) -> None:
        self.members = tuple(members)
        self._counts: dict[tuple[str, str], tuple[int, int]] = {}

    def note(self, task: str, member: str, score: float) -> None:
        """Record an attempt.

        Args:
            member: the member that played it.
            score: the final score, as shown to the agent.
        """
        key = (kind_of_task(task), member)
        wins, attempts = self._counts.get(key, (0, 0))
        self._counts[key] = wins + (score >= highest_score(task)), attempts + 1

    def rate(self, task: str, member: str) -> float:
        """The success rate of a member at this kind of task, shrunk towards one half."""
        kind = kind_of_task(task)
        kinds = dict.fromkeys(known for known, _ in self._counts)
        cells = [self._counts.get((one, member), (0, 0)) for one in ([kind] if kind in kinds else kinds)]
        wins, attempts = sum(cell[0] for cell in cells), sum(cell[1] for cell in cells)
        return (wins + PRIOR[0]) / (attempts + PRIOR[1])

    def best(self, task: str) -> str:
        """The member with the highest rate; the first one of equals."""
        return max(self.members, key=lambda member: self.rate(task, member))

    def overall(self) -> str:
        """The member with the highest rate over everything that was played: the best single solver."""
        totals = {member: [0, 0] for member in self.members}
        for (_, member), (wins, attempts) in self._counts.items():
            if member in totals:
                totals[member][0] += wins
                totals[member][1] += attempts
        return max(self.members, key=lambda name: (totals[name][0] + PRIOR[0]) / (totals[name][1] + PRIOR[1]))

    def rows(self) -> list[dict[str, Any]]:
        """The matrix as plain rows: kind, member, attempts and wins, in order of first mention."""
        return [
            {"kind": kind, "member": member, "attempts": attempts, "wins": wins}
            for (kind, member), (wins, attempts) in self._counts.items()
        ]


class Router(Solo):
    """The ability matrix alone (EDV, section 5.1, the baseline "Router").

    While it trains, every member plays each task once, and the matrix counts their successes.
    Afterwards the member with the highest rate plays. It distils nothing: memory keeps its own rule.

    Args:
        members: the members.
        online: whether the episodes of the test go into the matrix too.

    Raises:
        ArgumentError: if a value is outside its range.

    Example:
        >>> from drift_agents.policy.base import RandomPolicy
        >>> team = Router([Member("a", RandomPolicy()), Member("b", RandomPolicy())])
        >>> played = team.train("Cross.", lambda name: Episode("Cross.", float(name == "b"), 3, True))
        >>> len(played), team.solver("Cross.")
        (2, 'b')
    """

    name = "router"

    def __init__(self, members: Iterable[Member], *, online: bool = True) -> None:
        super().__init__(members)
        self.online = check_flag("online", online)
        self.ability = AbilityMatrix([member.name for member in self.members])

    def solver(self, task: str) -> str:
        """The member with the highest success rate at tasks of this kind."""
        return self.ability.best(task)

    def train(self, task: str, rollout: Rollout) -> list[Episode]:
        """Every member plays the task once."""
        episodes = []
        for member in self.members:
            episode = rollout(member.name)
            self.ability.note(task, member.name, episode.score)
            episodes.append(episode)
        return episodes

    def end_episode(self, task: str, member: str, result: Episode) -> None:
        """Count it, when `online`."""
        if self.online:
            self.ability.note(task, member, result.score)
