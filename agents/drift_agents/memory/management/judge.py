"""Who says whether an execution was good: the evaluator of addition and of history deletion.

* `ExecutionJudgement` - what it says
* `strict` - by the episode's own result
* `noisy_oracle` - the result, wrong with a set rate: for sensitivity alone
* `JUDGEMENT` - the question to a model
* `tell_execution` - the text that it is given: task and steps, without the result
* `judge_by_end` - the rule that answers offline
* `RULES` - the table for `drift_agents.llm.rules.RuleModel`
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from drift_agents.llm.rules import Rule
from drift_agents.memory.voyager.critic import cut
from drift_agents.types import Episode

ENDED, RAN_OUT = "The episode ended.", "Time ran out."

JUDGEMENT: Mapping[str, Any] = {
    "title": "management_judgement",
    "type": "object",
    "properties": {"reasoning": {"type": "string", "maxLength": 4000}, "good": {"type": "boolean"}},
    "required": ["reasoning", "good"],
    "additionalProperties": False,
}


class ExecutionJudgement(NamedTuple):
    """What an evaluator says about an execution.

    Args:
        good: whether it should be added.
        utility: how well the records served that were retrieved in it, in [0, 1].
    """

    good: bool
    utility: float


def strict(result: Episode, threshold: float) -> ExecutionJudgement:
    """By the result: good from the threshold on, worth its score.

    Args:
        result: the episode.
        threshold: the least score of a good execution.

    Example:
        >>> strict(Episode("go", 0.5, 3, True), 1.0)
        ExecutionJudgement(good=False, utility=0.5)
    """
    return ExecutionJudgement(result.score >= threshold, min(max(float(result.score), 0.0), 1.0))


def noisy_oracle(result: Episode, threshold: float, error_rate: float, seed: int, number: int) -> ExecutionJudgement:
    """Whether the result was good, said wrongly with a set rate.

    Args:
        result: the episode.
        threshold: the least score of a good execution.
        error_rate: how often it says the opposite, in [0, 1].
        seed: of its errors.
        number: of the execution: each has a draw of its own, whatever happened before.

    Example:
        >>> noisy_oracle(Episode("go", 0.0, 3, True), 1.0, error_rate=1.0, seed=0, number=1)
        ExecutionJudgement(good=True, utility=1.0)
    """
    is_wrong = np.random.default_rng([seed, number]).random() < error_rate
    good = (result.score >= threshold) != bool(is_wrong)
    return ExecutionJudgement(good, float(good))


def tell_execution(result: Episode) -> str:
    """The text of an execution, without the score.

    Args:
        result: the episode with its steps.

    Example:
        >>> print(tell_execution(Episode("Reach the goal.", 0.0, 1, True)))
        Task: Reach the goal.
        Steps:
        The episode ended.
    """
    lines = [
        f"- in {cut(step.experience.state)} action {json.dumps(step.experience.action, ensure_ascii=False)} "
        f"led to {cut(step.experience.outcome.state)}"
        for step in result.trace
    ]
    return "\n".join([f"Task: {result.task}", "Steps:", *lines, ENDED if result.terminated else RAN_OUT])


def judge_by_end(text: str) -> dict[str, Any]:
    r"""The rule that answers `JUDGEMENT` offline: what came to an end was good, whatever the end.

    That is the paper's coarse evaluator for EHRAgent: the agent's own signal that it was done.

    Args:
        text: what `tell_execution` made; nothing else is read.

    Example:
        >>> judge_by_end("Task: go.\nSteps:\nTime ran out.")["good"]
        False
    """
    good = text.rstrip().endswith(ENDED)
    return {"reasoning": "It came to an end." if good else "It did not come to an end.", "good": good}


RULES: Mapping[str, Rule] = {JUDGEMENT["title"]: judge_by_end}
"""The table for `drift_agents.llm.rules.RuleModel`."""
