"""RLlib's own training loop on a drifting environment, made by its id."""

from __future__ import annotations

import gymnasium as gym
import pytest

import drift_envs
from tests.documents import read_code, run_code

ray = pytest.importorskip("ray", reason="needs tests/extras/rllib/requirements.txt")
ppo = pytest.importorskip("ray.rllib.algorithms.ppo", reason="needs tests/extras/rllib/requirements.txt")
registry = pytest.importorskip("ray.tune.registry", reason="needs tests/extras/rllib/requirements.txt")

# Ray's own warnings, and sockets that it leaves to the garbage collector
pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore")]
STEPS = 600


@pytest.fixture
def cluster():
    """Ray in this process's own session, without a dashboard."""
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield
    ray.shutdown()


def test_ppo_trains_through_a_drift(cluster):
    registry.register_env("drifting-cart", lambda config: gym.make("DriftCartPole-v0", **config))
    config = (
        ppo.PPOConfig()
        .environment("drifting-cart", env_config={"schedule": "cart_pole/explicit"})
        .env_runners(num_env_runners=0, num_envs_per_env_runner=1)
        .training(train_batch_size=STEPS, minibatch_size=STEPS, num_epochs=1)
        .debugging(seed=0)
    )
    algorithm = config.build_algo()
    try:
        result = algorithm.train()
        assert result["env_runners"]["num_env_steps_sampled_lifetime"] >= STEPS
        assert result["learners"]["default_policy"]["vf_loss"] > 0
        (cart,) = algorithm.env_runner.env.unwrapped.envs
        state = cart.get_wrapper_attr("drift_state")
        # random actions hold the pole for about 22 steps
        assert state.episode >= 20
        assert state.phase == "reversed"
    finally:
        algorithm.stop()


def test_the_code_of_the_page_registers_an_environment():
    (code,) = [code for code in read_code("docs/quickstart_rl.md") if "register_env" in code]
    assert run_code(code)["drift_envs"] is drift_envs
    make = registry._global_registry.get(registry.ENV_CREATOR, "drifting-cart")
    assert make({"schedule": "cart_pole/implicit"}).get_wrapper_attr("schedule").name == "cart_pole/implicit"
