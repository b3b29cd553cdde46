"""One episode: the calls so far, the records that were read, and the score.

* `Tau2Episode` - executes calls, and writes observations
* `plan_reference`, `carry_reference` - the published actions of a task under an interface, and their texts
* `replay` - the score of such texts under another interface, cached
* `list_choices` - calls to choose from
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from drift_envs.envs.tau2.engine import Engine, find_user, play_published, reads_before, tells
from drift_envs.envs.tau2.interface import Tau2Interface
from drift_envs.envs.tau2.package import FINISH, PackageCall, Tau2Task, load_tasks, load_tools
from drift_envs.tool_calls import Refusal

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
