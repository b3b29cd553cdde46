"""Supervision of a managed memory: the evaluator of executions, and demonstrations from outside.

* `ExecutionJudgement` - the result of an evaluator
* `strict` - the evaluation by the episode's own result
* `noisy_oracle` - the same with a given error rate: for sensitivity studies alone
* `JUDGEMENT` - the schema of a model's judgement
* `render_execution` - the text that the model reads: task and steps, without the score
* `judge_by_end` - the rule that answers offline; `RULES` is its table for `drift_agents.llm.rules.RuleModel`
* `DemonstrationSource` - the protocol of a privileged source of correct executions
* `rotate_outcomes` - a wrong execution, made from a correct one
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from drift_agents.llm.rules import Rule
from drift_agents.memory.transcript import truncate
from drift_agents.types import Episode, Experience

ENDED, RAN_OUT = "The episode ended.", "Time ran out."

JUDGEMENT: Mapping[str, Any] = {
    "title": "management_judgement",
    "type": "object",
    "properties": {"reasoning": {"type": "string", "maxLength": 4000}, "good": {"type": "boolean"}},
    "required": ["reasoning", "good"],
    "additionalProperties": False,
}


class ExecutionJudgement(NamedTuple):
    """The result of an evaluator.

    Args:
        good: whether the execution should be added.
        utility: of the records that were retrieved in it, in [0, 1].
    """

    good: bool
    utility: float


def strict(result: Episode, threshold: float) -> ExecutionJudgement:
    """The evaluation by the score: good from the threshold on; the utility is the score.

    Args:
        result: the episode.
        threshold: the least score of a good execution.

    Example:
        >>> strict(Episode("go", 0.5, 3, True), 1.0)
        ExecutionJudgement(good=False, utility=0.5)
    """
    return ExecutionJudgement(result.score >= threshold, min(max(float(result.score), 0.0), 1.0))


def noisy_oracle(result: Episode, threshold: float, error_rate: float, seed: int, number: int) -> ExecutionJudgement:
    """Whether the score reaches the threshold, wrong with a given rate.

    Args:
        result: the episode.
        threshold: the least score of a good execution.
        error_rate: the probability of the opposite judgement, in [0, 1].
        seed: of the errors.
        number: of the execution; each has an independent draw.

    Example:
        >>> noisy_oracle(Episode("go", 0.0, 3, True), 1.0, error_rate=1.0, seed=0, number=1)
        ExecutionJudgement(good=True, utility=1.0)
    """
    is_wrong = np.random.default_rng([seed, number]).random() < error_rate
    good = (result.score >= threshold) != bool(is_wrong)
    return ExecutionJudgement(good, float(good))


def render_execution(result: Episode) -> str:
    """The text of an execution, without the score.

    Args:
        result: the episode with its steps.

    Example:
        >>> print(render_execution(Episode("Reach the goal.", 0.0, 1, True)))
        Task: Reach the goal.
        Steps:
        The episode ended.
    """
    lines = [
        f"- in {truncate(step.experience.state)} action {json.dumps(step.experience.action, ensure_ascii=False)} "
        f"led to {truncate(step.experience.outcome.state)}"
        for step in result.trace
    ]
    return "\n".join([f"Task: {result.task}", "Steps:", *lines, ENDED if result.terminated else RAN_OUT])


def judge_by_end(text: str) -> dict[str, Any]:
    r"""The rule that answers `JUDGEMENT` offline: good if the episode ended before the time limit.

    That is the paper's coarse evaluator for EHRAgent: the agent's own signal of completion.

    Args:
        text: the result of `render_execution`.

    Example:
        >>> judge_by_end("Task: go.\nSteps:\nTime ran out.")["good"]
        False
    """
    good = text.rstrip().endswith(ENDED)
    return {"reasoning": "It came to an end." if good else "It did not come to an end.", "good": good}


RULES: Mapping[str, Rule] = {JUDGEMENT["title"]: judge_by_end}
"""The table for `drift_agents.llm.rules.RuleModel`."""


@runtime_checkable
class DemonstrationSource(Protocol):
    """A privileged source of correct executions; agents have no access to it.

    An execution is an episode with its steps: task, score and end are part of what a store learns from.
    """

    def show(self, count: int) -> Sequence[Episode]:
        """`count` correct executions, for memory before the first episode, which sets their times."""
        ...

    def correct(self, result: Episode) -> Episode:
        """The correct execution of the task of this episode, at its times."""
        ...


def rotate_outcomes(execution: Sequence[Experience]) -> list[Experience]:
    """A wrong execution: every step has the outcome of the next one, the last that of the first.

    Args:
        execution: a correct one.

    Example:
        >>> from drift_agents.types import AgentClock, Outcome
        >>> steps = [Experience(s, "1", Outcome(t, 0.0, False), 0.0, AgentClock()) for s, t in ("ab", "bc")]
        >>> [step.outcome.state for step in rotate_outcomes(steps)]
        ['c', 'b']
    """
    pairs = [*pairwise(execution), *((execution[-1], execution[0]) for _ in execution[:1])]
    return [step._replace(outcome=after.outcome, reward=after.reward) for step, after in pairs]
