"""Steps that are kept: whole, small, the same every time, and without cost for lines without a trace."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from drift_agents.errors import ArgumentError, ExperimentError
from drift_agents.experiment.config import PartSpec, ScheduleSettings
from drift_agents.experiment.episode import play
from drift_agents.experiment.folder import EPISODES, TRACES
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.logs import read_rows
from drift_agents.experiment.plan import Cell
from drift_agents.experiment.runner import run_experiment
from drift_agents.experiment.trace import CellTrace, EpisodeTrace, TraceHeader, read_header, read_trace
from drift_agents.prompt.lessons import read_view
from drift_agents.types import Episode

from drift_envs.cli.recording import read_recording
from drift_envs.errors import ArgumentError as EnvsArgumentError
from drift_envs.schedule.loader import load_schedule
from tests.drift_agents.experiment.cells import forget_cell, read_cells

GLOVE = "*vanilla--glove--planner--0.jsonl.gz"


@pytest.fixture
def whole(data: dict[str, Any], place: Path) -> Path:
    """The run: it is played once, and not written to."""
    if not (place / "run" / EPISODES).exists():
        run_experiment(load_experiment(data), place / "run", trace="all")
    return place / "run"


def traces(folder: Path, pattern: str = "*.jsonl.gz") -> list[Path]:
    return sorted((folder / TRACES).glob(pattern))


def test_every_step_is_kept_as_it_was_lived(schedule_file: Path, tmp_path: Path) -> None:
    parts = PartSpec(name="vanilla"), PartSpec(name="glove"), PartSpec(name="planner")
    cell = Cell(str(schedule_file), *parts, 0, ("vanilla", "glove", "planner"))
    path = tmp_path / "cell.jsonl.gz"
    lived: list[Episode] = []
    ticks: list[int] = []
    maps: list[Any] = []
    steps = CellTrace(cell, "all")

    def note(setup: Any, index: int, episode: Episode) -> None:
        lived.append(episode)
        ticks.append(setup.env.start)
        maps.append(setup.env.knobs(setup.env.start)["map"])
        steps.note(setup, index, episode)

    rows = list(play(cell, ScheduleSettings(rounds=4), note))
    path.write_bytes(steps.close())
    kept = list(read_trace(path))
    assert [trace.episode for trace in kept] == [row["episode"] for row in rows] == list(range(8))
    for trace, episode, tick, tiles in zip(kept, lived, ticks, maps, strict=True):
        assert trace.task == episode.task
        assert len(trace.steps) == len(episode.trace) == episode.steps
        for view, step in zip(trace.steps, episode.trace, strict=True):
            assert (view.state, view.action) == (step.experience.state, step.experience.action)
            assert (view.outcome, view.reward) == (step.experience.outcome, step.experience.reward)
            assert (view.prompt, view.retrieved) == (step.prompt, step.retrieved)
            assert read_view(view.prompt).state == view.state
            assert view.tick == tick
            assert tuple(view.knobs["map"]) == tuple(tiles)
            assert set(view.knobs) == {"map", "slip", "goal_rewards", "transient", "poison_after"}
    header = read_header(path)
    assert header[:7] == ("DriftFrozenLake-v0", "puddle", "vanilla", "glove", "planner", 0, "all")
    assert load_schedule(dict(header.content)) == load_schedule(schedule_file)


def test_what_fell_out_of_memory_is_told(whole: Path) -> None:
    (path,) = traces(whole, GLOVE)
    written: dict[int, tuple[str, str]] = {}
    removed = 0
    for line in gzip.decompress(path.read_bytes()).decode().splitlines()[1:]:
        episode = json.loads(line)
        for step in episode["steps"]:
            verdict = step["verdict"]
            for gone in verdict.get("removed", []):
                removed += 1
                if "observed" in verdict and gone["id"] == verdict["observed"]:
                    continue
                assert written[gone["id"]] == (gone["state"], gone["action"])
            for key in ("observed", "inserted"):
                if key in verdict:
                    written[verdict[key]] = step["state"], step["action"]
    assert removed > 0


@pytest.mark.integration
def test_lines_do_not_depend_on_it_and_equal_runs_are_equal(data: dict[str, Any], whole: Path, tmp_path: Path) -> None:
    experiment = load_experiment(data)
    for name, trace, jobs in (("plain", "none", 1), ("two", "all", 2)):
        run_experiment(experiment, tmp_path / name, trace=trace, jobs=jobs)
        assert (tmp_path / name / EPISODES).read_bytes() == (whole / EPISODES).read_bytes()
    assert not (tmp_path / "plain" / TRACES).exists()
    one, two = ({path.name: path.read_bytes() for path in traces(folder)} for folder in (whole, tmp_path / "two"))
    assert one == two
    assert len(one) == len(read_cells(whole))


@pytest.mark.integration
def test_failures_alone(data: dict[str, Any], whole: Path, tmp_path: Path) -> None:
    run_experiment(load_experiment(data), tmp_path / "some", trace="failures")
    rows = read_rows(tmp_path / "some" / EPISODES)
    for every, part in zip(traces(whole), traces(tmp_path / "some"), strict=True):
        header = read_header(part)
        assert header.kept == "failures"
        failed = {
            row["episode"]
            for row in rows
            if (row["memory"], row["verifier"], row["policy"], row["seed"])
            == (header.memory, header.verifier, header.policy, header.seed)
            and not row["success"]
        }
        expected = {trace.episode: trace for trace in read_trace(every) if trace.episode in failed}
        found: dict[int, EpisodeTrace] = {trace.episode: trace for trace in read_trace(part)}
        assert found == expected


def test_a_cell_that_is_played_again_keeps_its_steps_again(data: dict[str, Any], whole: Path, tmp_path: Path) -> None:
    (path,) = traces(Path(shutil.copytree(whole, tmp_path / "run")), GLOVE)
    before = path.read_bytes()
    forget_cell(tmp_path / "run", path.name.removesuffix(".jsonl.gz"))
    path.unlink()
    run_experiment(load_experiment(data), tmp_path / "run", trace="all", resume=True)
    assert path.read_bytes() == before


def test_refusals(data: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=re.escape("`trace` should be one of all, failures, none. Received 'some'")):
        run_experiment(load_experiment(data), tmp_path / "run", trace="some")
    path = tmp_path / "a.jsonl.gz"
    header = TraceHeader("e", "s", "m", "v", "p", 0, "all", {})
    path.write_bytes(gzip.compress(json.dumps({**header._asdict(), "format": 9}).encode() + b"\n"))
    with pytest.raises(ExperimentError, match=re.escape("`format` should be 2. Received 9")):
        list(read_trace(path))


EPISODE = json.dumps({"episode": 0, "seed": 1, "start": 0, "task": "", "steps": []})
HEADER = json.dumps(TraceHeader("e", "s", "m", "v", "p", 0, "all", {})._asdict())


def _packed(content: bytes) -> bytes:
    """Compressed without the time, which would stand in the tests' names and differ between workers."""
    return gzip.compress(content, mtime=0)


