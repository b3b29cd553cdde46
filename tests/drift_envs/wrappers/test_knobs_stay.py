"""Driven attributes of environments that nobody here wrote: read back, set again, or refused at the tick."""

import copy
import dataclasses
import pickle
import re
from types import SimpleNamespace
from typing import NamedTuple

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils import EzPickle
from hypothesis import given, settings
from hypothesis import strategies as st

from drift_envs.attributes.declarations import AttributeKnob
from drift_envs.attributes.knobs import AttributeKnobs
from drift_envs.attributes.path import AttributePath
from drift_envs.errors import DrivenKnobError, KnobError, ScheduleError
from drift_envs.knobs import Knob, KnobTable
from drift_envs.wrappers import DriftWrapper
from drift_envs.wrappers.twin import inside, snapshot, twin

CAUSES = "the environment's own `reset` or `step` sets it, the environment is a copy made by its constructor"


def plan(attribute="wind", *, clock="episode", base=None, spec=None, **sets):
    """A schedule that drives the attribute: `t3=2.0` sets it at tick 3."""
    drifts = [{"name": f"d{tick[1:]}", "at": int(tick[1:]), "set": {"knob": value}} for tick, value in sets.items()]
    knobs = {"knob": {"attribute": attribute, **({"bounds": [0, 90]} if spec is None else spec)}}
    return {"version": 1, "name": "p", "clock": clock, "knobs": knobs, "base": base or {}, "drifts": drifts}


class Field(gym.Env):
    """Pays the wind."""

    observation_space = gym.spaces.Box(-99, 99, (1,), np.float64)
    action_space = gym.spaces.Discrete(2)

    def __init__(self):
        self.wind = 1.0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.array([self.wind]), {}

    def step(self, action):
        return np.array([self.wind]), float(self.wind), False, False, {}


class Built(Field, EzPickle):
    """Copies are made by the constructor."""

    def __init__(self, wind=1.0):
        EzPickle.__init__(self, wind)
        self.wind = wind


class BuiltAtReset(Built):
    """Its engine is made by the first reset."""

    def reset(self, *, seed=None, options=None):
        if not hasattr(self, "engine"):
            self.engine = SimpleNamespace(wind=1.0)
        return super().reset(seed=seed)

    def step(self, action):
        return np.zeros(1), float(self.engine.wind), False, False, {}


class Declared(Field, EzPickle):
    """Declares its knobs itself, but is made anew by its constructor, and sets the wind in `reset`."""

    knobs = KnobTable((Knob("knob", 1.0, (0.0, 90.0), "wind"),))

    def __init__(self):
        EzPickle.__init__(self)
        self.wind = 1.0

    def set_knobs(self, values):
        self.wind = values["knob"]

    def read_knobs(self):
        return {"knob": self.wind}

    def reset(self, *, seed=None, options=None):
        self.wind = 1.0
        return super().reset(seed=seed)


def pays(env, episodes=1):
    return [(env.reset(), env.step(0)[1])[1] for _ in range(episodes)]


def copies(env):
    second = twin(env)
    second.reset()
    return [copy.deepcopy(env), pickle.loads(pickle.dumps(env)), inside(second)]


@pytest.mark.parametrize("base", [None, {"knob": 7.0}], ids=["drift", "base"])
@pytest.mark.parametrize("kind", [Built, BuiltAtReset, Declared])
def test_copies_made_by_a_constructor_keep_the_drift(kind, base):
    schedule = plan("engine.wind" if kind is BuiltAtReset else "wind", base=base, t1=5.0, t3=2.0)
    if kind is Declared:
        del schedule["knobs"]
    plain = kind()
    plain.reset(seed=0)
    env = DriftWrapper(plain, schedule)
    env.reset(seed=0)
    first = copies(env)
    assert [one.step(0)[1] for one in first if kind is not BuiltAtReset] in ([7.0] * 3, [1.0] * 3, [])
    second = twin(env)
    assert pays(env) == [5.0]
    for one in copies(env)[:2]:
        if kind is not BuiltAtReset:
            assert one.drift_state.knobs["knob"] == 5.0
        assert pays(one, 3) == [5.0, 2.0, 2.0]
    assert pays(second) == [5.0]
    assert pays(env, 2) == [5.0, 2.0]
    assert pays(second) == [2.0]


