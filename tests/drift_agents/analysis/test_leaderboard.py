"""The leaderboard: figures by hand, ranks by resampling, a page and its interactive form."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from drift_agents.analysis.leaderboard import to_page, write_leaderboard
from drift_agents.analysis.ranking import rank_agents
from drift_agents.cli.app import main
from drift_agents.errors import EvidenceError, ExperimentError

from tests.drift_agents.analysis.lines_by_hand import evidence, key, manifest, steady

LAKE, SHOP = "frozen_lake/verify-6x6:often-3", "webshop/implicit"
SEEDS = range(4)


def played() -> dict[str, Any]:
    """GLOVE succeeds most and pays a probe for each step; seeds differ, in the same way for all."""

    def everywhere(success: float, probes: int = 0) -> dict[str, Any]:
        return {
            name: {seed: steady(success - 0.05 * seed + shift, probes=probes) for seed in SEEDS}
            for name, shift in ((LAKE, 0.0), (SHOP, 0.1))
        }

    return {
        "clairvoyant": {name: {seed: steady(1) for seed in SEEDS} for name in (LAKE, SHOP)},
        "nothing": everywhere(0.2),
        "glove": everywhere(0.9, probes=10),
        "overwrite": everywhere(0.7),
    }


def by_verifier(lines: dict[str, Any], charge: int = 0) -> dict[str, Any]:
    found = rank_agents(evidence(lines), charge)
    return {one.key[1]: one for one in found.ranked}


def test_figures_by_hand() -> None:
    standings = rank_agents(evidence(played()))
    assert [one.key for one in standings.ranked] == [key(name) for name in ("glove", "overwrite", "nothing")]
    found = by_verifier(played())
    overwrite, glove = found["overwrite"], found["glove"]
    mean = 100 * (0.7 + 0.05 - 0.05 * 1.5)
    assert overwrite.score.mean == pytest.approx(mean)
    assert [overwrite.success[name] for name in ("x1", "unlimited", "area")] == [pytest.approx(mean)] * 3
    assert glove.success["unlimited"] == pytest.approx(mean + 20)
    assert glove.success["x1"] == pytest.approx(glove.success["unlimited"] / 2, abs=5), "half of its episodes"
    assert glove.success["x2"] == glove.success["unlimited"]
    assert overwrite.gain is not None
    assert (overwrite.gain.mean, overwrite.gain.low) == (pytest.approx(50), pytest.approx(50)), "the seeds cancel out"
    assert standings.ranked[2].gain is None
    assert (glove.probes, overwrite.probes) == (pytest.approx(100 * 200 / 410), 0)
    assert (standings.instances, standings.measure, standings.left_out) == (8, "area", {})
    assert [one.key for one in standings.references] == [key("clairvoyant")]


def test_ranks_are_those_of_paired_resamples() -> None:
    """The intervals of the means overlap; no resample has another order."""
    standings = rank_agents(evidence(played()))
    assert [one.ranks for one in standings.ranked] == [(1, 1), (2, 2), (3, 3)]
    first, second = standings.ranked[:2]
    assert first.score.low < second.score.high
    assert second.ranked_by < first.ranked_by


def test_what_an_agent_did_not_play_is_left_out() -> None:
    lines = played()
    lines["glove"] = {LAKE: lines["glove"][LAKE], SHOP: {seed: lines["glove"][SHOP][seed] for seed in (1, 2)}}
    standings = rank_agents(evidence(lines))
    assert (standings.left_out, standings.instances) == ({SHOP: 2}, 6)
    assert f"Left out, since not every agent played them: 2 of `{SHOP}`." in to_page(evidence(lines), standings)
    lines["glove"] = {LAKE: {99: steady(1)}}
    with pytest.raises(EvidenceError, match="there is no instance that every agent played"):
        rank_agents(evidence(lines))
    with pytest.raises(EvidenceError, match="on a schedule that is no control"):
        rank_agents(evidence(played(), control=True))


def test_without_the_clairvoyant_success_without_a_limit_ranks() -> None:
    lines = {name: own for name, own in played().items() if name != "clairvoyant"}
    standings = rank_agents(evidence(lines))
    assert (standings.measure, standings.ranked[0].key) == ("unlimited", key("glove"))
    page = to_page(evidence(lines), standings)
    assert "success without a limit ranks" in page
    assert "| area" not in page


def test_agents_that_played_the_same_episodes_take_one_row_and_one_rank() -> None:
    lines = played()
    lines |= {"announce_only": lines["overwrite"], "forget": lines["overwrite"]}
    standings = rank_agents(evidence(lines))
    assert set(standings.same) == {key("announce_only")}
    page = to_page(evidence(lines), standings)
    assert re.search(r"\| Vanilla \+ announce_only = 2 others +\| +2 \|", page)
    assert "Vanilla + announce_only played the same episodes as Vanilla + forget, Vanilla + overwrite." in page
    assert re.search(r"\| No memory +\| +3 ", page), "behind two rows, not four agents"


def test_a_charge_changes_ranks() -> None:
    """Where a failure costs fifty interactions, few failures are worth many probes."""
    lines = {"clairvoyant": steady(1), "glove": steady(0.95, probes=19), "overwrite": steady(0.7)}
    everywhere = {name: {LAKE: {0: own, 1: own}} for name, own in lines.items()}
    orders = [list(by_verifier(everywhere, charge)) for charge in (0, 50)]
    assert orders == [["overwrite", "glove"], ["glove", "overwrite"]]


def test_the_command_reads_runs_and_files_together(traced_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "board.md"
    assert main(["leaderboard", str(traced_run), "--out", str(out)]) == 0
    page = out.read_text("utf-8")
    assert main(["leaderboard", str(traced_run), str(traced_run), "--out", str(out)]) == 0
    assert out.read_text("utf-8") == page, "cells that are given twice count once"
    heads = next(line for line in page.splitlines() if line.startswith("| agent"))
    assert heads.count("|") - 1 <= 8
    with pytest.raises(ExperimentError, match="cannot be written"):
        write_leaderboard([traced_run], out / "board.md")  # a file in the place of the folder


def test_wrong_sources_are_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.json").write_text(json.dumps(manifest(played())))
    for lines, message in ((None, "the run is not finished"), ('{"score": 1.0}\n', "not a line of this version")):
        if lines is not None:
            (tmp_path / "episodes.jsonl").write_text(lines)
        assert main(["leaderboard", str(tmp_path), "--out", str(tmp_path / "board.md")]) == 2
        error = capsys.readouterr().err
        assert (error.count("\n"), message in error) == (1, True)
        assert not (tmp_path / "board.md").exists()
