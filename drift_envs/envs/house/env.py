"""A text house with knobs.

* `House` - a task in words, commands as in ALFWorld, and a house that serves many tasks
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from drift_envs.checks import check_choice, check_flag, check_integer
from drift_envs.envs.house import HOUSE
from drift_envs.envs.house.blueprint import HOUSES, MOST_NUMBER
from drift_envs.envs.house.episode import HouseEpisode
from drift_envs.envs.house.knobs import HOUSE_KNOBS
from drift_envs.envs.house.model import MODEL_KNOBS, HouseModel, make_model
from drift_envs.envs.house.pool import MOST_TASKS, ORDERS, TaskSequence, find_task, freeze_conditions
from drift_envs.envs.house.tasks import HouseTask
from drift_envs.errors import ArgumentError, StateError
from drift_envs.knobs import KnobTable, Value
from drift_envs.parts import EnvParts
from drift_envs.tunable import KnobAttribute, RecurringTasksEnv

OBSERVATION_MODES = ("text", "state")
"""ALFWorld's text, or the state as JSON."""

CHARACTERS = string.ascii_letters + string.digits + " \n" + "-=!:,.'\"()[]{}_/"
"""Every character that an observation can have."""

MAX_LENGTH = 16_384
"""No observation is longer."""

MAX_ACTION = 100
"""No command is longer."""