class Resets(Field):
    """Its `reset` sets the wind."""

    def reset(self, *, seed=None, options=None):
        self.wind = 1.0
        return super().reset(seed=seed)


class ResetsWithASeed(Field):
    """Its `reset` sets the wind if there is a seed."""

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self.wind = 1.0
        return super().reset(seed=seed)


@pytest.mark.parametrize("kind", [Resets, ResetsWithASeed])
def test_what_reset_sets_is_set_again(kind):
    env = DriftWrapper(kind(), plan(base={"knob": 3.0}, t2=6.0))
    env.reset(seed=4)
    assert [env.step(0)[1], *pays(env, 3)] == [3.0, 3.0, 6.0, 6.0]
    env.reset(seed=5, options={"drift_clock": "continue"})
    assert env.step(0)[1] == 6.0
    assert [(change.tick, change.new) for change in env.drift_log] == [(2, 6.0)]


def test_a_method_without_an_attribute_is_called_again():
    class Console(gym.Env):
        """A seeded reset loads the game anew; the mode is taken at a reset alone, as in ALE."""

        observation_space, action_space = gym.spaces.Discrete(9), gym.spaces.Discrete(2)

        def __init__(self):
            self._next = self._mode = 0

        def choose(self, mode):
            self._next = mode

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            if seed is not None:
                self._next = 0
            self._mode = self._next
            return self._mode, {}

        def step(self, action):
            return self._mode, float(self._mode), False, False, {}

    env = DriftWrapper(
        Console(), plan("mode", spec={"kind": "integer", "setter": "choose", "default": 0, "bounds": [0, 5]}, t1=4)
    )
    assert env.reset(seed=0)[0] == 0
    assert env.reset(seed=1, options={"drift_clock": "continue"})[0] == 4
    assert env.step(0)[1] == 4.0
    assert pays(copy.deepcopy(env)) == [4.0]


class Stubborn(Field):
    """Takes no value."""

    @property
    def wind(self):
        return 1.0

    @wind.setter
    def wind(self, value):
        pass


class Cuts(Field):
    """Cuts the value at 2."""

    @property
    def wind(self):
        return self._wind

    @wind.setter
    def wind(self, value):
        self._wind = min(value, 2.0)


class Steps(Field):
    """Its `step` sets the wind."""

    def step(self, action):
        result = super().step(action)
        self.wind = 1.0
        return result


@pytest.mark.parametrize(("kind", "is_at_reset"), [(Stubborn, True), (Cuts, True), (Steps, False)])
@pytest.mark.parametrize("clock", ["episode", "step"])
def test_what_does_not_stay_is_refused_at_that_tick(kind, is_at_reset, clock):
    env = DriftWrapper(kind(), plan(clock=clock, t3=5.0))
    env.reset(seed=0)

    def advance():
        for _ in range(5):
            if clock == "episode":
                env.reset()
            env.step(0)

    with pytest.raises(DrivenKnobError, match=re.escape("was lost at tick 3")) as error:
        advance()
    assert "It was set to 5.0 and is" in str(error.value)
    assert CAUSES in str(error.value)
    assert env.drift_state.tick == 3
    assert not list(env.drift_log)


@pytest.mark.parametrize("clock", ["episode", "step", "episode_step"])
def test_setting_from_outside_is_refused_at_that_tick(clock):
    env = DriftWrapper(Field(), plan(clock=clock, t1=5.0))
    env.reset(seed=0)
    env.step(0)
    env.unwrapped.wind = 3.0
    with pytest.raises(DrivenKnobError, match=r"It was set to .* and is .* now; it was lost at tick"):
        env.step(0)
    env = DriftWrapper(Field(), plan(t1=5.0))
    env.reset(seed=0)
    env.reset()
    env.unwrapped.wind = 3.0
    with pytest.raises(DrivenKnobError, match=r"It was set to 5.0 and is 3.0 now; it was lost at tick 1"):
        env.reset()


def test_a_derived_attribute_follows_a_free_part_and_is_held():
    def cart(clock="episode"):
        env = DriftWrapper(
            gym.make("CartPole-v1").unwrapped,
            {"version": 1, "name": "p", "clock": clock, "drifts": [{"at": 1, "set": {"masspole": 0.4}}]},
        )
        env.reset(seed=0)
        return env

    env = cart()
    env.unwrapped.masscart = 2.0
    env.step(0)
    assert env.unwrapped.total_mass == 2.1
    env.unwrapped.total_mass = 9.0
    with pytest.raises(DrivenKnobError, match="`total_mass` is driven by the schedule"):
        env.step(0)


