"""What evaluators see of a drifting environment: its true state, what changed, and returns by phase."""

from __future__ import annotations

import csv
import io
import json
import os
import warnings
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any, NamedTuple, TextIO, overload

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper

from drift_envs.checks import check_integer, check_reward, check_single
from drift_envs.errors import ArgumentError, DriftWarning
from drift_envs.knobs import Value
from drift_envs.schedule import KnobChange, Phase, Timeline
from drift_envs.wrappers.internal import KnobGuard, refuse_autoreset

MOST_LEFT = 5
"""Episodes that may be left before their end without a warning."""


@dataclass(frozen=True)
class DriftState:
    """The present state of a drifting environment.

    Args:
        phase: the id of the present phase.
        tick: the tick of the last transition, or of the next one after a reset.
        episode: episodes before this one since the last rewind.
        step: transitions of this episode so far.
        knobs: the value of every knob, read back from the environment.
    """

    phase: str
    tick: int
    episode: int
    step: int
    knobs: Mapping[str, Value]


@dataclass
class VisitedTicks:
    """Which ticks were visited, as disjoint spans in order.

    Args:
        spans: first and last tick of each span.

    Example:
        >>> visited = VisitedTicks()
        >>> for first, last in ((0, 3), (10, 12), (4, 5), (2, 2)):
        ...     visited.add(first, last)
        >>> visited.spans
        [(0, 5), (10, 12)]
    """

    spans: list[tuple[int, int]] = field(default_factory=list)

    @property
    def last(self) -> int:
        """The latest tick that was visited, -1 if there is none."""
        return self.spans[-1][1] if self.spans else -1

    def add(self, first: int, last: int) -> None:
        """Add the ticks from `first` to `last`, both included."""
        if self.spans and self.spans[-1][0] <= first <= self.spans[-1][1] + 1:  # time advanced, the usual case
            self.spans[-1] = (self.spans[-1][0], max(last, self.spans[-1][1]))
            return
        apart = [span for span in self.spans if span[1] + 1 < first or last + 1 < span[0]]
        joined = [span for span in self.spans if span not in apart]
        whole = (min([first, *(span[0] for span in joined)]), max([last, *(span[1] for span in joined)]))
        self.spans = sorted([*apart, whole])


class DriftLog(Sequence[KnobChange]):
    """Every change of a knob on the ticks that were visited since the last rewind.

    A change is listed when the tick at which it happens was visited, however often, and the environment took it.
    Changes are computed from the timeline when they are read, some thousands at a time, so that a log of millions
    takes no memory: iterate over it, or take slices.

    Args:
        timeline: the timeline of the schedule.
        visited: the ticks, which may change afterwards.
        lost: tick and knob of changes that the environment did not take.
    """

    def __init__(self, timeline: Timeline, visited: VisitedTicks, lost: Collection[tuple[int, str]] = ()) -> None:
        self._timeline, self._lost = timeline, frozenset(lost)
        self._spans = [(max(first - 1, 0), last + 1) for first, last in visited.spans]
        self._starts: list[tuple[int, int]] = []  # the stretches of ticks that have changes, made when needed
        self._ends: list[int] | None = None  # for each of them, how many changes there are up to its end
        self._part: tuple[int, list[KnobChange]] = (-1, [])

    @property
    def changes(self) -> tuple[KnobChange, ...]:
        """All changes at once, about 150 bytes each."""
        return tuple(self)

    @overload
    def __getitem__(self, index: int) -> KnobChange: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[KnobChange, ...]: ...

    def __getitem__(self, index: int | slice) -> KnobChange | tuple[KnobChange, ...]:
        """One change, or a tuple of some."""
        places = range(len(self))[index]
        return self._at(places) if isinstance(places, int) else tuple(map(self._at, places))

    def _at(self, place: int) -> KnobChange:
        ends = self._counted()
        number = bisect_right(ends, place)
        if self._part[0] != number:
            self._part = number, list(self._read(*self._starts[number]))
        return self._part[1][place - ends[number]]

    def _counted(self) -> list[int]:
        if self._ends is None:
            ends, total = [], 0
            lost = sorted(tick for tick, _ in self._lost)
            for start, stop in self._spans:
                counts = list(self._timeline.count_changes(start, stop))
                for (first, count), last in zip(counts, [*(one[0] + 1 for one in counts[1:]), stop], strict=False):
                    if bisect_right(lost, first) < bisect_left(lost, last):
                        count = sum(1 for _ in self._read(first, last))
                    total += count
                    self._starts.append((first, last))
                    ends.append(total)
            self._ends = ends
        return self._ends

    def _read(self, start: int, stop: int) -> Iterator[KnobChange]:
        """The changes with start < tick < stop that the environment took."""
        changes = self._timeline.iterate_changes(start, stop)
        return (one for one in changes if (one.tick, one.knob) not in self._lost) if self._lost else changes

    def __len__(self) -> int:
        """How many changes there are."""
        return self._counted()[-1] if self._counted() else 0

    def __iter__(self) -> Iterator[KnobChange]:
        """The changes in order."""
        return chain.from_iterable(self._read(*span) for span in self._spans)

    def __eq__(self, other: object) -> bool:
        """Whether another log has the same changes."""
        if not isinstance(other, DriftLog):
            return NotImplemented
        nothing = object()
        return all(one == same for one, same in zip_longest(self, other, fillvalue=nothing))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        first = ", ".join(map(repr, islice(self, 4)))
        return f"DriftLog([{first}{', ...' if next(islice(self, 4, None), None) else ''}])"

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """The log as CSV with a header; values other than text are written as JSON.

        Args:
            path: a file to write it to, row by row.

        Returns:
            The text, `None` if it was written to a file.
        """
        if path is not None:
            with Path(path).open("w", encoding="utf-8", newline="") as file:
                self._write(file)
            return None
        text = io.StringIO()
        self._write(text)
        return text.getvalue()

    def _write(self, file: TextIO) -> None:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(KnobChange._fields)
        for change in self:
            writer.writerow([change.tick, change.knob, _plain(change.old), _plain(change.new), change.drift])


