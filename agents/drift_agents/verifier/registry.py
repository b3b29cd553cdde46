"""Verifiers by name.

* `VERIFIERS` - all of them; other packages add theirs through the entry-point group `drift_envs.verifiers`
* `make_verifier` - one of them, ready to use
"""

from __future__ import annotations

from typing import Any

from drift_agents.registry import Registry
from drift_agents.verifier.base import Verifier

VERIFIERS: Registry[Verifier] = Registry(
    "verifier",
    "drift_envs.verifiers",
    {
        "none": "drift_agents.verifier.base:NoVerifier",
        "glove": "drift_agents.verifier.glove:Glove",
        "glove_spread": "drift_agents.verifier.glove:GloveSpread",
        "glove_passive": "drift_agents.verifier.sequential:GlovePassive",
        "glove_active": "drift_agents.verifier.sequential:GloveActive",
        "overwrite": "drift_agents.verifier.controls:Overwrite",
        "forget": "drift_agents.verifier.controls:Forget",
        "probe_keep": "drift_agents.verifier.controls:ProbeKeep",
        "random_probe": "drift_agents.verifier.controls:RandomProbe",
        "base+extra": "drift_agents.verifier.controls:BaseExtra",
        "periodic_wipe": "drift_agents.verifier.controls:PeriodicWipe",
        "window": "drift_agents.verifier.detectors:SlidingWindow",
        "adwin": "drift_agents.verifier.detectors:Adwin",
        "page_hinkley": "drift_agents.verifier.detectors:PageHinkley",
    },
)


def make_verifier(name: str, **options: Any) -> Verifier:
    """Make a verifier.

    Args:
        name: one of `VERIFIERS.names()`.
        options: its parameters; those that probe take `prober`.

    Raises:
        UnknownNameError: if no verifier has that name.
        ArgumentError: if it does not take one of the options, or refuses its value.

    Example:
        >>> make_verifier("none").name
        'none'
    """
    return VERIFIERS.make(name, **options)