# --- shared configurations -------------------------------------------------------------------------------------------

DEFAULTS = {"physics": {"wind": 1.0, "gusts": [1.0, 2.0]}, "seen": True}
TABLE = np.array([1.0, 2.0])


@dataclasses.dataclass
class Config:
    wind: float = 1.0
    physics: dict = dataclasses.field(default_factory=lambda: {"wind": 1.0})


class Plain:
    def __init__(self):
        self.wind = 1.0


SETTINGS = Plain()
CONFIG = Config()


class Vehicle:
    def __init__(self, config):
        self.config = config


class Shares(Field):
    nested = DEFAULTS
    values = TABLE
    of_class = Config()

    def __init__(self, config=DEFAULTS, given=CONFIG):
        super().__init__()
        self.config, self.given, self.settings, self.table = config, given, SETTINGS, TABLE
        self.defaults, self.physics = DEFAULTS, DEFAULTS["physics"]
        self.namespace = Config
        self.vehicles = [Vehicle(config["physics"])]

    @property
    def shown(self):
        return self.config


SHARED = [
    'config["physics"]["wind"]',
    'config["physics"]["gusts"][1]',
    'nested["physics"]["wind"]',
    'physics["wind"]',
    'shown["physics"]["wind"]',
    "values[1]",
    "table[0]",
    "of_class.wind",
    'of_class.physics["wind"]',
    "given.wind",
    'given.physics["wind"]',
    "settings.wind",
    "namespace.wind",
    'vehicles[0].config["wind"]',
]


@pytest.mark.parametrize("attribute", SHARED)
def test_a_shared_configuration_drifts_in_one_environment_alone(attribute):
    before = copy.deepcopy((DEFAULTS, TABLE.tolist(), Config.wind, vars(SETTINGS), CONFIG, Shares.of_class))
    path = AttributePath.parse(attribute)
    other = Shares()
    old = path.read(other)
    env = DriftWrapper(Shares(), plan(attribute, base={"knob": 6.0}, t2=8.0))
    env.reset(seed=0)
    assert (path.read(env.unwrapped), path.read(other), path.read(Shares())) == (6.0, old, old)
    env.reset()
    env.reset()
    made = copy.deepcopy(env)
    assert (path.read(env.unwrapped), path.read(made.unwrapped), path.read(Shares())) == (8.0, 8.0, old)
    assert DriftWrapper(Shares(), plan(attribute)).knob_table["knob"].default == old
    assert before == (DEFAULTS, TABLE.tolist(), Config.wind, vars(SETTINGS), CONFIG, Shares.of_class)


def test_parts_that_share_a_configuration_still_share_it():
    env = DriftWrapper(Shares(), plan('config["physics"]["wind"]', base={"knob": 6.0}))
    env.reset(seed=0)
    assert env.unwrapped.vehicles[0].config["wind"] == env.unwrapped.physics["wind"] == 6.0
    assert DEFAULTS["physics"]["wind"] == 1.0


# --- configurations that cannot be changed ---------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Settled:
    """Made anew with another value; what is derived from it follows."""

    wind: float = 1.0
    inner: "Settled | None" = None
    table: dict = dataclasses.field(default_factory=lambda: {"wind": 1.0})
    double: float = dataclasses.field(init=False, default=0.0)

    def __post_init__(self):
        object.__setattr__(self, "double", 2 * self.wind)


class Pair(NamedTuple):
    wind: float
    table: dict


OUTER, PAIR = Settled(inner=Settled()), Pair(1.0, {"wind": 1.0})


class Holds(Field):
    def __init__(self):
        super().__init__()
        self.outer, self.own, self.pair, self.pairs = OUTER, Settled(), PAIR, (PAIR, PAIR)
        self.listed = [Settled(), self.own]
        self.vehicle = Vehicle(self.own)


