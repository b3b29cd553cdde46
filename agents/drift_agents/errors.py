"""Every error that a user of `drift_agents` can cause.

* `DriftAgentsError` - the base of them all
* `ArgumentError` - an argument breaks a rule; the message says which, the rule and the value
* `UnknownNameError` - no memory, verifier, policy or experiment has that name
* `ExperimentError` - an experiment file or a run's folder cannot be used
* `MemoryStateError` - data handed to `restore` is not a snapshot of that memory
* `ModelError` - a model answered something that cannot be used
* `ModelAccessError` - a model's server refuses the request: key, name of the model, quota
* `ModelUnavailableError` - a model's server does not answer, after all retries
* `ContextLengthError` - a prompt is longer than the model takes
* `StoppedError` - a question that was not asked, since the run was stopped
* `BudgetError` - the budget for language models is spent
* `ReplayError` - a question has no recorded reply, or the records cannot be used
* `MissingDependencyError` - an optional dependency is not installed; the message names the extra
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class DriftAgentsError(Exception):
    """The base of all errors of this package."""


class ArgumentError(DriftAgentsError, ValueError):
    """An argument breaks a rule; the message says which argument, which rule and which value."""


class UnknownNameError(DriftAgentsError, KeyError):
    """No memory, verifier, policy or experiment has that name.

    Args:
        kind: what was looked for, as in `memory`.
        name: the name that was asked for.
        known: the names that there are.

    Example:
        >>> print(UnknownNameError("memory", "vanila", ["none", "vanilla"]))
        no memory is called 'vanila', did you mean 'vanilla'? Known: none, vanilla
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind, self.name, self.known = kind, name, tuple(known)
        near = difflib.get_close_matches(str(name), self.known, n=1)
        hint = f", did you mean {near[0]!r}?" if near else "."
        super().__init__(f"no {kind} is called {name!r}{hint} Known: {', '.join(self.known)}")

    def __str__(self) -> str:
        """The message as it is: a `KeyError` would print its repr."""
        return str(self.args[0])

    def __reduce__(self) -> tuple[type[UnknownNameError], tuple[str, str, tuple[str, ...]]]:
        """Rebuild from the arguments, since workers hand errors over by pickling."""
        return type(self), (self.kind, self.name, self.known)


class ExperimentError(DriftAgentsError, ValueError):
    """An experiment file or a run's folder cannot be used; the message says file, key and rule."""


class MemoryStateError(DriftAgentsError, ValueError):
    """Data handed to `restore` is not a snapshot of that memory."""


class ModelError(DriftAgentsError):
    """A model answered something that cannot be used; the message has question, rule and answer."""


class ModelAccessError(ModelError):
    """A model's server refuses the request, and would refuse it again: the key, the model's name, the quota."""


class ModelUnavailableError(ModelError):
    """A model's server does not answer.

    Args:
        message: what happened, where.
        retry_after: seconds after which the server asks to be tried again, if it said so.
        is_limit: whether the server lives and only asks for patience (status 429).
    """

    def __init__(self, message: str, retry_after: float | None = None, is_limit: bool = False) -> None:
        super().__init__(message)
        self.retry_after, self.is_limit = retry_after, is_limit

    def __reduce__(self) -> tuple[type[ModelUnavailableError], tuple[str, float | None, bool]]:
        """Rebuild from the arguments, since workers hand errors over by pickling."""
        return type(self), (str(self.args[0]), self.retry_after, self.is_limit)


class ContextLengthError(ModelError):
    """A prompt is longer than the model takes."""


class StoppedError(ModelError):
    """A question that was not asked, since the run was stopped."""


class BudgetError(ModelError):
    """The budget for language models is spent; what is done is kept."""


class ReplayError(ModelError):
    """A question has no recorded reply, or the file of recorded replies cannot be used."""


class MissingDependencyError(DriftAgentsError, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""
