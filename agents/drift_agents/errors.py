"""Every error that a user of `drift_agents` can cause."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from importlib.util import find_spec

from drift_envs.errors import ArgumentError as ArgumentError
from drift_envs.errors import DriftEnvsError, check_versions
from drift_envs.errors import MissingDependencyError as MissingDependencyError
from drift_envs.errors import needs_extra as needs_extra

_MANY = 8
"""Above so many names a message names the nearest ones only."""


DriftAgentsError = DriftEnvsError
"""The base of all errors of both packages: a part of an agent may raise what an environment raises."""


class PartError(ArgumentError):
    """A part of one's own, from a file or a package, cannot be used; the message says which part and why."""


class UnknownNameError(DriftAgentsError, KeyError):
    """No memory, verifier, policy or experiment has that name; the message has the nearest one, or the known ones.

    Args:
        kind: the kind of part, as in `memory`.
        name: the unknown name.
        known: the known names.
        elsewhere: what else has that name, as a sentence.

    Example:
        >>> print(UnknownNameError("memory", "vanila", ["none", "vanilla"]))
        no memory is called 'vanila', did you mean 'vanilla'?
        >>> print(UnknownNameError("memory", "x", ["none", "vanilla"]))
        no memory is called 'x'. Known: none, vanilla
        >>> print(UnknownNameError("memory", "mine.py", ["none", "vanilla"]))
        no memory is called 'mine.py'. Of a file, name the class or function too: mine.py:NAME
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], elsewhere: str = "") -> None:
        self.kind, self.name, self.known, self.elsewhere = kind, name, tuple(known), elsewhere
        near = difflib.get_close_matches(str(name), self.known, n=1)
        if elsewhere:
            hint = f". {elsewhere}"
        elif str(name).endswith(".py") and kind == "experiment":
            hint = f". It is a YAML file; parts of a Python file are named by options, as in --memory {name}:NAME"
        elif str(name).endswith(".py"):
            hint = f". Of a file, name the class or function too: {name}:NAME"
        elif near:
            hint = f", did you mean {near[0]!r}?"
        elif len(self.known) > _MANY:
            nearest = difflib.get_close_matches(str(name), self.known, n=3, cutoff=0)
            hint = f". The nearest of {len(self.known)}: {', '.join(nearest)}"
        else:
            hint = f". Known: {', '.join(self.known)}"
        super().__init__(f"no {kind} is called {name!r}{hint}")

    def __str__(self) -> str:
        """The message as it is: a `KeyError` would print its repr."""
        return str(self.args[0])

    def __reduce__(self) -> tuple[type[UnknownNameError], tuple[str, str, tuple[str, ...], str]]:
        """Rebuild from the arguments, since errors of workers are pickled."""
        return type(self), (self.kind, self.name, self.known, self.elsewhere)


class ExperimentError(DriftAgentsError, ValueError):
    """An experiment file or a run's folder cannot be used; the message says file, key and rule.

    Args:
        message: the message.
        is_resumable: whether it stopped a run that can be continued.
    """

    def __init__(self, message: str = "", *, is_resumable: bool = False) -> None:
        super().__init__(message)
        self.is_resumable = is_resumable


class EvidenceError(ExperimentError, ArgumentError):
    """The lines of runs cannot be read together, or do not have what a table needs; a file about them is wrong."""


class ModelNameError(ExperimentError, PartError):
    """A policy of an experiment needs a language model, and neither the file nor an option names one."""


class ModelError(DriftAgentsError):
    """A model's answer is invalid; the message has title, rule and answer."""


class ModelAccessError(ModelError):
    """A model's server refuses the request, and would refuse a retry: the key, the model's name, the quota."""


class ModelUnavailableError(ModelError):
    """A model's server does not respond, after all retries."""


class ServerUnreachableError(ModelUnavailableError):
    """No connection to a model's server: nothing listens at its address."""


class UnusableAnswersError(ModelError):
    """Too many of a model's answers are invalid or cut off; the message has advice."""


class ContextLengthError(ModelError):
    """A prompt is too long for the model."""


class StoppedError(ModelError):
    """A request that was not sent, since the run was stopped."""


class BudgetError(ModelError):
    """The budget for language models is spent; finished cells are kept."""


class ReplayError(ModelError):
    """A request has no recorded reply, or the file of recorded replies is unusable."""


def require_agents_extra() -> None:
    """Check that the libraries of the extra `agents` are installed; packages that import them call this first.

    Raises:
        MissingDependencyError: if one of them is not, or in a version that does not fit.
    """
    missing = [name for name in ("scipy", "pandas") if find_spec(name) is None]
    if missing:
        raise MissingDependencyError.of(missing, ["agents"])
    for name in ("scipy", "pandas"):
        check_versions("agents", name)
