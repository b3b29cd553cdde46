"""The commands `validate` and `check`: mistakes in schedule files, and knobs whose change nothing showed."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils.env_checker import data_equivalence
from rich.console import Console
from rich.table import Table
from rich.text import Text

from drift_envs.cli.scheduled import ScheduledEnv, ask_import, open_schedule, read_schedule
from drift_envs.envs.make import knob_table_of, make_from_schedule, make_plain, module_to_import
from drift_envs.errors import (
    ArgumentError,
    DeclaredKnobsError,
    DriftWarning,
    DrivenKnobError,
    ScheduleError,
    UnknownScheduleError,
)
from drift_envs.knobs import KnobTable, Value, thaw
from drift_envs.registration import IDS, parts_of
from drift_envs.schedule import NEVER, Phase
from drift_envs.schedule.loader import check_document
from drift_envs.schedule.model import MAX_TICK, Schedule
from drift_envs.schedule.occurrences import times_of
from drift_envs.schedule.phases import PhaseTable, limits_of
from drift_envs.schedule.yaml import Document, read_variants, split_suffix
from drift_envs.wrappers.binding import declared_knob_table
from drift_envs.wrappers.overlay import describe_change
from drift_envs.wrappers.text import check_actions, find_describer, has_fixed_actions

MAX_PHASES = 100
"""Phases that `validate` counts; schedules with recurring drifts have any number."""

MOST_LATER = 50
"""The most later drifts whose first phase is compared beside the first phases."""

LATE = 1_000_000
"""The tick of the other side, which no episode reaches."""


def validate_schedules(names: Sequence[str], *, may_import: bool = False) -> bool:
    """Check schedules with their variants; print every finding to standard error.

    Args:
        names: shipped schedules or paths of files; one with a suffix is checked alone.
        may_import: whether modules that `env` names may be imported, which runs their code; without, the knobs of
            their environments are not checked.

    Returns:
        Whether all are valid.

    Raises:
        UnknownScheduleError: if there is no schedule or variant of a name.
    """
    printed: set[object] = set()  # what is wrong with a file is wrong with each of its variants
    tables = _find_tables(may_import)
    is_valid = True
    for name, source in (each for given in names for each in _with_variants(given)):
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", DriftWarning)
                if isinstance(source, Document):
                    schedule = check_document(source, tables)
                else:
                    schedule = read_schedule(source, tables)
            findings: list[object] = [f"warning: {one.message}" for one in caught]
        except UnknownScheduleError:
            raise
        except ScheduleError as error:
            is_valid, findings = False, list(error.problems)
        else:
            # Not by rich, which would wrap paths and interpret brackets as markup.
            print(f"{name}: ok{_describe(schedule, may_import)}")
        for finding in findings:
            if finding not in printed:
                print(finding, file=sys.stderr)
            printed.add(finding)
    return is_valid


def _describe(schedule: Schedule, may_import: bool) -> str:
    """How many phases a valid schedule has, how far its ticks reach, and what was not checked."""
    module = None if may_import else module_to_import(schedule.env)
    phases = PhaseTable(schedule.drifts, times_of(schedule.drifts, schedule.seed or 0))
    if schedule.env is None:
        note = "; it names no `env`, so that its knobs were not checked"
    elif module is not None:
        note = f"; its knobs were not checked: {ask_import(module)}"
    else:
        count = len(phases.first(MAX_PHASES + 1))
        note = f", {count if count <= MAX_PHASES else f'over {MAX_PHASES}'} phase{'s' * (count > 1)}"
    limits = limits_of(schedule.drifts, phases)
    note += f", named up to tick {limits.phase}" if limits.phase < MAX_TICK else ""
    return note + (f"; random drifts end at tick {limits.value}" if limits.value < MAX_TICK else "")


def _with_variants(name: str) -> list[tuple[str, str | Document]]:
    """The schedule with its variants, in the order of the file, which is read once."""
    if split_suffix(f"{name}:any")[1] is None:
        return [(name, name)]  # a suffix already, or a file whose name has another ending, where a suffix cannot stand
    try:
        return list(read_variants(Path(name) if Path(name).is_file() else name))
    except ScheduleError:  # which is reported when it is checked
        return [(name, name)]


def _find_tables(may_import: bool) -> Callable[[Mapping[str, Any]], KnobTable | None]:
    """What finds the knobs of the environment that a schedule names: structure and knobs are checked in one pass.

    Variants of a file have one environment, which is made once. Without `may_import`, no module that `env` names is
    imported, and its knobs are `None`.
    """
    known: dict[str, KnobTable | None] = {}

    def find(content: Mapping[str, Any]) -> KnobTable | None:
        env_id = content.get("env")
        if not isinstance(env_id, str) or (not may_import and module_to_import(env_id) is not None):
            return None
        key = json.dumps([env_id, content.get("knobs")], sort_keys=True)
        if key not in known:
            known[key] = _make_table(env_id, content)
        return known[key]

    return find


def _make_table(env_id: str, content: Mapping[str, Any]) -> KnobTable | None:
    if env_id in IDS and "knobs" not in content:
        return knob_table_of(env_id)
    try:
        env = make_plain(env_id)
    except ArgumentError as error:
        rule = str(error).replace(f"no environment `{env_id}`", "no such environment", 1)
        raise DeclaredKnobsError([(("env",), rule)]) from None
    try:
        return declared_knob_table(env, content)
    finally:
        env.close()


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
                "no difference. Does the environment read it after its construction and its first reset? Do random "
                "actions reach what it changes? --episodes N plays more."
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
            try:
                step, unlike = comparison.play(old, new, knob)
            except DrivenKnobError as error:
                if error.loss is None or error.loss[3] != LATE:
                    raise
                # the comparison holds time at this tick, which says nothing about the schedule
                raise DrivenKnobError.lost(*error.loss, phase=after.id) from error
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
        # without the drifts, of which there may be thousands
        self._content = {key: value for key, value in schedule.to_dict().items() if key in ("env", "knobs", "tasks")}
        parts = IDS.get(str(schedule.env))
        self._acts_in_words = parts is not None and parts.text_mode is not None

    def play(self, old: Mapping[str, Value], new: Mapping[str, Value], knob: str) -> tuple[int | None, int | None]:
        """Play each side twice, in environments that were played before the drift.

        Returns:
            The first step at which the sides differ, counted over all episodes from 1 (0: at a reset), or `None`; and
            the seed with which a side differed from itself before that, or `None`.
        """
        held = [{"drift_tick": tick, "drift_clock": "hold"} for tick in (0, LATE, 0, LATE)]
        envs = [self._make("episode", old, new, knob, LATE) for _ in held]
        random: set[str] = set()  # keys of `info` that are not reproducible
        shown: dict[str, int] = {}  # keys of `info` that differ, with the first step
        # What is built in the first reset is built before the drift; what a step sets back is found at the next reset.
        for seed, step, results in self._transitions(envs, held, before=([held[0]] * len(held), held)):
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
        """Whether episodes differ in which the knob changes after the first step."""
        envs = [self._make("episode_step", old, new, knob, at) for at in (LATE, 1)]
        return any(
            not data_equivalence(first[:-1], other[:-1])
            for _, _, (first, other) in self._transitions(envs, [None, None])
        )

    def _transitions(
        self,
        envs: Sequence[gym.Env[Any, Any]],
        options: Sequence[dict[str, Any] | None],
        before: Sequence[Sequence[dict[str, Any] | None]] = (),
    ) -> Iterator[tuple[int, int, list[Any]]]:
        """The seed, the step, and all results of resets and transitions with the actions of the first environment.

        Args:
            envs: the environments, which are closed at the end.
            options: of the reset of each.
            before: those of episodes of one step, which are played first and not returned.
        """
        count = 0
        try:
            for each in before:
                rng, resets = _reset(envs, self._seeds[0], each)
                action = _draw_action(envs[0], resets[0][1], rng)
                for env in envs:
                    env.step(action)
            for seed in self._seeds:
                rng, resets = _reset(envs, seed, options)
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
        base = {name: thaw(value) for name, value in old.items()}
        changed = {name: thaw(value) for name, value in new.items() if value != old[name]}
        parts: dict[str, Any] = {"version": 1, "name": f"{self._schedule.name}-held", "clock": clock, "base": base}

        def make(values: Mapping[str, Any]) -> gym.Env[Any, Any]:
            drift = {"name": "other-side", "at": at, "set": values}
            env = make_from_schedule({**self._content, **parts, "drifts": [drift]}, text=self._acts_in_words)
            text = None if (own := parts_of(env)) is None else own.text
            if text is not None and has_fixed_actions(describer := find_describer(env.unwrapped)):
                check_actions(env.action_space, describer.actions)
            env.set_wrapper_attr("warns_of_end", False)  # one side of a comparison never drifts
            return env

        try:
            return make({knob: changed[knob]})
        except ScheduleError:  # a rule between knobs
            return make(changed)


def _reset(
    envs: Sequence[gym.Env[Any, Any]], seed: int, options: Sequence[dict[str, Any] | None]
) -> tuple[np.random.Generator, list[Any]]:
    """The generator of actions, and what the resets return."""
    envs[0].action_space.seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)  # of a schedule that is always rewound
        resets = [env.reset(seed=seed, options=each) for env, each in zip(envs, options, strict=True)]
    return np.random.default_rng([seed, 0xC4EC]), resets


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> set[str]:
    """The keys whose values differ."""
    return {key for key in (*one, *other) if not (key in one and key in other and _is_equal(one[key], other[key]))}


def _is_equal(one: Any, other: Any) -> bool:
    try:
        return bool(data_equivalence(one, other))
    except (TypeError, ValueError):  # objects that do not compare; their text may still tell them apart
        return repr(one) == repr(other)


def _draw_action(env: gym.Env[Any, Any], info: Mapping[str, Any], rng: np.random.Generator) -> Any:
    """An action at random: one of those that `info` names, else one of the space."""
    if "actions" in info and isinstance(env.action_space, gym.spaces.Text):
        return info["actions"][int(rng.integers(len(info["actions"])))]
    return env.action_space.sample()
