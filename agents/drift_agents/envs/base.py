"""What an environment offers agents, said once."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import gymnasium as gym
import numpy as np

from drift_agents.errors import ArgumentError, PartError
from drift_agents.registry.parts import make_part
from drift_agents.registry.tables import ENVIRONMENTS
from drift_agents.types import Outcome
from drift_envs.checks import check_single, is_number
from drift_envs.utils.lazy import load_object

EXACT = "drift_agents.envs.matching:Exact"
"""The matching rule of environments that declare none: texts are compared."""

PLAIN_TEMPLATES: Mapping[str, str] = {
    "brief": "drift_agents.policy:plain_brief",
    "ranked": "drift_agents.policy:plain_facts",
    "raw": "drift_agents.policy:plain_facts",
    "paper": "drift_agents.policy:plain",
    "full": "drift_agents.policy:plain",
    "react": "drift_agents.policy:react",
}
"""The templates of prompts that fit every environment, by format (`drift_agents.policy.messages.FORMATS`)."""


def own_templates(package: str, *, paper: bool = False) -> Mapping[str, str]:
    """The templates of an environment whose package has its own: `pond_brief.txt` and `pond_facts.txt` for `pond`.

    Args:
        package: the package with the folder `templates`.
        paper: whether it also has one for the formats `paper` and `full`, as `pond.txt`.

    Example:
        >>> own_templates("drift_agents.envs.house")["ranked"]
        'drift_agents.envs.house:house_facts'
    """
    own = f"{package}:{package.rpartition('.')[2]}"
    templates = {**PLAIN_TEMPLATES, "brief": f"{own}_brief", "ranked": f"{own}_facts", "raw": f"{own}_facts"}
    return templates | ({"paper": own, "full": own} if paper else {})


@dataclass(frozen=True, eq=False)
class AgentEnvironment:
    """The declaration of one environment: what agents know of it.

    References are written `module:name` and loaded when they are used, so that a run imports the modules of the
    environments that it plays and of no other.

    Args:
        name: its name in experiment files, the same as that of its folder.
        about: one line about it.
        ids: beginnings of the ids of Gymnasium that it is for.
        matching: the rule of equality of states and outcomes, a `drift_agents.envs.matching.Matching`.
        recall: options of `drift_agents.prompt.builder.Recall` that differ from its defaults.
        planner: the policy that plans by the prompt; it takes the option `conflict`.
        facts: how states and tasks are put in words, a `drift_agents.policy.ranked.PlainFacts`.
        templates: the templates of prompts for language models by format, each as `package:name` for the file
            `templates/name.txt` in that package. Formats without a template of their own name that of
            `PLAIN_TEMPLATES`.

    Raises:
        ArgumentError: if a template is missing, or a part is no reference.

    Example:
        >>> find_environment("DriftFrozenLake-v0").name, find_environment("CartPole-v1").name
        ('frozen_lake', 'generic')
        >>> AgentEnvironment("pond", "A pond.", matching="pond.matching").matching
        Traceback (most recent call last):
        drift_envs.errors.ArgumentError: the environment 'pond': `matching` should be a reference `module:name`. \
