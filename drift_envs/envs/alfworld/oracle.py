"""The oracle of ALFWorld's drifting rooms: exact shortest plans, and responses by the engine."""

from __future__ import annotations

from copy import copy
from typing import Any

from drift_envs.envs.alfworld.episode import (
    TASKS,
    AlfworldEpisode,
    replay_plans,
    restore_episode,
    solve_task,
    write_move,
)
from drift_envs.envs.alfworld.room import WORDINGS, AlfworldTask, Layout, make_game, make_layout
from drift_envs.envs.house.oracle import find_household
from drift_envs.oracle.base import completion_probability
from drift_envs.oracle.recurring import Carried, CommandOracle, execute

SAMPLE = 20
"""The number of tasks that are evaluated if the environment draws from all tasks of the floor plan."""


class AlfworldOracle(CommandOracle[Layout, AlfworldTask]):
    """The oracle of ALFWorld's drifting rooms.

    A state is the JSON text of an observation; floor plan and task in it say which. Responses are the engine's, plans
    are found by breadth-first search over the facts of the room.

    Args:
        source: the knobs at any tick.
        pool: returns the numbers of the recurring tasks of a floor plan, or `None` for all tasks.
        drawn: returns the floor plan that the seed has drawn, for knob values that leave it to the seed.
        limit: the maximum number of steps of an episode.

    Raises:
        ArgumentError: `limit` is not positive.
    """

    read_by = ("names",)

    def setting(self, tick: int) -> Layout:
        """The room at a tick."""
        knobs = self._source.knobs_at(tick)
        return make_layout(knobs["plan"] or self._drawn(), knobs)

    def action(self, state: Any, tick: int, left: int | None = None) -> str:
        """The first command of a shortest plan from here; `look` where the task cannot be done any more.

        Args:
            state: the JSON text.
            tick: the tick.
            left: the remaining steps (default: the limit).
        """
        episode = self._restore(state, tick)
        layout = episode.game.layout
        plans = solve_task(
            layout, episode.task, episode.game.read(episode.state), self._limit if left is None else left
        )
        first = plans.first()
        return write_move(layout, first[0]) if first else "look"

    def _place(self, setting: Layout) -> int:
        return setting.plan

    def _tasks(self, setting: Layout) -> list[AlfworldTask]:
        pool = self._pool(setting.plan)
        return [TASKS.find(number)[1] for number in (TASKS.numbers(setting.plan)[:SAMPLE] if pool is None else pool)]

    def _task_value(self, setting: Layout, task: AlfworldTask, lost: float) -> float:
        plans = solve_task(setting, task, None, self._limit)
        return plans.score * (completion_probability(plans.length, self._limit, lost) if lost else 1.0)

    def _carry(self, old: Layout, new: Layout, task: AlfworldTask) -> Carried:
        plans, differing, compared = solve_task(old, task, None, self._limit), 0, 0
        before, after = make_game(old), make_game(new)
        episode = AlfworldEpisode(before, task)
        while (facts := before.read(episode.state)) in plans.best:
            there = restore_episode(after, task, episode.write_state(), old)
            # one game after the other, since the library plays one at a time
            commands = episode.actions
            mine, others = ([execute(copy(one), command) for command in commands] for one in (episode, there))
            compared += len(commands)
            differing += sum(one != other for one, other in zip(mine, others, strict=True))
            episode.act(write_move(old, plans.best[facts][0]))
        return Carried(replay_plans(old, new, task, self._limit), plans.length, differing, compared)

    def _restore(self, state: Any, tick: int) -> AlfworldEpisode:
        """An episode at a state, in the room of the tick."""
        knobs = self._source.knobs_at(tick)
        self._note(knobs)
        plan, task, names, wording = find_household(
            state,
            "floor plan",
            TASKS,
            WORDINGS,
            lambda plan: [make_layout(plan, one) for one in (knobs, *self._known.values())],
            lambda layout: set(layout.names),
        )
        return restore_episode(make_game(make_layout(plan, knobs)), task, state, names, wording)


make_oracle = AlfworldOracle.of
