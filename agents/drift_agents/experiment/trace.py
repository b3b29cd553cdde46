"""The file with the steps of a cell: observations, prompts, actions and changes of memory.

* `TRACE` - what may be kept: all episodes, failures, none
* `TraceHeader`, `read_header` - whose steps a file holds
* `read_trace` - the episodes of a file, as they were written
* `EpisodeTrace`, `StepView` - one of them with its texts in place

A file holds one cell: gzip around lines of JSON, the header first, then a line an episode. Texts
(states, lines of prompts, answers) and knobs stand once in a file: a line brings those that are new
under `texts` and `knobs`, and everything else names them by number, counted over the file. Prompts
grow with memory and hardly change from one step to the next, so that this and the compression keep
a step at some hundred bytes. `drift_agents.experiment.trace_writer` writes it, apart from this file, since readers
should not import what plays.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

from drift_agents.errors import ExperimentError
from drift_agents.types import Outcome, RecordId, Thought

TRACE = ("all", "failures", "none")
"""What may be kept: the steps of all episodes, of those without success, or of none."""

FORMAT = 1
SUFFIX = ".jsonl.gz"


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
    format: int = FORMAT
    controller: str = "direct"
    team: str = "solo"


def read_header(path: Path) -> TraceHeader:
    """Whose steps a file holds.

    Args:
        path: a file that `TraceWriter` wrote.

    Raises:
        ExperimentError: if it is none.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return _header(file, path)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise ExperimentError(f"{path}: cannot be read: {error}") from error


def _header(file: IO[str], path: Path) -> TraceHeader:
    try:
        header = TraceHeader(**json.loads(file.readline()))
    except (ValueError, TypeError) as error:
        raise ExperimentError(f"{path}: does not hold the steps of a cell") from error
    if header.format != FORMAT:
        raise ExperimentError(f"{path}: `format` should be {FORMAT}. Received {header.format!r}")
    return header


@dataclass(frozen=True)
class StepView:
    """One step with its texts in place.

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


def read_trace(path: Path) -> Iterator[EpisodeTrace]:
    """The episodes of a file with their texts in place.

    Args:
        path: a file that `TraceWriter` wrote.

    Raises:
        ExperimentError: if it is none.
    """
    texts: list[str] = []
    knobs: list[Mapping[str, Any]] = []
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            _header(file, path)
            for line in file:
                data = json.loads(line)
                texts += data["texts"]
                knobs += data["knobs"]
                steps = tuple(_view(step, texts, knobs) for step in data["steps"])
                yield EpisodeTrace(data["episode"], texts[data["task"]], steps, data.get("member", ""))
    except (OSError, EOFError, ValueError, KeyError, IndexError, TypeError) as error:
        raise ExperimentError(f"{path}: does not hold the steps of a cell: {error}") from error


def _view(step: Mapping[str, Any], texts: list[str], knobs: list[Mapping[str, Any]]) -> StepView:
    state, score, ended = step["outcome"]
    return StepView(
        step["tick"],
        knobs[step["knobs"]],
        texts[step["state"]],
        step["action"],
        "\n".join(texts[line] for line in step["prompt"]),
        Outcome(texts[state], score, bool(ended)),
        step["reward"],
        tuple(step["retrieved"]),
        _thought(step.get("thought"), texts),
        "\n".join(texts[line] for line in step["strategy"]) if "strategy" in step else None,
    )


def _thought(fields: Mapping[str, list[int]] | None, texts: list[str]) -> Thought | None:
    if fields is None:
        return None
    return Thought(**{name: "\n".join(texts[line] for line in lines) for name, lines in fields.items()})
