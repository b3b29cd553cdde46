"""Task pages of MiniWoB++ with knobs."""

from __future__ import annotations

import base64
import string
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from drift_envs.checks import check_choice, check_integer
from drift_envs.envs.miniwob import MINIWOB_KNOBS, to_layer
from drift_envs.envs.miniwob.page import (
    MAX_LENGTH,
    TASKS,
    PageReading,
    PageTruth,
    TaskPage,
    find_action,
    find_pages,
    keep_alive,
    list_actions,
    write_state,
)
from drift_envs.errors import ArgumentError, StateError, needs_extra
from drift_envs.knobs import KnobTable, Value
from drift_envs.registration import IDS, EnvParts
from drift_envs.show.chromium import find_chromium
from drift_envs.show.drawing import read_png
from drift_envs.tasks.recurring_tasks import ORDERS, RecurringTasksEnv
from drift_envs.wrappers.binding import knob_table
from drift_envs.wrappers.drift import Source
from drift_envs.wrappers.options import WrapperOptions, load_checked

OBSERVATION_MODES = ("package", "state")
"""The package's own observations and actions, or the page as JSON and actions in words."""

MODES = ("train", "test")
PRESETS = ("all_supported", "shi17", "liu18", "humphreys22")

CHARACTERS = string.ascii_letters + string.digits + string.punctuation + " "
"""Every character that an observation in words can have."""

MAX_ACTION = 200
MOST_TASKS = 2**31
"""Tasks have numbers below this; the number seeds the page."""

_MOST_POOL = 1000
_MOST_ROUTES = 10_000
"""The states whose routes are kept."""
_SCALE = 3
"""Pixels of a picture for each pixel of the page."""


class PageRoute(NamedTuple):
    """How a page was reached.

    Args:
        number: the number of the task.
        history: the layer's settings and the action of each step; the first entry has no action.
    """

    number: int
    history: tuple[tuple[dict[str, Any], Any], ...]