@pytest.mark.parametrize(
    ("content", "place", "rule"),
    [
        (b"no gzip", "", "cannot be read: Not a gzipped file"),
        (_packed(HEADER.encode() * 9)[:-12], "", "cannot be read: Compressed file ended before the end"),
        (_packed(HEADER.encode() * 9)[:40] + b"\0" * 40, "", "cannot be read: "),
        (_packed(b""), "(:1)?", "(it is empty|invalid JSON)"),
        (_packed(b'{"format": 2}\n'), ":1", "`env` .*(missing|required)"),
        (_packed(b"[]\n"), ":1", ""),
        (_packed(HEADER.replace("2", "9").encode()), ":1", "`format` should be 2. Received 9"),
        (_packed(f"{HEADER}\n3\n".encode()), ":2", "should be an? .*Received 3"),
        (_packed(f"{HEADER}\n{EPISODE}\n[\n".encode()), ":3", "invalid JSON: EOF"),
        (_packed(f"{HEADER}\n{EPISODE}\n{{}}\n".encode()), ":3", "`episode` is missing"),
        (_packed(f"{HEADER}\n{EPISODE.replace('[]', '[5]')}\n".encode()), ":2", r"`steps\[0\]` should be"),
        (_packed(f"{HEADER}\n{'[' * 99_999}\n".encode()), ":2", "invalid JSON: recursion limit"),
    ],
)
def test_damaged_files_are_named_with_line_and_rule(tmp_path: Path, content: bytes, place: str, rule: str) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(content)
    for kind, read in (
        (ExperimentError, lambda: list(read_trace(path))),
        (EnvsArgumentError, lambda: read_recording(path)),
    ):
        with pytest.raises(kind, match=f"^{re.escape(str(path))}{place}: (does not hold .*: )?{rule}") as error:
            read()
        assert "\n" not in str(error.value)