Received 'pond.matching'
    """

    name: str
    about: str
    ids: tuple[str, ...] = ()
    matching: str = EXACT
    recall: Mapping[str, Any] = field(default_factory=dict)
    planner: str = "drift_agents.policy.planner:GenericPlanner"
    facts: str = "drift_agents.policy.ranked:PlainFacts"
    templates: Mapping[str, str] = field(default_factory=lambda: PLAIN_TEMPLATES)

    def __post_init__(self) -> None:
        """Check that references can be used."""
        missing = [form for form in PLAIN_TEMPLATES if form not in self.templates]
        if missing:
            raise ArgumentError(
                f"the environment {self.name!r}: `templates` should name one for every format. Missing: "
                f"{', '.join(missing)}"
            )
        parts = {part: getattr(self, part) for part in ("matching", "planner", "facts")}
        for part, target in (parts | {f"templates[{form!r}]": one for form, one in self.templates.items()}).items():
            if target.count(":") != 1:
                raise ArgumentError(
                    f"the environment {self.name!r}: `{part}` should be a reference `module:name`. Received {target!r}"
                )

    def make(self, part: str, **options: Any) -> Any:
        """Make a part.

        Args:
            part: `matching` or `planner`.

        Raises:
            ArgumentError: if it does not take one of the options, or refuses its value.
        """
        return make_part(part, self.name, load_object(getattr(self, part)), options)

    def share(self, part: str) -> Any:
        """The one object of a part that has no options and no state.

        Args:
            part: `facts`.
        """
        return _share(getattr(self, part))


@lru_cache(maxsize=256)
def _share(target: str) -> Any:
    return load_object(target)()


GENERIC = AgentEnvironment("generic", "Any other environment: texts are compared, and nothing is known beforehand.")


def environments() -> tuple[AgentEnvironment, ...]:
    """The declarations of all environments, in the order of `registry.ENVIRONMENTS`.

    Those of other packages that cannot be used are left out; see `find_environment`.
    """
    return _load(ENVIRONMENTS.names())[0]


@lru_cache(maxsize=8)
def _load(names: tuple[str, ...]) -> tuple[tuple[AgentEnvironment, ...], PartError | None]:
    """The declarations, and why the first of those that cannot be used is refused."""
    found, refused = [], None
    for name in names:
        try:
            one = ENVIRONMENTS.load(name)
            if not isinstance(one, AgentEnvironment) or one.name != name:
                raise PartError(
                    f"the environment {name!r} should be an `AgentEnvironment` of that name. Received {one!r}"
                )
        except PartError as error:
            refused = refused or error
        else:
            found.append(one)
    return tuple(found), refused


def find_environment(*env_ids: str) -> AgentEnvironment:
    """The environment of an id; `GENERIC` if none is for it.

    Args:
        env_ids: the id of Gymnasium, as a schedule names it; of several ids the first one that is known counts.

    Raises:
        PartError: if none is for it, and one of another package cannot be used.
    """
    found, refused = _load(ENVIRONMENTS.names())
    for env_id in env_ids:
        for one in found:
            if env_id.startswith(one.ids):
                return one
    if refused is not None:
        raise refused
    return GENERIC


def named_environment(name: str) -> AgentEnvironment:
    """The environment that a view names; `GENERIC` if there is none of that name.

    Args:
        name: `PromptView.environment`.
    """
    return next((one for one in environments() if one.name == name), GENERIC)


def environment_of(env: gym.Env[Any, Any]) -> AgentEnvironment:
    """The environment of an object of Gymnasium: by the id in its schedule, or the one that it was made with.

    Args:
        env: the environment, with or without wrappers.

    Raises:
        ArgumentError: if it is no `gymnasium.Env`.
        PartError: if none is for it, and one of another package cannot be used.
    """
    check_single(env)
    schedule = env.get_wrapper_attr("schedule") if env.has_wrapper_attr("schedule") else None
    ids = [getattr(schedule, "env", None), getattr(env.unwrapped.spec, "id", None)]
    return find_environment(*(one for one in ids if isinstance(one, str)))


def check_text_env(observation: Any, info: Mapping[str, Any]) -> None:
    """Check the result of `reset`.

    Raises:
        ArgumentError: if the observation is no string, or `task`, `actions` or `score` is missing in the info.
    """
    missing = [key for key in ("task", "actions", "score") if key not in info]
    if not isinstance(observation, str) or missing:
        raise ArgumentError(
            "the environment should show text: make it with `text=True`. "
            f"Received an observation of type {type(observation).__name__} and an info without {missing}"
        )


def reset_text_env(
    env: gym.Env[str, Any], seed: int | None = None, options: Mapping[str, Any] | None = None
) -> tuple[str, dict[str, Any]]:
    """Reset an environment, and check that it shows text.

    Args:
        seed: passed to `reset`.
        options: passed to `reset`, as a dictionary.

    Returns:
        Observation and info; the info holds `task`, `actions` and `score`.

    Raises:
        ArgumentError: if it is no `gymnasium.Env`, the observation is no string, or a key is missing.
    """
    check_single(env)
    observation, info = env.reset(seed=seed, options=None if options is None else dict(options))
    check_text_env(observation, info)
    return observation, info


def to_env(space: gym.Space[Any], action: str) -> Any:
    """Convert an action as text into an element of an action space.

    Args:
        action: one of its admissible actions.

    Returns:
        An integer for a `Discrete` space, an array for a `Box`, else the text itself.

    Raises:
        ArgumentError: if it is no text of an element of the space.

    Example:
        >>> to_env(gym.spaces.Discrete(4), "2")
        2
    """
    try:
        if isinstance(space, gym.spaces.Discrete):
            return int(action)
        if isinstance(space, gym.spaces.Box):
            return np.array(json.loads(action), dtype=space.dtype).reshape(space.shape)
    except ValueError as error:
        raise ArgumentError(
            f"`actions` of an environment's info should be texts of elements of {space}. Received {action!r}"
        ) from error
    return action


def read_outcome(observation: Any, terminated: bool, info: Mapping[str, Any]) -> Outcome:
    """Convert the result of a step into an outcome.

    Args:
        observation: the next state.
        terminated: whether the episode has terminated; truncation does not count.
        info: holds `score`, the score so far.

    Raises:
        ArgumentError: if the score is no finite number.

    Example:
        >>> read_outcome("{}", False, {"score": 0})
        Outcome(state='{}', score=0.0, ended=False)
    """
    score = info.get("score")
    if not is_number(score) or not math.isfinite(score):
        raise ArgumentError(f"`score` of an environment's info should be a finite number. Received {score!r}")
    return Outcome(str(observation), float(score), bool(terminated))
