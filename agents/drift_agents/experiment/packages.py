"""The packages beside this one whose parts and environments an experiment names.

* `PartPackage` - an installed package with its version, its modules and its parts
* `find_packages` - those of an experiment
* `run_versions` - what has to be the same for a run of an experiment to be continued
"""

from __future__ import annotations

from importlib.metadata import packages_distributions, version
from typing import NamedTuple

import gymnasium as gym

from drift_agents.experiment.config import Experiment
from drift_agents.experiment.environments import read_schedule
from drift_agents.experiment.folder import versions
from drift_agents.experiment.loader import texts_in
from drift_agents.registry import REGISTRIES

UNKNOWN = "unknown"
"""The version of a part whose package has no metadata."""

_BASE = {"drift_envs", "gymnasium"}


class PartPackage(NamedTuple):
    """An installed package of which an experiment names parts or environments.

    Args:
        name: as it is installed by.
        version: the installed version.
        modules: its top-level modules that hold the parts.
        parts: the parts, as in `memory: newest`.
    """

    name: str
    version: str
    modules: tuple[str, ...]
    parts: tuple[str, ...]


def find_packages(experiment: Experiment) -> tuple[PartPackage, ...]:
    """The packages, beside this one, of an experiment's parts and environments, by name.

    Every text of the experiment that is the name of another package's part counts, since options name parts too.

    Args:
        experiment: a checked experiment.

    Example:
        >>> from drift_agents.experiment.loader import load_experiment
        >>> find_packages(load_experiment("glove-quick"))
        ()
    """
    found: dict[str, tuple[str, set[str], set[str]]] = {}

    def add(name: str, number: str, module: str, part: str) -> None:
        _, modules, parts = found.setdefault(name, (number, set(), set()))
        modules.add(module)
        parts.add(part)

    words = {text for _, text in texts_in(experiment.to_dict())}
    for kind, registry in REGISTRIES.items():
        for word in words.intersection(registry.names()):
            point = registry.entry_point(word)
            if point is not None:
                module = point.value.partition(":")[0].partition(".")[0]
                dist = getattr(point, "dist", None)
                name, number = (module, UNKNOWN) if dist is None else (dist.metadata["Name"], dist.version)
                add(name, number, module, f"{kind}: {word}")
    for source in experiment.schedules:
        env_id = str(read_schedule(source).env)
        owner = _module_of(env_id)
        if owner is not None and owner not in _BASE:
            owners = packages_distributions().get(owner, ())
            name, number = (owners[0], version(owners[0])) if owners else (owner, UNKNOWN)
            add(name, number, owner, f"environment: {env_id}")
    return tuple(
        PartPackage(name, number, tuple(sorted(modules)), tuple(sorted(parts)))
        for name, (number, modules, parts) in sorted(found.items())
    )


def run_versions(experiment: Experiment) -> dict[str, str]:
    """The versions that a run depends on, with those of other packages' parts.

    Args:
        experiment: a checked experiment.
    """
    return {**versions(), **{package.name: package.version for package in find_packages(experiment)}}


def _module_of(env_id: str) -> str | None:
    """The top-level module of an environment; `None` if it is not registered, which making it reports."""
    spec = gym.registry.get(env_id)
    if spec is None or spec.entry_point is None:
        return None
    target = spec.entry_point if isinstance(spec.entry_point, str) else spec.entry_point.__module__
    return target.partition(":")[0].partition(".")[0]
