"""How parts are found by name, checked against their protocol, and made with options.

A part is a built-in one, an entry point of another package, or a class of a Python file
(`drift_agents.registry.part_file`). `drift_agents.registry.tables` holds the built-in ones, a `Registry` for each kind.
"""

from __future__ import annotations

import difflib
import reprlib
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from inspect import Parameter, iscoroutinefunction, isfunction, signature
from typing import Any, NamedTuple

from drift_agents.errors import ArgumentError, DriftAgentsError, PartError, UnknownNameError
from drift_agents.registry.part_file import PartFile, describe_error, describe_failure, is_interruption, show_class
from drift_agents.types import SUPERVISION
from drift_envs.utils.lazy import load_object


class Part(NamedTuple):
    """A built-in part.

    Args:
        target: `module:attribute`.
        about: the first line of its docstring, so that a list of parts imports none of them.
    """

    target: str
    about: str


@lru_cache(maxsize=64)
def _find_entry_points(
    find: Callable[..., Iterable[EntryPoint]], group: str, path: tuple[str, ...]
) -> tuple[EntryPoint, ...]:
    """The entry points of a group, sorted: a search through all installed packages, done once for each `sys.path`.

    Raises:
        PartError: if a package's list of entry points has another form; the standard library does not say whose.
    """
    try:
        found = list(find(group=group))
    except Exception as error:
        raise PartError(f"the entry points of an installed package cannot be read: {describe_error(error)}") from error
    return tuple(sorted(found, key=lambda point: (point.name, point.value)))


def _describe_point(kind: str, point: EntryPoint) -> str:
    """The part that an entry point declares, with the name of the package."""
    package = point.module.partition(".")[0] if point.dist is None else point.dist.name
    return f"the {kind} {point.name!r} of the package {package}"


def _load_entry_point(kind: str, point: EntryPoint) -> Any:
    """What an entry point names.

    Raises:
        PartError: if its module raises or exits, lacks the attribute, or the attribute makes no part.
    """
    try:
        part = point.load()
    except BaseException as error:
        if is_interruption(error):
            raise
        raise PartError(f"{_describe_point(kind, point)} raises at import: {describe_error(error)}") from error
    if kind == "environment":  # a declaration
        if not hasattr(part, "ids"):
            raise PartError(f"{_describe_point(kind, point)} should be an `AgentEnvironment`. Received {part!r}")
        return part
    try:
        signature(part)
    except Exception as error:
        raise PartError(f"{_describe_point(kind, point)} should be a class or a function. Received {part!r}") from error
    return part


def show_name(name: str) -> str:
    """The name of a part for a message, without the hash of a file."""
    file = PartFile.read(name)
    return name if file is None else file._replace(sha256="").text


def check_protocol(kind: str, name: str, part: Any, protocol: Any, hint: str = "") -> None:
    """Check that a part has all that its protocol names, with methods that can be called as the protocol's.

    `supervision` among it should be one of `SUPERVISION`.

    Args:
        kind: the kind, in the singular, for the error message.
        name: the part's name, for the error message.
        hint: the end of the message where something is missing.

    Raises:
        PartError: if it lacks an attribute or a method, a method takes other arguments or is async, or its
            `supervision` is another text.
    """
    whose = f"the {kind} {show_name(name)!r}"
    members = {key for key in (*vars(protocol), *protocol.__annotations__) if not key.startswith("_")}
    if missing := ", ".join(sorted(key for key in members if not hasattr(part, key))):
        raise PartError(f"{whose} should have what `{protocol.__name__}` has. Missing: {missing}{hint}")
    check_methods(whose, part, protocol)
    if "supervision" in protocol.__annotations__ and part.supervision not in SUPERVISION:
        raise PartError(
            f"`supervision` of {whose} should be one of {', '.join(SUPERVISION)}. Received {part.supervision!r}"
        )


def check_methods(whose: str, part: Any, protocol: Any) -> None:
    """Check that methods of a part can be called as its protocol's are, with all arguments by position.

    Args:
        whose: the part, as in `the memory 'mine'`; it has all methods of the protocol.

    Raises:
        PartError: if one takes other arguments, is async, or is no method.
    """
    for name, method in vars(protocol).items():
        if name.startswith("_") or not isfunction(method):
            continue
        if iscoroutinefunction(getattr(part, name)):
            raise PartError(f"`{name}` of {whose} should not be async: wrap it in a method that runs it to its end")
        check_signature(whose, part, name, *[*signature(method).parameters][1:])


