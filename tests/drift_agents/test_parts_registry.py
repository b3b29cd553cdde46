from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest
from drift_agents import registry as module
from drift_agents.errors import ArgumentError, UnknownNameError
from drift_agents.registry import MEMORIES, REGISTRIES, Registry

PARTS = [(kind, name) for kind, registry in REGISTRIES.items() for name in registry.names()]


class NotedPart:
    """The part of another package.

    More about it.
    """


@pytest.mark.parametrize(("kind", "name"), PARTS, ids=lambda value: str(value))
def test_the_line_in_the_table_is_the_first_of_the_docstring(kind: str, name: str) -> None:
    registry = REGISTRIES[kind]
    part = registry.load(name)
    assert registry.summaries()[name] == (getattr(part, "about", None) or part.__doc__.splitlines()[0])


@pytest.mark.integration
def test_listing_parts_imports_none_of_them() -> None:
    code = (
        "import sys; from drift_agents.registry import REGISTRIES\n"
        "print(all(r.summaries() for r in REGISTRIES.values()))\n"
        "print([m for m in sys.modules if m.startswith('drift_agents.') and m.count('.') > 1], 'numpy' in sys.modules)"
    )
    # The package's own `__init__` offers classes; only the table itself is measured here.
    stub = "import sys, types; package = types.ModuleType('drift_agents'); package.__path__ = [sys.argv[1]]\n"
    stub += "sys.modules['drift_agents'] = package\n"
    folder = str(module.__file__).removesuffix("/registry.py")
    done = subprocess.run([sys.executable, "-c", stub + code, folder], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["True", "[] False"]


def test_a_part_of_another_package(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        EntryPoint("noted", f"{__name__}:NotedPart", "drift_envs.memories"),
        EntryPoint("none", f"{__name__}:NotedPart", "drift_envs.memories"),
    ]
    monkeypatch.setattr(EntryPoint, "load", lambda point: NotedPart)
    monkeypatch.setattr(module, "entry_points", lambda group: points if group == "drift_envs.memories" else [])
    assert MEMORIES.names()[-1] == "noted"
    assert MEMORIES.summaries()["noted"] == "The part of another package."
    assert MEMORIES.summaries()["none"].startswith("Stores nothing")
    assert isinstance(MEMORIES.make("noted"), NotedPart)


@pytest.mark.parametrize("registry", REGISTRIES.values(), ids=lambda registry: registry.kind)
def test_an_unknown_name_is_refused_with_the_known_or_the_nearest_names(registry: Registry) -> None:
    names = registry.names()
    with pytest.raises(UnknownNameError, match=f"^no {registry.kind} is called 'x'") as caught:
        registry.load("x")
    if len(names) <= 8:
        assert str(caught.value).endswith(f". Known: {', '.join(names)}")
    else:
        nearest = str(caught.value).split(f". The nearest of {len(names)}: ")[1].split(", ")
        assert len(nearest) == 3
        assert set(nearest) <= set(names)


def test_an_unknown_option_is_refused_with_the_nearest_one() -> None:
    message = "the memory 'vanilla' does not take these options: .*'ordre', did you mean 'order'\\? Known: k, order,"
    with pytest.raises(ArgumentError, match=message):
        MEMORIES.make("vanilla", ordre="newest")
