"""Several cells at the same time; `drift_agents.experiment.clusters` has the workers of other machines."""

from __future__ import annotations

import os
import pickle  # nosec B403  # between a process and those that it started
import signal
import subprocess  # nosec B404
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import islice
from multiprocessing.connection import Connection, Pipe, wait
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

from drift_agents.errors import ExperimentError
from drift_agents.interruption import PATIENCE, interruptible
from drift_agents.llm.service import Service
from drift_agents.registry.part_file import describe_error

T = TypeVar("T")

MOST_LOST = 3
"""How often the worker of a call may be lost before the run stops."""

_THREAD_COUNTS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")

# Nothing is imported before the path is that of the command: `-c` alone puts the current folder first.
_SERVE = (
    "import sys; connection, lock, *sys.path[:] = sys.argv[1:]; del sys.argv[1:]; "
    "from drift_agents.experiment.workers import serve_calls; serve_calls(int(connection), int(lock))"
)


class LostWorkerError(Exception):
    """The worker of a call has ended before the call; the call can be sent again."""


class Pool(Protocol):
    """Workers that are given calls."""

    def start(self, play: Callable[..., Any], call: Sequence[Any]) -> Any:
        """Send a call; returns a handle, which can be hashed."""

    def wait(self, running: Sequence[Any]) -> Any:
        """Wait for one of these calls to end; returns its handle."""

    def result(self, handle: Any) -> Any:
        """What a call that has ended returned, or raises what it raised.

        Raises:
            LostWorkerError: if its worker ended first.
            ExperimentError: if the pool cannot be used any more.
        """

    def stop(self, running: Sequence[Any]) -> None:
        """Give up these calls, whose results are not needed, and all others."""


def play_in_pool(pool: Pool, play: Callable[..., T], calls: Iterable[tuple[Any, ...]], jobs: int) -> Iterator[T]:
    """Call a function on a pool's workers; a call whose worker was lost is sent again.

    Args:
        play: the function, one of a module.
        calls: its arguments, a tuple a call.
        jobs: how many calls run at the same time.

    Yields:
        What each call returned, when it is over.

    Raises:
        ExperimentError: if workers of one call are lost again and again; otherwise what the call raised.
    """
    waiting = iter(calls)
    running: dict[Any, tuple[tuple[Any, ...], int]] = {}
    try:
        for call in islice(waiting, jobs):
            running[pool.start(play, call)] = call, 0
        while running:
            done = pool.wait(list(running))
            call, lost = running.pop(done)
            try:
                result: T = pool.result(done)
            except LostWorkerError as error:
                if lost == MOST_LOST:
                    raise ExperimentError(f"workers were lost {lost + 1} times in a row: {error}") from error
                running[pool.start(play, call)] = call, lost + 1
                continue
            for call in islice(waiting, 1):
                running[pool.start(play, call)] = call, 0
            yield result
    finally:  # also where the caller fails
        pool.stop(list(running))


class Processes:
    """The pool of processes of this machine, each a session of its own with all processes that it starts.

    A terminal sends Ctrl-C to this process alone. Workers end when their connection does, however this process ends.

    Args:
        jobs: how many.
        lock: the descriptor of the run's folder, which stays locked until the last worker has ended.
    """

    def __init__(self, jobs: int, lock: int | None = None) -> None:
        self._jobs, self._lock = jobs, lock
        self._idle: list[_Worker] = []

    def start(self, play: Callable[..., Any], call: Sequence[Any]) -> _Worker:
        """Send a call to a worker; to a new one where none is idle."""
        worker = self._idle.pop() if self._idle else _Worker(self._jobs, self._lock)
        with suppress(OSError):  # it was killed while it was idle, which `result` reports
            worker.connection.send((play, call))
        return worker

    def wait(self, running: Sequence[_Worker]) -> _Worker:
        """Wait for the call of one of these workers to end."""
        workers = {worker.connection: worker for worker in running}
        with interruptible():
            return workers[wait(list(workers))[0]]  # type: ignore[index]

    def result(self, handle: _Worker) -> Any:
        """What the call returned; the exception that it raised has the worker's calls as its cause."""
        try:
            value, failure = handle.connection.recv()
        except (EOFError, OSError) as error:
            raise LostWorkerError(handle.describe_end()) from error
        self._idle.append(handle)
        if failure is not None:
            raised, calls = failure
            raise raised from _WorkerCalls(calls)
        return value

    def stop(self, running: Sequence[_Worker]) -> None:
        """Kill all workers, and wait until they have ended."""
        workers = [*running, *self._idle]
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.close()
        self._idle.clear()


