"""Every id, with every shipped schedule: Gymnasium's checks, specs, clones, vectors, videos."""

import copy
import json
import re
import warnings
from dataclasses import replace
from itertools import product

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

import drift_envs
from drift_envs.envs.make import knob_table_of
from drift_envs.errors import ArgumentError, MissingDependencyError, ScheduleError, StateError
from drift_envs.registration import IDS
from drift_envs.schedule import Schedule, load_schedule
from tests.core_ids import CORE_IDS, by_file, kinds_of_schedules
from tests.drift_envs.envs.registered_contract import CLONES, actions_of, play
from website.shipped import listed

PLAIN = {
    "DriftFrozenLake-v0": "FrozenLake-v1",
    "DriftMountainCar-v0": "MountainCar-v0",
    "DriftMountainCarContinuous-v0": "MountainCarContinuous-v0",
}
OURS = [(env_id, name) for name in listed() if (env_id := load_schedule(name).env) in CORE_IDS]
"""Without the points of the map of verification, which differ from their file in rates alone."""
ids = pytest.mark.parametrize("env_id", CORE_IDS)
drifting = pytest.mark.parametrize("drifts", [False, True], ids=["undrifted", "default"])
texts = pytest.mark.parametrize("text", [False, True], ids=["plain", "text"])


