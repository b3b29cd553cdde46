"""What is fuzzed: everything that reads what comes from outside.

* `TARGETS` - by name: how an input is made, and what reads it
* `Target` - one of them; `run` reads an input and lets only errors pass that are not the project's own
* `make_test` - a target as a Hypothesis test of so many inputs

An input is one text. It begins as a text that is right, to which Hypothesis applies edits: it deletes, repeats,
swaps and replaces tokens. Inputs therefore go deep, and a finding shrinks to the edits that matter.
"""

from __future__ import annotations

import atexit
import functools
import json
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from drift_agents.errors import DriftAgentsError
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as with_seed
from hypothesis import strategies as st

from drift_envs.errors import DriftEnvsError
from webshop_server.errors import ShopError

OURS = (DriftAgentsError, DriftEnvsError, ShopError)
"""The errors that a reader may raise."""

MOST_SECONDS = 10.0
"""The processor time that an input may take; a busy machine does not lengthen it."""

ROOT = Path(__file__).resolve().parents[2]

_ODD_TEXT = """null ~ true No on 0 -1 1 0.5 -0.0 1e309 .inf .nan 1e-320 0x1F 0123 6e-4 9223372036854775807
9223372036854775808 100000000 [] {} [[]] "" '' - : , * & ! | > # % @ ` ? ... --- !!python/object !!binary
&a *a <<: [1,2 {a:1} }{ ][ NaN
-Infinity "\\ud800" \ud800 \udfff \u0000 \x00 \n \t \r \u2028 \ufeff é ☃ 💥 \u202e ../ /etc/passwd %00 %2F %ZZ %C3%28 ;
a/b http://x// fixed_7 fixed_99999999999 search[ click[ ]] <action> </action> <think> ```json ``` {"action": 2026-01-01
12:30:45 0o17 +.5 None True __class__ {{7*7}} ${x} \\ \\\\ " ' 1_000 extends set add scale swap choice
walk every for at over"""
ODD = _ODD_TEXT.split(" ")
DIGITS = ["1" * 400, "9" * 5000, "[" * 300, '{"a":' * 300, "a" * 3000]
TOKENS = re.compile(r"\w+|\s+|[^\w\s]")
NUMBER = st.integers(0, 2**16)
EDITS = st.lists(st.tuples(st.integers(0, 6), NUMBER, NUMBER), max_size=6)


def edit(text: str, edits: Sequence[tuple[int, int, int]]) -> str:
    """A text after some edits of its tokens; equal arguments give equal texts."""
    tokens = TOKENS.findall(text)
    for kind, one, other in edits:
        place = one % (len(tokens) + 1)
        end = place + other % 9
        if kind == 0:
            del tokens[place:end]
        elif kind == 1:
            tokens[place:place] = tokens[place:end]
        elif kind == 2:
            tokens[place : place + 1] = [ODD[other % len(ODD)]]
        elif kind == 3:
            tokens[place:place] = [ODD[other % len(ODD)]]
        elif kind == 4 and tokens:
            tokens[place : place + 1] = [tokens[other % len(tokens)]]
        elif kind == 5:
            tokens[place : place + 1] = [str(other - 2**15)]
        elif kind == 6:
            tokens[place : place + 1] = [DIGITS[other % len(DIGITS)] if one % 16 == 0 else chr(other)]
    return "".join(tokens)


class Target:
    """Something that reads a text.

    Args:
        name: the folder of its corpus.
        seeds: returns texts that are right, to begin with.
        make_reader: returns the function that reads; it may make what it needs first.
        share: its share of all inputs.
    """

    def __init__(
        self,
        name: str,
        seeds: Callable[[], list[str]],
        make_reader: Callable[[], Callable[[str], object]],
        share: float,
    ) -> None:
        self.name, self.share = name, share
        self._seeds, self._make_reader = functools.cache(seeds), functools.cache(make_reader)
        self.inputs = self.accepted = 0
        self.longest = 0.0

    def prepare(self) -> None:
        """Make what the reader needs, and read a first input."""
        self._make_reader()(self._seeds()[0])

    def make_input(self, number: int, edits: Sequence[tuple[int, int, int]]) -> str:
        """The input that some edits of a seed give."""
        return edit(self._seeds()[number % len(self._seeds())], edits)

    def run(self, text: str) -> bool:
        """Read an input; whether it was accepted. Every error that is not one of `OURS` passes through."""
        read = self._make_reader()
        self.inputs += 1
        begin = time.process_time()
        try:
            read(text)
        except OURS as error:
            if not str(error).strip():
                raise AssertionError(f"{type(error).__name__} without a message") from error
            return False
        finally:
            seconds = time.process_time() - begin
            self.longest = max(self.longest, seconds)
        if seconds > MOST_SECONDS:
            raise AssertionError(f"took {seconds:.1f} s")
        self.accepted += 1
        return True