class Threads:
    """A pool of threads of this process, whose calls share a service of language models.

    When a call fails no new request is sent; pending requests are awaited, since their replies are paid for and are
    recorded. When the run is interrupted they are awaited for half a second.

    Args:
        service: access to language models.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._done = SimpleQueue[_CallThread]()

    def start(self, play: Callable[..., Any], call: Sequence[Any]) -> _CallThread:
        """Make a call in a thread of its own."""
        thread = _CallThread(play, call, self._done)
        thread.start()
        return thread

    def wait(self, running: Sequence[_CallThread]) -> _CallThread:
        """Wait for one of the calls to end."""
        with interruptible():
            return self._done.get()

    def result(self, handle: _CallThread) -> Any:
        """What the call returned or raised."""
        return handle.outcome.result()

    def stop(self, running: Sequence[_CallThread]) -> None:
        """Send no new request for these calls, and wait for them."""
        if running:
            self._service.stop()
            await_threads(running, sys.exc_info()[1])


class _CallThread(threading.Thread):
    """A call; a daemon, which an ending process does not wait for: a pending request may take minutes."""

    def __init__(self, play: Callable[..., Any], call: Sequence[Any], done: SimpleQueue[_CallThread]) -> None:
        super().__init__(daemon=True)
        self._play, self._arguments, self._done = play, call, done
        self.outcome = Future[Any]()

    def run(self) -> None:
        try:
            self.outcome.set_result(self._play(*self._arguments))
        except BaseException as error:  # noqa: BLE001 - raised by the caller's thread
            self.outcome.set_exception(error)
        self._done.put(self)


class _WorkerCalls(Exception):
    """The traceback of a worker's exception, as text."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


class _Worker:
    """A process, and the connection to it."""

    def __init__(self, jobs: int, lock: int | None) -> None:
        threads = str(max((os.cpu_count() or 1) // jobs, 1))
        self.connection, theirs = Pipe()
        kept = (theirs.fileno(), -1 if lock is None else lock)
        with theirs:
            self._process = subprocess.Popen(  # nosec B603  # this interpreter, its own words
                [sys.executable, "-c", _SERVE, *map(str, kept), *sys.path],
                stdin=subprocess.DEVNULL,
                pass_fds=[number for number in kept if number >= 0],
                start_new_session=True,
                env={**dict.fromkeys(_THREAD_COUNTS, threads), **os.environ},
            )

    def kill(self) -> None:
        """Kill the process, and those that it has started."""
        with suppress(ProcessLookupError, PermissionError):  # ended already
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> int:
        """Wait until the process, which was killed, has ended; returns its exit status."""
        self.connection.close()
        return self._process.wait()

    def describe_end(self) -> str:
        """How the process has ended, whose connection is closed."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(PATIENCE)
        self.kill()
        status = self.close()
        if status == -signal.SIGKILL:
            return (
                "a process was killed, as by a machine without free memory; play fewer cells at the same time "
                "with --jobs"
            )
        return f"a process ended by {signal.Signals(-status).name}" if status < 0 else f"a process exited with {status}"


def serve_calls(descriptor: int, lock: int) -> None:
    """Make the calls of a run's process, until that closes the connection or kills this process.

    Args:
        lock: that of the run's folder, which programs that are started here do not keep; -1 if there is none.
    """
    for number in (descriptor, lock):
        if number >= 0:
            os.set_inheritable(number, False)
    connection, calls = Connection(descriptor), SimpleQueue[bytes]()
    threading.Thread(target=_receive, args=(connection, calls), name="calls", daemon=True).start()
    while True:
        result = _call(calls.get())
        try:
            content = pickle.dumps(result)
        except Exception as error:  # noqa: BLE001 - of the result's own classes
            failure = ExperimentError(f"what a call returned cannot be sent: {describe_error(error)}")
            content = pickle.dumps((None, (failure, traceback.format_exc())))
        connection.send_bytes(content)


def _receive(connection: Connection, calls: SimpleQueue[bytes]) -> None:
    """Receive calls; the end of the run's process ends this one at once, with all that it has started."""
    while True:
        try:
            calls.put(connection.recv_bytes())
        except (EOFError, OSError):
            os.killpg(0, signal.SIGKILL)


def _call(content: bytes) -> tuple[Any, tuple[BaseException, str] | None]:
    """What a call returns, or its exception with the traceback."""
    try:
        play, arguments = pickle.loads(content)  # nosec B301  # of the process that started this one
        return play(*arguments), None
    except BaseException as error:  # noqa: BLE001 - raised in the run's process
        return None, (error, traceback.format_exc())


def await_threads(threads: Iterable[threading.Thread], error: BaseException | None = None) -> None:
    """Wait for threads that are about to end; after an interruption, which is no `Exception`, for half a second."""
    deadline = None if error is None or isinstance(error, Exception) else time.monotonic() + PATIENCE
    for thread in threads:
        with interruptible():
            thread.join(None if deadline is None else max(deadline - time.monotonic(), 0))


def count_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
