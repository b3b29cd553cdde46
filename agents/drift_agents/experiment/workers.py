"""Where the cells of a run are played when they are not played one after the other.

* `BACKENDS` - the choices: processes of this machine, or Ray's workers on any number of machines
* `play_in_processes` - in processes of this machine
* `play_in_threads` - in threads of this process, which share a service of language models
* `play_on_ray` - on Ray's workers
* `ray_cores` - how many cores Ray has
* `check_reachable` - whether a server listens at Ray's address
"""

from __future__ import annotations

import gc
import logging
import os
import socket
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

import joblib
from joblib.externals.loky import get_reusable_executor

from drift_agents.errors import ExperimentError, MissingDependencyError
from drift_agents.llm.service import Service

T = TypeVar("T")

# Seconds until a machine that does not answer counts as one that is not there.
_PATIENCE = 10

BACKENDS = ("processes", "ray")
"""Processes of this machine; workers of Ray (extra `scale`), on this machine or on those of a cluster."""


def play_in_processes(play: Callable[..., T], calls: Iterable[tuple[Any, ...]], jobs: int) -> Iterator[T]:
    """Call a function in processes of this machine, as many at a time as there are jobs.

    Args:
        play: the function, one of a module.
        calls: its arguments, a tuple a call.
        jobs: how many calls run at the same time.

    Yields:
        What each call returned, when it is over.
    """
    workers = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
    with _whole_on_interrupt():
        yield from workers(joblib.delayed(_play_and_settle)(play, call) for call in calls)


def _play_and_settle(play: Callable[..., T], call: tuple[Any, ...]) -> T:
    """Call the function, and take what it leaves behind out of the collector's sight.

    A worker's caches of texts and plans hold some hundred thousand objects after a while. joblib has each worker
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


def play_in_threads(tasks: Iterable[T], jobs: int, service: Service, do: Callable[[T], None]) -> Iterator[T]:
    """Play cells at the same time, in this process, so that they share the service.

    When one fails or the run is interrupted no new request is sent; pending requests are awaited, since
    their replies are paid for and are recorded.

    Args:
        tasks: what is to be done.
        jobs: how many at the same time.
        service: access to language models.
        do: does one.

    Yields:
        Each task when it is done.
    """
    with ThreadPoolExecutor(jobs, thread_name_prefix="cell") as pool:
        futures = {pool.submit(do, task): task for task in tasks}
        try:
            for future in as_completed(futures):
                future.result()
                yield futures[future]
        except BaseException:
            service.stop()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def play_on_ray(play: Callable[..., T], calls: Iterable[tuple[Any, ...]], jobs: int) -> Iterator[T]:
    """Call a function on Ray's workers, a core each.

    Ray's backend for joblib hands results out when all of them are there; a run notes each cell when it is
    done. So tasks are given to Ray itself.

    Args:
        play: the function, one of a module that is installed on all machines.
        calls: its arguments, a tuple a call.
        jobs: how many calls run at the same time, if Ray has as many cores.

    Yields:
        What each call returned, when it is over.

    Raises:
        MissingDependencyError: if Ray is not installed.
        ExperimentError: if a worker is lost, or no Ray is where `RAY_ADDRESS` says; otherwise what the call raised.
    """
    ray = _connect()
    # A lost worker may still be running, so its task is not retried here; a resumed run continues its file.
    task = ray.remote(num_cpus=1, max_retries=0)(play)
    queue = iter(calls)
    running = [task.remote(*call) for call in islice(queue, jobs)]
    try:
        while running:
            (done,), running = ray.wait(running, num_returns=1)
            try:
                result = ray.get(done)
            except ray.exceptions.RayTaskError as error:
                raise error.cause from None
            except ray.exceptions.RayError as error:
                raise ExperimentError(f"a worker of Ray was lost, go on with --resume: {error}") from error
            running += [task.remote(*call) for call in islice(queue, 1)]
            yield result
    finally:
        for left in running:
            ray.cancel(left, force=True)


def ray_cores() -> int:
    """How many cores Ray has on all its machines.

    Raises:
        MissingDependencyError: if Ray is not installed.
        ExperimentError: if no Ray is where `RAY_ADDRESS` says.
    """
    return max(int(_connect().cluster_resources().get("CPU", 1)), 1)


def _connect() -> Any:
    """The package `ray`, connected: to the cluster at `RAY_ADDRESS`, else to one that is started here."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no telemetry
    try:
        import ray
    except ImportError as error:
        raise MissingDependencyError('`ray` is not installed, run `pip install "drift-envs[scale]"`') from error
    if not ray.is_initialized():
        check_reachable(os.environ.get("RAY_ADDRESS", ""))
        try:
            ray.init(log_to_driver=False, logging_level=logging.ERROR)  # ends with this process
        except (ConnectionError, ValueError) as error:
            raise ExperimentError(f"`RAY_ADDRESS` should name a running Ray: {error}") from error
    return ray


def check_reachable(address: str) -> None:
    """Refuse an address without a server at once; Ray itself would try for minutes.

    Args:
        address: `host:port`, or `ray://host:port`; anything else (as `auto`) is Ray's own matter.

    Raises:
        ExperimentError: if no server listens there.
    """
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise ExperimentError(
            f"`RAY_ADDRESS` should name a running Ray. No server listens at {address!r}: {error}"
        ) from error
