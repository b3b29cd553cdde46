"""Recording the steps of a cell while it is played; no overhead without the option.

* `CellTracer` - keeps the steps of one cell while it is played
* `TraceWriter` - writes the file, whose form stands in `drift_agents.experiment.trace`
"""

from __future__ import annotations

import gzip
import json
import math
import os
from collections.abc import Hashable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from drift_agents.errors import ArgumentError, ExperimentError
from drift_agents.experiment.episode import SUCCESS, CellSetup, OnEpisode
from drift_agents.experiment.evaluation_wrapper import EvaluationWrapper
from drift_agents.experiment.logs import TEST
from drift_agents.experiment.plan import Cell
from drift_agents.experiment.trace import TRACE, TraceHeader
from drift_agents.types import Episode, Experience, Outcome, RecordId, StepTrace, Verdict

_LEVEL = 6


class CellTracer:
    """Keeps the steps of one cell while it is played.

    Args:
        path: the file.
        cell: the cell.
        kept: one of `TRACE`.
    """

    def __init__(self, path: Path, cell: Cell, kept: str) -> None:
        self._path, self._cell, self._kept = path, cell, kept
        self._writer: TraceWriter | None = None

    @property
    def on_episode(self) -> OnEpisode | None:
        """The callback of `drift_agents.experiment.episode.play` after each episode; `None` if nothing is kept."""
        return None if self._kept == "none" else self._note

    def __enter__(self) -> CellTracer:
        """The tracer itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file; what was torn off does not stay."""
        if self._writer is not None:
            self._writer.close(finished=kind is None)

    def _note(self, setup: CellSetup, index: int, episode: Episode) -> None:
        if self._writer is None:
            schedule = setup.schedule
            header = TraceHeader(
                str(schedule.env),
                schedule.name,
                *self._cell.labels,
                seed=self._cell.seed,
                kept=self._kept,
                content=schedule.to_dict(),
                controller=self._cell.decision.labels[0],
                team=self._cell.decision.labels[1],
            )
            self._writer = TraceWriter(self._path, header, setup.env)
        self._writer.note(index, episode, failed=episode.score < SUCCESS, seed=setup.stream, stage=setup.stage)


