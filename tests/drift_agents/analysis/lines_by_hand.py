"""Lines of runs by hand, for tests of what reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from drift_agents.analysis.evidence import AXES, EvidenceTable, gather_evidence

Episode = tuple[str, float, int, int]
"""Phase, score, steps and probe steps."""

Played = Mapping[str, Mapping[str, Mapping[int, Sequence[Episode]]]]
"""Verifier -> schedule -> seed -> episodes; `clairvoyant` is the reference, `nothing` plays without memory."""


def key(verifier: str) -> tuple[str, ...]:
    if verifier in ("clairvoyant", "nothing"):
        return ("none", "none", "direct", "solo", "clairvoyant" if verifier == "clairvoyant" else "planner")
    return ("vanilla", verifier, "direct", "solo", "planner")


def manifest(played: Played, **changed: Any) -> dict[str, Any]:
    schedules = {name for own in played.values() for name in own}
    about = {"env": "DriftFrozenLake-v0", "hash": "0", "visibility": "explicit", "control": False} | changed
    players = [
        dict(zip(AXES, key(verifier), strict=True))
        | {"schedule": schedule, "supervision": "privileged" if verifier.startswith(("clair", "oracle")) else "none"}
        | {"reference": verifier if verifier.startswith(("clairvoyant", "oracle")) else None}
        for verifier, own in played.items()
        for schedule in own
    ]
    return {
        "name": "by-hand",
        "config_hash": "abc",
        "versions": {"drift-envs": "0.1.0"},
        "experiment": {"name": "by-hand", "seeds": [0]},
        "schedules": dict.fromkeys(sorted(schedules), about),
        "players": players,
    }


def rows(played: Played) -> Iterator[dict[str, Any]]:
    for verifier, own in played.items():
        for schedule, instances in own.items():
            for seed, episodes in instances.items():
                for number, (phase, score, steps, probes) in enumerate(episodes):
                    row = dict(zip(AXES, key(verifier), strict=True))
                    row |= {"schedule": schedule, "seed": seed, "stage": "test", "episode": number, "phase": phase}
                    yield row | {"score": score, "steps": steps, "probe_steps": probes}


def evidence(played: Played, **changed: Any) -> EvidenceTable:
    return gather_evidence(manifest(played, **changed), rows(played))


def steady(success: float, *, steps: int = 10, probes: int = 0, episodes: int = 20) -> list[Episode]:
    """One episode before the drift, and `episodes` after it, of which a share succeeds, evenly spread."""
    after = [
        ("drift", float(int((n + 1) * success + 1e-9) > int(n * success + 1e-9)), steps, probes)
        for n in range(episodes)
    ]
    return [("source", 1.0, steps, 0), *after]
