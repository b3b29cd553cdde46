"""The commands `dataset` and `score-detector`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from drift_envs.checks import check_integer
from drift_envs.cli.recording import RECORDING_SUFFIX, read_recording, to_action
from drift_envs.datasets import DatasetOptions, ReplayedEpisode, read_streams, write_dataset, write_minari
from drift_envs.datasets.streams import load_minari
from drift_envs.envs.make import make_from_schedule
from drift_envs.errors import ArgumentError
from drift_envs.metrics import DetectorSummary, Estimate, score_detector
from drift_envs.utils.command_line import make_console
from drift_envs.utils.lazy import find_callable


def record_dataset(options: DatasetOptions, out: Path, *, minari: bool, is_quiet: bool) -> None:
    """Play what is missing of a data set, and print where it is.

    Args:
        options: what is recorded; its policy may be a file of a run's folder `traces`.
        out: the folder.
        minari: whether to write Minari's form too.
        is_quiet: whether to leave out the bar.

    Raises:
        DriftEnvsError: if an option breaks a rule, or something is not installed.
    """
    if minari:
        load_minari()  # fails before the episodes are played
    replayed = None
    if options.policy.endswith(RECORDING_SUFFIX):
        options, replayed = read_traces(options)
    episodes = options.episodes * options.lifetimes
    with _bar("episodes", episodes, is_quiet) as advance:
        folder = write_dataset(options, out, replayed, lambda done, steps: advance(done))
    print(f"wrote {folder.path}: {episodes} episodes")
    if minari:
        with _bar("to Minari", episodes, is_quiet) as advance:
            name = write_minari(out, lambda done, steps: advance(done))
        print(f"MINARI_DATASETS_PATH={out.resolve()} minari.load_dataset({name!r})")


def read_traces(options: DatasetOptions) -> tuple[DatasetOptions, list[ReplayedEpisode]]:
    """The episodes of a finished run's agent, and the options that they determine.

    Args:
        options: those of the command; of the episodes, the first `episodes` are taken.

    Raises:
        ArgumentError: if the file holds no such actions, or an option contradicts it.
    """
    path = Path(options.policy)
    recording = read_recording(path)
    if recording.env_id != options.env_id:
        raise ArgumentError(f"`--policy` should hold actions for {options.env_id}. {path} has {recording.env_id}")
    for name, value, default in (
        ("--schedule", options.schedule, None),
        ("--lifetimes", options.lifetimes, 1),
        ("--seed", options.seed, 0),
        ("--epsilon", options.epsilon, 0.0),
    ):
        if value != default:
            raise ArgumentError(f"`{name}` should not be given with a recording, which has its own. Received {value!r}")
    schedule = dict(recording.schedule)
    env = make_from_schedule({**schedule, "env": recording.env_id})
    space = env.action_space
    env.close()
    kept = [episode for episode in recording.episodes if episode.actions][: options.episodes]
    check_integer("the number of episodes with steps", len(kept), 1)
    episodes = [
        ReplayedEpisode(one.number, one.seed, one.tick, [to_action(space, each) for each in one.actions], one.rewards)
        for one in kept
    ]
    digest = hashlib.sha256(json.dumps([[one.number, *one.actions] for one in kept]).encode()).hexdigest()
    policy = f"{path.name.removesuffix(RECORDING_SUFFIX)} {digest[:16]}"
    return replace(options, schedule=schedule, policy=policy, episodes=len(kept), seed=recording.seed), episodes


def score(detector: str, data: Path, stream: str, window: int | None) -> DetectorSummary:
    """Play a detector over the streams of a data set.

    Args:
        detector: `module:name` of a class or function without arguments.
        data: the folder of the data set.
        stream: one of `drift_envs.datasets.STREAMS`.
        window: the most steps from a drift to its detection.

    Raises:
        DriftEnvsError: if an argument breaks a rule, or something is not installed.
    """
    make = find_callable("detector", detector)
    return score_detector(make, read_streams(data, stream), window)


def print_summary(console: Console, summary: DetectorSummary) -> None:
    """Print the figures with their intervals.

    Args:
        console: where to print.
        summary: the figures.
    """
    for name, value in (
        ("delay (steps)", summary.delay),
        ("false alarms per 1,000 steps", summary.false_alarm_rate),
        ("missed drifts", summary.missed),
        ("F1", summary.f1),
    ):
        console.print(Text(f"{name:<30}{'-' if value is None else value}"))
    console.print(Text(f"{summary.streams} lifetimes; 95 % bootstrap intervals over lifetimes", style="dim"))


def describe_summary(summary: DetectorSummary) -> dict[str, Any]:
    """The figures as JSON has them; an interval of one instance has no ends."""
    return {
        "streams": summary.streams,
        **{name: _describe(getattr(summary, name)) for name in ("delay", "false_alarm_rate", "missed", "f1")},
    }


def _describe(estimate: Estimate | None) -> dict[str, Any] | None:
    if estimate is None:
        return None
    low, high = (estimate.low, estimate.high) if estimate.n > 1 else (None, None)
    return {"mean": estimate.mean, "low": low, "high": high, "n": estimate.n}


@contextmanager
def _bar(name: str, total: int, is_quiet: bool) -> Iterator[Any]:
    """A bar on standard error; it yields a function that advances it."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    times = (TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, *times, console=make_console(stderr=True), disable=is_quiet) as progress:
        task = progress.add_task(name, total=total)
        yield lambda done: progress.advance(task, done)