def check_signature(whose: str, part: Any, method: str, *arguments: str, options: Iterable[str] = ()) -> None:
    """Check that a method of a part can be called with some arguments.

    Args:
        whose: the part, as in `the memory 'mine'`.
        arguments: names of what is given by position.
        options: names of what is given by name.

    Raises:
        PartError: if it cannot, or is no method.

    Example:
        >>> check_signature("the service 'text'", "text", "strip", "query", "k")
        Traceback (most recent call last):
        drift_agents.errors.PartError: `strip` of the service 'text' should be callable as strip(query, k). \
Received strip(chars=None, /)
    """
    own = getattr(part, method)
    try:
        found = signature(own)
    except ValueError:
        return  # of a compiled method
    except TypeError as error:
        raise PartError(f"`{method}` of {whose} should be a method. Received {own!r}") from error
    try:
        found.bind(*arguments, **dict.fromkeys(options))
    except TypeError as error:
        call = ", ".join((*arguments, *(f"{option}=..." for option in options)))
        rule = f"should be callable as {method}({call})"
        raise PartError(f"`{method}` of {whose} {rule}. Received {method}{found}") from error


def check_result(kind: str, part: Any, method: str, result: Any, expected: Any) -> Any:
    """Return what a method of a part returned.

    Args:
        kind: of the part, in the singular.
        expected: its type.

    Raises:
        PartError: if it is of another type.
    """
    if not isinstance(result, expected):
        raise refuse_result(kind, part, method, f"a value of type {expected.__name__}", result)
    return result


def refuse_result(kind: str, part: Any, method: str, rule: str, result: Any) -> PartError:
    """The error of a method that returned something else than it should.

    Args:
        kind: of the part, in the singular.
        rule: what it should return.
    """
    shown = reprlib.repr(result)
    return PartError(f"`{method}` of the {kind} {show_class(part)!r} should return {rule}. Received {shown}")


_NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


def option_names(factory: Callable[..., Any]) -> tuple[tuple[str, ...], bool]:
    """The names of a part's options, and whether it accepts others beside them.

    A part whose options are named elsewhere lists them in `option_names`, as the planner lists the environments.

    Args:
        factory: the class or function that makes the part.
    """
    listed = getattr(factory, "option_names", None)
    if listed is not None:
        return tuple(listed()), False
    parameters = signature(factory).parameters.values()
    is_open = any(one.kind is Parameter.VAR_KEYWORD for one in parameters)
    return tuple(one.name for one in parameters if one.kind in _NAMED), is_open


def _describe_setting(kind: str, option: str) -> str:
    """How an option is given on the command line, where it can be, and in a file."""
    axis = "memory" if kind == "store" else kind
    is_axis = axis in ("memory", "verifier", "controller", "team", "policy")
    return f"{f'--set {axis}.{option}=VALUE, or ' if is_axis else ''}{{NAME: {{{option}: VALUE}}}} in a file"


