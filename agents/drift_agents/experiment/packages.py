"""The packages beside this one whose parts and environments an experiment names.

* `PartPackage` - an installed package with its version, its modules and its parts
* `find_packages`, `find_parts` - those of an experiment, and of the parts that plain data names
* `run_versions` - what has to be the same for a run of an experiment to be continued
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import packages_distributions, version
from typing import Any, NamedTuple

import gymnasium as gym

from drift_agents.experiment.config import Experiment
from drift_agents.experiment.environments import read_schedule
from drift_agents.experiment.folder import versions
from drift_agents.experiment.mistakes import texts_in
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
        named: kind and name of the parts and environments.
    """

    name: str
    version: str
    modules: tuple[str, ...]
    named: tuple[tuple[str, str], ...]

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts, as in `memory: newest`."""
        return tuple(f"{kind}: {name}" for kind, name in self.named)


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
    return _by_name([*_parts(experiment.to_dict()), *_environments(experiment)])


def find_parts(data: Any) -> tuple[PartPackage, ...]:
    """The packages, beside this one, of all parts that plain data names, by name; none of them is imported.

    Args:
        data: dictionaries, lists and texts.
    """
    return _by_name(_parts(data))


_Found = tuple[str, str, str, tuple[str, str]]
"""Name and version of a package, a module, and what was found in it."""


def _parts(data: Any) -> Iterator[_Found]:
    words = {text for _, text in texts_in(data)}
    for kind, registry in REGISTRIES.items():
        for word in words.intersection(registry.names()):
            point = registry.entry_point(word)
            if point is not None:
                module = point.value.partition(":")[0].partition(".")[0]
                dist = getattr(point, "dist", None)
                name, number = (module, UNKNOWN) if dist is None else (dist.metadata["Name"], dist.version)
                yield name, number, module, (kind, word)


def _environments(experiment: Experiment) -> Iterator[_Found]:
    for source in experiment.schedules:
        env_id = str(read_schedule(source).env)
        owner = _module_of(env_id)
        if owner is not None and owner not in _BASE:
            owners = packages_distributions().get(owner, ())
            name, number = (owners[0], version(owners[0])) if owners else (owner, UNKNOWN)
            yield name, number, owner, ("environment", env_id)


def _by_name(found: Iterable[_Found]) -> tuple[PartPackage, ...]:
    packages: dict[str, tuple[str, set[str], set[tuple[str, str]]]] = {}
    for name, number, module, part in found:
        _, modules, parts = packages.setdefault(name, (number, set(), set()))
        modules.add(module)
        parts.add(part)
    return tuple(
        PartPackage(name, number, tuple(sorted(modules)), tuple(sorted(parts)))
        for name, (number, modules, parts) in sorted(packages.items())
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
