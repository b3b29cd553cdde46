"""Experiment trackers: scores by phase and the times of drifts, in TensorBoard, Weights & Biases or MLflow.

A tracker is for evaluators: it shows phases, which agents do not observe. Each tool is an extra of its own.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from drift_envs.checks import check_choice
from drift_envs.errors import ArgumentError, needs_extra
from drift_envs.wrappers.records import PhaseReturn, PhaseReturns

Plain = str | int | float | bool | None


@runtime_checkable
class Tracker(Protocol):
    """One run of an experiment tracker. The methods are called in the order `begin`, `log` and `mark`, `end`."""

    def begin(self, name: str, about: Mapping[str, Plain]) -> None:
        """Begin a run with a name and its settings."""
        ...

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Log values at a step."""
        ...

    def mark(self, step: int, text: str) -> None:
        """Note at a step that a phase begins."""
        ...

    def end(self, summary: Mapping[str, float]) -> None:
        """End the run with values of the whole."""
        ...


def _load(module: str, extra: str) -> Any:
    """Import a tool.

    Raises:
        MissingDependencyError: it is not installed, or in a version that does not fit.
    """
    with needs_extra("mlflow-skinny" if extra == "mlflow" else extra, extra):
        return import_module(module)


class TensorBoardTracker:
    """Event files, which `tensorboard --logdir FOLDER` shows; neither TensorFlow nor PyTorch is needed.

    Args:
        folder: runs are `FOLDER/PROJECT/NAME`, and `NAME-2` where that was written before.
        project: the name of the folder between.

    Raises:
        MissingDependencyError: TensorBoard is not installed.
    """

    def __init__(self, folder: Path, project: str) -> None:
        self._summary = _load("tensorboard.compat.proto.summary_pb2", "tensorboard")
        self._tensor = _load("tensorboard.compat.proto.tensor_pb2", "tensorboard").TensorProto
        self._event = _load("tensorboard.compat.proto.event_pb2", "tensorboard").Event
        self._writer_class = _load("tensorboard.summary.writer.event_file_writer", "tensorboard").EventFileWriter
        self._folder = folder / project
        self._writer: Any = None
        self._last = 0

    def begin(self, name: str, about: Mapping[str, Plain]) -> None:
        """Open the event file; the settings are a text."""
        place, number = self._folder / name, 1
        while place.exists():  # two event files in one folder would be drawn as one line
            number += 1
            place = self._folder / f"{name}-{number}"
        self._writer = self._writer_class(str(place))
        self._last = 0
        self._text(0, "settings", "\n".join(f"{key}: {value}  " for key, value in about.items()))

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Log scalars."""
        self._last = step
        self._add(step, [self._summary.Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()])

    def mark(self, step: int, text: str) -> None:
        """Log a text."""
        self._text(step, "phase", text)

    def end(self, summary: Mapping[str, float]) -> None:
        """Log the summary at the last step and close the file."""
        self.log(self._last, summary)
        self._writer.close()

    def _text(self, step: int, tag: str, text: str) -> None:
        plugin = self._summary.SummaryMetadata.PluginData(plugin_name="text")
        tensor = self._tensor(dtype="DT_STRING", string_val=[text.encode()])
        tensor.tensor_shape.dim.add(size=1)
        made = self._summary.Summary.Value(
            tag=f"{tag}/text_summary", tensor=tensor, metadata=self._summary.SummaryMetadata(plugin_data=plugin)
        )
        self._add(step, [made])

    def _add(self, step: int, values: Sequence[Any]) -> None:
        event = self._event(summary=self._summary.Summary(value=values), step=step, wall_time=time.time())
        self._writer.add_event(event)


class WandbTracker:
    """Runs of Weights & Biases in the offline mode; `wandb sync FOLDER/wandb/offline-run-*` uploads them.

    Args:
        folder: where the folder `wandb` is made.
        project: the project's name.

    Raises:
        MissingDependencyError: `wandb` is not installed.
    """

    def __init__(self, folder: Path, project: str) -> None:
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        self._wandb = _load("wandb", "wandb")
        self._folder, self._project = folder, project
        self._run: Any = None

    def begin(self, name: str, about: Mapping[str, Plain]) -> None:
        """Begin an offline run."""
        self._folder.mkdir(parents=True, exist_ok=True)
        settings = self._wandb.Settings(silent=True, console="off", x_disable_stats=True, disable_git=True)
        self._run = self._wandb.init(
            project=self._project, name=name, dir=str(self._folder), config=dict(about), mode="offline",
            reinit="create_new", settings=settings, save_code=False,
        )  # fmt: skip

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Log a row of the history."""
        self._run.log(dict(values), step=step)

    def mark(self, step: int, text: str) -> None:
        """Log the phase's name in the row of the step."""
        self._run.log({"phase": text}, step=step)

    def end(self, summary: Mapping[str, float]) -> None:
        """Write the summary and finish."""
        self._run.summary.update(dict(summary))
        self._run.finish()


