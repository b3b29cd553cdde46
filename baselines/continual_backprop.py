"""Continual Backprop (Dohare et al. 2024, doi:10.1038/s41586-024-07711-7): units of little use are made anew.

A hidden unit's utility is a running mean of its absolute output times the sum of its absolute outgoing weights. Units
older than `MATURITY` rounds collect a right to be replaced, at the replacement rate; once it exceeds one unit in a
layer, the mature unit with the lowest utility gets fresh incoming weights, outgoing weights of zero and no moments.
Departures: utility is the paper's contribution utility without its correction by the mean output; it is updated once
a round of learning, not with each gradient step, and so at most one unit a layer is replaced in a round.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

MATURITY = 10
"""Rounds before a unit may be replaced."""
DECAY = 0.9
"""Of the running mean of the utility, for each round."""


class Units(NamedTuple):
    """What is known of the hidden units of a network with L hidden layers of equal width.

    Args:
        utility: the running mean, `(L, width)`.
        age: rounds since a unit was made, `(L, width)`.
        due: units that may be replaced, `(L,)`.
    """

    utility: Any
    age: Any
    due: Any


def make_units(layers: int, width: int) -> Units:
    """Units that are all new."""
    return Units(jnp.zeros((layers, width)), jnp.zeros((layers, width)), jnp.zeros(layers))


def replace_units(
    trees: tuple[Any, Any, Any], units: Units, hidden: list[Any], fresh: Any, rate: Any
) -> tuple[tuple[Any, Any, Any], Units]:
    """Replace units of one network, at most one in each hidden layer.

    Args:
        trees: the weights and both moments of Adam, each a list of layers with `w` and `b`.
        units: what is known of the units.
        hidden: what each hidden layer gave for a round, `(..., width)`.
        fresh: random weights of the same shapes.
        rate: the replacement rate, in units a unit and round.
    """
    weights, first, second = ([dict(layer) for layer in tree] for tree in trees)
    utilities, ages, dues = [], [], []
    for index, values in enumerate(hidden):
        outgoing = jnp.abs(weights[index + 1]["w"]).sum(1)
        used = jnp.abs(values).mean(tuple(range(values.ndim - 1))) * outgoing
        utility = DECAY * units.utility[index] + (1 - DECAY) * used
        age = units.age[index] + 1
        is_mature = age > MATURITY
        due = units.due[index] + rate * is_mature.sum()
        chosen = jnp.argmin(jnp.where(is_mature, utility, jnp.inf))
        goes = (jax.nn.one_hot(chosen, len(age)) > 0) & (due >= 1) & is_mature.any()
        for tree, made in ((weights, fresh[index]), (first, None), (second, None)):
            incoming, bias = (made["w"], made["b"]) if made else (0.0, 0.0)
            tree[index]["w"] = jnp.where(goes, incoming, tree[index]["w"])
            tree[index]["b"] = jnp.where(goes, bias, tree[index]["b"])
            tree[index + 1]["w"] = jnp.where(goes[:, None], 0.0, tree[index + 1]["w"])
        utilities.append(jnp.where(goes, utility.mean(), utility))
        ages.append(jnp.where(goes, 0.0, age))
        dues.append(due - goes.any())
    return (weights, first, second), Units(jnp.stack(utilities), jnp.stack(ages), jnp.stack(dues))
