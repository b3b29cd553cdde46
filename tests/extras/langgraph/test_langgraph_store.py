"""LangGraph's stores, held to the contract of stores; nothing leaves this machine."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from drift_agents.stores.langgraph import LangGraphSqliteStore

from tests.drift_agents.stores.store_contract import ListedStoreContract, PersistentStoreContract
from tests.extras.offline import offline

__all__ = ["offline"]

pytest.importorskip("langgraph.store.memory", reason="needs the extra `langgraph`")
pytest.importorskip("langgraph.store.sqlite", reason="needs the extra `langgraph`")


TABLES = ("store", "store_vectors")


class TestLangGraph(ListedStoreContract):
    name = "langgraph"


class TestLangGraphSqlite(PersistentStoreContract):
    name = "langgraph_sqlite"


def test_the_fixture_refuses_what_is_not_on_this_machine(offline: list[str]) -> None:
    with pytest.raises(ConnectionRefusedError, match=r"the name 'example\.org'"):
        socket.create_connection(("example.org", 80))
    with socket.socket() as one, pytest.raises(ConnectionRefusedError, match=r"192\.0\.2\.1"):
        one.connect(("192.0.2.1", 80))
    assert len(offline) == 2
    offline.clear()


def test_a_deleted_entry_leaves_no_vector(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    store = LangGraphSqliteStore(path=path)
    entries = [store.add(f"room {number} is dark", {}) for number in range(5)]
    for entry in (entries[0], entries[3], entries[3]):
        store.delete(entry)
    store.close()
    store = LangGraphSqliteStore(path=path)
    store.delete(entries[1])
    assert [entry for entry, _, _ in store.entries()] == [entries[2], entries[4]]
    counts = [store._store.conn.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES]
    assert counts == [2, 2]
    store.close()
