"""A model behind a server with the chat-completions protocol: OpenAI, Anthropic, Gemini, vLLM, Ollama, llama.cpp.

* `OpenAICompatible` - one request to the server

The package `openai` repeats requests after failures. Repeated here is what a server refuses: a form of the answer,
after which the next form is requested, and parameters, which are renamed or left out. `drift_agents.llm.reask` repeats
requests after invalid answers.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from drift_agents.errors import ArgumentError, ModelError
from drift_agents.llm.answer_format import (
    FORMS,
    TOOL,
    constrain,
    function_name,
    instruct,
    read_answer,
    without_surrogates,
)
from drift_agents.llm.base import Completion, Message
from drift_agents.llm.connection import connect_client, find_url, import_openai, read_key
from drift_agents.llm.server_errors import find_refused, is_unreachable, read_error, translate_error
from drift_agents.llm.server_replies import read_reply
from drift_envs.checks import check_choice, check_count, check_interval

RETRIES = 10
"""Default number of repeated requests after failures. Their pauses add up to a minute, over which servers count."""
RENAMED: Mapping[str, str] = {"max_tokens": "max_completion_tokens"}
"""The second name of a parameter, used after the first is refused."""


class OpenAICompatible:
    """A model of a server that has the chat-completions protocol.

    Servers and models differ in the parameters that they accept: models that reason take `max_completion_tokens` and
    no temperature, others have no `seed`. A refused parameter is renamed or left out, once, and not sent again.

    Args:
        model: the server's name for the model.
        base_url: the server's address, as in `http://127.0.0.1:8000/v1`; `OPENAI_BASE_URL` if not given, or OpenAI's
            own.
        key_file: a file with its key, in the place of the environment variable. The key is read at the first request,
            since recorded replies need none, and never shown.
        form: the form of answers, one of `json_schema`, `json_object`, `text` and `tool`
            (`drift_agents.llm.answer_format`); `auto` finds the first one that the server supports, but for `tool`.
        timeout: seconds to wait for an answer.
        retries: repeated requests after failures, at the most.
        note: called with a sentence about what the server refuses.

    Raises:
        ArgumentError: if an argument is not valid.

    Example:
        >>> OpenAICompatible("qwen3:4b", base_url="http://127.0.0.1:11434/v1")
        OpenAICompatible('qwen3:4b', base_url='http://127.0.0.1:11434/v1')
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        key_file: str | os.PathLike[str] | None = None,
        form: str = "auto",
        timeout: float = 120.0,
        retries: int = RETRIES,
        note: Callable[[str], None] | None = None,
    ) -> None:
        if not isinstance(model, str) or not model:
            raise ArgumentError(f"`model` should be the name of a model. Received {model!r}")
        check_choice("form", form, ("auto", *FORMS, TOOL))
        self.timeout = check_interval("timeout", timeout, "(0, inf)")
        self.retries = check_count("retries", retries, least=0)
        self.name, self.form = model, form
        self.base_url = find_url(base_url)
        self._key_file, self._note = key_file, note
        self._lock = threading.Lock()
        self._opened: Any = None
        self._end: Callable[[], object] = lambda: None
        self._key = ("", "")
        self._is_reached = False
        self._forms = list(FORMS) if form == "auto" else [form]
        self._names: dict[str, str | None] = {}

    def __repr__(self) -> str:
        """Name and address, without the key."""
        return f"{type(self).__name__}({self.name!r}, base_url={self.base_url!r})"

    @property
    def identity(self) -> Mapping[str, Any]:
        """The part of the key of recorded replies that stands for the model."""
        return {"base_url": self.base_url, "model": self.name, "form": self.form}

    @property
    def _client(self) -> Any:
        """The client, made at the first request."""
        with self._lock:
            if self._opened is None:
                self._key = read_key(self.base_url, self._key_file)
                self._opened = connect_client(self.base_url, self._key[0], self.timeout, self.retries)
                # not `__del__`, which the garbage collector may call after it has found a socket that is not closed
                self._end = weakref.finalize(self, self._opened.close)
            return self._opened

    def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        with self._lock:
            if self._opened is not None:
                self._end()
                self._opened = None

    def complete(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        sample_index: int = 0,
    ) -> Completion:
        """Send one request.

        Args:
            messages: the conversation so far.
            schema: the form of the answer.
            parameters: sent unchanged, as in `{"temperature": 0, "max_tokens": 200}`.
            sample_index: sent as `seed` unless it is 0 or the parameters have a seed.

        Returns:
            The answer; `data` is `None` if it does not have the form. `milliseconds` is measured, with the
            pauses of retries.

        Raises:
            ModelAccessError: if the server would refuse any retry as well.
            ContextLengthError: if the messages are too long for the model.
            ModelUnavailableError: if there was no answer, after all retries.
            MissingDependencyError: if `openai` is not installed.
        """
        openai, client = import_openai(), self._client
        wanted = {**({"seed": sample_index} if sample_index else {}), **(parameters or {})}
        while True:
            form = "" if schema is None else self._forms[0]
            fields = {} if schema is None else constrain(schema, form)
            instructed = messages if schema is None else instruct(messages, schema, form)
            sent = [{"role": role, "content": without_surrogates(content)} for role, content in instructed]
            own = {second: value for name, value in wanted.items() if (second := self._names.get(name, name))}
            # With retries a wrong address would be reported after a minute.
            sender = client if self._is_reached else client.with_options(max_retries=0)
            started = time.perf_counter()
            try:
                reply = sender.chat.completions.create(model=self.name, messages=sent, extra_body={**fields, **own})
            except openai.OpenAIError as error:
                if not (self._drops(error, form if fields else "") or self._renames(error, own) or self._begins(error)):
                    raise self._translate(error) from None  # its own chain may hold the key
            except (ValueError, TypeError, RecursionError) as error:  # of the client's parser: no reply of the protocol
                raise self._translate(error) from None
            else:
                self._is_reached = True
                break
        called = function_name(schema) if schema is not None and form == TOOL else None
        answer = read_reply(reply, sent, round((time.perf_counter() - started) * 1000), called, schema)
        return answer if schema is None else replace(answer, data=read_answer(answer.text, schema).data)

    def _begins(self, error: Exception) -> bool:
        """Whether this is the first failure of a server that is there: from now on requests are sent with retries."""
        if self._is_reached or not self.retries:
            return False
        found = read_error(error)
        self._is_reached = found.is_transient if found is not None else not is_unreachable(error)
        return self._is_reached

    def _drops(self, error: Exception, form: str) -> bool:
        """Whether the form of the answer was refused, which is then not used again."""
        found = read_error(error)
        if not form or self.form != "auto" or found is None or not found.is_form_refusal:
            return False
        self._forms = [other for other in self._forms if other != form]  # another thread may have dropped it already
        return True

    def _renames(self, error: Exception, sent: Mapping[str, Any]) -> bool:
        """Whether a parameter was refused, which is then renamed or left out."""
        found = read_error(error)
        refused = None if found is None else find_refused(found, sent)
        if refused is None:
            return False
        original = next((first for first, now in self._names.items() if now == refused), refused)
        second = RENAMED.get(refused) if original == refused else None
        self._names = {**self._names, original: second}
        if self._note is not None:
            done = f"leaves out `{refused}`" if second is None else f"sends `{second}` for `{refused}`"
            self._note(f"{self.name!r} at {self.base_url}: {done}, which the server refuses")
        return True

    def _translate(self, error: Exception) -> ModelError:
        return translate_error(error, self.name, self.base_url, self._key, self.models)

    def models(self) -> list[str]:
        """The names of the server's models; empty if it has no such list."""
        openai, client = import_openai(), self._client
        try:
            return sorted(str(model.id) for model in client.with_options(max_retries=0).models.list())
        except (openai.OpenAIError, ValueError, TypeError, AttributeError, RecursionError):
            return []  # not every server has this list, which only completes an error message
