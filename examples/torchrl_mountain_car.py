"""TorchRL's PPO on drifting mountain cars, through its own GymWrapper around the native vector environment.

    pip install ".[plots]" -r tests/extras/torchrl/requirements.txt
    python examples/torchrl_mountain_car.py --out torchrl.png

The engine's controls are reversed in the middle of the training, which the learner does not observe. `GymWrapper`
asks for the autoreset mode `Disabled`, in which TorchRL resets those cars whose episodes have ended. All cars share a
clock of steps, since `GymWrapper.set_seed` and the collector reset the environment once more than was asked for, which
a clock of episodes counts.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import drift_envs

MISSING = "`torchrl` is not installed, run `pip install -r tests/extras/torchrl/requirements.txt`"

ROLLOUT = 128
"""Steps of each car between two updates."""


def reversed_at(step: int) -> dict[str, Any]:
    """A strong engine whose controls are reversed from some step on.

    Args:
        step: that step, of the life of each car.
    """
    drift = {"name": "reversed", "at": step, "set": {"force": -0.003}}
    return {"version": 1, "name": "reversed", "clock": "step", "base": {"force": 0.003}, "drifts": [drift]}


def train(cars: gym.vector.VectorEnv, frames: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Train with TorchRL's collector, generalized advantage estimation and clipped loss.

    Args:
        cars: a vector environment with the autoreset mode `Disabled`.
        frames: transitions of all cars together, a multiple of those of an update.
        seed: seeds the cars, the networks and the actions.

    Returns:
        The frames after each update, and the mean return of the episodes that ended in it (`nan` if none did).
    """
    import torch
    from tensordict.nn import TensorDictModule
    from torch import nn
    from torchrl.collectors import Collector
    from torchrl.envs import GymWrapper, RewardSum, TransformedEnv
    from torchrl.modules import ProbabilisticActor, ValueOperator
    from torchrl.objectives import ClipPPOLoss
    from torchrl.objectives.value import GAE

    torch.set_num_threads(1)  # with more, networks this small are slower
    torch.manual_seed(seed)
    env = TransformedEnv(GymWrapper(cars, categorical_action_encoding=True), RewardSum())
    env.set_seed(seed)

    def network(outputs: int) -> nn.Module:
        return nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs))

    class Scaled(nn.Module):  # type: ignore[misc, unused-ignore]
        """Position and velocity scaled to about -1 to 1 before a network."""

        def __init__(self, inner: nn.Module) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, observation: torch.Tensor) -> torch.Tensor:
            return self.inner((observation - torch.tensor([-0.3, 0.0])) / torch.tensor([0.9, 0.07]))

    actor = ProbabilisticActor(
        TensorDictModule(Scaled(network(3)), in_keys=["observation"], out_keys=["logits"]),
        in_keys=["logits"],
        spec=env.action_spec,
        distribution_class=torch.distributions.Categorical,
        return_log_prob=True,
    )
    critic = ValueOperator(Scaled(network(1)), in_keys=["observation"])
    estimate = GAE(gamma=0.99, lmbda=0.95, value_network=critic, average_gae=True)
    loss_of = ClipPPOLoss(actor, critic, clip_epsilon=0.2, entropy_coeff=0.01, critic_coeff=0.5)
    optimizer = torch.optim.Adam(loss_of.parameters(), lr=1e-3)
    batch = ROLLOUT * cars.num_envs
    found, seen = [], []
    collector = Collector(
        env, actor, frames_per_batch=batch, total_frames=frames, auto_register_policy_transforms=False
    )
    for data in collector:
        ended = data["next", "done"]
        returns = data["next", "episode_reward"][ended]
        found.append(returns.mean().item() if len(returns) else np.nan)
        seen.append(len(found) * batch)
        for _ in range(4):
            with torch.no_grad():
                estimate(data)
            rows = data.reshape(-1)
            for chosen in torch.randperm(len(rows)).split(256):
                losses = loss_of(rows[chosen])
                optimizer.zero_grad()
                (losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]).backward()
                nn.utils.clip_grad_norm_(loss_of.parameters(), 0.5)
                optimizer.step()
    env.close()
    return np.array(seen), np.array(found)


def fill(frames: np.ndarray, returns: np.ndarray) -> np.ndarray:
    """Interpolate over updates in which no episode ended, since the limit of an episode is longer.

    Args:
        frames: shape `(updates,)`.
        returns: with `nan` for those updates, shape `(updates,)`.
    """
    known = ~np.isnan(returns)
    return np.interp(frames, frames[known], returns[known]) if known.any() else returns


def plot(frames: np.ndarray, curves: np.ndarray, drift: int, out: str) -> None:
    """Draw the mean return over frames, with the drift.

    Args:
        frames: shape `(updates,)`.
        curves: a row for each seed, shape `(seeds, updates)`.
        drift: the frame of the drift.
        out: the file.
    """
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 3))
    for curve in curves:
        axes.plot(frames, curve, color="tab:blue", alpha=0.3, linewidth=0.8)
    axes.plot(frames, curves.mean(axis=0), color="tab:blue", label=f"mean of {len(curves)} seeds")
    axes.axvline(drift, linestyle="--", color="gray", label="controls are reversed")
    axes.set(xlabel="frames of all cars", ylabel="mean return", title="TorchRL's PPO on drifting mountain cars")
    axes.legend(loc="center", bbox_to_anchor=(0.36, 0.4), frameon=False)
    figure.tight_layout()
    figure.savefig(out)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> np.ndarray:
    """Train, print and draw.

    Args:
        arguments: those of the command line.

    Returns:
        The mean return during each update, shape `(seeds, updates)`.

    Raises:
        SystemExit: if TorchRL is not installed.
    """
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--frames", type=int, default=200_000, help="of all cars together (default: %(default)s)")
    parser.add_argument("--number", type=int, default=16, help="parallel cars (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="how many (default: %(default)s)")
    parser.add_argument("--out", help="file for the picture")
    given = parser.parse_args(arguments)
    if given.out:
        Path(given.out).parent.mkdir(parents=True, exist_ok=True)  # before the training, which takes long
    try:
        import torchrl  # noqa: F401
    except ImportError as error:
        raise SystemExit(
            "`torchrl` is not installed, run `pip install -r tests/extras/torchrl/requirements.txt`"
        ) from error
    drift = max(given.frames // (2 * given.number * ROLLOUT), 1) * ROLLOUT  # the first step of an update
    curves = []
    for seed in range(given.seeds):
        cars = gym.make_vec(
            "DriftMountainCar-v0", num_envs=given.number, schedule=reversed_at(drift), autoreset_mode="Disabled"
        )
        frames, found = train(cars, 2 * drift * given.number, seed)
        curves.append(fill(frames, found))
    rates = np.array(curves)
    print(f"drift-envs {drift_envs.__version__}, {given.number} cars, {given.seeds} seeds")
    before = frames <= drift * given.number
    for phase, part in (("source", rates[:, before]), ("reversed", rates[:, ~before])):
        few = min(5, part.shape[1])
        begin, end = (piece.mean() for piece in (part[:, :few], part[:, -few:]))
        print(f"{phase}: return {begin:.0f} in the first {few} updates, {end:.0f} in the last {few}")
    if given.out:
        plot(frames, rates, drift * given.number, given.out)
    return rates


if __name__ == "__main__":
    main()