@pytest.mark.parametrize(
    "attribute",
    [
        "own.wind",
        "outer.inner.wind",
        'outer.table["wind"]',
        'outer.inner.table["wind"]',
        "pair.wind",
        'pair.table["wind"]',
        "pairs[1].wind",
        'pairs[0].table["wind"]',
        "listed[0].wind",
    ],
)
def test_a_frozen_configuration_is_made_anew_in_one_environment_alone(attribute):
    before, path, other = copy.deepcopy((OUTER, PAIR)), AttributePath.parse(attribute), Holds()
    env = DriftWrapper(Holds(), plan(attribute, t1=4.0, t2=5.0))
    found = []
    for number in range(4):
        env.reset(seed=None if number else 0)
        found.append(path.read(env.unwrapped))
    assert found == [1.0, 4.0, 5.0, 5.0]
    assert path.read(copy.deepcopy(env).unwrapped) == 5.0
    assert path.read(other) == path.read(Holds()) == 1.0
    assert before == (OUTER, PAIR)
    assert len(env.drift_log) == 2


def test_all_parts_have_a_frozen_configuration_that_was_made_anew():
    env = DriftWrapper(Holds(), plan("own.wind", base={"knob": 6.0}))
    env.reset(seed=0)
    inner = env.unwrapped
    assert inner.vehicle.config is inner.own
    assert (inner.own.wind, inner.own.double) == (6.0, 12.0)


class Guarded(Field):
    def __init__(self):
        super().__init__()
        self._speed = 1.0

    @property
    def fixed(self):
        return 1.0

    @property
    def broken(self):
        raise RuntimeError("not connected")

    @property
    def speed(self):
        return self._speed

    @speed.setter
    def speed(self, value):
        if value > 3:
            raise RuntimeError("too fast")
        self._speed = value


def test_properties_that_refuse_are_told_by_name_and_value():
    for attribute, message in (
        ("fixed", "`fixed` should be an attribute that can be set. Received a read-only property"),
        ("broken", "`broken` of Guarded can't be read: RuntimeError: not connected"),
    ):
        with pytest.raises(ScheduleError, match=re.escape(message)):
            DriftWrapper(Guarded(), plan(attribute))
    env = DriftWrapper(Guarded(), plan("speed", t1=2.0, t2=4.0))
    env.reset(seed=0)
    env.reset()
    with pytest.raises(KnobError, match=re.escape("`speed` can't be set to 4.0: RuntimeError: too fast")):
        env.reset()


# --- integer arrays --------------------------------------------------------------------------------------------------


class Counts(Field):
    def __init__(self):
        super().__init__()
        self.small = np.array([10, 20], np.uint8)
        self.signed = np.array([1, -2, 3], np.int16)
        self.one = np.int8(5)
        self.half = np.array([1.0, np.inf], np.float16)
        self.single = np.float32(1.0)


@pytest.mark.parametrize(
    ("attribute", "spec", "written", "held"),
    [
        ("small", {"kind": "array"}, [1.9, 2.5], (2, 2)),
        ("signed", {"kind": "array"}, [-1.6, 0.4, 3.5], (-2, 0, 4)),
        ("small[1]", {"kind": "float", "bounds": [0, 300]}, 7.7, 8),
        ("one", {"kind": "float", "bounds": [-9, 9]}, -3.7, -4),
        ("signed", {"kind": "factor", "bounds": [-9, 9]}, 1.4, 1.4),
    ],
)
def test_integer_arrays_take_rounded_numbers(attribute, spec, written, held):
    env = DriftWrapper(Counts(), plan(attribute, spec=spec, t1=written))
    env.reset(seed=0)
    env.reset()
    assert env.drift_state.knobs["knob"] == held
    assert env.drift_log[0].new == held
    if spec["kind"] != "factor":
        assert AttributePath.parse(attribute).read(env.unwrapped) == held
    else:
        assert env.unwrapped.signed.tolist() == [1, -3, 4]


