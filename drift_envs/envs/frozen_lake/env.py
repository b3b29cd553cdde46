"""The frozen lake with knobs, in words, its marks on pictures, and how a schedule's lake is built."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv

from drift_envs.checks import check_action
from drift_envs.envs.frozen_lake.dynamics import LakeTables, Map, Outcome, false_targets, lake_tables, transitions
from drift_envs.envs.frozen_lake.knobs import FROZEN_LAKE_KNOBS, NewMap
from drift_envs.envs.poison import PoisonedEnv
from drift_envs.errors import KnobError
from drift_envs.knobs import FrozenMapping, KnobTable, Value
from drift_envs.registration import IDS, EnvParts
from drift_envs.schedule.model import Schedule
from drift_envs.show.drawing import load_pygame
from drift_envs.wrappers.binding import knob_table
from drift_envs.wrappers.drift import Source
from drift_envs.wrappers.options import WrapperOptions, load_checked
from drift_envs.wrappers.overlay import CHANGED, GHOST, TRAIL, DrawnMarks
from drift_envs.wrappers.text import MAX_LENGTH, TEXT_CHARACTERS, write_number

Table = dict[int, dict[int, list[tuple[float, int, float, bool]]]]
"""Gymnasium's transition table: state, action, outcomes."""


PICTURES = (
    "ice_img",
    "hole_img",
    # Gymnasium 1.3
    "cracked_hole_img",
    "elf_images",
    "goal_img",
    "start_img",
    # Gymnasium 1.4
    "ice_crack_imgs",
    "agent_img",
    "goal_flag_img",
    "letter_s_img",
    "letter_g_img",
)
"""The attributes of Gymnasium's lake that hold pictures, scaled to the size of a tile."""


def _rows(desc: np.ndarray) -> Map:
    """An array of letters as a map."""
    return tuple(b"".join(row).decode() for row in desc.tolist())


