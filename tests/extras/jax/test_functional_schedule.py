"""Knob values of compiled schedules against the timeline."""

import re

import numpy as np
import pytest

from drift_envs.errors import ArgumentError
from drift_envs.knobs import FrozenMapping, Knob, KnobTable
from drift_envs.schedule import Timeline, load_schedule

jax = pytest.importorskip("jax", reason="needs the extra `jax`")
functional = pytest.importorskip("drift_envs.functional")

TICKS = 60
TABLE = KnobTable(
    (
        Knob("slip", 0.25, (0.0, 1.0), "a probability"),
        Knob("force", 0.5, (-2.0, 2.0), "a force"),
        Knob("count", 3, (0, 10), "a number of things", kind="integer"),
        Knob("label", "A", ("A", "B", "C", "D"), "a label", kind="string"),
        Knob("rewards", FrozenMapping({"a": 1.0, "b": 0.5}), None, "rewards", kind="mapping", parse=FrozenMapping),
    )
)


def load(*drifts, **top):
    return load_schedule({"version": 1, "drifts": list(drifts), **top}, table=TABLE)


def draw_drift(rng, ramps):
    """A drift without random parts."""
    drift = {}
    is_single = rng.random() < 0.5
    if is_single or rng.random() < 0.5:
        drift["at"] = int(rng.integers(0, 30))
    if not is_single:
        drift["every"] = int(rng.integers(1, 25))
    longest = drift.get("every", 31) - 1
    if longest >= 1 and rng.random() < 0.5:
        drift["for"] = int(rng.integers(1, longest + 1))
    most = drift["for"] // 2 if "for" in drift else 12
    if ramps and most >= 1 and rng.random() < 0.7:
        drift |= {"kind": "incremental", "over": int(rng.integers(1, most + 1))}
        curve = str(rng.choice(["linear", "sigmoid", "exponential", "steps"]))
        drift["curve"] = {"steps": int(rng.integers(1, 6))} if curve == "steps" else curve
    for knob in ("slip", "force", "count"):
        operation = str(rng.choice(["set", "add", "scale", "none"]))
        argument = float(rng.random() if operation == "set" else rng.normal())
        if operation != "none":
            drift.setdefault(operation, {})[knob] = round(argument) if operation == "set" == "count" else argument
    drift.get("set", {}).pop("count", None)
    if "kind" not in drift:
        if rng.random() < 0.4:
            drift["swap"] = {"rewards": ["a", "b"]}
        drift.setdefault("set", {})["label"] = str(rng.choice(list("ABCD")))
    else:
        drift.setdefault("set", {}).setdefault("slip", 0.5)
        for operation in ("add", "scale"):
            drift.get(operation, {}).pop("slip", None)
    return {key: value for key, value in drift.items() if value != {}}


def replay_all(schedules, ticks=None, seeds=0, replayed=TICKS):
    params, objects = functional.compile_schedules(schedules, TABLE, seeds, ticks)
    replay = jax.jit(jax.vmap(lambda each: functional.replay(each, jax.random.key(0), replayed)))
    numbers, others = map(np.asarray, replay(params))
    found = []
    for index in range(len(schedules)):
        values = {name: numbers[index, :, place] for place, name in enumerate(params.all_names)}
        for place, name in enumerate(params.all_object_names):
            values[name] = [objects[index][name][code] for code in others[index, :, place].tolist()]
        found.append(values)
    return found


@pytest.mark.parametrize("ramps", [False, True], ids=["sudden", "incremental"])
def test_values_equal_the_timeline(ramps):
    rng = np.random.default_rng(int(ramps))
    schedules = [load(*(draw_drift(rng, ramps) for _ in range(rng.integers(1, 4)))) for _ in range(40)]
    for schedule, found in zip(schedules, replay_all(schedules), strict=True):
        timeline = Timeline(schedule, TABLE, 0)
        for name, expected in zip(timeline.names, timeline.columns(0, TICKS), strict=True):
            if not TABLE[name].is_numeric:
                assert found[name] == list(expected)
            elif ramps:
                off = np.abs(found[name] - expected)
                assert (off <= 2 * np.spacing(np.abs(expected))).all(), (name, schedule.drifts)
            else:
                assert found[name].tolist() == np.asarray(expected).tolist(), (name, schedule.drifts)