@ids
@drifting
@texts
def test_gymnasiums_checker_is_content(env_id, drifts, text):
    env = gym.make(env_id, schedule=CORE_IDS[env_id].schedule if drifts else None, text=text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*is different from the unwrapped version.*")
        check_env(env, skip_render_check=True)  # asserts, and warns where it only doubts
    env.close()


@pytest.mark.integration
@ids
@pytest.mark.parametrize("overlay", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_gymnasiums_checker_is_content_with_pictures(env_id, overlay):
    env = gym.make(env_id, render_mode="rgb_array", overlay=overlay)
    check_env(env)  # asserts, and what it warns of is an error in these tests
    env.close()


@pytest.mark.parametrize("env_id", PLAIN)
def test_without_a_schedule_nothing_differs_from_gymnasium(env_id):
    ours, base = gym.make(env_id, schedule=None), gym.make(PLAIN[env_id], max_episode_steps=CORE_IDS[env_id].limit)
    assert ours.observation_space == base.observation_space
    assert ours.action_space == base.action_space
    actions = actions_of(base, 2_000)
    assert data_equivalence(play(ours, actions, seed=11), play(base, actions, seed=11), exact=True)


@pytest.mark.integration
@pytest.mark.parametrize(("env_id", "schedule"), by_file(OURS))
def test_spaces_never_change(env_id, schedule):
    env = gym.make(env_id, schedule=schedule)
    before = copy.deepcopy((env.observation_space, env.action_space))
    env.reset(seed=0)
    for phase in env.get_wrapper_attr("timeline").phases(200):
        observation, _ = env.reset(options={"drift_tick": phase.start})
        assert env.observation_space.contains(observation)
    assert (env.observation_space, env.action_space) == before


@ids
@drifting
@texts
def test_a_spec_builds_the_same_environment(env_id, drifts, text):
    env = gym.make(env_id, schedule=CORE_IDS[env_id].schedule if drifts else None, text=text, notify="change")
    spec = gym.envs.registration.EnvSpec.from_json(env.spec.to_json())
    assert spec == env.spec
    twin = gym.make(spec)
    actions = actions_of(env, 60)
    assert str(twin) == str(env)
    assert data_equivalence(play(env, actions, seed=4), play(twin, actions, seed=4), exact=True)


def test_a_spec_takes_other_arguments():
    env = gym.make("DriftFrozenLake-v0", schedule="frozen_lake/implicit", text=True)
    other = gym.make(env.spec, schedule="frozen_lake/tides", text=False, notify="full", max_episode_steps=7)
    assert other.get_wrapper_attr("schedule").name == "frozen_lake/tides"
    assert "drift" in other.reset(seed=0)[1]
    assert other.spec.max_episode_steps == 7
    assert other.spec.kwargs == {"schedule": "frozen_lake/tides", "text": False, "notify": "full"}
    again = gym.make(other.spec, schedule=None)
    assert again.get_wrapper_attr("schedule") is None


def test_specs_of_schedules_in_every_form(tmp_path):
    content = {"version": 1, "name": "mine", "drifts": [{"at": 1, "set": {"force": 0.0005}}]}
    path = tmp_path / "mine.yaml"
    path.write_text(json.dumps(content), encoding="utf-8")
    for schedule in (content, str(path), path, Schedule.model_validate(content)):
        env = gym.make("DriftMountainCar-v0", schedule=schedule)
        other = gym.make(env.spec, notify="full")
        other.reset(seed=0)
        assert other.reset()[1]["drift"]["knobs"]["force"] == 0.0005
        if not isinstance(schedule, Schedule):
            assert gym.make(type(env.spec).from_json(env.spec.to_json())).spec == env.spec
    assert gym.make(env.spec).spec == env.spec


def test_wrappers_put_on_by_hand_are_in_the_spec():
    schedule = {"version": 1, "name": "mine", "drifts": [{"at": 1, "set": {"masspole": 0.5}}]}
    env = drift_envs.DriftWrapper(gym.make("CartPole-v1"), schedule, notify="full")
    assert [wrapper.name for wrapper in env.spec.additional_wrappers] == ["DriftWrapper"]
    other = gym.make(env.spec)
    other.reset(seed=0)
    assert other.reset()[1]["drift"]["knobs"]["masspole"] == 0.5


@pytest.mark.integration
@pytest.mark.parametrize(
    ("env_id", "schedule", "clone", "text"),
    [
        *((env_id, name, "copy", False) for env_id, name in kinds_of_schedules()),
        *((env_id, name, "pickle", True) for env_id, entry in CORE_IDS.items() for name in (None, entry.schedule)),
        *((env_id, None, "copy", False) for env_id in CORE_IDS),
    ],
)
def test_clones_have_the_same_future(env_id, schedule, clone, text):
    env = gym.make(env_id, schedule=schedule, text=text)
    actions = actions_of(env, 80)
    play(env, actions[:30], seed=2)
    other = CLONES[clone](env)
    assert data_equivalence(play(env, actions), play(other, actions), exact=True)


def _rendered_clones():
    """Environments by mode and clone; windows keep the pace of people, and those of cars a fast one."""
    for env_id in CORE_IDS:
        for mode, clone in product(("rgb_array", "human"), CLONES):
            is_slow = mode == "human" and "Car" not in env_id
            yield pytest.param(env_id, mode, clone, marks=[pytest.mark.slow] if is_slow else [])


@pytest.mark.integration
@pytest.mark.parametrize(("env_id", "mode", "clone"), list(_rendered_clones()))
def test_clones_after_a_render(env_id, mode, clone):
    env = gym.make(env_id, render_mode=mode)
    env.reset(seed=2)
    env.render()
    other = CLONES[clone](env)
    action = actions_of(env, 1)[0]
    for each in (env, other):
        each.reset()
        each.step(action)
    assert np.array_equal(env.render(), other.render()) if mode == "rgb_array" else other.render() is None
    env.close()
    other.close()


def _vectors():
    """Each environment in each mode, and in processes: each environment in one mode, the lake in all."""
    for env_id, text in [*((env_id, False) for env_id in CORE_IDS), ("DriftFrozenLake-v0", True)]:
        for mode in AutoresetMode:
            yield env_id, text, mode, SyncVectorEnv
            if mode is AutoresetMode.NEXT_STEP or (env_id, text) == ("DriftFrozenLake-v0", False):
                yield pytest.param(env_id, text, mode, AsyncVectorEnv, marks=pytest.mark.integration)


@pytest.mark.parametrize(("env_id", "text", "mode", "maker"), list(_vectors()))
def test_vectors_see_what_single_environments_see(env_id, text, mode, maker):
    keywords = {"max_episode_steps": 6, "text": text, "notify": "full"}
    extra = {"shared_memory": not text and env_id in PLAIN} if maker is AsyncVectorEnv else {}
    vector = maker([lambda: gym.make(env_id, **keywords)] * 2, autoreset_mode=mode, **extra)
    singles = [gym.make(env_id, **keywords) for _ in range(2)]
    vector.action_space.seed(0)
    ended = [False, False]
    seen, _ = vector.reset(seed=[3, 4])
    for single, seed in zip(singles, (3, 4), strict=True):
        single.reset(seed=seed)
    for _ in range(20):
        actions = vector.action_space.sample()
        if mode is AutoresetMode.DISABLED and any(ended):
            vector.reset(options={"reset_mask": np.array(ended)})
            for single, over in zip(singles, ended, strict=True):
                if over:
                    single.reset()
        seen, _, terminated, truncated, info = vector.step(actions)
        for number, single in enumerate(singles):
            if mode is AutoresetMode.NEXT_STEP and ended[number]:
                observation, own = single.reset()  # the dead step: no time passes on the drift's clock but the reset's
                over = False
            else:
                observation, _, one, two, own = single.step(actions[number])
                over = one or two
                if over and mode is AutoresetMode.SAME_STEP:
                    observation, own = single.reset()
            assert np.array_equal(observation, seen[number])
            assert own["drift"]["tick"] == info["drift"]["tick"][number]
            ended[number] = over
        assert ended == (terminated | truncated).tolist()
    vector.close()


@ids
def test_make_vec(env_id):
    vector = gym.make_vec(env_id, num_envs=3, vectorization_mode="sync")
    vector.reset(seed=0)
    vector.step(vector.action_space.sample())
    assert [state.tick for state in vector.get_attr("drift_state")] == [0, 0, 0]
    vector.close()


@pytest.mark.integration
@pytest.mark.parametrize(
    ("env_id", "inner_video"),
    [
        ("DriftFrozenLake-v0", True),
        ("DriftFrozenLake-v0", False),
        pytest.param("DriftWebShop-v0", True, marks=pytest.mark.slow),
    ],
)
def test_videos_and_statistics_in_both_orders(env_id, inner_video, tmp_path):
    env = gym.make(env_id, render_mode="rgb_array", overlay=True, max_episode_steps=4)

    def video(inner):
        return gym.wrappers.RecordVideo(inner, str(tmp_path / "videos"), episode_trigger=lambda _: True, fps=4)

    env = (
        gym.wrappers.RecordEpisodeStatistics(video(env))
        if inner_video
        else video(gym.wrappers.RecordEpisodeStatistics(env))
    )
    for episode in range(2):
        env.reset(seed=0 if episode == 0 else None)
        for action in actions_of(env, 4):
            *_, terminated, truncated, info = env.step(action)
            if terminated or truncated:
                break
        assert info["episode"]["l"] >= 1
    env.close()
    assert len(list((tmp_path / "videos").glob("*.mp4"))) == 2


def test_lists_of_pictures():
    env = gym.make("DriftFrozenLake-v0", render_mode="rgb_array_list")
    env.reset(seed=0)
    env.step(1)
    assert len(env.render()) == 2
    env.close()


@ids
def test_step_before_reset(env_id):
    env = gym.make(env_id)
    with pytest.raises(StateError, match="`step` was called before `reset`"):
        env.step(actions_of(env, 1)[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"map_name": "8x8"}, "`map_name` should not be given, since the schedule `frozen_lake/explicit` sets `map`"),
        ({"desc": ["SG"]}, "`desc` should not be given"),
        (
            {"schedule": "frozen_lake/thaw", "is_slippery": True},
            "`is_slippery` should not be given, since the schedule `frozen_lake/thaw` sets `slip`. Received True",
        ),
        ({"schedule": "frozen_lake/implicit", "reward_schedule": (1, 0, 0)}, "`reward_schedule` should not be given"),
        ({"slip": 0.1}, "It is a knob, which a schedule sets, as in schedule={'version': 1, 'base': {'slip': ...}}."),
        ({"autoreset_mode": "SameStep"}, "`gym.make_vec` takes it in `vector_kwargs`."),
        ({"slippery": True}, "got an unexpected keyword argument 'slippery'. Did you mean `is_slippery`?"),
    ],
    ids=str,
)
def test_arguments_that_say_what_the_schedule_says(arguments, message):
    with pytest.raises(ArgumentError, match=re.escape(message)):
        gym.make("DriftFrozenLake-v0", **arguments)