class FrozenLake(PoisonedEnv, FrozenLakeEnv):
    """Gymnasium's frozen lake whose map, slip, goal rewards and transient responses can be set.

    As long as no knob is set it is bit-identical to `gymnasium`'s `FrozenLakeEnv` with the same
    arguments: same seed, same trajectory, rewards, spaces and `info`. `step` and `reset` are
    several times as fast, since they read tables that are built once for every map.

    Knobs, with defaults and bounds: `drift-envs list --env DriftFrozenLake-v0`.

    `slip` is `1 - success_rate` on slippery ice and 0 otherwise. A false answer (`transient`)
    carries the agent to a neighbouring tile that its move does not lead to, each equally likely;
    holes and goals are left out, so that it neither ends an episode nor pays, and where no tile is
    left the answer is true. Nothing else shows it.

    Where the ice has broken (`poison_after`) each arrival ends the episode with the reward of a hole, the visit that
    broke it included. A visit is an arrival from another tile, in this instance or in a twin; start, holes and goals
    are exempt. `reset` closes the ice again, a twin's `reset` does not. The tile looks like ice.

    A map of another size keeps the agent's row and column, cut at the new edge.

    | action | meaning | observation | meaning |
    |---|---|---|---|
    | 0, 1, 2, 3 | left, down, right, up | `Discrete` | row * columns + column |

    | info | meaning |
    |---|---|
    | `prob` | probability of the transition, as in Gymnasium; absent with `show_prob=False` |

    Args:
        render_mode: `human`, `rgb_array`, `ansi` or `None`.
        desc: the map, as in Gymnasium.
        map_name: `4x4` or `8x8`, where `desc` is not given.
        is_slippery: whether the ice is slippery.
        success_rate: probability of moving as intended on slippery ice.
        reward_schedule: rewards of goal, hole and plain ice.
        show_prob: whether `info["prob"]` shows the transition's probability, which reveals the slip.
        room_for: rows and columns of the maps that may be set later. The observation space and the
            picture are as large as the largest of them needs, and stay so.

    Example:
        >>> env = FrozenLake(is_slippery=False)
        >>> env.reset(seed=0)
        (0, {'prob': 1})
        >>> env.set_knobs({"map": ("SG",)})
        >>> env.step(2)
        (1, 1, True, False, {'prob': 1.0})
    """

    knobs: ClassVar[KnobTable] = FROZEN_LAKE_KNOBS
    parts: ClassVar[EnvParts | None] = IDS["DriftFrozenLake-v0"]
    surfaces: ClassVar[tuple[str, ...]] = ("window_surface", "clock", *PICTURES)
    map: Map
    goal_rewards: FrozenMapping
    _table: Table
    _table_knobs: tuple[Any, ...] | None = None  # the knobs that the table was built for; none in the constructor

    def __init__(
        self,
        render_mode: str | None = None,
        desc: Sequence[str] | None = None,
        map_name: str | None = "4x4",
        is_slippery: bool = True,
        success_rate: float = 1.0 / 3.0,
        reward_schedule: tuple[float, float, float] = (1, 0, 0),
        *,
        show_prob: bool = True,
        room_for: Iterable[tuple[int, int]] = (),
    ) -> None:
        FrozenLakeEnv.__init__(self, render_mode, desc, map_name, is_slippery, success_rate, reward_schedule)  # type: ignore[arg-type]
        goal, hole, ice = reward_schedule
        self._reward_schedule = (goal, hole, ice)
        self._show_prob = show_prob
        self._map: Map = _rows(self._desc)
        self._goal_rewards = FrozenMapping()
        self._transient = 0.0
        self._poison_after, self._visits = 0, None  # read at each step and reset: found faster here than in the class
        # From `success_rate` itself: 1 - (1 - 1/3) is not 1/3 in floating point.
        self._success = success_rate if is_slippery else 1.0
        self._slip = 1.0 - self._success
        self._before = (1.0 - self._success) / 2.0
        self._until = self._before + self._success
        self._use(lake_tables(self._map, self._goal_rewards, self._reward_schedule))
        self._table_knobs = (self._map, self._slip, self._goal_rewards, self._transient)
        self.reserve_space([(self.nrow, self.ncol), *room_for])

    def reserve_space(self, sizes: Iterable[tuple[int, int]]) -> None:
        """Make the observation space and the picture as large as the largest of some maps needs.

        Args:
            sizes: rows and columns of each map that may be set.
        """
        rows, columns = zip(*sizes, strict=True)
        self._states = max(row * column for row, column in zip(rows, columns, strict=True))
        self.observation_space = spaces.Discrete(self._states)
        self.window_size = (min(64 * max(columns), 512), min(64 * max(rows), 512))
        self.cell_size = (self.window_size[0] // self.ncol, self.window_size[1] // self.nrow)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Put the agent on a start tile.

        Args:
            seed: seeds the environment's generator.
            options: not used.

        Returns:
            The start state and `info`.
        """
        gym.Env.reset(self, seed=seed)
        if self._visits is not None:
            self._clear_visits()
        starts = self._tables.starts
        chance = self.np_random.random()
        self.s = starts[0][0]
        for state, share in starts:
            if chance < share:
                self.s = state
                break
        self.lastaction = None
        if self.render_mode == "human":
            self.render()  # type: ignore[no-untyped-call]
        return self.s, {"prob": 1} if self._show_prob else {}

    def step(self, a: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Move.

        Args:
            a: 0 left, 1 down, 2 right, 3 up.

        Returns:
            Next state, reward, whether the episode ended, `False`, and `info`.

        Raises:
            ArgumentError: if the action is none of the four.
        """
        if a.__class__ is not int or not 0 <= a <= 3:
            a = check_action(a, 4)
        here = self.s
        outcomes = self._outcomes[here][a]
        chance = self._np_random.random()  # type: ignore[union-attr]
        # The cumulated probabilities of Gymnasium's `categorical_sample`, rounding included.
        if chance < self._before:
            which = 0
        elif chance < self._until:
            which = 1
        else:
            which = 2 if chance < self._until + self._before else 0
        state, reward, terminated = outcomes[which]
        if self._transient:  # no number is drawn otherwise
            state, reward, terminated = self._false_response(here, a, (state, reward, terminated))
        if self._poison_after and state != here and not terminated and self._breaks(state):
            reward, terminated = self._reward_schedule[1], True
        self.s = state
        self.lastaction = a
        if self.render_mode == "human":
            self.render()  # type: ignore[no-untyped-call]
        if self._show_prob:
            sure = here in self._tables.ends or not self._slip
            return (
                state,
                reward,
                terminated,
                False,
                {"prob": 1.0 if sure else self._success if which == 1 else self._before},
            )
        return state, reward, terminated, False, {}

    def _false_response(self, here: int, action: int, true: Outcome) -> Outcome:
        """The true outcome or, with the probability `transient`, a false one."""
        chance = self.np_random.random() / self._transient
        if chance >= 1.0 or here in self._tables.ends:
            return true
        targets = false_targets(self._map, here, action)
        if not targets:
            return true
        # Below the threshold, the same number is uniform again and chooses among the targets.
        return targets[min(int(chance * len(targets)), len(targets) - 1)], self._reward_schedule[2], False

    def _breaks(self, state: int) -> bool:
        """Count a visit, and whether the ice there is broken."""
        row, column = divmod(state, self.ncol)
        return self._map[row][column] == "F" and self.visits.note((row, column)) >= self._poison_after

    def save_state(self) -> dict[str, Any]:
        """Where the agent stands, what it did last, and how often each tile was visited."""
        return {"place": divmod(self.s, self.ncol), "lastaction": self.lastaction, "visits": self._save_visits()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore the state of an episode; on a smaller map, the position is cut at its edge.

        Args:
            state: from `save_state`.
        """
        row, column = state["place"]
        self.s = min(row, self.nrow - 1) * self.ncol + min(column, self.ncol - 1)
        self.lastaction = state["lastaction"]
        self._load_visits(state["visits"])

    def set_knobs(self, values: Mapping[str, Value]) -> None:
        """Set these knobs to canonical values, all at once.

        Args:
            values: canonical values, by knob.

        Raises:
            KnobError: if a map is larger than what the observation space has room for.
        """
        slip = values.get("slip")
        if slip is not None:
            if slip != self._slip:
                self._slip = slip
                self._success = success = 1.0 - slip
                self._before = before = (1.0 - success) / 2.0
                self._until = before + success
            if len(values) == 1:  # on a ramp no other knob is set, and this one at every step
                return
        lake = values.get("map", self._map)
        goal_rewards = values.get("goal_rewards", self._goal_rewards)
        if lake is not self._map or goal_rewards is not self._goal_rewards:
            self._set_map(lake, goal_rewards)
        self._transient = values.get("transient", self._transient)
        self._poison_after = values.get("poison_after", self._poison_after)

    @property
    def goal_reward(self) -> float:
        """The reward of goals that `goal_rewards` does not name."""
        return self._reward_schedule[0]

    @property
    def reward_schedule(self) -> tuple[float, float, float]:
        """Rewards of goal, hole and plain ice."""
        return self._reward_schedule

    @property
    def shows_prob(self) -> bool:
        """Whether `info["prob"]` shows the transition's probability."""
        return self._show_prob

    @property  # type: ignore[override]  # Gymnasium declares a list and stores an array
    def desc(self) -> np.ndarray:
        """The map as Gymnasium keeps it, an array of letters of shape `(rows, columns)`."""
        rows: np.ndarray = self._desc
        return rows

    @desc.setter
    def desc(self, value: Any) -> None:
        if hasattr(self, "_map"):
            self.set_knob("map", _rows(np.asarray(value, dtype="c")))
        else:  # Gymnasium's constructor
            self._desc = value

    def read_knobs(self) -> dict[str, Value]:
        """The present value of every knob, the map read back from the array that is drawn."""
        return {**super().read_knobs(), "map": _rows(self._desc)}

    def _use(self, tables: LakeTables) -> None:
        """Let `step` and `reset` read these tables."""
        self._tables = tables
        self._outcomes = tables.outcomes

    def _set_map(self, lake: Map, goal_rewards: FrozenMapping) -> None:
        """Set a map and its rewards."""
        rows, columns = len(lake), len(lake[0])
        if rows * columns > self._states:
            raise KnobError(
                f"`map` should have at most {self._states} tiles, for which the observation space was made. "
                f"Received {rows} x {columns}"
            )
        tables = lake_tables(lake, goal_rewards, self._reward_schedule)
        resized = (rows, columns) != (self.nrow, self.ncol)
        if resized and hasattr(self, "s"):
            row, column = divmod(self.s, self.ncol)
            self.s = min(row, rows - 1) * columns + min(column, columns - 1)
        if lake != self._map:
            self._desc = np.asarray(lake, dtype="c")
            self.initial_state_distrib = np.array(self.desc == b"S").astype("float64").ravel()
            self.initial_state_distrib /= self.initial_state_distrib.sum()
        self._map, self._goal_rewards = lake, goal_rewards
        self._use(tables)
        if resized:
            self.nrow, self.ncol = rows, columns
            self.cell_size = (self.window_size[0] // columns, self.window_size[1] // rows)
            for name in PICTURES:  # loaded again at the new scale
                if hasattr(self, name):
                    setattr(self, name, None)
            if self.window_surface is not None:
                self.window_surface.fill((0, 0, 0))

    @property
    def P(self) -> Table:
        """The transition table as Gymnasium keeps it, `(probability, state, reward, terminated)`, of the present knobs.

        `step` does not need it, so that it is rebuilt only when it is read after a knob was set.
        """
        knobs = self._table_knobs
        if knobs is not None and knobs != (self._map, self._slip, self._goal_rewards, self._transient):
            self._table = self._build_table()
            self._table_knobs = (self._map, self._slip, self._goal_rewards, self._transient)
        return self._table

    @P.setter
    def P(self, table: Table) -> None:
        self._table = table

    def _build_table(self) -> Table:
        """The transition table of the present knobs."""
        model = transitions(
            self._map,
            slip=self._slip,
            goal_rewards=self._goal_rewards,
            transient=self._transient,
            reward_schedule=self._reward_schedule,
        )
        return {
            state: {
                action: [
                    (float(p), int(s), float(r), bool(t))
                    for p, s, r, t in zip(*(part[state, action] for part in parts), strict=True)
                    if p > 0
                ]
                for action in range(4)
            }
            for parts in [(model.probability, model.next_state, model.reward, model.terminated)]
            for state in range(len(model.next_state))
        }

    def __getstate__(self) -> dict[str, Any]:
        """Everything but surfaces and tables; both are rebuilt."""
        state = super().__getstate__()
        del state["_tables"], state["_outcomes"]
        return {**state, "_table": None, "_table_knobs": ()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the tables of the map from the cache."""
        self.__dict__.update(state)
        self._use(lake_tables(self._map, self._goal_rewards, self._reward_schedule))


class LakeDescriber:
    """The words for the lake.

    Args:
        env: the lake.
    """

    actions: tuple[str, ...] = ("0", "1", "2", "3")
    max_length = MAX_LENGTH
    characters = TEXT_CHARACTERS

    def __init__(self, env: FrozenLake) -> None:
        self.env = env
        self._cached_task: tuple[Any, Any, str] = (None, None, "")

    def state(self, observation: int, score: float) -> str:
        """Position, tile and gold.

        Args:
            observation: the state's number.
            score: the gold collected in this episode.
        """
        row, column = divmod(observation, self.env.ncol)
        tile = self.env._map[row][column]
        return f'{{"cur_pos": [{row}, {column}], "tile_type": "{tile}", "gold_collected": {write_number(score)}}}'

    def task(self, best: float | None) -> str:
        """What to do on this lake; the sentence is put together once for each map.

        Args:
            best: the highest score there is.
        """
        lake = self.env._map
        if self._cached_task[0] is not lake or self._cached_task[1] != best:
            starts, goals = _places(lake, "S"), _places(lake, "G")
            text = (
                f"You walk over a frozen lake of {len(lake)} rows x {len(lake[0])} columns, "
                f"from {', or '.join(starts)}. Reach the destination with the highest score and avoid holes. "
                f"There are a total of {len(goals)} destination(s): {', '.join(goals)}. "
                f"The highest score is {write_number(best or 0.0)}. Actions: 0 left, 1 down, 2 right, 3 up."
            )
            self._cached_task = (lake, best, text)
        return self._cached_task[2]

    def score(self, before: float, reward: float, terminated: bool) -> float:
        """The gold collected so far.

        Args:
            before: the gold before the transition.
            reward: its reward.
            terminated: whether it ended the episode.
        """
        return before + reward

    def best_score(self, knobs: Mapping[str, Value]) -> float:
        """The reward of the best goal.

        Args:
            knobs: the lake's knobs.
        """
        rewards = knobs["goal_rewards"]
        goals = [place.strip("[]").replace(" ", "") for place in _places(knobs["map"], "G")]
        return max((float(rewards.get(goal, self.env.goal_reward)) for goal in goals), default=0.0)


def _places(lake: tuple[str, ...], letter: str) -> list[str]:
    """Where a letter stands on a map, as `[row, column]`."""
    return [
        f"[{row}, {column}]" for row, tiles in enumerate(lake) for column, tile in enumerate(tiles) if tile == letter
    ]


class LakeMarks(DrawnMarks):
    """Frames around tiles that changed, old holes as ghosts, and the agent's trajectory.

    Args:
        env: the lake.
    """

    def __init__(self, env: FrozenLake) -> None:
        self.env = env
        self._places: list[tuple[int, int]] = []

    def begin(self) -> None:
        """Start a new trail."""
        self._places = [divmod(int(self.env.s), self.env.ncol)]

    def note(self, action: Any) -> None:
        """Extend the trail."""
        self._places.append(divmod(int(self.env.s), self.env.ncol))

    def _draw_on(self, surface: Any, old: Mapping[str, Value] | None) -> None:
        pygame = load_pygame()
        width, height = self.env.cell_size
        for row, column, tile in self._changes(old):
            box = pygame.Rect(column * width, row * height, width, height)
            pygame.draw.rect(surface, CHANGED, box.inflate(-4, -4), 3)
            if tile == "H":
                for part in range(0, 360, 30):  # a dashed ring: no hole any more
                    pygame.draw.arc(surface, GHOST, box.inflate(-20, -20), np.radians(part), np.radians(part + 16), 3)
        if len(self._places) > 1:
            points = [((c + 0.5) * width, (r + 0.75) * height) for r, c in self._places]
            pygame.draw.lines(surface, TRAIL, False, points, 3)
            pygame.draw.circle(surface, TRAIL, points[0], 5)

    def _changes(self, old: Mapping[str, Value] | None) -> list[tuple[int, int, str]]:
        """Tiles that are others now, and what each was; goals count too when their reward is another one."""
        if old is None:
            return []
        now, before = self.env.map, old.get("map", self.env.map)
        if not isinstance(before, tuple) or [len(row) for row in before] != [len(row) for row in now]:
            return []
        rewards = old.get("goal_rewards", self.env.goal_rewards)
        found = []
        for row, tiles in enumerate(now):
            for column, tile in enumerate(tiles):
                place = f"{row},{column}"
                other_reward = tile == "G" and rewards.get(place) != self.env.goal_rewards.get(place)
                if before[row][column] != tile or other_reward:
                    found.append((row, column, before[row][column]))
        return found


def build(parts: EnvParts, schedule: Source, options: WrapperOptions, arguments: dict[str, Any]) -> gym.Env[Any, Any]:
    """Build the lake. With a schedule, it is slippery only if the schedule or an argument says so, and has no `prob`.

    Args:
        parts: the declaration of the environment.
        schedule: the schedule, or `None`.
        options: the shared options.
        arguments: those of `FrozenLake`.

    Raises:
        ArgumentError: if the schedule sets the same as an argument.
        ScheduleError: if the schedule cannot be used.
    """
    if schedule is None:
        return options.wrap(FrozenLake(options.base_mode(schedule), **arguments), None)
    is_slippery = arguments.get("is_slippery", "success_rate" in arguments)
    lake = FrozenLake(options.base_mode(schedule), **{**arguments, "is_slippery": is_slippery}, show_prob=False)
    checked = load_checked(schedule, knob_table(lake), parts, arguments)
    sizes = list(_map_sizes(checked))
    lake.reserve_space(sizes if "map" in checked.base else [(lake.nrow, lake.ncol), *sizes])
    return options.wrap(lake, checked)


def _map_sizes(schedule: Schedule) -> Iterator[tuple[int, int]]:
    """Rows and columns of every map that the schedule may set, the base's first."""
    written = [schedule.base.get("map")]
    for drift in schedule.drifts:
        written += [drift.set.get("map"), *drift.choice.get("map", ())]
    for value in written:
        if isinstance(value, Mapping):
            (arguments,) = value.values()  # of `draw` or `draw_once`
            if "move" not in arguments:
                size = arguments.get("size", NewMap.size)
                yield size, size
        elif value is not None:
            yield len(value), len(value[0])
