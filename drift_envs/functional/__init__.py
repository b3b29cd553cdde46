"""Drifting environments as pure functions for JAX (`jit`, `vmap`, `scan`); needs the extra `jax`."""

from drift_envs.errors import needs_extra

with needs_extra("jax", "jax"):
    import jax  # noqa: F401

from drift_envs.functional.base import FunctionalEnv, Lifetime
from drift_envs.functional.compiler import (
    CompiledSchedule,
    DriftLayers,
    DriftParams,
    DriftTable,
    Features,
    compile_schedule,
    compile_schedules,
)
from drift_envs.functional.drift_state import DriftCarry, advance_drift, follow_clock, replay, start_drift
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