class MlflowTracker:
    """Runs in a file store, which `mlflow ui --backend-store-uri FOLDER` shows.

    Raises:
        MissingDependencyError: `mlflow-skinny` is not installed.
    """

    def __init__(self, folder: Path, project: str) -> None:
        # read when mlflow is imported; its newer versions want a database unless the file store is asked for
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        self._entities = _load("mlflow.entities", "mlflow")
        self._client = _load("mlflow.tracking", "mlflow").MlflowClient(tracking_uri=folder.resolve().as_uri())
        known = self._client.get_experiment_by_name(project)
        self._experiment = self._client.create_experiment(project) if known is None else known.experiment_id
        self._run = ""
        self._last = 0

    def begin(self, name: str, about: Mapping[str, Plain]) -> None:
        """Begin a run; the settings are its parameters."""
        self._run = self._client.create_run(self._experiment, run_name=name).info.run_id
        self._last = 0
        params = [self._entities.Param(key, str(value)) for key, value in about.items()]
        self._client.log_batch(self._run, params=params)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Log metrics."""
        self._last = step
        now = int(time.time() * 1000)
        metrics = [self._entities.Metric(key, value, now, step) for key, value in values.items()]
        self._client.log_batch(self._run, metrics=metrics)

    def mark(self, step: int, text: str) -> None:
        """Set a tag with the step at which the phase begins."""
        self._client.set_tag(self._run, f"phase_{step}", text)

    def end(self, summary: Mapping[str, float]) -> None:
        """Log the summary at the last step and end the run."""
        self.log(self._last, summary)
        self._client.set_terminated(self._run)


TRACKERS: dict[str, type[Any]] = {
    "tensorboard": TensorBoardTracker,
    "wandb": WandbTracker,
    "mlflow": MlflowTracker,
}


def make_tracker(name: str, folder: str | os.PathLike[str], project: str = "drift-envs") -> Tracker:
    """Make a tracker by its name.

    Args:
        name: `tensorboard`, `wandb` or `mlflow`.
        folder: where it writes; each tool has its own layout in it.
        project: the name under which the tool groups runs.

    Raises:
        ArgumentError: there is no such tracker.
        MissingDependencyError: its tool is not installed.
    """
    check_choice("name", name, tuple(TRACKERS))
    made: Tracker = TRACKERS[name](Path(folder), project)
    return made


def check_trackers(trackers: Any) -> Sequence[Tracker]:
    """Return a list of trackers unchanged.

    Raises:
        ArgumentError: if it is a name or anything else, or holds something that is no tracker.

    Example:
        >>> check_trackers("wandb")
        Traceback (most recent call last):
        drift_envs.errors.ArgumentError: `trackers` should be a list of trackers; `make_tracker(NAME, FOLDER)` makes \
