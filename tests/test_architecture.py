"""The floors: a file imports only from floors below its own, and nobody imports its own package root."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Path prefix below the repository -> floor. The longest prefix decides; files of one floor in one
# package may import each other as long as that makes no circle.
FLOORS = {
    "drift_envs/_version.py": 0,
    "drift_envs/errors.py": 1,
    "drift_envs/knobs.py": 2,
    "drift_envs/schedule/": 2,
    "drift_envs/envs/": 3,
    "drift_envs/wrappers/": 3,
    "drift_envs/vector/": 3,
    "drift_envs/oracle": 4,
    "drift_envs/metrics": 4,
    "drift_envs/extras.py": 5,
    "drift_envs/registration.py": 5,
    "drift_envs/cli": 5,
    "drift_envs/__main__.py": 6,
    "drift_envs/__init__.py": 6,
    "agents/drift_agents/types.py": 1,
    "agents/drift_agents/errors.py": 1,
    "agents/drift_agents/registry.py": 2,
    "agents/drift_agents/world.py": 2,
    "agents/drift_agents/matching": 2,
    "agents/drift_agents/prompt": 2,
    "agents/drift_agents/advice.py": 2,
    "agents/drift_agents/conflict.py": 2,
    "agents/drift_agents/recall.py": 4,
    "agents/drift_agents/outlook.py": 2,
    "agents/drift_agents/llm/": 2,
    "agents/drift_agents/embedding/": 2,
    "agents/drift_agents/memory/": 3,
    "agents/drift_agents/policy/": 3,
    "agents/drift_agents/verifier/": 4,
    "agents/drift_agents/controller/": 4,
    "agents/drift_agents/team/": 4,
    "agents/drift_agents/agent.py": 5,
    "agents/drift_agents/team_agent.py": 5,
    "agents/drift_agents/learner/": 5,
    "agents/drift_agents/experiment/": 6,
    "agents/drift_agents/cli": 7,
    "agents/drift_agents/__main__.py": 8,
    "agents/drift_agents/__init__.py": 8,
    "webshop_server/errors.py": 1,
    "webshop_server/": 2,
}
# Whom a package may import beside itself and third-party libraries.
GUESTS = {
    "drift_envs": {"webshop_server", "drift_schedules"},
    "webshop_server": set(),
    "drift_agents": set(),
    "drift_agents.experiment": {"drift_envs"},
    "drift_agents.cli": {"drift_envs"},
}
OURS = {"drift_envs", "webshop_server", "drift_agents", "drift_schedules"}
FILES = sorted(
    path
    for top in ("drift_envs", "webshop_server", "agents/drift_agents")
    for path in (ROOT / top).rglob("*.py")
    if "__pycache__" not in path.parts
)


def module_name(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    if parts[0] == "agents":
        parts = parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in FILES}


def floor(path: Path) -> int:
    name = path.relative_to(ROOT).as_posix()
    matching = [prefix for prefix in FLOORS if name.startswith(prefix)]
    assert matching, f"{name} stands on no floor"
    return FLOORS[max(matching, key=len)]


def imports(path: Path) -> list[tuple[str, int]]:
    """Every module that the file imports, wherever in the file, with the line."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.append((full if full in MODULES else str(node.module), node.lineno))
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_imports_go_down(path: Path) -> None:
    own = module_name(path)
    top = own.split(".")[0]
    for target, line in imports(path):
        head = target.split(".")[0]
        if head not in OURS:
            continue
        where = f"{path.relative_to(ROOT)}:{line} imports {target}"
        if head != top:
            allowed = set().union(*(guests for prefix, guests in GUESTS.items() if f"{own}.".startswith(f"{prefix}.")))
            assert head in allowed, where
        elif path.name not in ("__init__.py", "__main__.py") or own != top:
            assert target != top, f"{where}: nobody imports its own package root"
            assert target in MODULES, f"{where}: no such module"
            assert floor(MODULES[target]) <= floor(path), f"{where}: upward"


def test_no_circle() -> None:
    graph = {name: {t for t, _ in imports(path) if t in MODULES} for name, path in MODULES.items()}
    done: set[str] = set()

    def visit(name: str, way: tuple[str, ...]) -> None:
        assert name not in way, " -> ".join((*way[way.index(name) :], name))
        if name not in done:
            for target in sorted(graph[name]):
                visit(target, (*way, name))
            done.add(name)

    for name in graph:
        visit(name, ())


def test_what_an_evaluator_knows_is_out_of_reach() -> None:
    """Invariant 5: no import from policies, memories, verifiers, controllers or learners reaches the environments."""
    graph = {name: [t for t, _ in imports(path)] for name, path in MODULES.items()}
    blind = ("policy", "memory", "verifier", "controller", "learner")
    for start in MODULES:
        if not start.startswith(tuple(f"drift_agents.{part}" for part in blind)):
            continue
        reached, todo = set(), [start]
        while todo:
            name = todo.pop()
            if name in reached:
                continue
            reached.add(name)
            todo += graph.get(name, [])
        evil = [r for r in reached if r.split(".")[0] in ("drift_envs", "webshop_server", "drift_schedules")]
        evil += [r for r in reached if r.startswith("drift_agents.experiment")]
        assert not evil, f"{start} reaches {evil}"
