"""Environments with numbered tasks that come again, in an order drawn from the seed.

The order of tasks comes first, then three bases, each on the one before: `RecurringTasksEnv` for pages, `EpisodeEnv`
for commands in words, `CommandEnv` for numbered places such as houses.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from drift_envs.checks import check_choice, check_integer
from drift_envs.errors import ArgumentError, StateError
from drift_envs.knobs import Value
from drift_envs.show.drawing import PageWindow
from drift_envs.tunable import TunableEnv

ORDERS = ("shuffled", "fixed")

MOST_TASKS = 10_000
"""No place has as many tasks."""

OTHERS = 0x07E2
"""The stream of tasks outside the pool."""

Conditions = tuple[tuple[tuple[str, Value], ...], ...]
Draw = Callable[[int, int, int, tuple[int, ...]], tuple[int, ...]]


def freeze_conditions(conditions: Sequence[Mapping[str, Value]], names: Sequence[str]) -> Conditions:
    """Conditions in a form that can be hashed.

    Args:
        conditions: knob values, in temporal order.
        names: the knobs that matter.

    Example:
        >>> freeze_conditions([{"gone": ("bed 1",), "transient": 0.5}, {"gone": ()}], ["gone"])
        ((('gone', ('bed 1',)),), ())
    """
    return tuple(tuple((name, one[name]) for name in names if one.get(name)) for one in conditions) or ((),)


def take_turns(types: Sequence[str], names: Sequence[str], rng: np.random.Generator) -> list[int]:
    """An order of tasks in which their types alternate.

    Args:
        types: the type of each task.
        names: the names of all types.
        rng: draws the order of the types, and that of the tasks of each.

    Returns:
        The positions of the tasks in `types`.

    Example:
        >>> order = take_turns(["cool", "cool", "heat", "cool", "heat"], ["heat", "cool"], np.random.default_rng(0))
        >>> sorted(order), {order[0] in (2, 4), order[1] in (2, 4)} == {True, False}
        ([0, 1, 2, 3, 4], True)
    """
    queues = []
    for name in rng.permutation(names):
        queue = [place for place, one in enumerate(types) if one == name]
        rng.shuffle(queue)
        queues.append(queue)
    return [queue[step] for step in range(max(map(len, queues))) for queue in queues if step < len(queue)]


Task = TypeVar("Task")


class NumberedTasks(Generic[Task]):
    """The tasks of places as numbers: `MOST_TASKS` times that of the place, and the position in the place's list.

    Args:
        place: what a place is called.
        list_all: the tasks of a place.
        called: what a task is called.

    Example:
        >>> tasks = NumberedTasks("room", lambda room: ["sweep", "dust"][:room])
        >>> tasks.number(2, 1), tasks.find(20001), tasks.numbers(1)
        (20001, (2, 'dust'), range(10000, 10001))
    """

    def __init__(self, place: str, list_all: Callable[[int], Sequence[Task]], called: str = "task") -> None:
        self.place, self.list_all, self._called = place, list_all, called

    def number(self, place: int, index: int) -> int:
        """The number of a task."""
        return place * MOST_TASKS + index

    def numbers(self, place: int) -> range:
        """The numbers of all tasks of a place."""
        return range(self.number(place, 0), self.number(place, len(self.list_all(place))))

    def find(self, number: int) -> tuple[int, Task]:
        """The place and the task of a number.

        Raises:
            ArgumentError: if there is no such task.
        """
        place, index = divmod(number, MOST_TASKS)
        tasks = self.list_all(place)
        if index >= len(tasks):
            raise no_such_task(number, self.numbers(place), f"{self._called} of {self.place} {place}")
        return place, tasks[index]


def no_such_task(number: int, numbers: range, called: str) -> ArgumentError:
    """The error for a number that no task of a place has.

    Args:
        number: the number.
        numbers: those of the place's tasks.
        called: what a task of the place is called.
    """
    article = "an" if called[0] in "aeiou" else "a"
    taken = f"{len(numbers)} ({numbers[0]} to {numbers[-1]})" if numbers else "none"
    return ArgumentError(f"`goal_index` should be {article} {called}, which has {taken}. Received {number}")


class TaskSequence:
    """The sequence of tasks, with a random stream of its own: the length of episodes does not change it.

    Args:
        size: the number of recurring tasks, 1 to `MOST_TASKS`; `None` draws from all tasks of the place.
        order: `shuffled` (repeated permutations of the pool) or `fixed`.
        draw: draws a pool, from the number of the place, the number of tasks, a seed, and tasks that are excluded.
        list_all: returns the numbers of all tasks of a place.
        others: the key of the random stream of tasks outside the pool.

    Raises:
        ArgumentError: if size or order break a rule.

    Example:
        >>> tasks = TaskSequence(2, "fixed", lambda place, count, seed, without: (9, 4), lambda place: range(100))
        >>> tasks.seed(0)
        >>> [tasks.next(7) for _ in range(3)]
        [9, 4, 9]
    """

    state_names: ClassVar[tuple[str, ...]] = ("_seed", "_queue", "_rng")

    def __init__(
        self, size: int | None, order: str, draw: Draw, list_all: Callable[[int], Sequence[int]], others: int = OTHERS
    ) -> None:
        self._order = check_choice("order", order, ORDERS)
        self._size = check_integer("pool", size, 1, MOST_TASKS, optional=True)
        self._draw, self._list_all, self._others = draw, list_all, others
        self._seed = 0
        self._queue: list[int] = []
        self._rng = np.random.default_rng(0)

    def seed(self, seed: int) -> None:
        """Start again.

        Args:
            seed: of pool and order.
        """
        self._seed = seed
        self._queue = []
        self._rng = np.random.default_rng([seed, 1])

    def pool(self, place: int) -> tuple[int, ...] | None:
        """The numbers of the recurring tasks of a place, or `None` for all its tasks.

        Args:
            place: the number of the place.
        """
        return None if self._size is None else self._draw(place, self._size, self._seed, ())

    def next(self, place: int) -> int:
        """The number of the next task.

        Args:
            place: the number of the place in which the episode takes place.
        """
        pool = self.pool(place)
        if pool is None:
            numbers = self._list_all(place)
            return numbers[int(self._rng.integers(len(numbers)))]
        if not self._queue:
            order = self._rng.permutation(len(pool)) if self._order == "shuffled" else range(len(pool))
            self._queue = [int(one) for one in order]
        return pool[self._queue.pop(0)]

    def others(self, place: int, count: int) -> tuple[int, ...]:
        """Tasks of this place outside its pool, drawn by the same rules.

        Args:
            place: the number of the place.
            count: how many.
        """
        return self._draw(place, count, self.stream(self._others), self.pool(place) or ())

    def stream(self, key: int) -> int:
        """The seed of another random stream.

        Args:
            key: of the stream.
        """
        return int(np.random.SeedSequence([self._seed, key]).generate_state(1)[0])


class RecurringTasksEnv(TunableEnv):
    """A `TunableEnv` with numbered tasks that come again, in an order drawn from the seed.

    Its page is text, and mostly a picture: a subclass supplies `_write_page` and `_draw_page`.
    """

    surfaces: ClassVar[tuple[str, ...]] = ("_window",)
    window_title: str
    metadata: dict[str, Any]
    render_mode: str | None
    goal_index: int | None = None
    """The number of the present task; `None` before the first `reset`."""
    _keeps_tasks = False
    _window: PageWindow | None = None
    order_names: ClassVar[tuple[str, ...]] = ()
    """Attributes that decide which tasks come, beside those of `_tasks`."""
    _tasks: Any = None

    def save_order(self) -> dict[str, Any]:
        """The pool of tasks, the position in its order, and the generator that draws them."""
        own = {name: getattr(self, name) for name in self.order_names}
        tasks = {} if self._tasks is None else vars(self._tasks)
        return {"own": own, "tasks": {name: tasks[name] for name in getattr(self._tasks, "state_names", ())}}

    def load_order(self, saved: Any) -> None:
        """Restore which tasks come.

        Args:
            saved: from `save_order`.
        """
        vars(self).update({name: saved["own"][name] for name in self.order_names})
        if self._tasks is not None:
            vars(self._tasks).update({name: saved["tasks"][name] for name in self._tasks.state_names})

    def task_options(self) -> dict[str, Any] | None:
        """The reset options with which another instance starts the same task."""
        return None if self.goal_index is None else {"goal_index": self.goal_index}

    def keep_tasks(self, keeps: bool) -> None:
        """Say whether the next reset with a seed keeps the pool of tasks and the position in its order.

        Args:
            keeps: whether it does.
        """
        self._keeps_tasks = keeps

    def _read_goal_index(self, options: Mapping[str, Any], last: int) -> int | None:
        """The number of the task that the options of `reset` ask for, at most `last`; `None` if they do not."""
        unknown = sorted(str(name) for name in options if name != "goal_index")
        if unknown:
            raise ArgumentError(f"`options` should have no keys but goal_index. Received {', '.join(unknown)}")
        index = options.get("goal_index")
        return None if index is None else check_integer("goal_index", index, 0, last)

    def _set_modes(self, render_mode: str | None, observation_mode: str, modes: Sequence[str]) -> None:
        """Check and store the modes of pictures and observations."""
        known = self.metadata["render_modes"]
        if render_mode is not None and render_mode not in known:
            raise ArgumentError(f"`render_mode` should be {', '.join(known)} or None. Received {render_mode!r}")
        self.render_mode = render_mode
        self.observation_mode = check_choice("observation_mode", observation_mode, modes)

    @abstractmethod
    def _write_page(self) -> str:
        """The page as text."""

    def _draw_page(self) -> np.ndarray:
        """The page as a picture, where `render_modes` have one."""
        raise StateError(f"{type(self).__name__} has no picture, only {', '.join(self.metadata['render_modes'])}")

    def render(self) -> Any:
        """Show the page: as text (`ansi`), as an array (`rgb_array`), or in a window (`human`)."""
        if self.render_mode is None:
            gym.logger.warn("`render` was called without a `render_mode`; give one to `gym.make`")
            return None
        if self.render_mode == "ansi":
            return self._write_page()
        picture = self._draw_page()
        if self.render_mode == "rgb_array":
            return picture
        if self._window is None:
            self._window = PageWindow(self.metadata["render_fps"], self.window_title)
        self._window.show(picture)
        return None

    def close(self) -> None:
        """Close the window."""
        if self._window is not None:
            self._window.close()
            self._window = None


class TaskEpisode(Protocol):
    """The state of an episode in which commands do a task."""

    @property
    def score(self) -> float:
        """The score, 0.0 before the task is done."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether the episode has ended."""
        ...

    def act(self, text: str, /) -> str:
        """Execute a command; returns the answer."""
        ...

    def write_answer(self) -> str:
        """The last answer."""
        ...

    def write_state(self) -> str:
        """What was seen and done so far, as JSON."""
        ...

    def save(self) -> dict[str, Any]:
        """The state as data."""
        ...

    def load(self, saved: Mapping[str, Any], /) -> None:
        """Restore a state."""
        ...


