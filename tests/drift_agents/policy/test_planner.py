"""The planner that looks at the view, and policies by name."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from drift_agents.agent.agent import Agent
from drift_agents.errors import ArgumentError, UnknownNameError
from drift_agents.policy.base import Policy, Reply, make_policy
from drift_agents.policy.planner import Planner
from drift_agents.prompt.view import PromptView, Recollection
from drift_agents.registry.tables import POLICIES
from drift_agents.team.base import Member, Solo
from drift_agents.types import Outcome

NEEDED: dict[str, dict[str, Any]] = {"llm": {"model": "any"}}
"""What some policies cannot be made without."""


@pytest.mark.parametrize("name", POLICIES.names())
def test_every_policy_keeps_the_protocol(name: str) -> None:
    policy = make_policy(name, **NEEDED.get(name, {}))
    assert isinstance(policy, Policy)
    assert policy.name == name


def recollect(action: str, score: float, ended: bool = False, n: float = 1.0, after: str = "[1]") -> Recollection:
    return Recollection("[0]", action, Outcome(after, score, ended), n, 0)


def choices(view: PromptView, **options: Any) -> set[str]:
    return {Planner(**options).decide(view, np.random.default_rng(seed)).text for seed in range(30)}


def test_what_pays_is_repeated_where_nothing_is_known_beforehand() -> None:
    here = (recollect("a", 0.0), recollect("b", 0.5, ended=True))
    view = PromptView("Sail.", "[0]", ("a", "b", "c"), here)
    assert choices(view) == {"b"}
    beyond = Recollection("[1]", "a", Outcome("[2]", 1.0, True), 1.0, 0)
    assert choices(replace(view, elsewhere=(beyond,))) == {"a"}
    shown = (recollect("a", 0.0)._replace(value_estimate=0.75), here[1])
    assert choices(replace(view, here=shown)) == {"a"}


def test_of_equal_scores_the_nearest_one_is_taken() -> None:
    here = (recollect("a", 0.0), recollect("b", 1.0, ended=True))
    beyond = Recollection("[1]", "a", Outcome("[2]", 1.0, True), 1.0, 0)
    assert choices(PromptView("Sail.", "[0]", ("a", "b"), here, (beyond,))) == {"b"}


def test_without_a_score_the_untried_comes_first_then_the_least_visited() -> None:
    here = (recollect("a", 0.0, n=3.0), recollect("b", -1.0, ended=True, n=2.0))
    assert choices(PromptView("Sail.", "[0]", ("a", "b", "c", "d"), here)) == {"c", "d"}
    assert choices(PromptView("Sail.", "[0]", ("a", "b"), here)) == {"b"}


def test_contradicting_outcomes_are_settled_by_the_rule() -> None:
    here = (recollect("a", 1.0, ended=True), recollect("a", 0.0, ended=True, n=2.0, after="[3]"))
    view = PromptView("Sail.", "[0]", ("a", "b"), here)
    assert [choices(view, conflict=rule) for rule in ("majority", "max", "frequency")] == [{"b"}, {"a"}, {"a"}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"conflict": "mean"}, "`conflict` should be one of"),
        ({"frozen_lake": {"risk": 2}}, "`risk` should be in the interval (0, 1]. Received 2"),
        ({"frozen_lake": {"wind": 1}}, "the planner 'frozen_lake' does not take the option"),
        ({"frozen_lake": {"conflict": "max"}}, "`conflict` is given once for all environments"),
        ({"frozen_lake": 3}, "`frozen_lake` should map option names to values. Received 3"),
        ({"mountain_car": [1]}, "`mountain_car` should map option names to values. Received [1]"),
        ({"webshop": {"looks": -1}}, "`looks` should be a whole number, at least 0. Received -1"),
        ({"boat": {}}, "the policy 'planner' does not take the option"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        make_policy("planner", **options)


def test_options_reach_the_planner_they_are_for() -> None:
    """Along a known detour, or straight over unknown ice: `risk` decides."""

    def state(row: int, column: int) -> str:
        return f'{{"cur_pos": [{row}, {column}], "tile_type": "F", "gold_collected": 0}}'

    way = [((0, 0), "1", (1, 0)), ((1, 0), "2", (1, 1)), ((1, 1), "2", (1, 2)), ((1, 2), "3", (0, 2))]
    recalled = [
        Recollection(state(*a), b, Outcome(state(*c), float(c == (0, 2)), c == (0, 2)), 1.0, 0) for a, b, c in way
    ]
    task = "A lake of 2 rows x 3 columns with 1 destination(s): [0, 2]. The highest score is 1. "
    task += "Actions: 0 left, 1 down, 2 right, 3 up."
    view = PromptView(task, state(0, 0), tuple("0123"), (), tuple(recalled), environment="frozen_lake")
    rng = np.random.default_rng(0)
    assert make_policy("planner").decide(view, rng).text == "1"
    assert make_policy("planner", frozen_lake={"risk": 1.0}).decide(view, rng).text == "2"


def test_an_unknown_policy_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'planner'"):
        make_policy("planer")


def test_a_random_policy_needs_actions() -> None:
    with pytest.raises(ArgumentError, match="names no admissible action"):
        make_policy("random").decide(PromptView("Any task.", "{}", ()), np.random.default_rng(0))


class Old:
    """A policy from before views."""

    name = "old"

    def decide(self, prompt: str, rng: np.random.Generator) -> Reply:
        return Reply("0")


class OldByItsType(Old):
    def decide(self, text: str, rng: np.random.Generator) -> Reply:
        return Reply("0")


@pytest.mark.parametrize("kind", [Old, OldByItsType])
def test_a_policy_that_expects_text_is_told_what_changed(kind: type[Old]) -> None:
    policy: Any = kind()
    message = "the policy 'old': `decide` should take a `drift_agents.PromptView`, as in `decide(self, view, rng)`"
    with pytest.raises(ArgumentError, match=re.escape(message)):
        Agent(policy)
    with pytest.raises(ArgumentError, match=re.escape(message)):
        Solo([Member("one", policy)])
