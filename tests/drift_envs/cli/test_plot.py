"""The command `plot`, as text and as a picture."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from drift_envs.cli import main
from drift_envs.cli.plot import BLOCKS, draw_text
from drift_envs.cli.scheduled import open_schedule


def lines_of(name: str, stop: int, width: int = 100) -> list[str]:
    return list(draw_text(open_schedule(name), stop, width))


def test_a_ramp_rises_and_stays() -> None:
    lines = lines_of("frozen_lake/thaw", 60)
    at = lines.index("slip")
    assert [line[:10].strip() for line in lines[at + 1 : at + 5]] == ["0.3", "", "", "0"]
    columns = zip(*(line[12:].ljust(60) for line in lines[at + 1 : at + 5]), strict=True)
    heights = [sum(BLOCKS.index(block) for block in column) for column in columns]
    assert heights[:21] == [1] * 21
    assert heights[40:] == [32] * 20
    assert heights == sorted(heights)


def test_letters_stand_for_values_and_phases_under_them() -> None:
    lines = lines_of("frozen_lake/tides", 60, width=100)
    assert lines[lines.index("map") + 1] == " " * 12 + "A" * 20 + "B" * 20 + "A" * 20
    assert lines[-2].split() == ["0", "20", "40"]
    assert lines[-1].split() == ["|source", "|flood", "|source#2"]
    assert lines[-1].index("|flood") == lines[lines.index("map") + 1].index("B")


def test_a_long_schedule_is_sampled() -> None:
    lines = lines_of("frozen_lake/tides", 1000, width=113)
    assert lines[0].endswith("one column for 10 ticks")
    assert lines[lines.index("map") + 1].strip() == "AABB" * 25


NARROW = """\
version: 1
name: narrow
env: DriftCartPole-v0
drifts:
  - {name: headwind, at: 50, for: 3, set: {force_mag: -10}}
  - {name: longer, at: 55, set: {length: 0.7}}
"""


def test_names_of_short_phases_stand_in_rows_and_the_rest_is_counted(tmp_path: Path, capsys) -> None:
    path = tmp_path / "narrow.yaml"
    path.write_text(NARROW)
    assert [line.split() for line in lines_of(str(path), 80)[-3:]] == [
        ["|source", "|longer"],
        ["|source#2"],
        ["|headwind"],
    ]
    path.write_text(NARROW + "  - {name: heavy, at: 57, set: {masspole: 0.5}}\n")
    lines = lines_of(str(path), 80, width=90)
    assert lines[-1] == "1 more: `drift-envs show`"
    assert not any("headwind" in line for line in lines)
    assert max(map(len, lines)) <= 90
    assert main(["plot", str(path), "--out", str(tmp_path / "narrow.png")]) == 0
    assert capsys.readouterr().out.endswith("1 more: `drift-envs show`\n")


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_picture_is_written(suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    out = tmp_path / "new" / f"thaw.{suffix}"
    assert main(["plot", "frozen_lake/thaw", "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"wrote {out}\n"
    start = out.read_bytes()[:200]
    assert start.startswith(b"\x89PNG") if suffix == "png" else b"<svg" in start or b"<?xml" in start


def test_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    assert main(["plot", "frozen_lake/thaw", "--out", str(tmp_path / "thaw.doc")]) == 1
    assert "`--out` should end in one of .png, .svg, .pdf" in capsys.readouterr().err
    assert main(["plot", "frozen_lake/thaw", "--ticks", "1000000"]) == 1
    assert "`--ticks` should be at most 100000" in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert main(["plot", "frozen_lake/thaw", "--out", str(tmp_path / "file" / "thaw.png")]) == 1
    assert "`--out` should be a file that can be written: " in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["plot", "frozen_lake/thaw", "--out", str(tmp_path / "thaw.png")]) == 1
    assert '`matplotlib` is not installed, run `pip install ".[plots]"`' in capsys.readouterr().err
