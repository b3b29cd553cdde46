"""LangGraph's store in memory, held to the contract of stores; nothing leaves this machine."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from tests.drift_agents.stores.store_contract import StoreContract

pytest.importorskip("langgraph.store.memory", reason="needs the extra `langgraph`")


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.socket.connect

    def refuse(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1"):
            raise AssertionError(f"a connection to {address!r}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", refuse)


class TestLangGraph(StoreContract):
    name = "langgraph"
