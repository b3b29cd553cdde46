"""The continuous car computes with plain floats and has the bits of Gymnasium's mixture of precisions."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium.envs.classic_control.continuous_mountain_car import Continuous_MountainCarEnv

from drift_envs.envs import MountainCarContinuous

FORMS = {
    "single": lambda force: np.array([force], np.float32),
    "double": lambda force: np.array([force]),
    "integer": lambda force: np.array([round(force)]),
    "list": lambda force: [force],
    "list-of-singles": lambda force: [np.float32(force)],
    "list-of-integers": lambda force: [round(force)],
}


@pytest.mark.parametrize("precision", [None, np.float32, np.float64], ids=["reset", "single", "double"])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_bits_of_gymnasium(form, precision):
    rng = np.random.default_rng(0)
    plain, car = Continuous_MountainCarEnv(), MountainCarContinuous()
    for episode in range(24):
        plain.reset(seed=episode)
        seen = car.reset(seed=episode)[0]
        if precision is not None:
            state = rng.uniform((-1.2, -0.07), (0.6, 0.07)).astype(precision)
            plain.state, car.state = state.copy(), state.copy()
        for step in range(50):
            swing = np.sign(seen[1]) * rng.uniform(0.5, 1.2)
            force = (rng.uniform(-1.3, 1.3), swing, -1.1)[episode % 3] if step % 17 != 5 else 1.0
            expected, found = plain.step(form(float(force))), car.step(form(float(force)))
            seen = found[0]
            assert (seen.tobytes(), seen.dtype, *found[1:]) == (expected[0].tobytes(), np.float32, *expected[1:])
            assert type(found[2]) is bool