def _plain(value: Value) -> str:
    """A knob's value in one cell."""
    if isinstance(value, str):
        return value
    return json.dumps(dict(value) if isinstance(value, Mapping) else value)


class PhaseReturn(NamedTuple):
    """One episode.

    Args:
        phase: the id of the phase in which it began.
        tick: the tick of its first transition.
        score: the sum of its rewards.
        steps: its length.
    """

    phase: str
    tick: int
    score: float
    steps: int


@dataclass(eq=False, repr=False)
class EpisodeReturns(Sequence[PhaseReturn]):
    """Finished episodes in order, 32 bytes each.

    It equals any list of the same episodes, and a slice of it is a list.

    Args:
        phases: the number of each phase by its id.
        numbers: phase, tick and length of each episode; shape `(K, 3)` with a `K` of at least `stored`.
        scores: the return of each; shape `(K,)`.
        stored: how many episodes there are.

    Example:
        >>> episodes = EpisodeReturns()
        >>> episodes.append(PhaseReturn("source", 0, 1.0, 6))
        >>> episodes[-1], len(episodes), episodes == [PhaseReturn("source", 0, 1.0, 6)]
        (PhaseReturn(phase='source', tick=0, score=1.0, steps=6), 1, True)
    """

    phases: dict[str, int] = field(default_factory=dict)
    numbers: np.ndarray = field(default_factory=lambda: np.zeros((0, 3), np.int64))
    scores: np.ndarray = field(default_factory=lambda: np.zeros(0))
    stored: int = 0

    @classmethod
    def of(cls, episodes: Iterable[PhaseReturn]) -> EpisodeReturns:
        """These episodes."""
        found = cls()
        for episode in episodes:
            found.append(episode)
        return found

    def append(self, episode: PhaseReturn) -> None:
        """Store an episode."""
        place = self.stored
        if place == len(self.scores):
            more = max(place // 2, 16)
            self.numbers = np.concatenate([self.numbers, np.zeros((more, 3), np.int64)])
            self.scores = np.concatenate([self.scores, np.zeros(more)])
        self.numbers[place] = self.phases.setdefault(episode.phase, len(self.phases)), episode.tick, episode.steps
        self.scores[place] = episode.score
        self.stored = place + 1

    def clear(self) -> None:
        """Forget all episodes."""
        self.phases, self.numbers, self.scores, self.stored = {}, np.zeros((0, 3), np.int64), np.zeros(0), 0

    @overload
    def __getitem__(self, index: int) -> PhaseReturn: ...

    @overload
    def __getitem__(self, index: slice) -> list[PhaseReturn]: ...

    def __getitem__(self, index: int | slice) -> PhaseReturn | list[PhaseReturn]:
        """An episode, or a list of some."""
        if not isinstance(index, slice):
            place = range(self.stored)[index]
            return self._read(slice(place, place + 1))[0]
        return self._read(np.arange(self.stored)[index])

    def _read(self, places: Any) -> list[PhaseReturn]:
        names = list(self.phases)
        return [
            PhaseReturn(names[phase], tick, score, steps)
            for (phase, tick, steps), score in zip(
                self.numbers[places].tolist(), self.scores[places].tolist(), strict=True
            )
        ]

    def __len__(self) -> int:
        """How many episodes there are."""
        return self.stored

    def __iter__(self) -> Iterator[PhaseReturn]:
        """The episodes in order."""
        for start in range(0, self.stored, 1024):
            yield from self._read(slice(start, min(start + 1024, self.stored)))

    def __eq__(self, other: object) -> bool:
        """Whether a list, or what another wrapper stored, has the same episodes."""
        if not isinstance(other, EpisodeReturns | list):
            return NotImplemented
        return len(self) == len(other) and all(one == same for one, same in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))