@pytest.mark.parametrize(
    ("attribute", "spec", "written", "message"),
    [
        ("small", {"kind": "array"}, [300, 1], "should be in the interval [0, 255]. Received [300, 1]"),
        ("small", {"kind": "array", "bounds": [-5, 999]}, [-1, 1], "should be in the interval [0, 255]"),
        ("small[0]", {"kind": "float", "bounds": [-5, 999]}, 256, "should be in the interval [0, 255]. Received 256"),
        ("one", {"bounds": [-999, 999]}, 200, "should be in the interval [-128, 127]. Received 200"),
        ("small", {"kind": "factor", "bounds": [0, 100]}, 13, "should be in the interval [0.0, 12.75]. Received 13"),
        ("half", {"kind": "array"}, [7e4, 1], "should be in the interval [-65504.0, 65504.0]. Received [70000.0, 1]"),
        ("half[0]", {"bounds": [0, 1e9]}, 7e4, "should be in the interval [0.0, 65504.0]. Received 70000"),
        (
            "half",
            {"kind": "factor", "bounds": [0, 1e9]},
            7e4,
            "should be in the interval [0.0, 65504.0]. Received 70000",
        ),
        ("single", {"bounds": [0, 1e99]}, 1e40, "should be in the interval [0.0, 3.4028234663852886e+38]"),
    ],
)
def test_numbers_beyond_the_type_of_an_array_are_refused_at_load(attribute, spec, written, message):
    with pytest.raises(ScheduleError, match=re.escape(message)):
        DriftWrapper(Counts(), plan(attribute, spec=spec, t1=written))


# --- any path, any value ---------------------------------------------------------------------------------------------

PATHS = {
    "wind": 1.0,
    "engine.wind": 1.0,
    "engine.list[1]": 2.0,
    'table["a"]["b"]': 3.0,
    "engine.pair[0]": 4.0,
    "numbers[1, 0]": 3.0,
    "single[2]": 2.0,
}


class Many(Field, EzPickle):
    def __init__(self):
        EzPickle.__init__(self)
        self._fill()

    def _fill(self):
        self.wind = 1.0
        self.engine = SimpleNamespace(wind=1.0, list=[1.0, 2.0], pair=(4.0, 5.0))
        self.table = {"a": {"b": 3.0}}
        self.numbers = np.array([[1.0, 2.0], [3.0, 4.0]])
        self.single = np.arange(3, dtype=np.float32)

    def reset(self, *, seed=None, options=None):
        self._fill()
        return super().reset(seed=seed)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(sorted(PATHS)), st.lists(st.floats(0, 90, width=32), min_size=2, max_size=4), st.booleans())
def test_any_path_has_the_value_of_its_tick_everywhere(attribute, values, is_saved):
    env = DriftWrapper(
        Many(), plan(attribute, clock="step", **{f"t{2 * tick + 1}": value for tick, value in enumerate(values)})
    )
    path = AttributePath.parse(attribute)
    env.reset(seed=0)
    for tick in range(2 * len(values) + 1):
        if tick % 3 == 1:
            env.reset()
        if is_saved and tick == 2:
            saved = snapshot(env)
        env.step(0)
        expected = PATHS[attribute] if tick == 0 else values[min((tick - 1) // 2, len(values) - 1)]
        for one in (env, copy.deepcopy(env)):
            assert path.read(one.unwrapped) == one.drift_state.knobs["knob"] == expected
    if is_saved:
        saved.restore()
        assert path.read(env.unwrapped) == env.drift_state.knobs["knob"] == values[-1]
        env.step(0)


def test_a_restored_state_leaves_the_knobs_of_others_alone():
    class Moves(Field):
        def __init__(self):
            super().__init__()
            self.place, self.masses = 0, {"pole": 1.0}

        def step(self, action):
            self.place += 1
            return super().step(action)

    env = DriftWrapper(Moves(), plan('masses["pole"]', spec={"kind": "factor", "bounds": [0, 9]}, t1=3.0, t2=5.0))
    env.reset(seed=0)
    env.step(0)
    saved = snapshot(env)
    env.reset()
    env.step(0)
    saved.restore()
    assert (env.unwrapped.place, env.unwrapped.masses, env.drift_state.knobs["knob"]) == (1, {"pole": 3.0}, 3.0)
    env.reset()
    assert env.unwrapped.masses == {"pole": 5.0}


def test_knobs_are_what_they_were_when_what_may_change_them_fails():
    env = DriftWrapper(Field(), plan(base={"knob": 4.0}))
    env.reset(seed=0)

    def fail():
        env.unwrapped.wind = 9.0
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"), env.unchanged():
        fail()
    assert env.unwrapped.wind == 4.0


def test_knobs_by_hand_refuse_what_an_integer_array_does_not_hold():
    env = Counts()
    knobs = AttributeKnobs(env, [AttributeKnob("one", "one", bounds=(-9, 9))])
    with pytest.raises(KnobError, match="`one` can't be set to 1000"):
        knobs.set_knobs({"one": 1000})
