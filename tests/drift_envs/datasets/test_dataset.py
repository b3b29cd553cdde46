"""Data sets with drift labels: the labels are true, and parts are the same however they came about."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pyarrow
import pytest
from gymnasium.utils.env_checker import data_equivalence
from hypothesis import given, settings
from hypothesis import strategies as st

from drift_envs.cli import main
from drift_envs.datasets import DatasetFolder, DatasetOptions, read_streams, recorder, write_dataset
from drift_envs.datasets.folder import decode, encode
from drift_envs.datasets.recorder import episode_seeds, make_dataset_env, make_policy
from drift_envs.errors import ArgumentError, StateError
from drift_envs.knobs import thaw

LAKE, CAR, HOUSE = "DriftFrozenLake-v0", "DriftMountainCar-v0", "DriftHouse-v0"
RAMP = {"name": "ramp", "at": 15, "kind": "incremental", "over": 20, "set": {"slip": 0.5}}
STORMS = {"name": "storms", "rate": 0.05, "walk": {"slip": 0.1}}


def slips(clock: str) -> dict[str, Any]:
    return {"version": 1, "name": f"slips-{clock}", "clock": clock, "base": {"slip": 0.1}, "drifts": [RAMP, STORMS]}


CASES = [
    (LAKE, slips("step"), "optimal", 30),
    (LAKE, slips("episode_step"), "random", 20),
    (LAKE, "frozen_lake/implicit", "initial", 30),
    (CAR, "mountain_car/reversed", "random", 24),
    (HOUSE, "house/locked", "random", 25),
]


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven episodes a part on a lake, one elsewhere."""
    monkeypatch.setattr(recorder, "STEPS_PER_PART", 700)


def rows_of(folder: DatasetFolder, lifetime: int = 0) -> list[dict[str, Any]]:
    return [row for table in folder.tables(lifetime) for row in table.to_pylist()]


def bytes_of(folder: DatasetFolder) -> dict[str, bytes]:
    return {str(path.relative_to(folder.path)): path.read_bytes() for path in folder.path.rglob("*") if path.is_file()}


def plain(value: Any) -> Any:
    return json.dumps(thaw(value), ensure_ascii=False) if not isinstance(value, (int, float)) else value


@pytest.mark.integration
@pytest.mark.parametrize(("env_id", "schedule", "policy", "episodes"), CASES)
def test_a_plain_play_of_the_same_seeds_and_actions_has_the_same_steps_and_truth(
    env_id: str, schedule: Any, policy: str, episodes: int, small_parts: None, tmp_path: Path
) -> None:
    folder = write_dataset(DatasetOptions(env_id, schedule, policy, episodes, seed=5, epsilon=0.2), tmp_path)
    rows = rows_of(folder)
    assert {row["episode"] for row in rows} == set(range(episodes))
    env = make_dataset_env(folder.manifest())
    env.reset(seed=5)
    log: list[dict[str, str]] = []
    begun: set[int] = set()
    episode = -1
    for row in rows:
        if row["episode"] != episode:
            episode += 1
            # no tick is passed: time goes on by itself, from the tick at which the lifetime began
            jump = {"drift_tick": 0} if episode == 0 else {}
            observation, _ = env.reset(seed=episode_seeds(5, episode)[0], options={"drift_clock": "continue", **jump})
        assert np.array_equal(observation, row["observation"])
        observation, reward, terminated, truncated, _ = env.step(row["action"])
        assert np.array_equal(observation, row["next_observation"])
        assert (reward, terminated, truncated) == (row["reward"], row["terminated"], row["truncated"])
        state = env.get_wrapper_attr("drift_state")
        assert (state.phase, state.tick, state.step - 1) == (row["phase"], row["tick"], row["step"])
        knobs = {name.removeprefix("knob."): value for name, value in row.items() if name.startswith("knob.")}
        assert knobs
        assert {name: plain(state.knobs[name]) for name in knobs} == knobs
        if row["tick"] not in begun:  # with the clock `episode_step` a tick comes again
            log += row["drift_log"]
        begun.add(row["tick"])
    truth = [
        {"knob": one.knob, "old": json.dumps(thaw(one.old)), "new": json.dumps(thaw(one.new)), "drift": one.drift}
        for one in env.get_wrapper_attr("drift_log")
    ]
    env.close()
    assert log == truth
    assert truth