class CommandEpisode(TaskEpisode, Protocol):
    """An episode in which commands can be lost."""

    def lose(self) -> str:
        """Answer as if the command had been lost."""
        ...


TaskState = TypeVar("TaskState", bound=TaskEpisode)
Episode = TypeVar("Episode", bound=CommandEpisode)


class EpisodeEnv(RecurringTasksEnv, gym.Env[str, str], Generic[TaskState]):
    """The base of environments where commands in words do a task.

    `observation_modes` are the last answer, and the state as JSON. A subclass starts episodes and writes `info`.

    Args:
        render_mode: one of `metadata["render_modes"]`, or `None`.
        observation_mode: one of `observation_modes`.
        tasks: the sequence of tasks.
        lengths: the maximum length of an observation, and that of a command.
        charset: their characters.

    Raises:
        ArgumentError: an argument breaks a rule.
    """

    observation_modes: ClassVar[tuple[str, str]]

    def __init__(
        self,
        render_mode: str | None,
        observation_mode: str,
        tasks: TaskSequence,
        lengths: tuple[int, int],
        charset: str,
    ) -> None:
        self._set_modes(render_mode, observation_mode, self.observation_modes)
        for name, value in self.knobs.defaults().items():
            setattr(self, f"_{name}", value)
        self._tasks = tasks
        self._current: TaskState | None = None
        self.observation_space = spaces.Text(lengths[0], min_length=0, charset=charset)
        self.action_space = spaces.Text(lengths[1], min_length=0, charset=charset)

    @abstractmethod
    def _start(self, number: int) -> TaskState:
        """A new episode of a task under the present knobs."""

    @abstractmethod
    def _make_info(self) -> dict[str, Any]:
        """The `info` of the agent."""

    def _execute(self, episode: TaskState, command: str) -> None:
        """Execute a command."""
        episode.act(command)

    @property
    def episode(self) -> TaskState:
        """The present episode.

        Raises:
            StateError: before the first `reset`.
        """
        if self._current is None:
            raise StateError("there is no episode before `reset`; call `reset` first")
        return self._current

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Execute a command.

        Args:
            action: the command.

        Returns:
            The answer or the state, the score if this command has ended the episode (else 0.0), whether it has,
            `False`, and `info`.

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
        self._execute(episode, action)
        if self.render_mode == "human":
            self.render()
        return self._observe(), episode.score - before, episode.is_over, False, self._make_info()

    def _observe(self) -> str:
        episode = self.episode
        return episode.write_answer() if self.observation_mode == self.observation_modes[0] else episode.write_state()

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
            self._current = self._start(state["goal_index"])
            self._current.load(state["episode"])

    def _write_page(self) -> str:
        """The last answer."""
        return self.episode.write_answer()


