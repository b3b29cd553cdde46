"""BFCL's multi-turn tools with knobs: the pool of tasks, one episode of turns, and the environment."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar

from drift_envs.envs.bfcl.interface import BFCL_KNOBS, BfclInterface
from drift_envs.envs.bfcl.package import FINISH, BfclTask, Engines, find_package, load_tasks, replay_reference
from drift_envs.errors import ArgumentError
from drift_envs.knobs import KnobTable
from drift_envs.registration import IDS, EnvParts
from drift_envs.tasks.package_env import PackageEpisode, PackageToolsEnv
from drift_envs.tasks.package_tools import PackageCall


class BfclEpisode(PackageEpisode):
    """The state of an episode, see `PackageEpisode`."""

    interface: BfclInterface
    task: BfclTask
    _saved = ("turn", "calls", "answer", "is_right")

    def __init__(self, interface: BfclInterface, task: BfclTask) -> None:
        super().__init__(interface, task)
        self.engines = Engines(task)
        self.turn = 0
        """How many turns were ended."""
        self.is_right = True
        """Whether every turn so far has ended in the state that the published calls reach."""

    @property
    def is_over(self) -> bool:
        """Whether all turns were ended."""
        return self.turn == len(self.task.requests)

    @property
    def score(self) -> float:
        """1.0 at the end if every turn has ended in the right state, else 0.0."""
        return float(self.is_over and self.is_right)

    @property
    def request(self) -> str:
        """What the user said last."""
        return self.task.requests[min(self.turn, len(self.task.requests) - 1)]

    @property
    def history(self) -> tuple[PackageCall, ...]:
        """The calls that the engines have executed."""
        return self.engines.history

    def _execute(self, call: PackageCall) -> Any:
        if call.tool != FINISH.name:
            return self.engines.execute(call)
        if self.task.reference[self.turn]:  # as in BFCL, a turn for which no call was published is not checked
            self.is_right &= self.engines.read_state() == replay_reference(self.task.number)[self.turn + 1]
        self.turn += 1
        return {"ok": True} if self.is_over else {"request": self.request}

    def write_state(self) -> str:
        """The state as JSON."""
        requests = json.dumps(list(self.task.requests[: self.turn + 1]))
        return f'{{"requests": {requests}, "calls": [{", ".join(self.calls)}], "answer": {json.dumps(self.answer)}}}'

    def _replay(self, history: Sequence[PackageCall]) -> None:
        self.engines = Engines(self.task, history)


def plan_reference(number: int, interface: BfclInterface) -> list[PackageCall]:
    """The published calls of a task, with the end of each turn.

    Args:
        number: the number of the task.
        interface: not used, since no drift adds or repeats a call.
    """
    return [call for turn in load_tasks()[number].reference for call in (*turn, PackageCall(FINISH.name, {}))]


class BfclTools(PackageToolsEnv[BfclEpisode]):
    """The multi-turn tasks of BFCL (Patil et al., 2025) in the engines of the package `bfcl-eval`, with drifting tools.

    A user states requests in turn; tools for files, trading, travel, a vehicle, tickets, messages, posts and sums meet
    them. An action is a call as JSON, `{"tool": "cd", "arguments": {"folder": "temp"}}`. `finish` ends a turn and
    answers with the next request; after the last turn the episode ends. The score, which is the reward then, is 1.0 if
    after every turn the engines are in the state that the published calls of the task reach (turns without published
    calls are not compared), else 0.0.

    The observation is the last answer as JSON, at first the request; with `observation_mode="state"` it is a JSON
    object: `requests` (so far), `calls` (those that were answered without an error) and `answer` (the last one).

    Knobs, with defaults and bounds: `drift-envs list --env DriftBfcl-v0`.

    | info | meaning |
    |---|---|
    | `task` | the last request, and the tools, a line each |
    | `actions` | the calls that need no argument, to choose from; any other call is taken as well |
    | `score` | the score, 0.0 before the end |
    | `tools` | the tools with the JSON Schemas of their arguments |

    `reset(options={"goal_index": i})` selects the task `multi_turn_base_i`.

    Args:
        render_mode: `ansi` or `None`.
        observation_mode: `answer` or `state`.
        pool: the number of recurring tasks; `None` draws from all tasks.
        order: `shuffled` (each task once in every round of the pool) or `fixed`.
        conditions: knob values under each of which the published calls, carried through the drift, are right.
        affected: whether tasks come first that changes between two conditions affect, or those that none does.

    Raises:
        ArgumentError: an argument breaks a rule.
        KnobError: a condition names a tool or an argument that there is not.
        MissingDependencyError: the package is not installed.
    """

    knobs: ClassVar[KnobTable] = BFCL_KNOBS
    parts: ClassVar[EnvParts | None] = IDS["DriftBfcl-v0"]
    interface_class = BfclInterface
    episode_class = BfclEpisode
    find_package = staticmethod(find_package)
    load_tasks = staticmethod(load_tasks)
    plan_reference = staticmethod(plan_reference)
    most_tasks = 1_000
    others = 0xBFC1

    @classmethod
    @lru_cache(maxsize=4096)
    def is_played(cls, number: int) -> bool:
        """Whether a task can be scored.

        Not so if its published calls change nothing, since doing nothing would solve it, or if one of them does not
        fit the tool's own schema.

        Args:
            number: the number of the task.
        """
        before, *after = replay_reference(number)
        plain = BfclInterface.of({})
        return any(state != before for state in after) and cls.carry_reference(number, plain, plain) == 1.0

    def find_task(self, number: int) -> BfclTask:
        """A task by its number.

        Args:
            number: the number.

        Raises:
            ArgumentError: there is no such task, or it cannot be scored.
        """
        if number not in load_tasks() or not self.is_played(number):
            raise ArgumentError(f"`goal_index` should be the number of a task that can be scored. Received {number}")
        return load_tasks()[number]

    def _list_actions(self, episode: BfclEpisode) -> Sequence[str]:
        return episode.interface.list_calls(episode.task)