RANDOM_DRIFTS = (
    {"name": "tide", "every": 9, "jitter": 3, "for": 2, "set": {"slip": 0.9}},
    {"name": "storm", "rate": 0.2, "for": 3, "set": {"label": "D"}},
    {"name": "wind", "every": 2, "walk": {"force": 0.7}},
    {"name": "turn", "rate": 0.1, "choice": {"label": ["A", "B", "C"], "count": [3, 4, 5]}},
    {"name": "mix", "at": 5, "kind": "gradual", "over": 40, "set": {"slip": 0.1}},
    {"name": "rises", "rate": 0.3, "kind": "incremental", "over": 6, "add": {"slip": 0.1}},
    {"name": "swap", "every": 4, "jitter": 1, "swap": {"rewards": ["a", "b"]}},
)


@pytest.mark.parametrize("clock", ["step", "episode_step"])
def test_with_ticks_all_values_equal_the_timeline(clock):
    rng = np.random.default_rng(0)
    schedules, seeds = [], list(range(40, 80))
    for _ in seeds:
        chosen = rng.permutation(len(RANDOM_DRIFTS))[: rng.integers(1, 5)]
        drifts = [RANDOM_DRIFTS[index] for index in chosen] + [{**draw_drift(rng, True), "name": "more"}]
        schedules.append(load(*drifts, clock=clock))
    shorter = TICKS // 2
    for ticks in (TICKS, shorter):
        for schedule, seed, found in zip(schedules, seeds, replay_all(schedules, ticks, seeds), strict=True):
            timeline = Timeline(schedule, TABLE, seed)
            for name, expected in zip(timeline.names, timeline.columns(0, ticks), strict=True):
                assert list(found[name][:ticks]) == list(expected), (name, schedule.drifts)
                assert list(found[name][ticks:]) == [expected[-1]] * (TICKS - ticks)


def test_a_tick_costs_the_same_with_any_number_of_drifts():
    sizes = []
    for count in (1, 3, 99):
        drifts = [
            {"name": f"d{at}", "at": 5 * at, "set": {"slip": at / 99, "label": "ABCD"[at % 4]}} for at in range(count)
        ]
        params = functional.compile_schedule(load(*drifts), TABLE).params
        state = functional.start_drift(params, jax.random.key(0))
        sizes.append(len(jax.make_jaxpr(functional.advance_drift)(params, state).eqns))
    assert len(set(sizes)) == 1


def test_longer_ramps_are_computed():
    curves = ["linear", "sigmoid", "exponential", {"steps": 7}]
    drifts = [{"at": 5, "kind": "incremental", "over": 5000, "curve": curve, "set": {"slip": 1}} for curve in curves]
    schedules = [load(drift, base={"slip": 0.0}) for drift in drifts]
    params, _ = functional.compile_schedules(schedules, TABLE)
    replay = jax.jit(jax.vmap(lambda each: functional.replay(each, jax.random.key(0), 5010)))
    numbers = np.asarray(replay(params)[0])[:, :, 0]
    for schedule, found in zip(schedules, numbers, strict=True):
        expected = Timeline(schedule, TABLE, 0).columns(0, 5010)[0]
        assert np.abs(found - expected).max() <= 2 * np.spacing(1.0)  # two units of the last place of the end value


def test_occurrences_at_random_have_the_rate_and_the_length():
    storms = {"name": "storms", "at": 10, "rate": 0.1, "for": 3, "set": {"slip": 1.0}}
    counts = {"name": "counts", "rate": 0.1, "add": {"force": 0.001}}
    params = functional.compile_schedule(load(storms, counts, base={"slip": 0.0, "force": 0.0}), TABLE).params
    keys = jax.random.split(jax.random.key(0), 400)
    numbers = np.asarray(jax.jit(jax.vmap(lambda key: functional.replay(params, key, 300)[0]))(keys))
    stormy = numbers[:, :, 0] == 1.0
    assert not stormy[:, :10].any()
    assert stormy[:, 20:].mean() == pytest.approx(1 - 0.9**3, abs=0.01)
    starts = stormy[:, 1:] & ~stormy[:, :-1]
    assert stormy.sum() / starts.sum() == pytest.approx((1 - 0.9**3) / (0.9**3 * 0.1), rel=0.03)
    happened = np.rint(numbers[:, -1, 1] / 0.001)
    assert happened.mean() == pytest.approx(30, abs=1)
    assert happened.var() == pytest.approx(300 * 0.1 * 0.9, rel=0.25)


