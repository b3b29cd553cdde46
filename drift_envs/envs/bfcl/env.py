"""BFCL's multi-turn tools with knobs: the pool of tasks, one episode of turns, and the environment."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from drift_envs.envs.bfcl import BFCL_KNOBS
from drift_envs.envs.bfcl.interface import BfclInterface, is_error, make_interface
from drift_envs.envs.bfcl.package import (
    FINISH,
    BfclTask,
    EngineCall,
    Engines,
    find_package,
    load_tasks,
    replay_reference,
)
from drift_envs.errors import ArgumentError
from drift_envs.knobs import KnobTable, Value
from drift_envs.package_tools import PackageToolsEnv, Refusal
from drift_envs.recurring_tasks import TaskSequence
from drift_envs.registration import IDS, EnvParts
from drift_envs.tunable import KnobAttribute


class BfclEpisode:
    """The state of an episode.

    Args:
        interface: the tools; replaced from outside when knobs change.
        task: the task.
    """

    def __init__(self, interface: BfclInterface, task: BfclTask) -> None:
        self.interface, self.task = interface, task
        self.engines = Engines(task)
        self.turn = 0
        """How many turns were ended."""
        self.calls: tuple[str, ...] = ()
        """The calls that were answered without an error, as text."""
        self.answer: dict[str, Any] = {}
        self._is_right = True
        """Whether every turn so far has ended in the state that the published calls reach."""

    @property
    def is_over(self) -> bool:
        """Whether all turns were ended."""
        return self.turn == len(self.task.requests)

    @property
    def score(self) -> float:
        """1.0 at the end if every turn has ended in the right state, else 0.0."""
        return float(self.is_over and self._is_right)

    @property
    def request(self) -> str:
        """What the user said last."""
        return self.task.requests[min(self.turn, len(self.task.requests) - 1)]

    @property
    def task_text(self) -> str:
        """What the user said last, and the tools."""
        finish = self.interface.write(EngineCall(FINISH.name, {}))
        return f"{self.request}\n\nTools, called by JSON as {finish}:\n{self.interface.summarize(self.task)}"

    def act(self, text: str) -> str:
        """Execute a call.

        Args:
            text: the call as JSON.

        Returns:
            The answer as JSON.
        """
        try:
            if self.is_over:
                raise Refusal("conflict", "all requests were ended")
            call = self.interface.parse(text, self.task)
            answer = self._end_turn() if call.tool == FINISH.name else self.engines.execute(call)
        except Refusal as refusal:
            self.answer = self.interface.show_refusal(refusal)
            return self.write_answer()
        self.answer = self.interface.show_answer(answer)
        if not is_error(answer):
            self.calls = (*self.calls, json.dumps(json.loads(text)))
        return self.write_answer()

    def _end_turn(self) -> dict[str, Any]:
        """End the turn; one for which no call was published is not checked, as in BFCL."""
        if self.task.reference[self.turn]:
            self._is_right &= self.engines.read_state() == replay_reference(self.task.number)[self.turn + 1]
        self.turn += 1
        return {"ok": True} if self.is_over else {"request": self.request}

    def write_answer(self) -> str:
        """The last answer as JSON; before the first call, the request."""
        return json.dumps(self.answer or ({"answer": None} if self.engines.history else {"request": self.request}))

    def write_state(self) -> str:
        """The state as JSON."""
        requests = json.dumps(list(self.task.requests[: self.turn + 1]))
        return f'{{"requests": {requests}, "calls": [{", ".join(self.calls)}], "answer": {json.dumps(self.answer)}}}'

    def save(self) -> dict[str, Any]:
        """The state as plain data."""
        return {
            "turn": self.turn,
            "history": self.engines.history,
            "calls": self.calls,
            "answer": self.answer,
            "is_right": self._is_right,
        }

    def load(self, saved: Mapping[str, Any]) -> None:
        """Restore a state.

        Args:
            saved: from `save`.
        """
        self.engines = Engines(self.task, saved["history"])
        self.turn, self.calls = saved["turn"], saved["calls"]
        self.answer, self._is_right = saved["answer"], saved["is_right"]


def play_reference(number: int, written: BfclInterface, sent: BfclInterface) -> float:
    """The score of a task's published calls, written for one interface and sent to another.

    Args:
        number: the number of the task.
        written: the interface for which the calls are written.
        sent: the interface that executes them.
    """
    task = load_tasks()[number]
    episode = BfclEpisode(sent, task)
    for turn in task.reference:
        for call in turn:
            episode.act(written.write(call))
        episode.act(written.write(EngineCall(FINISH.name, {})))
    return episode.score


Interfaces = tuple[BfclInterface, ...]

_OTHERS = 0xBFC1
"""The stream of tasks outside the pool."""


@lru_cache(maxsize=4096)
def is_played(number: int) -> bool:
    """Whether a task can be scored.

    Not so if its published calls change nothing, since doing nothing would solve it, or if one of them does not fit the
    tool's own schema.

    Args:
        number: the number of the task.
    """
    before, *after = replay_reference(number)
    plain = make_interface({})
    return any(state != before for state in after) and carry_reference(number, plain, plain) == 1.0


@lru_cache(maxsize=1)
def list_tasks() -> tuple[int, ...]:
    """The numbers of the tasks that can be scored, in order."""
    return tuple(filter(is_played, load_tasks()))


@lru_cache(maxsize=4096)
def carry_reference(number: int, before: BfclInterface, after: BfclInterface) -> float:
    """The score of a task's published calls as they were right before, sent after; cached.

    Args:
        number: the number of the task.
        before: the interface for which they are written.
        after: the interface that executes them.
    """
    return play_reference(number, before, after)


@lru_cache(maxsize=128)
def draw_tasks(
    count: int, interfaces: Interfaces, seed: int, without: Collection[int] = (), affected: bool = True
) -> tuple[int, ...]:
    """Draw tasks whose published calls, carried through the drifts, are right under all conditions.

    Those that the most drifts affect come first: the calls that were right before score nothing after. For a control,
    those that the fewest affect.

    Args:
        count: how many.
        interfaces: those of the conditions, in temporal order.
        seed: of the stream.
        without: the numbers of tasks that are excluded.
        affected: whether drifts should affect the tasks that come first.

    Returns:
        The numbers of the tasks.

    Raises:
        ArgumentError: there are too few such tasks.
    """
    changes = [(old, new) for old, new in pairwise(interfaces) if old is not new]
    hits: dict[int, int] = {}
    for number in map(
        int, np.random.default_rng(seed).permutation([one for one in load_tasks() if one not in without])
    ):
        if sum(one == len(changes) for one in hits.values()) >= count:
            break
        if is_played(number) and all(carry_reference(number, one, one) == 1.0 for one in interfaces):
            lost = sum(carry_reference(number, old, new) < 1.0 for old, new in changes)
            hits[number] = lost if affected else len(changes) - lost
    if len(hits) < count:
        raise ArgumentError(f"`pool` should be at most {len(hits)}, the tasks that there are. Received {count}")
    return tuple(sorted(hits, key=lambda number: -hits[number])[:count])


def make_sequence(
    size: int | None, order: str, conditions: Sequence[Mapping[str, Value]], affected: bool
) -> TaskSequence:
    """The sequence of tasks; there is one place, 0.

    Args:
        size: the number of recurring tasks; `None` draws from all tasks.
        order: `shuffled` or `fixed`.
        conditions: knob values, in temporal order.
        affected: whether tasks come first that drifts affect, or those that none does.

    Raises:
        ArgumentError: if size or order break a rule.
        MissingDependencyError: if the package is not installed.
    """
    find_package()
    interfaces = tuple(make_interface(one) for one in conditions) or (make_interface({}),)
    return TaskSequence(size, order, partial(_draw, interfaces, affected), _list_all, _OTHERS)


def _draw(
    interfaces: Interfaces, affected: bool, place: int, count: int, seed: int, without: tuple[int, ...]
) -> tuple[int, ...]:
    return draw_tasks(count, interfaces, seed, without, affected)


def _list_all(place: int) -> tuple[int, ...]:
    return list_tasks()


class BfclTools(PackageToolsEnv[BfclEpisode]):
    """The multi-turn tasks of BFCL (Patil et al., 2025) in the engines of the package `bfcl-eval`, with drifting tools.

    A user states requests in turn; tools for files, trading, travel, a vehicle, tickets, messages, posts and sums meet
    them. An action is a call as JSON, `{"tool": "cd", "arguments": {"folder": "temp"}}`. `finish` ends a turn and
    answers with the next request; after the last turn the episode ends. The score, which is the reward then, is 1.0 if
    after every turn the engines are in the state that the published calls of the task reach (turns without published
    calls are not compared), else 0.0.

    The observation is the last answer as JSON, at first the request; with `observation_mode="state"` it is a JSON
    object: `requests` (so far), `calls` (those that were answered without an error) and `answer` (the last one).

    Knobs, with defaults and bounds: `drift-envs list --env DriftBfcl-v0`.

    | info | meaning |
    |---|---|
    | `task` | the last request, and the tools, a line each |
    | `actions` | the calls that need no argument, to choose from; any other call is taken as well |
    | `score` | the score, 0.0 before the end |
    | `tools` | the tools with the JSON Schemas of their arguments |

    `reset(options={"goal_index": i})` selects the task `multi_turn_base_i`.

    Args:
        render_mode: `ansi` or `None`.
        observation_mode: `answer` or `state`.
        pool: the number of recurring tasks; `None` draws from all tasks.
        order: `shuffled` (each task once in every round of the pool) or `fixed`.
        conditions: knob values under each of which the published calls, carried through the drift, are right.
        affected: whether tasks come first that changes between two conditions affect, or those that none does.

    Raises:
        ArgumentError: an argument breaks a rule.
        KnobError: a condition names a tool or an argument that there is not.
        MissingDependencyError: the package is not installed.
    """

    knobs: ClassVar[KnobTable] = BFCL_KNOBS
    parts: ClassVar[EnvParts | None] = IDS["DriftBfcl-v0"]
    _make_tasks = staticmethod(make_sequence)
    most_tasks = 1_000
    names = KnobAttribute()
    required = KnobAttribute()
    errors = KnobAttribute()
    units = KnobAttribute()
    defaults = KnobAttribute()

    def _make_interface(self, knobs: Mapping[str, Value], episode: BfclEpisode | None = None) -> BfclInterface:
        return make_interface(knobs)

    def _check_number(self, number: int) -> None:
        if number not in load_tasks() or not is_played(number):
            raise ArgumentError(f"`goal_index` should be the number of a task that can be scored. Received {number}")

    def translate(self, call: EngineCall) -> str:
        """The text of a call of the package under the present knobs. For evaluators.

        Args:
            call: the call, by the package's names and units.
        """
        return make_interface(self.read_knobs()).write(call)

    def _start(self, number: int) -> BfclEpisode:
        return BfclEpisode(make_interface(self.read_knobs()), load_tasks()[number])

    def _make_info(self) -> dict[str, Any]:
        episode = self.episode
        actions = [] if episode.is_over else episode.interface.list_calls(episode.task)
        return {
            "task": episode.task_text,
            "actions": actions,
            "score": episode.score,
            "tools": episode.interface.describe(episode.task),
        }
