"""`info` in Gymnasium's vector form: for every key an array, and under `_key` whose entry counts.

* `News` - what `notify` tells about the drift
* `merged` - information of some sub-environments over that of others
* `finals` - what `SameStep` hands over about episodes that ended
"""

from __future__ import annotations

from typing import Any

import numpy as np

Infos = dict[str, Any]


class News:
    """What `notify` tells about the drift, the same keys at every step.

    Args:
        vector: the `DriftVectorEnv`.
        notify: `change` or `full`.
    """

    def __init__(self, vector: Any, notify: str) -> None:
        self._vector, self._is_full = vector, notify == "full"
        self._told: dict[str, np.ndarray] = {}

    def forget(self, indices: np.ndarray) -> None:
        """Take what holds at the beginning as known.

        Args:
            indices: the sub-environments whose schedule starts from its beginning.
        """
        for name, values in self._vector.flow.columns.items():
            self._told.setdefault(name, values.copy())[indices] = values[indices]

    def tell(self, mask: np.ndarray) -> Infos:
        """The news of some sub-environments.

        Args:
            mask: which, booleans of shape `(N,)`.
        """
        vector = self._vector
        changed = np.zeros(vector.num_envs, bool)
        for name, values in vector.flow.columns.items():
            changed |= values != self._told[name]
            np.copyto(self._told[name], values, where=mask)
        changed &= mask
        news: Infos = {"changed": changed}
        if self._is_full:
            states = [env.drift_state for env in vector.envs]
            news = {
                "phase": np.array([state.phase for state in states], object),
                "tick": np.array([state.tick for state in states]),
                "changed": changed,
                "knobs": {name: _array([state.knobs[name] for state in states]) for name in states[0].knobs},
            }
            news["knobs"].update({f"_{name}": mask.copy() for name in states[0].knobs})
        news.update({f"_{name}": mask.copy() for name in list(news)})
        return {"drift": news, "_drift": mask.copy()}


def _array(values: list[Any]) -> np.ndarray:
    """Values of all sub-environments, as objects where they are no numbers."""
    if isinstance(values[0], (int, float)):
        return np.array(values)
    found = np.empty(len(values), object)
    found[:] = values
    return found


def merged(infos: Infos, others: Infos, mask: np.ndarray) -> Infos:
    """Information of some sub-environments over that of others.

    Args:
        infos: information of all.
        others: information of those in the mask.
        mask: booleans of shape `(N,)`.

    Example:
        >>> last = np.array([False, True])
        >>> merged({"a": np.array([1, 2])}, {"a": np.array([8, 9])}, last)
        {'a': array([1, 9])}
    """
    found = dict(infos)
    for key, value in others.items():
        old = infos.get(key)
        if isinstance(value, dict):
            found[key] = merged(old or {}, value, mask)
        elif old is None:
            found[key] = value
        else:
            found[key] = np.where(mask, value, old)
    return found


def finals(infos: Infos, observations: np.ndarray, ended: np.ndarray) -> Infos:
    """What `SameStep` hands over about episodes that ended.

    Args:
        infos: the information of the step.
        observations: the last observations.
        ended: whose episode ended, booleans of shape `(N,)`.

    Returns:
        `final_obs`, an array of objects, and `final_info`.
    """
    last = np.full(len(ended), None, object)
    for index in ended.nonzero()[0].tolist():
        last[index] = observations[index]
    return {
        "final_obs": last,
        "_final_obs": ended.copy(),
        "final_info": _only(infos, ended),
        "_final_info": ended.copy(),
    }


def _only(infos: Infos, mask: np.ndarray) -> Infos:
    """The information of some sub-environments; the entries of others don't count."""
    found: Infos = {}
    for key, value in infos.items():
        if isinstance(value, dict):
            found[key] = _only(value, mask)
        else:
            found[key] = value & mask if key.startswith("_") else value.copy()
    return found
