"""Environments whose parts share memory, or keep the environment in a function: all of it drifts, also in copies."""

import copy
import functools
import pickle
import re
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils import EzPickle
from gymnasium.wrappers import TransformReward

from drift_envs.attributes.shared_parts import shared_arrays
from drift_envs.errors import ArgumentError
from drift_envs.knobs import Knob, KnobTable
from drift_envs.wrappers import DriftWrapper
from drift_envs.wrappers.twin import snapshot, twin

BOUNDS, ARRAY, FACTOR = {"bounds": [0, 90]}, {"kind": "array"}, {"kind": "factor", "bounds": [0, 90]}
ROW = np.arange(4.0)


class Pays(gym.Env):
    """Pays what `pay` reads."""

    observation_space, action_space = gym.spaces.Box(-99, 99, (2,), np.float64), gym.spaces.Discrete(2)
    path, spec, values = "force", BOUNDS, (5.0, 7.0)

    def __init__(self):
        self.force = 2.0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2), {}

    def step(self, action):
        return np.zeros(2), float(self.pay()), False, False, {}


def drifting(env):
    """Two drifts of its attribute, at ticks 1 and 2."""
    first, second = env.unwrapped.values
    drifts = [{"name": "a", "at": 1, "set": {"knob": first}}, {"name": "b", "at": 2, "set": {"knob": second}}]
    schedule = {"version": 1, "name": "p", "drifts": drifts}
    if not isinstance(env, DeclaresItsKnobs):
        schedule["knobs"] = {"knob": {"attribute": env.unwrapped.path, **env.unwrapped.spec}}
    return DriftWrapper(env, schedule)


# --- arrays that share memory ----------------------------------------------------------------------------------------


class PartIsDriven(Pays):
    path = "force[0]"

    def __init__(self):
        self.table = np.array([1.0, 2.0, 3.0])
        self.force = self.table[1:2]

    def pay(self):
        return self.table[1]


class WholePartIsDriven(PartIsDriven):
    path, spec, values = "force", ARRAY, ([5.0], [7.0])


class TableIsDriven(PartIsDriven):
    path = "table[1]"

    def pay(self):
        return self.force[0]


class WholeTableIsDriven(TableIsDriven):
    path, spec, values = "table", FACTOR, (2.5, 3.5)


class RowOfATableWithoutAName(Pays):
    path = "row[1]"

    def __init__(self):
        self.table = np.array([0.0, 2.0, 4.0, 6.0]).reshape(2, 2)
        self.row = self.table[0]

    def pay(self):
        return self.table[0, 1]


class ColumnBackwards(Pays):
    path = "engine.parts[1][0]"

    def __init__(self):
        table = np.asfortranarray([[1.0, 3.0], [1.0, 2.0]])
        self.engine = SimpleNamespace(parts=(table, table[::-1, 1]), table=[{"all": table}])

    def pay(self):
        return self.engine.table[0]["all"][1, 1]


class PartsOfPartsWithoutAName(Pays):
    path = "first[2]"

    def __init__(self):
        buffer = np.array([0.0, 0.0, 2.0, 0.0, 0.0])
        self.first, self.last, self.apart = buffer[:3], buffer[2:4], buffer[4:]

    def pay(self):
        return self.last[0]


class FieldOfRecords(Pays):
    path = "forces[1]"

    def __init__(self):
        self.bodies = np.array([(1, 1.0), (2, 2.0)], [("id", "i4"), ("force", "f8")])
        self.forces = self.bodies["force"]

    def pay(self):
        return self.bodies[1]["force"]


class TableOfTheClass(PartIsDriven):
    table = np.array([1.0, 2.0, 3.0])

    def __init__(self):
        self.force = self.table[1:2]


class ViewAtEachAccess(Pays):
    path = "force[0]"

    def __init__(self):
        self._table = np.array([1.0, 2.0])

    @property
    def force(self):
        return self._table[1:]

    def pay(self):
        return self._table[1]


class SameArrayInContainers(Pays):
    path = "table[0]"

    def __init__(self):
        self.table = np.array([2.0])
        self.found = {"in": [(self.table,)]}

    def pay(self):
        return self.found["in"][0][0][0]


class SameArrayInContainersAsAWhole(SameArrayInContainers):
    path, spec, values = "table", ARRAY, ([5.0], [7.0])


