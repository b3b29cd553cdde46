"""What the planner of the shop decides on pages of a made-up shop."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from drift_agents.envs.webshop.planner import WebShopPlanner
from drift_agents.prompt.view import PromptView, Recollection

TASK = "Find me dishwasher safe mugs with color: red, and price lower than 20.00 dollars"


@pytest.fixture
def decide() -> Callable[..., set[str]]:
    """What the planner may answer: all its answers over a few seeds."""

    def answers(
        state: str, actions: tuple[str, ...], *recalled: Recollection, task: str = TASK, conflict: str = "majority",
        doubt: int | None = None, looks: int = 4, seeds: int = 12,
    ) -> set[str]:  # fmt: skip
        view = PromptView(task, state, actions, (), recalled, (), 100, doubt)
        planner = WebShopPlanner(conflict=conflict, looks=looks)
        return {planner.decide(view, np.random.default_rng(seed)).text for seed in range(seeds)}

    return answers
