"""What the notebook and the quickstart show of Stable-Baselines3 runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.documents import read_code, run_code

pytest.importorskip("stable_baselines3", reason="needs the extra `rl`")
ROOT = Path(__file__).resolve().parents[3]
NOTEBOOK = ROOT / "examples" / "notebooks" / "sb3_under_drift.ipynb"


def test_the_quickstart_reaches_its_drift_and_plots_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra `plots`")
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(tmp_path)
    (code,) = [code for code in read_code("docs/quickstart_rl.md") if "stable_baselines3" in code]
    returns = run_code(code)["env"].by_phase()
    assert set(returns) == {"source", "reversed"}
    best_before, first_after, best_after = max(returns["source"]), returns["reversed"][5], max(returns["reversed"])
    assert first_after < best_before / 5, "it falls"
    assert best_after > 5 * first_after, "and comes back"
    assert (tmp_path / "ppo.png").read_bytes().startswith(b"\x89PNG")


def test_the_notebook_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra `plots`")
    monkeypatch.setenv("MPLBACKEND", "agg")
    names = {"__name__": "__main__"}
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            run_code("".join(cell["source"]), names)
    before, after = names["lakes"].by_phase().values()
    assert sum(before[-50:]) > 40, "it learns"
    assert sum(after[:50]) < 10, "it falls"
    assert sum(after[-50:]) > 40, "and comes back"
