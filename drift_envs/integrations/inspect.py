"""Tasks for Inspect, the evaluation framework of the UK AI Security Institute; needs the extra `inspect`.

A sample is a lifetime: all episodes of all phases, one after the other, with one transcript as the model's memory.
Inspect finds the tasks by the entry point `drift_envs`: `inspect eval drift_envs/lake --model PROVIDER/MODEL`.
"""

from __future__ import annotations

from typing import Any

from drift_envs.checks import check_integer
from drift_envs.errors import needs_extra
from drift_envs.integrations.dialogue import INSTRUCTIONS, Dialogue
from drift_envs.integrations.lifetime import OWN, TextLifetime, lifetime_scores
from drift_envs.wrappers.drift import Source

with needs_extra("inspect_ai", "inspect"):
    import inspect_ai as inspect
    from inspect_ai import dataset, model, scorer, solver

ROUNDS = 5
"""Episodes of every phase, if neither `rounds` nor `episodes` is given."""

_LINES, _PLANNED = "drift_envs:episodes", "drift_envs:planned"


def drift_task(
    env_id: str,
    schedule: Source = OWN,
    *,
    rounds: int | None = None,
    episodes: int | None = None,
    samples: int = 1,
    first_seed: int = 0,
    history: int | None = None,
    name: str | None = None,
) -> Any:
    """A task of lifetimes in one environment.

    Args:
        env_id: one of the ids of this package, or with a schedule of any environment of Gymnasium.
        schedule: what drifts; by default that of the id.
        rounds: the first so many episodes of every phase are played; 5 if neither this nor `episodes` is given.
        episodes: so many episodes are played, during which time goes on.
        samples: lifetimes, each with a seed of its own.
        first_seed: the seed of the first one.
        history: the latest messages that the model sees beside the instructions; by default all.
        name: in Inspect's logs, whose metadata have the id and the schedule; by default that of the function with
            `@task` that calls this, or else `task`.

    Returns:
        Inspect's `Task`.

    Raises:
        ArgumentError: an argument breaks a rule.
        ScheduleError: the schedule cannot be used.

    Example:
        >>> task = drift_task("DriftFrozenLake-v0", "frozen_lake/implicit", rounds=2, samples=3)
        >>> [sample.metadata["seed"] for sample in task.dataset]
        [0, 1, 2]
    """
    check_integer("samples", samples, 1)
    check_integer("first_seed", first_seed)
    check_integer("history", history, 1, optional=True)
    rounds = ROUNDS if rounds is None and episodes is None else rounds
    made = []
    for seed in range(first_seed, first_seed + samples):
        # made here once, so that mistakes are refused before a model is asked
        life = TextLifetime(env_id, schedule, seed, rounds=rounds, episodes=episodes)
        life.close()
        made.append(dataset.Sample(input=INSTRUCTIONS, id=f"seed {seed}", metadata={"seed": seed}))
    full_name = life.schedule if isinstance(schedule, str) and schedule == OWN else schedule
    play = play_lifetime(env_id, full_name, rounds=rounds, episodes=episodes, history=history)
    about = {"env": env_id, "schedule": life.schedule}
    return inspect.Task(dataset=made, solver=play, scorer=lifetime_scorer(), name=name, metadata=about)


@solver.solver  # type: ignore[untyped-decorator, unused-ignore]
def play_lifetime(
    env_id: str,
    schedule: Source = OWN,
    *,
    rounds: int | None = None,
    episodes: int | None = None,
    history: int | None = None,
) -> Any:
    """Play a lifetime as a dialogue; the sample's metadata has its `seed`.

    Args:
        env_id: one of the ids of this package, or with a schedule of any environment of Gymnasium.
        schedule: what drifts.
        rounds: the first so many episodes of every phase, see `TextLifetime`.
        episodes: so many episodes.
        history: the latest messages that the model sees beside the instructions; by default all.
    """

    async def solve(state: Any, generate: Any) -> Any:
        lines: list[dict[str, Any]] = []

        def keep(line: dict[str, Any]) -> None:
            lines.append(line)
            state.store.set(_LINES, list(lines))

        life = TextLifetime(env_id, schedule, state.metadata["seed"], keep, rounds=rounds, episodes=episodes)
        state.store.set(_PLANNED, list(life.planned))
        try:
            dialogue = Dialogue(life)
            state.messages = [model.ChatMessageSystem(content=INSTRUCTIONS)]
            message, is_over = dialogue.open(), False
            asked = model.get_model()
            while not is_over:
                state.messages.append(model.ChatMessageUser(content=message))
                seen = [*state.messages[:1], *state.messages[1:][-history:]] if history else state.messages
                state.output = await asked.generate(seen)
                state.messages.append(state.output.message)
                message, _, is_over = dialogue.reply(state.output.message)
        finally:
            life.close()
        return state

    return solve


@scorer.scorer(metrics={"*": [scorer.mean(), scorer.stderr()]})  # type: ignore[untyped-decorator, unused-ignore]
def lifetime_scorer() -> Any:
    """Score by phase, and recovery, see `drift_envs.integrations.lifetime.lifetime_scores`.

    Episodes that a limit of Inspect cut away have the score 0.
    """

    async def score(state: Any, target: Any) -> Any:
        lines = state.store.get(_LINES, [])
        found = lifetime_scores(lines, state.store.get(_PLANNED, []))
        scores = " ".join(f"{line['phase']}:{line['score']:g}" for line in lines)
        return scorer.Score(value=found, explanation=f"{len(lines)} episodes: {scores}", metadata={"episodes": lines})

    return score


def _task(name: str, env_id: str) -> Any:
    """The task of one environment, under a name of Inspect's registry; `-T` gives its arguments."""

    @inspect.task(name=name)  # type: ignore[untyped-decorator, unused-ignore]
    def make(
        schedule: str = OWN,
        rounds: int | None = None,
        episodes: int | None = None,
        samples: int = 1,
        first_seed: int = 0,
        history: int | None = None,
    ) -> Any:
        return drift_task(
            env_id,
            schedule,
            rounds=rounds,
            episodes=episodes,
            samples=samples,
            first_seed=first_seed,
            history=history,
        )

    return make


lake = _task("lake", "DriftFrozenLake-v0")
car = _task("car", "DriftMountainCar-v0")
shop = _task("shop", "DriftWebShop-v0")
house = _task("house", "DriftHouse-v0")