class MadeByItsConstructor(PartIsDriven, EzPickle):
    def __init__(self):
        EzPickle.__init__(self)
        super().__init__()


class DeclaresItsKnobs(PartIsDriven):
    knobs = KnobTable((Knob("knob", 2.0, (0.0, 90.0), "force"),))

    def set_knobs(self, values):
        self.force[0] = values["knob"]

    def read_knobs(self):
        return {"knob": float(self.force[0])}


VIEWS = [
    PartIsDriven,
    WholePartIsDriven,
    TableIsDriven,
    WholeTableIsDriven,
    RowOfATableWithoutAName,
    ColumnBackwards,
    PartsOfPartsWithoutAName,
    FieldOfRecords,
    TableOfTheClass,
    ViewAtEachAccess,
    SameArrayInContainers,
    SameArrayInContainersAsAWhole,
    MadeByItsConstructor,
    DeclaresItsKnobs,
]


# --- functions that keep the environment -----------------------------------------------------------------------------


class InAClosure(Pays):
    def __init__(self):
        super().__init__()
        self.pay = lambda: self.force


class AsADefault(Pays):
    def __init__(self):
        super().__init__()
        self.pay = lambda env=self, *, times=1: times * env.force


class AsAKeywordsDefault(Pays):
    def __init__(self):
        super().__init__()
        self.pay = lambda *, env=self: env.force


class BoundToIt(Pays):
    def __init__(self):
        super().__init__()
        self.pay = self.read

    def read(self):
        return self.force


class Partial(BoundToIt):
    def __init__(self):
        super().__init__()
        self.pay = functools.partial(lambda times: times * self.force, 1)


class Cached(BoundToIt):
    def __init__(self):
        super().__init__()
        self.cached = functools.lru_cache(maxsize=4)(self.read_at)

    def read_at(self, tick):
        return self.force

    def reset(self, *, seed=None, options=None):
        self.cached.cache_clear()
        return super().reset(seed=seed)

    def pay(self):
        return self.cached(0)


class InAFunctionOfAFunction(Pays):
    def __init__(self):
        super().__init__()
        engine = SimpleNamespace(force=2.0)
        parts = [{"engine": engine}]
        self.engine, self.names = engine, []

        def read(depth=2):
            return parts[0]["engine"].force if depth == 0 else read(depth - 1)

        def append(name):
            parts.append(name)

        self.pays = {"all": [lambda: read()], "append": append}

    path = "engine.force"

    def pay(self):
        self.pays["all"][0]()
        return self.pays["all"][0]()


class KeepsTheConfiguration(Pays):
    path = 'config["force"]'

    def __init__(self):
        config = {"force": 2.0}
        self.config, self.pay = config, lambda: config["force"]


class KeepsItsArray(Pays):
    path, spec, values = "forces", ARRAY, ([5.0], [7.0])

    def __init__(self):
        forces = np.array([2.0])
        self.forces, self.pay = forces, lambda: forces[0]


class HasAPartThatHasIt(Pays):
    def __init__(self):
        super().__init__()
        self.engine = SimpleNamespace(env=self)

    def pay(self):
        return self.engine.env.force


FUNCTIONS = [
    InAClosure,
    AsADefault,
    AsAKeywordsDefault,
    BoundToIt,
    Partial,
    Cached,
    InAFunctionOfAFunction,
    KeepsTheConfiguration,
    KeepsItsArray,
    HasAPartThatHasIt,
]


@pytest.mark.parametrize("kind", VIEWS + FUNCTIONS)
def test_all_that_shares_it_drifts(kind):
    def start():
        env = drifting(kind())
        env.reset(seed=0)
        return env

    def pays(one):
        one.reset()
        return one.step(0)[1]

    env, other = start(), kind()
    assert [env.step(0)[1], pays(env), pays(env)] == [2.0, 5.0, 7.0]
    assert [pays(other), pays(kind())] == [2.0, 2.0]

    env = start()
    made = copy.deepcopy(copy.deepcopy(env))
    assert pays(made) == 5.0
    again = copy.deepcopy(made)
    assert [pays(made), pays(again), env.step(0)[1], pays(env)] == [7.0, 7.0, 2.0, 5.0]

    env = start()
    second = twin(env)
    assert pays(second) == 2.0
    pays(env)
    assert [pays(second), env.step(0)[1]] == [5.0, 5.0]
    saved = snapshot(env)
    assert pays(env) == 7.0
    saved.restore()
    assert [env.step(0)[1], copy.deepcopy(env).step(0)[1]] == [7.0, 7.0]
    saved.restore(second)
    assert pays(second) == 7.0

    if kind in VIEWS:
        env = start()
        made = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(env))))
        assert [pays(made), pays(copy.deepcopy(made)), pays(made), env.step(0)[1]] == [5.0, 7.0, 7.0, 2.0]

    vector = gym.vector.SyncVectorEnv([start, start])
    vector.reset()
    assert vector.step([0, 0])[1].tolist() == [5.0, 5.0]
    assert pays(vector.envs[0]) == 7.0
    assert vector.envs[1].step(0)[1] == 5.0