def make_test(target: Target, inputs: int, seed: int, report: Callable[[str], None] = lambda _: None) -> Any:
    """A Hypothesis test that gives a target so many inputs; each input that fails is reported, the smallest last."""

    @with_seed(seed)
    @settings(
        max_examples=inputs,
        database=None,
        derandomize=False,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, 999), EDITS)
    def test(number: int, edits: list[tuple[int, int, int]]) -> None:
        text = target.make_input(number, edits)
        try:
            target.run(text)
        except Exception:
            report(text)
            raise

    return test


def _files(pattern: str, most: int = 20_000) -> list[str]:
    found = [path.read_text("utf-8") for path in sorted(ROOT.glob(pattern))]
    return [text for text in found if len(text) < most]


@functools.cache
def _folder() -> Path:
    place = tempfile.mkdtemp(prefix="fuzz-")
    atexit.register(shutil.rmtree, place)
    return Path(place)


def _write(name: str, text: str) -> Path:
    path = _folder() / name
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return path


def _schedule_reader() -> Callable[[str], object]:
    from drift_envs.cli.schedules import _table_for
    from drift_envs.registration import knob_table_of
    from drift_envs.schedule import Timeline, load_schedule
    from tests.core_ids import CORE_IDS

    def table_for(content: Any) -> Any:
        # Other environments would be imported and made.
        return _table_for(content) if content.get("env") in CORE_IDS and "knobs" not in content else None

    def read(text: str) -> None:
        schedule = load_schedule(_write("schedule.yaml", text), table=table_for)
        if schedule.env in CORE_IDS and not schedule.knobs:
            timeline = Timeline(schedule, knob_table_of(schedule.env), 0)
            for tick in (0, 21, 10**6):
                timeline.phase(tick)
                timeline.values(tick)

    return read


def _experiment_reader() -> Callable[[str], object]:
    from drift_agents.experiment.loader import parse_experiment, parse_text

    def read(text: str) -> None:
        data, line = parse_text(text, "experiment.yaml")
        parse_experiment(data, "experiment.yaml", line)

    return read


def _catalogue_seeds() -> list[str]:
    product = {
        "asin": "B09ABCDEFG",
        "name": "Red Mug",
        "full_description": "A mug.",
        "small_description": ["holds tea", "is red"],
        "pricing": "$4.50 - $6.00",
        "customization_options": {"Color": [{"value": "Red"}, {"value": "Blue"}], "size": None},
        "product_category": "Kitchen › Mugs",
        "category": "garden",
        "query": "mugs",
        "average_rating": 4.5,
        "images": [],
    }
    plain = {"asin": "B000000001", "name": "Tea", "pricing": "", "query": "tea"}
    return [json.dumps([product, plain]), json.dumps([plain], indent=1)]


def _catalogue_reader() -> Callable[[str], object]:
    from webshop_server.importer import import_products

    attributes = json.dumps({"B09ABCDEFG": {"attributes": ["red"], "instruction": "buy", "instruction_attributes": []}})

    def read(text: str) -> None:
        report = import_products(
            _folder() / "catalogue.sqlite", _write("items.json", text), _write("ins.json", attributes), resume=False
        )
        del report

    return read


@functools.cache
def _inventory() -> Any:
    from webshop_server.inventory import Inventory

    return Inventory.default(products=100)


