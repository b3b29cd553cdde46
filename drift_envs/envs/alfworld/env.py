"""ALFWorld's household tasks with knobs, whose names are those of the package."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from drift_envs.envs.alfworld.episode import TASKS, AlfworldEpisode, replay_plans, solve_task
from drift_envs.envs.alfworld.knobs import ALFWORLD_KNOBS, LAST_PLAN, SPLITS, find_package, list_plans
from drift_envs.envs.alfworld.room import (
    MODEL_KNOBS,
    WORDINGS,
    Layout,
    check_names,
    lies_there,
    make_game,
    make_layout,
)
from drift_envs.knobs import KnobTable, Value
from drift_envs.registration import IDS, EnvParts
from drift_envs.tasks.households import HouseholdEnv, HouseholdTask
from drift_envs.wrappers.drift import Source
from drift_envs.wrappers.options import WrapperOptions, build_with_tasks


class Alfworld(HouseholdEnv[AlfworldEpisode]):
    """ALFWorld's tasks on its floor plans (Shridhar et al., 2021), played by TextWorld's engine, with drifts.

    Floor plans, rules and wording are the package's; which things are in a room and where they are kept is drawn
    from the number of its plan, since the 3,553 published games are a download. One room serves many tasks.

    | action | meaning |
    |---|---|
    | `go to shelf 1`, `open drawer 2`, `close drawer 2` | from anywhere; at the receptacle |
    | `take mug 1 from shelf 1`, `move mug 1 to shelf 1` | one thing at a time |
    | `heat`, `cool`, `clean` `mug 1 with microwave 1` | a thing in the hand, at an appliance |
    | `use desklamp 1`, `slice apple 1 with knife 1` | turns a lamp on; with a knife in the hand |
    | `examine mug 1`, `look`, `inventory`, `help` | change nothing |

    The observation is the engine's answer; with `observation_mode="state"` it is a JSON object as that of
    `DriftHouse-v0`, where `house` is the floor plan. The reward is 1.0 when the goal holds, which ends the episode.

    Knobs, with defaults and bounds: `drift-envs list --env DriftAlfworld-v0`.

    | info | meaning |
    |---|---|
    | `task` | the task in words |
    | `actions` | the commands that the engine takes, sorted as its `admissible_commands` |
    | `score` | the score, 0.0 before the task is done |

    `plan` takes effect at a reset; the other knobs act at once on all that the agent has not moved.
    `reset(options={"goal_index": i})` selects the task and its floor plan: `i` is 10,000 times the plan's number and
    the task's.

    Args:
        render_mode: `ansi` or `None`.
        observation_mode: `text` or `state`.
        pool: the number of recurring tasks; `None` draws from all tasks of the floor plan.
        order: `shuffled` (each task once in every round of the pool) or `fixed`.
        conditions: knob values under each of which every task of the pool can be done.
        affected: whether tasks come first that every change between two conditions affects, or that none does.

    Raises:
        ArgumentError: an argument breaks a rule.
        KnobError: a condition names what no room of ALFWorld has.
        MissingDependencyError: a package is not installed, or has another version.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012 - as Gymnasium declares it
    knobs: ClassVar[KnobTable] = ALFWORLD_KNOBS
    parts: ClassVar[EnvParts | None] = IDS["DriftAlfworld-v0"]
    place_knob = "plan"
    most_places = LAST_PLAN
    model_knobs = MODEL_KNOBS
    tasks = TASKS
    make_setting = staticmethod(make_layout)
    solve_task = staticmethod(solve_task)
    replay_plans = staticmethod(replay_plans)
    wordings = WORDINGS
    characters = string.ascii_letters + string.digits + string.punctuation + " \n"
    elsewhere = 0x07E4

    @classmethod
    def suits(cls, setting: Layout, task: HouseholdTask) -> bool:
        """Whether no thing of a task lies at its target."""
        return not lies_there(setting, task)

    def _check_conditions(self, conditions: Sequence[Mapping[str, Value]]) -> None:
        find_package()
        for condition in conditions:
            check_names(condition)

    def _draw_place(self) -> int:
        """A seen floor plan."""
        return int(self.np_random.choice(list_plans(SPLITS[0])))

    def _draw_elsewhere(self, rng: np.random.Generator, count: int) -> list[int]:
        """Floor plans of the other split."""
        others = list_plans(SPLITS[self.place in list_plans(SPLITS[0])])
        return [int(one) for one in rng.permutation(others)[:count]]

    def _begin(self, place: int, task: HouseholdTask) -> AlfworldEpisode:
        return AlfworldEpisode(make_game(self._make_setting(place)), task, self._wording)

    def _update(self, episode: AlfworldEpisode) -> None:
        game = make_game(self._make_setting(episode.game.layout.plan))
        if game is not episode.game:
            episode.move_to(game)

    def _list_actions(self, episode: AlfworldEpisode) -> list[str]:
        return episode.actions

    def set_knobs(self, values: Mapping[str, Value]) -> None:
        """Set these knobs to canonical values, all at once.

        Args:
            values: canonical values, by knob.

        Raises:
            KnobError: a value names what no room of ALFWorld has; nothing is changed then.
        """
        check_names({**self.read_knobs(), **values})
        super().set_knobs(values)


def build(parts: EnvParts, schedule: Source, options: WrapperOptions, arguments: dict[str, Any]) -> gym.Env[Any, Any]:
    """Build the room.

    Args:
        parts: the declaration of the environment.
        schedule: the schedule, or `None`.
        options: the shared options.
        arguments: those of `Alfworld`.

    Raises:
        ArgumentError: if the schedule sets the same as an argument.
        MissingDependencyError: if the package is not installed.
        ScheduleError: if the schedule cannot be used.
    """
    find_package()
    return build_with_tasks(parts, schedule, options, arguments)
