"""One suite over every verifier that there is."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from drift_agents.agent.agent import Agent
from drift_agents.errors import ArgumentError
from drift_agents.memory.base import NoMemory
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.registry.tables import VERIFIERS
from drift_agents.types import Episode, ProbeCost
from drift_agents.verifier.base import NoVerifier, Verifier, make_verifier
from drift_agents.verifier.prober import ReplayLiveProber, ReplayProber

from tests.drift_agents.memory.contents import contents

PROBING = ("glove", "glove_spread", "glove_active")
PATIENT: dict[str, Any] = {"persistence": 2, "epsilon": 0.3, "minimum": 2}
OPTIONS: dict[str, dict[str, Any]] = {
    "glove_active": {"minimum": 2},
    "window": {"size": 50},
    "page_hinkley": {"threshold": 0.5},
    "adwin": {"delta": 0.9},
}
NAMES = VERIFIERS.names()
EPISODES = 40


class CountingMemory(VanillaMemory):
    """A vanilla memory that remembers every call that changes it."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[Any] = []
        self.calls: list[str] = []

    def observe(self, experience, now):
        self.written.append(experience)
        self.calls.append("observe")
        return super().observe(experience, now)

    def insert_summary(self, state, action, distribution, n, now):
        self.calls.append("insert_summary")
        return super().insert_summary(state, action, distribution, n, now)


class CountedTwin:
    """Counts what is really done with a twin."""

    def __init__(self, twin: Any) -> None:
        self.twin, self.action_space = twin, twin.action_space
        self.steps = self.resets = 0

    def reset(self) -> Any:
        self.resets += 1
        return self.twin.reset()

    def step(self, action: Any) -> Any:
        self.steps += 1
        return self.twin.step(action)


def in_full(episodes: list[Episode]) -> bytes:
    """Everything that happened, as bytes."""
    return repr([asdict(episode) for episode in episodes]).encode()


@pytest.fixture(params=[False, True], ids=["deterministic", "chance"])
def drifting(request, random_rules, TableEnv):
    """An environment and its twin, and a function that lets both drift."""

    def make(seed: int) -> tuple[Any, Any, Any]:
        rng = np.random.default_rng(seed)
        rules = random_rules(rng, 6, 3, chance=request.param)
        later = random_rules(rng, 6, 3, chance=request.param)

        def drift() -> None:
            for pair in list(rules.table)[::2]:
                rules.table[pair] = later.table[pair]

        return TableEnv(rules, seed=seed), CountedTwin(TableEnv(rules, seed=seed + 1000)), drift

    return make


def build(name: str, twin: Any, **options: Any) -> Verifier:
    options = {**OPTIONS.get(name, {}), **options}
    return make_verifier(name, **({"prober": ReplayProber(twin), **options} if name in PROBING else options))


def play(name: str, env: Any, twin: Any, drift: Any, policy: Any, memory: Any, **options: Any) -> tuple[Agent, list]:
    agent = Agent(policy, memory, build(name, twin, **options), seed=5)
    episodes: list[Episode] = []
    for index in range(EPISODES):
        if index == EPISODES // 2:
            drift()
        episodes.append(agent.run_episode(env))
    return agent, episodes


@pytest.mark.parametrize("name", NAMES)
def test_it_is_a_verifier(name: str, drifting) -> None:
    _, twin, _ = drifting(0)
    verifier = build(name, twin)
    assert isinstance(verifier, Verifier)
    assert verifier.name == name
    assert verifier.supervision in ("none", "own reward", "judge", "privileged")
    assert type(verifier).__doc__


@pytest.mark.integration
@pytest.mark.parametrize(
    ("name", "options"),
    [(name, {}) for name in NAMES if name != "majority"] + [(name, PATIENT) for name in (*PROBING, "forget")],
    ids=lambda value: value if isinstance(value, str) else "patient" if value else "plain",
)
def test_nothing_is_lost_silently(name: str, options: dict[str, Any], drifting, Reader) -> None:
    """Every experience is written once, or quarantined, or replaced by a summary; `majority` drops the minority."""
    memory = CountingMemory()
    agent, episodes = play(name, *drifting(1), Reader(), memory, **options)
    lived = [step.experience for episode in episodes for step in episode.trace]
    verdicts = [step.verdict for episode in episodes for step in episode.trace]
    assert all(times == 1 for times in Counter(memory.written).values()), "nothing is written twice"
    held = getattr(agent.verifier, "quarantined", ())
    missing = [experience for experience in lived if experience not in set(memory.written) | set(held)]
    assert set(held).isdisjoint(memory.written)
    replaced = [v for v in verdicts if v.inserted is not None and v.observed is None]
    assert len(missing) == len(replaced) * options.get("persistence", 1)
    assert {e.transition[:2] for e in missing} == {
        step.experience.transition[:2]
        for episode in episodes
        for step in episode.trace
        if step.verdict.inserted is not None and step.verdict.observed is None
    }
    verdicts = [verdict for episode in episodes for _, _, verdict in episode.verdicts()]
    assert memory.calls.count("insert_summary") == sum(v.inserted is not None for v in verdicts)
    for verdict in verdicts:
        assert not verdict.realigned or verdict.surprise
        assert not verdict.contradicted or verdict.surprise
        assert verdict.inserted is None or verdict.probed


