"""Several cells at the same time; `drift_agents.experiment.clusters` has the workers of other machines.

* `Pool`, `LostWorkerError` - workers that are given calls
* `play_in_pool` - calls a function on a pool's workers
* `Processes` - the pool of processes of this machine
* `play_in_threads` - plays in threads of this process, which share a service of language models
* `count_cores` - how many cores this process may use
"""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, as_completed, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from itertools import islice
from queue import Empty
from typing import Any, Protocol, TypeVar

from joblib.externals.loky import get_reusable_executor

from drift_agents.errors import ExperimentError
from drift_agents.llm.service import Service

S = TypeVar("S")
T = TypeVar("T")

MOST_LOST = 3
"""How often the worker of a call may be lost before the run stops."""

_IDLE = 300  # seconds until a process without work ends
_WATCH = 0.5  # seconds
_THREAD_COUNTS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")


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
        pool: the workers.
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
    except BaseException:  # GeneratorExit too, which comes where the caller fails
        pool.stop(list(running))
        raise


class Processes:
    """The pool of processes of this machine, which end with this one.

    Args:
        jobs: how many.
    """

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._executor: Any = None

    def start(self, play: Callable[..., Any], call: Sequence[Any]) -> Future[Any]:
        """Send a call, to new processes where the last were killed."""
        threads = str(max((os.cpu_count() or 1) // self._jobs, 1))
        self._executor = get_reusable_executor(
            max_workers=self._jobs,
            timeout=_IDLE,
            initializer=_prepare,
            initargs=(os.getpid(), os.getcwd()),
            env={name: os.environ.get(name, threads) for name in _THREAD_COUNTS},
        )
        try:
            future: Future[Any] = self._executor.submit(_play_and_settle, play, call)
        except BrokenProcessPool as error:  # a process was killed this very moment
            future = Future()
            future.set_exception(error)
        return future

    def wait(self, running: Sequence[Future[Any]]) -> Future[Any]:
        """Wait for one of these calls to end."""
        return next(iter(wait(running, return_when=FIRST_COMPLETED).done))

    def result(self, handle: Future[Any]) -> Any:
        """What the call returned; when one process is killed, the calls of all are lost."""
        try:
            return handle.result()
        except BrokenProcessPool as error:
            raise LostWorkerError(
                "a process was killed, as by a machine without free memory; play fewer cells at the same time "
                "with --jobs"
            ) from error

    def stop(self, running: Sequence[Future[Any]]) -> None:
        """Kill all processes, and wait until they have ended."""
        if self._executor is None:
            return
        with suppress(Empty):  # a call that is still queued there would end loky's thread with a KeyError
            while True:
                self._executor._work_ids.get_nowait()
        self._executor.shutdown(wait=True, kill_workers=True)


def _prepare(parent: int, folder: str) -> None:
    """Have this process end with its parent, however that ends, and leave Ctrl-C to the parent.

    Args:
        parent: its process id.
        folder: where this process works; processes of a run in another folder are not taken over.
    """
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_watch_parent, args=(parent,), name="parent", daemon=True).start()


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_WATCH)
    os._exit(1)


def _play_and_settle(play: Callable[..., T], call: Sequence[Any]) -> T:
    """Call the function, and take what it leaves behind out of the collector's sight.

    A worker's caches of texts and plans hold some hundred thousand objects after a while. loky has each worker
    search all of them for garbage every second, which took half of a long run's time. What is alive after a
    cell are those caches; they hold no cycles, so that what leaves them is freed all the same.
    """
    result = play(*call)
    gc.collect()
    gc.freeze()
    return result


def play_in_threads(tasks: Iterable[S], jobs: int, service: Service, do: Callable[[S], T]) -> Iterator[T]:
    """Play cells at the same time, in this process, so that they share the service.

    When one fails or the run is interrupted no new request is sent; pending requests are awaited, since
    their replies are paid for and are recorded.

    Args:
        tasks: what is to be done.
        jobs: how many at the same time.
        service: access to language models.
        do: does one.

    Yields:
        What each task returned, when it is done.
    """
    failures: list[BaseException] = []

    def do_or_stop(task: S) -> T:
        try:
            return do(task)
        except BaseException as error:
            failures.append(error)
            service.stop()  # here, since this thread begins the next cell before the caller's thread wakes up
            raise

    with ThreadPoolExecutor(jobs, thread_name_prefix="cell") as pool:
        futures = [pool.submit(do_or_stop, task) for task in tasks]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BaseException as error:
            service.stop()
            pool.shutdown(wait=False, cancel_futures=True)
            if failures and isinstance(error, Exception):
                raise failures[0] from failures[0].__cause__  # the others failed since it stopped the service
            raise


def count_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
