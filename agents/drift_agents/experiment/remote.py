"""Runs whose folder is in an object store, as `s3://bucket/run`, by fsspec.

* `is_remote` - whether a run's folder is an address instead of a path
* `run_remote_experiment` - plays an experiment into an object store
* `open_run` - the folder of a run for reading, or a copy of it
* `RemoteFolder` - the files of a run at an address

Object stores cannot append, so that a run is played in a temporary folder, and the lines of finished cells are stored
in batches, a file each. What is stored is all that a resumed run needs; a cell that was not stored is played again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

from drift_agents.errors import ExperimentError, MissingDependencyError
from drift_agents.experiment.cell_files import name_line
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.folder import (
    CELLS,
    EPISODES,
    FINISHED,
    HOLDER,
    MANIFEST,
    MEMORY_FILES,
    OURS,
    REPLIES,
    TRACES,
    RunFolder,
)
from drift_agents.experiment.runner import Progress, Silent, run_experiment

STORE_SECONDS = 5.0
"""How often what is new is stored, unless that takes long."""

_SHARE = 0.05
"""The most of the time that storing may take."""


def is_remote(folder: str | Path) -> bool:
    """Whether a run's folder is an address instead of a path.

    Example:
        >>> is_remote("s3://bucket/run"), is_remote("runs/glove")
        (True, False)
    """
    return "://" in str(folder)


class RemoteFolder:
    """The files of a run at an address.

    Args:
        address: as fsspec has it: `s3://bucket/run`, `gs://bucket/run`, `file:///shared/run`.

    Raises:
        MissingDependencyError: if fsspec, or what it needs for this kind of address, is not installed.
        ExperimentError: if there is no such kind of address.
    """

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/")
        try:
            import fsspec
        except ImportError as error:
            raise MissingDependencyError('`fsspec` is not installed, run `pip install "drift-envs[remote]"`') from error
        protocol = self.address.partition("://")[0]
        options = {"auto_mkdir": True} if protocol in ("file", "local") else {}
        try:
            self._store, self._root = fsspec.core.url_to_fs(self.address, **options)
        except ImportError as error:
            raise MissingDependencyError(f"{self.address}: {error}") from error
        except ValueError as error:
            raise ExperimentError(f"{self.address}: is no address that fsspec knows: {error}") from error

    def names(self) -> list[str]:
        """The files, by their paths in the folder."""
        with self._failures():
            self._store.invalidate_cache()
            found = self._store.find(self._root)
        return sorted(str(PurePosixPath(name).relative_to(self._root)) for name in found)

    def fetch(self, names: Sequence[str], into: Path) -> None:
        """Copy files into a local folder."""
        if not names:
            return
        for parent in {(into / name).parent for name in names}:
            parent.mkdir(parents=True, exist_ok=True)
        with self._failures():
            self._store.get([self._at(name) for name in names], [str(into / name) for name in names])

    def store(self, names: Sequence[str], local: Path) -> None:
        """Copy files of a local folder here."""
        if names:
            with self._failures():
                self._store.put([str(local / name) for name in names], [self._at(name) for name in names])

    def read(self, name: str) -> bytes | None:
        """The content of a file, `None` if there is none."""
        with self._failures():
            try:
                self._store.invalidate_cache()
                content: bytes = self._store.cat_file(self._at(name))
            except FileNotFoundError:
                return None
        return content

    def write(self, name: str, content: bytes) -> None:
        """Write a file."""
        with self._failures():
            self._store.pipe_file(self._at(name), content)

    def remove(self, names: Sequence[str]) -> None:
        """Remove files."""
        if names:
            with self._failures():
                self._store.rm([self._at(name) for name in names])

    def _at(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # every kind of store has its own errors
            raise ExperimentError(f"{self.address}: cannot be used: {type(error).__name__}: {error}") from error


def run_remote_experiment(
    experiment: Experiment,
    folder: str,
    *,
    resume: bool = False,
    fresh: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> str:
    """Play an experiment into an object store.

    Args:
        experiment: what is played.
        folder: the address of the run's folder.
        resume: continue an existing run.
        fresh: delete an existing run.
        progress: callbacks about the progress.
        **options: as `drift_agents.experiment.runner.run_experiment` has them.

    Returns:
        The address of the file with all lines.

    Raises:
        ExperimentError: as there; or if another run has begun at the address in the meantime, or not everything could
            be stored: the message says where it is kept.
    """
    remote = RemoteFolder(folder)
    progress = Silent() if progress is None else progress
    scratch = Path(mkdtemp(prefix="drift-run-"))
    mirror = _Mirror(remote, scratch, progress)
    is_kept = False
    try:
        with _named(scratch, remote.address):
            mirror.prepare(resume=resume, fresh=fresh)
            try:
                run_experiment(experiment, scratch, resume=resume, fresh=fresh, progress=mirror, **options)
            finally:
                is_kept = not mirror.finish()
                if is_kept:
                    progress.note(f"what could not be stored is kept in {scratch}, the folder of a run")
        if mirror.failure is not None:
            raise ExperimentError(str(mirror.failure), is_resumable=True) from mirror.failure
    finally:
        if not is_kept:
            shutil.rmtree(scratch, ignore_errors=True)
    return f"{remote.address}/{EPISODES}"


class _Mirror:
    """Stores what a run in a local folder has finished, from time to time; stands between a run and its progress."""

    def __init__(self, remote: RemoteFolder, local: Path, progress: Progress) -> None:
        self.failure: ExperimentError | None = None
        self._remote, self._local, self._progress = remote, local, progress
        self._stored = 0  # lines of the list of finished cells
        self._replies = (0, 0)
        self._replaced: list[str] = []
        self._holder = b""
        self._folder = RunFolder(local)
        self._is_lost = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep_storing, name="store", daemon=True)

    def prepare(self, *, resume: bool, fresh: bool) -> None:
        """Fetch what the run goes on with."""
        names = self._remote.names()
        ours = [name for name in names if name.partition("/")[0] in OURS]
        if names and MANIFEST not in names and any(name not in (*ours, REPLIES, HOLDER) for name in names):
            raise ExperimentError(f"{self._local}: is not empty and holds no run. Choose another folder with --out")
        wanted = [REPLIES] if REPLIES in names else []
        if fresh:
            self._replaced = ours
        elif resume:
            wanted += [name for name in ours if name.partition("/")[0] in (MANIFEST, FINISHED, CELLS, TRACES)]
        elif MANIFEST in names:
            wanted += [MANIFEST]
        self._remote.fetch(wanted, self._local)
        finished = self._local / FINISHED
        self._stored = finished.read_bytes().count(b"\n") if finished.exists() else 0

    def begin(self, schedule: str, episodes: int) -> None:
        """Called when the folder is the run's: from now on it is stored."""
        if not self._holder:
            self._holder = (self._local / HOLDER).read_bytes()
            before = self._remote.read(HOLDER)
            if before is not None:
                who = _describe_holder(before)
                self._progress.note(f"{self._remote.address}: {who} has not let go of it, and stops if it still runs")
            self._remote.remove(self._replaced)
            self._remote.write(HOLDER, self._holder)
            self._remote.store([MANIFEST], self._local)
            self._thread.start()
        self._progress.begin(schedule, episodes)

    def advance(self, schedule: str, episodes: int) -> None:
        """Hand on; ends the run when it has lost its folder to another one."""
        if self._is_lost and self.failure is not None:
            raise self.failure
        self._progress.advance(schedule, episodes)

    def note(self, text: str) -> None:
        """Hand on."""
        self._progress.note(text)

    def finish(self) -> bool:
        """Store what is left; returns whether everything is stored or another run's."""
        if not self._holder:  # never begun
            return True
        self._stop.set()
        self._thread.join()
        if self._is_lost:
            return True
        self.failure = None
        try:
            self._store_new()
            if (self._local / EPISODES).exists():
                self._remote.store([EPISODES], self._local)
            self._remote.remove([HOLDER])
        except ExperimentError as error:
            self.failure = error
            return False
        return True

    def _keep_storing(self) -> None:
        seconds = STORE_SECONDS
        while not self._stop.wait(seconds):
            begin = time.monotonic()
            try:
                self._store_new()
            except ExperimentError as error:
                if self._is_lost:
                    self.failure = error
                    return
                if self.failure is None:
                    self._progress.note(f"{error}. The run goes on, and storing is tried again")
                self.failure = error
            else:
                self.failure = None
            seconds = max(STORE_SECONDS, (time.monotonic() - begin) / _SHARE)

    def _store_new(self) -> None:
        """Store finished cells, then the list that names them, so that it never names one that is missing."""
        holder = self._remote.read(HOLDER)
        if holder is not None and holder != self._holder:
            self._is_lost = True
            raise ExperimentError(f"{self._local}: another run has begun there: {_describe_holder(holder)}")
        self._store_replies()
        finished = self._local / FINISHED
        lines = finished.read_bytes().split(b"\n")[:-1] if finished.exists() else []
        if len(lines) == self._stored:
            return
        keys = [json.loads(line)["cell"] for line in lines[self._stored :]]
        paths: list[Path] = []
        for key in keys:
            paths += [self._folder.trace(key), *sorted(self._folder.memories(key).glob("*"))]
        self._store_lines(keys)
        self._remote.store([str(path.relative_to(self._local)) for path in paths if path.exists()], self._local)
        self._remote.write(FINISHED, b"".join(line + b"\n" for line in lines))
        self._stored = len(lines)

    def _store_lines(self, keys: Sequence[str]) -> None:
        """Store the lines of cells as one file, whose name no other run at this address uses."""
        name = f"{CELLS}/stored-{self._stored:07}-{hashlib.sha256(self._holder).hexdigest()[:8]}.jsonl"
        self._folder.cells.refresh()
        with TemporaryDirectory(prefix="drift-cells-") as scratch:
            path = Path(scratch) / name
            path.parent.mkdir()
            with open(path, "wb") as file:
                for key in keys:
                    file.write(name_line(key) + b"\n" + self._folder.cells.read(key))
            self._remote.store([name], Path(scratch))

    def _store_replies(self) -> None:
        """Store the recorded replies, which are paid for, as a consistent copy."""
        path = self._local / REPLIES
        files = [file for file in (path, path.with_name(f"{path.name}-wal")) if file.exists()]
        state = (
            sum(file.stat().st_size for file in files),
            max((file.stat().st_mtime_ns for file in files), default=0),
        )
        if not files or state == self._replies:
            return
        with TemporaryDirectory(prefix="drift-replies-") as scratch:
            with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(Path(scratch) / REPLIES)) as copy:
                source.backup(copy)
            self._remote.store([REPLIES], Path(scratch))
        self._replies = state


