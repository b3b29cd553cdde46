"""The repository that a coding agent works in: its issues, its commits, and the verdicts on what was submitted.

It is that of `DriftRepository-v0` with the same schedule and seed, and a pure function of them. Flaky refusals are
drawn by episode and attempt, so that all agents, and an agent with and without its memory, meet the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from drift_agents.experiment.cell_environment import make_env
from drift_envs.envs.repository.checks import CheckResult, check, refuse_falsely
from drift_envs.envs.repository.conventions import NAMED, read_statements
from drift_envs.envs.repository.env import Repository
from drift_envs.envs.repository.episode import CORRECTION
from drift_envs.envs.repository.lifetime import ProjectCommit
from drift_envs.schedule.model import Schedule

_STREAM = 0xC0DE


class CoderWorld:
    """A repository from episode to episode.

    Args:
        schedule: of `DriftRepository-v0`.
        seed: of the instance.
        attempts: submissions of an episode.

    Attributes:
        commits: of the maintainers so far.
        knobs: the present value of every knob.
    """

    def __init__(self, schedule: Schedule, seed: int, attempts: int) -> None:
        self.schedule, self.seed, self._attempts = schedule, seed, attempts
        self._env = make_env(schedule)
        self._env.reset(seed=seed)
        self._repository = cast(Repository, self._env.unwrapped)
        self.commits: list[ProjectCommit] = []

    @property
    def name(self) -> str:
        """The name of the project."""
        return self._repository.lifetime.project.package

    @property
    def files(self) -> dict[str, str]:
        """All files of the project, as a contributor finds them."""
        return self._repository.lifetime.project.files()

    @property
    def issue(self) -> str:
        """The present issue in words, with its number."""
        return f"Issue #{self._repository.task.id}: {self._repository.task.text}"

    def begin(self, episode: int) -> None:
        """Begin the episode after the last one, whose right change is merged."""
        self._env.reset(seed=None if episode else self.seed)
        self._episode, life, issue = episode, self._repository.lifetime, self._repository.task
        self.knobs: dict[str, Any] = dict(self._env.get_wrapper_attr("knobs_at")(episode))
        start = [] if self.commits else [ProjectCommit("Maintainers", "Start the project", {**self.files})]
        self.commits += (*start, *life.commits)
        draws = np.random.default_rng([_STREAM, self.seed, episode])
        self._is_flaky = (draws.random(max(self._attempts, 2)) < self.knobs["flaky"]).tolist()
        self._flaky_logs = [refuse_falsely(life.project, issue, draws) if one else "" for one in self._is_flaky]
        self.reopen()

    def reopen(self) -> None:
        """Begin the same episode again, for another agent: nothing was submitted yet."""
        self._verdicts: list[CheckResult] = []
        self._submitted: Mapping[str, str] | None = None
        self._is_accepted, self._reruns = False, 0

    @property
    def is_over(self) -> bool:
        """Whether the issue takes no more submissions."""
        return self._is_accepted or len(self._verdicts) >= self._attempts

    def submit(self, files: Mapping[str, str]) -> str:
        """Submit all files of the project.

        An unchanged submission is a rerun: the verdict is the one before, and the flaky draw is new.

        Returns:
            The log of continuous integration, empty if it accepts.
        """
        place, is_rerun = len(self._verdicts), files == self._submitted
        if is_rerun:
            verdict = self._verdicts[-1]
        else:
            verdict = check(files, self._repository.lifetime.project, self._repository.task)
        self._verdicts.append(verdict)
        self._submitted = dict(files)
        self._reruns += is_rerun
        self._is_accepted = verdict.solved and not self._is_flaky[place]
        return self._flaky_logs[place] if verdict.solved else verdict.log

    @property
    def success(self) -> bool:
        """The hidden verdict on the last submission, whatever a flaky draw said."""
        return bool(self._verdicts) and self._verdicts[-1].solved

    @property
    def counts(self) -> dict[str, Any]:
        """Corrections and reruns, and whether the first submission was accepted, at once or when run again."""
        first = bool(self._verdicts) and self._verdicts[0].solved
        return {
            "first_try": first and not self._is_flaky[0],
            "one_rerun": first and not all(self._is_flaky[:2]),
            "corrections": max(len(self._verdicts) - 1 - self._reruns, 0),
            "reruns": self._reruns,
            "kind": self._repository.task.kind,
        }

    @property
    def score(self) -> float:
        """1 - corrections / 3 - reruns * price, at least 0, so far; 0 where the issue is not solved."""
        score = 1.0 - CORRECTION * self.counts["corrections"] - float(self.knobs["rerun_price"]) * self._reruns
        return max(0.0, score) if self.success else 0.0

    def describe(self) -> dict[str, Any]:
        """Where the lifetime is, as a line of a log has it."""
        return {
            "env": str(self.schedule.env), "schedule": self.schedule.name,
            "schedule_hash": self.schedule.content_hash(), "seed": self.seed, "episode": self._episode,
            "phase": self._env.phase.id, "tick": self._episode,
        }  # fmt: skip

    def count_statements(self, texts: Mapping[str, str]) -> dict[str, Any]:
        """What kept texts say of the conventions.

        Returns:
            The number of statements by kind, `memory_size` (all of them), and `still_believed`: of the conventions that
            have changed and that the texts name, the share of which the last statement has a former value; `None` where
            there is none.
        """
        number, history = self._repository.lifetime.number, self._repository.lifetime.history
        said = [one for text in texts.values() for one in read_statements(text, number, history)]
        kinds = ("present", "former", "mixed", "never")
        counts = {f"{kind}_statements": sum(one.kind == kind for one in said) for kind in kinds}
        changed = {name for name in NAMED if len({getattr(one, name) for one in history}) > 1}
        last = {one.convention: one.kind for one in said if one.convention in changed}
        believed = sum(kind == "former" for kind in last.values()) / len(last) if last else None
        return {"memory_size": len(said), **counts, "still_believed": believed}
