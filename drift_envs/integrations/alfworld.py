"""The house behind the interface of ALFWorld's text environment, for agents written for that.

ALFWorld itself is needed for games on its floor plans alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from drift_envs.checks import check_choice, check_flag, check_integer
from drift_envs.envs.alfworld.knobs import list_plans
from drift_envs.envs.alfworld.room import list_tasks as list_room_tasks
from drift_envs.envs.house.knobs import ROOMS, number_room, spell
from drift_envs.envs.house.tasks import list_tasks
from drift_envs.errors import ArgumentError, StateError
from drift_envs.tasks.households import TASK_TYPES
from drift_envs.tasks.recurring_tasks import MOST_TASKS
from drift_envs.wrappers.drift import Source
from drift_envs.wrappers.records import DriftLog, DriftState

SPLITS = {
    "train": "train",
    "eval_in_distribution": "valid_seen",
    "eval_out_of_distribution": "valid_unseen",
}
"""ALFWorld's splits, with the folder names in `extra.gamefile`."""

SOURCES = {"house": "DriftHouse-v0", "alfworld": "DriftAlfworld-v0"}
"""What games are made of: houses of this project, or ALFWorld's floor plans in its engine; with their ids."""

_STREAM = 0xA1F
_TASKS_OF_A_HOUSE = 24
"""How many tasks of each house belong to the split of training, and how many to that of seen houses."""


class _Game(NamedTuple):
    """A game: the number of its task, and the path of the file that it would have in ALFWorld."""

    task: int
    file: str