def make_part(kind: str, name: str, factory: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """Call what makes a part.

    Args:
        kind: the kind, in the singular, for the error message.
        name: the part's name, for the error message.
        factory: the class or function that makes the part.

    Raises:
        ArgumentError: if it does not take one of the options, or refuses its value.
    """
    known, is_open = option_names(factory)
    unknown = [] if is_open else [key for key in options if key not in known]
    if unknown:
        near = difflib.get_close_matches(unknown[0], known, n=1)
        hint = f", did you mean {near[0]!r}?" if near else "."
        raise ArgumentError(
            f"the {kind} {name!r} does not take the option {unknown[0]!r}{hint} "
            f"Known: {', '.join(known) or 'none'}. Received {dict(options)!r}"
        )
    parameters = signature(factory).parameters.values()
    needed = [one.name for one in parameters if one.default is Parameter.empty and one.kind in _NAMED]
    if missing := [key for key in needed if key not in options]:
        raise ArgumentError(
            f"the {kind} {name!r} needs the option {missing[0]!r}: {_describe_setting(kind, missing[0])}. "
            f"Received {dict(options) or 'no options'}"
        )
    return factory(**options)


def read_named(part: str, given: Any, forms: str = "a name") -> tuple[str, Mapping[str, Any]]:
    """A part as the option of another part: its name and its options.

    Args:
        part: the option's name, for the error message.
        given: a name, or a mapping of one name to its options.
        forms: what else the option takes, for the error message.

    Raises:
        ArgumentError: if it is neither.

    Example:
        >>> read_named("store", "chroma"), read_named("store", {"chroma": {"path": "here"}})
        (('chroma', {}), ('chroma', {'path': 'here'}))
        >>> read_named("store", {"chroma": "here"})
        Traceback (most recent call last):
        drift_envs.errors.ArgumentError: `store` should be a name, or one name with its options. Received \
{'chroma': 'here'}
    """
    pairs = {given: None} if isinstance(given, str) else given
    if isinstance(pairs, Mapping) and len(pairs) == 1:
        ((name, options),) = pairs.items()
        options = {} if options is None else options
        if isinstance(name, str) and isinstance(options, Mapping) and all(isinstance(key, str) for key in options):
            return name, options
    raise ArgumentError(f"`{part}` should be {forms}, or one name with its options. Received {given!r}")


class Registry:
    """The names of one kind of part.

    Args:
        kind: the kind, in the singular, as in `memory`.
        group: the entry-point group through which other packages add theirs.
        built_in: the parts of this package, by name.

    Example:
        >>> from drift_agents.registry.tables import EMBEDDINGS
        >>> EMBEDDINGS.names()[:2]
        ('hashed', 'minilm')
        >>> EMBEDDINGS.make("hashed", dimensions=64)
        Traceback (most recent call last):
        drift_envs.errors.ArgumentError: the embedding 'hashed' does not take the option 'dimensions', did you mean \
'dimension'? Known: dimension. Received {'dimensions': 64}
    """

    def __init__(self, kind: str, group: str, built_in: Mapping[str, Part]) -> None:
        self.kind, self.group, self._built_in = kind, group, dict(built_in)
        self.siblings: tuple[Registry, ...] = ()
        """The other registries, of which messages about unknown names speak."""

    def _others(self) -> dict[str, EntryPoint]:
        found = _find_entry_points(entry_points, self.group, tuple(sys.path))
        return {point.name: point for point in found if point.name not in self._built_in}

    def names(self) -> tuple[str, ...]:
        """All names: the built-in ones first, then those of other packages in alphabetical order."""
        return (*self._built_in, *self._others())

    def has(self, name: str) -> bool:
        """Whether there is a part of that name, or the name is that of a file's part."""
        return name in self.names() or PartFile.read(name) is not None

    def entry_point(self, name: str) -> EntryPoint | None:
        """The entry point of another package's part; `None` for a built-in one, and for an unknown name."""
        return self._others().get(name)

    def summaries(self) -> dict[str, str]:
        """One line about every part, by name.

        Of other packages' parts it is `about` or the first line of the docstring; of one that cannot be used, the
        package and the error.
        """
        about = {name: part.about for name, part in self._built_in.items()}
        for name in self._others():
            try:
                part = self.load(name)
                text = str(getattr(part, "about", None) or part.__doc__ or "").strip()
            except PartError as error:
                text = f"cannot be used: {error}"
            except Exception as error:  # noqa: BLE001 - foreign code
                text = f"has no line about it: {describe_error(error)}"
            about[name] = text.splitlines()[0] if text else ""
        return about

    def load(self, name: str) -> Any:
        """The class or function that makes the part of that name.

        Raises:
            UnknownNameError: if there is none.
            PartError: if it is a part of a file or of another package, and cannot be used.
        """
        file = PartFile.read(name)
        if file is not None and file.sha256:
            return file.load()
        if name in self._built_in:
            return load_object(self._built_in[name].target)
        others = self._others()
        if name in others:
            return _load_entry_point(self.kind, others[name])
        raise self.unknown(name)

    def unknown(self, name: str) -> UnknownNameError:
        """The error of a name that no part has; it says of which other kind a part of that name is.

        Example:
            >>> from drift_agents.registry.tables import MEMORIES
            >>> print(MEMORIES.unknown("chroma"))
            no memory is called 'chroma'. It is a store: --memory store --set memory.store=chroma, or \
{store: {store: chroma}} in a file
        """
        kind = next((one.kind for one in self.siblings if name in one.names()), "")
        elsewhere = kind and f"It is {'an' if kind[0] in 'aeiou' else 'a'} {kind}"
        if (self.kind, kind) == ("memory", "store"):
            elsewhere += f": --memory store --set memory.store={name}, or {{store: {{store: {name}}}}} in a file"
        return UnknownNameError(self.kind, name, self.names(), elsewhere)

    def options(self, name: str) -> tuple[tuple[str, ...], bool]:
        """The names of a part's options, and whether it accepts others beside them.

        Raises:
            UnknownNameError: if there is no part of that name.

        Example:
            >>> from drift_agents.registry.tables import MEMORIES
            >>> MEMORIES.options("vanilla")
            (('k', 'order', 'matching'), False)
        """
        return option_names(self.load(name))

    def make(self, name: str, /, **options: Any) -> Any:
        """Make the part of that name.

        Args:
            name: one of `names()`.

        Raises:
            UnknownNameError: if there is no part of that name.
            ArgumentError: if it does not take one of the options, or refuses its value.
            MissingDependencyError: if it needs a package that is not installed.
            PartError: if it is a part of a file or of another package, and cannot be used.
        """
        factory = self.load(name)
        if name in self._built_in:
            return make_part(self.kind, name, factory, options)
        file = PartFile.read(name)
        try:
            return make_part(self.kind, name if file is None else file.attribute, factory, options)
        except BaseException as error:
            if is_interruption(error) or (file is None and isinstance(error, DriftAgentsError)):
                raise
            part = (
                _describe_point(self.kind, self._others()[name]) if file is None else f"{file.path}: {file.attribute!r}"
            )
            raise PartError(f"{part} cannot be made: {describe_failure(error)}") from error
