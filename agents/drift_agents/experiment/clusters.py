"""Cells on the workers of a cluster, by Ray, and the language models of the command, which they use.

A call is sent with its arguments and its result comes back: workers need no folder in common, and write nothing into
the run's. They send no request to a model's server either: budget, recorded replies, the count of invalid answers and
the key stay with the command, whose service answers from records or sends the request.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from types import ModuleType
from typing import Any, NamedTuple, Protocol

from drift_agents.errors import ContextLengthError, ExperimentError, needs_extra
from drift_agents.experiment.workers import LostWorkerError, Pool, await_threads
from drift_agents.interruption import interruptible, is_interrupted
from drift_agents.llm.base import Completion, Message, Model
from drift_agents.llm.service import Service

BACKENDS = ("processes", "ray")
"""Processes of this machine; workers of Ray (extra `ray`) on any machines."""

# Seconds until a machine that does not answer counts as one that is not there.
_PATIENCE = 10


@contextmanager
def open_cluster(address: str | None = None, jobs: int | None = None) -> Iterator[Cluster]:
    """Connect to a cluster of Ray, or start one of this machine's processes, which end with this process.

    Args:
        address: of a running cluster: `host:port` or `ray://host:port`. By default the connection that this process
            has already, else the address in `RAY_ADDRESS`, else a cluster is started.
        jobs: how many processes a cluster that is started here has; one a core by default.

    Raises:
        MissingDependencyError: if Ray is not installed.
        ExperimentError: if no cluster is at the address, or none can be started.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no telemetry
    # Ray's core, which takes a second to connect, would end a process at SIGTERM with a stack trace of its own.
    os.environ.setdefault("RAY_DISABLE_FAILURE_SIGNAL_HANDLER", "1")
    with needs_extra("ray", "ray"):
        import ray
    if ray.is_initialized():
        if address is not None:
            raise ExperimentError(f"`address` should not be given where Ray is connected already. Received {address!r}")
        yield _RayCluster(ray)
        return
    address = address or os.environ.get("RAY_ADDRESS") or None
    check_reachable(address or "", "Ray")
    own: dict[str, Any] = {} if address is not None else {"num_cpus": jobs, "include_dashboard": False}
    try:
        with interruptible(), _kept_handlers():
            ray.init(address or "local", log_to_driver=False, logging_level=logging.ERROR, **own)
    except Exception as error:  # a plain `Exception` where the processes of a busy machine start too slowly
        if own:
            raise ExperimentError(f"Ray cannot start on this machine: {error}") from error
        raise ExperimentError(f"`address` should name a running Ray. Received {address!r}: {error}") from error
    try:
        yield _RayCluster(ray)
    finally:
        if not (own and is_interrupted()):  # else Ray does at exit: it takes longer than an interrupted command has
            ray.shutdown()


@contextmanager
def _kept_handlers() -> Iterator[None]:
    """Keep this process's handler of SIGTERM, which Ray replaces by one that exits, also while it starts."""
    if threading.current_thread() is not threading.main_thread():  # where no handler can be set
        yield
        return
    before, set_handler = signal.getsignal(signal.SIGTERM), signal.signal

    def refuse(number: int, handler: Any) -> Any:
        return before if number == signal.SIGTERM else set_handler(number, handler)

    signal.signal = refuse  # type: ignore[assignment]
    try:
        yield
    finally:
        signal.signal = set_handler
        if before is not None:
            signal.signal(signal.SIGTERM, before)  # again: Ray's part in C++ has set one too


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


class Request(NamedTuple):
    """A call of a model's method: the arguments of `Service.model`, those of the method, and its name."""

    model: tuple[Any, ...]
    arguments: tuple[Any, ...]
    method: str = "complete"


Answer = Completion | Exception | None
"""What the method returned or raised."""


class Mailbox(Protocol):
    """Carries requests from workers to the command and answers back; workers get it as an argument of their calls."""

    def ask(self, request: Request) -> Answer:
        """Send a request and wait for its answer (on a worker)."""

    def take(self) -> tuple[int, Request] | None:
        """Wait for a request; returns its number too, and `None` after `close` (in the command)."""

    def answer(self, number: int, answer: Answer) -> None:
        """Answer a request (in the command)."""

    def close(self, takers: int) -> None:
        """Let so many calls of `take` return `None`."""


