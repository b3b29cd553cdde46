"""Drifting environments as pure functions for JAX (`jit`, `vmap`, `scan`); needs the extra `jax`.

* `FunctionalEnv`, `Lifetime` - the base of the environments, and their state; lake and cars stand in their folders, as
  `drift_envs.envs.frozen_lake.functional.FunctionalLake`
* `drift` - makes a drifting environment of one of gymnax, a `DriftedEnv`
* `compile_schedule`, `compile_schedules` - schedules as arrays of equal shapes
* `CompiledSchedule`, `DriftParams` (a `DriftTable` or `DriftLayers` with their `Features`) - what they return
* `start_drift`, `advance_drift`, `follow_clock`, `replay`, `DriftCarry` - knob values, tick by tick
"""

from drift_envs.errors import MissingDependencyError

try:
    import jax  # noqa: F401
except ImportError as error:
    raise MissingDependencyError('`jax` is not installed, run `pip install "drift-envs[jax]"`') from error

from drift_envs.functional.base import FunctionalEnv, Lifetime
from drift_envs.functional.compiler import CompiledSchedule, compile_schedule, compile_schedules
from drift_envs.functional.drift_carry import DriftCarry
from drift_envs.functional.drift_params import DriftLayers, DriftParams, DriftTable, Features
from drift_envs.functional.drift_state import advance_drift, follow_clock, replay, start_drift
from drift_envs.functional.gymnax import DriftedEnv, DriftedParams, DriftedState, drift

__all__ = [
    "CompiledSchedule",
    "DriftCarry",
    "DriftLayers",
    "DriftParams",
    "DriftTable",
    "DriftedEnv",
    "DriftedParams",
    "DriftedState",
    "Features",
    "FunctionalEnv",
    "Lifetime",
    "advance_drift",
    "compile_schedule",
    "compile_schedules",
    "drift",
    "follow_clock",
    "replay",
    "start_drift",
]
