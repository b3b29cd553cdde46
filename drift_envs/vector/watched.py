"""Gymnasium's vector environment of processes, with one clear error when a process is lost."""

from __future__ import annotations

import functools
from collections.abc import Callable
from multiprocessing.connection import wait
from typing import Any, TypeVar

from gymnasium.vector import AsyncVectorEnv
from gymnasium.vector.async_vector_env import AsyncState

from drift_envs.errors import StateError

T = TypeVar("T")

_LOST = (BrokenPipeError, ConnectionResetError, EOFError)
_PATIENCE = 5.0  # seconds until a process whose pipe has closed counts as one that runs


def _watched(method: Callable[..., T]) -> Callable[..., T]:
    """The method with our error where a process has ended."""

    @functools.wraps(method)
    def call(self: WatchedAsyncVectorEnv, *args: Any, **options: Any) -> T:
        try:
            return method(self, *args, **options)
        except _LOST as error:
            ended = self._find_ended()
            if not ended:
                raise  # raised by an environment
            self.close(terminate=True)
            raise StateError(f"{ended}; the vector environment is closed, and has to be made anew") from error

    return call


class WatchedAsyncVectorEnv(AsyncVectorEnv):
    """`AsyncVectorEnv` that names the process that ended, and closes the others.

    When one of its processes is killed, Gymnasium's class raises an error of the pipe, which does not name the process;
    `close` may fail or wait forever, and the other processes stay. The arguments are the same.

    Raises:
        StateError: from `reset`, `step`, `call`, `get_attr`, `set_attr` and `render`, if a process has ended.

    Example:
        >>> import gymnasium as gym, drift_envs
        >>> envs = WatchedAsyncVectorEnv([lambda: gym.make("DriftFrozenLake-v0")] * 2)
        >>> envs.processes[1].kill()
        >>> envs.processes[1].join()
        >>> envs.reset(seed=0)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        drift_envs.errors.StateError: the process of sub-environment 1 ended with exit code -9; ...
    """

    reset_async = _watched(AsyncVectorEnv.reset_async)
    reset_wait = _watched(AsyncVectorEnv.reset_wait)
    step_async = _watched(AsyncVectorEnv.step_async)
    step_wait = _watched(AsyncVectorEnv.step_wait)
    call_async = _watched(AsyncVectorEnv.call_async)
    call_wait = _watched(AsyncVectorEnv.call_wait)
    set_attr = _watched(AsyncVectorEnv.set_attr)

    def close_extras(self, timeout: float | None = None, terminate: bool = False) -> None:
        """Close the environments and end the processes, also where some have ended.

        Args:
            timeout: seconds until the processes are terminated.
            terminate: whether they are terminated at once.
        """
        if any(not process.is_alive() for process in self.processes):
            self._state, terminate = AsyncState.DEFAULT, True
        super().close_extras(timeout, terminate)

    def __getstate__(self) -> dict[str, Any]:
        """Refuse copies and pickles: its processes and pipes belong to this process."""
        raise StateError(
            "a vector environment of processes cannot be copied or pickled; make it anew from its functions"
        )

    def _find_ended(self) -> str:
        """Which processes have ended, for a message; empty if none has."""
        ended = wait([process.sentinel for process in self.processes], _PATIENCE)
        for process in self.processes:
            if process.sentinel in ended:  # its pipes are closed a little before it ends
                process.join(_PATIENCE)
        return ", ".join(
            f"the process of sub-environment {index} ended with exit code {process.exitcode}"
            for index, process in enumerate(self.processes)
            if not process.is_alive()
        )