class RequestedModel:
    """A language model of the command.

    Args:
        mailbox: to the command.
        arguments: those of `Service.model`.
    """

    def __init__(self, mailbox: Mailbox, arguments: tuple[Any, ...]) -> None:
        self._mailbox, self._arguments = mailbox, arguments
        self.name = str(arguments[0])

    def complete(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        sample_index: int = 0,
    ) -> Completion:
        """Answer.

        Raises:
            DriftAgentsError: as `drift_agents.llm.service.ServedModel.complete` does in the command.
        """
        answer: Completion = self._ask("complete", tuple(messages), schema, parameters, sample_index)
        return answer

    def report(self, is_valid: bool, is_cut: bool) -> None:
        """Count an answer, as `drift_agents.llm.service.ServedModel.report` does in the command."""
        self._ask("report", is_valid, is_cut)

    def _ask(self, method: str, *arguments: Any) -> Any:
        answer = self._mailbox.ask(Request(self._arguments, arguments, method))
        if isinstance(answer, Exception):
            raise answer
        return answer


class RequestedService:
    """The command's language models, where `drift_agents.llm.service.Service` stands otherwise.

    Args:
        mailbox: to the command.
        default_model: as there.
    """

    def __init__(self, mailbox: Mailbox, default_model: str | None = None) -> None:
        self._mailbox, self.default_model = mailbox, default_model

    def model(self, name: str, base_url: str | None = None, form: str = "auto", price: object = None) -> Model:
        """The model with these arguments."""
        return RequestedModel(self._mailbox, (name, base_url, form, price))


@contextmanager
def answer_requests(mailbox: Mailbox, service: Service, threads: int) -> Iterator[None]:
    """Answer the requests of all workers while the context lasts.

    When it ends with an error no new request is sent; pending ones are awaited, since their replies are paid for and
    are recorded; for half a second where the run is interrupted.

    Args:
        mailbox: to the workers.
        service: the command's service.
        threads: how many requests are answered at the same time.

    Raises:
        ExperimentError: that of a cell; its cause is the error of the model, where there was one.
    """
    failures: list[Exception] = []

    def answer() -> None:
        while (taken := mailbox.take()) is not None:
            number, request = taken
            try:
                found: Answer = getattr(service.model(*request.model), request.method)(*request.arguments)
            except Exception as error:  # noqa: BLE001 - raised in the worker
                found = error
                if not isinstance(error, ContextLengthError):  # which agents answer with a shorter prompt
                    failures.append(error)
            mailbox.answer(number, found)

    answering = [threading.Thread(target=answer, name=f"model-{number}", daemon=True) for number in range(threads)]
    for thread in answering:
        thread.start()
    raised: BaseException | None = None
    try:
        yield
    except BaseException as error:
        raised = error
        service.stop()
        if failures and isinstance(error, ExperimentError):
            raise error from failures[0]
        raise
    finally:
        mailbox.close(threads)
        await_threads(answering, raised)


class Cluster(Pool, Protocol):
    """A pool of workers with a mailbox to the command."""

    @property
    def cores(self) -> int:
        """How many calls run at the same time, at least 1."""

    def open_mailbox(self) -> Mailbox:
        """A mailbox between this process and its calls, which get it as an argument."""


class _RayCluster:
    """Ray's workers, a core a call."""

    def __init__(self, ray: ModuleType) -> None:
        self._ray = ray
        self._tasks: dict[Callable[..., Any], Any] = {}

    @property
    def cores(self) -> int:
        return max(int(self._ray.cluster_resources().get("CPU", 1)), 1)

    def start(self, play: Callable[..., Any], call: Sequence[Any]) -> Any:
        if play not in self._tasks:
            self._tasks[play] = self._ray.remote(num_cpus=1, max_retries=0)(play)
        return self._tasks[play].remote(*call)

    def wait(self, running: Sequence[Any]) -> Any:
        with interruptible():
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

    def stop(self, running: Sequence[Any]) -> None:
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
