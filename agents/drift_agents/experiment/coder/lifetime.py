"""A coding agent in one repository, episode by episode: what is stored of it, so that it can go on after a stop."""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from drift_agents.experiment.coder.files import copy_files, remove_folder
from drift_agents.experiment.coder.git import make_repository
from drift_agents.experiment.coder.place import CoderPlace, CodingAgent
from drift_agents.experiment.coder.process import CommandLimits
from drift_agents.experiment.coder.world import CoderWorld
from drift_agents.experiment.folder import write_parts
from drift_envs.checks import is_number

_SHOWN = 20_000
"""Characters of a text that are stored with the steps."""
_UNREADABLE = re.compile(r"[^\n\t\x20-\x7e\xa0-\ud7ff\ue000-\U0010ffff]")
_KEEPS = "Of what you write besides, {} stay from issue to issue; all other files are cloned anew."
_TASK = (
    "{issue}\n\nYou are in a clone of the repository. CONTRIBUTING.md says how changes are made. Leave the change in "
    "the files of this folder; continuous integration checks them when you end. {keeps}\n"
)
_REFUSED = "\nContinuous integration refused the change that is in this folder now:\n\n{}\n"


class CoderRules(NamedTuple):
    """How episodes are played.

    Args:
        episodes: how many.
        limits: of the agent's command, each time.
        is_control: whether memory is set back before each episode.
        seed_memory: the folder with which memory begins; `None` for nothing.
    """

    episodes: int
    limits: CommandLimits
    is_control: bool = False
    seed_memory: Path | None = None


class LifetimeFolder:
    """What is stored of an agent with a seed, in the folder `coder` of a run.

    Args:
        folder: the folder `coder`.
        name: of the agent, in names of files.
        seed: the seed.
    """

    def __init__(self, folder: Path, name: str, seed: int) -> None:
        self.lines = folder / f"{name}.jsonl"
        self._own = folder / name / str(seed)
        self.steps, self.repository = self._own / "steps.jsonl", self._own / "repository.git"
        self._seed = seed

    def open(self, seed_memory: Path | None) -> int:
        """Prepare it; returns the number of episodes that are done. What is torn or unfinished is dropped."""
        (self._own / "output").mkdir(parents=True, exist_ok=True)
        lines = list(_whole_lines(self.lines))
        done = [json.loads(line)["seed"] for line in lines].count(self._seed)
        write_parts(self.lines, lines)
        write_parts(self.steps, list(_whole_lines(self.steps))[:done])
        if not done:
            remove_folder(self.memory(0))
            (self.memory(0)).mkdir(parents=True)
            if seed_memory is not None:
                copy_files(seed_memory, self.memory(0) / "work")
        return done

    def memory(self, episode: int) -> Path:
        """What the agent had kept before an episode: a folder `work` and a folder `home`."""
        return self._own / "memory" / str(episode)

    def open_output(self, episode: int) -> IO[bytes]:
        """The file with the output of an episode's commands."""
        return open(self._own / "output" / f"{episode}.txt", "wb")

    def add(self, line: Mapping[str, Any], steps: Mapping[str, Any]) -> None:
        """Store a finished episode: it is done when its line is there."""
        for path, data in ((self.steps, steps), (self.lines, line)):
            with open(path, "a", encoding="utf-8") as file:
                file.write(json.dumps(data, ensure_ascii=False) + "\n")
                file.flush()
                os.fsync(file.fileno())


def _whole_lines(path: Path) -> Iterator[str]:
    if path.exists():
        with open(path, encoding="utf-8", newline="\n") as file:
            yield from (line for line in file if line.endswith("\n"))


def play_lifetime(
    agent: CodingAgent,
    world: CoderWorld,
    rules: CoderRules,
    stored: LifetimeFolder,
    note: Callable[[str], None],
    advance: Callable[[], None],
) -> None:
    """Play the episodes that are not done yet.

    Args:
        agent: who plays.
        world: the repository, from its first episode.
        rules: how it is played.
        stored: what is stored of the lifetime.
        note: receives what is worth knowing.
        advance: called after each episode, also for those that were done before.
    """
    done = stored.open(rules.seed_memory)
    place = CoderPlace(agent, str(stored.steps.resolve()), world.name, rules.limits)
    try:
        for episode in range(rules.episodes):
            world.begin(episode)
            if episode >= done:
                start = stored.memory(0 if rules.is_control else episode)
                _play_episode(agent, world, rules, stored, place, episode, start, note)
            advance()
    finally:
        place.remove()