class House(RecurringTasksEnv, gym.Env[str, str]):
    """A house of several rooms: a task in words, and the commands of ALFWorld's text interface.

    House, task types and commands are of ALFWorld's kind (Shridhar et al., 2021); the code and the houses are
    this project's own. One house serves many tasks: only the seed draws another one.

    | action | meaning |
    |---|---|
    | `go to shelf 1`, `open drawer 2`, `close drawer 2` | from anywhere; at the receptacle |
    | `take mug 1 from shelf 1`, `move mug 1 to shelf 1` | one thing at a time; `put mug 1 in/on shelf 1` is the same |
    | `heat`, `cool`, `clean` `mug 1 with microwave 1` | a thing in the hand, at an appliance |
    | `use desklamp 1` | turns a lamp on or off |
    | `examine mug 1`, `look`, `inventory`, `help` | change nothing |

    The observation is the answer in words, as in ALFWorld, and `Nothing happens.` where a command has no effect;
    with `observation_mode="state"` it is a JSON object: `house`, `task`, `at`, `door`, `sees`, `holds`, `done`
    (the commands that had an effect), `opened`, `visited`, `says`. The reward is the score, which ends the episode:
    1.0, or 0.6 if a thing is not put where the household wants it.

    | knob | default | bounds | meaning |
    |---|---|---|---|
    | `house` | 0 | 0 to 1000000 | number of the house; 0 draws one from the seed |
    | `arrangement` | 0 | 0 to 1000 | where things are kept: each number moves every thing |
    | `kept` | {} | | kind of things: the furniture where all of them are kept |
    | `wander` | 0.0 | 0 to 1000 | how far things have wandered; at 1, each is kept in another place |
    | `names` | {} | | furniture or kind: its new name |
    | `gone` | [] | | furniture that is not there |
    | `locked` | [] | | rooms and furniture that cannot be entered or opened |
    | `keys` | {} | | furniture: the keychain that opens it, if it is in the hand |
    | `effects` | {} | `heat`, `cool`, `clean`, `nothing` | appliance or kind: what it does, whatever the command says |
    | `words` | {} | | word of a task: the kind that it refers to |
    | `tidy` | 0 | 0 to 1000 | the household's habit, which decides the tidy places; 0 has none |
    | `transient` | 0.0 | 0 to 1 | probability that a command is lost and nothing happens |

    | info | meaning |
    |---|---|
    | `task` | the task in words |
    | `actions` | the admissible commands |
    | `score` | the score, 0.0 before the task is done |

    `house` takes effect at a reset; the other knobs act at once on all that the agent has not moved.
    `reset(options={"goal_index": i})` selects the task and its house.

    Args:
        render_mode: `human`, `rgb_array`, `ansi` or `None`.
        observation_mode: `text` or `state`.
        pool: the number of recurring tasks; `None` draws from all tasks of the house.
        order: `shuffled` (each task once in every round of the pool) or `fixed`.
        conditions: knob values under each of which every task of the pool can be done at 1.0.
        affected: whether tasks come first that every change between two conditions affects, or that none does.

    Raises:
        ArgumentError: an argument breaks a rule.

    Example:
        >>> house = House(pool=3)
        >>> house.house = 7
        >>> text, info = house.reset(seed=0)
        >>> info["task"], len(info["actions"])
        ('put two pencil in fridge', 45)
        >>> house.step("open fridge 1")[0]
        'Nothing happens.'
    """

    metadata = {  # noqa: RUF012 - as Gymnasium declares it
        "render_modes": ["human", "rgb_array", "ansi"],
        "render_fps": 4,
    }
    knobs: ClassVar[KnobTable] = HOUSE_KNOBS
    parts: ClassVar[EnvParts | None] = HOUSE
    surfaces: ClassVar[tuple[str, ...]] = ("_window",)
    house = KnobAttribute()
    arrangement = KnobAttribute()
    kept = KnobAttribute()
    wander = KnobAttribute()
    names = KnobAttribute()
    gone = KnobAttribute()
    locked = KnobAttribute()
    keys = KnobAttribute()
    effects = KnobAttribute()
    words = KnobAttribute()
    tidy = KnobAttribute()
    transient = KnobAttribute()
    _house: int
    _transient: float

    def __init__(
        self,
        render_mode: str | None = None,
        *,
        observation_mode: str = "text",
        pool: int | None = None,
        order: str = "shuffled",
        conditions: Sequence[Mapping[str, Value]] = (),
        affected: bool = True,
    ) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ArgumentError(f"`render_mode` should be human, rgb_array, ansi or None. Received {render_mode!r}")
        check_choice("observation_mode", observation_mode, OBSERVATION_MODES)
        check_choice("order", order, ORDERS)
        pool = check_integer("pool", pool, 1, MOST_TASKS, optional=True)
        self.render_mode = render_mode
        self.observation_mode = observation_mode
        for name, value in HOUSE_KNOBS.defaults().items():
            setattr(self, f"_{name}", value)
        self._tasks = TaskSequence(pool, order, freeze_conditions(conditions), check_flag("affected", affected))
        self._number = 0
        """The house that the seed has drawn; 0 before."""
        self._current: HouseEpisode | None = None
        self._window: Any = None
        self.observation_space = spaces.Text(MAX_LENGTH, min_length=0, charset=CHARACTERS)
        self.action_space = spaces.Text(MAX_ACTION, min_length=0, charset=CHARACTERS)

    @property
    def episode(self) -> HouseEpisode:
        """The present episode.

        Raises:
            StateError: before the first `reset`.
        """
        if self._current is None:
            raise StateError("there is no episode before `reset`; call `reset` first")
        return self._current

    @property
    def task_pool(self) -> tuple[int, ...] | None:
        """The numbers of the recurring tasks, or `None` for all tasks of the house. For evaluators."""
        return self._tasks.pool(self._number_now())

    @property
    def drawn_house(self) -> int:
        """The house that the seed has drawn, in which episodes take place while the knob `house` is 0."""
        self._seed_tasks(None)
        return self._number

    def pool_of(self, house: int) -> tuple[int, ...] | None:
        """The numbers of the recurring tasks of a house, or `None` for all its tasks. For evaluators.

        Args:
            house: the number of the house.
        """
        self._seed_tasks(None)
        return self._tasks.pool(house)

    def other_tasks(self, count: int) -> tuple[int, ...]:
        """The numbers of tasks of this house outside `task_pool`, drawn by the same rules. For evaluators.

        Args:
            count: how many.

        Raises:
            ArgumentError: the house has too few.
        """
        return self._tasks.others(self._number_now(), count)

    def tasks_elsewhere(self, count: int, houses: int = 3) -> tuple[int, ...]:
        """The numbers of tasks of other houses, drawn by the same rules. For evaluators.

        Args:
            count: how many.
            houses: in how many houses they are.
        """
        return self._tasks.elsewhere(self._number_now(), count, houses)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: seeds the environment's generator, and draws a new pool of tasks and, unless the knob `house`
                says which, a new house.
            options: `goal_index` is the number of the task; by default the next one. `wording` is which of the
                three wordings says it, 0 by default.

        Returns:
            What is seen first, and `info`.

        Raises:
            ArgumentError: no task or wording has this number, or there is no such option.
        """
        options = dict(options or {})
        wording = check_integer("wording", options.pop("wording", 0), 0, 2)
        index = self._read_goal_index(options, (MOST_NUMBER + 1) * MOST_TASKS - 1)
        if index is not None:
            find_task(index)  # refuses a number that no house has
        super().reset(seed=seed)
        self._seed_tasks(None if self._keeps_tasks else seed)
        self._keeps_tasks = False
        self.goal_index = self._tasks.next(self._number_now()) if index is None else index
        number, task = find_task(self.goal_index)
        self._current = HouseEpisode(self._make_model(number), task, wording)
        self._current.answer = self._current.introduce()
        if self.render_mode == "human":
            self.render()
        return self._observe(), self._make_info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Execute a command.

        Args:
            action: the command.

        Returns:
            The answer, the score if this command has completed the task (else 0.0), whether it has, `False`, and
            `info`.

        Raises:
            ArgumentError: the action is not a string.
            StateError: before the first `reset`.
        """
        if not isinstance(action, str):
            raise ArgumentError(f"`action` should be a text. Received {type(action).__name__}")
        episode = self._current
        if episode is None:
            raise StateError("`step` was called before `reset`; call `reset` first")
        before = episode.score
        if before > 0.0 or (self._transient and self.np_random.random() < self._transient):
            episode.lose()
        else:
            episode.act(action)
        if self.render_mode == "human":
            self.render()
        return self._observe(), episode.score - before, episode.score > 0.0, False, self._make_info()

    def _observe(self) -> str:
        return self.episode.answer if self.observation_mode == "text" else self.episode.write_state()

    def _make_info(self) -> dict[str, Any]:
        episode = self.episode
        actions = [] if episode.score else episode.model.admissible(episode.state)
        return {"task": episode.task_text, "actions": actions, "score": episode.score}

    def _number_now(self) -> int:
        return self._house or self.drawn_house

    def _seed_tasks(self, seed: int | None) -> None:
        """Draw the house and the order of tasks, from a stream that is independent of other draws."""
        if seed is not None or not self._number:
            self._number = int(self.np_random.integers(1, HOUSES))
            self._tasks.seed(int(self.np_random.integers(2**31)))

    def _make_model(self, number: int) -> HouseModel:
        return make_model(number, {name: getattr(self, f"_{name}") for name in MODEL_KNOBS})

    def set_knobs(self, values: Mapping[str, Value]) -> None:
        """Set these knobs to canonical values, all at once.

        Args:
            values: canonical values, by knob.
        """
        super().set_knobs(values)
        if self._current is not None:
            self._current.model = self._make_model(self._current.model.number)

    def save_state(self) -> dict[str, Any]:
        """The state of the episode, without knobs and random generators."""
        return {"goal_index": self.goal_index, "episode": None if self._current is None else self._current.save()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore the state of an episode.

        Args:
            state: from `save_state`.
        """
        self.goal_index = state["goal_index"]
        if state["episode"] is not None:
            number, task = find_task(state["goal_index"])
            self._current = HouseEpisode(self._make_model(number), task)
            self._current.load(state["episode"])

    @property
    def task(self) -> HouseTask:
        """The task of the present episode. For evaluators.

        Raises:
            StateError: before the first `reset`.
        """
        return self.episode.task

    def render(self) -> Any:
        """Show the last answer (`ansi`), or the floor plan as an array (`rgb_array`) or in a window (`human`)."""
        if self.render_mode is None:
            gym.logger.warn("`render` was called without a `render_mode`; give one to `gym.make`")
            return None
        if self.render_mode == "ansi":
            return self.episode.answer
        from drift_envs.drawing import PageWindow
        from drift_envs.envs.house.picture import draw_house_picture

        picture: np.ndarray = draw_house_picture(self.episode)
        if self.render_mode == "rgb_array":
            return picture
        if self._window is None:
            self._window = PageWindow(self.metadata["render_fps"], "House")
        self._window.show(picture)
        return None

    def close(self) -> None:
        """Close the window."""
        if self._window is not None:
            self._window.close()
            self._window = None
