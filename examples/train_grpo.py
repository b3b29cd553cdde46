"""Train a language model on lifetimes that drift, with GRPO: TRL's trainer, our environments.

    pip install -r tests/extras/trl/requirements.txt
    python examples/train_grpo.py --model Qwen/Qwen3-0.6B --out runs/grpo

The model acts by calling the tool `act`; a rollout is a lifetime, and its reward the mean score of all episodes. It
is trained on some schedules and evaluated on others, with other seeds (see docs/training_agents.md). The chat
template of the model must support tools. TRL's interface for environments is experimental: the extra pins its version.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Sequence
from typing import Any

MISSING = "training needs more packages, run `pip install -r tests/extras/trl/requirements.txt`"

TRAIN = ("frozen_lake/explicit:family", "frozen_lake/explicit:returning", "house/explicit:family")
HELD_OUT = ("frozen_lake/implicit:family", "frozen_lake/explicit:jittered")
HELD_OUT_SEED = 1000
"""The first seed of evaluation: those below are for development (docs/evaluating.md)."""


def train(model: Any, tokenizer: Any, options: argparse.Namespace, **settings: Any) -> Any:
    """Train a model, and measure it on the schedules that were held out.

    Args:
        model: a causal language model, or its name.
        tokenizer: its tokenizer, with a chat template for tools; `None` for the model's own.
        options: the command's.
        **settings: of TRL's `GRPOConfig`, instead of the ones here.

    Returns:
        The trainer, whose `state.log_history` has all figures.

    Raises:
        SystemExit: if a package is missing.
    """
    try:
        from datasets import Dataset
        from trl import GRPOConfig, GRPOTrainer
    except ImportError as error:
        raise SystemExit(f"{MISSING}: {error}") from error
    from drift_envs.integrations.trl import LifetimeRollout, lifetime_rows

    config = {
        "output_dir": options.out,
        "max_steps": options.updates,
        "per_device_train_batch_size": options.group,
        "per_device_eval_batch_size": options.group,
        "num_generations": options.group,
        "max_completion_length": options.tokens,
        "seed": options.seed,
        "report_to": "none",
        "logging_steps": 1,
    }
    trainer = GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        args=GRPOConfig(**{**config, **settings}),
        train_dataset=Dataset.from_list(lifetime_rows(options.train, options.lifetimes)),
        eval_dataset=Dataset.from_list(lifetime_rows(options.held_out, options.eval_lifetimes, HELD_OUT_SEED)),
        environment_factory=functools.partial(LifetimeRollout, rounds=options.rounds),
    )
    trainer.train()
    trainer.evaluate()
    return trainer


def make_parser() -> argparse.ArgumentParser:
    """The command's options."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", required=True, help="a causal language model: a name or a folder")
    parser.add_argument("--out", default="runs/grpo", help="the folder of checkpoints")
    parser.add_argument("--train", nargs="+", default=list(TRAIN), metavar="SCHEDULE", help="schedules to train on")
    parser.add_argument("--held-out", nargs="+", default=list(HELD_OUT), metavar="SCHEDULE", help="to evaluate on")
    parser.add_argument("--rounds", type=int, default=2, help="episodes of every phase")
    parser.add_argument("--lifetimes", type=int, default=1000, help="lifetimes to train on")
    parser.add_argument("--eval-lifetimes", type=int, default=20, help="lifetimes to evaluate on")
    parser.add_argument("--updates", type=int, default=200)
    parser.add_argument("--group", type=int, default=8, help="rollouts of a lifetime, which are compared")
    parser.add_argument("--tokens", type=int, default=8192, help="of a whole lifetime, with what the environment says")
    parser.add_argument("--seed", type=int, default=0)
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, save the model, and print the reward before and after."""
    options = make_parser().parse_args(arguments)
    trainer = train(options.model, None, options)
    trainer.save_model(options.out)
    rewards = [entry["reward"] for entry in trainer.state.log_history if "reward" in entry]
    held_out = [entry["eval_reward"] for entry in trainer.state.log_history if "eval_reward" in entry]
    print(f"reward of the first update {rewards[0]:.3f}, of the last {rewards[-1]:.3f}, held out {held_out[-1]:.3f}")


if __name__ == "__main__":
    main()
