"""What holds of every store, and of a memory on it: one suite for the reference store and for the adapters."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.logs import read_rows
from drift_agents.experiment.runner import run_experiment
from drift_agents.memory.store import StoreMemory
from drift_agents.stores.base import StoreProtocol, make_store
from drift_agents.types import AgentClock, Experience, Outcome

TEXTS = ("the river is frozen", "the bridge is open", 'In é;( action "1" led to nothing', "the bridge is closed")


class StoreContract:
    """Subclasses name the store; everything else follows."""

    name = "in_process"

    def make(self) -> StoreProtocol:
        return make_store(self.name)

    def test_a_text_is_found_at_once_and_first(self) -> None:
        store = self.make()
        assert isinstance(store, StoreProtocol)
        assert list(store.search("the bridge", 3)) == []
        for text in TEXTS:
            entry = store.add(text, {"number": 3, "share": 0.5, "word": "é", "flag": True})
            assert isinstance(entry, str)
            first = store.search(text, 1)[0]
            assert first[:2] == (entry, text)
            assert first[2] == pytest.approx(1.0, abs=1e-6)

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
        other = StoreMemory(k=9, store=self.make())
        other.observe(Experience("elsewhere", "0", Outcome("b", 0.0, False), 0.0, now), now)
        other.restore(memory.snapshot())
        assert other.content_hash() == memory.content_hash()
        assert other.retrieve("a river", None, now) == memory.retrieve("a river", None, now)
        memory.remove([1, 2, number])
        assert memory.retrieve("a river", None, now).ids == ()

    @pytest.mark.parametrize("schedule", ["frozen_lake/explicit", "webshop/explicit"])
    def test_it_plays_with_and_without_a_verifier(self, tmp_path: Path, schedule: str) -> None:
        agents = {"memory": {"store": {"store": self.name}}, "verifier": ["none", "glove"], "policy": "planner"}
        data = {"name": "store", "schedules": [schedule], "seeds": 1, "rounds": 2, "trace": "none", "agents": agents}
        runs = [run_experiment(parse_experiment(data), tmp_path / name).read_bytes() for name in ("one", "two")]
        assert runs[0] == runs[1]
        rows = read_rows(tmp_path / "one" / "episodes.jsonl")
        assert {row["verifier"] for row in rows} == {"none", "glove"}
        assert all(row["memory_size"] > 0 for row in rows)
        assert any(row["probe_steps"] > 0 for row in rows)
        assert not any(row["invalid_actions"] for row in rows)