class MiniWoB(RecurringTasksEnv, gym.Env[Any, Any]):
    """A task page of MiniWoB++ in a real browser, with a drifting layer between page and agent.

    The pages are those of the package `miniwob` (Shi et al., 2017; Liu et al., 2018), served on this machine. Their
    time stands still: timers run at once after each action, an episode does not time out, and a reward has no
    discount for time. A page is loaded anew at every reset; equal numbers of tasks begin equal pages.

    With `observation_mode="package"` observations and actions are those of the package. With `"state"` the
    observation is a JSON object: `page`, `task` (the instruction), `values` (what it names), and `elements`, the
    visible parts in reading order, such as `{"field": "Username", "value": ""}` or `{"button": "Login"}`.

    | action | meaning |
    |---|---|
    | `click[Login]` | clicks a button, a link or an option; the second of two equal ones is `Login (2)` |
    | `type[Username = deneen]` | replaces the content of a field |

    Knobs, with defaults and bounds: `drift-envs list --env DriftMiniWoBClickButton-v0`.

    | info | meaning |
    |---|---|
    | `task` | the instruction (with `state`, as the following) |
    | `actions` | the admissible actions; values of the instruction are typed |
    | `score` | the reward where it is positive, else 0.0 |
    | `last_action_error` | the reason why the last action was invalid, or `None` |
    | `done`, `env_reward`, `raw_reward`, `reason` | as in the package (with `package`) |

    The reward is the page's own: 1 for success, -1 for failure, which end the episode. An invalid action changes
    nothing. `reset(options={"goal_index": i})` selects the task: the seed of the page, 0
    to 2,147,483,647.

    Args:
        render_mode: `human`, `rgb_array`, `ansi` or `None`.
        task: one of `TASKS`.
        observation_mode: `package` or `state`.
        pool: the number of recurring tasks; with `None` a seed begins the page of that number, and each reset
            without a seed draws a new one.
        order: `shuffled` (each task once in every round of the pool) or `fixed`.
        data_mode: `train` or `test`, for the pages that distinguish them.
        action_preset: the preset of the package's action space (with `package`).

    Raises:
        ArgumentError: an argument breaks a rule.
        MissingDependencyError: the package is missing; at the first `reset` Chromium or its driver.
    """

    metadata = {  # noqa: RUF012 - as Gymnasium declares it
        "render_modes": ["human", "rgb_array", "ansi"],
        "render_fps": 2,
    }
    knobs: ClassVar[KnobTable] = MINIWOB_KNOBS
    parts: ClassVar[EnvParts | None] = IDS["DriftMiniWoBClickButton-v0"]
    surfaces: ClassVar[tuple[str, ...]] = ("_page", "_form", "_window")
    interstitial: bool
    interstitial_right: str
    interstitial_buttons: tuple[str, ...]
    labels: Mapping[str, str]
    _transient: float

    def __init__(
        self,
        render_mode: str | None = None,
        *,
        task: str = "click-button",
        observation_mode: str = "package",
        pool: int | None = None,
        order: str = "shuffled",
        data_mode: str = "train",
        action_preset: str = "all_supported",
    ) -> None:
        self._set_modes(render_mode, observation_mode, OBSERVATION_MODES)
        check_choice("task", task, tuple(TASKS))
        check_choice("order", order, ORDERS)
        check_choice("data_mode", data_mode, MODES)
        check_choice("action_preset", action_preset, PRESETS)
        self._pool_size = check_integer("pool", pool, 1, _MOST_POOL, optional=True)
        self.task_name = self.window_title = task
        self._order, self._data_mode, self._preset = order, data_mode, action_preset
        for name, value in MINIWOB_KNOBS.defaults().items():
            setattr(self, f"_{name}", value)
        self._settings = to_layer(MINIWOB_KNOBS.defaults())
        self._shown = self._settings
        """The settings that the page has; those of the knobs reach it with the next action."""
        self._history: list[tuple[dict[str, Any], Any]] = []
        """The settings and the action of each step; the first entry has no action."""
        self._routes: dict[str, PageRoute] = {}
        self._stream: np.random.Generator | None = None
        self._pool: tuple[int, ...] | None = None
        self._queue: list[int] = []
        self._reading: PageReading | None = None
        self._error: str | None = None
        self._page: TaskPage | None = None
        self._form: Any = None
        if observation_mode == "state":
            self.observation_space: spaces.Space[Any] = spaces.Text(MAX_LENGTH, min_length=0, charset=CHARACTERS)
            self.action_space: spaces.Space[Any] = spaces.Text(MAX_ACTION, min_length=0, charset=CHARACTERS)
        else:
            self.observation_space, self.action_space = self.form.observation_space, self.form.action_space

    @property
    def form(self) -> Any:
        """The page in the form of the package; built on first use.

        Raises:
            MissingDependencyError: the package is not installed.
        """
        if self._form is None:
            with needs_extra("miniwob", "miniwob"):
                from drift_envs.envs.miniwob.package_form import PackageForm
            self._form = PackageForm(self.task_name, self._preset)
        return self._form

    @property
    def page(self) -> TaskPage:
        """The page in the browser; a copy of an environment opens its own, and repeats the episode there."""
        if self._page is None:
            self._page = TaskPage(self.task_name, self._data_mode)
            if self.goal_index is not None:
                self._repeat(self._page)
        return self._page

    @property
    def reading(self) -> PageReading:
        """What the page shows.

        Raises:
            StateError: before the first `reset`.
        """
        if self._reading is None:
            raise StateError("there is no page before `reset`; call `reset` first")
        return self._reading

    @property
    def task_pool(self) -> tuple[int, ...] | None:
        """The numbers of the recurring tasks, or `None` if none recur. For evaluators."""
        return self._pool

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Load the page and begin a task.

        Args:
            seed: seeds the environment's generator, and draws a new pool of tasks.
            options: `goal_index` is the number of the task; by default the next one.

        Returns:
            The observation and `info`.

        Raises:
            ArgumentError: no task has this number, or there is no such option.
            MissingDependencyError: Chromium or its driver is not installed.
            StateError: the page does not load.
        """
        index = self._read_goal_index(options or {}, MOST_TASKS - 1)
        super().reset(seed=seed)
        number = self._next_task(seed)
        self.goal_index = None  # nothing is repeated if the browser has died since
        page = self.page
        self._shown, self._error = self._settings, None
        chosen = number if index is None else index
        self._reading = keep_alive(page, lambda: page.begin(chosen, self._settings), lambda: None)
        self.goal_index = chosen
        self._history = [(self._settings, None)]
        if self.render_mode == "human":
            self.render()
        return self._observe(is_first=True)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Execute an action.

        Args:
            action: in the form of the action space.

        Returns:
            The observation, the page's reward if this action has ended the episode (else 0.0), whether it has,
            `False`, and `info`.

        Raises:
            ArgumentError: an action in words is no string.
            StateError: before the first `reset`, or the browser does not respond.
        """
        if self._reading is None:
            raise StateError("`step` was called before `reset`; call `reset` first")
        if self.observation_mode == "state" and not isinstance(action, str):
            raise ArgumentError(f"`action` should be a text. Received {type(action).__name__}")
        was_done, self._error = self._reading.done, None
        is_lost = bool(self._transient) and self.np_random.random() < self._transient
        if not was_done and not is_lost:
            page, settings = self.page, self._settings
            self._reading = keep_alive(page, lambda: self._act(page, settings, action), lambda: self._repeat(page))
            self._history.append((settings, action))
        if self.render_mode == "human":
            self.render()
        observation, info = self._observe(is_first=False)
        reward = self.reading.reward if self.reading.done and not was_done else 0.0
        return observation, reward, self.reading.done, False, info

    def _act(self, page: TaskPage, settings: dict[str, Any], action: Any) -> PageReading:
        """Bring the page to these settings, and execute an action there."""
        self._show(page, settings)
        if self.observation_mode == "package":
            self.form.act(page, action)
            return page.look()
        found, self._error = find_action(self.reading, action)
        return self.reading if found is None else page.act(*found)

    def _show(self, page: TaskPage, settings: dict[str, Any]) -> None:
        """Bring the page to these settings."""
        if settings != self._shown:
            page.configure(settings)
            self._shown = settings
            self._reading = page.look()

    def refresh(self) -> None:
        """Bring the page to the present knobs, which it otherwise has with the next action. For evaluators."""
        page = self.page
        keep_alive(page, lambda: self._show(page, self._settings), lambda: self._repeat(page))

    def _repeat(self, page: TaskPage) -> None:
        """Begin the episode again, and repeat its actions under the settings that they had."""
        error, number = self._error, self.goal_index
        if number is None:
            return
        (self._shown, _), *steps = self._history
        self._reading = page.begin(number, self._shown)
        if self.observation_mode == "package":
            self.form.observe(page, is_first=True, done=False)
        for settings, action in steps:
            self._reading = self._act(page, settings, action)
        self._error = error

    def _next_task(self, seed: int | None) -> int:
        """The number of the next task, from a stream that is independent of other draws."""
        keeps, self._keeps_tasks = self._keeps_tasks, False
        begins = self._stream is None or (seed is not None and not keeps)
        if self._stream is None or begins:
            self._stream = np.random.default_rng(int(self.np_random.integers(2**63)))
            self._queue = []
            if self._pool_size is not None:
                self._pool = tuple(int(number) for number in self._stream.integers(MOST_TASKS, size=self._pool_size))
        if self._pool is None:
            if seed is not None and begins:
                return seed % MOST_TASKS
            return int(self._stream.integers(MOST_TASKS))
        if not self._queue:
            order = range(len(self._pool)) if self._order == "fixed" else self._stream.permutation(len(self._pool))
            self._queue = [self._pool[place] for place in order]
        return self._queue.pop(0)

    def set_knobs(self, values: Mapping[str, Value]) -> None:
        """Set these knobs to canonical values, all at once; the page has them from the next action or reset on.

        Args:
            values: canonical values, by knob.
        """
        super().set_knobs(values)
        self._settings = to_layer(self.read_knobs())

    order_names: ClassVar[tuple[str, ...]] = ("_stream", "_pool", "_queue")

    def save_state(self) -> dict[str, Any]:
        """What repeats the episode: task, settings and actions."""
        return {"goal_index": self.goal_index, "history": list(self._history), "error": self._error}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore a state by repeating its episode.

        Args:
            state: from `save_state`.
        """
        page = self.page
        self.goal_index, self._history, self._error = state["goal_index"], list(state["history"]), state["error"]
        keep_alive(page, lambda: self._repeat(page), lambda: None)

    def _observe(self, *, is_first: bool) -> tuple[Any, dict[str, Any]]:
        """Observation and `info`, in the observation mode."""
        if self.observation_mode == "package":
            page = self.page
            observation, info = self.form.observe(page, is_first=is_first, done=self.reading.done)
            return observation, dict(info)
        reading = self.reading
        info = {
            "task": reading.task,
            "actions": list_actions(self.task_name, reading),
            "score": max(0.0, reading.reward) if reading.done else 0.0,
            "last_action_error": self._error,
        }
        state = write_state(self.task_name, reading)
        self._routes.pop(state, None)  # the last entry is the newest
        self._routes[state] = PageRoute(int(self.goal_index or 0), tuple(self._history))
        if len(self._routes) > _MOST_ROUTES:
            del self._routes[next(iter(self._routes))]
        return state, info

    def find_route(self, state: str) -> PageRoute | None:
        """How a state in words was reached last; `None` if it was not shown. For evaluators.

        Args:
            state: the state.
        """
        return self._routes.get(state)

    def read_truth(self) -> PageTruth:
        """What no agent sees of `reading`. For evaluators."""
        return self.page.read_truth()

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the browser and the routes of an evaluator."""
        return {**super().__getstate__(), "_routes": {}}

    def _write_page(self) -> str:
        parts = [f"[{part.name}]" if part.kind != "text" else part.name for part in self.reading.elements]
        return "\n".join([self.reading.task, *parts])

    def _draw_page(self) -> np.ndarray:
        page = self.page
        photo = keep_alive(page, lambda: page.photograph(_SCALE), lambda: self._repeat(page))
        return read_png(base64.b64decode(photo))

    def close(self) -> None:
        """Quit the browser, end the server and close the window."""
        super().close()
        page, self._page = self._page, None
        if page is not None:
            page.close()
            self._reading, self.goal_index = None, None


def build(parts: EnvParts, schedule: Source, options: WrapperOptions, arguments: dict[str, Any]) -> gym.Env[Any, Any]:
    """Build the task page.

    Args:
        parts: the declaration of the environment.
        schedule: the schedule, or `None`.
        options: the shared options.
        arguments: those of `MiniWoB`.

    Raises:
        ArgumentError: if the schedule sets the same as an argument.
        MissingDependencyError: if the pages or the browser are not installed.
        ScheduleError: if the schedule cannot be used.
    """
    find_pages()
    find_chromium()
    task = parts.fixed["task"]
    if schedule is None:
        return options.wrap(MiniWoB(options.base_mode(schedule), task=task, **arguments), None)
    checked = load_checked(schedule, knob_table(MiniWoB(task=task)), parts, arguments)
    tasks = {} if checked.tasks is None else {"pool": checked.tasks.pool, "order": checked.tasks.order}
    return options.wrap(MiniWoB(options.base_mode(checked), task=task, **{**tasks, **arguments}), checked)