def test_arguments_beside_a_schedule():
    slip = {"version": 1, "name": "s", "drifts": [{"at": 1, "set": {"slip": 0.5}}]}
    env = gym.make("DriftFrozenLake-v0", schedule=slip, map_name="8x8")
    assert env.observation_space.n == 64
    assert env.get_wrapper_attr("knobs_at")(0)["slip"] == 0.0
    rewards = {"version": 1, "name": "r", "drifts": [{"at": 1, "set": {"goal_rewards": {"0,2": 3}}}]}
    env = gym.make("DriftFrozenLake-v0", schedule=rewards, desc=["SFG"], success_rate=0.5)
    assert env.get_wrapper_attr("knobs_at")(0)["slip"] == 0.5
    env = gym.make("DriftFrozenLake-v0", schedule=rewards, desc=["SFG"], is_slippery=True)
    assert env.get_wrapper_attr("knobs_at")(0)["slip"] == pytest.approx(2 / 3)
    with pytest.raises(ScheduleError, match="goal_rewards"):
        gym.make("DriftFrozenLake-v0", schedule=rewards, desc=["SFFG"])
    assert gym.make("DriftMountainCar-v0", goal_velocity=0.01).unwrapped.goal_velocity == 0.01
    with pytest.raises(
        ArgumentError,
        match=r"unexpected keyword argument 'speed'. Received speed=.* Known: schedule, goal_velocity, render_mode",
    ):
        gym.make("DriftMountainCar-v0", speed=1)


