"""Fine-tuning sets made of the steps of a run: strategies that passed a filter, and decisions of a policy.

Source: Zhang, Li, Payani and Wang, "AdaMEM: test-time adaptive memory for language agents", section 3.2 (STEP-MFT). The
dual filter keeps a strategy when its episode succeeded (r = 1) and the action taken differs from the policy's action
without the strategy (a != a', as texts). The baseline set keeps the strategies of all successful episodes, subsampled
to the same size.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from drift_agents.envs.base import find_environment
from drift_agents.errors import ArgumentError, ExperimentError
from drift_agents.experiment.folder import TRACES, read_manifest, write_text
from drift_agents.experiment.logs import SUCCESS
from drift_agents.experiment.trace import SUFFIX, read_header, read_trace
from drift_agents.llm.base import RuleModel
from drift_agents.policy.brief import BRIEF
from drift_agents.policy.llm import LanguageModelPolicy
from drift_agents.prompt.lessons import read_view
from drift_agents.types import Thought
from drift_envs.checks import check_choice


class Sample(NamedTuple):
    """How a strategy was made, and its result.

    Args:
        thought: how it was made.
        action: what was done.
        score: the score at the end of the episode.
    """

    thought: Thought
    action: str
    score: float

    @property
    def succeeded(self) -> bool:
        """Whether the episode was a success (r = 1)."""
        return self.score >= SUCCESS

    @property
    def changed(self) -> bool:
        """Whether the action is another one than without the strategy; exact texts are compared."""
        return self.thought.baseline is not None and self.action != self.thought.baseline

    def to_chat(self) -> dict[str, object]:
        """The sample in chat format: ((state, retrieved), z) of the paper's equation 4."""
        turns = zip(("system", "user", "assistant"), self.thought[:3], strict=True)
        return {"messages": [{"role": role, "content": content} for role, content in turns]}


def read_samples(folder: Path) -> Iterator[Sample]:
    """All strategies of a run with a baseline action, from the steps that it kept.

    Args:
        folder: the run's folder; it was played with `--trace all`.

    Raises:
        ExperimentError: if it keeps no steps, or they cannot be read.
    """
    for path in _trace_files(folder):
        for episode in read_trace(path):
            score = episode.steps[-1].outcome.score if episode.steps else 0.0
            for step in episode.steps:
                if step.thought is not None and step.thought.baseline is not None:
                    yield Sample(step.thought, step.action, score)


def pick(samples: Sequence[Sample], outcome_only: bool = False) -> list[Sample]:
    """Those that a filter keeps.

    Args:
        outcome_only: keep strategies of successful episodes whether they changed the action or not, drawn
            without replacement down to as many as the dual filter keeps; the draw is always the same.

    Example:
        >>> made = [Thought("", str(n), "{}", "", "0") for n in range(3)]
        >>> samples = [Sample(made[0], "1", 1.0), Sample(made[1], "0", 1.0), Sample(made[2], "1", 0.0)]
        >>> [sample.thought.question for sample in pick(samples)], len(pick(samples, outcome_only=True))
        (['0'], 1)
    """
    successes = [sample for sample in samples if sample.succeeded]
    both = [sample for sample in successes if sample.changed]
    if not outcome_only:
        return both
    rng = np.random.default_rng(0)
    drawn: list[int] = rng.choice(len(successes), size=len(both), replace=False).tolist() if both else []
    return [successes[place] for place in sorted(drawn)]


def export(folder: Path, out: Path, outcome_only: bool = False) -> tuple[int, int]:
    """Write one file in chat format, a sample a line.

    Args:
        outcome_only: which filter, as for `pick`.

    Returns:
        How many samples were written, and how many strategies with a baseline the run made.

    Raises:
        ArgumentError: if no strategy passes the filter.
        ExperimentError: if the run keeps no steps, or the file cannot be written.
    """
    samples = list(read_samples(folder))
    kept = pick(samples, outcome_only)
    if not kept:
        raise ArgumentError(
            f"{folder}: none of its {len(samples)} strategies belongs to a success and changed the action. Strategies "
            "with a baseline come from the controller `adamem` with `effort: high`"
        )
    lines = "".join(json.dumps(sample.to_chat(), ensure_ascii=False) + "\n" for sample in kept)
    write_text(out, lines, make_folder=True)
    return len(kept), len(samples)


def export_choices(
    folder: Path, out: Path, form: str = "openai", only_successes: bool = False, prompt: str = BRIEF
) -> int:
    """Write prompts and decisions of a run's policy, a decision a line. Equal lines are written once.

    States with one admissible action are left out, as are actions that are not admissible. The steps of the episode
    so far stand in prompts of policies whose own format shows them.

    Args:
        folder: the run's folder; it was played with `--trace all`.
        form: `openai` (`messages`), or `hf` (`prompt` and `completion`, both in chat format).
        only_successes: whether decisions of other episodes are left out.
        prompt: the format of the prompts, one of `drift_agents.policy.messages.FORMATS`.

    Returns:
        How many decisions were written.

    Raises:
        ArgumentError: if there is no such form or format, or no decision.
        ExperimentError: if the run keeps no steps, or the file cannot be written.
    """
    check_choice("format", form, ("openai", "hf"))
    renderer = LanguageModelPolicy(RuleModel({}), format=prompt)  # renders, and is not called
    lines: dict[str, None] = {}
    for path in _trace_files(folder):
        environment = find_environment(read_header(path).env).name
        for episode in read_trace(path):
            if only_successes and not (episode.steps and episode.steps[-1].outcome.score >= SUCCESS):
                continue
            for step in episode.steps:
                view = read_view(step.prompt, environment) if step.prompt else None
                if view is None or len(view.actions) < 2 or step.action not in view.actions:
                    continue
                question = [{"role": role, "content": content} for role, content in renderer.messages(view)]
                answer = {"role": "assistant", "content": json.dumps({"action": step.action}, ensure_ascii=False)}
                chat: dict[str, object] = {"messages": [*question, answer]}
                if form == "hf":
                    chat = {"prompt": question, "completion": [answer]}
                lines[json.dumps(chat, ensure_ascii=False)] = None
    if not lines:
        raise ArgumentError(f"{folder}: has no decision to write" + (" of a success" if only_successes else ""))
    write_text(out, "".join(f"{line}\n" for line in lines), make_folder=True)
    return len(lines)


def _trace_files(folder: Path) -> list[Path]:
    """The files with steps of a run.

    Raises:
        ExperimentError: if there are none, or no run is there.
    """
    files = sorted((folder / TRACES).glob(f"*{SUFFIX}"))
    if not files:
        read_manifest(folder)
        raise ExperimentError(f"{folder}: keeps no steps; play the experiment with --trace all")
    return files