def _play_episode(
    agent: CodingAgent,
    world: CoderWorld,
    rules: CoderRules,
    stored: LifetimeFolder,
    place: CoderPlace,
    episode: int,
    start: Path,
    note: Callable[[str], None],
) -> None:
    remove_folder(stored.repository)
    make_repository(stored.repository, world.commits)
    place.prepare(stored.repository, start)
    task, log, usage = write_task(world.issue, agent.keep), "", dict[str, float]()
    files = place.read_submission()

    def note_here(text: str) -> None:
        note(f"{agent.name}, episode {episode}: {text}")

    remembered = "\n".join(f"{path}:\n{text}" for path, text in place.read_memory(note_here).items())
    remembered = _hide(remembered, agent.secrets)
    seconds, ends, steps = 0.0, list[str](), list[dict[str, Any]]()
    with stored.open_output(episode) as output:
        while not world.is_over:
            output.write(f"--- episode {episode}, attempt {len(ends) + 1}\n".encode())
            told = task if not log or agent.reads_log else task + _REFUSED.format(log)
            end = place.run(told, log, output, stored.repository, start)
            seconds += end.seconds
            ends.append(end.stopped or (f"exit status {end.status}" if end.status else ""))
            if end.left and not end.stopped:
                ends[-1] = f"{ends[-1]}{', ' if ends[-1] else ''}left {end.left} processes behind"
            if ends[-1]:
                note_here(f"attempt {len(ends)}: {ends[-1]}")
            add_usage(usage, place.read_usage())
            files, previous = place.read_submission(), files
            log = world.submit(files)
            shown = _diff(previous, files, agent.secrets)
            steps.append(_step(world, len(ends), told, shown, log, remembered))
    texts = place.read_memory(note_here)
    line = {
        **world.describe(), "steps": len(ends), "ended": "terminated" if world.success else "truncated",
        "success": world.success, "score": world.score, **world.counts, "seconds": round(seconds, 3),
        **usage, **count_statements(world, texts), "stopped": ends,
    }  # fmt: skip
    target = stored.memory(episode + 1)
    if not rules.is_control and not _keep(place, start, target):
        note_here("what it keeps is too large; memory stays as it was")
    stored.add(line, {"episode": episode, "seed": world.seed, "task": world.issue, "steps": steps, "closing": []})
    if not rules.is_control and episode:
        remove_folder(start)


def write_task(issue: str, keep: Sequence[str]) -> str:
    """What an agent is told.

    Args:
        issue: in words.
        keep: names of what stays.
    """
    keeps = _KEEPS.format(", ".join(keep)) if keep else ""
    return _TASK.format(issue=issue, keeps=keeps).strip() + "\n"


def _keep(place: CoderPlace, start: Path, target: Path) -> bool:
    """Store what stays; `False` if it is too large, and what was there before stays."""
    part = target.with_suffix(".part")
    remove_folder(part)
    remove_folder(target)
    is_kept = place.keep(part)
    if not is_kept:
        copy_files(start, part)
    part.mkdir(parents=True, exist_ok=True)
    os.replace(part, target)
    return is_kept


def _step(world: CoderWorld, number: int, task: str, shown: str, log: str, memory: str) -> dict[str, Any]:
    """An attempt as `drift_agents.experiment.trace` has steps."""
    about = world.describe()
    return {
        "step": number - 1, "tick": about["tick"], "knobs": world.knobs, "state": _cut(task), "action": shown,
        "outcome": [_cut(log) or "accepted", world.score, world.is_over], "reward": None, "prompt": _cut(memory),
        "retrieved": [], "verdict": {},
    }  # fmt: skip


def _diff(before: Mapping[str, str], after: Mapping[str, str], secrets: Sequence[str]) -> str:
    """What changed in the files, without secrets."""
    parts: list[str] = []
    for path in sorted({*before, *after}):
        old, new = (files.get(path, "").splitlines() for files in (before, after))
        if before.get(path) != after.get(path):
            parts += difflib.unified_diff(old, new, f"a/{path}", f"b/{path}", lineterm="", n=2)
        if len(parts) > _SHOWN // 20:
            break
    text = "\n".join(parts) or "no change"
    return _cut(_hide(text, secrets))


def _hide(text: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, "***")
    return text


def _cut(text: str) -> str:
    text = _UNREADABLE.sub("\N{REPLACEMENT CHARACTER}", text)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}\n[cut here]"


def count_statements(world: CoderWorld, texts: Mapping[str, str]) -> dict[str, Any]:
    """What kept texts say of the conventions.

    Returns:
        The number of statements by kind, `memory_size` (all of them), and `still_believed`: of the conventions that
        have changed and that the texts name, the share of which the last statement has a former value; `None` where
        there is none.
    """
    said = [one for text in texts.values() for one in world.read_statements(text)]
    counts = {
        f"{kind}_statements": sum(one.kind == kind for one in said) for kind in ("present", "former", "mixed", "never")
    }
    changed = world.changed
    last = {one.convention: one.kind for one in said if one.convention in changed}
    believed = sum(kind == "former" for kind in last.values()) / len(last) if last else None
    return {"memory_size": len(said), **counts, "still_believed": believed}


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
