"""Parts that an environment shares with others, or that share something among themselves.

What others may share is copied before a knob is set in it. A copy of an environment has to share within itself what
the original does: NumPy copies a view as an array of its own, and `copy.deepcopy` returns a function as it is, which
would go on with the old object.

* `own_part`, `renew_array`, `replace_part` - replace an object wherever it stands
* `shared_arrays`, `join_arrays` - let the arrays of a copy share memory as those of the original do
* `copy_parts`, `rebind` - let the functions of a copy keep the copies of what they kept
"""

from __future__ import annotations

import copy
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, MutableMapping, MutableSequence
from dataclasses import dataclass, is_dataclass
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from drift_envs.attributes.object_graph import is_frozen, places, shallow_copy, substitute

# --- parts that others may have ---------------------------------------------------------------------------------------


def own_part(env: Any, found: Any, owned: list[Any]) -> Any:
    """Give an environment a copy of an object that others may share, wherever it stands in it.

    Dictionaries, lists, arrays and the like are always copied, since a default configuration may be everywhere:
    in a module, a class, an argument's default, the specification, another environment. Other objects are copied
    if a module or a class of the environment has them.

    Args:
        env: the environment.
        found: the object.
        owned: the copies that it has already; new ones are appended.

    Returns:
        The copy, or the object itself if it is the environment's own.
    """
    if _is_own(env, found, owned):
        return found
    if isinstance(found, np.ndarray):
        return renew_array(env, found, owned)
    new = shallow_copy(found)
    owned.append(new)
    replace_part(env, found, new, owned)
    return new


def replace_part(env: Any, old: Any, new: Any, owned: list[Any]) -> None:
    """Let all parts of an environment that have an object have another one instead.

    Other environments, and what belongs to modules and classes, are left alone.

    Args:
        env: the environment.
        old: the object.
        new: the other one.
        owned: the copies that the environment has; those of what holds the object are appended.
    """
    substitute(list(places(env)), {id(old): new}, lambda place: _is_own(env, place.holder, owned), owned)


def renew_array(env: Any, found: np.ndarray, owned: list[Any]) -> np.ndarray:
    """Replace an array of an environment by a copy, together with all arrays in it that share its memory.

    Args:
        env: the environment.
        found: the array; it may be a view that the environment makes at each access.
        owned: the copies that the environment has; the new one is appended.

    Returns:
        The new array. An array whose memory belongs to something else, such as MuJoCo, is returned as it is.
    """
    owner = _owner(found)
    if owner is None:
        return found
    found_places = list(places(env))
    arrays = [one.value for one in found_places if _is_array(one.value) and _owner(one.value) is owner]
    near = next(group for group in _overlapping([*arrays, found]) if any(one is found for one in group))
    host = _host(near, owner)
    new = np.array(host, order="K", subok=True)
    news = {id(one): _View.of(one, host).on(new) for one in near if one is not host}
    news[id(host)] = new
    owned[:] = [one for one in owned if one is not host]
    owned.append(new)
    substitute(found_places, news, lambda place: _is_own(env, place.holder, owned), owned)
    return news[id(found)]


def _is_own(env: Any, found: Any, owned: list[Any]) -> bool:
    """Whether no module, class or other environment can have an object of an environment."""
    if isinstance(found, np.ndarray):
        owner = _owner(found)
        return owner is None or any(owner is one for one in owned)
    return found is env or any(found is one for one in owned) or not (_may_be_shared(found) or _is_default(found, env))


def _may_be_shared(found: Any) -> bool:
    """Whether an object is of a kind in which configurations are handed around."""
    kinds = (MutableMapping, MutableSequence, SimpleNamespace, ModuleType, type)
    return isinstance(found, kinds) or (is_dataclass(found) and not is_frozen(found))


def _is_default(found: Any, env: Any) -> bool:
    """Whether a module or a class of the environment, or a default of its constructor, has this very object."""
    if isinstance(found, (tuple, np.generic)) or is_frozen(found):
        return False
    classes = {*type(env).__mro__, *type(found).__mro__} - {object}
    spaces: list[Iterator[Any]] = []
    for one in classes:
        spaces.append(iter(vars(one).values()))
        constructor = vars(one).get("__init__")
        if isinstance(constructor, FunctionType):
            spaces.append(iter((*(constructor.__defaults__ or ()), *(constructor.__kwdefaults__ or {}).values())))
    for module in {one.__module__ for one in classes} - {"builtins", "gymnasium.core", "typing", "abc"}:
        content = list(vars(sys.modules[module]).values()) if module in sys.modules else []
        spaces.append(iter(content))
        spaces += [iter(list(vars(one).values())) for one in content if isinstance(one, ModuleType)]
    return any(one is found for space in spaces for one in space)


# --- arrays that share memory -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _View:
    """An array as a part of another one's memory."""

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    is_writeable: bool

    @classmethod
    def of(cls, view: np.ndarray, host: np.ndarray) -> _View:
        return cls(_start(view) - _start(host), view.shape, view.strides, view.dtype, view.flags.writeable)

    def on(self, host: np.ndarray) -> np.ndarray:
        """The same part of the memory of another array."""
        view: np.ndarray = np.ndarray(self.shape, self.dtype, host.ravel(order="K"), self.offset, self.strides)
        view.flags.writeable = self.is_writeable
        return view


