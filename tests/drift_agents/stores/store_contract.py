"""What holds of every store, and of a memory on it: one suite for the reference store and for the adapters.

* `StoreContract` - what holds of every store, and of a memory service of two methods
* `ListedStoreContract` - and of a store that lists what it holds
* `PersistentStoreContract` - and of a store in a file or a folder
"""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest
from drift_agents.errors import ArgumentError, DriftAgentsError
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.logs import read_rows
from drift_agents.experiment.runner import run_experiment
from drift_agents.memory.store import StoreMemory
from drift_agents.stores.base import ListedStore, Scalar, StoreProtocol, make_store
from drift_agents.types import AgentClock, Experience, Outcome

TEXTS = ("the river is frozen", "the bridge is open", 'In é;( action "1" led to nothing', "the bridge is closed")
UNICODE = (
    "Zürich — 雪が降る 🧊",
    "e\u0301 is not \u00e9",
    'a\ttab, a\nline and "quotes"; DROP TABLE x --',
    "x" * 20_000,
)


class StoreContract:
    """Subclasses name the store; everything else follows."""

    name = "in_process"
    finds_blanks = True
    """Whether texts and queries without a letter are found and find."""
    can_be_copied = True
    knows_similarity = True

    def options(self) -> dict[str, Any]:
        """Options of the store, for one that starts empty."""
        return {}

    def make(self) -> StoreProtocol:
        return make_store({self.name: self.options()})

    def test_equal_texts_are_two_entries(self) -> None:
        store = self.make()
        entries = [store.add("the river is frozen", {"number": number}) for number in range(3)]
        assert len(set(entries)) == 3
        assert {entry for entry, _, _ in store.search("the river is frozen", 9)} == {*entries}
        store.delete(entries[1])
        assert {entry for entry, _, _ in store.search("the river is frozen", 9)} == {entries[0], entries[2]}

    def test_equal_calls_in_equal_order_give_equal_results(self) -> None:
        """Twelve entries of three texts, so that there are ties at the cut; ids may differ, texts and numbers not."""
        results = []
        for _ in range(2):
            store = self.make()
            entries = [store.add(TEXTS[number % 3], {"number": number}) for number in range(12)]
            store.delete(entries[4])
            found = [store.search(query, k) for query in (*TEXTS, "the bridge is frozen") for k in (1, 3, 5, 11, 30)]
            order = {entry: number for number, entry in enumerate(entries)}
            results.append([[(order[entry], text, score) for entry, text, score in hits] for hits in found])
            assert [len(hits) for hits in found] == [1, 3, 5, 11, 11] * 5
        assert results[0] == results[1]

    def test_a_text_is_found_at_once_and_first(self) -> None:
        store = self.make()
        assert isinstance(store, StoreProtocol)
        assert list(store.search("the bridge", 3)) == []
        for text in TEXTS:
            entry = store.add(text, {"number": 3, "share": 0.5, "word": "é", "flag": True})
            assert isinstance(entry, str)
            first = store.search(text, 1)[0]
            assert first[:2] == (entry, text)
            assert first[2] == pytest.approx(1.0 if self.knows_similarity else 0.0, abs=1e-5)

    def test_hits_are_limited_and_ordered(self) -> None:
        store = self.make()
        entries = {store.add(text, {}) for text in TEXTS}
        hits = store.search("the bridge is open", 9)
        assert {entry for entry, _, _ in hits} == entries
        assert len(hits) == len(TEXTS)
        scores = [score for _, _, score in hits]
        assert scores == sorted(scores, reverse=True)
        assert [tuple(hit) for hit in store.search("the bridge is open", 2)] == [tuple(hit) for hit in hits[:2]]

    def test_texts_without_words_are_no_error(self) -> None:
        store = self.make()
        if not self.finds_blanks:
            entry = store.add("a word", {})
            assert list(store.search("", 3)) == list(store.search(" ", 3)) == []
            assert [hit[0] for hit in store.search("?!", 3)] == [entry]
            return
        entries = {store.add(text, {}) for text in ("", "?!", "a word")}
        for query in ("", "?!", "a word"):
            assert {entry for entry, _, _ in store.search(query, 3)} == entries

    def test_a_deleted_entry_is_gone_and_its_id_is_not_used_again(self) -> None:
        store = self.make()
        entries = [store.add(text, {}) for text in TEXTS]
        store.delete(entries[1])
        store.delete(entries[1])
        store.delete("unknown")
        assert {entry for entry, _, _ in store.search(TEXTS[1], 9)} == {*entries} - {entries[1]}
        assert store.add(TEXTS[1], {}) not in entries

    def test_copies_go_their_own_way(self) -> None:
        store = self.make()
        if not self.can_be_copied:
            for copied in (copy.deepcopy, pickle.dumps):
                with pytest.raises(DriftAgentsError, match=f"the store '{self.name}' cannot be copied or pickled"):
                    copied(store)
            return
        entries = [store.add(text, {}) for text in TEXTS]
        for twin in (copy.deepcopy(store), pickle.loads(pickle.dumps(store))):
            assert [tuple(hit) for hit in twin.search("bridge", 4)] == [tuple(hit) for hit in store.search("bridge", 4)]
            twin.delete(entries[0])
            assert twin.add("new", {}) not in entries
        assert {entry for entry, _, _ in store.search("river", 9)} == {*entries}

    def test_a_memory_on_it_forgets_what_is_removed(self) -> None:
        memory = StoreMemory(k=9, store=self.make())
        now = AgentClock()
        for state, after in (("a river", "ice"), ("a river", "ice"), ("a bridge", "the other side")):
            memory.observe(Experience(state, "cross", Outcome(after, 0.0, False), 0.0, now), now)
        assert sorted(memory.retrieve("a river", None, now).ids) == [0, 1, 2]
        assert memory.remove([0, 5]).records == (0,)
        assert sorted(memory.retrieve("a river", None, now).ids) == [1, 2]
        number = memory.insert_summary("a river", "cross", [(Outcome("water", 0.0, True), 1.0)], 4, now)
        assert sorted(memory.retrieve("a river", None, now).ids) == [1, 2, number]
        memory.remove([1, 2, number])
        assert memory.retrieve("a river", None, now).ids == ()

    @pytest.mark.parametrize("schedule", ["frozen_lake/explicit", "webshop/explicit", "house/explicit"])
    def test_it_plays_with_and_without_a_verifier(self, tmp_path: Path, schedule: str) -> None:
        """Each run in a store of its own, twice: equal seeds give equal runs."""
        data = {"name": "store", "schedules": [schedule], "seeds": 1, "rounds": 2, "trace": "none"}
        for verifier in ("none", "glove"):
            runs = []
            for name in ("one", "two"):
                agents = {"memory": {"store": {"store": {self.name: self.options()}}}, "policy": "planner"}
                experiment = parse_experiment({**data, "agents": {**agents, "verifier": verifier}})
                rows = read_rows(run_experiment(experiment, tmp_path / verifier / name, jobs=1))
                runs.append([{**row, "memory": "store"} for row in rows])
            assert runs[0] == runs[1]
            assert all(row["memory_size"] > 0 for row in runs[0])
            assert any(row["probe_steps"] > 0 for row in runs[0]) == (verifier == "glove")
            assert not any(row["invalid_actions"] for row in runs[0])


