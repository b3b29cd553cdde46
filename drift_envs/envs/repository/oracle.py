"""The oracle of a drifting repository: the conventions, and what a right change is worth."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from drift_envs.envs.repository.conventions import Conventions
from drift_envs.envs.repository.env import Repository, is_submission
from drift_envs.envs.repository.episode import ATTEMPTS, SUBMIT, RepositoryEpisode, write_call
from drift_envs.envs.repository.issues import ISSUES_OF_A_PROJECT, kind_of
from drift_envs.errors import ArgumentError
from drift_envs.knobs import Value
from drift_envs.oracle.base import Response
from drift_envs.oracle.recurring import Carried, CommandOracle

Setting = tuple[int, Conventions, float, float]
"""The number of the project, its conventions, `flaky` and `rerun_price`."""

REGISTERED = ("add", "rename", "move")
"""The kinds of issues that change the register."""
STEPS = 4
"""The actions of a plan: the files of a change, and a submission."""


class RepositoryOracle(CommandOracle[Setting, int]):
    """The oracle of a drifting repository, see `CommandOracle`.

    A state is the JSON text of an observation; the number of the issue in it says which moment in the life of the
    project it belongs to, which the environment keeps. The oracle knows the conventions: it writes the right change,
    submits it, and submits it again where a flaky refusal comes back. Its value is `1 - price (f + f^2)` with the
    probability f of a flaky refusal, since a right last submission counts in any case.

    Example:
        >>> import gymnasium as gym
        >>> import drift_envs
        >>> env = gym.make("DriftRepository-v0", schedule="repository/explicit", text=True)
        >>> state, info = env.reset(seed=0)
        >>> oracle = env.get_wrapper_attr("oracle")
        >>> done = False
        >>> while not done:
        ...     state, reward, done, _, info = env.step(oracle.action(state, 0))
        >>> reward, oracle.value(0), oracle.effect(0, 20).loss
        (1.0, 1.0, 1.0)
    """

    place_knob = "project"
    read_by = ()
    compares_scores = True
    loses_all = True

    def __init__(
        self,
        source: Any,
        pool: Callable[[int], Sequence[int] | None],
        drawn: Callable[[], int],
        limit: int,
        begin: Callable[[], Repository] | None = None,
    ) -> None:
        super().__init__(source, pool, drawn, limit)
        self._env = begin

    @classmethod
    def of(cls, source: Any, begin: Callable[[], Any], limit: int) -> RepositoryOracle:
        """The oracle of a drifting environment.

        Args:
            source: the knobs at any tick.
            begin: returns the innermost environment after its first reset.
            limit: the step limit of an episode.
        """
        return cls(source, lambda number: begin().pool_of(number), lambda: begin().drawn_place, limit, begin)

    def _make_setting(self, place: int, knobs: Mapping[str, Value]) -> Setting:
        return place, Conventions.of(knobs), float(knobs.get("flaky", 0.0)), float(knobs.get("rerun_price", 0.0))

    def action(self, state: Any, tick: int, left: int | None = None) -> str:
        """The next edit of the right change, or a submission.

        Args:
            state: the JSON text.
            tick: the tick.
            left: the remaining steps; not used.
        """
        episode = self._restore(state, tick)
        wanted, before = episode.plan_change(episode.project.conventions), episode.project.files()
        for path in {**wanted, **episode.written}:
            text = wanted.get(path, before.get(path))
            if episode.written.get(path, before.get(path)) != text:
                return write_call("write_file", path=path, **({} if text is None else {"text": text}))
        return SUBMIT

    def response(self, state: Any, action: Any, tick: int) -> tuple[Response, ...]:
        """All possible responses, most probable first; only a right submission has two.

        Args:
            state: the JSON text.
            action: the action.
            tick: the tick.
        """
        true, flaky = self._respond(state, action, tick), self._lost(tick)
        if not flaky or not is_submission(str(action)):
            return (Response(*true, 1.0),)
        episode = self._restore(state, tick)
        episode.lose(str(action))
        false = episode.write_state(), episode.score, episode.is_over
        if false == tuple(true):
            return (Response(*true, 1.0),)
        responses = Response(*true, 1.0 - flaky), Response(*false, flaky)
        return tuple(sorted((one for one in responses if one.probability), key=lambda one: -one.probability))

    def changed(self, state: Any, action: Any, t0: int, t1: int) -> bool:
        """Whether the responses to this action differ between the two ticks.

        Args:
            state: the JSON text.
            action: the action.
            t0: one tick.
            t1: the other tick.
        """
        return self.setting(t0) != self.setting(t1) and self.response(state, action, t0) != self.response(
            state, action, t1
        )

    def _place(self, setting: Setting) -> int:
        return setting[0]

    def _tasks(self, setting: Setting) -> list[int]:
        return self._positions(setting[0], ISSUES_OF_A_PROJECT)

    def _task_value(self, setting: Setting, task: int, lost: float) -> float:
        _, _, flaky, price = setting
        return 1.0 - price * sum(flaky**count for count in range(1, ATTEMPTS))

    def _carry(self, old: Setting, new: Setting, task: int) -> Carried:
        """The change that was right before, submitted once; again if refusals were known before."""
        survives, is_same = is_right(old[1], new[1], kind_of(task)), old[1] == new[1]
        score = self._task_value(new, task, 0.0) if old[2] else 1.0 - new[2]
        return Carried(score if survives else 0.0, STEPS, 0 if is_same else 1, STEPS)

    def _lost(self, tick: int) -> float:
        """The probability that a right submission is refused."""
        return self.setting(tick)[2]

    def _restore(self, state: Any, tick: int) -> RepositoryEpisode:
        """An episode at a state, under the conventions of the tick."""
        _, conventions, _, price = self.setting(tick)
        try:
            shown = json.loads(state)
            found = None if self._env is None else self._env().find_moment(int(shown["project"]), int(shown["number"]))
            if found is None:
                raise KeyError("number")
            project, issue = found
            project = replace(project, conventions=conventions)
            issue = issue._replace(rule=replace(issue.rule, style=conventions.style))
            episode = RepositoryEpisode(project, issue, price)
            episode.restore(shown)
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise ArgumentError(
                f"`state` should be a JSON text of an issue that was played here. Received {str(state)[:200]!r}"
            ) from error
        return episode


def is_right(old: Conventions, new: Conventions, kind: str) -> bool:
    """Whether the right change under conventions is right under others.

    Args:
        old: the conventions under which it was written.
        new: those in force.
        kind: of the issue.
    """
    names = ["layout", "fragment", "check_command", "setting", *(["register"] if kind in REGISTERED else [])]
    helps = old.helper == new.helper or (new.old_helper == "kept" and new.helper == old.helper + 1)
    return helps and old.style == new.style and all(getattr(old, name) == getattr(new, name) for name in names)


make_oracle = RepositoryOracle.of
