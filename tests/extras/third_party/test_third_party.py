"""Every command on environments of packages that others wrote."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import gymnasium as gym
import pytest

from drift_envs import make_from_schedule
from drift_envs.cli import main
from drift_envs.wrappers import twin

pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore")]

ENVS = {
    "highway_env:highway-fast-v0": True,
    "flappy_bird_gymnasium:FlappyBird-v0": True,
    "ale_py:ALE/Pong-v5": True,
    "mo_gymnasium:mo-mountaincar-v0": True,
    "gym_anytrading:stocks-v0": False,
    "tetris_gymnasium.envs:tetris_gymnasium/Tetris": False,
    "buffalo_gym:Buffalo-v0": False,
    "cardiosim:cardiosim/PacingControl-v0": False,
}
"""Ids, and whether each renders arrays. Robots of Gymnasium-Robotics 1.4.2 cannot be made with the newest MuJoCo."""


@pytest.mark.parametrize("env_id", ENVS)
def test_all_commands(env_id: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = env_id.partition(":")[0]
    pytest.importorskip(module)
    file = tmp_path / "s.yaml"
    file.write_text(
        f"version: 1\nenv: {env_id}\ndrifts:\n  - {{at: 1, set: {{reward_scale: 2.0}}}}\n", encoding="utf-8"
    )
    assert main(["validate", str(file), "--import", module]) == 0
    assert main(["check", str(file), "--episodes", "1", "--steps", "30"]) == 0
    words = [env_id, "--schedule", str(file)]
    film = ["--policy", "random", "--steps", "3", "--phases", "2", "--out", str(tmp_path / "film.png")]
    assert main(["record", *words, *film]) == (0 if ENVS[env_id] else 1)
    is_vector = module == "mo_gymnasium"
    data = ["--episodes", "1", "-q", "--out", str(tmp_path / "data")]
    assert main(["dataset", *words, *data]) == int(is_vector)
    env = make_from_schedule(str(file))
    assert gym.make(env.spec).get_wrapper_attr("schedule").name == "s"  # type: ignore[arg-type]
    env.reset(seed=0)
    twin(env).reset()
    for other in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))) if not is_vector else ():
        other.reset()
        assert other.get_wrapper_attr("drift_state").knobs["reward_scale"] == 2.0
    if not is_vector:
        learners = pytest.importorskip("stable_baselines3")
        pytest.importorskip("torch").set_num_threads(1)  # several wait for each other on a busy machine
        policy = "MultiInputPolicy" if isinstance(env.observation_space, gym.spaces.Dict) else "MlpPolicy"
        learners.PPO(policy, env, n_steps=250, batch_size=250, n_epochs=1, seed=0).learn(500)