@dataclass(frozen=True)
class SharedArray:
    """An array that shares memory with others.

    Args:
        way: the steps to it.
        host: the steps to the array that has all of that memory, or that array itself where it stands nowhere.
        layout: shape, strides and type of the latter.
        view: the array as a part of it.
    """

    way: tuple[Any, ...]
    host: tuple[Any, ...] | np.ndarray
    layout: tuple[Any, ...]
    view: _View


def shared_arrays(root: Any) -> list[SharedArray]:
    """The arrays of an environment that share memory.

    Args:
        root: the environment, or a dictionary of its attributes.
    """
    owners: dict[int, np.ndarray] = {}
    ways: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    arrays: dict[int, list[np.ndarray]] = defaultdict(list)
    for place in places(root):
        owner = _owner(place.value) if _is_array(place.value) else None
        if owner is not None and place.way is not None and not place.is_kept:
            owners[id(owner)] = owner
            ways[id(place.value)].append(place.way)
            arrays[id(owner)].append(place.value)
    found = []
    for key, owner in owners.items():
        for group in _overlapping(arrays[key]) if len(arrays[key]) > 1 else ():
            host = _host(group, owner)
            at = ways[id(host)][0] if id(host) in ways else host
            found += [
                SharedArray(way, at, _layout(host), _View.of(one, host))
                for one in group
                if one is not host
                for way in ways[id(one)]
            ]
    return found


def join_arrays(root: Any, shared: Iterable[SharedArray]) -> None:
    """Let the arrays of a copy share memory as those of the original do. No number changes.

    Args:
        root: the copy.
        shared: a copy of what `shared_arrays` gave for the original.
    """
    for one in shared:
        found = _find(root, one.way)
        host = one.host if isinstance(one.host, np.ndarray) else _find(root, one.host)
        if not (_is_array(host) and _is_array(found)) or _layout(host) != one.layout:
            continue  # its constructor has made it otherwise
        view = one.view.on(host)
        if not np.may_share_memory(found, host) and found.tobytes() == view.tobytes() and found.shape == view.shape:
            substitute(list(places(root)), {id(found): view}, lambda place: True, [])


def _find(root: Any, way: tuple[Any, ...]) -> Any:
    """The object at the end of a way, `None` if there is none."""
    for step in way:
        try:
            root = getattr(root, step) if isinstance(step, str) else root[step[0]]
        except (AttributeError, LookupError, TypeError):
            return None
    return root


def _is_array(found: Any) -> bool:
    return isinstance(found, np.ndarray) and found.size > 0 and not found.dtype.hasobject


def _owner(array: np.ndarray) -> np.ndarray | None:
    """The array whose memory it is; `None` if it belongs to something that is no array."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    # the base of an unpickled array is its text
    return array if array.base is None or isinstance(array.base, (bytes, bytearray, memoryview)) else None


def _overlapping(arrays: list[np.ndarray]) -> list[list[np.ndarray]]:
    """The arrays of one memory in groups, each of which lies apart from the others."""
    groups: list[list[np.ndarray]] = []
    end = 0
    for array in sorted({id(one): one for one in arrays}.values(), key=lambda one: _range(one)[0]):
        low, high = _range(array)
        if not groups or low >= end:
            groups.append([])
        groups[-1].append(array)
        end = max(end, high)
    return groups


def _host(arrays: list[np.ndarray], owner: np.ndarray) -> np.ndarray:
    """The array that has all memory of some: the largest of them, or the owner of the memory."""
    if len(arrays) == 1:
        return arrays[0]
    host = max(arrays, key=lambda one: (one.flags.forc, one.nbytes, one is owner))
    low, high = _range(host)
    return host if host.flags.forc and all(low <= a and b <= high for a, b in map(_range, arrays)) else owner


def _start(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def _range(array: np.ndarray) -> tuple[int, int]:
    """The first address of an array, and the one after the last."""
    ends = [(length - 1) * stride for length, stride in zip(array.shape, array.strides, strict=True)]
    start = _start(array)
    return start + sum(min(end, 0) for end in ends), start + sum(max(end, 0) for end in ends) + array.itemsize


def _layout(array: np.ndarray) -> tuple[Any, ...]:
    return array.shape, array.strides, array.dtype


# --- functions that keep objects --------------------------------------------------------------------------------------


def copy_parts(parts: dict[str, Any], memo: dict[int, Any]) -> dict[str, Any]:
    """A deep copy of attributes, in which arrays share memory and functions keep the copies of what they kept.

    Args:
        parts: the attributes.
        memo: as of `copy.deepcopy`.
    """
    made, shared = copy.deepcopy((parts, shared_arrays(parts)), memo)
    join_arrays(made, shared)
    rebind([made], memo)
    return made


def rebind(roots: Iterable[Any], memo: dict[int, Any]) -> list[Any]:
    """Let the functions of a copy keep the copies of what they kept.

    Args:
        roots: the copy and its wrappers.
        memo: what `copy.deepcopy` has filled.

    Returns:
        The functions of the copy.
    """
    found = list(places(*roots))
    news = {id(one.value): memo[id(one.value)] for one in found if one.is_kept and id(one.value) in memo}
    functions = [one.value for one in found if isinstance(one.value, FunctionType)]
    if not news:
        return functions
    return list(map(substitute(found, news, lambda place: not place.is_kept, []), functions))
