"""LangGraph's stores, held to the contract of stores; nothing leaves this machine."""

from __future__ import annotations

import socket

import pytest

from tests.drift_agents.stores.store_contract import PersistentStoreContract, StoreContract
from tests.extras.offline import offline

__all__ = ["offline"]

pytest.importorskip("langgraph.store.memory", reason="needs the extra `langgraph`")
pytest.importorskip("langgraph.store.sqlite", reason="needs the extra `langgraph`")


class TestLangGraph(StoreContract):
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
