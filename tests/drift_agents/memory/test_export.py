"""Exports of memories: options that JSON cannot hold, refusals; the round trip of each memory is in the contract."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from drift_agents.errors import MemoryStateError
from drift_agents.matching.base import make_matching
from drift_agents.memory.base import Memory, make_memory
from drift_agents.memory.export import export_memory, import_memory, read_export
from drift_agents.types import AgentClock, Episode, Experience, Outcome


def fill(memory: Memory) -> Memory:
    for state, score in (("a", -0.0), ("\ud800", math.inf)):
        memory.observe(Experience(state, "1", Outcome("b", score, False), 0.0, AgentClock()), AgentClock())
    memory.end_episode(Episode("task", 1.0, 2, True), AgentClock())
    return memory


def test_texts_and_numbers_come_back_exactly(tmp_path: Path) -> None:
    memory = fill(make_memory("vanilla", k=3))
    assert export_memory(memory, tmp_path / "m.json", {"k": 3}) == 2
    again: Any = import_memory(tmp_path / "m.json")
    assert again.snapshot() == memory.snapshot()
    assert math.copysign(1.0, next(again.records()).outcome.score) == -1.0
    assert again.k == 3


def test_options_that_json_cannot_hold_are_given_again(tmp_path: Path) -> None:
    rule = make_matching("mountain_car")
    export_memory(make_memory("vanilla", matching=rule), tmp_path / "m.json", {"k": 5, "matching": rule})
    assert read_export(tmp_path / "m.json").options == {"k": 5}
    again: Any = import_memory(tmp_path / "m.json", matching=rule, k=2)
    assert again.k == 2
    assert again._transitions.matching is rule


def test_an_export_that_fails_leaves_the_earlier_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.json"
    export_memory(make_memory("vanilla"), path)
    before = path.read_bytes()

    def refuse(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(MemoryStateError, match=r"m\.json: cannot be written: No space left"):
        export_memory(fill(make_memory("vanilla")), path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["m.json"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "2"}, "is no export of a memory, whose `format` is 'drift-agents memory 1'"),
        ({"memory": "vanila"}, "did you mean 'vanilla'"),
        ({"memory": ["vanilla"]}, "not a snapshot of an export"),
        ({"options": {"q": 1}}, "cannot be made"),
        ({"options": 3}, "not a snapshot of an export"),
        ({"snapshot": {"kind": "none"}}, "cannot be made"),
        ({"snapshot": []}, "not a snapshot of an export"),
    ],
)
def test_what_is_no_export_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "m.json"
    export_memory(fill(make_memory("vanilla")), path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(MemoryStateError, match=message):
        import_memory(path)


@pytest.mark.parametrize("text", ["", "[", "[]", "3", "[" * 100_000, "\x00"])
def test_texts_that_are_no_export_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(MemoryStateError, match=r"m\.json: is no export of a memory"):
        read_export(tmp_path / "m.json")
    with pytest.raises(MemoryStateError, match="cannot be read"):
        read_export(tmp_path / "missing.json")
