"""What the notebook and the quickstart show of Stable-Baselines3 runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.documents import read_code, run_code

pytest.importorskip("stable_baselines3", reason="needs the extra `rl`")
ROOT = Path(__file__).resolve().parents[3]
NOTEBOOK = ROOT / "examples" / "notebooks" / "sb3_under_drift.ipynb"


def test_the_code_of_the_quickstart() -> None:
    (code,) = [code for code in read_code("docs/quickstart_rl.md") if "stable_baselines3" in code]
    assert run_code(code)["evaluation"].evaluations_phases


def test_the_notebook_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra `plots`")
    monkeypatch.setenv("MPLBACKEND", "agg")
    names = {"__name__": "__main__"}
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            run_code("".join(cell["source"]), names)
    assert set(names["cars"].by_phase()) == {"source", "reversed"}
