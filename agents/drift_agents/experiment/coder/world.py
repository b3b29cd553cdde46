"""The repository that a coding agent works in: its issues, its commits, and the verdicts on what was submitted.

It is that of `DriftRepository-v0` with the same schedule and seed, and a pure function of them. Flaky refusals are
drawn by episode and attempt, so that all agents, and an agent with and without its memory, meet the same ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from drift_agents.experiment.cell_environment import make_env
from drift_agents.experiment.coder.git import RepositoryCommit
from drift_envs.envs.repository.checks import CheckResult, check, refuse_falsely
from drift_envs.envs.repository.conventions import NAMED, Statement, read_statements
from drift_envs.envs.repository.episode import CORRECTION
from drift_envs.envs.repository.issues import Issue, apply_change
from drift_envs.envs.repository.lifetime import ProjectLifetime
from drift_envs.errors import StateError
from drift_envs.schedule.model import Schedule

_STREAM = 0xC0DE


class CoderWorld:
    """A repository from episode to episode.

    Args:
        schedule: of `DriftRepository-v0`.
        seed: of the instance.
        attempts: submissions of an episode.

    Attributes:
        commits: of the maintainers so far, each with all files after it.
        issue: the present issue, with its number.
        is_over: whether the present issue takes no more submissions.
        success: the hidden verdict on the last submission.
        score: 1 - corrections / 3 - reruns * price, at least 0; 0 where the issue is not solved.
    """

    def __init__(self, schedule: Schedule, seed: int, attempts: int) -> None:
        self.schedule, self.seed, self._attempts = schedule, seed, attempts
        self._env = make_env(schedule)
        self._env.reset(seed=seed)
        self.commits: list[RepositoryCommit] = []
        self._episode = -1
        self._verdicts: list[CheckResult] = []

    @property
    def name(self) -> str:
        """The name of the project."""
        return self._lifetime.project.package

    @property
    def _lifetime(self) -> ProjectLifetime:
        found: ProjectLifetime = self._env.unwrapped.lifetime  # type: ignore[attr-defined]
        return found

    @property
    def knobs(self) -> dict[str, Any]:
        """The value of every knob."""
        return dict(self._env.get_wrapper_attr("knobs_at")(self._episode))

    @property
    def changed(self) -> list[str]:
        """The named conventions that have had another value before."""
        history = self._lifetime.history
        return [name for name in NAMED if any(getattr(one, name) != getattr(history[-1], name) for one in history)]

    def begin(self, episode: int) -> None:
        """Begin the next episode: the right change of the last one is merged.

        Args:
            episode: its number, one more than that of the last one.
        """
        self._env.reset(seed=None if episode else self.seed)
        self._episode = episode
        life, knobs = self._lifetime, self.knobs
        if life.issue is None:
            raise StateError("the repository has no issue")
        self._issue: Issue = life.issue
        files = self.commits[-1].files if self.commits else {}
        if not self.commits:
            self.commits.append(RepositoryCommit("Start the project", life.project.files()))
        for commit in life.commits:
            files = apply_change(files, commit.files)
            self.commits.append(RepositoryCommit(commit.message, files, commit.author))
        draws = np.random.default_rng([_STREAM, self.seed, episode])
        self._is_flaky = (draws.random(max(self._attempts, 2)) < knobs["flaky"]).tolist()
        self._flaky_logs = [refuse_falsely(life.project, self._issue, draws) if one else "" for one in self._is_flaky]
        self._price = float(knobs["rerun_price"])
        self._checked: dict[frozenset[tuple[str, str]], CheckResult] = {}
        self.reopen()

    def reopen(self) -> None:
        """Begin the same episode again, for another agent: nothing was submitted yet."""
        self._verdicts = []
        self._submitted: Mapping[str, str] | None = None
        self._is_accepted = False
        self._reruns = 0

    @property
    def issue(self) -> str:
        """The issue in words."""
        return f"Issue #{self._issue.id}: {self._issue.text}"

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
        place = len(self._verdicts)
        if self._submitted is not None and files == self._submitted:
            self._verdicts.append(self._verdicts[-1])
            self._reruns += 1
        else:
            key = frozenset(files.items())
            if key not in self._checked:
                self._checked[key] = check(files, self._lifetime.project, self._issue)
            self._verdicts.append(self._checked[key])
        self._submitted = dict(files)
        verdict = self._verdicts[-1]
        if not verdict.solved:
            return verdict.log
        self._is_accepted = not self._is_flaky[place]
        return self._flaky_logs[place]

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
            "kind": self._issue.kind,
        }

    @property
    def score(self) -> float:
        """The score of the episode so far."""
        counts = self.counts
        if not self.success:
            return 0.0
        return max(0.0, 1.0 - CORRECTION * int(counts["corrections"]) - self._price * int(counts["reruns"]))

    def describe(self) -> dict[str, Any]:
        """Where the lifetime is, as a line of a log has it."""
        return {
            "env": str(self.schedule.env), "schedule": self.schedule.name,
            "schedule_hash": self.schedule.content_hash(), "seed": self.seed, "episode": self._episode,
            "phase": self._env.phase.id, "tick": self._episode,
        }  # fmt: skip

    def read_statements(self, text: str) -> Iterator[Statement]:
        """What a text says of the conventions."""
        return read_statements(text, self._lifetime.number, self._lifetime.history)
