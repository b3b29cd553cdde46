"""The engine of one task: the package's environment on a database of its own.

* `Engine` - executes calls, and compares databases by the package's own hash
* `Published`, `play_published` - a task's published actions, and the database that they reach
* `reads_before` - the reads that the rules of the policy demand before a call
* `find_user` - the calls that find a user
* `tells` - the package's own check of what the user is told
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from drift_envs.envs.tau2.package import (
    PackageCall,
    Tau2Task,
    find_kit,
    import_part,
    load_database,
    load_tasks,
    load_tools,
)


class _Table(dict[str, Any]):
    """A table of the shared database, whose records are copied when they are named first."""

    def __init__(self, shared: Mapping[str, Any]) -> None:
        super().__init__(shared)
        self.named: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        found = super().__getitem__(key)
        if key in self.named:
            return found
        self[key] = copied = copy.deepcopy(found)
        return copied

    def __setitem__(self, key: str, record: Any) -> None:
        self.named.add(key)
        super().__setitem__(key, record)


class Engine:
    """The package's environment of a domain, on a database of its own.

    Copies of an engine execute its calls again.

    Args:
        domain: the domain.
        history: calls to execute first.
    """

    def __init__(self, domain: str, history: Iterable[PackageCall] = ()) -> None:
        shared = load_database(domain)
        self._tables = {name: _Table(getattr(shared, name)) for name in type(shared).model_fields}
        # the tools change records in place and read tables by key, so that nothing else is copied
        tools = find_kit(domain)(type(shared).model_construct(**self._tables))
        self._environment = import_part("environment.environment").Environment(domain, "", tools)
        self.domain = domain
        self.history: tuple[PackageCall, ...] = ()
        """The calls that were executed without an error."""
        for call in history:
            self.execute(call)

    def __reduce__(self) -> tuple[Any, tuple[str, tuple[PackageCall, ...]]]:
        """The calls, without the database."""
        return Engine, (self.domain, self.history)

    def execute(self, call: PackageCall) -> dict[str, Any]:
        """Execute a call.

        Args:
            call: a call of a tool of the domain, with all arguments.

        Returns:
            The package's answer as an object: a record, `result`, or `error`.
        """
        arguments = copy.deepcopy(call.arguments)
        request = import_part("data_model.message").ToolCall(id="", name=call.tool, arguments=arguments)
        answer = self._environment.get_response(request)
        if answer.error:
            return {"error": answer.content.removeprefix("Error: ")}
        self.history = (*self.history, call)
        shown = json.loads(answer.content) if answer.content[:1] in ("{", "[") else answer.content
        return shown if isinstance(shown, dict) else {"result": shown}

    def foresee(self, call: PackageCall) -> dict[str, Any]:
        """The answer to a call that is not executed.

        Args:
            call: the call.
        """
        return Engine(self.domain, self.history).execute(call)

    def equals(self, other: Engine) -> bool:
        """Whether the package's hash of both databases is the same; records that neither has named are left out.

        Args:
            other: an engine of the same domain.
        """
        named = {name: table.named | other._tables[name].named for name, table in self._tables.items()}
        return self._hash(named) == other._hash(named)

    def _hash(self, named: Mapping[str, set[str]]) -> str:
        tables = {
            name: {key: table[key] for key in sorted(named[name]) if key in table}
            for name, table in self._tables.items()
        }
        found: str = type(self._environment.tools.db).model_construct(**tables).get_hash()
        return found


class Published(NamedTuple):
    """A task's published actions.

    Args:
        calls: those that the package executes without an error; the others change nothing.
        engine: the engine after them.
    """

    calls: tuple[PackageCall, ...]
    engine: Engine


@lru_cache(maxsize=512)
def play_published(number: int) -> Published:
    """Execute the published actions of a task; as in the package's evaluator, errors are passed over.

    Args:
        number: the number of the task.
    """
    task = load_tasks()[number]
    engine = Engine(task.domain)
    for call in task.published:
        engine.execute(call)
    return Published(engine.history, engine)


def reads_before(domain: str, call: PackageCall) -> dict[str, PackageCall]:
    """The reads that the rules of the policy demand before a call, by rule.

    Args:
        domain: the domain.
        call: the call.

    Returns:
        Nothing for calls that only read, and for records that there are not.
    """
    if not load_tools(domain)[call.tool].is_write:
        return {}
    kind = "order" if domain == "retail" else "reservation"
    key, records = f"{kind}_id", getattr(load_database(domain), f"{kind}s")
    record, found = call.arguments.get(key), {}
    user = call.arguments.get("user_id") or getattr(records.get(record), "user_id", None)
    if user is not None:
        found["identify"] = PackageCall("get_user_details", {"user_id": user})
    if record in records:
        found["look_up"] = PackageCall(f"get_{kind}_details", {key: record})
    return found


def find_user(domain: str, user: str) -> list[PackageCall]:
    """The calls that find a user; none at the airline, whose users give their id.

    Args:
        domain: the domain.
        user: the user's id.
    """
    if domain != "retail":
        return []
    found = load_database(domain).users[user]
    name = {"first_name": found.name.first_name, "last_name": found.name.last_name, "zip": found.address.zip}
    return [
        PackageCall("find_user_id_by_email", {"email": found.email}),
        PackageCall("find_user_id_by_name_zip", name),
    ]


def tells(task: Tau2Task, message: str) -> bool:
    """Whether a message has what the user has to be told, by the package's own check.

    Args:
        task: the task.
        message: the message.
    """
    said = [import_part("data_model.message").AssistantMessage(role="assistant", content=message)]
    evaluator = import_part("evaluator.evaluator_communicate").CommunicateEvaluator
    return all(check.met for check in evaluator.evaluate_communicate_info(said, list(task.told)))
