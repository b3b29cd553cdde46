"""Memories in files: what a killed process loses, one writer, versions, refusals; equal results are in the contract."""

from __future__ import annotations

import copy
import io
import json
import math
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from drift_agents.envs.mountain_car.matching import MountainCarMatching
from drift_agents.errors import ArgumentError, MemoryStateError
from drift_agents.matching.base import Exact
from drift_agents.memory.base import DurableMemory, Memory, make_memory
from drift_agents.memory.ledger import Ledger
from drift_agents.memory.stored import file as file_module
from drift_agents.memory.stored import ledger as ledger_module
from drift_agents.memory.stored.file import MIGRATIONS, MemoryFile, write_record
from drift_agents.memory.stored.ledger import StoredLedger, digest
from drift_agents.memory.stored.memory import export_memory, import_memory, open_stored, read_summary
from drift_agents.memory.views import freeze
from drift_agents.types import AgentClock, Episode, Experience, Outcome, Record

HERE = Outcome("b", 0.0, False)


def write(memory: Memory, number: int, state: str = "a", outcome: Outcome = HERE) -> int:
    now = AgentClock(number, number)
    written = memory.observe(Experience(state, "1", outcome, 0.0, now), now)
    assert written is not None
    return written


def end(memory: Memory, number: int) -> None:
    memory.end_episode(Episode("task", 1.0, 1, True), AgentClock(number, number))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.sqlite"


WRITER = """
import sys
from drift_agents.memory.base import make_memory
from drift_agents.types import AgentClock, Episode, Experience, Outcome
memory = make_memory("memory_bank", file=sys.argv[1])
for episode in range(10**6):
    for step in range(7):
        now = AgentClock(episode, 7 * episode + step)
        memory.observe(Experience(f"s{step}", "1", Outcome("b", 0.0, False), 0.0, now), now)
    memory.end_episode(Episode("task", 1.0, 7, True), now)
    print(episode, flush=True)
"""


@pytest.mark.parametrize("episodes", [1, 40, 200])
def test_a_killed_writer_loses_the_open_episode_alone(path: Path, episodes: int) -> None:
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        said = [int(next(writer.stdout)) for _ in range(episodes)]
        writer.send_signal(signal.SIGKILL)
        said += [int(line) for line in writer.stdout]
    with open_stored(make_memory("memory_bank"), path) as memory:
        records = list(memory.records())
        assert len(records) % 7 == 0
        # The end of an episode is committed before it is printed, so at most one more is in the file.
        assert len(records) // 7 - (said[-1] + 1) in (0, 1)
        assert len(memory.summaries()) == len(records) // 7
        assert write(memory, 10**7) == len(records) + len(memory.summaries())


def test_a_second_writer_is_told_who_holds_the_file(path: Path) -> None:
    with open_stored(make_memory("vanilla"), path):
        with pytest.raises(MemoryStateError, match=rf"m\.sqlite: is in use by process {os.getpid()} on "):
            make_memory("vanilla", file=path)
        code = "import sys; from drift_agents import make_memory; make_memory('vanilla', file=sys.argv[1])"
        done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
        assert f"is in use by process {os.getpid()} on " in done.stderr
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["m.sqlite"]
    with open_stored(make_memory("vanilla"), path):
        pass


def test_a_reader_sees_what_was_committed_last(path: Path) -> None:
    with open_stored(make_memory("vanilla"), path) as memory:
        write(memory, 0)
        end(memory, 0)
        write(memory, 1)
        reader = MemoryFile(path, read_only=True)
        assert read_summary(reader).records == 1
        memory.commit()
        assert read_summary(reader).records == 2
        reader.close()


def test_closing_commits_and_forgetting_to_close_does_not(path: Path) -> None:
    memory = open_stored(make_memory("vanilla"), path)
    write(memory, 0)
    memory.close()
    memory.close()
    with pytest.raises(MemoryStateError, match="closed database"):
        memory.counterparts("a", "2")
    memory = open_stored(make_memory("vanilla"), path)
    write(memory, 1)
    del memory
    with open_stored(make_memory("vanilla"), path) as memory:
        assert [record.id for record in memory.records()] == [0]