class TraceWriter:
    """Writes the steps of one cell, into a file that gets its name when all is written.

    Args:
        path: the file.
        header: whose steps they are.
        env: where they are made; lends ticks and knobs.

    Raises:
        ArgumentError: if the header keeps nothing.
        ExperimentError: if the file cannot be written.
    """

    def __init__(self, path: Path, header: TraceHeader, env: EvaluationWrapper) -> None:
        if header.kept not in TRACE[:2]:
            raise ArgumentError(f"`kept` should be one of {', '.join(TRACE[:2])}. Received {header.kept!r}")
        self.path, self._header, self._env = path, header, env
        self._part = path.with_name(f"{path.name}.part")
        self._texts, self._knobs = _Numbers(), _Numbers()
        self._written: dict[RecordId, tuple[Experience, int]] = {}
        try:
            path.parent.mkdir(exist_ok=True)
            # No name and no time in it, so that equal runs give equal bytes.
            self._raw = open(self._part, "wb")  # noqa: SIM115 - closed by `close`
        except OSError as error:
            raise ExperimentError(f"{path}: cannot be written: {error.strerror}") from error
        self._file = gzip.GzipFile("", "wb", _LEVEL, self._raw, mtime=0)
        self._write(header._asdict())

    def note(self, index: int, episode: Episode, *, failed: bool, seed: int, stage: str = TEST) -> None:
        """Write an episode, if it is one that is kept.

        Args:
            index: its number in the cell.
            episode: what happened, with its steps.
            failed: whether it was no success.
            seed: of its own stream.
            stage: `train` or `test`; only the latter can be played again from the header alone.
        """
        kept = self._header.kept == "all" or failed
        steps = []
        for step in episode.trace:
            if kept:
                steps.append(self._step(step))
            self._learn(step.experience, (*step.checks, step.verdict))
        if not kept:
            return
        line: dict[str, Any] = {"episode": index, "seed": seed}
        line |= {} if stage == TEST else {"stage": stage}
        line |= {"member": episode.member} if episode.member else {}
        line |= {"start": self._env.start, "knobs_at_start": self._knobs_of(self._env.start)}
        line |= {"task": self._texts(episode.task), "steps": steps}
        line["closing"] = [self._verdict(verdict) for verdict in episode.closing]
        self._write({"texts": self._texts.take_new(), "knobs": self._knobs.take_new(), **line})

    def close(self, *, finished: bool) -> None:
        """Close the file.

        Args:
            finished: whether all is written; only then does the file get its name.
        """
        self._file.close()
        self._raw.close()
        if finished:
            os.replace(self._part, self.path)
        else:
            self._part.unlink(missing_ok=True)

    def _write(self, data: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n")

    def _step(self, step: StepTrace) -> dict[str, Any]:
        experience = step.experience
        tick = self._env.tick_of(experience.now.step)
        data: dict[str, Any] = {
            "step": experience.now.step,
            "tick": tick,
            "knobs": self._knobs_of(tick),
            "state": self._texts(experience.state),
            "action": experience.action,
            "outcome": self._outcome(experience.outcome),
            "reward": _finite(experience.reward),
            "prompt": self._lines(step.prompt),
            "retrieved": list(step.retrieved),
            "verdict": self._verdict(step.verdict),
        }
        if step.reply.strip() != experience.action:
            data["reply"] = self._texts(step.reply)
        if step.strategy is not None:
            data["strategy"] = self._lines(step.strategy)
        if step.thought is not None:
            fields = step.thought._asdict()
            data["thought"] = {name: self._lines(text) for name, text in fields.items() if text is not None}
        if step.checks:
            data["checks"] = [self._verdict(verdict) for verdict in step.checks]
        return data

    def _lines(self, text: str) -> list[int]:
        return [self._texts(line) for line in text.split("\n")]

    def _outcome(self, outcome: Outcome) -> list[Any]:
        return [self._texts(outcome.state), _finite(outcome.score), int(outcome.ended)]

    def _verdict(self, verdict: Verdict) -> dict[str, Any]:
        """What it says, without what is empty."""
        about = verdict.about and [self._texts(verdict.about[0]), verdict.about[1]]
        data = {
            "surprise": verdict.surprise,
            "statistic": None if verdict.statistic is None else _finite(verdict.statistic),
            "probed": [self._outcome(outcome) for outcome in verdict.probed],
            "cost": list(verdict.cost) if any(verdict.cost) else None,
            "removed": [self._removed_record(record) for record in verdict.removed.records],
            "removed_notes": list(verdict.removed.notes),
            "realigned": verdict.realigned,
            "contradicted": verdict.contradicted,
            "observed": verdict.observed,
            "inserted": verdict.inserted,
            "about": about,
        }
        return {key: value for key, value in data.items() if value is not None and value is not False and value != []}

    def _removed_record(self, record: RecordId) -> dict[str, Any]:
        """What was remembered under a number, as far as it was written before our eyes."""
        if record not in self._written:
            return {"id": record}
        experience, probes = self._written[record]
        return {
            "id": record,
            "state": self._texts(experience.state),
            "action": experience.action,
            "outcome": self._outcome(experience.outcome),
            "step": experience.now.step,
            **({"probes": probes} if probes else {}),
        }

    def _learn(self, experience: Experience, verdicts: tuple[Verdict, ...]) -> None:
        """Store the experience of each record id, for the step at which it is removed."""
        for verdict in verdicts:
            for gone in verdict.removed.records:
                self._written.pop(gone, None)
            if verdict.observed is not None:
                self._written[verdict.observed] = experience, 0
            if verdict.inserted is not None and verdict.about in (None, (experience.state, experience.action)):
                self._written[verdict.inserted] = experience, len(verdict.probed)

    def _knobs_of(self, tick: int) -> int:
        driven = self._env.knobs(tick)
        # The same object while nothing changes, so that the table is rarely compared.
        if (number := self._knobs.find(id(driven))) is None:
            values = self._env.env.get_wrapper_attr("knobs_at")(tick)
            number = self._knobs(_plain(values), key=json.dumps(_plain(values), sort_keys=True))
            self._knobs.alias(id(driven), number, driven)
        return number


class _Numbers:
    """Numbers objects in order of first use, and lists the new ones."""

    def __init__(self) -> None:
        self._number: dict[Hashable, int] = {}
        self._count = 0
        self._new: list[Any] = []
        self._held: list[Any] = []

    def __call__(self, thing: Any, key: Hashable = None) -> int:
        key = thing if key is None else key
        number = self._number.get(key)
        if number is None:
            number = self._number[key] = self._count
            self._count += 1
            self._new.append(thing)
        return number

    def find(self, key: Hashable) -> int | None:
        return self._number.get(key)

    def alias(self, key: Hashable, number: int, holder: Any) -> None:
        """Find a number under another key; `holder` is kept, since the key is its address."""
        self._number[key] = number
        self._held.append(holder)

    def take_new(self) -> list[Any]:
        new, self._new = self._new, []
        return new


def _finite(number: float) -> float | None:
    return float(f"{number:.12g}") if math.isfinite(number) else None


def _plain(value: Any) -> Any:
    """A knob's value as JSON has it; keys that are no texts become texts."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(entry) for entry in value]
    if isinstance(value, float):
        return _finite(value)
    return value if value is None or isinstance(value, (str, int)) else str(value)
