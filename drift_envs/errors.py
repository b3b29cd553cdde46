"""All errors and warnings that a user of `drift_envs` can cause.

* `DriftEnvsError` - the base of all errors of this package
* `Problem` - one finding about a schedule: file, line, key, rule and value
* `ScheduleError` - a schedule that cannot be used; carries every `Problem`, not only the first
* `UnknownScheduleError` - there is no schedule of that name, or no variant of that suffix
* `KnobError` - a value or an operation that a knob does not allow
* `DeclaredKnobsError` - a schedule declares knobs that the environment does not have
* `DrivenKnobError` - a knob that the schedule drives was set from outside
* `ArgumentError` - an argument of an environment, a wrapper or a command breaks a rule
* `UnknownChoiceError` - there is no environment, phase or policy of that name
* `UnknownArgumentError` - an environment has no such argument
* `StateError` - a call came at the wrong time, for instance `step` before `reset`
* `NoOracleError` - no oracle is known for this environment
* `HiddenError` - an attribute for evaluators alone was read through a twin
* `MissingDependencyError` - an optional dependency is not installed; the message names the extra
* `needs_extra` - names the extra where an import fails
* `check_versions` - refuses installed versions that an extra excludes
* `explain_import` - the error that says what to do about an import that failed
* `load_all` - loads several optional dependencies, with one error for all that is missing
* `first_line` - what an error of another package says, in one line
* `DriftWarning` - something that works but is probably unintended
"""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

T = TypeVar("T")


class DriftEnvsError(Exception):
    """The base of all errors of this package."""


@dataclass(frozen=True)
class Problem:
    """One finding about a schedule.

    Args:
        where: the file (or `<dict>`), as the user wrote it; empty where there is none.
        line: the line in that file, counted from 1, or `None` where there is no text.
        key: the path to the key, as in `drifts[1].set.map`.
        text: the rule that is broken and the value that breaks it.

    Example:
        >>> print(Problem("a.yaml", 14, "drifts[1].set.map", "rows must have equal length, row 3 has 5 of 6"))
        a.yaml:14: drifts[1].set.map: rows must have equal length, row 3 has 5 of 6
    """

    where: str
    line: int | None
    key: str
    text: str

    def __str__(self) -> str:
        """The finding in one line, in the format that editors recognise."""
        place = self.where if self.line is None else f"{self.where}:{self.line}"
        return ": ".join(part for part in (place, self.key, self.text) if part)


class ScheduleError(DriftEnvsError, ValueError):
    """A schedule that cannot be used.

    Args:
        problems: everything that is wrong with it, in the order of the file.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def __reduce__(self) -> tuple[type[ScheduleError], tuple[tuple[Problem, ...]]]:
        """Rebuild from the problems, since worker processes pickle errors."""
        return type(self), (self.problems,)


class UnknownScheduleError(ScheduleError):
    """There is no schedule of that name, or no variant of that suffix; the message names the nearest one."""


class KnobError(DriftEnvsError, ValueError):
    """A value or an operation that a knob does not allow."""


class DeclaredKnobsError(KnobError):
    """Declared knobs that an environment does not have.

    Args:
        findings: pairs of a path in the schedule, such as `("knobs", "mass", "attribute")`, and what is wrong there.
    """

    def __init__(self, findings: Iterable[tuple[tuple[str | int, ...], str]]) -> None:
        self.findings = tuple(findings)
        super().__init__("; ".join(f"{'.'.join(map(str, path))}: {rule}" for path, rule in self.findings))

    def __reduce__(self) -> tuple[type[DeclaredKnobsError], tuple[tuple[tuple[tuple[str | int, ...], str], ...]]]:
        """Rebuild from the findings, since worker processes pickle errors."""
        return type(self), (self.findings,)


class DrivenKnobError(DriftEnvsError, AttributeError):
    """A knob that the schedule drives was set from outside, or does not keep its value.

    Example:
        >>> print(DrivenKnobError.of("slip", 0.5))
        `slip` is driven by the schedule and should not be set from outside. Received 0.5; write it into the schedule, \
