"""Attributes of an environment by path: nested, indexed, named and private ones, without evaluating code."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np

from drift_envs.attributes.object_graph import is_frozen
from drift_envs.attributes.shared_parts import own_part, renew_array, replace_part
from drift_envs.errors import KnobError
from drift_envs.knobs import Value, freeze, thaw

PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*|\[[^\[\]]+\])*$"
"""The form of a path, for editors; `AttributePath` checks what stands between brackets."""

_INTEGER = re.compile(r"-?[0-9]{1,9}")
_SETTINGS_OF_MODELS = ("opt", "vis", "stat")
"""Attributes of a MuJoCo model from which it derives nothing."""

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

        Raises:
            KnobError: if there is no such attribute or element.
        """
        return _canonical(self._walk(env, self.steps))

    def getter(self, env: Any) -> Callable[[Any], Any]:
        """A faster way to the attribute than `read`, for comparisons; not in canonical form."""
        *parents, last = self.steps
        if not all(isinstance(step, str) for step in parents):
            return lambda env: self._walk(env, self.steps)
        if isinstance(last, str):
            return attrgetter(".".join(self.steps))
        find: Callable[[Any], Any] = attrgetter(".".join(parents))
        key = self._key(env, parents, find(env), last)
        return lambda env: find(env)[key]

    def number_range(self, env: Any) -> tuple[float, float] | None:
        """The lowest and the highest finite number that an array, or an element of one, holds.

        `None` for what holds all numbers of a schedule.
        """
        dtype = getattr(self._walk(env, self.steps), "dtype", None)
        if not isinstance(dtype, np.dtype) or dtype.kind not in "iuf":
            return None
        if dtype.kind in "iu":
            return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        return (float(np.finfo(dtype).min), float(np.finfo(dtype).max)) if dtype.itemsize < 8 else None

    def holds_integers(self, env: Any) -> bool:
        """Whether the attribute is an integer array, or an element of one."""
        dtype = getattr(self._walk(env, self.steps), "dtype", None)
        return isinstance(dtype, np.dtype) and dtype.kind in "iu"

    def model(self, env: Any) -> Any:
        """The MuJoCo model that derives constants from the attribute; `None` where there is none."""
        found = env
        for depth, step in enumerate(self.steps):
            if type(found).__name__ == "MjModel" and step not in _SETTINGS_OF_MODELS:
                return getattr(found, "ptr", found)  # dm_control has MuJoCo's own model inside of its own
            found = self._walk(env, self.steps[: depth + 1])
        return None

    def write(self, env: Any, value: Any, owned: list[Any]) -> Value:
        """Set the attribute, after what contains it was made the environment's own, see `own_part`.

        Args:
            env: the environment.
            value: a canonical value; a number fills all elements of an array; integer arrays take it rounded.
            owned: the copies that the environment has already; new ones are appended.

        Returns:
            The canonical value in the precision of the attribute.
        """
        for depth in range(1, len(self.steps)):
            found = self._walk(env, self.steps[:depth])
            new = own_part(env, found, owned)
            now = self._walk(env, self.steps[:depth])  # a property may make a view of the new array
            if now is not new and not (isinstance(new, np.ndarray) and np.may_share_memory(now, new)):
                self._assign(env, self.steps[:depth], new, owned)
        old = self._walk(env, self.steps)
        new = _like(old, value)
        if isinstance(old, np.ndarray) and self._is_held(env):
            renew_array(env, old, owned)[...] = new  # the old one may be an observation that an agent has kept
        else:
            self._assign(env, self.steps, new, owned)
        return _canonical(new)

    def _is_held(self, env: Any) -> bool:
        """Whether the attribute is one of a plain object, and no property."""
        place, last = self._walk(env, self.steps[:-1]), self.steps[-1]
        return isinstance(last, str) and last in getattr(place, "__dict__", ()) and not is_frozen(place)

    def _assign(self, env: Any, steps: tuple[Any, ...], new: Any, owned: list[Any]) -> None:
        """Put an object at a path; a tuple or a frozen data class on the way is made anew, and put where it was."""
        *parents, last = steps
        place = self._walk(env, tuple(parents))
        if is_frozen(place):
            rebuilt = replace(place, **{last: new})
            replace_part(env, place, rebuilt, owned)
        elif isinstance(place, tuple) and isinstance(last, str):
            rebuilt = place._replace(**{last: new})  # type: ignore[attr-defined]
        elif isinstance(place, tuple):
            items: list[Any] = list(place)
            items[last[0]] = new
            rebuilt = type(place)(*items) if hasattr(place, "_fields") else tuple(items)
        else:
            if isinstance(last, str):
                setattr(place, last, new)
            else:
                place[self._key(env, parents, place, last)] = new
            return
        if self._walk(env, tuple(parents)) is not rebuilt:
            self._assign(env, tuple(parents), rebuilt, owned)

    def call(self, env: Any, value: Any) -> None:
        """Call the method at the end of the path with a value.

        Raises:
            KnobError: if there is no such method.
        """
        method = self._walk(env, self.steps)
        if not callable(method):
            raise KnobError(f"`{self.text}` should be a method. Received {type(method).__name__}")
        method(thaw(value))

    def has_method(self, env: Any) -> bool:
        """Whether there is a method at the end of the path."""
        try:
            return callable(self._walk(env, self.steps))
        except KnobError:
            return False

    def shows_value(self, env: Any) -> bool:
        """Whether the environment has such an attribute, and it is no method."""
        try:
            return not callable(self._walk(env, self.steps))
        except KnobError:
            return False

    def check(self, env: Any) -> None:
        """Check that the attribute can be read and, if it is an array, written.

        Raises:
            KnobError: if there is no such attribute, or it can't be written.
        """
        found = self._walk(env, self.steps)
        place = self._walk(env, self.steps[:-1])
        if isinstance(last := self.steps[-1], str):
            kind = getattr(type(place), last, None)
            if isinstance(kind, property) and kind.fset is None:
                raise KnobError(f"`{self.text}` should be an attribute that can be set. Received a read-only property")
            if isinstance(found, np.ndarray) and found.dtype.kind not in "biuf":
                raise KnobError(f"`{self.text}` should be an array of numbers. Received {found.dtype}")
        elif isinstance(place, np.ndarray) and not place.flags.writeable:
            raise KnobError(f"`{self.text}` should be an array that can be written. Received a read-only one")

    def _walk(self, env: Any, steps: tuple[Any, ...]) -> Any:
        found: Any = env
        for depth, step in enumerate(steps):
            if isinstance(step, str):
                try:
                    found = getattr(found, step)
                except AttributeError:
                    import difflib

                    close = difflib.get_close_matches(step, [one for one in dir(found) if not one.startswith("__")], 1)
                    similar = f". Did you mean `{close[0]}`?" if close else ""
                    raise KnobError(f"{type(env).__name__} has no attribute `{self.text}`{similar}") from None
                except Exception as error:  # of a property of the environment
                    kind = type(error).__name__
                    raise KnobError(f"`{self.text}` of {type(env).__name__} can't be read: {kind}: {error}") from error
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


def _canonical(found: Any) -> Value:
    """The canonical form of an attribute's value."""
    if isinstance(found, np.ndarray):
        found = found.tolist()
    elif isinstance(found, np.generic):
        found = found.item()
    return freeze(found)


def _like(old: Any, value: Any) -> Any:
    """A canonical value in the form of the present one."""
    if isinstance(old, np.ndarray):
        new = np.empty_like(old)
        new[...] = thaw(round_numbers(value) if old.dtype.kind in "iu" else value)
        return new
    if isinstance(old, np.generic):
        return old.dtype.type(round_numbers(value) if old.dtype.kind in "iu" else value)
    return thaw(value) if isinstance(old, (list, dict)) else value


def round_numbers(value: Any) -> Any:
    """A number or nested tuple of numbers, rounded to integers, halves to even."""
    return tuple(map(round_numbers, value)) if isinstance(value, tuple) else round(value)
