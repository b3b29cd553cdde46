"""The program behind README's table: a short form of it plays, and README shows a table of its form."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="needs the extra `plots`")

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.integration
def test_a_short_form_prints_the_table_that_readme_shows(tmp_path, monkeypatch, capsys):
    page = runpy.run_path(str(ROOT / "examples" / "front_page.py"))
    load = page["load_experiment"]
    short = {"rounds": 1, "seeds": 1}
    monkeypatch.setitem(page["main"].__globals__, "load_experiment", lambda path, _: load(path, short))
    assert page["main"](["--out", str(tmp_path / "run"), "--jobs", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    shown = [line for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines() if line in lines]
    assert lines[0] in shown, "the columns"
    table = (ROOT / "README.md").read_text(encoding="utf-8").split(lines[0])[1].split("\n\n")[0]
    rows = [line.split("|")[1] for line in table.splitlines()[2:]]
    assert rows == [line.split("|")[1] for line in lines[2:]]
    assert (tmp_path / "run" / "curve.png").stat().st_size > 10_000