one. Received 'wandb'
    """
    if not isinstance(trackers, list | tuple) or not all(isinstance(item, Tracker) for item in trackers):
        raise ArgumentError(
            f"`trackers` should be a list of trackers; `make_tracker(NAME, FOLDER)` makes one. Received {trackers!r}"
        )
    return trackers


class EpisodeSeries:
    """What is logged of one sequence of episodes, the same for every tracker.

    | value | meaning |
    |---|---|
    | `score`, `phase_score/PHASE` | the score of each episode, also as a line of its own for each phase |
    | `drift` | 1 at the first episode of a later phase and 0 at all others: drawn as a line, a vertical mark |
    | `mean_score/PHASE` | in the summary: the mean of each phase |
    | others | as they are given, such as `probes` or `truth_rate`; `None` is left out |

    Args:
        trackers: at least one.
        name: the name of the run.
        about: its settings.

    Example:
        >>> class Printer:
        ...     def begin(self, name, about): print("begin", name)
        ...     def log(self, step, values): print(step, values)
        ...     def mark(self, step, text): print(step, text)
        ...     def end(self, summary): print("end", summary)
        >>> series = EpisodeSeries([Printer()], "lake", {})
        begin lake
        >>> series.add("source", 1.0)
        0 source
        0 {'score': 1.0, 'phase_score/source': 1.0, 'drift': 0.0}
        >>> series.add("thaw#2", 0.0, {"probes": 3, "truth_rate": None})
        1 thaw#2
        1 {'score': 0.0, 'phase_score/thaw_2': 0.0, 'drift': 1.0, 'probes': 3.0}
        >>> series.end()
        end {'mean_score/source': 1.0, 'mean_score/thaw_2': 0.0}
    """

    def __init__(self, trackers: Sequence[Tracker], name: str, about: Mapping[str, Plain]) -> None:
        self._trackers = tuple(trackers)
        self._scores: dict[str, list[float]] = {}
        self._phase: str | None = None
        self._step = 0
        for tracker in self._trackers:
            tracker.begin(name, about)

    def add(self, phase: str, score: float, values: Mapping[str, float | None] | None = None) -> None:
        """Log the next episode.

        Args:
            phase: the phase in which it began.
            score: its score or return.
            values: further values of it.
        """
        key = re.sub(r"[^\w.-]", "_", phase)  # what all of the tools take as a name
        begins, is_first = phase != self._phase, self._phase is None
        self._phase = phase
        self._scores.setdefault(key, []).append(float(score))
        logged = {"score": float(score), f"phase_score/{key}": float(score), "drift": float(begins and not is_first)}
        logged |= {name: float(value) for name, value in (values or {}).items() if value is not None}
        for tracker in self._trackers:
            if begins:
                tracker.mark(self._step, phase)
            tracker.log(self._step, logged)
        self._step += 1

    def end(self) -> None:
        """Log the means of the phases and end the run."""
        summary = {f"mean_score/{phase}": sum(scores) / len(scores) for phase, scores in self._scores.items()}
        for tracker in self._trackers:
            tracker.end(summary)


class TrackEpisodes(PhaseReturns):
    """`PhaseReturns` that also logs every finished episode to trackers; `close` ends the run.

    Args:
        env: an environment with a `DriftWrapper` inside.
        trackers: names of trackers, or trackers.
        folder: where those that are named write.
        name: the name of the run.

    Raises:
        ArgumentError: the environment does not drift, `trackers` is no list, or there is no such tracker.
        MissingDependencyError: a tool is not installed.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        trackers: Sequence[str | Tracker],
        folder: str | os.PathLike[str] = "runs",
        name: str = "episodes",
    ) -> None:
        # not copied: a tracker may hold a module or an open file, and the one that was given is the one that logs
        RecordConstructorArgs.__init__(self, _disable_deepcopy=True, trackers=trackers, folder=folder, name=name)
        super().__init__(env)
        if isinstance(trackers, list | tuple):
            trackers = [make_tracker(item, Path(folder) / item) if isinstance(item, str) else item for item in trackers]
        made = check_trackers(trackers)
        schedule = env.get_wrapper_attr("schedule")
        about = {"env": env.spec.id if env.spec else str(env.unwrapped), "schedule": schedule and schedule.name}
        self._series: EpisodeSeries | None = EpisodeSeries(made, name, about)

    def close(self) -> None:
        """End the run of the trackers and close the environment."""
        if self._series is not None:
            self._series.end()
            self._series = None
        super().close()

    def _store(self, episode: PhaseReturn) -> None:
        super()._store(episode)
        if self._series is not None:
            self._series.add(episode.phase, episode.score, {"steps": episode.steps, "tick": episode.tick})
