"""Attributes of an environment by path: nested, indexed, named and private ones, without evaluating code.

* `AttributePath` - a parsed path, which reads and writes the attribute
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from drift_envs.errors import KnobError
from drift_envs.knobs import freeze, thaw

PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*|\[[^\[\]]+\])*$"
"""The form of a path, for editors; `AttributePath` checks what stands between brackets."""

_INTEGER = re.compile(r"-?[0-9]{1,9}")
_TEXT = re.compile(r"\"([^\"]+)\"|'([^']+)'")


@dataclass(frozen=True)
class AttributePath:
    """A parsed path.

    | example | what it means |
    |---|---|
    | `masspole`, `_ctrl_cost_weight` | an attribute, also a private one |
    | `model.opt.timestep` | an attribute of attributes |
    | `model.opt.gravity[2]` | an element of a list or an array; -1 is the last |
    | `model.geom_friction[:, 0]` | a part of an array; slices as in NumPy |
    | `model.body_mass["torso"]` | a key of a mapping, or the element of that name in a MuJoCo model |

    Args:
        text: the path as it is written.
        steps: attribute names (strings), and keys between brackets (tuples of integers, slices and strings).

    Example:
        >>> AttributePath.parse("model.geom_friction[:, 0]").steps
        ('model', 'geom_friction', (slice(None, None, None), 0))
        >>> AttributePath.parse("model.opt.gravity[2")
        Traceback (most recent call last):
        drift_envs.errors.KnobError: should be a path such as `model.opt.gravity[2]`. Received 'model.opt.gravity[2'
    """

    text: str
    steps: tuple[Any, ...]

    @classmethod
    def parse(cls, text: str) -> AttributePath:
        """Parse a path.

        Args:
            text: the path.

        Raises:
            KnobError: if it is none.
        """
        if not re.match(PATTERN, text):
            raise KnobError(f"should be a path such as `model.opt.gravity[2]`. Received {text!r}")
        steps: list[Any] = []
        for name, keys in re.findall(r"([A-Za-z_][A-Za-z0-9_]*)|\[([^\[\]]+)\]", text):
            if name.startswith("__"):
                raise KnobError(f"should have no names that begin with two underscores. Received {text!r}")
            steps.append(name or tuple(_parse_key(part.strip(), text) for part in keys.split(",")))
        return cls(text, tuple(steps))

    def read(self, env: Any) -> Any:
        """The value of the attribute in canonical form: arrays and lists are tuples.

        Args:
            env: the environment.

        Raises:
            KnobError: if there is no such attribute or element.
        """
        found = self._walk(env, self.steps)
        if isinstance(found, np.ndarray):
            found = found.tolist()
        elif isinstance(found, np.generic):
            found = found.item()
        return freeze(found)

    def write(self, env: Any, value: Any) -> None:
        """Set the attribute.

        Args:
            env: the environment.
            value: a canonical value; a number fills all elements of an array.
        """
        *parents, last = self.steps
        place = self._walk(env, tuple(parents))
        if isinstance(last, str):
            old = getattr(place, last)
            setattr(place, last, _like(old, value))
            return
        if isinstance(place, tuple):  # rebuilt, and written to what contains it
            items: list[Any] = list(place)
            items[last[0]] = _like(items[last[0]], value)
            AttributePath(self.text, tuple(parents)).write(env, tuple(items))
            return
        key = self._key(env, parents, place, last)
        place[key] = _like(place[key], value)

    def call(self, env: Any, value: Any) -> None:
        """Call the method at the end of the path with a value.

        Args:
            env: the environment.
            value: a canonical value.

        Raises:
            KnobError: if there is no such method.
        """
        method = self._walk(env, self.steps)
        if not callable(method):
            raise KnobError(f"`{self.text}` should be a method. Received {type(method).__name__}")
        method(thaw(value))

    def has_method(self, env: Any) -> bool:
        """Whether there is a method at the end of the path.

        Args:
            env: the environment.
        """
        try:
            return callable(self._walk(env, self.steps))
        except KnobError:
            return False

    def shows_value(self, env: Any) -> bool:
        """Whether the environment has such an attribute, and it is no method.

        Args:
            env: the environment.
        """
        try:
            return not callable(self._walk(env, self.steps))
        except KnobError:
            return False

    def own(self, env: Any) -> None:
        """Give the instance a copy of each list, mapping or array on the path that belongs to its class.

        Args:
            env: the environment.

        Raises:
            KnobError: if there is no such attribute, or it can't be written.
        """
        for depth, step in enumerate(self.steps):
            place = self._walk(env, self.steps[:depth])
            found = self._walk(env, self.steps[: depth + 1])
            is_last = depth + 1 == len(self.steps)
            if isinstance(step, str):
                shared = isinstance(found, (list, dict, np.ndarray)) and step not in getattr(place, "__dict__", {})
                if shared and any(step in vars(base) and vars(base)[step] is found for base in type(place).__mro__):
                    setattr(place, step, copy.deepcopy(found))
                if is_last and isinstance(found, np.ndarray) and found.dtype.kind not in "biuf":
                    raise KnobError(f"`{self.text}` should be an array of numbers. Received {found.dtype}")
            elif is_last and isinstance(place, np.ndarray) and not place.flags.writeable:
                raise KnobError(f"`{self.text}` should be an array that can be written. Received a read-only one")

    def _walk(self, env: Any, steps: tuple[Any, ...]) -> Any:
        found: Any = env
        for depth, step in enumerate(steps):
            if isinstance(step, str):
                if not hasattr(found, step):
                    raise KnobError(f"{type(env).__name__} has no attribute `{self.text}`{_similar(found, step)}")
                found = getattr(found, step)
            else:
                try:
                    found = found[self._key(env, list(steps[:depth]), found, step)]
                except (LookupError, TypeError, ValueError) as error:
                    raise KnobError(f"{type(env).__name__} has no element `{self.text}`: {error}") from None
        return found

    def _key(self, env: Any, parents: list[Any], place: Any, keys: tuple[Any, ...]) -> Any:
        """The key between brackets as the container takes it; names of MuJoCo's objects become indices."""
        if isinstance(place, Mapping):
            return keys[0]
        if isinstance(place, np.ndarray) and any(isinstance(key, str) for key in keys):
            owner, name = self._walk(env, tuple(parents[:-1])), str(parents[-1])
            find = getattr(owner, name.split("_")[0], None)  # `body_mass` -> `model.body("torso").id`
            if not callable(find):
                raise TypeError("the elements of this array have no names")
            keys = tuple(find(key).id if isinstance(key, str) else key for key in keys)
        return keys if len(keys) > 1 else keys[0]


def _parse_key(part: str, text: str) -> int | str | slice:
    quoted = _TEXT.fullmatch(part)
    if quoted:
        return quoted.group(1) or quoted.group(2)
    if _INTEGER.fullmatch(part):
        return int(part)
    bounds = part.split(":")
    if len(bounds) in (2, 3) and all(not bound or _INTEGER.fullmatch(bound) for bound in bounds):
        return slice(*(int(bound) if bound else None for bound in bounds))
    raise KnobError(f"should have integers, slices or quoted names in brackets. Received {part!r} in {text!r}")


def _like(old: Any, value: Any) -> Any:
    """A canonical value in the form of the present one."""
    if isinstance(old, np.ndarray):
        new = np.empty_like(old)
        new[...] = thaw(value)
        return new
    if isinstance(old, np.generic):
        return old.dtype.type(value)
    return thaw(value) if isinstance(old, (list, dict)) else value


def _similar(place: Any, name: str) -> str:
    import difflib

    close = difflib.get_close_matches(name, list(_names(place)), n=1)
    return f". Did you mean `{close[0]}`?" if close else ""


def _names(place: Any) -> Iterator[str]:
    return (name for name in dir(place) if not name.startswith("__"))