def test_what_a_module_has_is_left_alone():
    class RowOfAModule(Pays):
        path = "force[1]"

        def __init__(self):
            self.force = ROW[1:3]

        def pay(self):
            return self.force[1]

    env = drifting(RowOfAModule())
    env.reset(seed=0)
    env.reset()
    assert (env.step(0)[1], ROW.tolist(), RowOfAModule().pay()) == (5.0, [0.0, 1.0, 2.0, 3.0], 2.0)


def test_an_array_that_was_observed_stays_what_it_was():
    class ShowsIt(WholePartIsDriven):
        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return self.force, {}

    env = drifting(ShowsIt())
    seen = [env.reset(seed=0)[0], env.reset()[0], env.reset()[0]]
    assert [one.tolist() for one in seen] == [[2.0], [5.0], [7.0]]


def test_arrays_that_share_no_memory_are_not_joined():
    class Apart(Pays):
        def __init__(self):
            super().__init__()
            self.table, buffer = np.arange(6.0), np.arange(9.0)
            self.first, self.last, self.equal = buffer[:3], buffer[6:], self.table.copy()
            self.objects = np.array([self, None], object)
            self.nothing = self.table[:0]

    assert shared_arrays(Apart()) == []


def test_functions_of_wrappers_inside_follow():
    def wrapped():
        base = InAClosure()
        return drifting(TransformReward(base, lambda reward: 10 * reward + base.force))

    env = wrapped()
    env.reset(seed=0)
    made = copy.deepcopy(env)
    second = twin(env)
    second.reset()
    made.reset()
    assert (made.step(0)[1], env.step(0)[1], second.step(0)[1]) == (55.0, 22.0, 22.0)
    env.reset()
    assert second.step(0)[1] == 55.0


def test_functions_that_share_a_variable_still_do():
    class Counts(Pays):
        def __init__(self):
            super().__init__()
            env = self

            def swap(other):
                nonlocal env
                env = other

            self.pay, self.swap, self.own = lambda: env.force, swap, lambda: env

    env = drifting(Counts())
    env.reset(seed=0)
    made = copy.deepcopy(env)
    assert made.unwrapped.own() is made.unwrapped
    made.unwrapped.swap(None)
    assert made.unwrapped.own() is None
    assert env.unwrapped.own() is env.unwrapped


def test_functions_without_the_environment_stay_the_same():
    def announce(env, reward):
        return reward

    class Harmless(Pays):
        def __init__(self):
            super().__init__()
            self.announce, self.scale, self.handlers = announce, np.float64, {"close": print}

        def pay(self):
            return self.announce(self, self.force)

    env = drifting(Harmless())
    env.reset(seed=0)
    made = copy.deepcopy(env).unwrapped
    assert made.announce is announce
    assert made.handlers == {"close": print}


AROUND = InAClosure()


@pytest.mark.parametrize("make", [copy.deepcopy, twin])
@pytest.mark.parametrize("where", ["global", "wrapper"])
def test_functions_that_no_copy_can_change_are_refused(make, where):
    if where == "global":
        env = drifting(TransformReward(AROUND, lambda reward: reward + AROUND.force))
        variable = "AROUND"
    else:
        base = Pays()
        base.pay = lambda: around.unwrapped.force
        around = gym.wrappers.TimeLimit(drifting(base), 9)
        variable, env = "around", around.env
    env.reset(seed=0)
    message = (
        f"should read `force` from an argument or an attribute: it keeps reading the original environment, its "
        f"variable `{variable}`, in copies and twins. Build a second instance by the constructor instead"
    )
    with pytest.raises(ArgumentError, match=re.escape(message)):
        make(env)