class HouseGames:
    r"""The games of a split, in place of ALFWorld's `AlfredTWEnv`.

    `train` and `eval_in_distribution` have the same houses and other tasks, `eval_out_of_distribution` has other
    houses, as in ALFWorld. Houses and tasks are drawn from the seed, and at each reset one of several wordings.

    Args:
        config: ALFWorld's configuration; `env.task_types` (numbers from 1 to 6), `dataset.num_train_games`,
            `dataset.num_eval_games`, `general.training_method` and its step limit are read, all optional. As in
            ALFWorld, the method `dagger` adds `extra.expert_plan` to the infos of `train`: a shortest plan.
        train_eval: one of `SPLITS`.
        schedule: what drifts, over the episodes of each house of the batch; `None` for nothing.
        houses: the number of houses of a split.
        one_room: whether a house is a kitchen, living room, bedroom or bathroom alone, as ALFWorld's scenes are, and
            its floor plans always.
        seed: of houses, tasks and drifts.
        source: one of `SOURCES`; `alfworld` plays the floor plans of its own splits in its engine.

    Raises:
        ArgumentError: an argument breaks a rule.
        MissingDependencyError: `alfworld` is not installed.
        ScheduleError: the schedule can't be used.

    Example:
        >>> env = HouseGames(train_eval="eval_out_of_distribution", houses=2).init_env(batch_size=1)
        >>> obs, info = env.reset()
        >>> obs[0].split("\n\n")[0], sorted(info)
        ('-= Welcome to TextWorld, ALFRED! =-', ['admissible_commands', 'extra.gamefile', 'won'])
        >>> obs, scores, dones, info = env.step(["go to fridge 1"])
        >>> obs, scores, dones, info["won"]
        (['You arrive at fridge 1. The fridge 1 is closed.'], [0.0], [False], [False])
    """

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        train_eval: str = "train",
        *,
        schedule: Source = None,
        houses: int = 10,
        one_room: bool = False,
        seed: int = 0,
        source: str = "house",
    ) -> None:
        self.config = {} if config is None else config
        self.train_eval = check_choice("train_eval", train_eval, SPLITS)
        self._source = check_choice("source", source, SOURCES)
        self._schedule = schedule
        self._seed = check_integer("seed", seed)
        types = self._read("env", "task_types") or range(1, 7)
        if not isinstance(types, (list, tuple, range)):
            raise ArgumentError(f"`task_types` should be a list of whole numbers. Received {types!r}")
        wanted = [TASK_TYPES[check_integer("task_types", number, 1, len(TASK_TYPES)) - 1] for number in types]
        games = self._draw(check_integer("houses", houses, 1, 1000), wanted, check_flag("one_room", one_room))
        name = "num_train_games" if train_eval == "train" else "num_eval_games"
        most = check_integer(name, self._read("dataset", name), -1, optional=True)
        self._games = games[:most] if most and most > 0 else games
        if not self._games:
            raise ArgumentError(f"`task_types` should leave a game. Received {list(types)!r}")

    @property
    def game_files(self) -> list[str]:
        """The paths of the games, as `extra.gamefile` has them."""
        return [game.file for game in self._games]

    @property
    def num_games(self) -> int:
        """How many games there are."""
        return len(self._games)

    def init_env(self, batch_size: int = 1) -> BatchedHouse:
        """Make the environment.

        Args:
            batch_size: how many games are played side by side.
        """
        method = self._read("general", "training_method")
        section = {"dqn": "rl", "dagger": "dagger"}.get(method, "rl")
        training = self._read(section, "training") or {}
        limit = check_integer("max_nb_steps_per_episode", training.get("max_nb_steps_per_episode", 50), 1)
        trains = self.train_eval == "train"
        has_expert = trains and method == "dagger"
        return BatchedHouse(
            self._games, batch_size, self._schedule, self._seed, limit, trains, has_expert, self._source
        )

    def _read(self, section: str, name: str) -> Any:
        found = self.config.get(section)
        return found.get(name) if isinstance(found, Mapping) else None

    def _draw(self, houses: int, wanted: Sequence[str], one_room: bool) -> list[_Game]:
        folder, games = SPLITS[self.train_eval], []
        for house in self._draw_places(houses, one_room):
            tasks: Sequence[Any] = (list_tasks if self._source == "house" else list_room_tasks)(house)
            own = np.random.default_rng([_STREAM, self._seed, house])
            by_type = {name: [place for place, task in enumerate(tasks) if task.type == name] for name in wanted}
            for places in by_type.values():
                own.shuffle(places)
            each = -(-_TASKS_OF_A_HOUSE // len(wanted))
            skipped = each if self.train_eval == "eval_in_distribution" else 0
            for name in wanted:
                for place in by_type[name][skipped : skipped + each]:
                    task = house * MOST_TASKS + place
                    games.append(_Game(task, _name_file(folder, task, house, tasks[place])))
        return games

    def _draw_places(self, houses: int, one_room: bool) -> list[int]:
        """The numbers of the houses, or of the floor plans."""
        unseen = self.train_eval == "eval_out_of_distribution"
        rng = np.random.default_rng([_STREAM, self._seed])
        if self._source == "alfworld":
            plans = rng.permutation(list_plans("unseen" if unseen else "seen"))
            return [int(plan) for plan in plans[:houses]]
        numbers = rng.choice(np.arange(1, MOST_TASKS), size=2 * houses, replace=False)[houses * unseen :][:houses]
        return [
            number_room(ROOMS[index % len(ROOMS)], number) if one_room else number
            for index, number in enumerate(map(int, numbers))
        ]


def _name_file(folder: str, number: int, house: int, task: Any) -> str:
    """The path of a game, from which clients of ALFWorld read the type of the task."""
    words = (spell(task.thing), "None", spell(task.target), str(house))
    return f"json_2.1.1/{folder}/{task.type}-{'-'.join(words)}/trial_T{number}/game.tw-pddl"


class BatchedHouse:
    """Houses side by side, in lists: what `HouseGames.init_env` returns.

    A game that is over stays over: its text, score and `done` are repeated until the next `reset`.

    Args:
        games: the games, in order.
        batch_size: how many are played side by side.
        schedule: what drifts, over the episodes of each of them.
        seed: of drifts and of the order of games.
        limit: the steps after which a game is over.
        shuffles: whether the order is drawn anew in every round of the games.
        has_expert: whether the infos have `extra.expert_plan`.
        source: one of `SOURCES`.
    """

    def __init__(
        self,
        games: Sequence[_Game],
        batch_size: int,
        schedule: Source,
        seed: int,
        limit: int,
        shuffles: bool,
        has_expert: bool,
        source: str = "house",
    ) -> None:
        self.batch_size = check_integer("batch_size", batch_size, 1, 1000)
        self._games, self._limit, self._shuffles = list(games), limit, shuffles
        self._has_expert, self._source = has_expert, source
        # The pool of a schedule is not used: every episode names its task.
        self._envs = [
            gym.make(SOURCES[source], schedule=schedule, max_episode_steps=limit) for _ in range(self.batch_size)
        ]
        self._begin(seed)

    def _begin(self, seed: int) -> None:
        self._seeds: list[int | None] = [*range(seed, seed + self.batch_size)]
        self._rng = np.random.default_rng([_STREAM, seed, 1])
        self._queue: list[_Game] = []
        self._last: list[tuple[str, float, bool, dict[str, Any]]] = []
        self._files: list[str] = []
        self._steps: list[int] = []

    def seed(self, seed: int) -> None:
        """Start again with another seed.

        Args:
            seed: of drifts and of the order of games.
        """
        self._begin(check_integer("seed", seed))

    def skip(self, nb_games: int = 1) -> None:
        """Leave out the next games.

        Args:
            nb_games: how many.
        """
        for _ in range(check_integer("nb_games", nb_games)):
            self._next()

    def _next(self) -> _Game:
        if not self._queue:
            order = self._rng.permutation(len(self._games)) if self._shuffles else range(len(self._games))
            self._queue = [self._games[place] for place in order]
        return self._queue.pop(0)

    def reset(self) -> tuple[list[str], dict[str, list[Any]]]:
        """Begin the next games.

        Returns:
            Texts, and `admissible_commands`, `won`, `extra.gamefile` and, for an expert, `extra.expert_plan`, each
            with one entry a game.
        """
        self._last, self._files, self._steps = [], [], [0] * self.batch_size
        for place, env in enumerate(self._envs):
            game, seed = self._next(), self._seeds[place]
            self._seeds[place] = None  # time goes on from the second episode on
            wording = int(self._rng.integers(env.get_wrapper_attr("wordings")))
            text, info = env.reset(seed=seed, options={"goal_index": game.task, "wording": wording})
            self._last.append((text, 0.0, False, info))
            self._files.append(game.file)
        return [text for text, *_ in self._last], self._infos()

    def step(self, commands: Sequence[str]) -> tuple[list[str], list[float], list[bool], dict[str, list[Any]]]:
        """Execute one command in each game.

        Args:
            commands: one for each game.

        Returns:
            Texts, scores so far (0.6 where a thing is in another place than the household wants), whether each game
            is over, and the same entries as `reset`. A game is won with a score of 1.0 alone.

        Raises:
            StateError: before the first `reset`.
            ArgumentError: if there are more or fewer commands than games.
        """
        if not self._last:
            raise StateError("`step` was called before `reset`; call `reset` first")
        if isinstance(commands, str) or len(commands) != self.batch_size:
            raise ArgumentError(f"`commands` should be a list of {self.batch_size} texts. Received {commands!r}")
        for place, (env, command) in enumerate(zip(self._envs, commands, strict=True)):
            if not self._last[place][2]:
                text, _, terminated, truncated, info = env.step(command)
                self._steps[place] += 1
                self._last[place] = (text, info["score"], terminated or truncated, info)
        texts, scores, dones, _ = (list(column) for column in zip(*self._last, strict=True))
        return texts, scores, dones, self._infos()

    @property
    def drift_state(self) -> list[DriftState]:
        """Phase, clock and knob values of each house. For evaluators."""
        return [env.get_wrapper_attr("drift_state") for env in self._envs]

    @property
    def drift_log(self) -> list[DriftLog]:
        """What has drifted so far in each house. For evaluators."""
        return [env.get_wrapper_attr("drift_log") for env in self._envs]

    def _infos(self) -> dict[str, list[Any]]:
        found = {
            "admissible_commands": [self._list_commands(place) for place in range(self.batch_size)],
            "won": [info["score"] >= 1.0 for *_, info in self._last],
            "extra.gamefile": list(self._files),
        }
        if self._has_expert:
            found["extra.expert_plan"] = [self._plan(place) for place in range(self.batch_size)]
        return found

    def _list_commands(self, place: int) -> list[str]:
        env = self._envs[place]
        actions: list[str] = self._last[place][3]["actions"]
        return [*actions, *env.get_wrapper_attr("episode").list_slices()] if actions else []

    def _plan(self, place: int) -> list[str]:
        """The commands of a shortest plan from here; `look` where the task cannot be done any more."""
        if self._last[place][2]:
            return []
        episode = self._envs[place].get_wrapper_attr("episode")
        return episode.plan(self._limit - self._steps[place]) or ["look"]

    def close(self) -> None:
        """Close all houses."""
        for env in self._envs:
            env.close()
