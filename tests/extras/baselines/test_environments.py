"""The environments of the board: drifts that hurt, references, and lifetimes that are functions of the seed."""

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="needs the extra `baselines`")
pytest.importorskip("gymnax", reason="needs the extra `baselines`")
pytest.importorskip("optax", reason="needs the extra `baselines`")
environments = pytest.importorskip("baselines.environments")
references = pytest.importorskip("baselines.references")


@pytest.fixture(scope="module", params=environments.ENVIRONMENTS)
def env(request):
    return environments.make_env(request.param)


def test_each_drift_hurts_the_optimal_policy(env):
    scores = references.play_plans(env, environments.draw_phases(env, 3)[:6])
    optimum = np.diag(scores)
    assert optimum.min() > 0.85
    following = scores[np.arange(1, 6), np.arange(5)]  # in each phase, the policy of the one before
    assert (following < 0.1 * optimum[1:]).all()
    assert scores[0, 1] < 0.1  # the first phase returns after the second
    found = references.references_of(scores, environments.REGIMES["recurring"])
    assert found.fixed < 0.6 < found.optimum


def test_lifetimes_are_functions_of_the_seed(env):
    one, same, other = (environments.draw_phases(env, seed) for seed in (1, 1, 4))
    assert one == same
    assert len(one) == environments.VALUES
    if env.tabular:
        assert one != other


def test_one_side_never_meets_the_other(env):
    one, both = ([env.draw(np.random.default_rng(seed), 3, side) for seed in range(8)] for side in (False, True))
    seen = {repr(knobs) for phases in one for knobs in phases}
    assert {repr(knobs) for phases in both for knobs in phases} - seen
    if env.name == "holes":
        assert all(knobs["map"][0][1] == "H" for phases in one for knobs in phases)
    if env.pays_each_step:
        assert len(seen) == 1
    # phases that are equal to each other compile, too
    assert env.compile([environments.schedule_of(phases, [0, 100, 200]) for phases in one]) is not None


@pytest.mark.parametrize("regime", ["recurring", "rush"])
def test_drifts_come_when_the_course_says(regime):
    env, plan = environments.make_env("corners"), environments.REGIMES[regime]
    course = environments.make_course(env, plan, [0, 7])
    starts = np.flatnonzero(course.told[1])
    assert starts.tolist() == plan.starts[1:].tolist()
    params = jax.tree.map(lambda part: part[1], course.params)

    def tick(state, key):
        paid = env.functional.knob_values(state, params)["goal_rewards"]
        return env.functional.step(key, state, 0, params)[1], paid

    state = env.functional.reset(jax.random.key(0), params)[1]
    keys = jax.random.split(jax.random.key(1), plan.length * env.ticks)
    paid = np.asarray(jax.lax.scan(tick, state, keys)[1])
    changes = np.flatnonzero(np.diff(paid)) + 1
    assert changes.tolist() == (starts * env.ticks).tolist()
    facts = np.asarray(course.facts[1])[:, :-1]
    assert (np.flatnonzero(np.abs(np.diff(facts, axis=0)).sum(1)) + 1).tolist() == starts.tolist()


def test_all_regimes_of_an_environment_share_a_compilation(env):
    def form(regime):
        course = environments.make_course(env, regime, [0, 1])
        return jax.tree.structure(course.params), [(part.shape, part.dtype) for part in jax.tree.leaves(course.params)]

    forms = [form(regime) for regime in environments.REGIMES.values()]
    assert all(each == forms[0] for each in forms)


def test_regimes_fit_the_recorded_bins_and_the_listed_drifts():
    for regime in environments.REGIMES.values():
        assert all(rounds % regime.bin == 0 for rounds in regime.rounds)
        assert max(regime.order) < environments.VALUES
        assert len(regime.order) <= environments.LISTED
