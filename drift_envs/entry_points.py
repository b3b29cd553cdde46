"""The functions that `gymnasium.make` and `gymnasium.make_vec` call; loaded when the first environment is made.

* `frozen_lake`, `mountain_car`, `mountain_car_continuous`, `web_shop`, `house` - build the environment of an id
* `cart_pole`, `acrobot`, `pendulum`, `lunar_lander` - the same for classic control
* `minigrid_empty` and the others of that name - the same for Minigrid
* `half_cheetah`, `hopper`, `inverted_pendulum`, `reacher` - the same for MuJoCo
* `miniwob_click_button` and so on - the task pages of MiniWoB++
* `vector_frozen_lake`, `vector_mountain_car`, `vector_mountain_car_continuous` - the native vector environments
* `EntryPoint` - what they are instances of
* `WrapperOptions` - the arguments that all ids share
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import gymnasium as gym
from gymnasium.vector import VectorEnv

from drift_envs.errors import ArgumentError
from drift_envs.knobs import KnobTable
from drift_envs.lazy import load_object
from drift_envs.registration import ALL_IDS
from drift_envs.schedule.loader import load_schedule
from drift_envs.schedule.model import Schedule, TaskPool
from drift_envs.schedule.variants import FILE_ENDINGS, split_suffix
from drift_envs.wrappers.binding import driven_names, knob_table
from drift_envs.wrappers.drift import DriftWrapper, Source
from drift_envs.wrappers.field_text import FIELD_TEXTS
from drift_envs.wrappers.internal import mark_internal

LAKE_ARGUMENTS = {
    "desc": "map",
    "map_name": "map",
    "is_slippery": "slip",
    "success_rate": "slip",
    "reward_schedule": "goal_rewards",
}
"""The arguments of Gymnasium's lake, and the knob that sets the same."""

CAR_ARGUMENTS = {"goal_velocity": None}
"""The arguments of Gymnasium's cars; no knob sets the same."""

SHOP_ARGUMENTS = {
    "observation_mode": None,
    "backend": None,
    "catalogue": None,
    "goals": "tasks",
    "pool": "tasks",
    "order": "tasks",
    "clusters": "tasks",
    "repeats": "tasks",
    "held_out": "tasks",
    "max_length": None,
    "native_clicks": None,
}
"""The arguments of the shop; the section `tasks` of a schedule sets the same as six of them."""

HOUSE_ARGUMENTS = {"observation_mode": None, "pool": "tasks", "order": "tasks"}
"""The arguments of the house; the section `tasks` of a schedule sets the same as two of them."""

MINIWOB_ARGUMENTS = {
    "observation_mode": None,
    "data_mode": None,
    "action_preset": None,
    "pool": "tasks",
    "order": "tasks",
}
"""The arguments of the task pages; the section `tasks` of a schedule sets the same as two of them."""

MAX_CONDITIONS = 16
"""The combinations of knob values for which the goals of a shop, or the tasks of a house, are checked."""

_Env = gym.Env[Any, Any]


class WrapperOptions(NamedTuple):
    """The arguments that all ids share.

    Args:
        notify: what `info["drift"]` contains: `none`, `change` or `full`.
        text: whether observations are texts.
        render_mode: `human`, `rgb_array`, `ansi` or `None`.
        overlay: whether pictures show the drift; by default those of `human` do.
    """

    notify: str
    text: bool
    render_mode: str | None
    overlay: bool | None

    def has_overlay(self, schedule: Source) -> bool:
        """Whether pictures show the drift; without a schedule there is none."""
        wanted = self.render_mode == "human" if self.overlay is None else self.overlay
        return wanted and schedule is not None and self.render_mode is not None

    def base_mode(self, schedule: Source) -> str | None:
        """The render mode of the innermost environment: an overlay on `human` needs arrays, not a window."""
        return "rgb_array" if self.render_mode == "human" and self.has_overlay(schedule) else self.render_mode

    def wrap(self, env: _Env, schedule: Source) -> _Env:
        """The environment inside the wrappers of this package."""
        world: _Env = mark_internal(DriftWrapper(env, schedule, make_oracle, self.notify))
        if self.has_overlay(schedule):
            from drift_envs.wrappers.overlay.overlay import DriftOverlay, ScreenWindow

            world = mark_internal(DriftOverlay(world))
            if self.render_mode == "human":
                world = mark_internal(ScreenWindow(world))
        if self.text:
            from drift_envs.wrappers.text import TextObservation

            world = mark_internal(TextObservation(world))
        return world


def make_oracle(world: DriftWrapper) -> Any:
    """The oracle of a drifting environment; the module of the oracles is loaded here, at the first use."""
    return load_object("drift_envs.oracle.factories:make_oracle")(world)


