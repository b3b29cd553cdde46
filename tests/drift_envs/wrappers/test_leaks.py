"""Nothing that an agent sees differs because of a drift, other than outcomes."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from hypothesis import given
from hypothesis import strategies as st

from drift_envs.schedule import load_schedule
from tests.core_ids import CORE_IDS, by_file
from website.shipped import listed

OURS = [name for name in listed() if load_schedule(name).env in CORE_IDS]
"""Without the points of the map of verification, which differ from their file in rates alone."""
IMPLICIT = [name for name in OURS if load_schedule(name).visibility == "implicit" and name != "tools/transient"]
"""Without the one whose drift loses calls of any kind: every answer is its outcome."""
OUTCOMES = ("click[buy now]", "move ", "use ", "examine ", "open drawer", "ask")
"""Actions whose answers are outcomes: purchases, things put down and examined, locked drawers, and what is asked."""
LOOKUPS = tuple(f'{{"tool": "{tool}' for tool in ("find_", "get_order", "list_cards", "track_shipment"))
"""Calls at the service desk that are none: they write nothing, and no list has an order."""
LOOKUPS += tuple(
    f'{{"tool": "{call}'
    for call in ("list_files", *(f'read_file", "arguments": {{"path": "{letter}' for letter in "CHR"))
)
"""In a repository what merged code shows is an outcome; the list of files and the documents are none."""
VISIBLE = {"house/appliances", "house/move", "house/renamed"}
VISIBLE |= {f"tools/{name}" for name in ("explicit", "names", "required", "types", "split", "merged", "gone", "policy")}
VISIBLE |= {f"tools/{name}" for name in ("gradual", "harmless", "releases", "rush", "weekend")}
VISIBLE |= {f"facts/{name}" for name in ("explicit", "late", "mixed", "rename", "retract", "return", "rush", "weekly")}
"""Explicit drifts of what stands in a house, of its name, of the tools and the policy page, and of what is said."""
SHOP = {"task", "actions", "score", "last_action_error"}
HOUSE = {"task", "actions", "score"}
TOOLS = {*HOUSE, "tools"}


def is_no_outcome(action):
    return action.startswith(LOOKUPS) if action.startswith("{") else not action.startswith(OUTCOMES)


def make(name, **arguments):
    return gym.make(load_schedule(name).env, schedule=name, **arguments)


def first_ticks(env):
    return [phase.start for phase in env.get_wrapper_attr("timeline").phases(100)]


@pytest.mark.integration
@pytest.mark.parametrize("name", IMPLICIT)
@pytest.mark.parametrize("text", [False, True])
def test_an_implicit_drift_is_seen_in_rewards_alone(name, text):
    runs = []
    env = make(name, text=text)
    env.reset(seed=0)
    for tick in first_ticks(env)[:3]:
        actions = np.random.default_rng(1)
        run = [env.reset(seed=0, options={"drift_tick": tick})]
        for _ in range(200):
            action = int(actions.integers(4))
            if isinstance(env.action_space, gym.spaces.Text):
                able = [one for one in run[-1][1]["actions"] if is_no_outcome(one)]
                action = able[action % len(able)]
            observation, _, terminated, truncated, info = env.step(action)
            if terminated or truncated:
                run.append(env.reset(options={"drift_clock": "hold"}))
            else:
                run.append((observation, info))
        runs.append(run)
    assert len(runs) > 1
    for run in runs[1:]:
        assert data_equivalence(runs[0], run, exact=True)


@pytest.mark.integration
@pytest.mark.parametrize("name", by_file(name for name in OURS if name.partition(":")[0] not in VISIBLE))
def test_the_first_sight_of_an_episode_tells_no_tick(name):
    """Before the first action, phases look alike."""
    env = make(name, text=True)
    env.reset(seed=0)
    seen = []
    for tick in first_ticks(env)[:6]:
        seen.append(env.reset(seed=0, options={"drift_tick": tick}))
    for one in seen[1:]:
        assert data_equivalence(seen[0], one, exact=True)


@pytest.mark.parametrize("name", by_file(OURS))
def test_info_has_the_same_keys_at_every_step_and_none_of_the_truth(name):
    own = {"webshop": SHOP, "house": HOUSE, "facts": HOUSE, "tools": TOOLS, "repository": TOOLS}.get(
        name.partition("/")[0]
    )
    for text in (False, True):
        keys = own or (HOUSE if text else set())
        env = make(name, text=text)
        assert set(env.reset(seed=0)[1]) == keys
        for tick in first_ticks(env)[:4]:
            assert set(env.reset(options={"drift_tick": tick})[1]) == keys
            action = env.action_space.sample()
            assert set(env.step(action)[4]) == keys


@given(st.integers(0, 2**31), st.integers(0, 80), st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_a_false_response_shows_no_mark(seed, tick, actions):
    """A transition of a lying lake is one that some honest lake gives too: same keys, same types."""
    env = make("frozen_lake/explicit:transient", text=True)
    honest = gym.make("DriftFrozenLake-v0", schedule="frozen_lake/null", text=True)
    _, expected = honest.reset(seed=seed)
    env.reset(seed=seed, options={"drift_tick": tick})
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(action)
        assert env.observation_space.contains(observation)
        assert set(info) == set(expected)
        assert isinstance(terminated, bool)
        assert truncated is False
        if terminated:
            assert '"tile_type": "F"' not in observation
            env.reset()
        else:
            assert reward == 0
