"""BFCL's multi-turn tools with knobs.

* `BfclTools` - the requests of a task in turn, its tools as JSON, and engines whose state is compared in the end
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from drift_envs.checks import check_flag, check_integer
from drift_envs.envs.bfcl import BFCL
from drift_envs.envs.bfcl.episode import BfclEpisode
from drift_envs.envs.bfcl.interface import make_interface
from drift_envs.envs.bfcl.knobs import BFCL_KNOBS
from drift_envs.envs.bfcl.package import EngineCall, load_tasks
from drift_envs.envs.bfcl.pool import is_played, make_interfaces, make_sequence
from drift_envs.errors import ArgumentError
from drift_envs.knobs import KnobTable, Value
from drift_envs.parts import EnvParts
from drift_envs.recurring_tasks import EpisodeEnv
from drift_envs.tool_calls import MOST_CHARACTERS
from drift_envs.tunable import KnobAttribute

CHARACTERS = string.ascii_letters + string.digits + string.punctuation + " "
"""Every character that an observation can have."""

MAX_LENGTH = 262_144
"""No observation is longer."""

MOST_TASKS = 1_000
"""The largest number of a task."""

_MOST_STATES = 2_000
"""How many states evaluators can ask about."""


class BfclTools(EpisodeEnv[BfclEpisode]):
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

    metadata = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012 - as Gymnasium declares it
    knobs: ClassVar[KnobTable] = BFCL_KNOBS
    parts: ClassVar[EnvParts | None] = BFCL
    observation_modes = ("answer", "state")
    names = KnobAttribute()
    required = KnobAttribute()
    errors = KnobAttribute()
    units = KnobAttribute()
    defaults = KnobAttribute()

    def __init__(
        self,
        render_mode: str | None = None,
        *,
        observation_mode: str = "answer",
        pool: int | None = None,
        order: str = "shuffled",
        conditions: Sequence[Mapping[str, Value]] = (),
        affected: bool = True,
    ) -> None:
        pool = check_integer("pool", pool, 1, MOST_TASKS, optional=True)
        tasks = make_sequence(pool, order, make_interfaces(conditions), check_flag("affected", affected))
        super().__init__(render_mode, observation_mode, tasks, (MAX_LENGTH, MOST_CHARACTERS), CHARACTERS)
        self._is_seeded = False
        self._states: dict[str, tuple[int, dict[str, Any]]] = {}

    @property
    def task_pool(self) -> tuple[int, ...] | None:
        """The numbers of the recurring tasks, or `None` for all tasks. For evaluators."""
        return self._tasks.pool(0)

    def other_tasks(self, count: int) -> tuple[int, ...]:
        """The numbers of tasks outside `task_pool`, drawn by the same rules. For evaluators.

        Args:
            count: how many.

        Raises:
            ArgumentError: there are too few.
        """
        return self._tasks.others(0, count)

    def translate(self, call: EngineCall) -> str:
        """The text of a call of the package under the present knobs. For evaluators.

        Args:
            call: the call, by the package's names and units.
        """
        return make_interface(self.read_knobs()).write(call)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: seeds the environment's generator, and draws a new pool of tasks.
            options: `goal_index` is the number of the task; by default the next one.

        Returns:
            What is seen first, and `info`.

        Raises:
            ArgumentError: no task has this number, or there is no such option.
        """
        index = self._read_goal_index(options or {}, MOST_TASKS)
        if index is not None and (index not in load_tasks() or not is_played(index)):
            raise ArgumentError(f"`goal_index` should be the number of a task that can be scored. Received {index}")
        super().reset(seed=seed)
        if (seed is not None and not self._keeps_tasks) or not self._is_seeded:
            self._tasks.seed(int(self.np_random.integers(2**31)))
            self._is_seeded = True
        self._keeps_tasks = False
        self.goal_index = self._tasks.next(0) if index is None else index
        self._current = self._start(self.goal_index)
        return self._observe(), self._make_info()

    def _start(self, number: int) -> BfclEpisode:
        return BfclEpisode(make_interface(self.read_knobs()), load_tasks()[number])

    def _observe(self) -> str:
        shown = super()._observe()
        if self.observation_mode == "state":
            self._states.pop(shown, None)  # the last entry is the newest
            self._states[shown] = int(self.goal_index or 0), self.episode.save()
            if len(self._states) > _MOST_STATES:
                del self._states[next(iter(self._states))]
        return shown

    def find_state(self, state: str) -> tuple[int, dict[str, Any]] | None:
        """The task and the episode behind a state that was shown; `None` if it was not. For evaluators.

        Args:
            state: the state.
        """
        return self._states.get(state)

    def _make_info(self) -> dict[str, Any]:
        episode = self.episode
        actions = [] if episode.is_over else episode.interface.list_calls(episode.task)
        return {
            "task": episode.task_text,
            "actions": actions,
            "score": episode.score,
            "tools": episode.interface.describe(episode.task),
        }

    def set_knobs(self, values: Mapping[str, Value]) -> None:
        """Set these knobs to canonical values, all at once.

        Args:
            values: canonical values, by knob.

        Raises:
            KnobError: a value names a tool or an argument that there is not; nothing is changed then.
        """
        interface = make_interface({**self.read_knobs(), **values})
        super().set_knobs(values)
        if self._current is not None:
            self._current.interface = interface

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the states for an evaluator."""
        return {**super().__getstate__(), "_states": {}}
