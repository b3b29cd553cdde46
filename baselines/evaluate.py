"""Plays any learner on the lifetimes of the board: `python -m baselines.evaluate my_agent:make`.

* `main` - runs the command and returns its exit status
* `OnlineAgent` - what `make` returns, if it is no model of Stable-Baselines3
* `evaluate` - plays lifetimes and returns the lines of a row

`make(env_params, key)` gets what a learner may know before it starts (`baselines.host.EnvParams`) and an integer to
seed it with. It returns an `OnlineAgent`, or a model of Stable-Baselines3, which then learns for a lifetime. Instead of
a function the name may be a class of such models, such as `stable_baselines3:PPO`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from baselines.exit_status import run
from drift_envs.errors import ArgumentError
from drift_envs.utils.command_line import Debug, make_app
from drift_envs.utils.lazy import find_callable

if TYPE_CHECKING:  # they need the extra, and without it `run` says so
    import numpy as np
    import pandas as pd

    from baselines.host import EnvParams, HostLifetime, StepResult

PROGRAM = "python -m baselines.evaluate"

app = make_app(
    "Play a learner of your own on the lifetimes of the board.",
    f"{PROGRAM} stable_baselines3:PPO --environment cart_pole --regime recurring --seeds 2",
    completion=False,
)


class OnlineAgent(Protocol):
    """An agent that acts and learns at each step, in all lanes together."""

    def act(self, step: StepResult) -> np.ndarray:
        """The next actions, one for each lane; the first call has rewards of 0."""


Maker = Callable[["EnvParams", int], Any]


def play_lifetime(make: Maker, lifetime: HostLifetime, key: int) -> np.ndarray:
    """Play a lifetime: the score of each round, `(rounds,)`."""
    from baselines.host import make_params

    params = make_params(lifetime)
    agent = _model_of(make, params, key)
    if hasattr(agent, "act"):
        step = lifetime.start()
        for _ in range(lifetime.length):
            step = lifetime.step(agent.act(step))
    else:
        from baselines import sb3

        if not sb3.is_model(agent):
            raise ArgumentError(
                "`make` should return an object with `act(step)` or a model of Stable-Baselines3. "
                f"Received {type(agent).__name__}"
            )
        sb3.learn(agent, params)
    return lifetime.scores


def _model_of(make: Maker, params: EnvParams, key: int) -> Any:
    if isinstance(make, type) and make.__module__.startswith("stable_baselines3"):
        from baselines import sb3

        if sb3.is_model_class(make):
            return make("MlpPolicy", params.vec_env, seed=key, device="cpu")
    return make(params, key)


def evaluate(
    make: Maker,
    label: str,
    environment: str,
    regime: str,
    seeds: int,
    report: Callable[[int, float], None] = lambda seed, score: None,
) -> pd.DataFrame:
    """Play the first lifetimes of a cell.

    Args:
        make: see the module.
        label: the row's name.
        environment: the environment.
        regime: the regime.
        seeds: how many lifetimes.
        report: gets the seed and the mean score after the first drift; return values are ignored.

    Returns:
        Lines as those of the board.

    Raises:
        ArgumentError: if there is no such environment or regime, or `make` returns something else.
    """
    import pandas as pd

    from baselines.board import bin_scores, lines_of
    from baselines.environments import REGIMES
    from baselines.host import HostLifetime
    from baselines.measures import after_drift, make_cells

    if regime not in REGIMES:
        raise ArgumentError(f"`regime` should be one of {', '.join(REGIMES)}. Received {regime!r}")
    parts = []
    for seed in range(seeds):
        scores = play_lifetime(make, HostLifetime(environment, REGIMES[regime], seed), seed)
        parts.append(lines_of(label, environment, REGIMES[regime], [seed], bin_scores(scores[None], REGIMES[regime])))
        (cell,) = make_cells(parts[-1]).values()
        report(seed, float(after_drift(cell)[0]))
    return pd.concat(parts, ignore_index=True)


@app.command(epilog=f"Example: {PROGRAM} my_agent:make --environment holes --regime rush --out my_agent.parquet")
def _evaluate(
    agent: Annotated[str, typer.Argument(metavar="MODULE:NAME", help="A function `make(env_params, key)` or a class.")],
    environment: Annotated[str, typer.Option(help="corners, holes, cart_pole or mountain_car.")] = "corners",
    regime: Annotated[str, typer.Option(help="none, late, recurring, rush or forty.")] = "recurring",
    seeds: Annotated[int, typer.Option(min=1, max=30, help="Lifetimes; the board has 30.")] = 3,
    name: Annotated[str | None, typer.Option(help="The row's name (default: the agent's).")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Parquet file of the lines.")] = None,
    debug: Debug = False,
) -> None:
    """Play a learner of your own on the lifetimes of the board.

    `python -m baselines table --join FILE` shows its row beside the others.
    """
    from baselines.measures import after_drift, make_cells
    from drift_envs.metrics import bootstrap

    label = name or agent
    lines = evaluate(
        find_callable("agent", agent),
        label,
        environment,
        regime,
        seeds,
        lambda seed, score: print(f"seed {seed}: {score:.3f}", flush=True),
    )
    (cell,) = make_cells(lines).values()
    print(f"{label}, {environment}, {regime}, score after the first drift: {bootstrap(after_drift(cell))}")
    if out is not None:
        lines.to_parquet(out, index=False)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status, as `python -m baselines`."""
    return run(app, PROGRAM, arguments)


if __name__ == "__main__":
    sys.exit(main())
