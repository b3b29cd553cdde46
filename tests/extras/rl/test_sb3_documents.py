"""What the notebook and the quickstart show of Stable-Baselines3 runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("stable_baselines3", reason="needs the extra `rl`")
ROOT = Path(__file__).resolve().parents[3]
NOTEBOOK = ROOT / "examples" / "notebooks" / "sb3_under_drift.ipynb"


def test_the_code_of_the_quickstart() -> None:
    text = (ROOT / "docs" / "quickstart_rl.md").read_text(encoding="utf-8")
    (code,) = [code for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "stable_baselines3" in code]
    names: dict[str, object] = {}
    exec(code, names)
    assert names["evaluation"].evaluations_phases


def test_the_notebook_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra `plots`")
    monkeypatch.setenv("MPLBACKEND", "agg")
    names = {"__name__": "__main__"}
    for number, cell in enumerate(json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
    assert set(names["cars"].by_phase()) == {"source", "reversed"}
