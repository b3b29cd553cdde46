"""Steps that are kept: whole, small, the same every time, and without cost for lines without a trace."""

from __future__ import annotations

import gzip
import json
import re
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
from drift_agents.experiment.trace import EpisodeTrace, TraceHeader, read_header, read_trace
from drift_agents.experiment.trace_writer import CellTracer
from drift_agents.prompt.view import parse_prompt
from drift_agents.types import Episode

from drift_envs.schedule.loader import load_schedule
from tests.drift_agents.experiment.cells import read_cells, tear_cell

GLOVE = "*vanilla--glove--planner--0.jsonl.gz"


def traces(folder: Path, pattern: str = "*.jsonl.gz") -> list[Path]:
    return sorted((folder / TRACES).glob(pattern))


def test_every_step_is_kept_as_it_was_lived(schedule_file: Path, tmp_path: Path) -> None:
    parts = PartSpec(name="vanilla"), PartSpec(name="glove"), PartSpec(name="planner")
    cell = Cell(str(schedule_file), *parts, 0, ("vanilla", "glove", "planner"))
    path = tmp_path / "traces" / "cell.jsonl.gz"
    lived: list[Episode] = []
    ticks: list[int] = []
    maps: list[Any] = []
    with CellTracer(path, cell, "all") as tracer:
        watch = tracer.on_episode
        assert watch is not None

        def note(setup: Any, index: int, episode: Episode) -> None:
            lived.append(episode)
            ticks.append(setup.env.start)
            maps.append(setup.env.knobs(setup.env.start)["map"])
            watch(setup, index, episode)

        rows = list(play(cell, ScheduleSettings(rounds=4), note))
    kept = list(read_trace(path))
    assert [trace.episode for trace in kept] == [row["episode"] for row in rows] == list(range(8))
    for trace, episode, tick, tiles in zip(kept, lived, ticks, maps, strict=True):
        assert trace.task == episode.task
        assert len(trace.steps) == len(episode.trace) == episode.steps
        for view, step in zip(trace.steps, episode.trace, strict=True):
            assert (view.state, view.action) == (step.experience.state, step.experience.action)
            assert (view.outcome, view.reward) == (step.experience.outcome, step.experience.reward)
            assert (view.prompt, view.retrieved) == (step.prompt, step.retrieved)
            assert parse_prompt(view.prompt).state == view.state
            assert view.tick == tick
            assert tuple(view.knobs["map"]) == tuple(tiles)
            assert set(view.knobs) == {"map", "slip", "goal_rewards", "transient", "poison_after"}
    header = read_header(path)
    assert header[:7] == ("DriftFrozenLake-v0", "puddle", "vanilla", "glove", "planner", 0, "all")
    assert load_schedule(dict(header.content)) == load_schedule(schedule_file)


def test_what_fell_out_of_memory_is_told(data: dict[str, Any], tmp_path: Path) -> None:
    run_experiment(load_experiment(data), tmp_path / "run", trace="all")
    (path,) = traces(tmp_path / "run", GLOVE)
    texts: list[str] = []
    written: dict[int, tuple[str, str]] = {}
    removed = 0
    for line in gzip.decompress(path.read_bytes()).decode().splitlines()[1:]:
        episode = json.loads(line)
        texts += episode["texts"]
        for step in episode["steps"]:
            verdict = step["verdict"]
            for gone in verdict.get("removed", []):
                removed += 1
                if "observed" in verdict and gone["id"] == verdict["observed"]:
                    continue
                assert written[gone["id"]] == (texts[gone["state"]], gone["action"])
            for key in ("observed", "inserted"):
                if key in verdict:
                    written[verdict[key]] = texts[step["state"]], step["action"]
    assert removed > 0


@pytest.mark.integration
def test_lines_do_not_depend_on_it_and_equal_runs_are_equal(data: dict[str, Any], tmp_path: Path) -> None:
    experiment = load_experiment(data)
    for name, trace, jobs in (("plain", "none", 1), ("one", "all", 1), ("two", "all", 2)):
        run_experiment(experiment, tmp_path / name, trace=trace, jobs=jobs)
    lines = {name: (tmp_path / name / EPISODES).read_bytes() for name in ("plain", "one", "two")}
    assert len(set(lines.values())) == 1
    assert not (tmp_path / "plain" / TRACES).exists()
    one, two = ({path.name: path.read_bytes() for path in traces(tmp_path / name)} for name in ("one", "two"))
    assert one == two
    assert len(one) == len(read_cells(tmp_path / "one"))