def _address_seeds() -> list[str]:
    product = _inventory().catalogue.at(3)
    option = json.dumps(dict(product.options and [(product.options[0].name, product.options[0].values[0])]))
    return [
        "GET /",
        "GET /?goal=3",
        "POST /fixed_3 search_query=red+mug",
        "GET /search_results/fixed_3/red+mug/1",
        "GET /search_results/fixed_3/%5B'red'%2C'mug'%5D/2",
        f"GET /item_page/fixed_3/{product.asin}/red+mug/1/%7B%7D",
        f"GET /item_sub_page/fixed_3/{product.asin}/red/1/Description/{option}",
        f"POST /ad/fixed_3/{product.asin}/%7B%7D/0 button=A",
        f"POST /confirm/fixed_3/{product.asin}/%7B%7D",
        f"POST /done/fixed_3/{product.asin}/{option}",
        f"GET /image/{product.asin}.svg?color=red",
        'PATCH /admin/settings {"ad_page": true, "ad_right_button": "B", "price_factor": 1.5, "sold_out": ["offer:0"]}',
        'POST /admin/sessions {"goal": 7, "name": "fixed_3"}',
        'PATCH /admin/sessions/fixed_3/settings {"button_labels": {"Buy Now": "Go"}, "color_classes": {"a": ["b"]}}',
        "GET /admin/sessions/fixed_3",
        "DELETE /admin/sessions/fixed_3",
    ]


def _address_reader() -> Callable[[str], object]:
    from webshop_server.app import Config, create_app
    from webshop_server.settings import Settings

    token = "a token of tests"
    app = create_app(Config(_inventory(), admin_token=token, max_sessions=50))
    client = app.test_client()
    shop = app.extensions["webshop"].shop

    def read(text: str) -> None:
        method, _, rest = text.partition(" ")
        path, _, body = rest.partition(" ")
        method = method if method in ("GET", "POST", "PATCH", "DELETE") else "GET"
        environ = {
            "REQUEST_METHOD": method,
            "PATH_INFO": _unquote(path.partition("?")[0]),
            # Blanks and control characters end a request line, so that a server never hands them on.
            "QUERY_STRING": re.sub(r"[\x00-\x20\x7f]", "", _quote_nothing(path.partition("?")[2])),
            "HTTP_AUTHORIZATION": f"Bearer {token}",
        }
        shop.settings = Settings()
        kind = "application/json" if path.startswith("/admin") else "application/x-www-form-urlencoded"
        data = body.encode("utf-8", "surrogatepass")
        answer = client.open(environ_overrides=environ, method=method, data=data, content_type=kind)
        if answer.status_code >= 500:
            raise AssertionError(f"status {answer.status_code}")

    app.testing = True  # errors pass
    return read


def _quote_nothing(query: str) -> str:
    return query.encode("utf-8", "surrogatepass").decode("latin-1")


def _unquote(path: str) -> str:
    """The path as a server hands it on: bytes in Latin-1."""
    from urllib.parse import unquote_to_bytes

    return unquote_to_bytes(path.encode("utf-8", "surrogatepass")).decode("latin-1")


def _action_seeds() -> list[str]:
    asin = _inventory().catalogue.at(3).asin
    return ["search[red mug]", "click[buy now]", f"click[{asin.lower()}]", "click[next >]", "0", "[0.5]", '{"1": 2}']


def _action_reader() -> Callable[[str], object]:
    import gymnasium as gym

    import drift_envs
    from webshop_server.shop import Shop

    del drift_envs  # registers the ids
    session = Shop(_inventory()).start(0)
    session.act("search[shirt]")
    environments = [gym.make(name) for name in ("DriftFrozenLake-v0", "DriftMountainCarContinuous-v0")]
    for env in environments:
        env.reset(seed=0)

    def read(text: str) -> None:
        session.act(text)
        session.visit(session.page.url) if session.is_done else None
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = text
        for env in environments:
            try:
                *_, terminated, truncated, _ = env.step(value)
            except DriftEnvsError:
                continue
            if terminated or truncated:
                env.reset()

    return read