@pytest.mark.integration
@pytest.mark.parametrize(("env_id", "schedule", "policy", "episodes"), [CASES[0], CASES[-1]])
def test_what_was_interrupted_is_completed_to_the_same_bytes(
    env_id: str, schedule: Any, policy: str, episodes: int, small_parts: None, tmp_path: Path
) -> None:
    options = DatasetOptions(env_id, schedule, policy, episodes, lifetimes=2)
    whole = write_dataset(options, tmp_path / "whole")
    played: list[int] = []

    def interrupt(done: int, steps: int) -> None:
        played.append(steps)
        if len(played) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_dataset(options, tmp_path / "torn", progress=interrupt)
    torn = DatasetFolder(tmp_path / "torn")
    half = torn.part(1, 1).with_name("00001-00001.parquet.part")
    half.write_bytes(b"PAR1 half")
    with pytest.raises(StateError, match="are missing"):
        rows_of(torn, 1)
    taken = []
    write_dataset(options, tmp_path / "torn", progress=lambda done, steps: taken.append(steps))
    assert taken[:3] == [0, 0, 0], "finished parts are not played again"
    assert all(taken[3:])
    assert bytes_of(torn) == bytes_of(whole)
    assert rows_of(whole, 0) != rows_of(whole, 1), "each lifetime has a seed of its own"


def test_other_settings_do_not_go_on_in_the_same_folder(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    arguments = ["dataset", LAKE, "--out", str(tmp_path), "-q", "--episodes"]
    assert main([*arguments, "3"]) == 0
    before = bytes_of(DatasetFolder(tmp_path))
    assert main([*arguments, "4"]) == 1
    assert "was begun with `episodes` = 3" in capsys.readouterr().err
    assert bytes_of(DatasetFolder(tmp_path)) == before


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([LAKE, "--policy", "clever"], 2, "`policy` should be one of random, optimal, initial"),
        ([LAKE, "--policy", "no_such:make"], 2, "'module:name' of an installed module"),
        ([LAKE, "--policy", ".own:make"], 2, "'module:name' of a function or a class. Received '.own:make'"),
        (["CartPole-v1", "--schedule", "cart_pole/implicit", "--policy", "optimal"], 1, "no oracle for CartPole-v1"),
        (["CartPole-v1"], 2, "CartPole-v1"),
        ([LAKE, "--policy", "missing.jsonl.gz"], 1, "cannot be read"),
    ],
)
def test_what_cannot_be_played_is_refused_before_anything_is_written(
    arguments: list[str], status: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    out = tmp_path / "out"
    assert main(["dataset", *arguments, "--out", str(out)]) == status
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_the_initial_optimum_fails_after_the_drift_and_the_present_one_does_not(tmp_path: Path) -> None:
    schedule = "frozen_lake/implicit:all-or-nothing"
    returns = {
        policy: read_streams(write_dataset(DatasetOptions(LAKE, schedule, policy, 40), tmp_path / policy).path)[0]
        for policy in ("initial", "optimal")
    }
    assert returns["optimal"].values.tolist() == [1.0] * 40
    assert returns["initial"].values.tolist() == [1.0] * 20 + [0.0] * 20
    assert returns["initial"].drifts == (returns["initial"].steps[19],)


def test_a_function_of_ones_own_gets_the_generator_of_its_episode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_policy.py").write_text(
        "def make(observation_space, action_space):\n"
        "    return lambda observation, info, rng: int(rng.integers(action_space.n))\n"
    )
    monkeypatch.chdir(tmp_path)
    options = DatasetOptions(LAKE, None, "own_policy:make", 4)
    first, again = (rows_of(write_dataset(options, tmp_path / name)) for name in ("a", "b"))
    assert first == again
    assert len({row["action"] for row in first}) > 1


