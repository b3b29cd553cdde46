"""What comes from outside is accepted, or refused by an error of the project: files, requests, actions, replies.

An input begins as a text that is right, to which Hypothesis applies edits: it deletes, repeats, swaps and replaces
tokens. Inputs therefore go deep, and a finding shrinks to the edits that matter. `make fuzz` gives each reader a
hundred times as many.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

import gymnasium as gym
import numpy as np
import pytest
from drift_agents.experiment.folder import read_manifest
from drift_agents.experiment.loader import load_experiment, parse_experiment
from drift_agents.experiment.logs import read_rows
from drift_agents.experiment.runner import run_experiment
from drift_agents.experiment.trace import read_trace
from drift_agents.llm.openai_compatible import read_reply
from drift_agents.policy.llm import LanguageModelPolicy
from drift_agents.prompt.view import PromptView
from drift_agents.registry.parts import _find_entry_points
from drift_agents.registry.tables import REGISTRIES
from hypothesis import given, settings
from hypothesis import strategies as st

import drift_envs  # noqa: F401 - registers the ids
from drift_envs.cli.check import _find_tables
from drift_envs.envs.make import knob_table_of
from drift_envs.errors import DriftEnvsError
from drift_envs.schedule import Timeline, load_schedule
from tests.core_ids import CORE_IDS
from tests.drift_agents.llm.scripted import ScriptedModel
from webshop_server.app import Config, create_app, make_server
from webshop_server.errors import ShopError
from webshop_server.importer import import_products
from webshop_server.inventory import Inventory
from webshop_server.settings import Settings
from webshop_server.shop import Shop

OURS = (DriftEnvsError, ShopError)
MOST_SECONDS = 10.0
"""The processor time that an input may take; a busy machine does not lengthen it."""
ROOT = Path(__file__).resolve().parent.parent
TOKEN = "operators-token"

_ODD_TEXT = """null ~ true No on 0 -1 1 0.5 -0.0 1e309 .inf .nan 1e-320 0x1F 0123 6e-4 9223372036854775807
9223372036854775808 100000000 [] {} [[]] "" '' - : , * & ! | > # % @ ` ? ... --- !!python/object !!binary
&a *a <<: [1,2 {a:1} }{ ][ NaN
-Infinity "\\ud800" \ud800 \udfff \u0000 \x00 \n \t \r \u2028 \ufeff é ☃ 💥 \u202e ../ /etc/passwd %00 %2F %ZZ %C3%28 ;
a/b http://x// fixed_7 fixed_99999999999 search[ click[ ]] <action> </action> <think> ```json ``` {"action": 2026-01-01
12:30:45 0o17 +.5 None True __class__ {{7*7}} ${x} \\ \\\\ " ' 1_000 extends set add scale swap choice
walk every for at over"""
ODD = _ODD_TEXT.split(" ")
LONG = ["1" * 400, "9" * 5000, "[" * 300, '{"a":' * 300, "a" * 3000]
TOKENS = re.compile(r"\w+|\s+|[^\w\s]")
NUMBER = st.integers(0, 2**16)
EDITS = st.lists(st.tuples(st.integers(0, 6), NUMBER, NUMBER), max_size=6)


class Reader(NamedTuple):
    """Texts that are right, and the function that reads a text."""

    seeds: Sequence[str]
    read: Callable[[str], object]


def edit(text: str, edits: Sequence[tuple[int, int, int]]) -> str:
    """A text after some edits of its tokens."""
    tokens = TOKENS.findall(text)
    for kind, one, other in edits:
        place = one % (len(tokens) + 1)
        end = place + other % 9
        if kind == 0:
            del tokens[place:end]
        elif kind == 1:
            tokens[place:place] = tokens[place:end]
        elif kind in (2, 3):
            tokens[place : place + (kind == 2)] = [ODD[other % len(ODD)]]
        elif kind == 4 and tokens:
            tokens[place : place + 1] = [tokens[other % len(tokens)]]
        elif kind == 5:
            tokens[place : place + 1] = [str(other - 2**15)]
        elif kind == 6:
            tokens[place : place + 1] = [LONG[other % len(LONG)] if one % 16 == 0 else chr(other)]
    return "".join(tokens)


def is_accepted(read: Callable[[str], object], text: str) -> bool:
    """Read a text; every error that is not one of `OURS`, or has no message, passes through."""
    begin, refusal = time.process_time(), None
    try:
        read(text)
    except OURS as error:
        refusal = error
    assert refusal is None or str(refusal).strip(), type(refusal)
    assert time.process_time() - begin < MOST_SECONDS
    return refusal is None


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return path


def shipped(pattern: str) -> list[str]:
    texts = [path.read_text("utf-8") for path in sorted(ROOT.glob(pattern))]
    return [text for text in texts if len(text) < 20_000]


def schedules(folder: Path) -> Reader:
    tables = _find_tables(may_import=False)

    def table_for(content: Any) -> Any:
        # other environments would be imported and made
        return tables(content) if content.get("env") in CORE_IDS and "knobs" not in content else None

    def read(text: str) -> None:
        schedule = load_schedule(write(folder / "schedule.yaml", text), table=table_for)
        if schedule.env in CORE_IDS and not schedule.knobs:
            timeline = Timeline(schedule, knob_table_of(schedule.env), 0)
            for tick in (0, 21, 10**6):
                timeline.phase(tick)
                timeline.values(tick)

    return Reader(shipped("schedules/*/*.yaml"), read)


def experiments(folder: Path) -> Reader:
    def read(text: str) -> None:
        load_experiment(write(folder / "experiment.yaml", text))

    return Reader(shipped("agents/drift_agents/experiment/experiments/*.yaml"), read)


def catalogues(folder: Path) -> Reader:
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
    wish = {"attributes": ["red"], "instruction": "buy", "instruction_attributes": []}
    wishes = write(folder / "ins.json", json.dumps({"B09ABCDEFG": wish}))

    def read(text: str) -> None:
        import_products(folder / "catalogue.sqlite", write(folder / "items.json", text), wishes, resume=False)

    return Reader([json.dumps([product, plain]), json.dumps([plain], indent=1)], read)


def addresses(_: Path) -> Reader:
    """Requests to the application, errors of which pass."""
    inventory = Inventory.default(products=100)
    app = create_app(Config(inventory, admin_token=TOKEN, max_sessions=50))
    app.testing = True
    client, shop = app.test_client(), app.extensions["webshop"].shop
    product = inventory.catalogue.at(3)
    option = json.dumps(dict(product.options and [(product.options[0].name, product.options[0].values[0])]))
    seeds = [
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

    def read(text: str) -> None:
        method, _, rest = text.partition(" ")
        path, _, body = rest.partition(" ")
        method = method if method in ("GET", "POST", "PATCH", "DELETE") else "GET"
        # as a server hands them on: bytes in Latin-1; blanks and control characters end a request line
        query = path.partition("?")[2].encode("utf-8", "surrogatepass").decode("latin-1")
        place = unquote_to_bytes(path.partition("?")[0].encode("utf-8", "surrogatepass")).decode("latin-1")
        environ = {
            "REQUEST_METHOD": method,
            "PATH_INFO": place,
            "QUERY_STRING": re.sub(r"[\x00-\x20\x7f]", "", query),
            "HTTP_AUTHORIZATION": f"Bearer {TOKEN}",
        }
        shop.settings = Settings()
        kind = "application/json" if path.startswith("/admin") else "application/x-www-form-urlencoded"
        data = body.encode("utf-8", "surrogatepass")
        answer = client.open(environ_overrides=environ, method=method, data=data, content_type=kind)
        assert answer.status_code < 500

    return Reader(seeds, read)


def actions(_: Path) -> Reader:
    inventory = Inventory.default(products=100)
    session = Shop(inventory).start(0)
    session.act("search[shirt]")
    asin = inventory.catalogue.at(3).asin.lower()
    environments = [gym.make(name) for name in ("DriftFrozenLake-v0", "DriftMountainCarContinuous-v0")]
    for env in environments:
        env.reset(seed=0)

    def read(text: str) -> None:
        session.act(text)
        if session.is_done:
            session.visit(session.page.url)
        value: Any = text
        with suppress(ValueError, RecursionError):
            value = json.loads(text)
        for env in environments:
            with suppress(DriftEnvsError):
                *_, terminated, truncated, _ = env.step(value)
                if terminated or truncated:
                    env.reset()

    seeds = ["search[red mug]", "click[buy now]", f"click[{asin}]", "click[next >]", "0", "[0.5]", '{"1": 2}']
    return Reader(seeds, read)


def replies(_: Path) -> Reader:
    """Replies of a model's server, and texts of a model of one's own."""
    texts = [
        'Down is safe.\n```json\n{"action": 1}\n```',
        "<think>no</think><action>1</action>",
        '{"action": "1", "why": [1, {"a": null}]}',
    ]
    usage = {"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}}
    contents = [*texts, [{"type": "text", "text": text} for text in texts]]
    choices = [{"message": {"content": content}, "finish_reason": "stop"} for content in contents]
    seeds = [json.dumps({"choices": [choice], "usage": usage}) for choice in choices]
    view = PromptView("Any task.", '{"at": 1}', ("0", "1"))

    def as_object(data: Any) -> Any:
        """The data as the client library gives them: mappings as objects with attributes."""
        if isinstance(data, dict):
            return SimpleNamespace(**{str(key): as_object(value) for key, value in data.items()})
        return [as_object(value) for value in data] if isinstance(data, list) else data

    def read(text: str) -> None:
        reply = None
        with suppress(ValueError, RecursionError):
            reply = as_object(json.loads(text))
        if reply is not None:
            text = read_reply(reply, [{"content": "a"}], 1).text
        policy = LanguageModelPolicy(ScriptedModel([text] * 4))
        policy.decide(view, np.random.default_rng(0)).text.encode()

    return Reader([*seeds, *texts], read)


def files_of_runs(folder: Path) -> Reader:
    """The files of a run, each given to all that reads one; refused where all refuse it."""
    agents = {"memory": "vanilla", "policy": "random"}
    data = {"name": "tiny", "schedules": "frozen_lake/implicit", "agents": agents, "seeds": 1, "rounds": 1}
    run_experiment(parse_experiment(data), folder / "tiny")
    seeds = [(folder / "tiny" / name).read_text("utf-8") for name in ("episodes.jsonl", "run.json")]
    readers = (read_rows, lambda path: read_manifest(path.parent), lambda path: list(read_trace(path)))

    def read(text: str) -> None:
        path = write(folder / "run.json", text)
        errors = []
        for reader in readers:
            try:
                reader(path)
            except OURS as error:
                errors.append(error)
        if len(errors) == len(readers):
            raise errors[0]

    return Reader(seeds, read)


PLUGIN = """
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


def plugins(folder: Path) -> Reader:
    """The list of parts of a package that is installed; each part is made, or refused."""
    about = folder / "fuzz_plugin-0.dist-info"
    about.mkdir()
    write(about / "METADATA", "Metadata-Version: 2.1\nName: fuzz-plugin\nVersion: 0\n")
    write(folder / "fuzz_plugin.py", PLUGIN)
    write(folder / "fuzz_raises.py", "raise RuntimeError('at import')\n")
    write(folder / "fuzz_exits.py", "raise SystemExit(4)\n")
    names = ("Plain", "make", "NUMBER", "Raising", "exiting", "missing", "Nested.inner")
    points = "".join(f"{name.lower()} = fuzz_plugin:{name}\n" for name in names)
    listed = "".join(f"[drift_envs.{group}]\n{points}" for group in ("memories", "verifiers", "policies"))
    odd = "[drift_envs.memories]\nvanilla = fuzz_plugin:Plain\nraises = fuzz_raises\nexits = fuzz_exits:part\n"

    def read(text: str) -> None:
        write(about / "entry_points.txt", text)
        _find_entry_points.cache_clear()
        sys.path.insert(0, str(folder))
        try:
            for kind in ("memory", "verifier", "policy"):
                registry = REGISTRIES[kind]
                registry.summaries()
                for name in registry.names():
                    if registry.entry_point(name) is not None:
                        is_accepted(registry.make, name)
        finally:
            sys.path.remove(str(folder))
            _find_entry_points.cache_clear()

    return Reader([listed, odd], read)


READERS = (schedules, experiments, catalogues, addresses, actions, replies, files_of_runs, plugins)


@pytest.fixture(scope="module", params=READERS, ids=lambda make: make.__name__)
def reader(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """A reader of this process."""
    made: Reader = request.param(tmp_path_factory.mktemp(request.param.__name__))
    return made


@given(st.integers(0, 999), EDITS)
def test_any_input_is_accepted_or_refused(reader: Reader, number: int, edits: list[tuple[int, int, int]]) -> None:
    is_accepted(reader.read, edit(reader.seeds[number % len(reader.seeds)], edits))


def test_inputs_that_are_right_are_accepted(reader: Reader) -> None:
    assert [text for text in reader.seeds[:10] if not is_accepted(reader.read, text)] == []


HOUSE = (ROOT / "schedules" / "house" / "appliances.yaml").read_text("utf-8")
SHOP = (ROOT / "schedules" / "webshop" / "implicit.yaml").read_text("utf-8")


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (addresses, "GET /?\ud800=3"),
        (replies, '\ud800"choices": [{"message": {"content": "Down is safe."}}]'),
        (schedules, HOUSE.replace("microwave 1", "microwave " + "9" * 5000)),
        (schedules, re.sub(r"base: .*", "base: {color_classes: }", SHOP)),
    ],
    ids=["addresses", "replies", "digits", "no-mapping"],
)
def test_earlier_findings(make: Callable[[Path], Reader], text: str, tmp_path: Path) -> None:
    is_accepted(make(tmp_path).read, text)


