"""The objects that an environment consists of, and what would be lost where one of them is replaced or copied.

An array that shares memory with another one, or a function that keeps an object in its closure, would go on with the
old one: NumPy copies a view as an array of its own, and `copy.deepcopy` returns a function as it is.

* `places` - every object, and what holds it
* `own_part`, `renew_array`, `replace_part` - replace an object wherever it stands
* `shared_arrays`, `join_arrays` - let the arrays of a copy share memory as those of the original do
* `copy_parts`, `rebind` - let the functions of a copy keep the copies of what they kept
"""

from __future__ import annotations

import copy
import functools
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, MutableMapping, MutableSequence
from dataclasses import dataclass, fields, is_dataclass, replace
from types import CellType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

_ATOMS = (type(None), bool, int, float, complex, str, bytes, range)
_CONTAINERS = (dict, list, tuple, deque, set, frozenset)
_FUNCTIONS = (FunctionType, MethodType, functools.partial, functools._lru_cache_wrapper)
_DESCRIPTIONS = ("spec", "_ezpickle_args", "_ezpickle_kwargs")
"""Attributes that say how an environment was built: they keep the objects that its constructor got."""


class Held(NamedTuple):
    """Where an object stands.

    Args:
        holder: what holds it.
        step: the attribute's name, or the key in a tuple of one; `None` in sets and functions.
        value: the object.
        way: all steps to it, `None` where a copy does not have the same ones.
        is_kept: whether a function keeps it, so that it is not copied with the environment.
    """

    holder: Any
    step: Any
    value: Any
    way: tuple[Any, ...] | None
    is_kept: bool


def places(*roots: Any) -> Iterator[Held]:
    """Every object in an environment, breadth first; each is entered once.

    Of what functions keep, only containers and other functions are entered; other environments, modules and classes
    are not.

    Args:
        *roots: the environment or its wrappers, or a dictionary of its attributes.
    """
    seen = set(map(id, roots))
    queue: deque[tuple[Any, tuple[Any, ...] | None, bool]] = deque((root, (), False) for root in roots)
    while queue:
        holder, way, is_kept = queue.popleft()
        is_kept = is_kept or isinstance(holder, _FUNCTIONS)
        for step, value in _content(holder, is_root=way == ()):
            if isinstance(value, _ATOMS):
                continue
            place = Held(holder, step, value, None if way is None or step is None else (*way, step), is_kept)
            yield place
            if id(value) not in seen and _is_entered(value, is_kept):
                seen.add(id(value))
                queue.append((value, place.way, is_kept))


def _content(holder: Any, is_root: bool) -> list[tuple[Any, Any]]:
    """What an object holds, with the steps to it."""
    if isinstance(holder, _FUNCTIONS):
        return [(None, value) for value in _kept(holder)]
    found: list[tuple[Any, Any]] = []
    if isinstance(holder, dict):
        found += [((key,), value) for key, value in holder.items()]
    elif isinstance(holder, (list, tuple, deque)):
        found += [((number,), value) for number, value in enumerate(holder)]
    elif isinstance(holder, (set, frozenset)):
        found += [(None, value) for value in holder]
    own = _attributes(holder)
    found += [(name, value) for name, value in own.items() if name not in _DESCRIPTIONS]
    if is_root and not isinstance(holder, dict):
        for one in type(holder).__mro__:  # an array of its class is read as one of its own
            found += [(name, value) for name, value in vars(one).items() if isinstance(value, np.ndarray)]
    return found


def _kept(function: Any) -> list[Any]:
    """What a function keeps: in its closure and defaults, the object that it is bound to, given arguments."""
    if isinstance(function, MethodType):
        return [function.__func__, function.__self__]
    if isinstance(function, functools.partial):
        return [function.func, *function.args, *function.keywords.values()]
    if isinstance(function, functools._lru_cache_wrapper):
        return [function.__wrapped__]
    cells = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
    return [*cells, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]


