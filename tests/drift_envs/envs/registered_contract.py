"""What every environment of an extra that wraps another package's should do; collected where it is subclassed.

* `RegisteredContract` - bit identity without a schedule, Gymnasium's checker, specs, copies
* `actions_of`, `play`, `shipped` - sampled actions, a run with them, and the schedules of an id
"""

import copy
import pickle
import warnings
from typing import ClassVar

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence

from drift_envs.registration import IDS
from drift_envs.schedule import load_schedule, shipped_schedules

CLONES = {"copy": copy.deepcopy, "pickle": lambda env: pickle.loads(pickle.dumps(env))}


def actions_of(env, count, seed=0):
    env.action_space.seed(seed)
    return [env.action_space.sample() for _ in range(count)]


def play(env, actions, seed=None):
    """All answers of an environment, episode by episode."""
    answers = [env.reset(seed=seed)]
    for action in actions:
        answers.append(env.step(action))
        if answers[-1][2] or answers[-1][3]:
            answers.append(env.reset())
    return answers


def shipped(env_id):
    return [name for name in shipped_schedules() if load_schedule(name).env == env_id]


class RegisteredContract:
    """The contract of one id.

    A subclass names the id and that of the environment without knobs. `forms` says whether it has text,
    `families` which schedules it has at least, `steps` how long the run is that is compared, and `renders` whether a
    picture is drawn before a copy is made.
    """

    env_id: str
    plain_id: str
    forms: ClassVar[tuple[bool, ...]] = (False,)
    families: ClassVar[set[str]] = {"explicit", "implicit", "null"}
    steps = 400
    renders = False

    def test_without_a_schedule_it_is_the_packages(self):
        ours, base = gym.make(self.env_id, schedule=None), gym.make(self.plain_id)
        assert (ours.observation_space, ours.action_space) == (base.observation_space, base.action_space)
        assert ours.spec.max_episode_steps == IDS[self.env_id].limit
        assert base.spec.max_episode_steps in (None, ours.spec.max_episode_steps)
        actions = actions_of(base, self.steps)
        assert data_equivalence(play(ours, actions, seed=11), play(base, actions, seed=11), exact=True)

    def test_gymnasiums_checker_is_content(self):
        for text in self.forms:
            for schedule in (None, IDS[self.env_id].schedule):
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    warnings.filterwarnings("ignore", message=".*is different from the unwrapped version.*")
                    warnings.filterwarnings("ignore", message=".*we recommend using a symmetric and normalized space.*")
                    warnings.filterwarnings("ignore", message=".*Box observation space m.*imum value is.*infinity.*")
                    check_env(gym.make(self.env_id, schedule=schedule, text=text), skip_render_check=True)

    def test_each_shipped_schedule_plays_and_its_spec_builds_the_same(self):
        names = shipped(self.env_id)
        assert {name.split("/")[1] for name in names} >= self.families
        for name in names:
            for text in self.forms:
                env = gym.make(self.env_id, schedule=name, text=text, notify="full")
                again = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
                assert again.spec == env.spec
                runs = []
                for one in (env, again):
                    run = [one.reset(seed=4)]
                    for tick in (0, 20, 40):
                        run.append(one.reset(options={"drift_tick": tick}))
                        assert one.observation_space.contains(run[-1][0])
                        run += [one.step(action) for action in actions_of(one, 8)]
                    runs.append(run)
                assert data_equivalence(*runs, exact=True)

    @pytest.mark.parametrize("clone", CLONES.values(), ids=CLONES)
    def test_clones_have_the_same_future(self, clone):
        env = gym.make(self.env_id, text=self.forms[-1], render_mode="rgb_array" if self.renders else None)
        actions = actions_of(env, 60)
        env.reset(seed=2)
        env.step(actions[0])
        if self.renders:
            env.render()
        other = clone(env)
        assert data_equivalence(
            [env.step(action) for action in actions[:5]], [other.step(action) for action in actions[:5]], exact=True
        )
        assert data_equivalence(play(env, actions), play(other, actions), exact=True)
