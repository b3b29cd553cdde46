"""A coding agent in one repository, episode by episode: what is stored of it, so that it can go on after a stop."""

from __future__ import annotations

import difflib
import gzip
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from drift_agents.errors import ExperimentError
from drift_agents.experiment.coder.agents import CoderRun, CodingAgent
from drift_agents.experiment.coder.files import copy_files, remove_folder
from drift_agents.experiment.coder.git import make_repository
from drift_agents.experiment.coder.place import CoderPlace
from drift_agents.experiment.coder.world import CoderWorld
from drift_agents.experiment.folder import CODER, RunFolder, write_parts
from drift_agents.experiment.own_lines import OWN_LOOP
from drift_agents.experiment.trace import TraceHeader
from drift_envs.checks import is_number
from drift_envs.envs.repository.checks import UNREADABLE
from drift_envs.schedule.model import Schedule

_SHOWN = 20_000
"""Characters of a text that are stored with the steps."""
_KEEPS = "Of what you write besides, {} stay from issue to issue; all other files are cloned anew."
_TASK = (
    "{issue}\n\nYou are in a clone of the repository. CONTRIBUTING.md says how changes are made. Leave the change in "
    "the files of this folder; continuous integration checks them when you end. {keeps}\n"
)
_REFUSED = "\nContinuous integration refused the change that is in this folder now:\n\n{}\n"


def file_name(agent: str) -> str:
    """What an agent is called in names of files."""
    return agent.replace(" ", "-")


def log_of(folder: Path, agent: str) -> Path:
    """The lines of an agent, in the folder of a run."""
    return folder / CODER / f"{file_name(agent)}.jsonl"