def _reply_seeds() -> list[str]:
    usage = {"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}}
    texts = (
        'Down is safe.\n```json\n{"action": 1}\n```',
        "<think>no</think><action>1</action>",
        '{"action": "1", "why": [1, {"a": null}]}',
    )
    parts = [{"type": "text", "text": text} for text in texts]
    return [
        json.dumps({"choices": [{"message": {"content": content}, "finish_reason": "stop"}], "usage": usage})
        for content in (*texts, parts)
    ] + [*texts]


def _reply_reader() -> Callable[[str], object]:
    from drift_agents.llm.scripted import ScriptedModel
    from drift_agents.llm.server_replies import read_reply
    from drift_agents.policy.llm import LanguageModelPolicy
    from drift_agents.prompt.view import PromptView

    prompt = PromptView("Any task.", '{"at": 1}', ("0", "1")).render()

    def as_object(data: Any) -> Any:
        """The data as the client library gives them: mappings as objects with attributes."""
        if isinstance(data, dict):
            return SimpleNamespace(**{str(key): as_object(value) for key, value in data.items()})
        return [as_object(value) for value in data] if isinstance(data, list) else data

    def read(text: str) -> None:
        try:
            reply = as_object(json.loads(text))
        except (ValueError, RecursionError):
            reply = None
        if reply is not None:
            completion = read_reply(reply, [{"content": "a"}], 1)
            json.dumps(completion._asdict() if hasattr(completion, "_asdict") else completion.text).encode()
            text = completion.text
        policy = LanguageModelPolicy(ScriptedModel([text] * 4))
        policy.decide(prompt, np.random.default_rng(0)).text.encode()

    return read


@functools.cache
def _log_seeds() -> list[str]:
    from drift_agents.experiment.logs import _KINDS

    plain: dict[type, object] = {str: "lake", int: 3, bool: True, float: 0.5, type(None): None}
    row = {field: plain[kinds[0]] for field, kinds in _KINDS.items()}
    line = json.dumps(row) + "\n"
    return [line, line * 3]


def _log_reader() -> Callable[[str], object]:
    from drift_agents.experiment.folder import read_manifest
    from drift_agents.experiment.logs import read_rows
    from drift_agents.experiment.trace import read_trace

    def read(text: str) -> None:
        path = _write("run.json", text)
        refused = 0
        for reader in (read_rows, lambda path: read_manifest(path.parent), lambda path: list(read_trace(path))):
            try:
                reader(path)
            except OURS as error:
                refused += 1
                last = error
        if refused == 3:
            raise last

    return read


@functools.cache
def _submission() -> Path:
    """A submission of a run of two episodes."""
    from drift_agents.experiment.loader import parse_experiment
    from drift_agents.experiment.runner import run_experiment
    from drift_agents.submission.prepare import prepare_submission

    agents = {"memory": "vanilla", "policy": "random"}
    length = {"seeds": 1, "rounds": 1}
    data = {"name": "tiny", "schedules": "frozen_lake/implicit", "agents": agents, "isolated": True, **length}
    run_experiment(parse_experiment(data), _folder() / "tiny")
    prepare_submission(_folder() / "tiny", _folder() / "submission")
    return _folder() / "submission"


def _submission_seeds() -> list[str]:
    names = ("submission.json", "run.json", "finished.jsonl", "episodes.jsonl")
    return [(_submission() / name).read_text("utf-8") for name in names] + _files("results/board/*/track.json")


def _submission_reader() -> Callable[[str], object]:
    from drift_agents.errors import SubmissionError
    from drift_agents.submission.bundle import hash_file
    from drift_agents.submission.track import read_track
    from drift_agents.submission.validate import check_submission

    source = _submission()
    whole = {path.name: path.read_bytes() for path in source.iterdir()}

    def check(name: str, text: str) -> None:
        """The submission with that text as one of its files, its hash stated anew."""
        folder = _folder() / "changed"
        folder.mkdir(exist_ok=True)
        for other, content in whole.items():
            (folder / other).write_bytes(content)
        path = _write(f"changed/{name}", text)
        if name != "submission.json":
            statement = json.loads(whole["submission.json"])
            statement["files"][name] = hash_file(path)
            (folder / "submission.json").write_text(json.dumps(statement))
        findings = check_submission(folder).findings
        if findings:
            raise SubmissionError(findings[0])

    def read(text: str) -> None:
        readers: list[Callable[[], object]] = [functools.partial(check, name, text) for name in whole]
        readers.append(lambda: read_track(_write("track.json", text)))
        refused = 0
        for reader in readers:
            try:
                reader()
            except OURS as error:
                refused += 1
                last = error
        if refused == len(readers):
            raise last

    return read


def _plugin_seeds() -> list[str]:
    groups = ("memories", "verifiers", "policies")
    names = ("Plain", "make", "NUMBER", "Raising", "exiting", "missing", "Nested.inner")
    points = [f"{name.lower()} = fuzz_plugin:{name}\n" for name in names]
    listed = "".join(f"[drift_envs.{group}]\n{''.join(points)}" for group in groups)
    return [
        listed,
        "[drift_envs.memories]\nvanilla = fuzz_plugin:Plain\nraises = fuzz_raises\nexits = fuzz_exits:part\n",
    ]


_PLUGIN = """
class Plain:
    about = "A memory."
class Raising:
    def __init__(self): raise ValueError("no")
class Nested:
    inner = property()
def make(k=3): return k
def exiting(): raise SystemExit(3)
NUMBER = 7
"""


def _plugin_reader() -> Callable[[str], object]:
    """Reads the list of parts of a package that is installed."""
    import sys

    from drift_agents.registry import REGISTRIES, _find_entry_points

    place = _folder() / "plugins"
    about = place / "fuzz_plugin-0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: fuzz-plugin\nVersion: 0\n")
    (place / "fuzz_plugin.py").write_text(_PLUGIN)
    (place / "fuzz_raises.py").write_text("raise RuntimeError('at import')\n")
    (place / "fuzz_exits.py").write_text("raise SystemExit(4)\n")

    def read(text: str) -> None:
        _write("plugins/fuzz_plugin-0.dist-info/entry_points.txt", text)
        _find_entry_points.cache_clear()
        sys.path.insert(0, str(place))
        try:
            for kind in ("memory", "verifier", "policy"):
                registry = REGISTRIES[kind]
                registry.summaries()
                for name in registry.names():
                    if registry.entry_point(name) is not None:
                        _make_or_refuse(functools.partial(registry.make, name))
        finally:
            sys.path.remove(str(place))
            _find_entry_points.cache_clear()

    return read