def _is_filled(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _attributes(holder: Any) -> dict[str, Any]:
    own = getattr(holder, "__dict__", None)
    return own if isinstance(own, dict) else {}


def _is_entered(value: Any, is_kept: bool) -> bool:
    if isinstance(value, (*_CONTAINERS, *_FUNCTIONS)):
        return True
    return not (is_kept or isinstance(value, (type, ModuleType, np.ndarray)) or hasattr(value, "action_space"))


# --- replacing -------------------------------------------------------------------------------------------------------


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
    new = _copy(found)
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
    _substitute(list(places(env)), {id(old): new}, lambda place: _is_own(env, place.holder, owned), owned)


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
    _substitute(found_places, news, lambda place: _is_own(env, place.holder, owned), owned)
    return news[id(found)]


def _is_own(env: Any, found: Any, owned: list[Any]) -> bool:
    """Whether no module, class or other environment can have an object of an environment."""
    if isinstance(found, np.ndarray):
        owner = _owner(found)
        return owner is None or any(owner is one for one in owned)
    return found is env or any(found is one for one in owned) or not (_may_be_shared(found) or _is_default(found, env))


def _substitute(
    found: list[Held], news: dict[int, Any], is_own: Callable[[Held], bool], owned: list[Any]
) -> Callable[[Any], Any]:
    """Put objects in the place of others; what holds them is copied before where it is not the environment's own.

    Returns:
        A function from an object to what stands in its place now.
    """
    holders = defaultdict(list)
    for place in found:
        holders[id(place.value)].append(place)
    rebuilt: dict[int, Any] = {}
    todo = list(news)
    while todo:
        for place in holders[todo.pop()]:
            holder = place.holder
            if id(holder) in news or id(holder) in rebuilt:
                continue
            if _is_fixed(holder):
                rebuilt[id(holder)] = None
            elif not is_own(place):
                news[id(holder)] = _copy(holder)
                owned.append(news[id(holder)])
            else:
                continue
            todo.append(id(holder))

    def new_of(value: Any) -> Any:
        if id(value) in rebuilt and id(value) not in news:
            _rebuild(value, new_of, news, {*news, *rebuilt})
        return news.get(id(value), value)

    for place in found:
        if (id(place.value) in news or id(place.value) in rebuilt) and not _is_fixed(place.holder):
            holder, value = new_of(place.holder), new_of(place.value)
            if isinstance(place.step, str):
                vars(holder)[place.step] = value
            elif place.step is not None:
                holder[place.step[0]] = value
    return new_of


def _is_fixed(holder: Any) -> bool:
    """Whether an object is made anew to hold something else."""
    return isinstance(holder, (tuple, *_FUNCTIONS)) or is_frozen(holder)


def is_frozen(found: Any) -> bool:
    """Whether an object is one of a frozen data class."""
    return is_dataclass(type(found)) and bool(type(found).__dataclass_params__.frozen)


def _rebuild(holder: Any, new_of: Callable[[Any], Any], news: dict[int, Any], changed: set[int]) -> None:
    """Make a tuple, frozen data class or function anew, with what stands now in the place of what it holds."""
    if isinstance(holder, FunctionType):
        _rebuild_function(holder, new_of, news, changed)
    elif isinstance(holder, MethodType):
        news[id(holder)] = MethodType(new_of(holder.__func__), new_of(holder.__self__))
    elif isinstance(holder, functools.partial):
        keywords = {name: new_of(value) for name, value in holder.keywords.items()}
        news[id(holder)] = functools.partial(new_of(holder.func), *map(new_of, holder.args), **keywords)
    elif isinstance(holder, functools._lru_cache_wrapper):
        news[id(holder)] = functools.lru_cache(**holder.cache_parameters())(new_of(holder.__wrapped__))
    elif isinstance(holder, tuple):
        items = map(new_of, holder)
        news[id(holder)] = type(holder)(*items) if hasattr(holder, "_fields") else tuple(items)
    else:
        held = {field.name: getattr(holder, field.name) for field in fields(holder) if field.init}
        news[id(holder)] = replace(holder, **{name: new_of(one) for name, one in held.items() if id(one) in changed})


def _rebuild_function(
    function: FunctionType, new_of: Callable[[Any], Any], news: dict[int, Any], changed: set[int]
) -> None:
    cells = list(function.__closure__ or ())
    filled = [cell for cell in cells if _is_filled(cell) and id(cell.cell_contents) in changed]
    for cell in filled:
        news.setdefault(id(cell), CellType())  # functions that share a variable still do
    closure = tuple(news.get(id(cell), cell) for cell in cells)
    new = FunctionType(function.__code__, function.__globals__, function.__name__, None, closure)
    news[id(function)] = new  # before its content, which may be the function
    functools.update_wrapper(new, function)
    del vars(new)["__wrapped__"]
    for cell in filled:
        news[id(cell)].cell_contents = new_of(cell.cell_contents)
    new.__defaults__ = function.__defaults__ and tuple(map(new_of, function.__defaults__))
    new.__kwdefaults__ = function.__kwdefaults__ and {
        name: new_of(value) for name, value in function.__kwdefaults__.items()
    }


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


def _copy(found: Any) -> Any:
    """A shallow copy, also of a module or a class that serves as a namespace."""
    if isinstance(found, ModuleType):
        module = ModuleType(found.__name__, found.__doc__)
        vars(module).update(vars(found))
        return module
    return type(found.__name__, (found,), {}) if isinstance(found, type) else copy.copy(found)


# --- arrays that share memory ----------------------------------------------------------------------------------------


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
            _substitute(list(places(root)), {id(found): view}, lambda place: True, [])


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


# --- functions -------------------------------------------------------------------------------------------------------


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
    return list(map(_substitute(found, news, lambda place: not place.is_kept, []), functions))
