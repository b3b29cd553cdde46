"""Plays the reference coding agents under every condition, and stores a line an episode.

* `CONDITIONS` - the schedules, each in repositories drawn from the seed
* `play_instance` - all agents in one repository
* `play_missing`, `read_lines` - plays what is not stored, and reads what is

The agents are the programs that `drift-agents check-coder --reference all` runs, and the repository, the flaky draws
and the verdicts are those of that command. Here one process calls what each program does with its issue, without a
clone and a start of Python for every attempt; a test compares the lines of both.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from importlib import resources
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pandas as pd
from drift_agents.cli.check_coder import REFERENCES
from drift_agents.errors import EvidenceError, ExperimentError
from drift_agents.experiment.coder.agents import KEEP
from drift_agents.experiment.coder.files import read_files
from drift_agents.experiment.coder.lifetime import write_task
from drift_agents.experiment.coder.world import CoderWorld

from drift_envs.schedule.loader import load_schedule
from drift_envs.schedule.model import Schedule
from research.verify_map.pages import ROOT

RESULTS = ROOT / "research" / "results" / "coders"
EPISODES, ATTEMPTS = 40, 3
"""As `check-coder` has them: conventions change after 20 episodes."""
COUNTS = (
    "first_try", "one_rerun", "success", "corrections", "reruns", "memory_size", "present_statements",
    "mixed_statements",
)  # fmt: skip
"""What a line has beside agent, seed, episode and `still_believed`."""


class Condition(NamedTuple):
    """A condition of the study.

    Args:
        schedule: of which it is.
        base: the knobs that differ from those of the schedule.
    """

    schedule: str
    base: Mapping[str, float] = {}

    def load(self) -> Schedule:
        """The schedule, in a project drawn from the seed."""
        data = load_schedule(self.schedule).to_dict()
        base = {name: value for name, value in data["base"].items() if name != "project"}
        schedule: Schedule = load_schedule({**data, "base": {**base, **self.base}})
        return schedule


CONDITIONS: Mapping[str, Condition] = {
    "none": Condition("repository/null"),
    "explicit": Condition("repository/explicit"),
    "implicit": Condition("repository/implicit"),
    "both": Condition("repository/both"),
    "flaky-10": Condition("repository/flaky", {"flaky": 0.1}),
    "flaky-30": Condition("repository/flaky", {"flaky": 0.3}),
    "lag-3": Condition("repository/lagging", {"docs_lag": 3}),
    "lag-10": Condition("repository/lagging", {"docs_lag": 10}),
}


@cache
def load_programs() -> dict[str, ModuleType]:
    """The programs of the reference agents, and `workfolder`, which they share, as modules."""
    with resources.as_file(resources.files("drift_agents.envs") / "repository" / "coders") as folder:
        sys.path.insert(0, str(folder))  # a program finds its neighbours as it does when Python starts it
        try:
            return {name: importlib.import_module(name) for name in ("workfolder", *REFERENCES)}
        finally:
            sys.path.remove(str(folder))


def describe_content(condition: str) -> str:
    """A hash of the schedule of a condition and of the agents' programs: lines of other ones are played again."""
    programs = resources.files("drift_agents.envs") / "repository" / "coders"
    sources = [(programs / f"{name}.py").read_text("utf-8") for name in ("workfolder", *REFERENCES)]
    return sha256("\0".join((CONDITIONS[condition].load().content_hash(), *sources)).encode()).hexdigest()[:12]


