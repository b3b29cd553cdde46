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


@pytest.mark.parametrize("order", ["before", "after", "between"])
def test_no_entry_is_lost_behind_equal_ones(order: str) -> None:
    """Statements of a lake, most of them often: each is found by its own text."""
    texts = [f'In [{x}, {y}] action "{action}" led to hole' for x in range(3) for y in range(3) for action in range(2)]
    rare, often = texts[:6], texts[6:]
    many = [often[number * number % len(often)] for number in range(900)]
    added = {"before": rare + many, "after": many + rare, "between": many[:450] + rare + many[450:]}[order]
    store = ChromaStore()
    for text in added:
        store.add(text, {})
    for text in set(added):
        hits = store.search(text, 5)
        assert hits[0][1] == text
        assert hits[0][2] == pytest.approx(1.0, abs=1e-3)