class CommandEnv(EpisodeEnv[Episode], Generic[Task, Episode]):
    """The base of environments in numbered places, such as houses, where commands in words do a task.

    The knob `place_knob` is the number of the place, at most `most_places`; 0 draws one from the seed. Tasks exist in
    places up to `last_place`, which is `most_places` unless there are some that no seed draws. The knob
    `transient` loses commands. A subclass finds a task by its number, begins an episode, updates its place when knobs
    change, and writes `info`.

    Args:
        render_mode: `human`, `rgb_array`, `ansi` or `None`.
        observation_mode: one of `observation_modes`.
        tasks: the sequence of tasks.
        lengths: the maximum length of an observation, and that of a command.
        charset: their characters.

    Raises:
        ArgumentError: an argument breaks a rule.
    """

    metadata = {  # noqa: RUF012 - as Gymnasium declares it
        "render_modes": ["human", "rgb_array", "ansi"],
        "render_fps": 4,
    }
    _tasks: TaskSequence
    place_knob: ClassVar[str]
    order_names: ClassVar[tuple[str, ...]] = ("_drawn",)
    most_places: ClassVar[int]
    last_place: ClassVar[int] = 0
    _transient: float

    def __init__(
        self,
        render_mode: str | None,
        observation_mode: str,
        tasks: TaskSequence,
        lengths: tuple[int, int],
        charset: str,
    ) -> None:
        super().__init__(render_mode, observation_mode, tasks, lengths, charset)
        self._drawn = 0
        """The place that the seed has drawn; 0 before."""

    @abstractmethod
    def _find_task(self, number: int) -> tuple[int, Task]:
        """The place and the task of a number; an `ArgumentError` if there is none."""

    @abstractmethod
    def _begin(self, place: int, task: Task) -> Episode:
        """A new episode under the present knobs."""

    @abstractmethod
    def _update(self, episode: Episode) -> None:
        """Bring the place of an episode to the present knobs."""

    def _start(self, number: int) -> Episode:
        return self._begin(*self._find_task(number))

    @property
    def drawn_place(self) -> int:
        """The place that the seed has drawn, in which episodes take place while the knob leaves it to the seed."""
        self._seed_tasks(None)
        return self._drawn

    @property
    def place(self) -> int:
        """The place of the next episode. For evaluators."""
        return getattr(self, f"_{self.place_knob}") or self.drawn_place

    @property
    def task_pool(self) -> tuple[int, ...] | None:
        """The numbers of the recurring tasks, or `None` for all tasks of the place. For evaluators."""
        return self._tasks.pool(self.place)

    def pool_of(self, place: int) -> tuple[int, ...] | None:
        """The numbers of the recurring tasks of a place, or `None` for all its tasks. For evaluators.

        Args:
            place: the number of the place.
        """
        self._seed_tasks(None)
        return self._tasks.pool(place)

    def other_tasks(self, count: int) -> tuple[int, ...]:
        """The numbers of tasks of this place outside `task_pool`, drawn by the same rules. For evaluators.

        Args:
            count: how many.

        Raises:
            ArgumentError: the place has too few.
        """
        return self._tasks.others(self.place, count)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: seeds the environment's generator, and draws a new pool of tasks and, unless a knob says which, a
                new place.
            options: `goal_index` is the number of the task; by default the next one.

        Returns:
            What is seen first, and `info`.

        Raises:
            ArgumentError: no task has this number, or there is no such option.
        """
        index = self._read_goal_index(options or {}, ((self.last_place or self.most_places) + 1) * MOST_TASKS - 1)
        if index is not None:
            self._find_task(index)  # refuses a number that no place has
        super().reset(seed=seed)
        self._seed_tasks(None if self._keeps_tasks else seed)
        self._keeps_tasks = False
        self.goal_index = self._tasks.next(self.place) if index is None else index
        self._current = self._start(self.goal_index)
        if self.render_mode == "human":
            self.render()
        return self._observe(), self._make_info()

    def _execute(self, episode: Episode, command: str) -> None:
        if episode.is_over or (self._transient and self.np_random.random() < self._transient):
            episode.lose()
        else:
            episode.act(command)

    def _draw_place(self) -> int:
        """The place of a seed."""
        return int(self.np_random.integers(1, self.most_places))

    def _seed_tasks(self, seed: int | None) -> None:
        """Draw the place and the order of tasks, from a stream that is independent of other draws."""
        if seed is not None or not self._drawn:
            self._drawn = self._draw_place()
            self._tasks.seed(int(self.np_random.integers(2**31)))

    def set_knobs(self, values: Mapping[str, Value]) -> None:
        """Set these knobs to canonical values, all at once.

        Args:
            values: canonical values, by knob.
        """
        super().set_knobs(values)
        if self._current is not None:
            self._update(self._current)