class _Coder:
    """An agent in a folder of its own, which is the current folder while it works."""

    def __init__(self, name: str, folder: Path) -> None:
        programs = load_programs()
        self.name, self._folder = name, folder
        self._program, self._shared = programs[name], programs["workfolder"]
        self._files: Mapping[str, str] = {}
        folder.mkdir()

    def play(self, world: CoderWorld) -> dict[str, Any]:
        """Work on the present issue; returns the line of the episode."""
        world.reopen()
        project = world.files
        self._write(project)
        task, log = write_task(world.issue, KEEP), ""
        attempts: list[Any] = []
        with _inside(self._folder):
            while not world.is_over:
                noted = self._program.refused(attempts[-1], log, len(attempts)) if log else self._program.begin()
                attempts.append(noted or attempts[-1])
                if noted is not None:
                    self._write(project)  # the program has git do that
                    self._shared.solve(task, noted)
                    self._files = read_files(self._folder, lambda path: path not in KEEP, 2**21)
                log = world.submit(self._files)
        memory = {path: (self._folder / path).read_text("utf-8") for path in KEEP if (self._folder / path).is_file()}
        line = {**world.counts, "success": world.success, **world.count_statements(memory)}
        return {name: line[name] for name in (*COUNTS, "still_believed")}

    def _write(self, files: Mapping[str, str]) -> None:
        """Have these files in the folder, and no others beside what is kept."""
        for path in self._files.keys() - files.keys():
            (self._folder / path).unlink(missing_ok=True)
        for path, text in files.items():
            if self._files.get(path) != text:
                place = self._folder / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(text, "utf-8")
        self._files = files


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def play_instance(condition: str, seed: int, episodes: int = EPISODES) -> list[dict[str, Any]]:
    """Play all reference agents in one repository.

    Args:
        condition: one of `CONDITIONS`.
        seed: of the repository, its issues and the flaky draws.
        episodes: how many.

    Returns:
        The lines, by agent and episode.
    """
    lines: dict[str, list[dict[str, Any]]] = {name: [] for name in REFERENCES}
    with tempfile.TemporaryDirectory(prefix="drift-coders-") as folder:
        coders = [_Coder(name, Path(folder, name)) for name in REFERENCES]
        world = CoderWorld(CONDITIONS[condition].load(), seed, ATTEMPTS)
        for episode in range(episodes):
            world.begin(episode)
            for coder in coders:
                lines[coder.name].append({"agent": coder.name, "seed": seed, "episode": episode, **coder.play(world)})
    return [line for played in lines.values() for line in played]


def read_lines(condition: str, folder: Path = RESULTS) -> pd.DataFrame:
    """The stored lines of a condition.

    Raises:
        EvidenceError: if the file cannot be read.
    """
    path = folder / f"{condition}.parquet"
    if not path.exists():
        return pd.DataFrame({"agent": [], "seed": [], "episode": [], "content": []})
    try:
        return pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise EvidenceError(f"{path}: cannot be read: {error}") from error


def store(condition: str, lines: list[dict[str, Any]], folder: Path) -> None:
    """Add lines to the file of a condition, which is replaced at once; those of other content are dropped."""
    content = describe_content(condition)
    stored = read_lines(condition, folder)
    found = pd.concat([stored[stored["content"] == content], pd.DataFrame(lines).assign(content=content)])
    counts = dict.fromkeys(("seed", "episode", *COUNTS), "int16")
    found = found.astype({**counts, "still_believed": "float32", "agent": str, "content": str})
    key = ["agent", "seed", "episode"]
    found = found.drop_duplicates(key).sort_values(key, kind="stable", ignore_index=True)
    part = folder / f"{condition}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        found.to_parquet(part, compression="zstd", index=False)
        os.replace(part, folder / f"{condition}.parquet")
    except OSError as error:
        raise ExperimentError(f"{part}: cannot be written: {error.strerror}") from error


def _list_stored(condition: str, folder: Path) -> set[int]:
    stored = read_lines(condition, folder)
    return set(stored["seed"][stored["content"] == describe_content(condition)])


def _play(job: tuple[str, int]) -> tuple[str, list[dict[str, Any]]]:
    return job[0], play_instance(*job)


def list_missing(seeds: int, folder: Path = RESULTS) -> list[tuple[str, int]]:
    """The conditions and seeds that are not stored, by seed."""
    stored = {name: _list_stored(name, folder) for name in CONDITIONS}
    return [(name, seed) for seed in range(seeds) for name in CONDITIONS if seed not in stored[name]]


def play_missing(seeds: int, jobs: int, tell: Callable[[str], None], folder: Path = RESULTS) -> None:
    """Play what is not stored. It can be stopped at any time, and goes on where it was.

    Args:
        seeds: instances of each condition.
        jobs: processes.
        tell: receives progress.
        folder: of the lines.
    """
    missing = list_missing(seeds, folder)
    ignore = (signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends them
    with get_context("spawn").Pool(jobs, signal.signal, ignore) as pool:
        # The conditions of a seed stay in one process, which checks equal submissions once.
        played = pool.imap_unordered(_play, missing, chunksize=len(CONDITIONS))
        for done, (condition, lines) in enumerate(played, 1):
            store(condition, lines, folder)
            tell(f"{done} of {len(missing)} instances")
