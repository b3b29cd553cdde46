"""`info` of a vector environment, in Gymnasium's vector form.

* `DriftInfos` - the part under `drift`, according to `notify`
* `merge_infos` - the `info` of some sub-environments over that of all
* `final_infos` - the observations and `info` of ended episodes, for the autoreset mode `SameStep`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from drift_envs.vector.dynamics import Infos
from drift_envs.vector.knob_pool import Columns
from drift_envs.vector.sub_environment import SubEnvironment


class DriftInfos:
    """The part of `info` under `drift`, with the same keys at each step.

    Args:
        columns: the current knob values, shape `(N,)` each.
        envs: the N sub-environments.
        notify: `change` or `full`.
        add_info: writes the `info` of one sub-environment into that of all, as `VectorEnv._add_info`.
    """

    def __init__(
        self,
        columns: Columns,
        envs: Sequence[SubEnvironment],
        notify: str,
        add_info: Callable[[Infos, Infos, int], Infos],
    ) -> None:
        self._columns, self._envs, self._is_full, self._add_info = columns, envs, notify == "full", add_info
        self._reported: dict[str, np.ndarray] = {}

    def rewind(self, indices: np.ndarray) -> None:
        """Take the current values as reported, in sub-environments whose schedule is rewound."""
        for name, values in self._columns.items():
            self._reported.setdefault(name, values.copy())[indices] = values[indices]

    def collect(self, mask: np.ndarray) -> Infos:
        """Report the sub-environments of a mask, booleans of shape `(N,)`."""
        changed = np.zeros(len(self._envs), bool)
        for name, values in self._columns.items():
            changed |= values != self._reported[name]
            np.copyto(self._reported[name], values, where=mask)
        changed &= mask
        if not self._is_full:
            return {"drift": {"changed": changed, "_changed": mask.copy()}, "_drift": mask.copy()}
        infos: Infos = {}
        for index in mask.nonzero()[0].tolist():
            state = self._envs[index].drift_state
            drift = {
                "phase": state.phase,
                "tick": state.tick,
                "changed": bool(changed[index]),
                "knobs": dict(state.knobs),
            }
            infos = self._add_info(infos, {"drift": drift}, index)
        return infos


def merge_infos(infos: Infos, others: Infos, mask: np.ndarray) -> Infos:
    """Replace the `info` of the sub-environments of a mask.

    Args:
        infos: the `info` of all.
        others: the `info` of those in the mask.
        mask: booleans of shape `(N,)`.

    Example:
        >>> last = np.array([False, True])
        >>> both = {"a": np.array([1, 2]), "_a": np.array([True, True])}
        >>> merge_infos(both, {"a": np.array([8, 9]), "_a": last}, last)
        {'a': array([1, 9]), '_a': array([ True,  True])}
    """
    found = _select(infos, ~mask)
    for key, value in others.items():
        old = found.get(key)
        if isinstance(value, dict):
            found[key] = merge_infos(old or {}, value, mask)
        else:
            found[key] = value if old is None else np.where(mask, value, old)
    return found


def final_infos(infos: Infos, observations: np.ndarray, ended: np.ndarray) -> Infos:
    """The last observations and `info` of ended episodes, as the mode `SameStep` returns them.

    Args:
        infos: the `info` of the step.
        observations: the observations of the step.
        ended: whether the episode has ended, booleans of shape `(N,)`.

    Returns:
        `final_obs`, an array of objects, and `final_info`.
    """
    last = np.full(len(ended), None, object)
    for index in ended.nonzero()[0].tolist():
        last[index] = observations[index]
    return {
        "final_obs": last,
        "_final_obs": ended.copy(),
        "final_info": _select(infos, ended),
        "_final_info": ended.copy(),
    }


def _select(infos: Infos, mask: np.ndarray) -> Infos:
    """The `info` of the sub-environments of a mask, without keys that are valid for none of them."""
    found: Infos = {}
    for key, value in infos.items():
        if not key.startswith("_"):
            valid = infos[f"_{key}"] & mask
            if valid.any():
                found[key] = _select(value, mask) if isinstance(value, dict) else value.copy()
                found[f"_{key}"] = valid
    return found
