"""L2 towards the start: regenerative regularisation (Kumar et al. 2023, arXiv:2308.11958).

The loss gets `strength * |weights - first weights|^2`, so that what no gradient holds goes back to where the network
could still learn. Departure: Adam as in the rest of PPO, with the norm of the whole gradient cut.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp


def distance_to_start(weights: Any, first: Any) -> Any:
    """The squared distance of the weights from those at the start.

    Args:
        weights: a tree of arrays.
        first: the weights at the start.
    """
    squares = jax.tree.map(lambda now, before: jnp.sum((now - before) ** 2), weights, first)
    return sum(jax.tree.leaves(squares))
