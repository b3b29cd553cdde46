"""What tests of verifiers do: bind one, feed it experiences, and list what the memory holds then."""

from __future__ import annotations

from typing import Any

import numpy as np
from drift_agents.envs.matching import Exact
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.types import Verdict
from drift_agents.verifier.base import make_verifier


def bound(name: str, **options: Any) -> Any:
    verifier = make_verifier(name, **options)
    verifier.bind(Exact(), np.random.default_rng(0))
    return verifier


def feed(verifier: Any, memory: VanillaMemory, *experiences: Any, prefix: tuple[str, ...] = ()) -> Verdict:
    for experience in experiences:
        verdict = verifier.verify(experience, memory, prefix, experience.now)
    return verdict


def held(memory: VanillaMemory) -> list[tuple[str, int, bool]]:
    return [(r.outcome.state.strip('"'), r.n, r.verified) for r in memory.records()]