# A server in a thread or a process of its own.

END = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
REQUESTS = [
    "GET / HTTP/1.1\nHost: localhost\n\n",
    "GET /?goal=3 HTTP/1.0\n\n",
    "POST /fixed_3 HTTP/1.1\nHost: 127.0.0.1:3000\nContent-Type: application/x-www-form-urlencoded\n"
    "Content-Length: 16\n\nsearch_query=mug",
    "POST /fixed_3 HTTP/1.1\nHost: [::1]\nContent-Type: application/x-www-form-urlencoded\n"
    "Transfer-Encoding: chunked\n\n8\nsearch_q\n8\nuery=mug\n0\n\n",
    "GET / HTTP/1.1\nHost: localhost\nExpect: 100-continue\nConnection: close\nCookie: a=b\n\n",
    "GET / HTTP/1.1\nHost: localhost\n\nGET /fixed_3 HTTP/1.1\nHost: localhost\n\n",
    f"PATCH /admin/settings HTTP/1.1\nHost: localhost\nAuthorization: Bearer {TOKEN}\n"
    'Content-Type: application/json\nContent-Length: 32\n\n{"theme": "dark", "demoted": []}',
]


@pytest.fixture(scope="module")
def exchange() -> Iterator[Callable[..., bytes]]:
    """A function that sends bytes to the shop's server, and returns what it answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        app = create_app(Config(Inventory.default(products=100), max_sessions=50, admin_token=TOKEN))
        server = make_server(app, listener, threads=2)
        threading.Thread(target=server.run, name="shop", daemon=True).start()

        def send(content: bytes, seconds: float, meanwhile: Callable[[], object] = lambda: None) -> bytes:
            """What it answers until it closes the connection, or is silent for so long."""
            found = b""
            with (
                socket.create_connection(listener.getsockname(), timeout=MOST_SECONDS) as connection,
                # refused before all was sent, or incomplete
                suppress(ConnectionResetError, BrokenPipeError, TimeoutError),
            ):
                connection.sendall(content)
                meanwhile()
                connection.settimeout(seconds)
                while block := connection.recv(65_536):
                    found += block
            return found

        yield send
        server.close()


@pytest.mark.integration
@settings(max_examples=settings().max_examples // 3)
@given(st.sampled_from(REQUESTS), EDITS)
def test_any_connection_leaves_a_server_that_answers(
    exchange: Callable[..., bytes], text: str, edits: list[tuple[int, int, int]]
) -> None:
    def check_alive() -> None:
        assert exchange(END, MOST_SECONDS).startswith(b"HTTP/1.1 ")

    content = edit(text.replace("\n", "\r\n"), edits).encode("utf-8", "surrogatepass")
    # The other connection's answer takes as long as this one's: what is silent then waits for more.
    found = exchange(content + END, 0.3, check_alive)
    statuses = re.findall(rb"^HTTP/1\.[01] (\d{3}) ", found, re.MULTILINE)
    assert statuses or not found
    assert not {b"500", b"502", b"503", b"504"} & set(statuses), found[:200]


MCP_START = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "fuzz", "version": "0"}}
MCP_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("tools/list", {}),
    ("tools/call", {"name": "reset", "arguments": {}}),
    ("tools/call", {"name": "act", "arguments": {"action": "1"}}),
    ("tools/call", {"name": "observe", "arguments": {}}),
    ("initialize", MCP_START),
    ("notifications/cancelled", {"requestId": 3, "reason": "late"}),
]
MESSAGES = [
    json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": given}) + "\n"
    for number, (method, given) in enumerate(MCP_CALLS)
]


@pytest.fixture(scope="module")
def mcp_ping() -> Iterator[Callable[[str], None]]:
    """A function that sends a text to an MCP server, and waits for the answer to a ping after it."""
    pytest.importorskip("mcp")
    command = [sys.executable, "-m", "drift_envs", "mcp", "DriftFrozenLake-v0"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    numbers = count()
    with subprocess.Popen(command, cwd=ROOT, **pipes) as server:

        def ask(text: str, method: str = "ping", params: Any = None) -> None:
            name = f"fuzz-{next(numbers)}"
            request = json.dumps({"jsonrpc": "2.0", "id": name, "method": method, "params": params or {}})
            server.stdin.write(f"{text}\n{request}\n".encode("utf-8", "replace"))
            server.stdin.flush()
            line = server.stdout.readline()
            while json.loads(line).get("id") != name:
                line = server.stdout.readline()
                assert line, f"the server ended with status {server.wait()}"

        ask("", "initialize", MCP_START)
        ask('{"jsonrpc": "2.0", "method": "notifications/initialized"}')
        yield ask
        server.kill()


@pytest.mark.integration
@pytest.mark.skipif(find_spec("mcp") is None, reason="`make fuzz` installs the extra `mcp`")
@given(st.sampled_from(MESSAGES), EDITS)
def test_any_message_leaves_an_mcp_server_that_answers(
    mcp_ping: Callable[[str], None], text: str, edits: list[tuple[int, int, int]]
) -> None:
    mcp_ping(edit(text, edits))