def test_walks_choices_and_coins_follow_their_laws():
    drifts = [
        {"name": "wind", "every": 2, "walk": {"force": 0.01}},
        {"name": "turn", "every": 3, "choice": {"label": ["A", "B", "C"]}},
        {"name": "mix", "at": 20, "kind": "gradual", "over": 40, "set": {"slip": 1.0}},
        {"name": "pick", "every": 5, "choice": {"count": [3, 4, 5]}},
    ]
    params, _ = functional.compile_schedules([load(*drifts, base={"slip": 0.0, "force": 0.0})], TABLE)
    params = jax.tree.map(lambda part: part[0], params)
    keys = jax.random.split(jax.random.key(1), 1000)
    numbers, others = map(np.asarray, jax.jit(jax.vmap(lambda key: functional.replay(params, key, TICKS)))(keys))
    assert numbers[:, -1, 1].std() == pytest.approx(0.01 * np.sqrt(29), rel=0.08)
    assert numbers[:, 40, 0].mean() == pytest.approx(0.5, abs=0.05)
    assert set(np.unique(numbers[:, :, 0])) == {0.0, 1.0}
    labels = others[:, :, 0]
    assert (labels[:, 3] != labels[:, 2]).all()  # another than the one before
    assert (labels[:, 6] != labels[:, 5]).all()
    assert (labels[:, 4] == labels[:, 3]).all()
    assert np.bincount(labels[:, 30], minlength=3) / 1000 == pytest.approx(1 / 3, abs=0.06)
    assert (numbers[:, 5, 2] != 3).all()


def test_ramps_of_random_occurrences_overlap():
    rises = {"name": "rises", "rate": 0.3, "kind": "incremental", "over": 6, "add": {"force": 0.001}}
    params = functional.compile_schedule(load(rises, base={"force": 0.0}), TABLE).params
    numbers = np.asarray(jax.jit(lambda key: functional.replay(params, key, 200)[0])(jax.random.key(3)))[:, 1]
    steps = np.diff(numbers) * 6000
    assert np.allclose(steps, np.rint(steps))  # a sixth of a thousandth for each ramp that rises
    assert steps.max() > 2
    assert steps.mean() == pytest.approx(0.3 * 6, rel=0.3)


def test_a_seed_in_the_schedule_pins_it():
    storms = {"name": "storms", "rate": 0.3, "set": {"slip": 1.0}, "for": 1}
    params, _ = functional.compile_schedules([load(storms, seed=5), load(storms)], TABLE)
    replay = jax.vmap(lambda each, key: functional.replay(each, key, TICKS)[0], in_axes=(0, None))
    both = jax.jit(jax.vmap(replay, in_axes=(None, 0)))(params, jax.random.split(jax.random.key(0), 2))
    pinned, free = np.asarray(both)[:, 0, :, 0], np.asarray(both)[:, 1, :, 0]
    assert pinned[0].tolist() == pinned[1].tolist()
    assert free[0].tolist() != free[1].tolist()


@pytest.mark.parametrize("top", [{}, {"seed": 5}])
def test_a_jittered_drift_starts_where_the_timeline_starts_it(top):
    drift = {"name": "moved", "at": 20, "jitter": 9, "for": 7, "set": {"slip": 1.0}}
    schedule = load(drift, **top)
    starts = set()
    for seed in range(5):
        with jax.enable_x64(True):
            params = functional.compile_schedule(schedule, TABLE, seed).params
            numbers = np.asarray(functional.replay(params, jax.random.key(0), TICKS)[0])[:, 0]
        timeline = Timeline(schedule, TABLE, seed)
        assert numbers.tolist() == [timeline.values(tick)["slip"] for tick in range(TICKS)]
        starts.add(int(params.starts[1]))
    assert (len(starts) == 1) == bool(top)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "`ticks` should be given for 'unnamed', whose drift 'tide' has `jitter` for each occurrence."),
        ({"ticks": 0}, "`ticks` should be"),
        ({"ticks": 9, "seed": [1, 2]}, "`seed` should have one number for each of 1 schedules. Received [1, 2]"),
    ],
    ids=["absent", "zero", "seeds"],
)
def test_what_cannot_be_compiled_is_refused(arguments, message):
    schedule = load({"name": "tide", "every": 20, "jitter": 3, "set": {"slip": 1.0}})
    with pytest.raises(ArgumentError, match=re.escape(message)):
        functional.compile_schedules([schedule], TABLE, **arguments)


def test_no_schedule_is_refused():
    with pytest.raises(ArgumentError, match=re.escape("`schedules` should have at least one schedule. Received none")):
        functional.compile_schedules([], TABLE)
