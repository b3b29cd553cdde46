"""`--dry-run` of an experiment without language models: it ends in time, and names what fails."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from drift_agents.cli import dry_run, playing_time
from drift_agents.cli.app import main
from drift_agents.experiment.loader import load_experiment

pytestmark = pytest.mark.integration

CHANGES = {
    "seeds": 2,
    "rounds": 4,
    "schedules": ["tools/implicit"],
    "agents": {"memory": ["vanilla"], "verifier": ["none"], "policy": "planner"},
}


def test_episodes_that_are_not_played_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = load_experiment("desk", CHANGES)
    played: list[int] = []
    true_play = playing_time.play

    def count(*arguments, **options):
        for row in true_play(*arguments, **options):
            played[-1] += 1
            yield row

    monkeypatch.setattr(
        playing_time, "play", lambda *arguments, **options: (played.append(0), count(*arguments, **options))[1]
    )
    whole = [(row.schedule, row.cells, row.episodes) for row in playing_time.measure(experiment)]
    most = sum(played)
    clock = itertools.count()  # a machine that is busy for a moment would play nothing in a part of a second
    monkeypatch.setattr(playing_time, "time", SimpleNamespace(monotonic=lambda: 0.001 * next(clock)))
    for seconds, fewest in ((0.3, 1), (0.0, 0)):
        played.clear()
        monkeypatch.setattr(playing_time, "MEASURED_SECONDS", seconds)
        rows = playing_time.measure(experiment)
        assert [(row.schedule, row.cells, row.episodes) for row in rows] == whole
        assert fewest <= sum(played) < most
        assert all(row.seconds + row.waiting > 0 for row in rows)


SLOW = '''
import time
from drift_agents import make_memory

class Service:
    """Answers after a while."""

    def __init__(self):
        self.texts = []

    def add(self, text):
        self.texts.append(text)

    def search(self, query, k):
        time.sleep(0.4)
        return self.texts[-k:]


class Broken(Service):
    """Fails at the third text."""

    def search(self, query, k):
        return self.texts[-k:] if len(self.texts) < 3 else self.texts["office"]


class Odd(Service):
    """Returns no texts."""

    def search(self, query, k):
        return 7 if len(self.texts) > 2 else []


class Whole:
    """Fails at its first record."""

    name, supervision = "mine", "none"

    def __init__(self):
        self._inner = make_memory("vanilla")
        for method in ("same_transitions", "records", "remove", "insert_summary", "end_episode", "retrieve"):
            setattr(self, method, getattr(self._inner, method))

    def observe(self, experience, now):
        raise KeyError("office")
'''


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(SLOW)
    return tmp_path


def test_a_slow_memory_of_ones_own_ends_in_time(
    mine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Episodes are cut, and players that are not reached are counted: 3 of them take about 0.4 s a step."""
    monkeypatch.setattr(playing_time, "MEASURED_SECONDS", 2.0)
    given = ["--memory", "mine.py:Service", "--schedules", "house/keys,house/tidy", "--seeds", "2"]
    before = time.monotonic()
    assert main(["run", "house", *given, "--dry-run"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "of 8 were played; the others are counted by the episodes of these" in text
    assert "minutes more if a service of the agents was waited for" in text
    assert time.monotonic() - before < 60, "one of the 8 players alone would take minutes"


def test_with_a_model_it_ends_in_time_too_and_says_what_is_slow(
    mine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--model", "any", "--memory", "mine.py:Service,vanilla", "--set", "references=[]", "--seeds", "2"]
    given += ["--schedules", "house/keys,house/tidy", "--verifier", "none", "--policy", "llm"]
    monkeypatch.setattr(dry_run, "MOST_SECONDS", 1.0)
    before = time.monotonic()
    assert main(["run", "house", *given, "--dry-run"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "After 1 s 0 of 4 agents had played an episode" in text
    assert "an episode that was cut as if it lasted as long as it may" in text
    assert "The slowest: house/keys, memory store(Service), " in text
    assert time.monotonic() - before < 60, "one episode alone would take minutes"


def test_with_a_model_agents_that_are_not_reached_are_counted_by_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    agents = {"memory": ["vanilla", "full_transcript"], "verifier": "none", "policy": {"llm": {"model": "any"}}}
    schedules = ["tools/explicit", "tools/implicit"]
    experiment = load_experiment("desk", {**CHANGES, "schedules": schedules, "agents": agents, "references": []})
    whole = dry_run.estimate(experiment)
    assert [(row.agents, row.played) for row in whole] == [(1, 1)] * 4
    true_play = dry_run._Samples._play

    def play_once(samples, *arguments):
        found = true_play(samples, *arguments)
        samples._end = 0.0
        return found

    monkeypatch.setattr(dry_run._Samples, "_play", play_once)
    rows = dry_run.estimate(experiment)
    assert [row.played for row in rows] == [1, 0, 0, 0]
    assert [row[:4] for row in rows] == [row[:4] for row in whole]
    assert rows[0][:8] == whole[0][:8]
    assert rows[0][4:8] == rows[1][4:8]
    assert all(row.decisions > 0 and row.most >= row.decisions and row.tokens_in > 0 for row in rows)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Broken", "the memory service mine.py:Broken: `search` raises TypeError: list indices must be integers or "),
        ("Odd", "the memory service mine.py:Odd: `search` should return a list of texts. Received int"),
        ("Whole", "KeyError: 'office' (mine.py:"),
    ],
)
def test_what_fails_in_a_dry_run_is_one_line_with_the_file(
    mine: Path, capsys: pytest.CaptureFixture[str], name: str, words: str
) -> None:
    given = ["--memory", f"mine.py:{name}", "--schedules", "frozen_lake/explicit", "--seeds", "1"]
    assert main(["run", "glove-quick", *given, "--dry-run"]) == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("drift-agents: frozen_lake-")
    assert words in line
    if name == "Broken":
        assert "(mine.py:" in line
