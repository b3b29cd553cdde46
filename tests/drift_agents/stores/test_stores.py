"""The reference store, and stores by name."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from drift_agents.embedding.base import HashedEmbedding
from drift_agents.errors import ArgumentError, PartError, UnknownNameError
from drift_agents.memory.store import StoreMemory
from drift_agents.registry.part_file import PartFile
from drift_agents.stores.base import InProcessStore, make_store
from drift_agents.types import AgentClock, Experience, Outcome, Retrieved

from tests.drift_agents.stores.store_contract import ListedStoreContract, StoreContract


class TestInProcess(ListedStoreContract):
    def test_of_equal_entries_the_oldest_comes_first(self) -> None:
        store = InProcessStore()
        entries = [store.add("a", {"number": number}) for number in range(3)]
        assert [entry for entry, _, _ in store.search("a", 3)] == entries
        assert list(store.entries()) == [(entry, "a", {"number": n}) for n, entry in enumerate(entries)]


class TestServiceOfTwoMethods(StoreContract):
    """`two_methods.py`, whose service has neither ids nor `delete`."""

    name = PartFile(str(Path(__file__).with_name("two_methods.py")), "Words").pin().text
    knows_similarity = False


class Rewriting:
    """Keeps one text for each beginning, and says in words of its own what came last."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def add(self, text: str) -> str:
        self.texts.append(text)
        return str(len(self.texts) - 1)

    def search(self, query: str, k: int) -> list[str]:
        return self.texts[-k:]


def see(memory: StoreMemory, after: str, step: int = 0) -> None:
    now = AgentClock(0, step)
    memory.observe(Experience("a river", "cross", Outcome(after, 0.0, after == "hole"), 0.0, now), now)


def test_what_a_service_answers_is_what_the_prompt_shows() -> None:
    """Never a record that a text once cited (field report G1)."""
    service = Rewriting()
    memory = StoreMemory(store=service)
    for step, after in enumerate(("ice", "ice", "hole")):
        see(memory, after, step)
    service.texts = ['In a river action "cross" led to hole (updated) [record 0] [Record: 1]']
    (shown,) = memory.retrieve("a river", None, AgentClock()).records
    assert shown.outcome == Outcome("hole", 0.0, True)
    assert shown.now == AgentClock(0, 1), "the newest record that the text stands for"
    assert memory.rewritten == 0
    memory.remove([0, 1])
    assert memory.retrieve("a river", None, AgentClock()) == Retrieved(), "its records were removed"


@pytest.mark.parametrize(
    "behind",
    [
        "",
        ".",
        " (updated)",
        " (score 0; the episode ended) (updated)",
        " (score 0; the episode ended).",
        " (score 0; the episode ended) [source: notes].",
        " (score 0; the episode ended), confirmed on day 3",
        " (score 0; the episode ended) -- importance: 5; age (days): 2",
        " (updated) (twice)!",
    ],
)
@pytest.mark.parametrize("tag", ["", " [record 0]"])
def test_a_statement_with_a_suffix_is_read_back(behind: str, tag: str) -> None:
    service = Rewriting()
    memory = StoreMemory(store=service)
    for step, after in enumerate(("hole", "ice")):
        see(memory, after, step)
    service.texts = [f'In a river action "cross" led to hole{behind}{tag}']
    (shown,) = memory.retrieve("a river", None, AgentClock()).records
    assert shown.outcome == Outcome("hole", 0.0, True)
    assert memory.rewritten == 0


@pytest.mark.parametrize(
    "behind",
    [
        " (no longer true)",
        " (score 0) (outdated)",
        " (score 0), which is wrong now",
        " (score 0). Deleted",
        " (score 0), or to hole (score 0)",
        " and a plank",
    ],
)
def test_a_statement_that_is_taken_back_is_none(behind: str) -> None:
    service = Rewriting()
    memory = StoreMemory(store=service)
    see(memory, "ice")
    service.texts = [f'In a river action "cross" led to ice{behind}']
    found = memory.retrieve("a river", None, AgentClock())
    assert found.records == ()
    assert [note.text for note in found.notes] == service.texts


def test_what_is_rewritten_beyond_recognition_is_a_note_and_counted() -> None:
    service = Rewriting()
    memory = StoreMemory(store=service)
    see(memory, "ice")
    texts = [
        "Do not cross the river [record 0].",
        "Rivers are cold.",
        'In a river action "cross" led to ice led to ice',
    ]
    service.texts = texts
    for _ in range(2):
        found = memory.retrieve("a river", None, AgentClock())
        assert found.records == ()
        assert [note.text for note in found.notes] == ["Do not cross the river.", *texts[1:]]
        assert [note.evidence for note in found.notes] == [(0,), (), ()]
        assert memory.rewritten == 3
    see(memory, "hole")
    assert len({*memory.retrieve("a river", None, AgentClock()).ids, *(r.id for r in memory.records())}) == 5


def test_a_service_deletes_what_it_can_and_gets_metadata_if_it_takes_them() -> None:
    class Deleting(Rewriting):
        def add(self, text: str, metadata: object = None) -> str:  # type: ignore[override]
            assert isinstance(metadata, dict)
            assert metadata["action"] == "cross"
            return super().add(text)

        def delete(self, entry: str) -> None:
            self.texts[int(entry)] = ""

    service = Deleting()
    memory = StoreMemory(store=service)
    see(memory, "ice")
    memory.remove([0])
    assert service.texts == [""]


@pytest.mark.parametrize(
    ("method", "result", "message"),
    [
        ("search", lambda *_: 1 / 0, "`search` raises ZeroDivisionError: division by zero"),
        ("search", lambda *_: None, "`search` should return a list of texts. Received NoneType"),
        ("search", lambda *_: {"results": []}, "`search` should return a list of texts. Received dict"),
        ("search", lambda *_: {"a", "b"}, "`search` should return a list of texts. Received set"),
        ("search", lambda *_: {"a": 0.5}.keys(), "`search` should return a list of texts. Received dict_keys"),
        (
            "search",
            lambda *_: (str(n) for n in range(2000)),
            "`search` should return at most 1000 texts. Received more",
        ),
        ("search", lambda *_: ("x" * (1 // n) for n in (1, 0)), "`search` raises ZeroDivisionError"),
        ("add", lambda *_: asyncio.sleep(0), "`add` should not be async"),
    ],
)
def test_a_service_that_fails_is_named_in_one_line(method: str, result: Any, message: str) -> None:
    service = type("Mine", (Rewriting,), {method: result})()
    memory = StoreMemory(store=service)

    def use() -> None:
        see(memory, "ice")
        memory.retrieve("a river", None, AgentClock())

    with pytest.raises(PartError, match=f"^{re.escape(f'the memory service Mine: {message}')}"):
        use()


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
    with pytest.raises(ArgumentError, match=r"the store 'in_process' does not take the option 'k'"):
        make_store({"in_process": {"k": 3}})
    with pytest.raises(ArgumentError, match="a store has its own"):
        make_store(InProcessStore(), HashedEmbedding())
