"""An environment for verifiers, a library for reinforcement learning of language models; needs the extra `verifiers`.

* `load_environment` - what verifiers, its commands and trainers call
* `LifetimeEnv` - an environment whose rollout is a lifetime

The environment's id is this module: `vf-eval drift_envs.integrations.verifiers --model MODEL --api-base-url URL`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from drift_envs.checks import check_choice, check_integer
from drift_envs.errors import MissingDependencyError
from drift_envs.integrations.dialogue import INSTRUCTIONS, Dialogue
from drift_envs.integrations.lifetime import OWN, TextLifetime, lifetime_scores
from drift_envs.wrappers.drift import Source

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # read when `datasets` is imported, which verifiers does

try:
    import verifiers as vf
    from datasets import Dataset
except ImportError as error:
    raise MissingDependencyError('`verifiers` is not installed, run `pip install "drift-envs[verifiers]"`') from error

ENVIRONMENTS = {
    "lake": "DriftFrozenLake-v0",
    "car": "DriftMountainCar-v0",
    "shop": "DriftWebShop-v0",
    "house": "DriftHouse-v0",
}


def load_environment(
    env: str = "lake",
    schedule: Source = OWN,
    *,
    rounds: int | None = None,
    episodes: int | None = None,
    num_train: int = 100,
    num_eval: int = 10,
    first_seed: int = 0,
    **arguments: Any,
) -> LifetimeEnv:
    """Make the environment of an environment; verifiers calls it with the arguments of `--env-args`.

    Args:
        env: `lake`, `car`, `shop` or `house`.
        schedule: what drifts; by default the environment's explicit schedule.
        rounds: the first so many episodes of every phase are played; 2 if neither this nor `episodes` is given.
        episodes: so many episodes are played, during which time goes on.
        num_train: lifetimes to train on, each with a seed of its own.
        num_eval: lifetimes to evaluate on, with the seeds after those.
        first_seed: the seed of the first one.
        **arguments: those of `verifiers.MultiTurnEnv`.

    Raises:
        ArgumentError: an argument breaks a rule.
        ScheduleError: the schedule cannot be used.

    Example:
        >>> env = load_environment("lake", "frozen_lake/implicit", rounds=1, num_train=2, num_eval=1)
        >>> [row["info"]["seed"] for row in env.get_dataset()]
        [0, 1]
    """
    check_choice("env", env, tuple(ENVIRONMENTS))
    plan = {"rounds": 2 if rounds is None and episodes is None else rounds, "episodes": episodes}
    return LifetimeEnv(
        ENVIRONMENTS[env], schedule, plan, num_train=num_train, num_eval=num_eval, first_seed=first_seed, **arguments
    )


class LifetimeEnv(vf.MultiTurnEnv):  # type: ignore[misc, unused-ignore]
    """An environment of verifiers whose rollout is a lifetime.

    The reward of a rollout is the mean score of its episodes; `score_PHASE`, `recovered` and `recovery_episodes` (see
    `drift_envs.integrations.lifetime.lifetime_scores`) are metrics of weight 0. A step of the trajectory has the score
    of the episode that ended with it as its reward.

    Args:
        env_id: one of the ids of this package.
        schedule: what drifts.
        plan: `rounds` or `episodes` of `TextLifetime`.
        num_train: lifetimes to train on.
        num_eval: lifetimes to evaluate on.
        first_seed: the seed of the first one.
        **arguments: those of `verifiers.MultiTurnEnv`.
    """

    def __init__(
        self,
        env_id: str,
        schedule: Source,
        plan: dict[str, int | None],
        *,
        num_train: int,
        num_eval: int,
        first_seed: int,
        **arguments: Any,
    ) -> None:
        check_integer("num_train", num_train, 1)
        check_integer("num_eval", num_eval, 1)
        check_integer("first_seed", first_seed)
        self._scheduled, self._plan = (env_id, schedule), plan
        seeds = range(first_seed, first_seed + num_train + num_eval)
        rows = [self._row(seed) for seed in seeds]
        life = self._make(first_seed)
        phases = sorted(set(life.planned), key=life.planned.index)
        life.close()
        names = [f"score_{phase}" for phase in phases]
        names += ["recovered", "recovery_episodes"] if len(phases) != 1 else []
        super().__init__(
            dataset=Dataset.from_list(rows[:num_train]),
            eval_dataset=Dataset.from_list(rows[num_train:]),
            rubric=vf.Rubric(funcs=[_reader("score"), *map(_reader, names)], weights=[1.0, *(0.0 for _ in names)]),
            **arguments,
        )

    async def setup_state(self, state: Any) -> Any:
        """Begin the lifetime of a rollout.

        Args:
            state: that of verifiers; `info` has the seed.
        """
        lines: list[dict[str, Any]] = []
        life = self._make(state["info"]["seed"], lines.append)
        dialogue = Dialogue(life)
        dialogue.open()  # the prompt of the row has this message
        state["lifetime"], state["dialogue"], state["episodes"] = life, dialogue, lines
        return state

    async def env_response(self, messages: Any, state: Any, **arguments: Any) -> Any:
        """Answer the last message of the model.

        Args:
            messages: all messages so far.
            state: that of verifiers.
            **arguments: not used.
        """
        turn = state["dialogue"].reply(_text_of(messages[-1]))
        state["trajectory"][-1]["reward"] = turn.reward
        answer = [vf.UserMessage(content=turn.message)]
        if turn.is_over:
            state["final_env_response"] = answer
        return answer

    @vf.cleanup  # type: ignore[untyped-decorator, unused-ignore]
    async def close_lifetime(self, state: Any) -> None:
        """Score what was played, and close the environment.

        Args:
            state: that of verifiers.
        """
        life = state.pop("lifetime", None)
        state.pop("dialogue", None)
        if life is not None:
            life.close()
            state["lifetime_scores"] = lifetime_scores(state["episodes"], life.planned)

    def _make(self, seed: int, keep: Callable[[dict[str, Any]], None] | None = None) -> TextLifetime:
        env_id, schedule = self._scheduled
        return TextLifetime(env_id, schedule, seed, keep, **self._plan)

    def _row(self, seed: int) -> dict[str, Any]:
        life = self._make(seed)
        opening = Dialogue(life).open()
        life.close()
        prompt = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": opening}]
        return {"prompt": prompt, "answer": "", "info": {"seed": seed}}


def _reader(name: str) -> Any:
    """A function of a rubric that reads one of the scores."""

    def read(state: Any) -> float:
        return float(state.get("lifetime_scores", {}).get(name, 0.0))

    read.__name__ = name
    return read


def _text_of(message: Any) -> str:
    """The text of a message, which is a dictionary or an object, with text or parts as its content."""
    content = message["content"] if isinstance(message, dict) else message.content
    if isinstance(content, str) or content is None:
        return content or ""
    parts = (part if isinstance(part, dict) else part.model_dump() for part in content)
    return "".join(part.get("text") or "" for part in parts)
