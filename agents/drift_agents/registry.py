"""Parts by name, so that experiment files can name them: ours and those of other packages.

* `Registry` - names of one kind of part, from a built-in table and from an entry-point group
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from inspect import signature
from typing import Any, Generic, TypeVar

from drift_agents.errors import ArgumentError, UnknownNameError

Part = TypeVar("Part")


class Registry(Generic[Part]):
    """Names of one kind of part.

    Args:
        kind: what the parts are, as in `memory`.
        group: the entry-point group through which other packages add theirs.
        built_in: name -> `module:attribute`; imported when asked for.
    """

    def __init__(self, kind: str, group: str, built_in: Mapping[str, str]) -> None:
        self.kind, self.group, self._built_in = kind, group, dict(built_in)

    def _others(self) -> dict[str, EntryPoint]:
        found = sorted(entry_points(group=self.group), key=lambda point: (point.name, point.value))
        return {point.name: point for point in found if point.name not in self._built_in}

    def names(self) -> tuple[str, ...]:
        """All names: ours first, then those of other packages in alphabetical order."""
        return (*self._built_in, *self._others())

    def load(self, name: str) -> Any:
        """The class or factory of that name.

        Raises:
            UnknownNameError: if there is none.
        """
        if name in self._built_in:
            module, attribute = self._built_in[name].split(":")
            return getattr(import_module(module), attribute)
        others = self._others()
        if name in others:
            return others[name].load()
        raise UnknownNameError(self.kind, name, self.names())

    def make(self, name: str, /, **options: Any) -> Part:
        """Make the part of that name.

        Raises:
            UnknownNameError: if there is none.
            ArgumentError: if it does not take one of the options.
        """
        factory = self.load(name)
        try:
            signature(factory).bind(**options)
        except TypeError as error:
            known = [p for p in signature(factory).parameters if p not in ("self", "args", "kwargs")]
            raise ArgumentError(
                f"the {self.kind} {name!r} does not take these options: {error}. "
                f"Known: {', '.join(known) or 'none'}. Received {options!r}"
            ) from error
        return factory(**options)
