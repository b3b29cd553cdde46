"""The short form of `make fuzz`, and its findings."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz import run
from tests.fuzz.targets import ROOT, TARGETS, Target, edit, make_test, read_corpus
from tests.processes import children_of, command_of, wait_until

pytestmark = pytest.mark.integration

CORPUS = list(read_corpus(Path(__file__).parent / "corpus"))
SHORT = 600
"""Inputs in all."""


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_every_input_is_accepted_or_refused_by_an_error_of_the_project(target):
    target.prepare()
    before = target.inputs
    make_test(target, round(SHORT * target.share), seed=7)()
    assert target.inputs - before >= round(SHORT * target.share) * 0.9
    assert target.accepted  # the inputs go deeper than the first check


@pytest.mark.parametrize(("target", "name", "text"), CORPUS, ids=[f"{target}-{name}" for target, name, _ in CORPUS])
def test_findings_stay_fixed(target, name, text):
    TARGETS[target].run(text)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_seeds_are_accepted(target):
    assert all(target.run(target.make_input(number, ())) for number in range(10))


def test_a_fault_is_found_and_shrunk():
    def read(text):
        if "☃" in text:
            raise KeyError(text)

    target = Target("planted", lambda: ["one two three " * 5], lambda: read, 1.0)
    found: list[str] = []
    with pytest.raises(KeyError):
        make_test(target, 2000, 3, found.append)()
    # the smallest input is one edit away from the seed, however long the seed is
    assert set(found[-1].split()) - {"one", "two", "three"} == {"☃"}
    assert abs(len(found[-1].split()) - 15) <= 1


def test_edits_are_a_function_of_their_arguments():
    edits = [(0, 3, 5), (3, 2, 77), (4, 1, 4), (6, 16, 2), (5, 9, 1)]
    assert edit("a b c d e f g", edits) == edit("a b c d e f g", edits)
    assert edit("a b", []) == "a b"
    assert edit("", [(4, 3, 3), (0, 1, 1), (2, 0, 0)])


def test_the_runner_writes_what_it_finds(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "CORPUS", tmp_path)
    path = run.save("logs", "\ud800 {", "KeyError: 'x'")
    assert [*read_corpus(tmp_path)] == [("logs", path.stem, "\ud800 {")]
    assert json.loads(path.read_text())["error"] == "KeyError: 'x'"


def test_inputs_are_split_by_the_targets_shares():
    chunks = run.split(["schedules", "logs"], 30_000, 0)
    assert chunks == run.split(["schedules", "logs"], 30_000, 0) != run.split(["schedules", "logs"], 30_000, 1)
    shares = TARGETS["schedules"].share / (TARGETS["schedules"].share + TARGETS["logs"].share)
    assert sum(chunk.inputs for chunk in chunks if chunk.target == "schedules") == round(30_000 * shares)
    assert sum(chunk.inputs for chunk in chunks) == 30_000
    assert len({chunk.seed for chunk in chunks}) == len(chunks)
    assert {chunk.target for chunk in chunks[:2]} == {"schedules", "logs"}


@pytest.mark.parametrize(
    ("stop", "status", "says"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 130, "interrupted"), (None, 0, "0.001 minutes are over")],
)
def test_a_stopped_run_prints_its_table(stop, status, says):
    words = ["--targets", "logs", "--jobs", "1", *([] if stop else ["--minutes", "0.001"])]
    start = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    start += "import sys; from tests.fuzz import run; print('begins', flush=True); sys.exit(run.main())"
    command = [sys.executable, "-c", start, *words]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "begins\n"
        if stop:
            is_worker = "multiprocessing.spawn"
            assert wait_until(lambda: any(is_worker in command_of(pid) for pid in children_of(process.pid)), 120)
            process.send_signal(stop)
        try:
            out, _ = process.communicate(timeout=120)
        finally:
            process.kill()  # leaving the block waits for its end
    assert process.returncode == status
    assert out.splitlines()[0] == says
    assert out.splitlines()[1].startswith("target")
    assert "inputs in" in out.splitlines()[-1]
