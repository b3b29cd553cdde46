"""Chroma, held to the contract of stores; nothing leaves this machine."""

from __future__ import annotations

import gc

import pytest
from drift_agents.stores.chroma import ChromaStore

from tests.drift_agents.stores.store_contract import PersistentStoreContract
from tests.extras.offline import offline

__all__ = ["offline"]

chromadb = pytest.importorskip("chromadb", reason="needs the extra `chroma`")


class TestChroma(PersistentStoreContract):
    name = "chroma"


def test_a_collection_in_ram_goes_with_its_store() -> None:
    client = chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))
    gc.collect()
    before = client.count_collections()
    one, other = ChromaStore(), ChromaStore()
    one.add("a", {})
    assert list(other.entries()) == []
    assert client.count_collections() == before + 2
    del one, other
    gc.collect()
    assert client.count_collections() == before
