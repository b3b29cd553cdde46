"""The command `check`."""

from __future__ import annotations

from pathlib import Path

import pytest

from drift_envs.cli.app import main

POLE = """
version: 1
name: my/pole
env: CartPole-v1
knobs:
  width: {attribute: screen_width, bounds: [100, 1000]}
drifts:
  - {name: heavy, at: 50, set: {masspole: 0.5}}
  - {name: mirrored, at: 100, set: {action_permutation: [1, 0]}}
  - {name: wide, at: 120, set: {width: 700}}
"""


def rows(text: str) -> dict[str, str]:
    """By phase, when its change was seen."""
    found = [line.split() for line in text.splitlines()[1:] if line and not line.startswith("warning")]
    return {words[0]: "never" if words[1] == "never" else "seen" for words in found}


def test_a_knob_that_changes_nothing_gets_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "pole.yaml"
    file.write_text(POLE, encoding="utf-8")
    assert main(["check", str(file)]) == 0
    shown = capsys.readouterr().out
    assert rows(shown) == {"heavy": "seen", "mirrored": "seen", "wide": "never"}
    assert shown.count("warning: ") == 1
    assert "warning: wide: `width` changed, and 5 episodes with random actions showed no difference" in shown


def test_both_sides_of_a_shipped_drift(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "frozen_lake/explicit", "--episodes", "10"]) == 0
    assert rows(capsys.readouterr().out) == {"drift-1": "seen", "drift-2": "seen"}
    assert main(["check", "house/implicit", "--episodes", "1", "--steps", "2"]) == 0
    assert "warning: reversal: `effects` changed" in capsys.readouterr().out, "two steps are too few for an appliance"


def test_each_of_two_knobs_is_compared_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "both.yaml"
    both = "  - {name: both, at: 5, set: {masspole: 0.5, width: 700}}\n"
    file.write_text(POLE.split("drifts:")[0] + "drifts:\n" + both, encoding="utf-8")
    assert main(["check", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "`width` changed" in shown
    assert "`masspole` changed" not in shown


def test_an_environment_that_fails_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "none.yaml"
    file.write_text(POLE.replace("CartPole-v1", "NoSuch-v1"), encoding="utf-8")
    assert main(["check", str(file)]) == 2
    assert "there is no environment `NoSuch-v1`" in capsys.readouterr().err
