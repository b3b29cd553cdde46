"""The objects that an environment consists of: every place where one stands, and replacing them there.

* `places` - every object, and what holds it
* `substitute` - put objects in the place of others
"""

from __future__ import annotations

import copy
import functools
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from types import CellType, FunctionType, MethodType, ModuleType
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
    own = getattr(holder, "__dict__", None)
    if isinstance(own, dict):
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


def _is_entered(value: Any, is_kept: bool) -> bool:
    if isinstance(value, (*_CONTAINERS, *_FUNCTIONS)):
        return True
    return not (is_kept or isinstance(value, (type, ModuleType, np.ndarray)) or hasattr(value, "action_space"))


def substitute(
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
                news[id(holder)] = shallow_copy(holder)
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


def shallow_copy(found: Any) -> Any:
    """A shallow copy, also of a module or a class that serves as a namespace."""
    if isinstance(found, ModuleType):
        module = ModuleType(found.__name__, found.__doc__)
        vars(module).update(vars(found))
        return module
    return type(found.__name__, (found,), {}) if isinstance(found, type) else copy.copy(found)
