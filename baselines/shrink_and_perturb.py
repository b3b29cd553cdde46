"""Shrink and Perturb (Ash and Adams 2020, arXiv:1910.08475): weights shrink, and fresh random weights are added.

After each round every weight becomes `shrink * weight + noise * fresh`, where `fresh` comes from the distribution of
the first weights. Departure: the paper does this when new data arrives for supervised learning; here it is done
after each round, as in the non-stationary experiments of Dohare et al. 2024. Adam's moments stay.
"""

from __future__ import annotations

from typing import Any

import jax


def shrink_and_perturb(weights: Any, fresh: Any, shrink: Any, noise: Any) -> Any:
    """The weights after a round.

    Args:
        weights: a tree of arrays.
        fresh: random weights from the distribution of the first ones.
        shrink: in [0, 1]; 1 and no `noise` leave the weights as they are.
        noise: the factor of the fresh weights.
    """
    return jax.tree.map(lambda old, new: shrink * old + noise * new, weights, fresh)