def _describe_holder(content: bytes) -> str:
    try:
        holder = json.loads(content)
        return f"process {holder['pid']} on {holder['host']}, since {holder['since']},"
    except (ValueError, KeyError, TypeError):
        return "another process"


@contextmanager
def open_run(folder: str | Path, *, steps: bool = False) -> Iterator[Path]:
    """The folder of a run for reading; of one in an object store a copy, whose new files are stored at the end.

    Args:
        folder: a path or an address.
        steps: whether the steps of episodes are needed.

    Yields:
        The path of the folder or of the copy.

    Raises:
        ExperimentError: if a file cannot be fetched or stored.
    """
    if not is_remote(folder):
        yield Path(folder)
        return
    remote = RemoteFolder(str(folder))
    unused = {CELLS, MEMORY_FILES, REPLIES, HOLDER} | (set() if steps else {TRACES})
    with TemporaryDirectory(prefix="drift-run-") as scratch, _named(Path(scratch), remote.address):
        local = Path(scratch)
        remote.fetch([name for name in remote.names() if name.partition("/")[0] not in unused], local)
        before = _states(local)
        yield local
        remote.store([name for name, state in _states(local).items() if before.get(name) != state], local)


def _states(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of every file."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): (path.stat().st_size, path.stat().st_mtime_ns) for path in files}


@contextmanager
def _named(local: Path, address: str) -> Iterator[None]:
    """Name the address instead of the copy in messages."""
    try:
        yield
    except ExperimentError as error:
        renamed = ExperimentError(str(error).replace(str(local), address), is_resumable=error.is_resumable)
        raise renamed from (error.__cause__ or error)