class ListedStoreContract(StoreContract):
    """Subclasses name the store; it lists what it holds."""

    def make(self) -> ListedStore:
        made = super().make()
        assert isinstance(made, ListedStore)
        return made

    @pytest.mark.parametrize("text", UNICODE, ids=["unicode", "accents", "lines", "long"])
    def test_texts_come_back_as_they_were(self, text: str) -> None:
        store = self.make()
        about: dict[str, Scalar] = {"number": 3, "share": 0.5, "word": text, "flag": True}
        entry = store.add(text, about)
        assert [hit[:2] for hit in store.search(text, 1)] == [(entry, text)]
        assert list(store.entries()) == [(entry, text, about)]

    def test_entries_are_listed_oldest_first(self) -> None:
        store = self.make()
        assert list(store.entries()) == []
        entries = [store.add(TEXTS[number % 4], {"number": number}) for number in range(12)]
        store.delete(entries[3])
        left = [number for number in range(12) if number != 3]
        assert [(entry, about["number"]) for entry, _, about in store.entries()] == [(entries[n], n) for n in left]


class PersistentStoreContract(ListedStoreContract):
    """Subclasses name the store; it takes `path`."""

    can_be_copied = False

    def open(self, path: Path) -> Any:
        return make_store({self.name: {"path": str(path)}})

    def test_a_store_opened_again_is_the_same(self, tmp_path: Path) -> None:
        store = self.open(tmp_path / "store")
        entries = [store.add(TEXTS[number % 3], {"number": number}) for number in range(12)]
        store.delete(entries[4])
        held = list(store.entries())
        found = {query: sorted(store.search(query, 30)) for query in TEXTS}
        store.close()
        again = self.open(tmp_path / "store")
        assert list(again.entries()) == held
        assert {query: sorted(again.search(query, 30)) for query in TEXTS} == found
        assert again.add("new", {"number": 12}) not in entries
        again.delete(entries[0])
        again.close()
        third = self.open(tmp_path / "store")
        assert [about["number"] for _, _, about in third.entries()] == [1, 2, 3, *range(5, 13)]
        third.close()

    def test_a_memory_on_it_goes_on(self, tmp_path: Path) -> None:
        now = AgentClock()
        held = []
        for name, times in (("one", 1), ("two", 2)):
            for part in range(times):
                store = self.open(tmp_path / name)
                memory = StoreMemory(k=9, store=store)
                for state in ("a river", "a bridge")[part : part + 3 - times]:
                    memory.observe(Experience(state, "cross", Outcome("ice", 0.0, False), 0.0, now), now)
                held.append(list(memory.records()))
                assert len(list(memory.retrieve("a river", None, now).ids)) == len(list(memory.records()))
                store.close()
        assert held[0] == held[2] != held[1]

    def test_records_with_one_entry_come_back_in_their_order(self, tmp_path: Path) -> None:
        outcomes = ("ice", "hole", "ice", "ice", "hole", "shore")
        for before in (0, 2, 5):
            store = self.open(tmp_path / "store")
            memory = StoreMemory(k=9, store=store, merge=True)
            assert [record.outcome.state for record in memory.records()] == [*outcomes[:before]]
            for step in range(before, {0: 2, 2: 5, 5: 6}[before]):
                now = AgentClock(0, step)
                memory.observe(Experience("a river", "cross", Outcome(outcomes[step], 0.0, False), 0.0, now), now)
            store.close()
        store = self.open(tmp_path / "store")
        memory = StoreMemory(k=9, store=store, merge=True)
        assert [(record.outcome.state, record.now.step) for record in memory.records()] == [
            (outcome, step) for step, outcome in enumerate(outcomes)
        ]
        assert len(list(store.entries())) == 3
        store.close()

    def test_a_path_that_is_no_store_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("no store")
        with pytest.raises(ArgumentError, match="`path` should be"):
            self.open(tmp_path / "file" / "store")
