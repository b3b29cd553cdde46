"""Language models of the command, for cells that are played on a cluster.

* `Mailbox` - carries requests from workers to the command and answers back
* `RequestedService` - stands where `drift_agents.llm.service.Service` does, on a worker
* `answer_requests` - answers the requests of all workers, in the command

Workers send no request to a model's server: budget, recorded replies, the count of invalid answers and the key stay
with the command, whose service answers from records or sends the request.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from drift_agents.errors import ContextLengthError, ExperimentError
from drift_agents.llm.base import Completion, Message, Model
from drift_agents.llm.service import Service


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
    are recorded.

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
    try:
        yield
    except BaseException as error:
        service.stop()
        if failures and isinstance(error, ExperimentError):
            raise error from failures[0]
        raise
    finally:
        mailbox.close(threads)
        for thread in answering:
            thread.join()
