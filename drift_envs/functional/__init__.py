"""Drifting environments as pure functions for JAX (`jit`, `vmap`, `scan`); needs the extra `jax`.

* `FunctionalLake`, `FunctionalCar`, `FunctionalCarContinuous` - the environments; `ENVIRONMENTS` by id
* `FunctionalEnv`, `Lifetime` - the base of all environments, and their state
* `drift` - makes a drifting environment of one of gymnax, a `DriftedEnv`
* `compile_schedule`, `compile_schedules` - schedules as arrays of equal shapes
* `CompiledSchedule`, `DriftParams`, `Features` - what they return
* `start_drift`, `advance_drift`, `follow_clock`, `replay`, `DriftCarry` - knob values, tick by tick
"""

from drift_envs.errors import MissingDependencyError

try:
    import jax  # noqa: F401
except ImportError as error:
    raise MissingDependencyError('`jax` is not installed, run `pip install "drift-envs[jax]"`') from error

from drift_envs.functional.base import FunctionalEnv, Lifetime
from drift_envs.functional.car import CarParams, CarWorld, FunctionalCar, FunctionalCarContinuous
from drift_envs.functional.compiler import CompiledSchedule, compile_schedule, compile_schedules
from drift_envs.functional.drift_carry import DriftCarry
from drift_envs.functional.drift_params import DriftParams, Features
from drift_envs.functional.drift_state import advance_drift, follow_clock, replay, start_drift
from drift_envs.functional.gymnax import DriftedEnv, DriftedParams, DriftedState, drift
from drift_envs.functional.lake import FunctionalLake, LakeParams, LakeWorld

ENVIRONMENTS: dict[str, type[FunctionalEnv]] = {
    "DriftFrozenLake-v0": FunctionalLake,
    "DriftMountainCar-v0": FunctionalCar,
    "DriftMountainCarContinuous-v0": FunctionalCarContinuous,
}
"""The functional form of each id that has one."""

__all__ = [
    "ENVIRONMENTS",
    "CarParams",
    "CarWorld",
    "CompiledSchedule",
    "DriftCarry",
    "DriftParams",
    "DriftedEnv",
    "DriftedParams",
    "DriftedState",
    "Features",
    "FunctionalCar",
    "FunctionalCarContinuous",
    "FunctionalEnv",
    "FunctionalLake",
    "LakeParams",
    "LakeWorld",
    "Lifetime",
    "advance_drift",
    "compile_schedule",
    "compile_schedules",
    "drift",
    "follow_clock",
    "replay",
    "start_drift",
]
