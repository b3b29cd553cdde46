"""Cells on the workers of a cluster, by Ray.

* `BACKENDS` - where cells can be played
* `Cluster` - what a run needs of a cluster
* `open_cluster` - connects to one, or starts one of this machine's processes
* `play_on_cluster` - calls a function on a cluster's workers
* `check_reachable` - whether a server listens at an address

A call is sent with its arguments and its result comes back: workers need no folder in common, and write nothing into
the run's. Requests to language models come back too, and are answered by the command.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count, islice
from types import ModuleType
from typing import Any, Protocol, TypeVar

from drift_agents.errors import ExperimentError, MissingDependencyError
from drift_agents.experiment.model_requests import Answer, Mailbox, Request
from drift_agents.experiment.workers import MOST_LOST

T = TypeVar("T")

BACKENDS = ("processes", "ray")
"""Processes of this machine; workers of Ray (extra `ray`) on any machines."""

# Seconds until a machine that does not answer counts as one that is not there.
_PATIENCE = 10


class LostWorkerError(Exception):
    """The worker of a call has ended before the call; the call can be sent again."""


class Cluster(Protocol):
    """What a run needs of a cluster."""

    @property
    def cores(self) -> int:
        """How many calls run at the same time, at least 1."""

    def start(self, play: Callable[..., Any], call: Sequence[Any]) -> Hashable:
        """Send a call; returns a handle."""

    def wait(self, running: Sequence[Any]) -> Any:
        """Wait for one of these calls to end; returns its handle."""

    def result(self, handle: Any) -> Any:
        """What a call that has ended returned, or raises what it raised.

        Raises:
            LostWorkerError: if its worker ended first.
            ExperimentError: if the cluster cannot be used any more.
        """

    def cancel(self, running: Sequence[Any]) -> None:
        """Cancel calls, whose results are not needed."""

    def open_mailbox(self) -> Mailbox:
        """A mailbox between this process and its calls, which get it as an argument."""


def play_on_cluster(
    cluster: Cluster, play: Callable[..., T], calls: Iterable[tuple[Any, ...]], jobs: int | None = None
) -> Iterator[T]:
    """Call a function on a cluster's workers; a call whose worker was lost is sent again.

    Args:
        cluster: the cluster.
        play: the function, one of a module that is installed on all machines.
        calls: its arguments, a tuple a call.
        jobs: how many calls run at the same time; by default as many as the cluster has cores.

    Yields:
        What each call returned, when it is over.

    Raises:
        ExperimentError: if workers are lost again and again; otherwise what the call raised.
    """
    queue = iter(calls)
    running = {cluster.start(play, call): call for call in islice(queue, jobs or cluster.cores)}
    lost = 0
    try:
        while running:
            done = cluster.wait(list(running))
            call = running.pop(done)
            try:
                result: T = cluster.result(done)
            except LostWorkerError as error:
                lost += 1
                if lost > MOST_LOST:
                    raise ExperimentError(f"workers were lost {lost} times in a row: {error}") from error
                running[cluster.start(play, call)] = call
                continue
            lost = 0
            running |= {cluster.start(play, call): call for call in islice(queue, 1)}
            yield result
    finally:
        cluster.cancel(list(running))


def check_reachable(address: str, what: str) -> None:
    """Refuse an address without a server at once; clients would try for minutes.

    Args:
        address: `host:port`, with or without a protocol; anything else (as `auto`) is the client's own matter.
        what: what should listen there.

    Raises:
        ExperimentError: if no server listens there.
    """
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if not colon or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise ExperimentError(
            f"`address` should name a running {what}. No server listens at {address!r}: {error}"
        ) from error


class _RayCluster:
    """Ray's workers, a core a call."""

    def __init__(self, ray: ModuleType) -> None:
        self._ray = ray
        self._tasks: dict[Callable[..., Any], Any] = {}

    @property
    def cores(self) -> int:
        return max(int(self._ray.cluster_resources().get("CPU", 1)), 1)

    def start(self, play: Callable[..., Any], call: Sequence[Any]) -> Hashable:
        if play not in self._tasks:
            self._tasks[play] = self._ray.remote(num_cpus=1, max_retries=0)(play)
        handle: Hashable = self._tasks[play].remote(*call)
        return handle

    def wait(self, running: Sequence[Any]) -> Any:
        (done,), _ = self._ray.wait(running, num_returns=1)
        return done

    def result(self, handle: Any) -> Any:
        errors = self._ray.exceptions
        try:
            return self._ray.get(handle)
        except errors.RayTaskError as error:
            raise error.cause from None
        except (
            errors.WorkerCrashedError,
            errors.OutOfMemoryError,
            errors.NodeDiedError,
            errors.ObjectLostError,
        ) as error:
            raise LostWorkerError(str(error)) from error
        except errors.RayError as error:
            raise ExperimentError(f"Ray cannot go on: {error}") from error

    def cancel(self, running: Sequence[Any]) -> None:
        with suppress(self._ray.exceptions.RayError):
            for handle in running:
                self._ray.cancel(handle, force=True)

    def open_mailbox(self) -> Mailbox:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        # On this node, so that the loss of another one does not end the run.
        here = NodeAffinitySchedulingStrategy(self._ray.get_runtime_context().get_node_id(), soft=False)
        actor = self._ray.remote(num_cpus=0, max_concurrency=_MOST_REQUESTS, scheduling_strategy=here)(_Requests)
        return _RayMailbox(actor.remote())