@pytest.fixture
def old_file(path: Path) -> Path:
    """A file of version 1 with five records of two states, one of them verified."""
    records = [
        Record(n, "ab"[n % 2], "1", ((HERE, 1.0),), 1 + 3 * (n == 4), AgentClock(0, n), n == 4) for n in range(1, 6)
    ]
    with sqlite3.connect(path) as connection:
        for statement in MIGRATIONS[0]:
            connection.execute(statement)
        rows = [write_record(record, digest(record.state)) for record in records]
        connection.executemany(f"INSERT INTO records VALUES ({', '.join('?' * len(rows[0]))})", rows)
        state = {"kind": "vanilla", "ledger": {"next_id": 6, "records": None}}
        about = {"memory": "vanilla", "options": {}, "matching": {"name": "exact"}, "state": state}
        connection.executemany("INSERT INTO about VALUES (?, ?)", [(k, json.dumps(v)) for k, v in about.items()])
        connection.execute(f"PRAGMA application_id = {file_module.APPLICATION}")
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    return path


def test_a_file_of_an_earlier_version_is_brought_up_to_date(old_file: Path) -> None:
    reader = MemoryFile(old_file, read_only=True)
    assert (read_summary(reader).version, read_summary(reader).states) == (1, 2)
    reader.close()
    with open_stored(make_memory("vanilla"), old_file) as memory:
        assert list(memory.states()) == ["b", "a"]
        assert [record.id for record in memory.counterparts("b", "1")] == [1, 3, 5]
        memory.remove([1])
        assert list(memory.states()) == ["a", "b"]
        assert write(memory, 9) == 6
    reader = MemoryFile(old_file, read_only=True)
    assert (reader.version, read_summary(reader).verified) == (len(MIGRATIONS), 1)
    reader.close()


def test_a_file_of_a_later_version_is_refused(old_file: Path) -> None:
    with sqlite3.connect(old_file) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = old_file.read_bytes()
    with pytest.raises(MemoryStateError, match="later version of drift-envs: its tables have version 99"):
        make_memory("vanilla", file=old_file)
    assert old_file.read_bytes() == before


