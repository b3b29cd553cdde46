"""The command `check`: play both sides of every drift, and find knobs whose change nobody could see.

* `check_schedule` - the command
* `KnobFinding` - what it finds of one knob in one drift
* `compare_knob` - whether episodes differ before and after one knob changed
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.utils.env_checker import data_equivalence
from rich.console import Console
from rich.table import Table
from rich.text import Text

from drift_envs.cli.scheduled import open_schedule
from drift_envs.entry_points import make_from_schedule
from drift_envs.errors import ScheduleError
from drift_envs.knobs import Value, thaw
from drift_envs.registration import IDS
from drift_envs.schedule.model import Schedule
from drift_envs.wrappers.overlay.overlay import describe_change

MOST_PHASES = 9
"""The phases that are compared, from the first."""


class KnobFinding(NamedTuple):
    """What was found of one knob in one drift.

    Args:
        phase: the phase that the drift starts.
        knob: the knob.
        old: its value in the phase before.
        new: its value in this phase.
        step: the first step, over all episodes, after which an observation, a reward or an end of an episode differed;
            `None` if none did.
    """

    phase: str
    knob: str
    old: Value
    new: Value
    step: int | None


def check_schedule(console: Console, name: str, seed: int, episodes: int, steps: int) -> int:
    """Play both sides of every drift with the same random actions, and print what differed.

    Args:
        console: where to print.
        name: a shipped schedule or the path of a file; its `env` names the environment.
        seed: of the instance; episode `i` is seeded with `seed + i`.
        episodes: how many episodes are played on each side.
        steps: the maximum of steps of an episode.

    Returns:
        The number of knobs whose change nothing showed.

    Raises:
        ArgumentError: if the environment does not exist.
        ScheduleError: if the schedule breaks a rule.
    """
    table = Table("phase", "first seen", "change", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    unseen = []
    for finding in _findings(name, seed, episodes, steps):
        seen = "never" if finding.step is None else f"step {finding.step}"
        change = describe_change(finding.knob, finding.old, finding.new)
        table.add_row(finding.phase, Text(seen, style="yellow" if finding.step is None else ""), Text(change))
        unseen += [finding] if finding.step is None else []
    console.print(table)
    for finding in unseen:
        console.print(
            f"warning: {finding.phase}: `{finding.knob}` changed, and {episodes} episodes with random actions showed "
            "no difference. Does the environment read it after its construction? Do random actions reach what it "
            "changes? --episodes N plays more.",
            style="yellow",
            markup=False,
            soft_wrap=True,
        )
    return len(unseen)


def _findings(name: str, seed: int, episodes: int, steps: int) -> Iterator[KnobFinding]:
    opened = open_schedule(name, seed)
    for before, after in pairwise(opened.phases(MOST_PHASES)):
        old = opened.timeline.values(opened.full_tick(before))
        new = opened.timeline.values(opened.full_tick(after))
        for knob in new:
            if old[knob] != new[knob]:
                step = compare_knob(opened.schedule, old, new, knob, range(seed, seed + episodes), steps)
                yield KnobFinding(after.id, knob, old[knob], new[knob], step)


def compare_knob(
    schedule: Schedule, old: Mapping[str, Value], new: Mapping[str, Value], knob: str, seeds: range, steps: int
) -> int | None:
    """The first step after which episodes differ if one knob changes and all others stay.

    Where a rule between knobs forbids the change of one alone, all knobs change.

    Args:
        schedule: names the environment, and declares its knobs.
        old: the knobs before.
        new: the knobs after.
        knob: the knob that changes.
        seeds: one for each episode.
        steps: the maximum of steps of an episode.

    Returns:
        The step, counted over all episodes from 1 (0: at a reset), or `None` if nothing differs.
    """
    one = {**old, knob: new[knob]}
    sides = (_make(schedule, old), _make_if_allowed(schedule, one) or _make(schedule, new))
    try:
        count = 0
        for seed in seeds:
            rng = np.random.default_rng([seed, 0xC4EC])
            sides[0].action_space.seed(seed)
            (first, info), (second, other) = (env.reset(seed=seed) for env in sides)
            if not data_equivalence((first, info), (second, other)):
                return count
            over = False
            for _ in range(steps):
                if over:
                    break
                count += 1
                action = _draw_action(sides[0], info, rng)
                transition, changed = (env.step(action) for env in sides)
                if not data_equivalence(transition, changed):
                    return count
                over, info = bool(transition[2] or transition[3]), transition[4]
        return None
    finally:
        for env in sides:
            env.close()


def _make(schedule: Schedule, knobs: Mapping[str, Value]) -> gym.Env[Any, Any]:
    """The environment with these knobs and no drift."""
    content = {key: value for key, value in schedule.to_dict().items() if key in ("env", "knobs", "tasks")}
    base = {name: thaw(value) for name, value in knobs.items()}
    parts: dict[str, Any] = {"version": 1, "name": f"{schedule.name}-held", "base": base}
    return make_from_schedule({**content, **parts}, text=_acts_in_words(schedule))


def _make_if_allowed(schedule: Schedule, knobs: Mapping[str, Value]) -> gym.Env[Any, Any] | None:
    try:
        return _make(schedule, knobs)
    except ScheduleError:
        return None


def _acts_in_words(schedule: Schedule) -> bool:
    """Whether the environment is one of texts, whose admissible actions stand in `info`."""
    return schedule.env in IDS and IDS[str(schedule.env)].parts.text_mode is not None


def _draw_action(env: gym.Env[Any, Any], info: Mapping[str, Any], rng: np.random.Generator) -> Any:
    """An action at random: one of those that `info` names, else one of the space."""
    if "actions" in info and isinstance(env.action_space, gym.spaces.Text):
        return info["actions"][int(rng.integers(len(info["actions"])))]
    return env.action_space.sample()