_MOST_REQUESTS = 10_000
"""Calls of a mailbox that may wait at the same time."""


class _Requests:
    """Requests that wait for answers: an actor, whose calls are the tasks of one event loop."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[tuple[int, Request] | None] = asyncio.Queue()
        self._answers: dict[int, asyncio.Future[Answer]] = {}
        self._numbers = count()

    async def ask(self, request: Request) -> Answer:
        number = next(self._numbers)
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        await self._queue.put((number, request))
        return await answer

    async def take(self) -> tuple[int, Request] | None:
        return await self._queue.get()

    async def answer(self, number: int, answer: Answer) -> None:
        self._answers.pop(number).set_result(answer)

    async def close(self, takers: int) -> None:
        for _ in range(takers):
            await self._queue.put(None)


class _RayMailbox:
    """A mailbox as an actor of Ray."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    def ask(self, request: Request) -> Answer:
        answer: Answer = self._wait(self._actor.ask.remote(request))
        return answer

    def take(self) -> tuple[int, Request] | None:
        try:
            taken: tuple[int, Request] | None = self._wait(self._actor.take.remote())
        except ExperimentError:  # the cluster is gone, which ends the calls too
            return None
        return taken

    def answer(self, number: int, answer: Answer) -> None:
        with suppress(ExperimentError):
            self._wait(self._actor.answer.remote(number, answer))

    def close(self, takers: int) -> None:
        with suppress(ExperimentError):
            self._wait(self._actor.close.remote(takers))

    def _wait(self, handle: Any) -> Any:
        import ray

        try:
            return ray.get(handle)
        except ray.exceptions.RayError as error:
            raise ExperimentError(f"Ray cannot go on: {error}") from error


@contextmanager
def open_cluster(address: str | None = None, jobs: int | None = None) -> Iterator[Cluster]:
    """Connect to a cluster of Ray, or start one of this machine's processes, which end with this process.

    Args:
        address: of a running cluster: `host:port` or `ray://host:port`. By default the connection that this process
            has already, else the address in `RAY_ADDRESS`, else a cluster is started.
        jobs: how many processes a cluster that is started here has; one a core by default.

    Raises:
        MissingDependencyError: if Ray is not installed.
        ExperimentError: if no cluster is at the address.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no telemetry
    try:
        import ray
    except ImportError as error:
        raise MissingDependencyError('`ray` is not installed, run `pip install "drift-envs[ray]"`') from error
    if ray.is_initialized():
        if address is not None:
            raise ExperimentError(f"`address` should not be given where Ray is connected already. Received {address!r}")
        yield _RayCluster(ray)
        return
    address = address or os.environ.get("RAY_ADDRESS") or None
    check_reachable(address or "", "Ray")
    own = {} if address is not None else {"num_cpus": jobs, "include_dashboard": False}
    try:
        with _kept_handlers():
            ray.init(address or "local", log_to_driver=False, logging_level=logging.ERROR, **own)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise ExperimentError(f"`address` should name a running Ray. Received {address!r}: {error}") from error
    try:
        yield _RayCluster(ray)
    finally:
        ray.shutdown()


@contextmanager
def _kept_handlers() -> Iterator[None]:
    """Keep this process's handler of SIGTERM, which Ray replaces by one that ends the process at once."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and before is not None:
            signal.signal(signal.SIGTERM, before)
