"""A model behind any server that speaks the chat-completions protocol: OpenAI's, vLLM, Ollama, llama.cpp.

* `OpenAICompatible` - one question, one exchange with the server
* `OPENAI` - where OpenAI's own server is

Nothing is retried here, but for the form of the answer: a server that does not know JSON schemas is
asked for JSON, and one that does not know that either for text with tags. `drift_agents.llm.guarded`
retries, `drift_agents.llm.reask` asks again when an answer cannot be used.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from drift_agents.errors import ArgumentError, MissingDependencyError, ModelAccessError, ModelError
from drift_agents.llm.base import Completion, Message
from drift_agents.llm.failures import refuses_form, translate
from drift_agents.llm.forms import FORMS, instruct, read_answer, response_format
from drift_agents.llm.key import NO_KEY, KeySource
from drift_agents.llm.tokens import count_tokens
from drift_agents.types import Usage

OPENAI = "https://api.openai.com/v1"
"""Where OpenAI's own server is."""

_FINISHES = {"length": "length", "content_filter": "refusal"}


class OpenAICompatible:
    """One question, one exchange with a server that speaks the chat-completions protocol.

    Args:
        model: the model's name, as the server knows it.
        base_url: where the server is, as in `http://127.0.0.1:8000/v1`; OpenAI's own if not given.
        key: where its key comes from; it is read when it is needed, and never shown.
        form: how it is told to answer, one of `drift_agents.llm.forms.FORMS`; `auto` finds out what
            the server knows.
        timeout: seconds to wait for an answer.

    Raises:
        ArgumentError: if an argument cannot be meant.

    Example:
        >>> OpenAICompatible("qwen3:4b", base_url="http://127.0.0.1:11434/v1")
        OpenAICompatible('qwen3:4b', base_url='http://127.0.0.1:11434/v1')
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        key: KeySource | None = None,
        form: str = "auto",
        timeout: float = 120.0,
    ) -> None:
        if not isinstance(model, str) or not model:
            raise ArgumentError(f"`model` should be the name of a model. Received {model!r}")
        if form != "auto" and form not in FORMS:
            raise ArgumentError(f"`form` should be one of {', '.join(('auto', *FORMS))}. Received {form!r}")
        if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 < timeout < float("inf"):
            raise ArgumentError(f"`timeout` should be a positive number of seconds. Received {timeout!r}")
        self.name, self.form, self.timeout = model, form, float(timeout)
        self.base_url = check_url(OPENAI if base_url is None else base_url)
        self._key = KeySource() if key is None else key
        self._lock = threading.Lock()
        self._client: Any = None
        self._secret = ""
        self._known = FORMS[0] if form == "auto" else form

    def __repr__(self) -> str:
        """Name and place; never the key."""
        return f"{type(self).__name__}({self.name!r}, base_url={self.base_url!r})"

    @property
    def identity(self) -> Mapping[str, Any]:
        """What tells its recorded replies from those of other models."""
        return {"base_url": self.base_url, "model": self.name, "form": self.form}

    def complete(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        sample_index: int = 0,
    ) -> Completion:
        """Ask the server once.

        Args:
            messages: the conversation so far.
            schema: the form of the answer.
            parameters: sent as they are, as in `{"temperature": 0, "max_tokens": 200}`.
            sample_index: sent as `seed` unless it is 0 or the parameters have a seed.

        Returns:
            The answer; `data` is `None` if it does not have the form. `milliseconds` is measured.

        Raises:
            ModelAccessError: if the server would refuse this again, whatever is tried.
            ContextLengthError: if the messages are too long for the model.
            ModelUnavailableError: if it may answer when it is asked again.
            MissingDependencyError: if `openai` is not installed.
        """
        extra = {**({"seed": sample_index} if sample_index else {}), **(parameters or {})}
        if schema is None:
            return self._exchange(messages, None, None, extra)
        while True:
            form = self._known
            try:
                answer = self._exchange(instruct(messages, schema, form), schema, response_format(schema, form), extra)
            except _FormRefusedError:
                with self._lock:  # another thread may have found out already
                    if self._known == form:
                        self._known = FORMS[FORMS.index(form) + 1]
                continue
            return replace(answer, data=read_answer(answer.text, schema)[0])

    def _exchange(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None,
        form: Mapping[str, Any] | None,
        parameters: Mapping[str, Any],
    ) -> Completion:
        openai = import_openai()
        client = self._connect()
        request = {**parameters, **({} if form is None else {"response_format": form})}
        sent = [message._asdict() for message in messages]
        started = time.perf_counter()
        try:
            reply = client(model=self.name, messages=sent, extra_body=request)
        except openai.OpenAIError as error:
            if form is not None and self.form == "auto" and refuses_form(error):
                raise _FormRefusedError from error
            raise self._translated(error) from None  # its own chain may hold the key
        except (ValueError, TypeError) as error:  # the client parses the body: what is no JSON, or not of the protocol
            raise self._translated(error) from None
        return _read_reply(reply, sent, round((time.perf_counter() - started) * 1000))

    def _connect(self) -> Callable[..., Any]:
        """The call that asks; the client is made when it is first needed, so that replays need no key."""
        with self._lock:
            if self._client is None:
                openai = import_openai()
                self._secret = self._key.read() or ""
                if not self._secret and self.base_url == OPENAI:
                    raise ModelAccessError(
                        f"{self.base_url} needs a key: {self._key.describe()} is not set. Set it, or name a file with "
                        "--key-file; a server of your own is named with --base-url"
                    )
                self._client = openai.OpenAI(
                    api_key=self._secret or NO_KEY, base_url=self.base_url, timeout=self.timeout, max_retries=0
                )
            call: Callable[..., Any] = self._client.chat.completions.create
            return call

    def _translated(self, error: Exception) -> ModelError:
        return translate(error, self.name, self.base_url, self._secret, self._key.describe(), self.models)

    def models(self) -> list[str]:
        """The names of the models that the server knows; empty if it does not say."""
        openai = import_openai()
        self._connect()
        try:
            return sorted(model.id for model in self._client.models.list())
        except (openai.OpenAIError, ValueError, TypeError, AttributeError):
            return []  # not every server has this list, and it is asked for help alone


class _FormRefusedError(Exception):
    """The server does not know this form of answer."""


def import_openai() -> Any:
    """The package `openai`.

    Raises:
        MissingDependencyError: if it is not installed.
    """
    try:
        import openai
    except ImportError as error:
        raise MissingDependencyError(
            '`openai` is not installed, run `pip install "drift-envs[llm]"`. Recorded replies need no server: --replay'
        ) from error
    return openai


def check_url(url: str) -> str:
    """The address of a server, without a slash at its end.

    Raises:
        ArgumentError: if it is none, or has a key in it: addresses are written into a run's folder.
    """
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ArgumentError(f"`base_url` should be an address, as in http://127.0.0.1:8000/v1. Received {url!r}")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ArgumentError(
            f"`base_url` should have no user, password or query: it is written down. "
            f"Received one for {parts.hostname}. Give the key by the environment or a file"
        )
    return url.rstrip("/")


def _read_reply(reply: Any, sent: Sequence[Mapping[str, str]], milliseconds: int) -> Completion:
    """A server's reply; whatever it leaves out is empty, or estimated."""
    choices = getattr(reply, "choices", None) or [None]
    message = getattr(choices[0], "message", None)
    text = getattr(message, "content", None) or ""
    finish = _FINISHES.get(getattr(choices[0], "finish_reason", None) or "", "stop")
    refusal = getattr(message, "refusal", None)
    if refusal:
        text, finish = text or str(refusal), "refusal"
    elif not text.strip() and finish == "stop":
        finish = "empty"
    usage = getattr(reply, "usage", None)
    tokens_in, tokens_out = getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None)
    used = Usage(
        1,
        count_tokens(message["content"] for message in sent) if tokens_in is None else int(tokens_in),
        count_tokens([text]) if tokens_out is None else int(tokens_out),
        milliseconds,
    )
    return Completion(text, None, used, finish)
