"""Several cells at the same time on this machine; `drift_agents.experiment.clusters` plays them on others.

* `play_in_processes` - in processes of this machine
* `play_in_threads` - in threads of this process, which share a service of language models
* `count_cores` - how many cores this process may use
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, as_completed, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

from joblib.externals.loky import get_reusable_executor

from drift_agents.errors import ExperimentError
from drift_agents.llm.service import Service

S = TypeVar("S")
T = TypeVar("T")

MOST_LOST = 3
"""How often in a row workers may be killed before the run stops."""

_IDLE = 300  # seconds until a process without work ends
_WATCH = 0.5  # seconds
_PR_SET_PDEATHSIG = 1  # of Linux's `prctl`
_THREAD_COUNTS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")


def play_in_processes(play: Callable[..., T], calls: Iterable[tuple[Any, ...]], jobs: int) -> Iterator[T]:
    """Call a function in processes of this machine, as many at a time as there are jobs.

    When a process is killed, the calls that were under way are done again, and a cell's lines are compared with those
    of its first attempt. All processes end with this one.

    Args:
        play: the function, one of a module.
        calls: its arguments, a tuple a call.
        jobs: how many calls run at the same time.

    Yields:
        What each call returned, when it is over.

    Raises:
        ExperimentError: if processes are killed again and again; otherwise what the call raised.
    """
    queue = iter(calls)
    running: dict[Future[T], tuple[Any, ...]] = {}
    lost = 0
    reason: BrokenProcessPool | None = None
    with _whole_on_interrupt():
        for call in islice(queue, jobs):
            running[_submit(play, call, jobs)] = call
        while running:
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            again: list[tuple[Any, ...]] = []
            for future in done:
                call = running.pop(future)
                try:
                    result = future.result()
                except BrokenProcessPool as error:
                    again.append(call)
                    reason = error
                    continue
                lost = 0
                yield result
            if again:
                # The pool ends all its processes when one was killed: what they were at is done again.
                again += running.values()
                wait(running)
                running.clear()
                get_reusable_executor().shutdown(wait=True, kill_workers=True)
                lost += 1
                if lost > MOST_LOST:
                    raise ExperimentError(
                        f"worker processes were killed {lost} times in a row, as a machine without free memory "
                        "does; play fewer cells at the same time with --jobs"
                    ) from reason
            for call in (*again, *islice(queue, jobs - len(running) - len(again))):
                running[_submit(play, call, jobs)] = call


def _submit(play: Callable[..., T], call: tuple[Any, ...], jobs: int) -> Future[T]:
    """Hand a call to the pool of processes, a new one where the last was broken."""
    threads = str(max((os.cpu_count() or 1) // jobs, 1))
    workers = get_reusable_executor(
        max_workers=jobs,
        timeout=_IDLE,
        initializer=_end_with_parent,
        initargs=(os.getpid(),),
        env={name: os.environ.get(name, threads) for name in _THREAD_COUNTS},
    )
    try:
        future: Future[T] = workers.submit(_play_and_settle, play, call)
    except BrokenProcessPool as error:  # a process was killed this very moment; the caller does the call again
        future = Future()
        future.set_exception(error)
    return future


def _end_with_parent(parent: int) -> None:
    """Have this process killed when its parent ends, however that ends, so that no orphan goes on writing."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before this line
        os._exit(1)
    threading.Thread(target=_watch_parent, args=(parent,), name="parent", daemon=True).start()


def _watch_parent(parent: int) -> None:
    """End this process soon after its parent: for systems that send no signal then."""
    while os.getppid() == parent:
        time.sleep(_WATCH)
    os._exit(1)


def _play_and_settle(play: Callable[..., T], call: tuple[Any, ...]) -> T:
    """Call the function, and take what it leaves behind out of the collector's sight.

    A worker's caches of texts and plans hold some hundred thousand objects after a while. loky has each worker
    search all of them for garbage every second, which took half of a long run's time. What is alive after a
    cell are those caches; they hold no cycles, so that what leaves them is freed all the same.
    """
    result = play(*call)
    gc.collect()
    gc.freeze()
    return result


@contextmanager
def _whole_on_interrupt() -> Iterator[None]:
    """End the workers when the run is interrupted, so that no orphan goes on writing."""
    try:
        yield
    except BaseException:
        get_reusable_executor().shutdown(wait=True, kill_workers=True)
        raise


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
