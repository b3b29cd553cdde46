"""On deterministic environments GLOVE decides as "the newest outcome wins" does: its probes buy nothing there.

That holds where equal states respond alike, as with exact matching. Where states that respond differently count as
equal, as the cells of cars, GLOVE tolerates an outcome with a large enough share, and `overwrite` does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drift_agents.agent.agent import Agent
from drift_agents.envs.matching import Exact
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.verifier.controls import Forget, Overwrite
from drift_agents.verifier.glove import Glove
from drift_agents.verifier.prober import ReplayProber
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def outline(agent: Agent, env: Any, drifts: list[Any], every: int) -> list[Any]:
    """Everything that happened, apart from what verification cost and how records are marked."""
    lines = []
    for drift in [None, *drifts]:
        if drift is not None:
            drift()
        for _ in range(every):
            episode = agent.run_episode(env)
            lines.append(
                (
                    [(s.experience, s.verdict.surprise, s.verdict.realigned) for s in episode.trace],
                    agent.doubt_since,
                    [(r.state, r.action, r.outcomes, r.n, r.now) for r in agent.memory.records()],
                )
            )
    return lines


def changes(rules: Any, later: list[Any], changed: list[int]) -> list[Any]:
    """One function for each drift: it changes some answers of the environment and of its twin."""

    def change(target: Any) -> None:
        pairs = list(rules.table)
        for index in changed:
            pair = pairs[index % len(pairs)]
            rules.table[pair] = target.table[pair]

    return [lambda target=target: change(target) for target in later]


class Cells(Exact):
    """States count as the same in pairs, so that equal states respond differently."""

    def state_key(self, state: str) -> int:
        return int(state.strip('"s')) // 2


def runs_of(seed: int, changed: list[int], random_rules: Any, TableEnv: Any, Reader: Any, matching: Exact) -> list[Any]:
    """What happened with GLOVE, with `overwrite` and with `forget`."""
    runs = []
    for kind in ("glove", "overwrite", "forget"):
        rng = np.random.default_rng(seed)
        rules, *later = (random_rules(rng, 5, 3) for _ in range(3))
        env, prober = TableEnv(rules), ReplayProber(TableEnv(rules))
        verifier: Any = {"glove": Glove(prober=prober), "overwrite": Overwrite(), "forget": Forget()}[kind]
        agent = Agent(Reader(), VanillaMemory(matching=matching), verifier, seed=seed, matching=matching)
        runs.append(outline(agent, env, changes(rules, later, changed), every=6))
    return runs


@pytest.mark.integration
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**16), changed=st.lists(st.integers(0, 30), min_size=1, max_size=8))
def test_identical_episodes(seed: int, changed: list[int], random_rules, TableEnv, Reader) -> None:
    runs = runs_of(seed, changed, random_rules, TableEnv, Reader, Exact())
    assert runs[0] == runs[1] == runs[2]


def test_episodes_differ_where_equal_states_respond_differently(random_rules, TableEnv, Reader) -> None:
    glove, overwrite, _ = runs_of(0, [1, 2, 3], random_rules, TableEnv, Reader, Cells())
    assert glove != overwrite