@pytest.mark.integration
def test_failures_alone(data: dict[str, Any], tmp_path: Path) -> None:
    experiment = load_experiment(data)
    run_experiment(experiment, tmp_path / "all", trace="all")
    run_experiment(experiment, tmp_path / "some", trace="failures")
    rows = read_rows(tmp_path / "some" / EPISODES)
    for whole, part in zip(traces(tmp_path / "all"), traces(tmp_path / "some"), strict=True):
        header = read_header(part)
        assert header.kept == "failures"
        failed = {
            row["episode"]
            for row in rows
            if (row["memory"], row["verifier"], row["policy"], row["seed"])
            == (header.memory, header.verifier, header.policy, header.seed)
            and not row["success"]
        }
        expected = {trace.episode: trace for trace in read_trace(whole) if trace.episode in failed}
        found: dict[int, EpisodeTrace] = {trace.episode: trace for trace in read_trace(part)}
        assert found == expected


def test_a_cell_that_was_torn_off_leaves_no_half_file(data: dict[str, Any], tmp_path: Path) -> None:
    """Steps are written anew with the lines, and a file without its end never has the name of a whole one."""
    run_experiment(load_experiment(data), tmp_path / "run", trace="all")
    (path,) = traces(tmp_path / "run", GLOVE)
    whole = path.read_bytes()
    key = path.name.removesuffix(".jsonl.gz")
    tear_cell(tmp_path / "run", key, read_cells(tmp_path / "run")[key][:-20])
    path.unlink()
    run_experiment(load_experiment(data), tmp_path / "run", trace="all", resume=True)
    assert path.read_bytes() == whole

    with pytest.raises(RuntimeError):
        _tear_off(path, _any_cell(data))
    assert path.read_bytes() == whole
    assert not path.with_name(f"{path.name}.part").exists()


def _tear_off(path: Path, cell: Cell) -> None:
    with CellTracer(path, cell, "all") as tracer:
        for index, _ in enumerate(play(cell, ScheduleSettings(rounds=4), tracer.on_episode)):
            if index == 1:
                raise RuntimeError


def _any_cell(data: dict[str, Any]) -> Cell:
    parts = PartSpec(name="vanilla"), PartSpec(name="none"), PartSpec(name="random")
    return Cell(data["schedules"][0], *parts, 0, ("vanilla", "none", "random"))


def test_prompts_cost_little(data: dict[str, Any], tmp_path: Path) -> None:
    """Lines of prompts stand once: a tenth of the bytes at most, before any compression."""
    run_experiment(load_experiment(data | {"references": []}), tmp_path / "run", trace="all")
    (path,) = traces(tmp_path / "run", GLOVE)
    prompts = sum(len(step.prompt) for trace in read_trace(path) for step in trace.steps)
    assert path.stat().st_size < prompts / 10


def test_nothing_is_traced_unasked(data: dict[str, Any], tmp_path: Path) -> None:
    assert CellTracer(tmp_path / "a.gz", _any_cell(data), "none").on_episode is None


def test_refusals(data: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=re.escape("`trace` should be one of all, failures, none. Received 'some'")):
        run_experiment(load_experiment(data), tmp_path / "run", trace="some")
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(b"no gzip")
    for read in (read_header, lambda path: list(read_trace(path))):
        with pytest.raises(ExperimentError, match=re.escape(str(path))):
            read(path)
    path.write_bytes(gzip.compress(b'{"format": 1}\n'))
    with pytest.raises(ExperimentError, match="does not hold the steps of a cell"):
        read_header(path)
    header = TraceHeader("e", "s", "m", "v", "p", 0, "all", {}, 9)
    path.write_bytes(gzip.compress(json.dumps(header._asdict()).encode() + b"\n"))
    with pytest.raises(ExperimentError, match=re.escape("`format` should be 1. Received 9")):
        list(read_trace(path))
