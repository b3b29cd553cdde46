"""`info` in Gymnasium's vector form: for every key an array, and under `_key` whose entry counts.

* `DriftInfos` - what `notify` tells about the drift
* `merged` - information of some sub-environments over that of others
* `finals` - what `SameStep` hands over about episodes that ended
"""

from __future__ import annotations

from typing import Any

import numpy as np

Infos = dict[str, Any]


class DriftInfos:
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
        if not self._is_full:
            return {"drift": {"changed": changed, "_changed": mask.copy()}, "_drift": mask.copy()}
        infos: Infos = {}
        for index in mask.nonzero()[0].tolist():
            state = vector.envs[index].drift_state
            news = {
                "phase": state.phase,
                "tick": state.tick,
                "changed": bool(changed[index]),
                "knobs": dict(state.knobs),
            }
            infos = vector._add_info(infos, {"drift": news}, index)
        return infos


def merged(infos: Infos, others: Infos, mask: np.ndarray) -> Infos:
    """Information of some sub-environments over that of others.

    Args:
        infos: information of all.
        others: information of those in the mask.
        mask: booleans of shape `(N,)`.

    Example:
        >>> last = np.array([False, True])
        >>> merged({"a": np.array([1, 2]), "_a": np.array([True, True])}, {"a": np.array([8, 9]), "_a": last}, last)
        {'a': array([1, 9]), '_a': array([ True,  True])}
    """
    found = _only(infos, ~mask)
    for key, value in others.items():
        old = found.get(key)
        if isinstance(value, dict):
            found[key] = merged(old or {}, value, mask)
        else:
            found[key] = value if old is None else np.where(mask, value, old)
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
    """The information of some sub-environments, without the keys of which none of them has an entry."""
    found: Infos = {}
    for key, value in infos.items():
        if not key.startswith("_"):
            whose = infos[f"_{key}"] & mask
            if whose.any():
                found[key] = _only(value, mask) if isinstance(value, dict) else value.copy()
                found[f"_{key}"] = whose
    return found
