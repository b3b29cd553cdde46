"""STEP-MFT with a small network: parsed questions, training, and the strategies of the trained policy."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from drift_agents.controller.adamem import RETRIEVED, STRATEGY, AdaMem, make_strategy, tell_exemplars
from drift_agents.errors import ArgumentError, ExperimentError
from drift_agents.experiment.loader import load_experiment
from drift_agents.llm.base import Message, RuleModel
from drift_agents.memory.base import Exemplar
from drift_agents.policy.base import LanguagePolicy
from drift_agents.prompt.view import ANSWER, PromptView
from drift_agents.types import AgentClock, Outcome, Record

from research.experiments.step_mft import INPUTS, StrategyNetwork, StrategyPlanner, describe, read_question
from research.step_mft import fit, train_strategies

EXPERIMENTS = Path(__file__).resolve().parents[2] / "research" / "experiments"
RULES = RuleModel({STRATEGY["title"]: make_strategy})


def exemplar(number: int, action: str) -> Exemplar:
    step = Record(number, f'["at", {number}]', action, ((Outcome("[9]", 1.0, True), 1.0),), 1, AgentClock(0, number))
    return Exemplar((step,), 1.0, 0.5 + number / 10)


def question(*actions: str) -> str:
    prompt = PromptView("Cool an apple.", '["at", 7]', ("0", "1")).render().removesuffix(ANSWER).rstrip()
    return prompt + "\n" + RETRIEVED + tell_exemplars([exemplar(n, action) for n, action in enumerate(actions)])


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_a_question_is_parsed_into_one_strategy_for_each_experience() -> None:
    asked = read_question(question("open fridge", "take apple", "wait"))
    assert asked.situation == 'Cool an apple.\n["at", 7]'
    assert asked.similarities == (0.5, 0.6, 0.7)
    assert ["open fridge" in (one or "") for one in asked.strategies] == [True, False, False]
    assert describe(asked).shape == (3, INPUTS)
    assert read_question(question()).strategies == ()


def test_the_policy_tells_one_experience_and_plans_itself() -> None:
    first, drawn = StrategyPlanner(choice="first"), StrategyPlanner()
    assert isinstance(first, LanguagePolicy)
    text = [Message("user", question("a", "b", "c"))]
    assert 'do "a"' in first.answer(text, STRATEGY, RULES, rng()).data["strategy"][0]
    told = {drawn.answer(text, STRATEGY, RULES, rng(seed)).text for seed in range(20)}
    assert len(told) == 3
    nothing = first.answer([Message("user", question())], STRATEGY, RULES, rng()).data["strategy"]
    assert nothing == ["Nothing like this is remembered."]


def test_what_was_chosen_in_training_is_chosen_again(tmp_path: Path) -> None:
    """Strategies that begin with `b` pass the filter, wherever they stand among those retrieved."""
    lines = []
    for order in (("a", "b", "c"), ("b", "c", "a"), ("c", "a", "b"), ("b", "a", "c")):
        asked = read_question(question(*order))
        answer = json.dumps({"reasoning": "", "strategy": [asked.strategies[order.index("b")]]})
        turns = zip(("system", "user", "assistant"), ("", question(*order), answer), strict=True)
        lines.append(json.dumps({"messages": [{"role": role, "content": content} for role, content in turns]}))
    (tmp_path / "step.jsonl").write_text("\n".join(lines))
    assert train_strategies(tmp_path / "step.jsonl", tmp_path / "new" / "weights.npz") == (4, 1.0)
    policy = StrategyPlanner(weights=str(tmp_path / "new" / "weights.npz"))
    said = policy.answer([Message("user", question("c", "c", "a", "b"))], STRATEGY, RULES, rng())
    assert 'do "b"' in said.data["strategy"][0]


def test_training_is_the_same_every_time() -> None:
    rows = [rng(n).standard_normal((3, INPUTS)) for n in range(3)]
    one, other = fit(rows, [0, 1, 2]), fit(rows, [0, 1, 2])
    assert all(np.array_equal(one.arrays[name], other.arrays[name]) for name in one.arrays)
    assert [int(one.score(inputs).argmax()) for inputs in rows] == [0, 1, 2]


@pytest.mark.parametrize("text", ["no JSON", '{"messages": []}', ""])
def test_other_files_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "other.jsonl").write_text(text)
    with pytest.raises(ExperimentError, match=re.escape(str(tmp_path / "other.jsonl"))):
        train_strategies(tmp_path / "other.jsonl", tmp_path / "weights.npz")


def test_wrong_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"one of first, random\. Received 'last'"):
        StrategyPlanner(choice="last")
    with pytest.raises(ArgumentError, match="`weights` should be a file of NumPy arrays"):
        StrategyPlanner(weights=str(tmp_path / "none.npz"))
    with pytest.raises(ArgumentError, match="`weights` should have arrays of the shapes"):
        StrategyNetwork({"first": np.zeros(3)})


@pytest.mark.parametrize("name", ["step-mft-data", "step-mft"])
def test_its_experiments_name_the_present_file(name: str) -> None:
    experiment = load_experiment(str(EXPERIMENTS / f"{name}.yaml"))
    controllers = [part for block in experiment.agents for part in block.controller]
    assert {part.options["effort"] for part in controllers} == {"high"}
    assert AdaMem(**controllers[0].options).effort == "high"