def _make_or_refuse(make: Callable[[], object]) -> None:
    try:
        make()
    except OURS as error:
        if not str(error).strip():
            raise AssertionError(f"{type(error).__name__} without a message") from error


_TOKEN = "operators-token"


def _http_seeds() -> list[str]:
    seeds = [
        "GET / HTTP/1.1\nHost: localhost\n\n",
        "GET /?goal=3 HTTP/1.0\n\n",
        "POST /fixed_3 HTTP/1.1\nHost: 127.0.0.1:3000\nContent-Type: application/x-www-form-urlencoded\n"
        "Content-Length: 16\n\nsearch_query=mug",
        "POST /fixed_3 HTTP/1.1\nHost: [::1]\nContent-Type: application/x-www-form-urlencoded\n"
        "Transfer-Encoding: chunked\n\n8\nsearch_q\n8\nuery=mug\n0\n\n",
        "GET / HTTP/1.1\nHost: localhost\nExpect: 100-continue\nConnection: close\nCookie: a=b\n\n",
        "GET / HTTP/1.1\nHost: localhost\n\nGET /fixed_3 HTTP/1.1\nHost: localhost\n\n",
        *(
            f"{line} HTTP/1.1\nHost: localhost\nAuthorization: Bearer {_TOKEN}\nContent-Type: application/json\n"
            f"Content-Length: {len(body)}\n\n{body}"
            for line, body in (
                ("PATCH /admin/settings", '{"demoted": ["\\u00e9"], "theme": "dark", "ad_buttons": 3}'),
                ("PATCH /admin/settings", '{"button_labels": {"Buy Now": "Add"}, "color_classes": {"warm": ["red"]}}'),
                ("POST /admin/sessions", '{"goal": 7, "name": "fixed_7"}'),
            )
        ),
    ]
    return [text.replace("\n", "\r\n") for text in seeds]


