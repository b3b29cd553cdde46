"""Lines of runs as Parquet files, added run by run."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drift_agents.analysis.evidence import EvidenceTable, gather_evidence, read_evidence, write_evidence
from drift_agents.errors import EvidenceError, ExperimentError

from tests.drift_agents.analysis.lines_by_hand import Played, evidence, key, manifest, rows, steady

pytest.importorskip("pyarrow")

LAKE, SHOP = "frozen_lake/verify-6x6:often-3", "webshop/verify:often-3"
PLAYED: dict[str, Any] = {
    "clairvoyant": {LAKE: {1: steady(1), 0: steady(1)}, SHOP: {0: steady(1)}},
    "glove": {LAKE: {1: steady(0.5, probes=3), 0: steady(0.4)}, SHOP: {0: steady(0.3)}},
    "none": {LAKE: {0: steady(0.2)}},
}


def equal(one: EvidenceTable, other: EvidenceTable) -> bool:
    return (
        one.cells.equals(other.cells)
        and one.episodes.equals(other.episodes)
        and (one.version, one.schedules, one.players) == (other.version, other.schedules, other.players)
    )


def part(*verifiers: str) -> EvidenceTable:
    return evidence({name: PLAYED[name] for name in verifiers})


def test_lines_come_back_as_they_were(tmp_path: Path) -> None:
    paths = write_evidence(evidence(PLAYED), tmp_path)
    assert [path.name for path in paths] == ["frozen_lake-verify-6x6.parquet", "webshop-verify.parquet"]
    assert equal(read_evidence([tmp_path]), evidence(PLAYED))
    assert equal(read_evidence(paths[::-1]), evidence(PLAYED))


def test_runs_are_added_in_any_order(tmp_path: Path) -> None:
    """What is there stays, what is given twice is taken once, and the bytes are the same."""
    orders = [("clairvoyant", "glove", "none"), ("none", "glove", "clairvoyant", "glove")]
    written = []
    for number, order in enumerate(orders):
        for verifier in order:
            write_evidence(part(verifier), tmp_path / str(number))
        written.append({path.name: path.read_bytes() for path in sorted((tmp_path / str(number)).iterdir())})
    assert written[0] == written[1]
    assert equal(read_evidence([tmp_path / "0"]), evidence(PLAYED))


OTHER_LINES: Played = {"glove": {LAKE: {0: steady(0.5)}}}
REFUSED = {
    "another version": (
        replace(part("glove"), version="0.2.0"),
        "the lines: lines of another version of drift-envs, 0.2.0",
    ),
    "another schedule": (evidence(OTHER_LINES, hash="1"), f"the lines: {LAKE} is another schedule than that of"),
    "other lines": (evidence(OTHER_LINES), "of this cell differ from those of another source: schedule " + LAKE),
}


@pytest.mark.parametrize("name", REFUSED)
def test_lines_that_do_not_go_together_are_refused(name: str, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in write_evidence(evidence(PLAYED), tmp_path)}
    given, message = REFUSED[name]
    with pytest.raises(EvidenceError, match=re.escape(message)):
        write_evidence(given, tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before, "nothing is lost"


@pytest.mark.parametrize("content", [b"", b"PAR1", b"no table"])
def test_damaged_files_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(EvidenceError, match=re.escape(f"{tmp_path / 'a.parquet'}: cannot be read: ")):
        read_evidence([tmp_path])


def test_other_tables_are_refused(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"score": [1.0]}), tmp_path / "a.parquet")
    with pytest.raises(EvidenceError, match=re.escape("the format should be 1, lines of this version of drift-envs.")):
        read_evidence([tmp_path])
    (tmp_path / "empty").mkdir()
    with pytest.raises(EvidenceError, match=re.escape("should be the folder of a run or hold .parquet files")):
        read_evidence([tmp_path / "empty"])
    with pytest.raises(EvidenceError, match="none: does not exist"):
        read_evidence([tmp_path / "none"])
    (tmp_path / "file").touch()
    with pytest.raises(ExperimentError, match="cannot be written"):
        write_evidence(evidence(PLAYED), tmp_path / "file" / "folder")


def test_a_run_is_read_without_its_training(traced_run: Path) -> None:
    found = read_evidence([traced_run])
    assert len(found.cells) == 2 * (3 + 1) * 2, "two schedules, three agents and the clairvoyant, two seeds"
    assert found.players[key("clairvoyant")] == {"reference": "clairvoyant", "supervision": "privileged"}
    training = [row | {"stage": "train", "score": 9.0, "seed": 5} for row in rows(PLAYED)]
    assert equal(gather_evidence(manifest(PLAYED), [*training, *rows(PLAYED)]), evidence(PLAYED))


def test_phases_are_counted_by_their_changes() -> None:
    """A phase that comes back is another one, whatever it is called."""
    episodes = [(phase, 1.0, 1, 0) for phase in ("source", "storm", "storm", "source", "storm#2")]
    found = evidence({"none": {LAKE: {0: episodes, 1: episodes[1:]}}})
    assert found.episodes["phase"].tolist() == [0, 1, 1, 2, 3, 0, 0, 1, 2]
    assert np.array_equal(found.starts, [0, 5])