class CoderLifetime:
    """An agent in one repository, with what is stored of it in the folder `coder` of a run.

    Args:
        run: what is played.
        agent: who plays.
        schedule: of the repository.
        seed: of the repository.
        held: the run's folder.
        note: receives what is worth knowing.
    """

    def __init__(
        self,
        run: CoderRun,
        agent: CodingAgent,
        schedule: Schedule,
        seed: int,
        held: RunFolder,
        note: Callable[[str], None],
    ) -> None:
        self._run, self._agent, self._note = run, agent, note
        self._world = CoderWorld(schedule, seed, run.attempts)
        self._lines, self._trace = log_of(held.path, agent.name), held.trace(f"{file_name(agent.name)}-{seed}")
        self._own = held.path / CODER / file_name(agent.name) / str(seed)
        self._steps = self._own / "steps.jsonl"
        self._place = CoderPlace(run, agent, str(self._steps.resolve()), self._world.name)

    def play(self, advance: Callable[[], None]) -> None:
        """Play the episodes that are not done yet; `advance` is called after each, also those done before."""
        done = self._open()
        try:
            for episode in range(self._run.episodes):
                self._world.begin(episode)
                if episode >= done:
                    self._play_episode(episode)
                advance()
        finally:
            self._place.remove()
        self._write_trace()

    def _open(self) -> int:
        """Drop what is torn or unfinished; returns the number of episodes that are done."""
        (self._own / "output").mkdir(parents=True, exist_ok=True)
        lines = _read_whole_lines(self._lines)
        try:
            done = [json.loads(line)["seed"] for line in lines].count(self._world.seed)
        except (ValueError, TypeError, KeyError) as error:
            raise ExperimentError(f"{self._lines}: holds what no run has written. Begin anew with --fresh") from error
        write_parts(self._lines, lines)
        write_parts(self._steps, _read_whole_lines(self._steps)[:done])
        if not done:
            remove_folder(self._memory(0))
            self._memory(0).mkdir(parents=True)
            if self._run.seed_memory is not None:
                copy_files(self._run.seed_memory, self._memory(0) / "work")
        return done

    def _memory(self, episode: int) -> Path:
        """What the agent had kept before an episode: a folder `work` and a folder `home`."""
        return self._own / "memory" / str(episode)

    def _play_episode(self, episode: int) -> None:
        agent, world, place, repository = self._agent, self._world, self._place, self._own / "repository.git"

        def note(text: str) -> None:
            self._note(f"{agent.name}, episode {episode}: {text}")

        remove_folder(repository)
        make_repository(repository, world.commits)
        place.prepare(repository, self._memory(0 if agent.is_control else episode))
        task, log, usage = write_task(world.issue, agent.keep), "", dict[str, float]()
        files = place.read_submission()
        memory = self._show("\n".join(f"{path}:\n{text}" for path, text in place.read_memory(note).items()))
        seconds, ends, steps = 0.0, list[str](), list[dict[str, Any]]()
        with open(self._own / "output" / f"{episode}.txt", "wb") as output:
            while not world.is_over:
                output.write(f"--- episode {episode}, attempt {len(ends) + 1}\n".encode())
                told = task if not log or agent.reads_log else task + _REFUSED.format(log)
                end = place.work_on(told, log, output)
                seconds += end.seconds
                ends.append(end.words)
                if end.words:
                    note(f"attempt {len(ends)}: {end.words}")
                add_usage(usage, place.read_usage())
                previous, files = files, place.read_submission()
                log = world.submit(files)
                steps.append({
                    "step": len(steps), "tick": episode, "knobs": world.knobs, "state": self._show(told),
                    "action": self._show(_diff(previous, files)),
                    "outcome": [self._show(log) or "accepted", world.score, world.is_over],
                    "reward": None, "prompt": memory, "retrieved": [], "verdict": {},
                })  # fmt: skip
        line = {
            **world.describe(), "steps": len(ends), "ended": "terminated" if world.success else "truncated",
            "success": world.success, "score": world.score, **world.counts, "seconds": round(seconds, 3),
            **usage, **world.count_statements(place.read_memory(note)), "stopped": ends,
        }  # fmt: skip
        if not agent.is_control and not place.keep(self._memory(episode + 1)):
            note("what it keeps is too large; memory stays as it was")
        shown = {"episode": episode, "seed": world.seed, "task": world.issue, "steps": steps, "closing": []}
        for path, data in ((self._steps, shown), (self._lines, line)):  # it is done when its line is there
            with open(path, "a", encoding="utf-8") as file:
                file.write(json.dumps(data, ensure_ascii=False) + "\n")
                file.flush()
                os.fsync(file.fileno())
        if not agent.is_control and episode:
            remove_folder(self._memory(episode))

    def _show(self, text: str) -> str:
        """A text as it is stored: without secrets and what cannot be read, up to a bound."""
        for secret in self._agent.secrets:
            text = text.replace(secret, "***")
        text = UNREADABLE.sub("\N{REPLACEMENT CHARACTER}", text)
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}\n[cut here]"

    def _write_trace(self) -> None:
        """The steps of the lifetime, for `inspect`."""
        schedule, seed = self._world.schedule, self._world.seed
        about = (str(schedule.env), schedule.name, self._agent.name, "none", OWN_LOOP, seed, "all", schedule.to_dict())
        header = json.dumps(TraceHeader(*about)._asdict(), ensure_ascii=False)
        self._trace.parent.mkdir(exist_ok=True)
        with open(self._trace, "wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
            packed.write(f"{header}\n".encode() + self._steps.read_bytes())


def _read_whole_lines(path: Path) -> list[str]:
    """The lines of a file but for a torn last one."""
    if not path.exists():
        return []
    with open(path, encoding="utf-8", newline="\n") as file:
        return [line for line in file if line.endswith("\n")]


def write_task(issue: str, keep: Sequence[str]) -> str:
    """What an agent is told: the issue, and the names of what stays."""
    keeps = _KEEPS.format(", ".join(keep)) if keep else ""
    return _TASK.format(issue=issue, keeps=keeps).strip() + "\n"


def _diff(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """What changed in the files."""
    parts: list[str] = []
    for path in sorted({*before, *after}):
        old, new = (files.get(path, "").splitlines() for files in (before, after))
        if before.get(path) != after.get(path):
            parts += difflib.unified_diff(old, new, f"a/{path}", f"b/{path}", lineterm="", n=2)
        if len(parts) > _SHOWN // 20:
            break
    return "\n".join(parts) or "no change"


_USAGE = {
    "tokens_in": ("tokens_in", "input_tokens", "prompt_tokens"),
    "tokens_out": ("tokens_out", "output_tokens", "completion_tokens"),
    "cost": ("cost", "total_cost_usd", "cost_usd"),
    "model_calls": ("model_calls", "num_turns"),
}
"""What a usage file may have, by the names that clients give it."""


def add_usage(usage: dict[str, float], text: str) -> None:
    """Add what a usage file says: an object of JSON, or one a line, each with numbers or an object `usage`."""
    for part in [text, *text.splitlines()] if text.strip() else []:
        data = None
        with suppress(ValueError, RecursionError):
            data = json.loads(part)
        if not isinstance(data, dict):
            continue
        inner = data.get("usage")
        found = {**data, **(inner if isinstance(inner, dict) else {})}
        for field, names in _USAGE.items():
            value = next((found[name] for name in names if is_number(found.get(name)) and found[name] >= 0), None)
            if value is not None:
                usage[field] = usage.get(field, 0) + (float(value) if field == "cost" else int(value))
        if part is text:
            return
