"""The command `record`: films and sheets, without a display."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium as gym
import imageio.v2 as imageio
import imageio_ffmpeg
import numpy as np
import pytest

from drift_envs.cli import main
from drift_envs.cli.record import film, pick_before_last, without_display, write_film
from drift_envs.cli.recording import read_recording, replay
from drift_envs.cli.scheduled import open_schedule
from drift_envs.wrappers.overlay import CHANGED

pytestmark = pytest.mark.integration

LAKE = "DriftFrozenLake-v0"
YELLOW = [255, 224, 71]


def test_a_gif_shows_every_phase(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    out = tmp_path / "lake.gif"
    assert main(["record", LAKE, "--out", str(out)]) == 0
    assert capsys.readouterr().out == (f"wrote {out}: source 11 frames, drift-1 11 frames, drift-2 11 frames\n")
    pictures = imageio.mimread(out)
    # Equal pictures in a row, such as the held last ones, may be one longer picture of the file.
    assert 33 <= len(pictures) <= 33 + 3 * 6
    assert pictures[0].shape[:2] == (445, 384)


def test_a_sheet_needs_no_extra_and_is_the_same_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "imageio", None)
    monkeypatch.setitem(sys.modules, "imageio.v2", None)
    files = [tmp_path / "a.png", tmp_path / "b.png"]
    for file in files:
        assert main(["record", LAKE, "--out", str(file), "--steps", "1"]) == 0
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.integration
def test_an_mp4(tmp_path: Path) -> None:
    out = tmp_path / "car.mp4"
    arguments = ["--schedule", "mountain_car/reversed", "--steps", "5", "--policy", "random", "--phases", "1"]
    assert main(["record", "DriftMountainCar-v0", "--out", str(out), *arguments]) == 0
    frames, seconds = imageio_ffmpeg.count_frames_and_secs(str(out))
    assert frames == 6 + 6, "six pictures, the last one held"
    assert seconds == pytest.approx(12 / 30, abs=0.05)


def test_the_oracle_is_filmed_at_its_goal_in_each_phase() -> None:
    plan = open_schedule("mountain_car/fatigue")
    with without_display():
        env = gym.make("DriftMountainCar-v0", schedule=plan.schedule, render_mode="rgb_array", overlay=True)
        clips = dict(film(env, plan, "oracle", phases=2))
        env.close()
    assert 30 < len(clips["source"]) < 45
    assert 90 < len(clips["fatigue"]) < 115, "the engine is at its weakest"


def test_the_sheet_of_the_shop_shows_the_advertisement_and_frames_its_right_button(tmp_path: Path) -> None:
    plan = open_schedule("webshop/explicit")
    with without_display():
        env = gym.make("DriftWebShop-v0", schedule=plan.schedule, render_mode="rgb_array", overlay=True, text=True)
        seen = []
        for phase, frames in film(env, plan, "oracle", phases=2):
            (ad,) = [
                frames[index] for index in pick_before_last(len(frames)) if (frames[index] == YELLOW).all(axis=2).any()
            ]
            frame = (ad[:640] == CHANGED).all(axis=2).nonzero()[1]
            assert 20 < frame.max() - frame.min() < 60, "one button"
            seen.append((phase, int(frame.min())))
        env.close()
    assert [phase for phase, _ in seen] == ["source", "drift-1"]
    assert seen[0][1] < seen[1][1], "A, then B"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "lake.bmp"], "`--out` should end in one of .gif, .mp4, .png. Received 'lake.bmp'"),
        (["--out", "lake.png", "--schedule", "mountain_car/gravity"], "gravity"),
    ],
)
def test_refusals(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["record", LAKE, *arguments]) == 1
    assert message in capsys.readouterr().err


def test_one_error_names_all_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    for module in ("imageio.v2", "imageio_ffmpeg", "mujoco"):
        monkeypatch.setitem(sys.modules, module, None)
    for module in [name for name in sys.modules if name.startswith(("drift_envs.envs.mujoco.", "gymnasium.envs.muj"))]:
        monkeypatch.delitem(sys.modules, module)
    assert main(["record", "DriftHopper-v0", "--out", str(tmp_path / "a.mp4")]) == 1
    assert capsys.readouterr().err == (
        "drift-envs: `imageio`, `imageio-ffmpeg`, `mujoco` are not installed, run "
        '`pip install ".[video,mujoco]"` in a checkout of drift-envs\n'
    )


def test_any_environment_with_a_file(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    file, out = tmp_path / "pole.yaml", tmp_path / "pole.png"
    file.write_text("version: 1\ndrifts:\n  - {name: long, at: 3, set: {length: 1.0}}\n", encoding="utf-8")
    arguments = ["record", "CartPole-v1", "--schedule", str(file), "--steps", "2", "--out", str(out)]
    assert main([*arguments, "--policy", "oracle"]) == 1
    assert "use `--policy random`" in capsys.readouterr().err
    assert main(arguments) == 0
    assert "source 3 frames, long 3 frames" in capsys.readouterr().out
    assert out.is_file()


def test_a_range_of_episodes_crosses_a_drift(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    out = tmp_path / "new" / "a.png"
    assert main(["record", LAKE, "--out", str(out), "--episodes", "19-20", "--steps", "2"]) == 0
    assert capsys.readouterr().out == f"wrote {out}: source episode 19 3 frames, drift-1 episode 20 3 frames\n"
    assert main(["record", LAKE, "--out", str(out), "--episodes", "18-23:2", "--steps", "2"]) == 0
    each = "source episode 18 3 frames, drift-1 episode 20 3 frames, drift-1 episode 22 3 frames"
    assert capsys.readouterr().out == f"wrote {out}: {each}\n"
    for wrong in ("20-19", "a-b", "0", "-3", "18-20:0", "18:2", "18-20:", "１8-20"):
        assert main(["record", LAKE, "--out", str(out), f"--episodes={wrong}"]) == 2
        assert ("should have the earlier episode first: 19-20. " in capsys.readouterr().err) == (wrong == "20-19")


@pytest.mark.parametrize("suffix", [".gif", ".mp4"])
def test_an_interrupted_film_ends_without_the_frames_that_are_left(suffix: str, tmp_path: Path) -> None:
    def frames() -> Iterator[np.ndarray]:
        yield np.zeros((32, 32, 3), np.uint8)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_film(frames(), tmp_path / f"film{suffix}", 10)


def recording(path: Path, rewards: tuple[float, ...] = (0.0, 1.0), **header: object) -> Path:
    """A file as runs leave it: one episode, two steps to the right."""
    schedule = {"version": 1, "name": "row", "env": LAKE, "base": {"map": ["SFG"]}}
    first = {"env": LAKE, "seed": 0, "content": schedule, "format": 2, **header}
    steps = [{"action": "2", "reward": reward} for reward in rewards]
    lines = [first, {"episode": 7, "seed": 5, "start": 0, "steps": steps}]
    path.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))
    return path


def test_actions_of_a_run_are_played_again(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    file, out = recording(tmp_path / "cell.jsonl.gz"), tmp_path / "a.gif"
    assert main(["record", LAKE, "--out", str(out), "--policy", str(file)]) == 0
    assert capsys.readouterr().out == f"wrote {out}: source episode 7 3 frames\n"
    with without_display():
        env = gym.make(LAKE, schedule=read_recording(file).schedule, render_mode="rgb_array")
        ((_, pictures),) = replay(env, read_recording(file))
        assert len({picture.tobytes() for picture in pictures}) == 3, "it walks"
        env.close()


def test_recordings_that_cannot_be_played(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    good, other = recording(tmp_path / "good.jsonl.gz"), recording(tmp_path / "other.jsonl.gz", (0.0, 0.5))
    broken, newer = tmp_path / "broken.jsonl.gz", recording(tmp_path / "newer.jsonl.gz", format=3)
    broken.write_bytes(gzip.compress(b"{}\n"))
    for arguments, message in (
        (
            [LAKE, "--policy", "best"],
            "`--policy` should be one of oracle, initial, random, or a file of a run's folder",
        ),
        ([LAKE, "--policy", str(tmp_path / "none.jsonl.gz")], "cannot be read: No such file"),
        ([LAKE, "--policy", str(broken)], "does not hold the steps of a run"),
        ([LAKE, "--policy", str(newer)], "`format` should be 2. Received 3"),
        ([LAKE, "--policy", str(good), "--episodes", "1-3"], "has steps of the episodes 7"),
        ([LAKE, "--policy", str(good), "--schedule", "frozen_lake/implicit"], "`--schedule` should not be given with"),
        (["DriftMountainCar-v0", "--policy", str(good)], "should hold actions for DriftMountainCar-v0"),
        ([LAKE, "--policy", str(other)], "step 1: the reward was 0.5, here it is 1.0"),
    ):
        status = 2 if arguments[-1] == "best" else 1
        assert main(["record", *arguments, "--out", str(tmp_path / "a.png")]) == status
        assert message in capsys.readouterr().err


def test_without_an_oracle_actions_are_random_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "late.yaml"
    file.write_text("version: 1\ndrifts: [{at: 1, set: {action_delay: 2}}]\n", encoding="utf-8")
    words = ["--schedule", str(file), "--phases", "1", "--steps", "2", "--out", str(tmp_path / "a.png")]
    for env_id in ("DriftAcrobot-v0", LAKE):
        assert main(["record", env_id, *words]) == 0
        assert "while its schedule sets `action_delay`: actions are random" in capsys.readouterr().err
        for policy in ("oracle", "initial"):
            assert main(["record", env_id, *words, "--policy", policy]) == 1
            assert "while its schedule sets `action_delay`; use `--policy random`" in capsys.readouterr().err


@pytest.mark.parametrize("env_id", ["DriftCartPole-v0", "DriftAcrobot-v0", "DriftPendulum-v0"])
@pytest.mark.parametrize("policy", ["oracle", "initial", None])
def test_a_reference_controller_is_filmed_where_no_optimum_is_known(
    env_id: str, policy: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["record", env_id, "--phases", "2", "--steps", "30", "--out", str(tmp_path / "a.png")]
    assert main([*words, *(["--policy", policy] if policy else [])]) == 0
    shown = capsys.readouterr()
    assert not shown.err
    frames = 31 if policy != "initial" or env_id != "DriftCartPole-v0" else 10
    assert f"source 31 frames, reversed {frames} frames" in shown.out, "the pole falls under the old controller alone"


def test_a_controller_that_has_no_answer_in_a_later_phase(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "signs.yaml"
    file.write_text("version: 1\ndrifts: [{at: 1, set: {reward_sign: '-'}}]\n", encoding="utf-8")
    words = ["record", "DriftCartPole-v0", "--schedule", str(file), "--steps", "2", "--out", str(tmp_path / "a.png")]
    assert main(words) == 0
    assert "no optimum is known for CartPole; `changed` and `response` are exact: actions" in capsys.readouterr().err
    assert main([*words, "--policy", "oracle"]) == 1
    assert main([*words, "--policy", "initial"]) == 0


def test_a_file_is_named_where_its_ending_was_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pole.yaml").write_text("version: 1\nenv: DriftCartPole-v0\n", encoding="utf-8")
    for command in (["record", "pole", "--out", "a.png"], ["play", "pole"], ["dataset", "pole", "--out", "a"]):
        assert main(command) == 2
        assert "Did you mean `pole.yaml`?" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_refused_before_the_play(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder.png").mkdir()
    for name in ("x" * 300 + ".png", "folder.png"):
        assert main(["record", LAKE, "--out", str(tmp_path / name)]) == 1
        assert "`--out` should be a file that can be written: " in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["folder.png"]
