"""The memory on a store: what it writes, and what it makes of what the store returns."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from drift_agents.errors import ArgumentError
from drift_agents.memory.base import make_memory
from drift_agents.memory.store import StoreMemory
from drift_agents.stores.base import Hit, InProcessStore
from drift_agents.types import AgentClock, Experience, Outcome
from drift_agents.verifier.controls import Overwrite

NOW = AgentClock(2, 7)


def see(memory: Any, state: str, action: str, after: str, now: AgentClock = NOW) -> int:
    number = memory.observe(Experience(state, action, Outcome(after, 0.0, False), 0.0, now), now)
    assert number is not None
    return int(number)


class MergingStore(InProcessStore):
    """One entry for each text, as in products that hash their texts."""

    def add(self, text: str, metadata: Mapping[str, Any]) -> str:
        known = [entry for entry, held in self._texts.items() if held == text]
        return known[0] if known else super().add(text, metadata)


class StubbornStore(InProcessStore):
    """It says that it deletes, and keeps everything."""

    def delete(self, entry: str) -> None:
        pass


def test_an_entry_is_a_statement_with_its_time() -> None:
    store = InProcessStore()
    memory = StoreMemory(store=store)
    see(memory, "a", "1", "b")
    memory.insert_summary("a", "1", [(Outcome("hole", 0.0, True), 1.0)], 4, NOW)
    hits = sorted(store.search("a", 5))
    assert [text for _, text, _ in hits] == [
        'In a action "1" led to b (score 0)',
        'In a action "1" led to hole (score 0; the episode ended; 4 of 4 responses, verified)',
    ]
    rest = {"action": "1", "episode": 2, "step": 7}
    held = {entry: dict(about) for entry, _, about in store.entries()}
    records = list(memory.records())
    for number, (entry, _, _) in enumerate(hits):
        assert json.loads(str(held[entry].pop("transition"))) == json.loads(json.dumps(records[number]))
        assert held[entry] == {"record": number, "verified": number == 1, **rest}


def test_a_store_that_holds_records_brings_them_along() -> None:
    store = InProcessStore()
    memory = StoreMemory(store=store)
    numbers = [see(memory, state, "1", "b") for state in "abc"]
    store.add("of another program", {"record": 1})
    memory.remove([numbers[0]])
    again = StoreMemory(store=store)
    assert [record.state for record in again.records()] == ["b", "c"]
    assert again.retrieve("b", None, NOW).ids == (0, 1)
    assert see(again, "d", "1", "b") == 2
    assert len(store) == 4
    store.add("torn", {"transition": "[3]"})
    with pytest.raises(ArgumentError, match=re.escape("hold records of this memory: the entry '5' has '[3]'")):
        StoreMemory(store=store)


def test_the_stores_order_decides_also_across_states() -> None:
    class LastFirst(InProcessStore):
        def search(self, query: str, k: int) -> Sequence[Hit]:  # type: ignore[override]
            return [(entry, text, 0.5) for entry, text in reversed(self._texts.items())][:k]

    memory = StoreMemory(k=2, store=LastFirst())
    for state in "abc":
        see(memory, state, "1", "x")
    assert memory.retrieve("a", None, NOW).ids == (2, 1)
    assert memory.retrieve("a", 3, NOW).ids == (2, 1, 0)
    see(memory, "d", "1", "x")
    assert memory.retrieve("a", None, NOW).ids == (3, 2), "a change is seen at once"


def test_an_entry_of_several_records_is_deleted_with_the_last() -> None:
    store = MergingStore()
    memory = StoreMemory(store=store)
    one, two = see(memory, "a", "1", "b"), see(memory, "a", "1", "b", AgentClock(3, 9))
    assert len(store) == 1
    assert memory.retrieve("a", None, NOW).ids == (one, two)
    memory.remove([one])
    assert len(store) == 1
    assert memory.retrieve("a", None, NOW).ids == (two,)
    memory.remove([two])
    assert len(store) == 0


def test_merged_statements_take_one_place() -> None:
    store = InProcessStore()
    memory = StoreMemory(k=2, store=store, merge=True)
    one, other, two = see(memory, "a", "1", "b"), see(memory, "a", "2", "c"), see(memory, "a", "1", "b")
    assert len(store) == 2
    assert set(memory.retrieve("a", None, NOW).ids) == {one, two, other}
    memory.remove([one])
    memory.remove([two])
    assert len(store) == 1
    three = see(memory, "a", "1", "b")
    assert memory.retrieve("a", 5, NOW).ids in ((other, three), (three, other))


def test_what_a_store_keeps_against_orders_does_not_come_back() -> None:
    store = StubbornStore()
    store.add("of someone else: a", {})
    memory = StoreMemory(store=store)
    number = see(memory, "a", "1", "b")
    memory.remove([number])
    assert len(store) == 2
    assert memory.retrieve("a", None, NOW).ids == ()


def test_a_verifier_corrects_the_store() -> None:
    store = InProcessStore()
    memory, verifier = StoreMemory(store=store), Overwrite()
    for step, after in enumerate("bbc"):
        now = AgentClock(0, step)
        verifier.verify(Experience("a", "1", Outcome(after, 0.0, False), 0.0, now), memory, [], now)
    assert [text for _, text, _ in store.search("a", 5)] == ['In a action "1" led to c (score 0)']


def test_the_store_of_a_memory_by_name() -> None:
    assert isinstance(make_memory("store", store={"in_process": {}}, embedding="hashed"), StoreMemory)
    with pytest.raises(ArgumentError, match="a store has its own"):
        make_memory("store", store=InProcessStore(), embedding="hashed")


class ListingStore(InProcessStore):
    """It lists what it holds, and changes nothing in place."""

    update = None  # type: ignore[assignment]


@pytest.mark.parametrize("kind", [InProcessStore, ListingStore])
def test_merged_records_come_back_in_their_order(kind: type[InProcessStore]) -> None:
    store = kind()
    memory = StoreMemory(store=store, merge=True)
    seen = [see(memory, "a", "1", after, AgentClock(0, step)) for step, after in enumerate("bcbccbd")]

    def shown(memory: StoreMemory) -> list[tuple[str, AgentClock]]:
        return [(record.outcome.state, record.now) for record in memory.records()]

    for _ in range(2):
        again = StoreMemory(store=store, merge=True)
        assert shown(again) == shown(memory)
        assert len(store) == 3
    memory.remove([seen[0], seen[5]])  # the first and the last of a statement
    again = StoreMemory(store=store, merge=True)
    assert [after for after, _ in shown(again)] == [*"cbccd"]
    see(again, "a", "1", "c", AgentClock(1, 9))
    see(again, "a", "1", "e", AgentClock(1, 10))
    assert shown(StoreMemory(store=store, merge=True)) == shown(again)
    assert [after for after, _ in shown(again)] == [*"cbccdce"]
    assert shown(StoreMemory(store=store)) == shown(again), "whoever opens it"
    again.remove([record.id for record in again.records()])
    assert len(store) == 0


@pytest.mark.parametrize("times", ["3", "[[1]]", '[["1", 2, 3]]', "[", "[[1, 2, null]]"])
def test_damaged_times_are_refused(times: str) -> None:
    store = InProcessStore()
    memory = StoreMemory(store=store, merge=True)
    see(memory, "a", "1", "b")
    see(memory, "a", "1", "b")
    ((entry, _, about),) = store.entries()
    store.update(entry, {**about, "times": times})
    with pytest.raises(ArgumentError, match=re.escape(f"and {times!r}")):
        StoreMemory(store=store, merge=True)