def test_files_of_others_are_refused_and_left_alone(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE other (x)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(MemoryStateError, match="is not the file of a memory"):
        make_memory("vanilla", file=path)
    assert path.read_bytes() == before
    text = path.with_name("notes.txt")
    text.write_text("no database, but long enough to be read as the header of one\n" * 20)
    with pytest.raises(MemoryStateError, match=r"notes\.txt: cannot be used: file is not a database"):
        make_memory("vanilla", file=text)
    with pytest.raises(MemoryStateError, match="cannot be used: No such file or directory"):
        make_memory("vanilla", file=path.parent / "nowhere" / "m.sqlite")
    with pytest.raises(MemoryStateError, match="there is no such file"):
        MemoryFile(path.parent / "none.sqlite", read_only=True)


def test_another_kind_of_memory_is_refused(path: Path) -> None:
    open_stored(make_memory("vanilla"), path).close()
    with pytest.raises(MemoryStateError, match=r"holds a memory 'vanilla'\. Received 'voyager'"):
        make_memory("voyager", file=path)
    open_stored(make_memory("vanilla"), path).close()  # the refused one let go of it


def test_another_matching_rule_groups_the_records_anew(path: Path) -> None:
    states = [f'{{"position": {x / 100:.2f}, "velocity": 0.0}}' for x in range(-60, -40)]
    with open_stored(make_memory("vanilla"), path) as memory:
        for number, state in enumerate(states):
            write(memory, number, state)
        assert len(memory.counterparts(states[0], "1")) == 1
    for width, expected in ((0.1, 10), (0.05, 5)):
        rule = MountainCarMatching(position=width)
        with open_stored(make_memory("vanilla", matching=rule), path) as memory:
            assert len(memory.counterparts(states[0], "1")) == expected
            assert len(list(memory.states())) == 20 // expected


def test_a_rule_whose_keys_cannot_be_stored_is_refused(path: Path) -> None:
    class Odd(Exact):
        def state_key(self, state: str) -> Any:
            return frozenset(state)

    message = "should have keys made of strings, numbers and tuples"
    with (
        open_stored(make_memory("vanilla", matching=Odd()), path) as memory,
        pytest.raises(ArgumentError, match=message),
    ):
        write(memory, 0)


@pytest.mark.parametrize("name", ["vanilla", "memory_bank", "generative_agents", "managed"])
def test_a_refused_snapshot_changes_nothing(path: Path, name: str) -> None:
    with open_stored(make_memory(name), path) as memory:
        write(memory, 0)
        end(memory, 0)
        before = memory.content_hash()
        data = json.loads(json.dumps(memory.snapshot()))
        for key in set(data) - {"kind", "ledger", "store", "stream"}:
            with pytest.raises(MemoryStateError):
                memory.restore({**data, key: "wrong"})
        with pytest.raises(MemoryStateError):
            memory.restore({"kind": name})
        assert memory.content_hash() == before
        assert len(memory.counterparts("a", "1")) == 1
        new = write(memory, 1)
        assert new > max(record.id for record in memory.records() if record.id != new)


def test_odd_texts_and_numbers_come_back_as_they_are(path: Path) -> None:
    plain = make_memory("vanilla")
    outcomes = [Outcome("\ud800x", 0.5, True), Outcome("\x00", -0.0, False), Outcome("", math.inf, False)]
    with open_stored(make_memory("vanilla"), path) as memory:
        for one in (plain, memory):
            for number, outcome in enumerate(outcomes):
                one.observe(Experience("\udfff", "\ud800", outcome, 0.0, AgentClock()), AgentClock(0, number))
            one.insert_summary("é", "1", [(outcomes[0], 1 / 3), (outcomes[2], 2 / 3)], 3, AgentClock())
            write(one, 7, "nan", Outcome("b", math.nan, False))
        assert memory.content_hash() == plain.content_hash()
        assert repr(list(memory.records())) == repr(list(plain.records()))
        assert memory.counterparts("\udfff", "\ud800") == plain.counterparts("\udfff", "\ud800") != []


def test_what_is_kept_in_ram_is_bounded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "HOT", 5 * ledger_module.EACH)
    monkeypatch.setattr(ledger_module, "FEW_STATES", 3)
    file = MemoryFile(path)
    stored, plain = StoredLedger(file, Exact()), Ledger()
    for number in range(200):
        step = Experience(f"s{number % 17}", str(number % 2), HERE, 0.0, AgentClock(0, number))
        for one in (stored, plain):
            one.append(step, step.now)
            if number % 5 == 4:
                one.remove([number - 3, number // 2])
        state, action = f"s{number % 13}", str(number % 2)
        assert stored.counterparts(state, action) == plain.counterparts(state, action)
        assert stored.by_action(state) == plain.by_action(state)
        assert list(stored.states()) == list(plain.states())
        kept = sum(len(records) for records, _ in stored._hot.values())
        assert kept <= 5 or len(stored._hot) == 1
    assert list(stored) == list(plain)
    assert len(stored) == len(plain)
    file.close()


def test_copies_are_refused(path: Path) -> None:
    with open_stored(make_memory("vanilla"), path) as memory:
        for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(MemoryStateError, match="cannot be copied or pickled"):
                attempt(memory)  # type: ignore[operator]


def test_a_frozen_memory_commits_what_a_verifier_wrote(path: Path) -> None:
    memory = open_stored(make_memory("vanilla", k=3), path)
    frozen = freeze(memory)
    assert (frozen.k, memory.k) == (3, 3)
    frozen.insert_summary("a", "1", [(HERE, 1.0)], 3, AgentClock())
    end(frozen, 0)
    reader = MemoryFile(path, read_only=True)
    assert read_summary(reader).verified == 1
    reader.close()
    memory.close()


def test_a_managed_memory_keeps_its_demonstrations(path: Path) -> None:
    class Teacher:
        def show(self, count: int) -> list[list[Experience]]:
            return [[Experience("a", "1", HERE, 0.0, AgentClock())]] * count

        def correct(self, task: str) -> None: ...

    with open_stored(make_memory("managed", initial=2, teacher=Teacher()), path) as memory:
        assert len(list(memory.records())) == 2
        write(memory, 3)
    with open_stored(make_memory("managed", initial=2, teacher=Teacher()), path) as memory:
        assert isinstance(memory, DurableMemory)
        assert len(list(memory.records())) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not an export of a memory"),
        ("[]", "whose `format` is 'drift-agents memory 1'"),
        ('{"format": "drift-agents memory 1"}', "not a snapshot of an export"),
        (
            '{"format": "drift-agents memory 1", "memory": "vanila", "options": {}, "snapshot": {}}',
            "the memory 'vanila' of the export cannot be made: no memory is called 'vanila'",
        ),
        (
            '{"format": "drift-agents memory 1", "memory": "vanilla", "options": {"k": 0}, "snapshot": {}}',
            "`k` should be",
        ),
        (
            '{"format": "drift-agents memory 1", "memory": "vanilla", "options": {}, "snapshot": {"kind": "vanilla"}}',
            "not a snapshot of a ledger",
        ),
    ],
)
def test_what_is_no_export_makes_no_file(path: Path, text: str, message: str) -> None:
    with pytest.raises(MemoryStateError, match=message):
        import_memory(text, path)
    assert list(path.parent.iterdir()) == []


def test_an_import_overwrites_nothing(path: Path) -> None:
    out = io.StringIO()
    with open_stored(make_memory("vanilla"), path):
        reader = MemoryFile(path, read_only=True)
        export_memory(reader, out)
        reader.close()
    with pytest.raises(MemoryStateError, match="exists already"):
        import_memory(out.getvalue(), path)