def group_by_phase(episodes: Iterable[PhaseReturn]) -> dict[str, list[float]]:
    """The returns of each phase, in the order in which the phases occurred.

    Example:
        >>> group_by_phase([PhaseReturn("source", 0, 1.0, 6), PhaseReturn("drift-1", 1, 0.0, 9)])
        {'source': [1.0], 'drift-1': [0.0]}
    """
    found: dict[str, list[float]] = defaultdict(list)
    for episode in episodes:
        found[episode.phase].append(episode.score)
    return dict(found)


def warn_of_schedules(timelines: Iterable[Timeline], result: str) -> None:
    """Warn of different schedules, whose phases of one name are not the same.

    Args:
        timelines: of the copies.
        result: what their episodes become.

    Warns:
        DriftWarning: if there is more than one schedule.
    """
    schedules = list(dict.fromkeys(timeline.schedule for timeline in timelines))
    if len(schedules) > 1:
        names = ", ".join(f"`{schedule.name}`" for schedule in schedules)
        warnings.warn(
            f"the environments have {len(schedules)} different schedules ({names}): {result} although phases of one "
            "name differ; take those of one schedule at a time",
            DriftWarning,
            stacklevel=3,
        )


@dataclass
class _Running:
    """The return so far of the episode that is played."""

    phase: str
    tick: int
    score: float = 0.0
    steps: int = 0
    is_over: bool = False


