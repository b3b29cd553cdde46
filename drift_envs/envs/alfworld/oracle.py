"""The oracle of ALFWorld's drifting rooms: exact shortest plans, and responses by the engine."""

from __future__ import annotations

from collections.abc import Set
from copy import copy

from drift_envs.envs.alfworld.env import Alfworld
from drift_envs.envs.alfworld.episode import AlfworldEpisode, replay_plans, restore_episode, write_move
from drift_envs.envs.alfworld.room import Layout, make_game, say_task
from drift_envs.oracle.households import HouseholdOracle
from drift_envs.oracle.recurring import Carried, execute
from drift_envs.tasks.households import HouseholdTask


class AlfworldOracle(HouseholdOracle[Layout]):
    """The oracle of ALFWorld's drifting rooms, see `HouseholdOracle`; responses are the engine's."""

    env_class = Alfworld
    place_knob = Alfworld.place_knob
    read_by = ("names",)
    say = staticmethod(say_task)

    def _place(self, setting: Layout) -> int:
        return setting.plan

    def _names(self, setting: Layout) -> Set[str]:
        return set(setting.names)

    def _carry(self, old: Layout, new: Layout, task: HouseholdTask) -> Carried:
        plans, differing, compared = self._solve(old, task), 0, 0
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

    def _restore_at(
        self, setting: Layout, task: HouseholdTask, state: str, names: Layout, wording: int
    ) -> AlfworldEpisode:
        return restore_episode(make_game(setting), task, state, names, wording)


make_oracle = AlfworldOracle.of
