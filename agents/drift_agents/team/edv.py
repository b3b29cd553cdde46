"""Execute, distil, verify: a team that trains together.

Source: Zhu, Qi, Wang et al., "Escaping the self-confirmation trap: an execute-distill-verify paradigm for
agentic experience learning". `docs/memories/edv.md` has equations, constants and what was decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from drift_agents.errors import ArgumentError
from drift_agents.llm.base import Model, Options, RuleModel
from drift_agents.memory.base import Memory
from drift_agents.memory.citations import Contaminator, swap_outcomes
from drift_agents.memory.consensus import SHARED, TeamMemory
from drift_agents.memory.distillation import MOST, Attempts, ProposedItem, describe_claims, number_lines, propose
from drift_agents.team.base import Member, Rollout, Solo
from drift_agents.team.judge import RULES, vote
from drift_agents.team.router import AbilityMatrix
from drift_agents.types import AgentClock, Episode, Record, RecordId, Transition
from drift_envs.checks import check_choice, check_count, check_flag, check_interval

DISTILLERS = ("third", "executor")
"""`third`: a member outside the execution group. `executor`: the first executor."""
SEEN = ("all", "own")
"""What an executor that distils sees: the trajectories of the whole group, or those that it has played."""
VERIFIERS = ("executors", "distiller", "external", "none")
"""`executors`: all of them. `distiller`: the member that distilled. `external`: a member outside the execution
group that did not distil, if there is one. `none`: no vote, all items are accepted."""
BANKS = ("both", "shared", "private")
"""Where items go: as the vote says; all into the shared bank; all into the private banks of those who approved."""
SOLVERS = ("ability", "best", "first")
"""The member that plays: by the ability matrix; the best single solver of all kinds of tasks; the first one."""

FULL: Mapping[str, Any] = {
    "executors": 2,
    "trajectories": 4,
    "distil": "third",
    "verify": "executors",
    "banks": "both",
    "solver": "ability",
    "rotate": True,
}
_SINGLE: Mapping[str, Any] = {
    "executors": 1,
    "trajectories": 1,
    "distil": "executor",
    "rotate": False,
    "solver": "first",
}
PARADIGMS: Mapping[str, Mapping[str, Any]] = {
    "full": {},
    "basic": {**_SINGLE, "verify": "none"},
    "self-verify": _SINGLE,
    "independent": {**_SINGLE, "verify": "external"},
    "self-distil": {"distil": "executor"},
    "third-party": {"verify": "distiller"},
    "fixed-solver": {"solver": "best"},
    "only-shared": {"banks": "shared"},
    "only-private": {"banks": "private"},
    "no-vote": {"verify": "none"},
}
"""The rows of table 4 (`basic`, `self-verify` and `independent` are a single agent: one executor, the first
of the pool, one trajectory a task) and of table 5, and one of ours: without a vote."""


class RoleAssignment(NamedTuple):
    """The roles of members for one task.

    Args:
        executors: the members that play.
        distiller: the member that distils.
        voters: the members that vote.
    """

    executors: tuple[Member, ...]
    distiller: Member
    voters: tuple[Member, ...]


class EDV(Solo):
    """Execute, distil, verify (EDV, section 4, figure 3).

    For each task an execution group is drawn from the pool, and a distiller outside it. The group plays
    `trajectories` episodes of the task in turn. The distiller compares them and proposes up to `items`
    items; the ability matrix takes note of the scores. The executors judge all trajectories and vote:
    what all approve goes into the shared bank, what some approve into their private banks, the rest is
    dropped. In the test the ability matrix chooses who plays.

    Where there is no language model, members are planners with different declared options, and
    distilling and voting are rules that read the trajectories' text alone: that shows whether the
    mechanism works, and says nothing about introspection. Errors of judgement can then be declared:
    `errs` of a member is the probability that an item of its making is replaced by a wrong but coherent
    one (`drift_agents.memory.citations`), and that a vote of its turns round. Who votes on a wrong item
    of its own making approves of it: that is the self-confirmation trap, put in by hand.

    Args:
        members: the pool; as many as executors, and more where distiller or verifier stand outside.
        paradigm: one of `PARADIGMS`: what the options below are where they are not given; `full` has two
            executors, four trajectories, a third party that distils, executors who vote, both banks, the
            ability matrix and roles that rotate.
        executors: how many are drawn for the execution group.
        trajectories: how many episodes of each task, all in all.
        items: how many items a task can bring.
        distil: who distils, one of `DISTILLERS`.
        seen: which trajectories an executor that distils sees, one of `SEEN`; the paper does not say. A third party
            sees all.
        verify: who votes, one of `VERIFIERS`.
        banks: where items go, one of `BANKS`.
        solver: who plays in the test, one of `SOLVERS`.
        rotate: whether roles are drawn anew for each task; otherwise they follow the order of the pool.
        online: whether the episodes of the test are distilled and voted on too, one trajectory at a time,
            with the player as the execution group. Not in the paper, whose memory is built beforehand.
        contaminate: the share of wrong candidates that are put before the vote, in [0, 1).
        correlation: the probability that the errors of two voters are equal instead of independent, in [0, 1].
        vote_temperature: at which language models vote, in [0, 2]; `None` for each member's own temperature, at which
            it plays and distils. The paper's schedules are (1, 1, 0) and (.3, .3, 0) (C.1). A member whose
            temperature is left to its server votes without one.

    Raises:
        ArgumentError: if an option is outside its range, or the pool is too small.

    Example:
        >>> from drift_agents.policy.base import make_policy
        >>> pool = [Member(str(risk), make_policy("planner", frozen_lake={"risk": risk})) for risk in (0.2, 0.6, 0.9)]
        >>> EDV(pool, executors=3)
        Traceback (most recent call last):
        drift_envs.errors.ArgumentError: 3 executors and one outside need 4 members. Received 3: 0.2, 0.6, 0.9
    """

    name = "edv"

    def __init__(
        self,
        members: Iterable[Member],
        *,
        paradigm: str = "full",
        executors: int | None = None,
        trajectories: int | None = None,
        items: int = MOST,
        distil: str | None = None,
        seen: str = "all",
        verify: str | None = None,
        banks: str | None = None,
        solver: str | None = None,
        rotate: bool | None = None,
        online: bool = False,
        contaminate: float = 0.0,
        correlation: float = 0.0,
        vote_temperature: float | None = 0.0,
    ) -> None:
        super().__init__(members)
        check_choice("paradigm", paradigm, PARADIGMS)
        given = {
            "executors": executors,
            "trajectories": trajectories,
            "distil": distil,
            "verify": verify,
            "banks": banks,
            "solver": solver,
            "rotate": rotate,
        }
        chosen = {**FULL, **PARADIGMS[paradigm], **{key: value for key, value in given.items() if value is not None}}
        self.paradigm = paradigm
        self.executors, self.trajectories, self.items = chosen["executors"], chosen["trajectories"], items
        self.distil, self.verify, self.banks = chosen["distil"], chosen["verify"], chosen["banks"]
        self.solver_rule, self.rotate = chosen["solver"], chosen["rotate"]
        self.online, self.seen = online, seen
        self._check(correlation)
        self.vote_temperature = check_interval("vote_temperature", vote_temperature, "[0, 2]", optional=True)
        self.contaminator, self.correlation = Contaminator(contaminate), float(correlation)
        self.ability = AbilityMatrix([member.name for member in self.members])
        self._rules: Model = RuleModel(RULES)
        self._memory: TeamMemory | None = None
        self._rng = np.random.default_rng(0)
        self._proposed = self._forged = 0
        self._done: tuple[RecordId, ...] = ()
        self.tally = {"proposed": 0, "unanimous": 0, "partial": 0, "dropped": 0, "wrong_proposed": 0, "wrong_kept": 0}
        """What was proposed and accepted so far."""

    def _check(self, correlation: float) -> None:
        """Refuse values outside their ranges, and combinations that do not fit."""
        check_count("executors", self.executors)
        check_count("trajectories", self.trajectories)
        check_count("items", self.items, 1, MOST)
        for name, value, known in (
            ("distil", self.distil, DISTILLERS),
            ("seen", self.seen, SEEN),
            ("verify", self.verify, VERIFIERS),
            ("banks", self.banks, BANKS),
            ("solver", self.solver_rule, SOLVERS),
        ):
            check_choice(name, value, known)
        check_flag("rotate", self.rotate)
        check_flag("online", self.online)
        check_interval("correlation", correlation, "[0, 1]")
        outside = self.distil == "third" or self.verify == "external"
        if self.executors + outside > len(self.members):
            raise ArgumentError(
                f"{self.executors} executors{' and one outside' if outside else ''} need {self.executors + outside} "
                f"members. Received {len(self.members)}: {', '.join(member.name for member in self.members)}"
            )

    def bind(self, memory: Memory, rng: np.random.Generator) -> None:
        """Take note of memory and generator.

        Raises:
            ArgumentError: if the memory has no banks to write items into.
        """
        if not isinstance(memory, TeamMemory):
            raise ArgumentError(
                f"the team 'edv' writes items into banks, which the memory `consensus` has. Received {memory.name!r}; "
                "an experiment without teams takes any memory, such as `desk` for the service desk"
            )
        memory.attend()
        self._memory, self._rng = memory, rng

    def solver(self, task: str) -> str:
        """The member that plays a task of the test."""
        if self.solver_rule == "first":
            return self.members[0].name
        return self.ability.overall() if self.solver_rule == "best" else self.ability.best(task)

    def draw_group(self) -> RoleAssignment:
        """Who does what for the next task."""
        pool = self._draw_order()
        return self._group(tuple(pool[: self.executors]), pool[self.executors :])

    def _draw_order(self) -> list[Member]:
        """The pool in the order of roles."""
        order = self._rng.permutation(len(self.members)) if self.rotate else range(len(self.members))
        return [self.members[place] for place in order]

    def _group(self, executors: tuple[Member, ...], outside: Sequence[Member]) -> RoleAssignment:
        """Who distils and votes, given who plays and who stands outside in order."""
        distiller = outside[0] if self.distil == "third" else executors[0]
        voters: tuple[Member, ...] = ()
        if self.verify == "executors":
            voters = executors
        elif self.verify == "distiller":
            voters = (distiller,)
        elif self.verify == "external":
            voters = (next((member for member in outside if member is not distiller), outside[0]),)
        return RoleAssignment(executors, distiller, voters)

    def train(self, task: str, rollout: Rollout) -> list[Episode]:
        """Execute, distil, verify.

        Raises:
            ArgumentError: if no memory is bound.
            ModelError: if a model's answer does not have the form that it should have.
        """
        memory = self._memory
        if memory is None:
            raise ArgumentError("the team 'edv' should be bound to a memory before it trains. Received none")
        group = self.draw_group()
        attempts: list[tuple[Episode, Sequence[Record]]] = []
        players: list[Member] = []
        for number in range(self.trajectories):
            player = group.executors[number % len(group.executors)]
            episode = rollout(player.name)
            attempts.append((episode, memory.attempt()))
            self._done = tuple(record.id for record in attempts[-1][1])
            players.append(player)
            self.ability.note(task, player.name, episode.score)
        self._learn(memory, task, group, attempts, players)
        return [episode for episode, _ in attempts]

    def end_episode(self, task: str, member: str, result: Episode) -> None:
        """Distil and vote on an episode of the test, when `online`.

        Raises:
            ModelError: if a model's answer does not have the form that it should have.
        """
        if self._memory is None or not self.online:
            return
        steps = self._memory.attempt()
        numbers = tuple(record.id for record in steps)
        if not steps or numbers == self._done:  # a frozen memory notes no attempt, so the last one stays
            return
        self._done = numbers
        player = next(one for one in self.members if one.name == member)
        outside = [one for one in self._draw_order() if one is not player]
        self.ability.note(task, member, result.score)
        self._learn(self._memory, task, self._group((player,), outside), [(result, steps)], [player])

    def _learn(
        self, memory: TeamMemory, task: str, group: RoleAssignment, attempts: Attempts, players: Sequence[Member]
    ) -> None:
        """Distil these trajectories, vote, and write the accepted items."""
        # What a later trajectory's verifier took out of memory can no longer be cited.
        there = {record.id for record in memory.records()}
        attempts = [(episode, [record for record in steps if record.id in there]) for episode, steps in attempts]
        candidates = self._propose(memory, group, attempts, players)
        if candidates:
            self._vote(memory, task, group, attempts, players, candidates)

    def _propose(
        self, memory: TeamMemory, group: RoleAssignment, attempts: Attempts, players: Sequence[Member]
    ) -> list[tuple[ProposedItem, bool]]:
        """The candidates, each with whether it is wrong by the distiller's own error."""
        seen = attempts
        if self.distil == "executor" and self.seen == "own":
            seen = [pair for pair, player in zip(attempts, players, strict=True) if player is group.distiller]
        found = propose(self._mind(group.distiller), seen, self.items)
        lines = number_lines(attempts)
        if seen is not attempts:
            refs = {record.id: ref for ref, record in lines.items()}
            found = [one._replace(refs=tuple(refs[n] for n in one.evidence if n in refs)) for one in found]
        candidates: list[tuple[ProposedItem, bool]] = []
        for candidate in found:
            claims: tuple[Transition, ...] = ()
            if group.distiller.errs and self._rng.random() < group.distiller.errs:
                claims = self._wrong_claims(memory, attempts)
            candidates.append((_forge(claims, lines), True) if claims else (candidate, False))
        self._proposed += len(found)
        for _ in range(self.contaminator.due(self._proposed, self._forged)):
            claims = self._wrong_claims(memory, attempts)
            if claims:
                self._forged += 1
                candidates.append((_forge(claims, lines), False))
        return candidates

    def _wrong_claims(self, memory: TeamMemory, attempts: Attempts) -> tuple[Transition, ...]:
        """Two actions with each other's outcomes: of these trajectories, or of anything known if they have none."""
        seen = [record for _, steps in attempts for record in steps]
        return swap_outcomes(seen, memory.key, self._rng) or swap_outcomes(memory.records(), memory.key, self._rng)

    def _vote(
        self,
        memory: TeamMemory,
        task: str,
        group: RoleAssignment,
        attempts: Attempts,
        players: Sequence[Member],
        candidates: Sequence[tuple[ProposedItem, bool]],
    ) -> None:
        """Vote, and write the accepted items."""
        listed = [candidate for candidate, _ in candidates]
        common = self._rng.random(len(candidates))
        accepted: list[set[int]] = []
        for voter in group.voters:
            own = [number for number, player in enumerate(players, 1) if player is voter]
            held = [item.content for item in memory.held(voter.name)]
            yes = vote(self._mind(voter), attempts, listed, own, held, self._vote_parameters(voter))
            if voter.errs:
                yes ^= draw_errors(common, voter.errs, self.correlation, self._rng)
            if voter is group.distiller:
                yes |= {place for place, (_, is_own) in enumerate(candidates) if is_own}
            accepted.append(yes)
        now = max((record.now for _, steps in attempts for record in steps), default=AgentClock())
        for place, candidate in enumerate(listed):
            approved = [voter.name for voter, yes in zip(group.voters, accepted, strict=True) if place in yes]
            owners = self._owners(approved, group)
            self._count(candidate, len(approved), len(group.voters))
            if owners:
                memory.write_item(candidate, task, owners, now)

    def _owners(self, approved: Sequence[str], group: RoleAssignment) -> tuple[str, ...]:
        """The banks into which an item is written."""
        if not group.voters:
            return tuple(one.name for one in group.executors) if self.banks == "private" else (SHARED,)
        if not approved:
            return ()
        if self.banks == "shared":
            return (SHARED,)
        # A voter outside of the group votes for the group.
        outside = all(voter not in group.executors for voter in group.voters)
        if self.banks == "private":
            return tuple(one.name for one in group.executors) if outside else tuple(approved)
        return (SHARED,) if len(approved) == len(group.voters) else tuple(approved)

    def _count(self, candidate: ProposedItem, approved: int, voters: int) -> None:
        kept = approved > 0 or not voters
        self.tally["proposed"] += 1
        self.tally["unanimous" if approved == voters else "partial" if approved else "dropped"] += 1
        self.tally["wrong_proposed"] += bool(candidate.forged)
        self.tally["wrong_kept"] += bool(candidate.forged) and kept

    def _mind(self, member: Member) -> Model:
        """The model that distils and votes for a member."""
        return self._rules if member.model is None else member.model

    def _vote_parameters(self, voter: Member) -> Options:
        own: Options = getattr(voter.model, "parameters", None)
        if self.vote_temperature is None or own is None or "temperature" not in own:
            return None
        return {"temperature": self.vote_temperature}


def draw_errors(common: np.ndarray, errs: float, correlation: float, rng: np.random.Generator) -> set[int]:
    """The places of the candidates about which a voter errs.

    Args:
        common: a number in [0, 1) for each candidate, the same for all voters.
        errs: the probability of an error, in [0, 1].
        correlation: the probability that two voters both err by `common`, in [0, 1]; else errors are independent.
    """
    is_common = rng.random(len(common)) < np.sqrt(correlation)
    return set(np.flatnonzero(np.where(is_common, common, rng.random(len(common))) < errs).tolist())


def _forge(claims: Sequence[Transition], lines: Mapping[str, Record]) -> ProposedItem:
    """A wrong candidate; it cites the lines that hold the true outcomes of the same steps."""
    claimed = {(claim.state, claim.action) for claim in claims}
    refs = tuple(ref for ref, record in lines.items() if (record.state, record.action) in claimed)
    return describe_claims(claims)._replace(refs=refs)
