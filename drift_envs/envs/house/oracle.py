"""The oracle of a drifting house: shortest plans by search over the symbolic state."""

from __future__ import annotations

from collections.abc import Set

from drift_envs.envs.house.commands import HouseModel
from drift_envs.envs.house.env import House
from drift_envs.envs.house.tasks import HouseEpisode, replay_plans, restore_episode, say_task
from drift_envs.oracle.households import HouseholdOracle
from drift_envs.oracle.recurring import Carried, execute
from drift_envs.tasks.households import HouseholdTask


class HouseOracle(HouseholdOracle[HouseModel]):
    """The oracle of a drifting house, see `HouseholdOracle`.

    Example:
        >>> import gymnasium as gym
        >>> import drift_envs
        >>> env = gym.make("DriftHouse-v0", schedule="house/explicit", text=True)
        >>> state, info = env.reset(seed=0)
        >>> oracle = env.get_wrapper_attr("oracle")
        >>> done = False
        >>> while not done:
        ...     state, reward, done, _, info = env.step(oracle.action(state, 0))
        >>> reward, oracle.value(0), oracle.effect(0, 20).loss
        (1.0, 1.0, 1.0)
    """

    env_class = House
    place_knob = House.place_knob
    read_by = ("names", "gone")
    say = staticmethod(say_task)

    def _place(self, setting: HouseModel) -> int:
        return setting.number

    def _names(self, setting: HouseModel) -> Set[str]:
        return setting.by_name.keys()

    def _carry(self, old: HouseModel, new: HouseModel, task: HouseholdTask) -> Carried:
        plans, differing, compared = self._solve(old, task), 0, 0
        episode = HouseEpisode(old, task)
        while episode.state in plans.best:
            here = episode.write_state()
            for command in old.admissible(episode.state):
                compared += 1
                differing += execute(restore_episode(old, task, here), command) != execute(
                    restore_episode(new, task, here), command
                )
            episode.act(old.write(plans.best[episode.state][0]))
        return Carried(replay_plans(old, new, task, self._limit), plans.length, differing, compared)

    def _restore_at(
        self, setting: HouseModel, task: HouseholdTask, state: str, names: HouseModel, wording: int
    ) -> HouseEpisode:
        return restore_episode(setting, task, state, names, wording)


make_oracle = HouseOracle.of
