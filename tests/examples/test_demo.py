"""The demo: short, resumed after an interruption, with a table that fits a terminal and a picture."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="needs the extra `plots`")

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo.py"


@pytest.fixture(scope="module")
def demo():
    return runpy.run_path(str(DEMO))


def shorten(demo, monkeypatch):
    """Play a tenth of the demo."""
    load = demo["load_experiment"]
    values = {"seeds": 1, "rounds": 2, "schedules": ["frozen_lake/implicit"]}
    monkeypatch.setitem(demo["play"].__globals__, "load_experiment", lambda path: load(path, values))


@pytest.mark.integration
def test_the_demo_prints_a_small_table_and_resumes(demo, tmp_path, monkeypatch, capsys):
    shorten(demo, monkeypatch)
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "runs" / "demo"
    assert demo["main"](["--jobs", "1"]) == 0
    first = capsys.readouterr().out
    lines = first.splitlines()
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["before", "plain", "overwrite", "GLOVE", "probes"]
    assert lines[1].startswith("implicit, vanilla")
    for column in lines[0].split():
        assert any(line.startswith(f"{column} ") for line in lines[2:])
    assert (out / "scores.png").stat().st_size > 10_000
    log = (out / "episodes.jsonl").read_bytes()
    assert demo["main"](["--jobs", "1"]) == 0
    assert capsys.readouterr().out == first
    assert (out / "episodes.jsonl").read_bytes() == log


def test_means_begin_anew_at_a_drift(demo):
    rows = [{"episode": at, "phase": "old" if at < 6 else "new", "score": at < 6} for at in range(8)]
    assert demo["_running_means"](rows).tolist() == [100] * 6 + [0, 0]


def test_an_interrupted_demo_says_that_the_next_call_continues(demo, tmp_path, monkeypatch, capsys):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setitem(demo["main"].__globals__, "play", interrupt)
    assert demo["main"](["--out", str(tmp_path)]) == 130
    assert "the next call continues" in capsys.readouterr().err


def test_another_configuration_is_played_again(demo, tmp_path, monkeypatch, capsys):
    shorten(demo, monkeypatch)
    out = tmp_path / "demo"
    demo["play"](out, 1)
    load = demo["load_experiment"]
    values = {"seeds": 1, "rounds": 1, "schedules": ["frozen_lake/implicit"]}
    monkeypatch.setitem(demo["play"].__globals__, "load_experiment", lambda path: load(path, values))
    demo["play"](out, 1)
    assert "is played again" in capsys.readouterr().err
