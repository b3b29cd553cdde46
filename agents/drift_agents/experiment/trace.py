"""The steps of a cell: observations, prompts, actions and changes of memory.

A file holds one cell: lines of JSON, compressed by gzip as a whole, the header first, then a line an episode.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import TypeAdapter, ValidationError

from drift_agents.errors import ExperimentError
from drift_agents.experiment.logs import SUCCESS, TEST
from drift_agents.types import Episode, Experience, Outcome, RecordId, StepTrace, Thought, Verdict
from drift_envs.utils.error_messages import describe_invalid

if TYPE_CHECKING:
    from drift_agents.experiment.cell_environment import EvaluationWrapper
    from drift_agents.experiment.episode import CellSetup
    from drift_agents.experiment.plan import Cell

TRACE = ("all", "failures", "none")
"""What may be kept: the steps of all episodes, of those without success, or of none."""

FORMAT: Literal[2] = 2
SUFFIX = ".jsonl.gz"

_LEVEL = 6


class TraceHeader(NamedTuple):
    """Whose steps a file holds.

    Args:
        env: the environment's id.
        schedule: the schedule's name.
        memory: the memory's label.
        verifier: the verifier's label.
        policy: the policy's label.
        seed: the instance.
        kept: `all` or `failures`.
        content: the schedule as plain data, so that `drift-envs record` can play the actions again.
        format: the number of the format.
        controller: the controller's label.
        team: the team's label.
    """

    env: str
    schedule: str
    memory: str
    verifier: str
    policy: str
    seed: int
    kept: str
    content: Mapping[str, Any]
    format: Literal[2] = FORMAT
    controller: str = "direct"
    team: str = "solo"


class CellTrace:
    """Keeps the steps of one cell, compressed, while it is played.

    Args:
        cell: the cell.
        kept: `all` or `failures`.
    """

    def __init__(self, cell: Cell, kept: str) -> None:
        self._cell, self._kept = cell, kept
        self._content = io.BytesIO()
        # No name and no time in it, so that equal runs give equal bytes.
        self._file = gzip.GzipFile("", "wb", _LEVEL, self._content, mtime=0)
        self._is_begun = False
        self._written: dict[RecordId, tuple[Experience, int]] = {}
        self._driven: Any = None
        self._knobs: Any = None

    def note(self, setup: CellSetup, index: int, episode: Episode) -> None:
        """Keep an episode that has ended; the callback of `drift_agents.experiment.episode.play`.

        Args:
            index: its number in the cell.
            episode: what happened, with its steps.
        """
        if not self._is_begun:
            self._is_begun = True
            schedule, cell = setup.schedule, self._cell
            about = (str(schedule.env), schedule.name, *cell.labels, cell.seed, self._kept, schedule.to_dict())
            header = TraceHeader(*about, FORMAT, *cell.decision.labels)
            self._write(header._asdict())
        kept = self._kept == "all" or episode.score < SUCCESS
        steps = []
        for step in episode.trace:
            if kept:
                steps.append(self._step(step, setup.env))
            self._learn(step.experience, (*step.checks, step.verdict))
        if not kept:
            return
        line: dict[str, Any] = {"episode": index, "seed": setup.stream}
        line |= {} if setup.stage == TEST else {"stage": setup.stage}  # only a test can be played again from the header
        line |= {"member": episode.member} if episode.member else {}
        line |= {"start": setup.env.start, "knobs_at_start": self._knobs_at(setup.env, setup.env.start)}
        line |= {"task": episode.task, "steps": steps}
        self._write({**line, "closing": [self._verdict(verdict) for verdict in episode.closing]})

    def close(self) -> bytes:
        """The content of the file."""
        self._file.close()
        return self._content.getvalue()

    def _write(self, data: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n")

    def _step(self, step: StepTrace, env: EvaluationWrapper) -> dict[str, Any]:
        experience = step.experience
        tick = env.tick_of(experience.now.step)
        data: dict[str, Any] = {
            "step": experience.now.step,
            "tick": tick,
            "knobs": self._knobs_at(env, tick),
            "state": experience.state,
            "action": experience.action,
            "outcome": _outcome(experience.outcome),
            "reward": _finite(experience.reward),
            "prompt": step.prompt,
            "retrieved": list(step.retrieved),
            "verdict": self._verdict(step.verdict),
        }
        if (truth := getattr(env.oracle, "truth", None)) is not None:
            data["truth"] = truth(experience.state, tick)  # for people who look at the steps; no agent reads them
        if step.reply.strip() != experience.action:
            data["reply"] = step.reply
        if step.strategy is not None:
            data["strategy"] = step.strategy
        if step.thought is not None:
            data["thought"] = {name: text for name, text in step.thought._asdict().items() if text is not None}
        if step.checks:
            data["checks"] = [self._verdict(verdict) for verdict in step.checks]
        return data

    def _verdict(self, verdict: Verdict) -> dict[str, Any]:
        """What it says, without what is empty."""
        data = {
            "surprise": verdict.surprise,
            "statistic": None if verdict.statistic is None else _finite(verdict.statistic),
            "probed": [_outcome(outcome) for outcome in verdict.probed],
            "cost": list(verdict.cost) if any(verdict.cost) else None,
            "removed": [self._removed_record(record) for record in verdict.removed.records],
            "removed_notes": list(verdict.removed.notes),
            "realigned": verdict.realigned,
            "contradicted": verdict.contradicted,
            "observed": verdict.observed,
            "inserted": verdict.inserted,
            "about": verdict.about and list(verdict.about),
        }
        return {key: value for key, value in data.items() if value is not None and value is not False and value != []}

    def _removed_record(self, record: RecordId) -> dict[str, Any]:
        """What was remembered under a number, as far as it was written before our eyes."""
        if record not in self._written:
            return {"id": record}
        experience, probes = self._written[record]
        return {
            "id": record,
            "state": experience.state,
            "action": experience.action,
            "outcome": _outcome(experience.outcome),
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

    def _knobs_at(self, env: EvaluationWrapper, tick: int) -> Any:
        """The value of every knob at a tick."""
        driven = env.knobs(tick)
        if self._driven is not driven:  # the same object while nothing changes
            self._driven, self._knobs = driven, _plain(env.env.get_wrapper_attr("knobs_at")(tick))
        return self._knobs


def _outcome(outcome: Outcome) -> list[Any]:
    return [outcome.state, _finite(outcome.score), int(outcome.ended)]


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


@dataclass(frozen=True)
class StepView:
    """One step.

    Args:
        tick: the schedule's tick.
        knobs: the value of every knob at that tick.
        state: the state before, as the environment showed it.
        action: what was done.
        prompt: what the policy was given.
        outcome: the state after, the score so far, and whether the episode ended there.
        reward: the reward of the step.
        retrieved: the numbers of what memory recalled.
        thought: how the strategy was made, at a step at which one was.
        strategy: the strategy in force, if there was one.
    """

    tick: int
    knobs: Mapping[str, Any]
    state: str
    action: str
    prompt: str
    outcome: Outcome
    reward: float | None
    retrieved: tuple[RecordId, ...]
    thought: Thought | None = None
    strategy: str | None = None


@dataclass(frozen=True)
class EpisodeTrace:
    """The steps of one episode.

    Args:
        episode: its number in the cell.
        task: the task in words.
        steps: one by one.
        member: who of a team played it; empty for an agent, and where all members decide together.
    """

    episode: int
    task: str
    steps: tuple[StepView, ...]
    member: str = ""


_HEADER, _EPISODE = TypeAdapter(TraceHeader), TypeAdapter(EpisodeTrace)


def read_header(path: Path) -> TraceHeader:
    """Whose steps a file holds.

    Args:
        path: a file of a run's folder `traces`.

    Raises:
        ExperimentError: if it does not hold the steps of a cell.
    """
    header: TraceHeader = next(_read_lines(path))
    return header


def read_trace(path: Path) -> Iterator[EpisodeTrace]:
    """The episodes of a file.

    Args:
        path: a file of a run's folder `traces`.

    Raises:
        ExperimentError: if it does not hold the steps of a cell.
    """
    lines = _read_lines(path)
    next(lines)
    yield from lines


def _read_lines(path: Path) -> Iterator[Any]:
    """The header of a file, then its episodes."""
    number = 0
    try:
        with gzip.open(path) as file:
            for number, line in enumerate(file, start=1):
                yield (_HEADER if number == 1 else _EPISODE).validate_json(line)
    except ValidationError as error:
        rule = describe_invalid(error)
        raise ExperimentError(f"{path}:{number}: does not hold the steps of a cell: {rule}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise ExperimentError(f"{path}: cannot be read: {error}") from error
    if not number:
        raise ExperimentError(f"{path}: does not hold the steps of a cell: it is empty")
