"""A cluster of two threads, for what a run does with any cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import count
from queue import Queue
from typing import Any

from drift_agents.experiment.workers import LostWorkerError


class Threads:
    """A cluster of two threads that loses the workers of some calls."""

    cores = 2

    def __init__(self, lost: Sequence[int] = ()) -> None:
        self._pool = ThreadPoolExecutor(2)
        self._lost, self.started = set(lost), 0

    def start(self, play: Callable[..., Any], call: Sequence[Any]) -> Future[Any]:
        self.started += 1
        if self.started - 1 in self._lost:
            lost: Future[Any] = Future()
            lost.set_exception(LostWorkerError("gone"))
            return lost
        return self._pool.submit(play, *call)

    def wait(self, running: Sequence[Future[Any]]) -> Future[Any]:
        return next(iter(wait(running, return_when=FIRST_COMPLETED).done))

    def result(self, handle: Future[Any]) -> Any:
        return handle.result()

    def stop(self, running: Sequence[Future[Any]]) -> None:
        for handle in running:
            handle.cancel()

    def open_mailbox(self) -> Mailbox:
        return Mailbox()


class Mailbox:
    """A mailbox between threads."""

    def __init__(self) -> None:
        self._queue: Queue[Any] = Queue()
        self._answers: dict[int, Future[Any]] = {}
        self._numbers = count()

    def ask(self, request: Any) -> Any:
        number = next(self._numbers)
        answer = self._answers[number] = Future()
        self._queue.put((number, request))
        return answer.result(60)

    def take(self) -> Any:
        return self._queue.get()

    def answer(self, number: int, answer: Any) -> None:
        self._answers[number].set_result(answer)

    def close(self, takers: int) -> None:
        for _ in range(takers):
            self._queue.put(None)
