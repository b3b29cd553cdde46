"""The learners: each learns where nothing drifts, and the treatments do what they say."""

import numpy as np
import pytest

for package in ("jax", "gymnax", "optax", "pyarrow"):
    pytest.importorskip(package, reason="needs the extra `baselines`")

import jax
import jax.numpy as jnp

from baselines import common, dqn, ppo, recurrent_ppo, rl_squared
from baselines.continual_backprop import MATURITY, make_units, replace_units
from baselines.environments import REGIMES, Course, Regime, draw_phases, make_course, make_env
from baselines.evaluate import evaluate
from baselines.rows import CONFIGURATIONS, ROWS, find_row
from baselines.shrink_and_perturb import shrink_and_perturb
from tests.documents import read_code, run_code

LIFETIMES, ROUNDS = 4, 100
CORNERS_START = 12
LEARNS = {"ppo": 0.5, "recurrent_ppo": 0.4, "dqn_short": 0.3, "q_learning": 0.3}


def leaves_equal(one, other):
    return all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


@pytest.fixture(scope="module")
def env():
    return make_env("corners")


@pytest.fixture(scope="module")
def course(env):
    whole = make_course(env, REGIMES["none"], list(range(LIFETIMES)))
    return Course(whole.params, whole.told[:, :ROUNDS], whole.facts[:, :ROUNDS], whole.keys)


@pytest.mark.integration
@pytest.mark.parametrize("name", LEARNS)
def test_it_learns_where_nothing_drifts_and_equal_seeds_give_equal_scores(env, course, name):
    row = find_row(name)
    settings = row.settings(**row.fixed)._asdict()
    settings = row.settings(*(jnp.full(LIFETIMES, value, jnp.float32) for value in settings.values()))
    functions = common.make_play(env, row.module)
    scores = np.asarray(common.play_course(functions, settings, course))
    assert scores.shape == (LIFETIMES, ROUNDS)
    assert np.nanmean(scores[:, -20:]) - np.nanmean(scores[:, :5]) > LEARNS[name]
    np.testing.assert_array_equal(scores, common.play_course(functions, settings, course))


@pytest.mark.integration
def test_q_learning_finds_the_values_of_value_iteration_and_the_scores_of_numpy(env, course, monkeypatch):
    """The agent of the page is the same method, written anew."""
    row = find_row("q_learning")
    given = {"rate": 0.6, "explore": 0.05, "hope": 1.0}
    settings = row.settings(*(jnp.full(LIFETIMES, given[name]) for name in row.settings._fields))
    (code,) = [code for code in read_code("docs/research/rl_board.md") if "class QLearning" in code]
    monkeypatch.setitem(REGIMES, "tiny", Regime("tiny", (0,), (ROUNDS,), 1))
    agents, make = [], run_code(code)["make"]
    lines = evaluate(
        lambda params, key: agents.append(make(params, key)) or agents[-1], "numpy", "corners", "tiny", LIFETIMES
    )
    start, play = common.make_play(env, row.module)
    lives, scores = play(settings, start(settings, course), course.params, course.told, course.facts)
    assert abs(np.nanmean(scores) - lines["score"].mean()) < 0.02
    for seed, agent in enumerate(agents):
        best = iterate_values(draw_phases(env, seed)[0])[CORNERS_START]
        assert best == pytest.approx(0.95**3)  # the fourth step enters the corner
        for values in (agent.values, lives.state.values[seed]):
            assert values[CORNERS_START].max() == pytest.approx(best, abs=1e-3)


def iterate_values(knobs):
    """The value of each tile under an optimal policy, by value iteration."""
    side = len(knobs["map"])
    paid = {tuple(map(int, name.split(","))): value for name, value in knobs["goal_rewards"].items()}
    values = np.zeros((side, side))
    for _ in range(50):
        old = np.pad(values, 1, mode="edge")
        entering = np.pad(np.zeros((side, side)), 1)
        for (row, column), reward in paid.items():
            entering[row + 1, column + 1], old[row + 1, column + 1] = reward, 0.0
        worth = entering + 0.95 * old
        values = np.max([worth[1:-1, :-2], worth[2:, 1:-1], worth[1:-1, 2:], worth[:-2, 1:-1]], axis=0)
    return values.reshape(-1)


@pytest.mark.integration
def test_nets_of_rl_squared_get_better_and_do_not_learn_in_the_lifetime(env, course, monkeypatch):
    monkeypatch.setattr(rl_squared, "POOL", 64)
    monkeypatch.setattr(rl_squared, "LIFETIMES", 64)
    monkeypatch.setattr(rl_squared, "draw_schedules", lambda *given, draw=rl_squared.draw_schedules: draw(*given, 64))
    weights, curve = rl_squared.train(env, 5, True, updates=60)
    assert np.mean(curve[-10:]) > np.mean(curve[:10]) + 0.02
    lanes = common.begin(env, jax.random.key(0), jax.tree.map(lambda part: part[0], course.params))
    state = rl_squared.init(env, rl_squared.Net(weights), jax.random.key(1))
    assert [np.shape(part) for part in jax.tree.leaves(state)] == [(common.LANES, recurrent_ppo.WIDTH)]
    assert lanes.observation.shape == (common.LANES,)