or build the environment with `schedule=None`
    """

    loss: tuple[str, str, str, int | None] | None = None
    """The knob, the value that was set, the one that was found, and the tick; `None` if it was set from outside."""

    @classmethod
    def refuse(cls, driven: Container[str], name: str, value: object) -> None:
        """The rule of every way in: a driven knob is not set from outside.

        Args:
            driven: the knobs that the schedule drives, and the attributes that they stand for.
            name: what is to be set.
            value: its value.

        Raises:
            DrivenKnobError: if it is driven.
        """
        if name in driven:
            raise cls.of(name, value)

    @classmethod
    def of(cls, name: str, value: object) -> DrivenKnobError:
        """Build the error from the knob and the value.

        Args:
            name: the knob.
            value: the value that was set.
        """
        return cls(
            f"`{name}` is driven by the schedule and should not be set from outside. Received {value!r}; "
            "write it into the schedule, or build the environment with `schedule=None`"
        )

    @classmethod
    def lost(
        cls, name: str, value: str, found: str, tick: int | None = None, phase: str | None = None
    ) -> DrivenKnobError:
        """Build the error for a value that did not stay; its `loss` is the first four arguments.

        Args:
            name: the knob, or the path of an attribute that is derived from knobs.
            value: the value that was set, as text.
            found: the value that the environment has, as text.
            tick: when it was lost, if that is known.
            phase: its phase, which the message names instead.
        """
        at = f" in the phase {phase}" if phase is not None else "" if tick is None else f" at tick {tick}"
        error = cls(
            f"`{name}` is driven by the schedule and should keep its value. It was set to {value} and is {found} "
            f"now; it was lost{at}. Possible causes: the environment's own `reset` or `step` sets it, the environment "
            "is a copy made by its constructor, or it was set from outside"
        )
        error.loss = (name, value, found, tick)
        return error


class ArgumentError(DriftEnvsError, ValueError):
    """An argument breaks a rule; the message says which argument, which rule and which value."""


class UnknownChoiceError(ArgumentError):
    """There is no environment, phase or policy of that name; the message names the nearest one."""


class UnknownArgumentError(ArgumentError, TypeError):
    """An environment has no such argument.

    A `TypeError` too, as of any function: TorchRL's `GymEnv` finds out by it which arguments there are.
    """


class StateError(DriftEnvsError, RuntimeError):
    """A call came at the wrong time, for instance `step` before `reset`."""


class NoOracleError(DriftEnvsError):
    """No oracle is known for this environment.

    It is no `AttributeError`, which `get_wrapper_attr` would replace by "has no attribute".
    """


class HiddenError(DriftEnvsError, AttributeError):
    """An attribute for evaluators alone was read through a twin."""


class MissingDependencyError(DriftEnvsError, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it.

    Args:
        message: the message.
        packages: what is not installed.
        extras: the extras of this package that bring it.

    Example:
        >>> print(MissingDependencyError.of(["imageio", "mujoco"], ["video", "mujoco"]))
        `imageio`, `mujoco` are not installed, run `pip install ".[video,mujoco]"` in a checkout \
of drift-envs
    """

    def __init__(self, message: str = "", packages: Iterable[str] = (), extras: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.packages, self.extras = tuple(packages), tuple(extras)

    @classmethod
    def of(cls, packages: Iterable[str], extras: Iterable[str]) -> MissingDependencyError:
        """Build the error from what is not installed, and the extras that bring it."""
        packages, extras = tuple(dict.fromkeys(packages)), tuple(dict.fromkeys(extras))
        names, verb = ", ".join(f"`{name}`" for name in packages), "is" if len(packages) == 1 else "are"
        install = f'pip install ".[{",".join(extras)}]"'
        return cls(f"{names} {verb} not installed, run `{install}` in a checkout of drift-envs", packages, extras)


@contextmanager
def needs_extra(package: str, extra: str) -> Iterator[None]:
    """Name the extra of a package whose imports stand within.

    Raises:
        MissingDependencyError: if an import fails, or the package is installed in a version that the extra excludes.

    Example:
        >>> with needs_extra("an-image-library", "video"):
        ...     import an_image_library
        Traceback (most recent call last):
        drift_envs.errors.MissingDependencyError: `an-image-library` is not installed, run `pip install ".[video]"` in \
a checkout of drift-envs
    """
    check_versions(extra, package)
    try:
        yield
    except MissingDependencyError:
        raise
    except ImportError as error:
        raise explain_import(error, package, extra) from error


def check_versions(extra: str, package: str | None = None) -> None:
    """Refuse an installed version that an extra excludes; what is not installed passes.

    Args:
        extra: the extra; the extras in it and the extras of other packages count, too.
        package: the only package that is looked at; by default all of the extra.

    Raises:
        MissingDependencyError: names the package, both versions and the command.
    """
    for name, rule, installed in _find_misfits(extra):
        if package is None or name == _normal(package):
            shown = package or name
            raise MissingDependencyError(
                f"`{shown}` should be of version {rule}, {installed} is installed; "
                f'run `pip install ".[{extra}]"` in a checkout of drift-envs',
                [shown],
                [extra],
            )


def explain_import(error: Exception, package: str, extra: str) -> MissingDependencyError:
    """The error that says what to do about an import that failed.

    Args:
        error: what the import raised.
        package: the package.
        extra: the extra that brings it.

    Example:
        >>> print(explain_import(ImportError("no libz"), "numpy", "agents"))  # doctest: +ELLIPSIS
        `numpy` ... cannot be imported (no libz); run `pip install ".[agents]"` in a checkout of drift-envs
    """
    missing = (getattr(error, "name", None) or "").partition(".")[0]
    command = f'run `pip install ".[{extra}]"` in a checkout of drift-envs'
    installed = _find_version(package)
    if installed and not (isinstance(error, ModuleNotFoundError) and _normal(package).startswith(_normal(missing))):
        text = f"`{package}` {installed} cannot be imported ({first_line(error)}); {command}"
        return MissingDependencyError(text, [package], [extra])
    found = MissingDependencyError.of([package], [extra])
    pythons = [python for name, _, python in _requirements(extra) if name == _normal(package)]
    if pythons and all(pythons):
        return MissingDependencyError(f"{found}, with Python {pythons[0]}", [package], [extra])
    return found


@cache
def _find_misfits(extra: str) -> tuple[tuple[str, str, str], ...]:
    """The packages of an extra whose installed version it excludes: name, versions, installed version."""
    return tuple(
        (name, ",".join(sorted(map(str, versions), reverse=True)), installed)
        for name, versions, python in _requirements(extra)
        if not python and (installed := _find_version(name)) and not versions.contains(installed, prereleases=True)
    )


def _requirements(extra: str, package: str = "drift-envs") -> Iterator[tuple[str, SpecifierSet, str]]:
    """The packages of an extra: name, versions, and the versions of Python that it needs if the running one is none."""
    from packaging.requirements import Requirement  # few commands have to do with an extra
    from packaging.specifiers import SpecifierSet

    try:
        lines = requires(package) or []
    except PackageNotFoundError:
        return
    for requirement in map(Requirement, lines):
        marker = str(requirement.marker or "").replace("'", '"')
        if f'extra == "{extra}"' not in marker or "platform" in marker:
            continue
        pythons = SpecifierSet(",".join(f"{sign}{bound}" for sign, bound in _PYTHON.findall(marker)))
        misses = "" if ".".join(platform.python_version_tuple()[:2]) in pythons else str(pythons)
        yield _normal(requirement.name), requirement.specifier, misses
        for inner in sorted(requirement.extras):
            yield from () if misses else _requirements(inner, requirement.name)


_PYTHON = re.compile(r'python_version ([<>=!]+) "([\d.]+)"')


def _find_version(package: str) -> str:
    """The installed version of a package, empty if it is not there."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _normal(name: str) -> str:
    """The name of a package as indexes write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def load_all(loaders: Iterable[Callable[[], T]]) -> list[T]:
    """Call functions that load optional dependencies; one error names all that is missing.

    Args:
        loaders: the functions.

    Returns:
        What they return.

    Raises:
        MissingDependencyError: if any of them raises it.
    """
    loaded, missing = [], []
    for load in loaders:
        try:
            loaded.append(load())
        except MissingDependencyError as error:
            missing.append(error)
    if len(missing) > 1 and all(str(error) == str(error.of(error.packages, error.extras)) for error in missing):
        packages = [name for error in missing for name in error.packages]
        raise MissingDependencyError.of(packages, [extra for error in missing for extra in error.extras])
    if missing:
        raise MissingDependencyError("; ".join(dict.fromkeys(map(str, missing))))
    return loaded


def first_line(error: BaseException) -> str:
    r"""The first line of what an error says, or its class if it says nothing.

    Example:
        >>> first_line(OSError("no browser\nstack")), first_line(OSError())
        ('no browser', 'OSError')
    """
    return str(error).strip().split("\n")[0] or type(error).__name__


class DriftWarning(UserWarning):
    """Something that works but is probably unintended."""