@pytest.mark.parametrize("name", NAMES)
def test_costs_add_up(name: str, drifting, Reader) -> None:
    env, twin, drift = drifting(2)
    _, episodes = play(name, env, twin, drift, Reader(), VanillaMemory())
    total = sum((episode.probes for episode in episodes), ProbeCost())
    assert (total.steps, total.resets) == (twin.steps, twin.resets)
    assert total.falls + total.purchases <= total.resets
    assert (total.steps > 0) == (name in PROBING), "this environment surprises after its drift"
    for episode in episodes:
        verdicts = [verdict for _, _, verdict in episode.verdicts()]
        assert episode.probes == sum((verdict.cost for verdict in verdicts), ProbeCost())
        assert episode.surprises == sum(step.verdict.surprise for step in episode.trace)
        assert episode.realignments == sum(verdict.realigned for verdict in verdicts)


@pytest.mark.integration
@pytest.mark.parametrize("name", NAMES)
def test_equal_seeds_equal_runs(name: str, drifting, Reader) -> None:
    runs = []
    for _ in range(2):
        memory = VanillaMemory()
        _, episodes = play(name, *drifting(3), Reader(), memory)
        runs.append((in_full(episodes), contents(memory)))
    assert runs[0] == runs[1]


@pytest.mark.parametrize("name", NAMES)
def test_without_memory_it_changes_nothing(name: str, drifting, Reader) -> None:
    """`none` with any verifier equals `none` byte for byte: no probe, no draw, the same traces."""
    env, twin, drift = drifting(4)
    agent, episodes = play(name, env, twin, drift, Reader(), NoMemory())
    other_env, _, other_drift = drifting(4)
    plain = Agent(Reader(), NoMemory(), NoVerifier(), seed=5)
    expected = []
    for index in range(EPISODES):
        if index == EPISODES // 2:
            other_drift()
        expected.append(plain.run_episode(other_env))
    assert in_full(episodes) == in_full(expected)
    assert (twin.steps, twin.resets) == (0, 0)
    assert agent.doubt_since is plain.doubt_since is None
    untouched = np.random.default_rng(np.random.SeedSequence(5).spawn(2)[1])
    for generator in (v for v in vars(agent.verifier).values() if isinstance(v, np.random.Generator)):
        assert generator.bit_generator.state == untouched.bit_generator.state


@pytest.mark.parametrize("name", NAMES)
def test_it_pickles(name: str, drifting) -> None:
    _, twin, _ = drifting(0)
    verifier = build(name, twin)
    assert pickle.loads(pickle.dumps(verifier)).name == name


def count_probes(episode: Episode) -> int:
    """The responses of all probes of an episode."""
    return sum(len(verdict.probed) for _, _, verdict in episode.verdicts())


@pytest.mark.parametrize("limits", [(0, None), (3, 7), (None, 4)], ids=str)
@pytest.mark.parametrize("live", [False, True], ids=["twin", "live"])
@pytest.mark.parametrize("name", PROBING)
def test_it_keeps_to_its_budget(name: str, live: bool, limits: tuple[int | None, int | None], drifting, Reader) -> None:
    if live and name == "glove_spread":
        pytest.skip("probes in the middle of an episode")
    most, total = limits
    env, twin, drift = drifting(1)
    used = CountedTwin(TableEnvTwin(env)) if live else twin
    prober = ReplayLiveProber(used) if live else ReplayProber(used, attempts=3)
    options = {} if name == "glove_active" else {"budget": 4}
    verifier = build(
        name, used, prober=prober, probes_per_episode=most, probes_total=total, epsilon=0.9, minimum=1, **options
    )
    agent = Agent(Reader(), VanillaMemory(), verifier, seed=5)
    spent = 0
    for index in range(EPISODES):
        if index % 5 == 4:
            drift()
        resets = used.resets
        episode = agent.run_episode(env)
        probes = count_probes(episode)
        spent += probes
        assert most is None or max(probes, used.resets - resets) <= most
        assert episode.probes.resets == used.resets - resets
    assert total is None or max(spent, used.resets) <= total


class TableEnvTwin:
    """The agent's own environment, as a live prober uses it."""

    def __init__(self, env: Any) -> None:
        self.env, self.action_space = env, env.action_space

    def reset(self) -> Any:
        return self.env.reset()

    def step(self, action: Any) -> Any:
        return self.env.step(action)


@pytest.mark.integration
@pytest.mark.parametrize("name", PROBING)
def test_a_budget_that_is_never_spent_changes_nothing(name: str, drifting, Reader) -> None:
    played = []
    for limits in ({}, {"probes_per_episode": 10**6, "probes_total": 10**6}):
        _, episodes = play(name, *drifting(3), Reader(), VanillaMemory(), **limits)
        played.append(in_full(episodes))
    assert played[0] == played[1]
    assert any(count_probes(episode) for episode in episodes)


@pytest.mark.parametrize("name", PROBING)
def test_a_budget_is_checked(name: str, drifting, ScriptedProber) -> None:
    _, twin, _ = drifting(0)
    for option in ("probes_per_episode", "probes_total"):
        with pytest.raises(ArgumentError, match=f"`{option}` should be .*Received -1"):
            build(name, twin, **{option: -1})
        with pytest.raises(ArgumentError, match=r"whose `probe` takes `limit`.* Received ScriptedProber"):
            make_verifier(name, prober=ScriptedProber(), **{option: 3})
    assert make_verifier(name, prober=ScriptedProber()).name == name