def _http_reader() -> Callable[[str], object]:
    """Reads what a connection brings; a fault is a status of 500, no answer, or a server that is gone."""
    import socket
    import threading

    from webshop_server.app import Config, create_app
    from webshop_server.serving import make_server
    from webshop_server.settings import Settings

    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()
    app = create_app(Config(_inventory(), max_sessions=50, admin_token=_TOKEN))
    server = make_server(app, listener, threads=2)
    threading.Thread(target=server.run, name="shop", daemon=True).start()

    end = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

    def exchange(content: bytes, seconds: float, meanwhile: Callable[[], object] = lambda: None) -> bytes:
        """What the server answers until it closes the connection, or is silent for so long."""
        with socket.create_connection(address, timeout=MOST_SECONDS) as connection:
            found = b""
            try:
                connection.sendall(content)
                meanwhile()
                connection.settimeout(seconds)
                while block := connection.recv(65_536):
                    found += block
            except (ConnectionResetError, BrokenPipeError, TimeoutError):  # refused before all was sent, or incomplete
                pass
            return found

    def check_alive() -> None:
        if not exchange(end, MOST_SECONDS).startswith(b"HTTP/1.1 "):
            raise AssertionError("does not answer any more")

    def read(text: str) -> None:
        app.extensions["webshop"].shop.settings = Settings()  # that no input depends on those before it
        # The other connection's answer takes as long as this one's: what is silent then waits for more.
        found = exchange(text.encode("utf-8", "surrogatepass") + end, 0.3, check_alive)
        statuses = [int(status) for status in re.findall(rb"^HTTP/1\.[01] (\d{3}) ", found, re.MULTILINE)]
        if (found and not statuses) or any(status in (500, 502, 503, 504) for status in statuses):
            raise AssertionError(f"answered {found[:200]!r}")
        if not statuses or statuses[0] >= 400:
            raise ShopError(f"status {statuses[:1]}")

    return read


def _pipe_env() -> Any:
    import gymnasium as gym

    import drift_envs

    del drift_envs  # registers the ids
    return gym.make("DriftFrozenLake-v0", schedule=None, text=True)


@functools.cache
def _pipe_seeds() -> list[str]:
    """What agents write in an episode: some of random actions, with probes and requests before the first."""
    seeds = []
    for number in range(3):
        env, rng = _pipe_env(), np.random.default_rng(number)
        _, info = env.reset(seed=0)
        messages: list[dict[str, Any]] = [{"type": "ready", "supervision": "none"}]
        if number:
            messages.append({"type": "probe", "reset": True, "actions": ["0", "1"][:number]})
            messages.append({"type": "ask", "model": "m", "messages": [["user", "a"]], "sample_index": 0})
        is_over = False
        while not is_over:
            action = str(rng.choice(info["actions"]))
            *_, terminated, truncated, info = env.step(_to_env(env, action))
            is_over = terminated or truncated
            messages.append({"type": "step", "action": action})
        messages.append({"type": "end", "report": {"memory_size": 3, "reasks": 1}})
        seeds.append("".join(json.dumps(message) + "\n" for message in messages))
    return seeds


def _to_env(env: Any, action: str) -> Any:
    from drift_agents.text_env import to_env

    return to_env(env.action_space, action)


