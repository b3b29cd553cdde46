"""The reference store, and stores by name."""

from __future__ import annotations

import pytest
from drift_agents.embedding.hashed import HashedEmbedding
from drift_agents.errors import ArgumentError, UnknownNameError
from drift_agents.stores.base import make_store
from drift_agents.stores.in_process import InProcessStore

from tests.drift_agents.stores.store_contract import StoreContract


class TestInProcess(StoreContract):
    def test_of_equal_entries_the_oldest_comes_first(self) -> None:
        store = InProcessStore()
        entries = [store.add("a", {"number": number}) for number in range(3)]
        assert [entry for entry, _, _ in store.search("a", 3)] == entries
        assert list(store.entries()) == [(entry, "a", {"number": n}) for n, entry in enumerate(entries)]


def test_the_embedding_decides_what_is_similar() -> None:
    store = make_store({"in_process": None}, HashedEmbedding(64))
    assert isinstance(store, InProcessStore)
    assert store.embedding.dimension == 64


@pytest.mark.parametrize("given", [3, None, {}, {"in_process": {}, "other": {}}, object()])
def test_what_is_no_store_is_refused(given: object) -> None:
    with pytest.raises(ArgumentError, match="`store` should be a store, a name, or one name with its options"):
        make_store(given)


def test_wrong_names_options_and_embeddings_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'in_process'"):
        make_store("in_proces")
    with pytest.raises(ArgumentError, match=r"the store 'in_process' does not take these options: .*'k'"):
        make_store({"in_process": {"k": 3}})
    with pytest.raises(ArgumentError, match="a store has its own"):
        make_store(InProcessStore(), HashedEmbedding())