class EntryPoint:
    """Builds the environment of one id.

    Args:
        env_id: the id.
        arguments: the arguments of the innermost environment, each with the part of a schedule that sets the
            same, or `None`.
        build: the function that builds the environment from its class, the schedule, the shared options and
            the arguments.
    """

    def __init__(
        self,
        env_id: str,
        arguments: Mapping[str, str | None],
        build: Callable[[Any, Source, WrapperOptions, dict[str, Any]], _Env],
    ) -> None:
        self.env_id = env_id
        self._entry = ALL_IDS[env_id]
        self._arguments = arguments
        self._build = build

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the innermost environment: Gymnasium reads the render modes from the entry point."""
        return self._entry.base.metadata

    def __call__(
        self,
        *,
        render_mode: str | None = None,
        notify: str = "none",
        text: bool = False,
        overlay: bool | None = None,
        **arguments: Any,
    ) -> _Env:
        """Build the environment.

        Args:
            render_mode: `human`, `rgb_array`, `ansi` or `None`.
            notify: what `info["drift"]` contains: `none`, `change` or `full`.
            text: whether observations are texts, see `TextObservation`; those of the shop are JSON states of
                texts and address (`url+text`) then, unless `observation_mode` is given.
            overlay: whether pictures show phase, tick and changes; by default those of `human` do, except for
                the shop's browser.
            **arguments: `schedule`: a shipped name (on a lake, `explicit` is short for `frozen_lake/explicit`), a path,
                a dictionary, a `Schedule`, or `None` for no drift;
                by default the id's own. The others are those of the innermost environment.

        Raises:
            ArgumentError: if an argument is unknown, or the schedule sets the same.
            ScheduleError: if the schedule can't be used.
        """
        schedule = self._full_name(arguments.pop("schedule", self._entry.schedule))
        known = ("schedule", *self._arguments, "render_mode", "notify", "text", "overlay")
        unknown = [name for name in arguments if name not in known]
        if unknown:
            rules = "; ".join(
                f"there is no argument `{name}`.{_suggest(name, known)} Received {name}={arguments[name]!r}"
                for name in unknown
            )
            raise ArgumentError(f"{rules}. Known: {', '.join(known)}")
        return self._build(self._entry.base, schedule, WrapperOptions(notify, text, render_mode, overlay), arguments)

    def _full_name(self, schedule: Any) -> Any:
        """The full name of a shipped schedule, of which `explicit` and so on is the last part."""
        if not isinstance(schedule, str) or "/" in schedule or os.path.isfile(schedule):
            return schedule
        if split_suffix(schedule)[0].endswith(FILE_ENDINGS):
            return schedule
        return f"{self._entry.schedule.partition('/')[0]}/{schedule}"

    def make_vector(self, num_envs: int = 1, **arguments: Any) -> VectorEnv[Any, Any, Any]:
        """Build the vector environment.

        Args:
            num_envs: the number of sub-environments.
            **arguments: those of the single environment, and `max_episode_steps`, `autoreset_mode`,
                `share_timeline`; `num_workers` for several processes; `backend="jax"` for compiled code, by default
                `"numpy"`.
        """
        if self._entry.vector_class is None:
            raise ArgumentError(f"`id` should have a native vector environment. Received {self.env_id!r}")
        backend = arguments.pop("backend", "numpy")
        if backend not in ("numpy", "jax"):
            raise ArgumentError(f"`backend` should be one of numpy, jax. Received {backend!r}")
        if backend == "jax":
            make_compiled = load_object("drift_envs.functional.entry:make_functional_vector")
            vector: VectorEnv[Any, Any, Any] = make_compiled(self, self.env_id, num_envs, **arguments)
            return vector
        from drift_envs.vector.entry import make_vector, make_workers
        from drift_envs.vector.workers import WorkerPlan

        workers = arguments.pop("num_workers", None)
        if workers is not None:
            limit, mode = arguments.pop("max_episode_steps", None), arguments.pop("autoreset_mode", "NextStep")
            shared = arguments.pop("share_timeline", False)
            place = f"drift_envs.entry_points:{self._entry.entry_point}"
            mode = getattr(mode, "value", mode)
            plan = WorkerPlan(place, self._entry.vector_class, limit, mode, shared, arguments)
            return make_workers(self(**arguments), plan, num_envs, workers)
        return make_vector(self, load_object(self._entry.vector_class), num_envs, **arguments)


def _suggest(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f" Did you mean `{close[0]}`?" if close else ""


def _build_lake(base: Any, schedule: Source, options: WrapperOptions, arguments: dict[str, Any]) -> _Env:
    """With a schedule, the ice is not slippery unless the schedule or an argument says so; `prob` is hidden."""
    if schedule is None:
        return options.wrap(base(options.base_mode(schedule), **arguments), None)
    is_slippery = arguments.get("is_slippery", "success_rate" in arguments)
    lake = base(options.base_mode(schedule), **{**arguments, "is_slippery": is_slippery}, show_prob=False)
    checked = _load(schedule, knob_table(lake), arguments, LAKE_ARGUMENTS)
    sizes = list(_map_sizes(checked))
    lake.reserve_space(sizes if "map" in checked.base else [(lake.nrow, lake.ncol), *sizes])
    return options.wrap(lake, checked)


def _build_car(base: Any, schedule: Source, options: WrapperOptions, arguments: dict[str, Any]) -> _Env:
    """Every knob of a car can be set at any time, so nothing of the schedule has to be known in advance."""
    return options.wrap(base(options.base_mode(schedule), **arguments), schedule)


def _build_physics(base: Any, schedule: Source, options: WrapperOptions, arguments: dict[str, Any]) -> _Env:
    """Classic control, LunarLander and MuJoCo: arguments that the schedule may set."""
    if options.text and base.__name__ not in FIELD_TEXTS:
        raise ArgumentError(f"`text` should be False, since {base.__name__} has no text form. Received True")
    env = base(render_mode=options.base_mode(schedule), **arguments)
    if schedule is not None and "g" in arguments:
        schedule = _load(schedule, knob_table(env), {"g": arguments["g"]}, {"g": "g"})
    return options.wrap(env, schedule)


def _build_grid(base: Any, schedule: Source, options: WrapperOptions, arguments: dict[str, Any]) -> _Env:
    """Minigrid's worlds: every knob can be set at any time."""
    return options.wrap(base(render_mode=options.base_mode(schedule), **arguments), schedule)


