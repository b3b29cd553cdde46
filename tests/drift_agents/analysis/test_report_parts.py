"""Parts of a report: cells of tables, corrected comparisons, the paper's figures, and the documented fields."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from drift_agents.analysis import aggregates
from drift_agents.analysis.runs import Player, Runs
from drift_agents.analysis.schedule_runs import Measure, PlayerIndex
from drift_agents.analysis.table import Table, to_markdown
from drift_agents.analysis.tables import comparisons
from drift_agents.analysis.tables.comparisons import holm, sign_flip
from drift_agents.analysis.tables.paper import backbones, paper_figures
from drift_agents.experiment.logs import FIELDS

from drift_envs.metrics import statistics


def test_markdown_escapes_what_would_break_a_table() -> None:
    table = Table("t", ("a", "b"))
    table.add("x|y", "1")
    assert "x\\|y" in to_markdown(table)


def test_many_comparisons_are_corrected() -> None:
    nan = float("nan")
    assert holm([0.01, nan, 0.04, 0.03, 0.005])[::2] == pytest.approx([0.03, 0.06, 0.02])
    assert holm([0.6, 0.5]) == [1.0, 1.0]
    assert sign_flip([0.2] * 10) == 2 / 1024
    assert sign_flip([1.0, -1.0, 1.0, -1.0]) == 1.0
    # From random flips, beyond fourteen: about the share of coin tosses at least as lopsided, 2 * 0.0059.
    assert sign_flip([1.0] * 16 + [-1.0] * 4) == pytest.approx(0.0118, abs=0.003)


def test_the_papers_figures() -> None:
    assert backbones()[:3] == ("GPT-4o", "Grok-3", "DeepSeek-V3.2")
    assert len(backbones()) == 7
    assert paper_figures("frozen_lake/explicit", Player("none", "none", "planner")) == (0, 5, 0)
    assert paper_figures("mountain_car/explicit", Player("memory_bank", "glove", "planner")) == (95, 100, 100)
    assert paper_figures("webshop/implicit", Player("voyager", "glove", "x"), "Llama3.1-8B") == (15, 42.5)
    assert paper_figures("frozen_lake/explicit", Player("vanilla", "overwrite", "planner")) is None
    assert paper_figures("frozen_lake/tides", Player("vanilla", "none", "planner")) is None


def test_every_field_is_documented() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs" / "experiments.md").read_text("utf-8")
    table = text.split("## A line")[1].split("##")[0]
    firsts = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    documented = [name for first in firsts for name in re.findall("`([a-z_]+)`", first)]
    assert sorted(documented) == sorted(FIELDS)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resamples and flips of large runs are drawn in blocks, from the same stream as at once."""
    rng = np.random.default_rng(3)
    values = rng.normal(0.1, 1.0, 203)
    strata = [index % 3 for index in range(203)]

    def compute() -> list[float]:
        resamples = aggregates.Resamples(strata, 100)
        found = [
            *resamples.estimate(values),
            *resamples.part([kind != 1 for kind in strata]).estimate(values[np.array(strata) != 1]),
        ]
        return [*found, comparisons.sign_flip(list(values)), *statistics.bootstrap(values)]

    whole = compute()
    for module in (aggregates, comparisons, statistics):
        monkeypatch.setattr(module, "_AT_ONCE", 1_500)
    assert compute() == pytest.approx(whole, rel=1e-12)


def test_comparisons_of_the_same_episodes_are_corrected_once() -> None:
    def runs(memory: str, verifier: str, score: float) -> Runs:
        rows = tuple(
            tuple(
                {"episode": episode, "phase": phase, "round": 1, "steps": 5, "score": episode * score * (1 + seed / 10)}
                for episode, phase in enumerate(("source", "drift"))
            )
            for seed in range(6)
        )
        return Runs(Player(memory, verifier, "planner"), tuple(range(6)), rows, False)

    def corrected(*memories: tuple[str, float]) -> list[float]:
        played = [
            runs(memory, name, score) for memory, best in memories for name, score in (("none", 0.0), ("glove", best))
        ]
        about = [{**one.player._asdict(), "schedule": "s", "reference": None} for one in played]
        players = PlayerIndex(played, about, "s")
        found = comparisons.compare("s", players, Measure("score", "score"), ["source", "drift"])
        return [p_value for one, p_value in zip(found, comparisons.correct(found), strict=True) if one.phase == "drift"]

    alone = corrected(("vanilla", 0.5))
    assert alone == pytest.approx([2 / 2**6])
    assert corrected(("vanilla", 0.5), ("voyager", 0.5)) == pytest.approx(alone * 2)  # one piece of evidence
    assert corrected(("vanilla", 0.5), ("voyager", 0.6)) == pytest.approx([2 * alone[0]] * 2)
