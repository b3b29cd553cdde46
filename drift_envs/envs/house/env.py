"""A text house with knobs.

* `House` - a task in words, commands as in ALFWorld, and a house that serves many tasks
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from drift_envs.checks import check_flag, check_integer
from drift_envs.envs.house.blueprint import HOUSES, MOST_NUMBER
from drift_envs.envs.house.episode import HouseEpisode
from drift_envs.envs.house.knobs import HOUSE_KNOBS
from drift_envs.envs.house.model import MODEL_KNOBS, HouseModel, make_model
from drift_envs.envs.house.pool import draw_elsewhere, draw_tasks, find_task, number_tasks
from drift_envs.envs.house.tasks import TASK_TYPES, WORDINGS, HouseTask
from drift_envs.knobs import KnobTable, Value
from drift_envs.recurring_tasks import CommandEnv
from drift_envs.registration import IDS, EnvParts
from drift_envs.task_sequence import TaskSequence, freeze_conditions
from drift_envs.tunable import KnobAttribute

CHARACTERS = string.ascii_letters + string.digits + " \n" + "-=!:,.'\"()[]{}_/"
"""Every character that an observation can have."""

MAX_LENGTH = 16_384
"""No observation is longer."""

MAX_ACTION = 100
"""No command is longer."""


class House(CommandEnv[HouseTask, HouseEpisode]):
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

    Knobs, with defaults and bounds: `drift-envs list --env DriftHouse-v0`.

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

    knobs: ClassVar[KnobTable] = HOUSE_KNOBS
    parts: ClassVar[EnvParts | None] = IDS["DriftHouse-v0"]
    window_title = "House"
    place_knob = "house"
    most_places = HOUSES
    last_place = MOST_NUMBER
    wordings: ClassVar[int] = len(WORDINGS[TASK_TYPES[0]])
    """In how many wordings a task can be said."""
    observation_modes = ("text", "state")
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
    _wording = 0

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
        self._conditions = freeze_conditions(conditions, ("house", *MODEL_KNOBS))
        draw = partial(draw_tasks, conditions=self._conditions, affected=check_flag("affected", affected))
        tasks = TaskSequence(pool, order, draw, number_tasks)
        super().__init__(render_mode, observation_mode, tasks, (MAX_LENGTH, MAX_ACTION), CHARACTERS)

    def tasks_elsewhere(self, count: int, houses: int = 3) -> tuple[int, ...]:
        """The numbers of tasks of other houses, drawn by the same rules. For evaluators.

        Args:
            count: how many.
            houses: in how many houses they are.
        """
        return draw_elsewhere(self.place, count, houses, self._conditions, self._tasks.stream)

    @property
    def task(self) -> HouseTask:
        """The task of the present episode. For evaluators.

        Raises:
            StateError: before the first `reset`.
        """
        return self.episode.task

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode, see `CommandEnv.reset`.

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
        self._wording = check_integer("wording", options.pop("wording", 0), 0, self.wordings - 1)
        return super().reset(seed=seed, options=options)

    def _find_task(self, number: int) -> tuple[int, HouseTask]:
        return find_task(number)

    def _begin(self, place: int, task: HouseTask) -> HouseEpisode:
        episode = HouseEpisode(self._make_model(place), task, self._wording)
        episode.answer = episode.introduce()
        return episode

    def _update(self, episode: HouseEpisode) -> None:
        episode.model = self._make_model(episode.model.number)

    def _make_model(self, number: int) -> HouseModel:
        return make_model(number, {name: getattr(self, f"_{name}") for name in MODEL_KNOBS})

    def _make_info(self) -> dict[str, Any]:
        episode = self.episode
        actions = [] if episode.is_over else episode.model.admissible(episode.state)
        return {"task": episode.task_text, "actions": actions, "score": episode.score}

    def _draw_page(self) -> np.ndarray:
        from drift_envs.envs.house.picture import draw_house_picture

        return draw_house_picture(self.episode)
