"""Who may turn a knob that a schedule drives: the schedule alone.

* `KnobGuard` - the part of `DriftWrapper` that refuses others
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from drift_envs.errors import DrivenKnobError


class KnobGuard(gym.Wrapper):
    """Refuses to set attributes that are called like a driven knob, wherever inside of it they are.

    Set on the wrapper they would only hide the knob from whoever reads it there.
    """

    _driven: frozenset[str] = frozenset()

    def set_wrapper_attr(self, name: str, value: Any, *, force: bool = True) -> bool:
        """Set an attribute of this wrapper or of what it wraps.

        Args:
            name: the attribute.
            value: its value.
            force: whether to create it if nobody has it.

        Raises:
            DrivenKnobError: if the schedule drives that knob.
        """
        if name in self._driven:
            raise DrivenKnobError.of(name, value)
        return super().set_wrapper_attr(name, value, force=force)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute of this wrapper, unless it looks as if somebody wanted to turn a driven knob."""
        if name in self._driven:
            raise DrivenKnobError.of(name, value)
        super().__setattr__(name, value)