def test_the_actions_of_a_run_are_replayed(tmp_path: Path) -> None:
    env = gym.make(LAKE, schedule="frozen_lake/implicit")
    content = {"version": 1, **env.get_wrapper_attr("schedule").to_dict()}
    header = {"format": 2, "env": LAKE, "content": content, "seed": 3}
    episodes = [
        {"episode": number, "seed": 100 + number, "start": tick, "steps": [{"action": "1", "reward": None}] * 2}
        for number, tick in ((0, 0), (4, 20))
    ]
    file = tmp_path / "agent.jsonl.gz"
    with gzip.open(file, "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps(line) + "\n" for line in (header, *episodes))
    out = tmp_path / "out"
    assert main(["dataset", LAKE, "--policy", str(file), "--out", str(out), "-q"]) == 0
    rows = rows_of(DatasetFolder(out))
    assert [(row["episode"], row["tick"], row["phase"], row["action"]) for row in rows] == [
        (0, 0, "source", 1),
        (0, 0, "source", 1),
        (4, 20, "reversal", 1),
        (4, 20, "reversal", 1),
    ]
    assert main(["dataset", LAKE, "--policy", str(file), "--out", str(tmp_path / "b"), "--seed", "1"]) == 1


SPACES = st.deferred(
    lambda: st.one_of(
        st.integers(1, 9).map(lambda n: gym.spaces.Discrete(n, start=-2)),
        st.sampled_from([(), (3,), (2, 2)]).map(lambda shape: gym.spaces.Box(-2, 2, shape, np.float32)),
        st.just(gym.spaces.Box(0, 255, (2, 3), np.uint8)),
        st.just(gym.spaces.MultiDiscrete([2, 3])),
        st.just(gym.spaces.MultiBinary(3)),
        st.just(gym.spaces.Text(5)),
        st.dictionaries(st.sampled_from(["a", "b"]), SPACES, min_size=1, max_size=2).map(gym.spaces.Dict),
    )
)


@settings(max_examples=40, deadline=None)
@given(space=SPACES, seed=st.integers(0, 99), count=st.integers(1, 4))
def test_values_of_every_space_come_back_from_their_columns(space: gym.Space[Any], seed: int, count: int) -> None:
    space.seed(seed)
    values = [space.sample() for _ in range(count)]
    found = decode("x", space, pyarrow.table(encode("x", space, values)))

    def pick(part: Any, index: int) -> Any:
        return {key: pick(one, index) for key, one in part.items()} if isinstance(part, dict) else part[index]

    for index, value in enumerate(values):
        assert data_equivalence(as_typed(space, pick(found, index)), as_typed(space, value), exact=True)


def as_typed(space: gym.Space[Any], value: Any) -> Any:
    """A value in the form in which two can be compared."""
    if isinstance(space, gym.spaces.Dict):
        return {key: as_typed(part, value[key]) for key, part in space.spaces.items()}
    return value if isinstance(space, gym.spaces.Text) else np.asarray(value, space.dtype)


def test_spaces_without_columns_are_refused() -> None:
    with pytest.raises(ArgumentError, match="should be of a space Discrete, Box"):
        encode("observation", gym.spaces.Sequence(gym.spaces.Discrete(2)), [])


def test_the_coin_does_not_decide_which_random_action_is_taken() -> None:
    env = gym.make("DriftFacts-v0", text=True)
    state, info = env.reset(seed=0)
    actions, best = info["actions"], make_policy("optimal", env)(0)(state, info, 0)
    mixed = make_policy("optimal", env, epsilon=0.3)
    drawn = [mixed(seed)(state, info, 0) for seed in range(200)]
    assert max(actions.index(action) for action in drawn if action != best) >= 0.8 * len(actions)