def test_training_schedules_drift_at_random_steps_and_differ_from_the_boards(env):
    schedules = rl_squared.draw_schedules(env, 3, True, 40)
    ticks = [schedule["drifts"][0]["at"] for schedule in schedules]
    length = rl_squared.ROUNDS * env.ticks
    assert min(ticks) >= length // 4
    assert max(ticks) < 3 * length // 4
    assert len(set(ticks)) > 20


@pytest.mark.integration
def test_a_told_learner_starts_anew_and_others_go_on(env, course):
    params = jax.tree.map(lambda part: part[0], course.params)
    state = ppo.init(env, ppo.PPOSettings(), jax.random.key(0))
    trained = state._replace(weights=jax.tree.map(lambda part: part + 1.0, state.weights))
    lanes = common.begin(env, jax.random.key(1), params)

    @jax.jit
    def play(settings, told):
        return ppo.play_round(env, settings, trained, lanes, params, told, course.facts[0, 0], jax.random.key(2))[0]

    def settings(**values):
        return ppo.PPOSettings(**{name: jnp.float32(value) for name, value in values.items()}, rate=jnp.float32(0))

    assert not leaves_equal(play(settings(told=1), True).weights, trained.weights)
    assert leaves_equal(play(settings(told=1), False).weights, trained.weights)
    assert leaves_equal(play(settings(told=0), True).weights, trained.weights)
    moved = jax.tree.leaves(play(settings(told=1), True).weights)
    assert max(float(jnp.abs(part).max()) for part in moved) < 6  # drawn, not a sum with the old ones


def test_shrink_and_perturb_is_off_by_default():
    weights, fresh = {"w": jnp.array([1.0, -2.0])}, {"w": jnp.array([5.0, 5.0])}
    off = ppo.PPOSettings()
    assert leaves_equal(shrink_and_perturb(weights, fresh, off.shrink, off.noise), weights)
    np.testing.assert_allclose(shrink_and_perturb(weights, fresh, 0.5, 0.1)["w"], [1.0, -0.5])


def test_continual_backprop_replaces_the_mature_unit_of_least_use():
    layers = common.make_mlp(jax.random.key(0), (3, 4, 2), 1.0)
    fresh = common.make_mlp(jax.random.key(1), (3, 4, 2), 1.0)
    ones = jax.tree.map(jnp.ones_like, layers)
    hidden = [jnp.array([[1.0, 1.0, 1e-6, 1.0]])]
    trees, units = (layers, ones, ones), make_units(1, 4)
    for _ in range(MATURITY):
        trees, units = replace_units(trees, units, hidden, fresh, 0.25)
        assert leaves_equal(trees[0], layers)
    weights, first, _ = replace_units(trees, units, hidden, fresh, 0.25)[0]
    np.testing.assert_array_equal(weights[0]["w"][:, 2], fresh[0]["w"][:, 2])
    np.testing.assert_array_equal(weights[1]["w"][2], 0.0)
    np.testing.assert_array_equal(first[1]["w"][2], 0.0)
    kept = [0, 1, 3]
    np.testing.assert_array_equal(weights[0]["w"][:, kept], layers[0]["w"][:, kept])
    np.testing.assert_array_equal(weights[1]["w"][jnp.array(kept)], layers[1]["w"][jnp.array(kept)])


@pytest.mark.integration
def test_a_short_replay_forgets(env, course, monkeypatch):
    monkeypatch.setattr(dqn, "LONG", 4)
    params = jax.tree.map(lambda part: part[0], course.params)
    lanes = common.begin(env, jax.random.key(1), params)
    settings = dqn.DQNSettings(*(jnp.float32(value) for value in (1e-3, 1.0, 0.01, 2.0)))
    state = dqn.init(env, settings, jax.random.key(0))
    play = jax.jit(lambda state, lanes, key: dqn.play_round(env, settings, state, lanes, params, False, None, key)[:2])
    actions = []
    for key in jax.random.split(jax.random.key(2), 3):
        state, lanes = play(state, lanes, key)
        actions.append(np.asarray(state.replay.action))
    assert state.replay.rounds == 3
    np.testing.assert_array_equal(actions[2][1], actions[1][1])  # the second round is kept
    assert (actions[2][0] != actions[1][0]).any()  # the third one took the place of the first
    assert not actions[2][2:].any()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_configurations_are_at_most_twelve_and_settings_of_the_row(row):
    assert len(row.configurations) <= CONFIGURATIONS
    assert len({tuple(each.items()) for each in row.configurations}) == len(row.configurations)
    for each in row.configurations:
        row.settings(**row.fixed, **each)
