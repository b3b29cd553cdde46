"""Letta's client, held to the contract of stores, against its archival protocol written by hand.

The server here answers four requests as `letta` 0.16 does (`server/rest_api/routers/v1/agents.py`), with the texts'
hashed words as vectors. Letta's own server is not started: 0.16 needs PostgreSQL; 0.8.17, which runs on SQLite, has
no search by similarity; and 0.11.7, which has one, cannot store a passage in SQLite.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from drift_agents.embedding.hashed import HashedEmbedding
from drift_agents.errors import ArgumentError
from drift_agents.stores.base import ListedStore, make_store
from drift_agents.stores.in_process import InProcessStore

from tests.drift_agents.stores.store_contract import StoreContract
from tests.extras.offline import offline

__all__ = ["offline"]

pytest.importorskip("letta_client", reason="needs the extra `letta`")

_AGENTS = count()


class Protocol(BaseHTTPRequestHandler):
    """`/v1/agents/{agent}/archival-memory`: POST a passage, GET a list, GET `search`, DELETE a passage."""

    stores: dict[str, InProcessStore]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        store = self._store()
        entry = store.add(body["text"], {"tags": json.dumps(body.get("tags") or [])})
        self._answer([self._passage(entry, store)])

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        options = {key: values[0] for key, values in parse_qs(address.query, keep_blank_values=True).items()}
        store = self._store()
        if address.path.endswith("/search"):
            hits = store.search(options["query"], int(options["top_k"]))
            results = [{"id": entry, "content": text, "timestamp": "", "tags": []} for entry, text, _ in hits]
            self._answer({"results": results, "count": len(results)})
            return
        entries = [entry for entry, _, _ in store.entries()]
        first = entries.index(options["after"]) + 1 if "after" in options else 0
        self._answer([self._passage(entry, store) for entry in entries[first : first + int(options["limit"])]])

    def do_DELETE(self) -> None:
        entry, store = self.path.rsplit("/", 1)[1], self._store()
        if entry not in {known for known, _, _ in store.entries()}:
            self._answer({"detail": f"Passage with id {entry} not found in database."}, 404)
            return
        store.delete(entry)
        self._answer({"message": f"Memory id={entry} successfully deleted"})

    def _store(self) -> InProcessStore:
        return self.stores.setdefault(self.path.split("/")[3], InProcessStore())

    def _passage(self, wanted: str, store: InProcessStore) -> dict[str, Any]:
        ((text, about),) = [(text, about) for entry, text, about in store.entries() if entry == wanted]
        return {"id": wanted, "text": text, "tags": json.loads(str(about["tags"])), "embedding": None}

    def _answer(self, data: Any, status: int = 200) -> None:
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    handler = type("Handler", (Protocol,), {"stores": {}})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class TestLetta(StoreContract):
    name = "letta"
    finds_blanks = False
    can_be_copied = False

    @pytest.fixture(autouse=True)
    def _server(self, address: str) -> None:
        self.address = address

    def options(self) -> dict[str, Any]:
        return {"agent_id": f"agent-{next(_AGENTS)}", "base_url": self.address}

    def make(self) -> ListedStore:
        made = make_store({"letta": self.options()})
        assert isinstance(made, ListedStore)
        return made


def test_lists_come_in_pages(address: str) -> None:
    store = make_store({"letta": {"agent_id": "pages", "base_url": address}})
    assert isinstance(store, ListedStore)
    entries = [store.add(str(number), {"number": number}) for number in range(205)]
    assert [(entry, about["number"]) for entry, _, about in store.entries()] == list(
        zip(entries, range(205), strict=True)
    )


def test_an_embedding_is_refused() -> None:
    with pytest.raises(ArgumentError, match="`embedding` should be that of the agent on the server"):
        make_store({"letta": {"agent_id": "a"}}, HashedEmbedding())
