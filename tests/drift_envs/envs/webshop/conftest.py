"""Fixtures of the tests of the shop's environment."""

from __future__ import annotations

import os
import shutil

import gymnasium as gym
import numpy as np
import pytest

import drift_envs  # noqa: F401 - registers the ids

ID = "DriftWebShop-v0"


@pytest.fixture
def make_shop():
    """Makes environments and closes them afterwards."""
    made = []

    def make(schedule="webshop/explicit", **arguments):
        made.append(gym.make(ID, schedule=schedule, **arguments))
        return made[-1]

    yield make
    for env in made:
        env.close()


@pytest.fixture
def chromium():
    """Skips where Chromium is missing, but never in CI."""
    if not (shutil.which("chromium") and shutil.which("chromedriver")) and not os.environ.get("CI"):
        pytest.skip("Chromium is not installed: apt-get install chromium chromium-driver")


@pytest.fixture
def walker():
    """Draws valid and invalid actions."""
    return Walker(np.random.default_rng(0))


class Walker:
    """A random policy with valid and invalid actions."""

    words = ("mug", "women's dress", "50% / + off", 'ünïcode "quote" <b>&', "a.b/c?d#e", "..", "zzzz", "sofa; DROP")
    other = ("click[nothing like it]", "CLICK[Buy Now]", "Click[ < Prev ]", "search[lamp]", "buy", "click[]", "", "\n[")

    def __init__(self, random):
        self.random = random

    def choose(self, info):
        if self.random.random() < 0.12:
            return str(self.random.choice(self.other))
        actions = list(info["actions"])
        if actions and actions[0].startswith("search["):
            actions += [f"search[{words}]" for words in self.words]
        wanted = [name for name in actions if name.startswith(("click[b0", "click[buy", "click[order"))]
        if wanted and self.random.random() < 0.4:
            actions = wanted
        return str(self.random.choice(actions)) if actions else "click[done]"
