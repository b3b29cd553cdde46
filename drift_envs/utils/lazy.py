"""Packages whose names are imported at first use (PEP 562).

* `load_object` - the object that a string `module:name` stands for
* `find_callable` - the same for a name that a user gives
* `lazy_names` - the module-level `__getattr__` and `__dir__` of such a package
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

from drift_envs.errors import UnknownChoiceError


def load_object(reference: str, home: str | None = None) -> Any:
    """Import the object that a string `module:name` stands for; `.module:name` stands in the package `home`.

    Example:
        >>> load_object("drift_envs.errors:ArgumentError").__name__
        'ArgumentError'
    """
    module, _, name = reference.partition(":")
    return getattr(import_module(module, home), name)


def find_callable(argument: str, reference: str) -> Any:
    """The function or class that a user names; the present folder is searched last, so that it hides no module.

    Args:
        argument: the name of the argument, as the message shows it.
        reference: as `module:name`.

    Raises:
        UnknownChoiceError: if there is no such module or name, or it cannot be called.

    Example:
        >>> find_callable("detector", "drift_envs.utils.lazy:find_callable").__name__
        'find_callable'
    """
    module, _, name = reference.partition(":")
    is_added = "" not in sys.path
    sys.path += [""] * is_added
    try:
        is_named = module and not module.startswith(".")
        found = getattr(import_module(module), name, None) if is_named else None
    except ModuleNotFoundError as error:
        raise UnknownChoiceError(
            f"`{argument}` should be 'module:name' of an installed module. Received {reference!r}: {error}"
        ) from error
    finally:
        if is_added:
            sys.path.remove("")
    if not callable(found):
        raise UnknownChoiceError(
            f"`{argument}` should be 'module:name' of a function or a class. Received {reference!r}"
        )
    return found


def lazy_names(
    package: str, homes: Mapping[str, Iterable[str]], modules: Iterable[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the module-level `__getattr__` and `__dir__` of a package.

    Args:
        package: the package's `__name__`.
        homes: for each module, relative to the package, the names that the package takes from it.
        modules: modules of the package that are attributes of it without having been imported.

    Example:
        >>> get, names = lazy_names("drift_envs", {"errors": ["ArgumentError"]})
        >>> get("ArgumentError").__name__
        'ArgumentError'
    """
    known = tuple(modules)
    references = {name: f"{package}.{module}:{name}" for module, names in homes.items() for name in names}

    def __getattr__(name: str) -> Any:
        if name in known:
            return import_module(f"{package}.{name}")
        if name not in references:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = load_object(references[name])
        setattr(sys.modules[package], name, found)
        return found

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *references, *known})

    return __getattr__, __dir__