def test_the_observation_space_has_room_for_every_map():
    drifts = [
        {"at": 1, "set": {"map": ["SFF", "FFG"]}},
        {"at": 2, "set": {"map": {"draw": {"size": 5, "holes": 3}}}},
        {"every": 9, "choice": {"map": [["SFFFFFFG"], ["SFG"]]}},
    ]
    schedule = {"version": 1, "name": "sizes", "base": {"map": ["SG"]}, "drifts": drifts}
    env = gym.make("DriftFrozenLake-v0", schedule=schedule, render_mode="rgb_array")
    assert env.observation_space.n == 25
    env.reset(seed=0)
    shapes = set()
    for _ in range(30):
        observation, _ = env.reset()
        assert observation in env.observation_space
        shapes.add(env.render().shape)
    assert shapes == {(5 * 64, 512, 3)}
    small = gym.make("DriftFrozenLake-v0", schedule={"version": 1, "name": "s", "base": {"map": ["SG"]}})
    assert small.observation_space.n == 2
    env.close()


@ids
def test_prob_is_shown_without_a_schedule_alone(env_id):
    for schedule in (None, CORE_IDS[env_id].schedule):
        env = gym.make(env_id, schedule=schedule)
        infos = [env.reset(seed=0)[1], env.step(actions_of(env, 1)[0])[4]]
        shown = ["prob" in info for info in infos]
        if schedule is not None:
            assert not any(shown), "`prob` gives the slip away: leave it out of `info` where a schedule drives knobs"
        elif env_id == "DriftFrozenLake-v0":
            assert all(shown)


CORE_CHANCES = ("DriftFrozenLake-v0", "DriftMountainCar-v0", "DriftHouse-v0", "DriftTools-v0", "DriftRepository-v0")
"""Environments with a knob of failures by chance, which others need not have."""


@ids
def test_knob_tables_by_id(env_id):
    table = knob_table_of(env_id)
    chances = [table[name] for name in ("flaky", "transient") if name in table]
    assert all(knob.default == 0.0 for knob in chances)
    assert chances or env_id not in CORE_CHANCES
    assert "action_delay" in table
    with pytest.raises(ArgumentError, match=r"there is no id .* in drift-envs"):
        knob_table_of("CartPole-v1")


def test_misspelt_arguments_are_all_named_with_the_known_ones():
    with pytest.raises(ArgumentError) as error:
        gym.make("DriftFrozenLake-v0", schedul="frozen_lake/explicit", over_lay=True)
    message = str(error.value)
    assert "got an unexpected keyword argument 'schedul'. Did you mean `schedule`?" in message
    assert "got an unexpected keyword argument 'over_lay'. Did you mean `overlay`?" in message
    assert "desc, map_name, is_slippery, success_rate, reward_schedule, render_mode, notify, text, overlay" in message
    with pytest.raises(ArgumentError, match="Did you mean `schedule`"):
        gym.make_vec("DriftMountainCar-v0", num_envs=2, vectorization_mode="vector_entry_point", schedul=None)


@pytest.mark.parametrize("env_id", CORE_IDS)
def test_a_short_name_is_a_schedule_of_the_environment(env_id):
    env = gym.make(env_id, schedule="explicit")
    assert env.get_wrapper_attr("schedule").name == CORE_IDS[env_id].schedule
    with pytest.raises(ScheduleError, match=f"Did you mean `{CORE_IDS[env_id].schedule}`"):
        gym.make(env_id, schedule="explict")


def test_an_environment_without_its_extra_says_what_to_install() -> None:
    parts = replace(IDS["DriftHouse-v0"], env="package_that_is_missing.env:Environment", extra="environments")
    with pytest.raises(MissingDependencyError, match=re.escape('run `pip install ".[environments]"`')):
        parts.env_class  # noqa: B018  reading it is the test
    with pytest.raises(ModuleNotFoundError):
        replace(parts, extra=None).env_class  # noqa: B018