def _pipe_reader() -> Callable[[str], object]:
    """Reads what an agent in a process of its own writes, up to the end of an episode."""
    import io
    import os
    import sys

    from drift_agents.experiment.pipe.player import PipedAgent
    from drift_agents.experiment.pipe.process import AgentProcess
    from drift_agents.llm.scripted import ScriptedModel

    from drift_envs import twin

    env = _pipe_env()
    env.reset(seed=0)
    copy = twin(env)

    class Written(AgentProcess):
        """An agent that has written all that it will, and reads nothing."""

        def __init__(self, content: bytes) -> None:
            self._content = content
            super().__init__([sys.executable])

        def _start(self, *_: object) -> None:
            self._errors = io.BytesIO()
            self._process = SimpleNamespace(wait=lambda _: 0)
            with open(_folder() / "pipe", "w+b") as file:
                file.write(self._content)
                file.seek(0)
                self._output = os.dup(file.fileno())
            self._input = os.open(os.devnull, os.O_WRONLY)
            self._held.callback(os.close, self._output)
            self._held.callback(os.close, self._input)

    def read(text: str) -> None:
        process = Written(text.encode("utf-8", "surrogatepass"))
        try:
            agent = PipedAgent(process, copy, "DriftFrozenLake-v0", 0, {"m": ScriptedModel(["0"] * 100)})
            agent.run_episode(env, seed=0)
        finally:
            process.close()

    return read


def _mcp_seeds() -> list[str]:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("tools/list", {}),
        ("tools/call", {"name": "reset", "arguments": {}}),
        ("tools/call", {"name": "act", "arguments": {"action": "1"}}),
        ("tools/call", {"name": "observe", "arguments": {}}),
        ("initialize", _MCP_START),
        ("resources/list", {"cursor": "a"}),
    ]
    return [
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": given}) + "\n"
        for number, (method, given) in enumerate(calls)
    ] + ['{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3, "reason": "late"}}\n']


_MCP_START = {
    "protocolVersion": "2025-03-26",
    "capabilities": {},
    "clientInfo": {"name": "fuzz", "version": "0"},
}


def _mcp_reader() -> Callable[[str], object]:
    """Reads the messages of a client; a fault is a server that is gone, or does not answer the next message."""
    import subprocess
    import sys
    from itertools import count

    words = [sys.executable, "-m", "drift_envs", "mcp", "DriftFrozenLake-v0"]
    server = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT)
    atexit.register(server.kill)
    numbers = count()

    def send(text: str) -> None:
        assert server.stdin is not None
        server.stdin.write(text.encode("utf-8", "replace"))
        server.stdin.flush()

    def answers(method: str, params: Any) -> list[dict[str, Any]]:
        """Send a request; all messages up to its answer."""
        name = f"fuzz-{next(numbers)}"
        send("\n" + json.dumps({"jsonrpc": "2.0", "id": name, "method": method, "params": params}) + "\n")
        found: list[dict[str, Any]] = []
        assert server.stdout is not None
        while not found or found[-1].get("id") != name:
            line = server.stdout.readline()
            if not line:
                raise AssertionError(f"the server ended with status {server.wait()}")
            found.append(json.loads(line))
        return found

    answers("initialize", _MCP_START)
    send('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')

    def read(text: str) -> None:
        send(text)
        found = answers("ping", {})[:-1]
        if any("error" in message or message.get("result", {}).get("isError") for message in found):
            raise DriftEnvsError(str(found)[:200])

    return read


TARGETS = {
    target.name: target
    for target in (
        Target("schedules", lambda: _files("schedules/*/*.yaml"), _schedule_reader, 0.18),
        Target(
            "experiments", lambda: _files("agents/drift_agents/experiment/experiments/*.yaml"), _experiment_reader, 0.18
        ),
        Target("catalogues", _catalogue_seeds, _catalogue_reader, 0.02),
        Target("addresses", _address_seeds, _address_reader, 0.16),
        Target("actions", _action_seeds, _action_reader, 0.14),
        Target("replies", _reply_seeds, _reply_reader, 0.14),
        Target("logs", _log_seeds, _log_reader, 0.06),
        Target("submissions", _submission_seeds, _submission_reader, 0.02),
        Target("plug-ins", _plugin_seeds, _plugin_reader, 0.02),
        Target("http", _http_seeds, _http_reader, 0.02),
        Target("pipe", _pipe_seeds, _pipe_reader, 0.06),
        *([Target("mcp", _mcp_seeds, _mcp_reader, 0.02)] if find_spec("mcp") else ()),  # an extra
    )
}


def read_corpus(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Target, name and input of every finding that is kept."""
    for path in sorted(folder.glob("*/*.json")):
        yield path.parent.name, path.stem, json.loads(path.read_text("utf-8"))["input"]
