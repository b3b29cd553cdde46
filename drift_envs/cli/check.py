"""The command `check`: play both sides of every drift, and find knobs whose change nobody could see.

* `check_schedule` - the command
* `KnobFinding` - what it finds of one knob in one drift
* `KnobComparison` - plays episodes before and after one knob changed
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils.env_checker import data_equivalence
from rich.console import Console
from rich.table import Table
from rich.text import Text

from drift_envs.cli.scheduled import ScheduledEnv, open_schedule
from drift_envs.entry_points import make_from_schedule
from drift_envs.errors import DriftWarning, ScheduleError
from drift_envs.knobs import Value, thaw
from drift_envs.registration import IDS
from drift_envs.schedule import NEVER, Phase
from drift_envs.schedule.model import Schedule
from drift_envs.wrappers.overlay.overlay import describe_change

MOST_LATER = 50
"""The most later drifts whose first phase is compared beside the first phases."""

LATE = 1_000_000
"""The tick of the other side, which no episode reaches."""


@dataclass(frozen=True)
class KnobFinding:
    """What was found of one knob in one drift.

    Args:
        phase: the phase that the drift starts.
        knob: the knob.
        old: its value in the phase before.
        new: its value in this phase.
        step: the first step, over all episodes, after which an observation, a reward or an end of an episode differed
            (0: at a reset); `None` if none did.
        unlike: the seed with which one of the sides, played again, gave another episode; `None` if there is none.
        is_seen_within: whether something differed in an episode in which the knob changed after the first step;
            `None` if that was not tried.
    """

    phase: str
    knob: str
    old: Value
    new: Value
    step: int | None
    unlike: int | None = None
    is_seen_within: bool | None = None

    @property
    def words(self) -> str:
        """When the change was first seen."""
        if self.unlike is not None:
            return "not reproducible"
        seen = "never" if self.step is None else f"step {self.step}"
        return f"{seen}, not within an episode" if self.is_seen_within is False else seen


def check_schedule(console: Console, name: str, seed: int, episodes: int, steps: int, phases: int = 9) -> int:
    """Play both sides of every drift with the same random actions, and print what differed.

    Args:
        console: where to print.
        name: a shipped schedule or the path of a file; its `env` names the environment.
        seed: of the instance; episode `i` is seeded with `seed + i`.
        episodes: how many episodes are played on each side.
        steps: the maximum of steps of an episode.
        phases: how many phases are compared, beside the first one of each later drift.

    Returns:
        The number of warnings.

    Raises:
        ArgumentError: if the environment does not exist.
        ScheduleError: if the schedule breaks a rule.
    """
    opened = open_schedule(name, seed, may_import=True)
    chosen = opened.main_phases(phases)[: phases + MOST_LATER]
    table = Table("phase", "first seen", "change", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    findings = list(_findings(opened, chosen, KnobComparison(opened.schedule, range(seed, seed + episodes), steps)))
    for one in findings:
        is_good = one.unlike is None and one.step is not None and one.is_seen_within is not False
        change = describe_change(one.knob, one.old, one.new)
        table.add_row(one.phase, Text(one.words, style="" if is_good else "yellow"), Text(change))
    console.print(table)
    told = [*_warn(findings, episodes), *_left_out(opened, chosen)]
    for line in told:
        console.print(line, style="yellow", markup=False, soft_wrap=True)
    return sum(line.startswith("warning: ") for line in told)


def _warn(findings: Sequence[KnobFinding], episodes: int) -> Iterator[str]:
    for one in findings:
        if one.unlike is not None:
            yield (
                f"warning: {one.phase}: the environment is not reproducible: with equal knobs and actions its "
                f"episodes differ with the seed {one.unlike}, so that it cannot be told what `{one.knob}` changes. "
                "Does `reset(seed=...)` seed all that it draws from?"
            )
        elif one.step is None:
            yield (
                f"warning: {one.phase}: `{one.knob}` changed, and {episodes} episodes with random actions showed "
                "no difference. Does the environment read it after its construction? Do random actions reach what it "
                "changes? --episodes N plays more."
            )
        elif one.is_seen_within is False:
            yield (
                f"warning: {one.phase}: `{one.knob}` changed after the first step of {episodes} episodes, and nothing "
                "differed until the next reset. Does the environment read it in its `reset` alone? A schedule with "
                "`clock: episode` changes it between episodes."
            )


def _left_out(opened: ScheduledEnv, chosen: Sequence[Phase]) -> Iterator[str]:
    """Which phases and which drifts were not compared."""
    reached = {phase.drift for phase in chosen}
    missing = [drift.name for drift in opened.schedule.drifts if drift.name not in reached]
    if missing:
        yield f"not reached: {', '.join(missing)}, which begin no phase of their own with this seed, or too late"
    last = next((one for one, other in pairwise(chosen) if one.stop != other.start), chosen[-1])
    if last.stop != NEVER:
        yield (
            f"left out: phases from tick {last.stop} on, but for the first one of each drift; --phases N compares the "
            "first N"
        )


def _findings(opened: ScheduledEnv, phases: Sequence[Phase], comparison: KnobComparison) -> Iterator[KnobFinding]:
    values, full = opened.timeline.values, opened.full_tick
    tried: set[str] = set()  # knobs that were changed within an episode
    for after in phases:
        old, new = values(full(opened.before(after))), values(full(after))
        for knob in new:
            if old[knob] == new[knob]:
                continue
            step, unlike = comparison.play(old, new, knob)
            within = None
            if unlike is None and step is not None and opened.schedule.clock != "episode" and knob not in tried:
                tried.add(knob)
                within = comparison.is_seen_within(old, new, knob)
            yield KnobFinding(after.id, knob, old[knob], new[knob], step, unlike, within)


class KnobComparison:
    """Plays episodes with the same seeds and random actions before and after one knob changed.

    Where a rule between knobs forbids the change of one alone, all knobs change.

    Args:
        schedule: names the environment, and declares its knobs.
        seeds: one for each episode.
        steps: the maximum of steps of an episode.
    """

    def __init__(self, schedule: Schedule, seeds: range, steps: int) -> None:
        self._schedule, self._seeds, self._steps = schedule, seeds, steps

    def play(self, old: Mapping[str, Value], new: Mapping[str, Value], knob: str) -> tuple[int | None, int | None]:
        """Play each side twice.

        Args:
            old: the knobs before.
            new: the knobs after.
            knob: the knob that changes.

        Returns:
            The first step at which the sides differ, counted over all episodes from 1 (0: at a reset), or `None`; and
            the seed with which a side differed from itself before that, or `None`.
        """
        held = [{"drift_tick": tick, "drift_clock": "hold"} for tick in (0, LATE, 0, LATE)]
        envs = [self._make("episode", old, new, knob, LATE) for _ in held]
        random: set[str] = set()  # keys of `info` that are not reproducible
        shown: dict[str, int] = {}  # keys of `info` that differ, with the first step
        for seed, step, results in self._transitions(envs, held):
            (first, other, first_again, other_again) = (result[:-1] for result in results)
            if not (data_equivalence(first, first_again) and data_equivalence(other, other_again)):
                return step, seed
            if not data_equivalence(first, other):
                return step, None
            first, other, first_again, other_again = (result[-1] for result in results)
            random |= _differing(first, first_again) | _differing(other, other_again)
            shown = {**dict.fromkeys(_differing(first, other), step), **shown}
        return min((step for key, step in shown.items() if key not in random), default=None), None

    def is_seen_within(self, old: Mapping[str, Value], new: Mapping[str, Value], knob: str) -> bool:
        """Whether episodes differ in which the knob changes after the first step.

        Args:
            old: the knobs before.
            new: the knobs after.
            knob: the knob that changes.
        """
        envs = [self._make("episode_step", old, new, knob, at) for at in (LATE, 1)]
        return any(
            not data_equivalence(first[:-1], other[:-1])
            for _, _, (first, other) in self._transitions(envs, [None, None])
        )

    def _transitions(
        self, envs: Sequence[gym.Env[Any, Any]], options: Sequence[dict[str, Any] | None]
    ) -> Iterator[tuple[int, int, list[Any]]]:
        """The seed, the step, and all results of resets and transitions with the actions of the first environment."""
        count = 0
        try:
            for seed in self._seeds:
                rng = np.random.default_rng([seed, 0xC4EC])
                envs[0].action_space.seed(seed)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DriftWarning)  # of a schedule that is always rewound
                    resets = [env.reset(seed=seed, options=each) for env, each in zip(envs, options, strict=True)]
                yield seed, count, resets
                info, over = resets[0][1], False
                for _ in range(self._steps):
                    if over:
                        break
                    count += 1
                    action = _draw_action(envs[0], info, rng)
                    results = [env.step(action) for env in envs]
                    yield seed, count, results
                    over, info = any(result[2] or result[3] for result in results), results[0][4]
        finally:
            for env in envs:
                env.close()

    def _make(
        self, clock: str, old: Mapping[str, Value], new: Mapping[str, Value], knob: str, at: int
    ) -> gym.Env[Any, Any]:
        """The environment with the knobs of one side, and those of the other from a tick on."""
        content = {key: value for key, value in self._schedule.to_dict().items() if key in ("env", "knobs", "tasks")}
        base = {name: thaw(value) for name, value in old.items()}
        changed = {name: thaw(value) for name, value in new.items() if value != old[name]}
        parts: dict[str, Any] = {"version": 1, "name": f"{self._schedule.name}-held", "clock": clock, "base": base}

        def make(values: Mapping[str, Any]) -> gym.Env[Any, Any]:
            drift = {"name": "other-side", "at": at, "set": values}
            env = make_from_schedule({**content, **parts, "drifts": [drift]}, text=_acts_in_words(self._schedule))
            env.set_wrapper_attr("warns_of_end", False)  # one side of a comparison never drifts
            return env

        try:
            return make({knob: changed[knob]})
        except ScheduleError:  # a rule between knobs
            return make(changed)


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> set[str]:
    """The keys whose values differ."""
    return {key for key in (*one, *other) if not (key in one and key in other and _is_equal(one[key], other[key]))}


def _is_equal(one: Any, other: Any) -> bool:
    try:
        return bool(data_equivalence(one, other))
    except (TypeError, ValueError):  # objects that do not compare; their text may still tell them apart
        return repr(one) == repr(other)


def _acts_in_words(schedule: Schedule) -> bool:
    """Whether the environment is one of texts, whose admissible actions stand in `info`."""
    return schedule.env in IDS and IDS[str(schedule.env)].text_mode is not None


def _draw_action(env: gym.Env[Any, Any], info: Mapping[str, Any], rng: np.random.Generator) -> Any:
    """An action at random: one of those that `info` names, else one of the space."""
    if "actions" in info and isinstance(env.action_space, gym.spaces.Text):
        return info["actions"][int(rng.integers(len(info["actions"])))]
    return env.action_space.sample()