def _build_shop(base: Any, schedule: Source, options: WrapperOptions, arguments: dict[str, Any]) -> _Env:
    """With a schedule, its goals (section `tasks`) can all be bought for a reward of 1.0 in every phase."""
    if options.text:
        arguments = {"observation_mode": "url+text", **arguments}
    if options.overlay is None and arguments.get("backend") == "browser":
        options = options._replace(overlay=False)
    options = options._replace(text=False)
    if schedule is None:
        return options.wrap(base(options.base_mode(schedule), **arguments), None)
    checked, conditions = _load_with_conditions(base, schedule, arguments, SHOP_ARGUMENTS)
    tasks = (checked.tasks or TaskPool()).model_dump()
    return options.wrap(base(options.base_mode(checked), **{**tasks, **arguments, "conditions": conditions}), checked)


def _build_house(base: Any, schedule: Source, options: WrapperOptions, arguments: dict[str, Any]) -> _Env:
    """With a schedule, its tasks (section `tasks`) can all be done for a reward of 1.0 in every phase."""
    if options.text:
        arguments = {"observation_mode": "state", **arguments}
    options = options._replace(text=False)
    if schedule is None:
        return options.wrap(base(options.base_mode(schedule), **arguments), None)
    checked, conditions = _load_with_conditions(base, schedule, arguments, HOUSE_ARGUMENTS)
    tasks = {} if checked.tasks is None else {"pool": checked.tasks.pool, "order": checked.tasks.order}
    own = {**tasks, **arguments, "conditions": conditions, "affected": not checked.control}
    return options.wrap(base(options.base_mode(checked), **own), checked)


def _build_miniwob(base: Any, schedule: Source, options: WrapperOptions, arguments: dict[str, Any], task: str) -> _Env:
    """The task pages; the package and the browser are looked for now, and started at the first reset."""
    from drift_envs.envs.chromium import find_chromium
    from drift_envs.envs.miniwob.server import find_pages

    find_pages()
    find_chromium()
    if options.text:
        arguments = {"observation_mode": "state", **arguments}
    options = options._replace(text=False)
    if schedule is None:
        return options.wrap(base(options.base_mode(schedule), task=task, **arguments), None)
    env = base(options.base_mode(schedule), task=task)
    checked = _load(schedule, knob_table(env), arguments, MINIWOB_ARGUMENTS)
    tasks = {} if checked.tasks is None else {"pool": checked.tasks.pool, "order": checked.tasks.order}
    return options.wrap(base(options.base_mode(checked), task=task, **{**tasks, **arguments}), checked)


def _make_miniwob(task: str) -> EntryPoint:
    """The entry point of a task page."""
    env_id = f"DriftMiniWoB{task.title().replace('-', '')}-v0"
    return EntryPoint(env_id, MINIWOB_ARGUMENTS, partial(_build_miniwob, task=task))


