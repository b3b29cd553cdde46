"""All language models of a run, with what they share: recorded replies and a budget.

No request is sent twice, and a run can be repeated without a server.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from drift_agents.errors import ContextLengthError, ReplayError, StoppedError
from drift_agents.llm.base import Completion, Message, Model, Options
from drift_agents.llm.budget import FREE, Budget, Price, check_price
from drift_agents.llm.openai_compatible import RETRIES, OpenAICompatible
from drift_agents.llm.reask import AnswerMonitor
from drift_agents.types import Usage
from drift_envs.messages import read_answer
from drift_envs.utils.error_messages import describe_invalid

_TOO_LONG = "context_too_long"
"""The recorded `finish` of a request that was too long for the model."""


class Totals(NamedTuple):
    """Counts of requests, tokens and money.

    Args:
        answered: requests that servers answered.
        recorded: requests with a recorded reply.
        tokens: of prompts and answers, as counted by the servers; those of recorded replies are not included.
        cost: the money for these tokens.
    """

    answered: int
    recorded: int
    tokens: int
    cost: float


class Service:
    """Makes models that share recorded replies and a budget.

    The budget is for all servers together, and recorded replies of earlier commands count towards it. A server gets as
    many requests at a time as threads send them.

    Args:
        replies: where replies are recorded, or read from; nowhere if not given.
        key_file: a file with the servers' key, in the place of the environment variable.
        timeout: seconds to wait for an answer.
        budget: tokens and money for all requests.
        retries: repeated requests after failures, at the most.
        monitor: counts invalid answers, and raises an error when they are too many; none if not given.
        note: called with a sentence about what a server refuses.

    Example:
        >>> Service(budget=Budget(tokens=10**6)).model("qwen3:4b", base_url="http://127.0.0.1:11434/v1").name
        'qwen3:4b'
    """

    default_model: str | None = None
    """The model of policies that name none; an error if there is none either."""

    def __init__(
        self,
        *,
        replies: ReplyStore | None = None,
        key_file: str | os.PathLike[str] | None = None,
        timeout: float = 120.0,
        budget: Budget | None = None,
        retries: int = RETRIES,
        monitor: AnswerMonitor | None = None,
        note: Callable[[str], None] | None = None,
    ) -> None:
        self.replies, self.monitor = replies, monitor
        self.budget = Budget() if budget is None else budget
        self.stopped = threading.Event()
        self._options: dict[str, Any] = {"key_file": key_file, "timeout": timeout, "retries": retries, "note": note}
        self._models: dict[tuple[object, ...], ServedModel] = {}
        self._clients: list[OpenAICompatible] = []
        self._counted: set[tuple[str, str]] = set()
        self._before = (0, 0.0)
        self._lock = threading.Lock()

    def model(self, name: str, base_url: str | None = None, form: str = "auto", price: object = None) -> Model:
        """Return the model with these arguments; it is made once.

        Args:
            name: the server's name for it.
            base_url: the server's address; OpenAI's own if not given.
            form: the form of answers, as in `OpenAICompatible`.
            price: of a million tokens of prompts and of answers; free if not given.

        Raises:
            ArgumentError: if an argument is not valid.
        """
        checked_price = check_price(price)
        client = OpenAICompatible(name, base_url=base_url, form=form, **self._options)
        arguments = (name, client.base_url, form, checked_price)
        with self._lock:
            if arguments not in self._models:
                self._clients.append(client)
                self._count_records(client, checked_price)
                self._models[arguments] = ServedModel(client, self, checked_price)
            return self._models[arguments]

    def _count_records(self, client: OpenAICompatible, price: Price) -> None:
        """Count what the recorded replies of a model cost, once, when the budget has a limit."""
        place = (client.base_url, client.name)
        if self.replies is None or self.replies.read_only or not self.budget.is_limited or place in self._counted:
            return
        self._counted.add(place)
        for question, reply in self.replies.questions():
            if (question.get("base_url"), question.get("model")) == place:
                counts = (reply.tokens_in, reply.tokens_out, reply.tokens_cached)
                tokens, cost = counts[0] + counts[1], price.of(*counts)
                self._before = (self._before[0] + tokens, self._before[1] + cost)
                self.budget.spend(tokens, cost)

    def stop(self) -> None:
        """Send no further request; those that are running are completed and recorded."""
        self.stopped.set()

    def close(self) -> None:
        """Close the connections, and the file of replies, if there is one."""
        for client in self._clients:
            client.close()
        if self.replies is not None:
            self.replies.close()

    def totals(self) -> Totals:
        """Return the counts so far."""
        return Totals(
            sum(model.answered for model in self._models.values()),
            0 if self.replies is None else self.replies.hits,
            self.budget.tokens_spent - self._before[0],
            self.budget.money_spent - self._before[1],
        )


class ServedModel:
    """A model of a service: recorded requests are not sent, others are within the budget.

    Args:
        model: the model that answers; it is never called if the recorded replies are read only.
        service: what it shares with other models.
        price: of its tokens.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from drift_agents.llm.base import RuleModel
        >>> with TemporaryDirectory() as folder, ReplyStore(f"{folder}/replies.sqlite") as replies:
        ...     model = ServedModel(RuleModel({"slip": lambda text: "yes"}), Service(replies=replies))
        ...     [model.complete([Message("user", "Is it slippery?")], {"title": "slip"}).text for _ in range(2)]
        ['"yes"', '"yes"']
    """

    def __init__(self, model: Model, service: Service, price: Price = FREE) -> None:
        self.model, self.name, self.service, self.price = model, model.name, service, price
        self._identity: Mapping[str, Any] = getattr(model, "identity", {"model": model.name})
        self.answered = 0
        """Requests that were answered, and not from records."""

    def complete(
        self, messages: Sequence[Message], schema: Options = None, parameters: Options = None, sample_index: int = 0
    ) -> Completion:
        """Return the recorded reply, or get one from the model and record it.

        Raises:
            ReplayError: if nothing is recorded and the records are read only, or their file cannot be used.
            ContextLengthError: if the request was too long for the model; this is recorded, too.
            StoppedError: if no further request is sent.
            BudgetError: if the budget is spent.
            ModelError: any other error of the model. Errors are not recorded.
        """
        arguments = (messages, schema, parameters, sample_index)
        replies = self.service.replies
        answer = self._send(*arguments) if replies is None else self._recall(replies, *arguments)
        return answer if schema is None else replace(answer, data=read_answer(answer.text, schema).data)

    def report(self, is_valid: bool, is_cut: bool) -> None:
        """Count an answer after all re-asks, as `AnswerMonitor.count` does.

        Raises:
            UnusableAnswersError: if too many answers are invalid.
        """
        if self.service.monitor is not None:
            self.service.monitor.count(is_valid, is_cut)

    def _recall(
        self, replies: ReplyStore, messages: Sequence[Message], schema: Options, parameters: Options, sample_index: int
    ) -> Completion:
        """The recorded reply, after it was requested if there is none."""
        request = {
            **self._identity,
            "messages": [list(message) for message in messages],
            "schema": schema,
            "parameters": dict(parameters or {}),
            "sample_index": sample_index,
        }
        question = json.dumps(request, sort_keys=True, ensure_ascii=False)
        key = hashlib.sha256(question.encode("utf-8", "surrogatepass")).digest()
        title = str((schema or {}).get("title", ""))
        with replies.alone(key):
            reply = replies.get(key)
            if reply is None and replies.read_only:
                end = messages[-1].content[-120:] if messages else ""
                raise ReplayError(
                    f"{replies.path}: holds no reply of {self.name!r} to {title or 'a request'!r} that ends "
                    f"with {end!r}. Was it recorded with the same experiment, model, address and version?"
                )
            if reply is None:
                try:
                    answer = self._send(messages, schema, parameters, sample_index)
                except ContextLengthError as error:
                    answer = Completion(str(error), finish=_TOO_LONG)
                recorded = {name: getattr(answer, name) for name in RecordedReply.model_fields}
                reply = replies.put(key, self.name, title, question, RecordedReply(**recorded))
        if reply.finish == _TOO_LONG:
            raise ContextLengthError(reply.text)
        usage = Usage(reply.model_calls, reply.tokens_in, reply.tokens_out, reply.milliseconds)
        return self._with_cost(Completion(reply.text, None, usage, reply.finish, reply.tokens_cached))

    def _send(self, *request: Any) -> Completion:
        """Send a request within the budget."""
        if self.service.stopped.is_set():
            raise StoppedError("not sent, the run was stopped")
        self.service.budget.check()
        answer = self._with_cost(self.model.complete(*request))
        self.answered += 1
        self.service.budget.spend(answer.tokens_in + answer.tokens_out, answer.cost)
        return answer

    def _with_cost(self, answer: Completion) -> Completion:
        cost = self.price.of(answer.tokens_in, answer.tokens_out, answer.tokens_cached)
        return replace(answer, usage=answer.usage._replace(cost=cost))


_TABLES = """
CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS replies (
    key BLOB PRIMARY KEY,       -- SHA-256 of the request
    model TEXT NOT NULL,
    title TEXT NOT NULL,        -- of the schema
    question BLOB NOT NULL,     -- the request as JSON, deflated
    reply TEXT NOT NULL         -- the reply as JSON
) WITHOUT ROWID;
INSERT OR IGNORE INTO about VALUES ('format', 'drift-agents replies 1');
"""
_FORMAT = "drift-agents replies 1"


class RecordedReply(BaseModel):
    """A recorded reply: its text, what it cost but for the money, and why it ends."""

    model_config = ConfigDict(strict=True, frozen=True)

    text: str
    model_calls: NonNegativeInt
    tokens_in: NonNegativeInt
    tokens_out: NonNegativeInt
    milliseconds: NonNegativeInt
    finish: str
    tokens_cached: NonNegativeInt = 0


class ReplyStore:
    """One SQLite file of recorded replies.

    The key of a reply is a hash of the model and its address, the messages, the schema, the parameters and the
    sample index; the API key is no part of it. Of two replies to one request the first is kept, so that all
    processes that share the file get the same.

    Args:
        path: the file; created if it does not exist, unless `read_only`.
        read_only: whether nothing is written; a request without a recorded reply is then an error.

    Raises:
        ReplayError: if the file cannot be used.
    """

    def __init__(self, path: str | os.PathLike[str], read_only: bool = False) -> None:
        self.path, self.read_only = Path(path), read_only
        self._lock = threading.RLock()
        self._running: dict[bytes, threading.Lock] = {}
        self.hits = 0
        self._opened: sqlite3.Connection | None = None
        if read_only and not self.path.is_file():
            raise ReplayError(f"{self.path}: there are no recorded replies")

    @property
    def _file(self) -> sqlite3.Connection:
        """The database, opened at first use, since a run creates its folder late."""
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def _open(self) -> sqlite3.Connection:
        address = f"{self.path.absolute().as_uri()}?mode={'ro' if self.read_only else 'rwc'}"
        try:
            with ExitStack() as opened:
                file = sqlite3.connect(address, uri=True, timeout=60.0, isolation_level=None, check_same_thread=False)
                opened.callback(file.close)
                if not self.read_only:
                    file.executescript(_TABLES)
                row = file.execute("SELECT value FROM about WHERE key = 'format'").fetchone()
                if row != (_FORMAT,):
                    raise ReplayError(
                        f"{self.path}: should hold recorded replies, format {_FORMAT!r}. Received {row!r}"
                    )
                opened.pop_all()
                return file
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def __enter__(self) -> ReplyStore:
        """Return the store."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    def _query(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        with self._lock:
            try:
                return self._file.execute(sql, values).fetchall()
            except sqlite3.Error as error:
                raise self._unusable(error) from error

    def __len__(self) -> int:
        """The number of replies."""
        return int(self._query("SELECT count(*) FROM replies")[0][0])

    def get(self, key: bytes) -> RecordedReply | None:
        """The recorded reply, `None` if there is none.

        Raises:
            ReplayError: if the file cannot be read, or the reply in it is damaged.
        """
        with self._lock:
            rows = self._query("SELECT reply FROM replies WHERE key = ?", key)
            self.hits += bool(rows)
            return self._parse(key, rows[0][0]) if rows else None

    def put(self, key: bytes, model: str, title: str, question: str, reply: RecordedReply) -> RecordedReply:
        """Record a reply, unless another process has recorded one meanwhile.

        Returns:
            The reply that is in the file.

        Raises:
            ReplayError: if the file cannot be written.
        """
        deflated = zlib.compress(question.encode("utf-8", "replace"))
        row = (key, model, title, deflated, reply.model_dump_json(exclude_defaults=True))
        self._query("INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?, ?)", *row)
        return self._parse(key, self._query("SELECT reply FROM replies WHERE key = ?", key)[0][0])

    def _parse(self, key: bytes, reply: str) -> RecordedReply:
        try:
            return RecordedReply.model_validate_json(reply)
        except ValidationError as error:
            raise self._damaged(key, describe_invalid(error)) from error

    def _damaged(self, key: bytes, rule: str) -> ReplayError:
        return self._unusable(f"the one with the key {key.hex()[:16]} is not what was recorded: {rule}")

    def questions(self) -> Iterator[tuple[Mapping[str, Any], RecordedReply]]:
        """All requests with their replies, in the order of their keys; none before the file is created.

        Raises:
            ReplayError: if one of them is damaged.
        """
        if self._opened is None and not self.path.is_file():
            return
        for key, question, reply in self._query("SELECT key, question, reply FROM replies ORDER BY key"):
            try:
                request = dict(json.loads(zlib.decompress(question)))
            except (zlib.error, TypeError, ValueError, RecursionError) as error:
                raise self._damaged(key, f"its request: {error}") from error
            yield request, self._parse(key, reply)

    @contextmanager
    def alone(self, key: bytes) -> Iterator[None]:
        """Admit one thread at a time for each key, so that the others find the recorded reply."""
        with self._lock:
            lock = self._running.setdefault(key, threading.Lock())
        with lock:
            yield
        # Only after a reply: after an error the waiting threads send the request one after the other.
        with self._lock:
            self._running.pop(key, None)

    def _unusable(self, error: object) -> ReplayError:
        return ReplayError(f"{self.path}: the recorded replies cannot be used: {error}")