class PhaseReturns(KnobGuard, RecordConstructorArgs):
    """Stores the return of every finished episode together with its phase. For evaluators.

    Observations and `info` do not change, so that the agent does not see the phase. With a clock of
    steps, an episode belongs to the phase in which it began. An episode that is left before its end is not stored.

    Args:
        env: an environment with a `DriftWrapper` inside.

    Raises:
        ArgumentError: if the environment does not drift.

    Warns:
        DriftWarning: once, if more than five episodes were left, and more than were stored.

    Example:
        >>> import drift_envs
        >>> drift = {"at": 1, "set": {"map": ["SFFG"]}}
        >>> schedule = {"version": 1, "name": "s", "base": {"map": ["SG"]}, "drifts": [drift]}
        >>> env = PhaseReturns(gym.make("DriftFrozenLake-v0", schedule=schedule))
        >>> for episode in range(2):
        ...     _, _ = env.reset(seed=0 if episode == 0 else None)
        ...     while not any(env.step(2)[2:4]):
        ...         pass
        >>> env.by_phase()
        {'source': [1.0], 'drift-1': [1.0]}
        >>> env.episodes[1]
        PhaseReturn(phase='drift-1', tick=1, score=1.0, steps=3)
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        check_single(env, otherwise="; use `VectorPhaseReturns`")
        if not env.has_wrapper_attr("drift_state"):
            raise ArgumentError(f"`env` should have a `DriftWrapper` inside. Received {env}")
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self.episodes = EpisodeReturns()
        self._running = _Running("", 0)
        self._left = 0
        self._has_warned = False
        self._driven = self.find_driven(env)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; one that has not ended is not stored.

        Args:
            seed: passed on.
            options: passed on.
        """
        result = self.env.reset(seed=seed, options=options)
        if self._running.steps and not self._running.is_over:
            self._left += 1
            if self._left > max(MOST_LEFT, len(self.episodes)) and not self._has_warned:
                self._has_warned = True
                warnings.warn(
                    f"{self._left} episodes were left before their end and are not stored, {len(self.episodes)} ended: "
                    "put a `TimeLimit` below this wrapper, or pass `max_episode_steps` to `gym.make`",
                    DriftWarning,
                    stacklevel=2,
                )
        self._start()
        return result

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step, and store the episode if it has ended.

        A step after the end that does not end anything is the reset of an `Autoreset` inside.

        Args:
            action: passed on.
        """
        result = self.env.step(action)
        running = self._running
        if running.is_over:
            if not (result[2] or result[3]):
                self._start()
            return result
        running.score += check_reward(result[1])
        running.steps += 1
        if result[2] or result[3]:
            running.is_over = True
            self._store(PhaseReturn(running.phase, running.tick, running.score, running.steps))
        return result

    @property
    def returns_progress(self) -> tuple[Any, ...]:
        """The stored episodes and the running one; set where a training goes on in another process."""
        return list(self.episodes), astuple(self._running), self._left

    @returns_progress.setter
    def returns_progress(self, saved: tuple[Any, ...]) -> None:
        episodes, running, self._left = saved
        self.episodes, self._running = EpisodeReturns.of(episodes), _Running(*running)

    def _start(self) -> None:
        state = self.env.get_wrapper_attr("drift_state")
        self._running = _Running(state.phase, state.tick)

    def _store(self, episode: PhaseReturn) -> None:
        self.episodes.append(episode)

    def by_phase(self) -> dict[str, list[float]]:
        """The returns of each phase, in the order in which the phases occurred."""
        return group_by_phase(self.episodes)


class VectorPhaseReturns(VectorWrapper):  # type: ignore[type-arg]
    """Stores the return of every finished episode of a vector environment together with its phase. For evaluators.

    Observations and `info` do not change.

    Args:
        env: a vector environment of drifting environments: a native one of `gym.make_vec`, or Gymnasium's
            `SyncVectorEnv` and `AsyncVectorEnv`, in each mode of autoreset.

    Attributes:
        episodes: for each copy the sequence of its finished episodes.

    Raises:
        ArgumentError: if the environment does not drift.

    Warns:
        DriftWarning: if the copies have different schedules.

    Example:
        >>> import drift_envs
        >>> lakes = VectorPhaseReturns(gym.make_vec("DriftFrozenLake-v0", num_envs=2, schedule="frozen_lake/explicit"))
        >>> _ = lakes.reset(seed=0)
        >>> for _ in range(400):
        ...     _ = lakes.step(lakes.action_space.sample())
        >>> lakes.episodes[1][0].phase, len(lakes.episodes)
        ('source', 2)
    """

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        try:
            super().__init__(env)
            timelines = env.unwrapped.get_attr("timeline")  # type: ignore[attr-defined]
        except (AttributeError, TypeError) as error:
            advice = "; use `PhaseReturns`" if isinstance(env, gym.Env) else ""
            raise ArgumentError(f"`env` should be a vector environment that drifts. Received {env}{advice}") from error
        warn_of_schedules(timelines, "by_phase() pools their returns")
        self.episodes = [EpisodeReturns() for _ in range(env.num_envs)]
        self._begins: list[tuple[str, int]] = [("", 0)] * env.num_envs
        self._scores = np.zeros(env.num_envs)
        self._steps = np.zeros(env.num_envs, np.int64)
        self._resets = np.zeros(env.num_envs, bool)  # whether the next step only resets
        self._phases: dict[int, Phase] = {}  # of native copies, which hold for many episodes
        self._mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin episodes; those that have not ended are not stored.

        Args:
            seed: passed on.
            options: passed on; with a `reset_mask` only these copies begin an episode.
        """
        mask = np.asarray((options or {}).get("reset_mask", np.ones(self.num_envs, bool)))
        result = self.env.reset(seed=seed, options=options)
        self._phases.clear()
        self._begin(mask)
        return result

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step all copies, and store the episodes that have ended.

        Args:
            actions: passed on.
        """
        result = self.env.step(actions)
        acted = ~self._resets
        self._scores[acted] += np.asarray(result[1], float)[acted]
        self._steps[acted] += 1
        ended = (result[2] | result[3]) & acted
        for copy in ended.nonzero()[0].tolist():
            phase, tick = self._begins[copy]
            self.episodes[copy].append(PhaseReturn(phase, tick, float(self._scores[copy]), int(self._steps[copy])))
        began = ended if self._mode is AutoresetMode.SAME_STEP else self._resets
        self._resets = ended if self._mode is AutoresetMode.NEXT_STEP else np.zeros_like(ended)
        self._begin(began)
        return result

    def _begin(self, began: np.ndarray) -> None:
        copies = began.nonzero()[0].tolist()
        for copy, begin in zip(copies, self._read(copies) if copies else [], strict=True):
            self._begins[copy] = begin
        self._scores[began], self._steps[began], self._resets[began] = 0.0, 0, False

    def _read(self, copies: Sequence[int]) -> list[tuple[str, int]]:
        """Phase and tick of some copies."""
        base: Any = self.env.unwrapped
        if hasattr(base, "clocks"):  # a native one, with thousands of copies
            ticks = base.clocks.ticks(np.array(copies, np.int64)).tolist()
            for copy, tick in zip(copies, ticks, strict=True):
                phase = self._phases.get(copy)
                if phase is None or not phase.start <= tick < phase.stop:
                    self._phases[copy] = base.pool.timeline(copy).phase(tick)
            return [(self._phases[copy].id, tick) for copy, tick in zip(copies, ticks, strict=True)]
        if hasattr(base, "envs"):
            states = [base.envs[copy].get_wrapper_attr("drift_state") for copy in copies]
        else:  # copies in processes of their own are read together
            states = [base.get_attr("drift_state")[copy] for copy in copies]
        return [(state.phase, state.tick) for state in states]

    def by_phase(self) -> dict[str, list[float]]:
        """The returns of each phase, in the order in which the phases occurred."""
        return group_by_phase(sorted((one for own in self.episodes for one in own), key=lambda one: one.tick))


class HeldClock(KnobGuard, RecordConstructorArgs):
    """Holds time at a given tick over all resets, so that evaluation does not move its own clock.

    Args:
        env: an environment with a `DriftWrapper` inside.

    Raises:
        ArgumentError: if the environment does not drift, or an `Autoreset` is inside.

    Example:
        >>> import drift_envs
        >>> env = HeldClock(gym.make("DriftFrozenLake-v0", schedule="frozen_lake/explicit"))
        >>> env.hold_at(25)
        >>> for _ in range(2):
        ...     _ = env.reset()
        >>> env.get_wrapper_attr("drift_state").tick
        25
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        check_single(env)
        refuse_autoreset(env)
        if not env.has_wrapper_attr("drift_state"):
            raise ArgumentError(f"`env` should have a `DriftWrapper` inside. Received {env}")
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self._tick = 0
        self._seed: int | None = None
        self._driven = self.find_driven(env)

    def hold_at(self, tick: int, timeline_seed: int | None = None) -> None:
        """Set the tick of all episodes from the next reset on.

        Args:
            tick: the tick.
            timeline_seed: the seed of the drifts, by default the present one.

        Raises:
            ArgumentError: if one of them is no whole number of at least 0.
        """
        self._tick = check_integer("tick", tick)
        seed = check_integer("timeline_seed", timeline_seed, optional=True)
        self._seed = None if seed == self.env.get_wrapper_attr("timeline").seed else seed

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode at the held tick.

        Args:
            seed: passed on; by default that of `hold_at`, once.
            options: passed on, together with those that hold the clock.

        Raises:
            ArgumentError: if an option moves or starts time, which is held at the tick of `hold_at`.
        """
        given = options or {}
        for name in ("drift_tick", "drift_phase", "drift_clock"):
            if given.get(name, "hold") not in ("hold", None):
                raise ArgumentError(
                    f"`{name}` should not be given, since `HeldClock` holds time at tick {self._tick}; call `hold_at` "
                    f"to play another tick. Received {given[name]!r}"
                )
        seed, self._seed = self._seed if seed is None else seed, None
        return self.env.reset(seed=seed, options={**given, "drift_tick": self._tick, "drift_clock": "hold"})