def _load_with_conditions(
    base: Any, schedule: Source, arguments: Mapping[str, Any], known: Mapping[str, str | None]
) -> tuple[Schedule, list[dict[str, Any]]]:
    """Load the schedule, with the combinations of knob values that it can reach."""
    from drift_envs.schedule.reach import reachable_values

    table = knob_table(base())
    checked = _load(schedule, table, arguments, known)
    conditions = [
        {name: values[name] for name in base.knobs}
        for values in islice(reachable_values(checked, table), MAX_CONDITIONS)
    ]
    return checked, conditions


def _load(
    schedule: Source, table: KnobTable, arguments: Mapping[str, Any], known: Mapping[str, str | None]
) -> Schedule:
    """Load the schedule, check it against the knobs, and refuse arguments that set the same."""
    checked = load_schedule(schedule, table=table)
    if checked is None:  # `load_schedule` returns `None` for `None` alone
        raise ArgumentError(f"`schedule` should be a schedule. Received {schedule!r}")
    driven = driven_names(checked) | (set() if checked.tasks is None else {"tasks"})
    for name, value in arguments.items():
        if known[name] in driven:
            raise ArgumentError(
                f"`{name}` should not be given, since the schedule `{checked.name}` sets `{known[name]}`. "
                f"Received {value!r}"
            )
    return checked


def _map_sizes(schedule: Schedule) -> Iterator[tuple[int, int]]:
    """Rows and columns of every map that the schedule may set, the base's first."""
    from drift_envs.envs.frozen_lake.maps import NewMap

    written = [schedule.base.get("map")]
    for drift in schedule.drifts:
        written += [drift.set.get("map"), *drift.choice.get("map", ())]
    for value in written:
        if isinstance(value, Mapping):
            arguments = value["draw"]
            if "move" not in arguments:
                size = arguments.get("size", NewMap.size)
                yield size, size
        elif value is not None:
            yield len(value), len(value[0])


frozen_lake = EntryPoint("DriftFrozenLake-v0", LAKE_ARGUMENTS, _build_lake)
mountain_car = EntryPoint("DriftMountainCar-v0", CAR_ARGUMENTS, _build_car)
mountain_car_continuous = EntryPoint("DriftMountainCarContinuous-v0", CAR_ARGUMENTS, _build_car)
house = EntryPoint("DriftHouse-v0", HOUSE_ARGUMENTS, _build_house)
web_shop = EntryPoint("DriftWebShop-v0", SHOP_ARGUMENTS, _build_shop)
miniwob_click_button = _make_miniwob("click-button")
miniwob_click_dialog = _make_miniwob("click-dialog")
miniwob_click_tab = _make_miniwob("click-tab")
miniwob_enter_text = _make_miniwob("enter-text")
miniwob_login_user = _make_miniwob("login-user")
miniwob_choose_list = _make_miniwob("choose-list")
miniwob_navigate_tree = _make_miniwob("navigate-tree")
miniwob_search_engine = _make_miniwob("search-engine")
miniwob_book_flight = _make_miniwob("book-flight")
miniwob_use_autocomplete = _make_miniwob("use-autocomplete")

cart_pole = EntryPoint("DriftCartPole-v0", {"sutton_barto_reward": None}, _build_physics)
acrobot = EntryPoint("DriftAcrobot-v0", {}, _build_physics)
pendulum = EntryPoint("DriftPendulum-v0", {"g": "g"}, _build_physics)
lunar_lander = EntryPoint("DriftLunarLander-v0", {"continuous": None}, _build_physics)
half_cheetah = EntryPoint("DriftHalfCheetah-v0", {}, _build_physics)
hopper = EntryPoint("DriftHopper-v0", {}, _build_physics)
inverted_pendulum = EntryPoint("DriftInvertedPendulum-v0", {}, _build_physics)
reacher = EntryPoint("DriftReacher-v0", {}, _build_physics)
minigrid_empty = EntryPoint("DriftMiniGrid-Empty-v0", {"size": None}, _build_grid)
minigrid_door_key = EntryPoint("DriftMiniGrid-DoorKey-v0", {"size": None}, _build_grid)
minigrid_multi_room = EntryPoint("DriftMiniGrid-MultiRoom-v0", {"rooms": None, "room_size": None}, _build_grid)
minigrid_lava_gap = EntryPoint("DriftMiniGrid-LavaGap-v0", {"size": None}, _build_grid)
minigrid_key_corridor = EntryPoint("DriftMiniGrid-KeyCorridor-v0", {"room_size": None, "num_rows": None}, _build_grid)
minigrid_unlock = EntryPoint("DriftMiniGrid-Unlock-v0", {}, _build_grid)
minigrid_go_to_local = EntryPoint("DriftMiniGrid-GoToLocal-v0", {"room_size": None, "num_dists": None}, _build_grid)

vector_frozen_lake = frozen_lake.make_vector
vector_mountain_car = mountain_car.make_vector
vector_mountain_car_continuous = mountain_car_continuous.make_vector
