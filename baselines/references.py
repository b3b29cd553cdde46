"""What policies that know the environment reach: the optimum of each phase, and the best fixed policy.

* `play_plans` - the score of the optimal policy of each phase, in each phase
* `references_of` - optimum and best fixed policy over a lifetime

The best fixed policy is the best among those that are optimal in some phase of the lifetime, which bounds from below
what a policy can reach that never changes and does not remember.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from baselines.common import act, begin
from baselines.environments import BoardEnv, Knobs, Regime, schedule_of


class References(NamedTuple):
    """Mean scores over a lifetime, with each round counted alike.

    Args:
        optimum: of the optimal policy of each phase.
        fixed: of the best policy that is optimal in one of them.
    """

    optimum: float
    fixed: float


def play_plans(env: BoardEnv, phases: list[Knobs]) -> np.ndarray:
    """The score of the optimal policy of each phase, in each phase.

    Args:
        env: the environment.
        phases: P of its phases.

    Returns:
        Mean scores of the first episodes, `(P, P)`: by phase, then by policy.
    """
    params = env.compile([schedule_of([knobs], [0]) for knobs in phases])
    plans = jnp.asarray(np.array([env.plan(knobs) for knobs in phases]))
    return np.asarray(_compiled(env)(params, plans))


@lru_cache
def _compiled(env: BoardEnv) -> Any:
    """The function that plays each policy in each phase."""

    def play(params: Any, plan: Any) -> Any:
        def move(carry: Any, key: Any) -> tuple[Any, None]:
            lanes, score, is_first = carry
            lanes, seen = act(env, params, lanes, key, env.follow(plan, lanes.observation))
            score = jnp.where(is_first & (seen.done > 0), env.score(seen.ended), score)
            return (lanes, score, is_first & (seen.done == 0)), None

        first, rest = jax.random.split(jax.random.key(0))
        lanes = begin(env, first, params)
        start = (lanes, jnp.zeros(lanes.done.shape), jnp.ones(lanes.done.shape, bool))
        return jax.lax.scan(move, start, jax.random.split(rest, env.limit))[0][1].mean()

    return jax.jit(jax.vmap(jax.vmap(play, (None, 0)), (0, None)))


def references_of(scores: np.ndarray, regime: Regime) -> References:
    """Optimum and best fixed policy over a lifetime.

    Args:
        scores: from `play_plans` with the phases that the seed draws, or the first ones of them.
        regime: the regime.

    Example:
        >>> from baselines.environments import REGIMES
        >>> references_of(np.eye(2), REGIMES["late"])
        References(optimum=1.0, fixed=0.6666666666666666)
    """
    order = np.array(regime.order)
    share = np.array(regime.rounds) / regime.length
    optimum = share @ scores[order, order]
    fixed = max(share @ scores[order, policy] for policy in sorted(set(regime.order)))
    return References(float(optimum), float(fixed))
