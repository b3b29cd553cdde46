"""Mountain cars whose force drifts, by schedules as data."""

from drift_envs.envs import MountainCar
from drift_envs.wrappers import DriftWrapper


def plan(*drifts, clock="episode", **keys):
    return {"version": 1, "name": "test", "clock": clock, "drifts": list(drifts), **keys}


def force(value, **when):
    return {"set": {"force": value}, **when}


TWICE = (force(0.0008, at=2, name="weak"), force(0.0006, at=4, name="weaker"))


def car(schedule, **arguments):
    return DriftWrapper(MountainCar(), schedule, **arguments)
