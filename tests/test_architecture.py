"""The order of folders and files: a folder imports only from folders below its own.

`ORDER` is the one table; CONTRIBUTING shows the same, and a test compares them.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Folders and files from bottom to top, for each package; one row holds what may stand side by side, and does not
# import each other. Below a row's folder, files may import each other as long as that makes no circle, neither
# between files nor between the folder's own subfolders.
ORDER: dict[str, list[list[str]]] = {
    "webshop_server": [
        ["command_line", "errors", "product", "vocabulary"],
        ["catalogue", "checks", "jsonstream", "urls"],
        ["generate", "goals", "importer", "page_model", "picture", "search", "settings"],
        ["action", "inventory", "parser", "renderer", "reward"],
        ["page_builder"],
        ["shop"],
        ["client", "oracle", "serving", "sessions"],
        ["routes", "shared_sessions"],
        ["compat"],
        ["app"],
        ["__init__", "__main__"],
    ],
    "drift_envs": [
        ["_version", "errors"],
        ["checks", "lazy"],
        ["knobs"],
        ["schedule"],
        ["envs"],
        ["wrappers"],
        ["vector"],
        ["metrics", "oracle"],
        ["registration"],
        ["lifetime", "loopback"],
        ["dialogue"],
        [
            "alfworld",
            "browsergym",
            "entry_points",
            "functional",
            "inspect_ai",
            "mcp",
            "openenv",
            "sb3",
            "textworld",
            "tracking",
            "verifiers",
        ],
        ["cli"],
        ["__init__", "__main__"],
    ],
    "drift_agents": [
        ["errors", "types"],
        ["checks", "registry", "world"],
        ["embedding", "environment", "llm"],
        ["matching"],
        ["prompt", "stores"],
        ["memory", "policy"],
        ["controller", "team", "verifier"],
        ["envs"],
        ["agent"],
        ["team_agent"],
        ["experiment"],
        ["analysis"],
        ["submission"],
        ["cli"],
        ["__init__", "__main__"],
    ],
    "studies": [
        ["belief", "claims", "experience", "fitted", "injection", "mechanisms", "prompts", "readers", "tuning"],
        ["__init__", "__main__"],
    ],
}
# What a package may import beside itself and third-party libraries.
GUESTS = {
    "drift_envs": {"webshop_server", "drift_schedules"},
    "webshop_server": set(),
    "drift_agents": set(),
    "drift_agents.experiment": {"drift_envs"},
    "drift_agents.analysis": {"drift_envs"},
    "drift_agents.submission": {"drift_envs"},
    "drift_agents.cli": {"drift_envs", "webshop_server"},
    "studies": {"drift_agents", "drift_envs", "webshop_server"},
}
OURS = {"drift_envs", "webshop_server", "drift_agents", "drift_schedules", "studies"}
FILES = sorted(
    path
    for top in ("drift_envs", "webshop_server", "agents/drift_agents", "studies")
    for path in (ROOT / top).rglob("*.py")
    if "__pycache__" not in path.parts
)


def module_name(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    if parts[0] == "agents":
        parts = parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in FILES}


def row_of(name: str) -> int:
    """The row in which a module stands, counted from the bottom of its package."""
    top, _, rest = name.partition(".")
    rows = ORDER[top]
    first = rest.split(".")[0] or "__init__"
    found = [index for index, row in enumerate(rows) if first in row]
    assert found, f"{name} stands in no row"
    return found[0]


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
            assert target != top, f"{where}: no module imports its own package root"
            assert target in MODULES, f"{where}: no such module"
            mine, other = own.split(".")[1:2], target.split(".")[1:2]
            assert mine == other or row_of(target) < row_of(own), f"{where}: not downward"


ENVIRONMENTS = ("drift_agents.envs.",)
"""Packages in which each folder holds one environment."""


def test_no_environment_imports_another() -> None:
    for name, path in MODULES.items():
        for prefix in ENVIRONMENTS:
            own = name.removeprefix(prefix).split(".")[0]
            for target, line in imports(path) if name.startswith(prefix) else []:
                other = target.removeprefix(prefix).split(".")[0]
                assert not target.startswith(prefix) or other == own, f"{path}:{line} imports {target}"


def assert_no_circle(graph: dict[str, set[str]]) -> None:
    done: set[str] = set()

    def visit(name: str, way: tuple[str, ...]) -> None:
        assert name not in way, " -> ".join((*way[way.index(name) :], name))
        if name not in done:
            for target in sorted(graph.get(name, ())):
                visit(target, (*way, name))
            done.add(name)

    for name in sorted(graph):
        visit(name, ())


def test_no_circle_of_files() -> None:
    assert_no_circle({name: {t for t, _ in imports(path) if t in MODULES} for name, path in MODULES.items()})


def test_no_circle_of_folders() -> None:
    """A folder is seen as one room by its siblings, whatever file of it is meant."""
    graph: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for name, path in MODULES.items():
        for target, _ in imports(path):
            if target not in MODULES:
                continue
            mine, other = name.split("."), target.split(".")
            depth = 0
            while depth < min(len(mine), len(other)) - 1 and mine[depth] == other[depth]:
                depth += 1
            if depth < len(mine) and depth < len(other) and mine[depth] != other[depth]:
                graph[".".join(mine[:depth])][mine[depth]].add(other[depth])
    for siblings in graph.values():
        assert_no_circle(siblings)


def test_the_experiment_plays_and_the_analysis_reads() -> None:
    for name, path in MODULES.items():
        for target, line in imports(path):
            if name.startswith("drift_agents.experiment"):
                assert not target.startswith("drift_agents.analysis"), f"{path}:{line}"
            assert name.startswith("studies") or not target.startswith("studies"), f"{path}:{line}"


def test_what_an_evaluator_knows_is_out_of_reach() -> None:
    """Invariant 5: no import from policies, memories, verifiers, controllers or `envs` reaches the environments."""
    graph = {name: [t for t, _ in imports(path)] for name, path in MODULES.items()}
    blind = ("policy", "memory", "verifier", "controller", "envs")
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


# One class name may stand in several packages only where each package has its own base for it.
SHARED_NAMES = {"ArgumentError", "MissingDependencyError"}


def test_a_class_name_means_one_thing() -> None:
    found = defaultdict(list)
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    twice = {name: places for name, places in found.items() if len(places) > 1 and name not in SHARED_NAMES}
    assert not twice, twice


SMALL = 150
"""Lines; a shorter file that only one other file imports needs a reason."""

REASONS: dict[str, tuple[str, ...]] = {
    "one environment a file; the package collects them": ("drift_envs.functional.car", "drift_envs.vector.watched"),
    "the original's server beside its text environment, as its sibling": ("webshop_server.compat.routes",),
    "one command a file, imported when the command runs": (
        "studies.mechanisms",
        "studies.tuning",
        "drift_agents.analysis.finetuning_sets",
        "drift_agents.analysis.html.report",
        "drift_agents.analysis.inspect.serve",
        "drift_agents.cli.dry_run",
        "drift_agents.cli.listing",
        "drift_agents.cli.memories",
        "drift_agents.cli.serve_local",
        "drift_envs.cli.listing",
        "drift_envs.cli.schedules",
        "drift_envs.cli.severity",
        "drift_envs.cli.show",
        "studies.experience.command",
        "studies.injection",
    ),
    "one check of a submission a file, collected by one file": (
        "drift_agents.submission.cell_lines",
        "drift_agents.submission.run_statement",
    ),
    "one group of commands a file, as its siblings": ("drift_agents.cli.remembering",),
    "the entry point of the program": ("drift_agents.cli.app",),
    "compiled functions apart from the interface that calls them": ("drift_envs.functional.batch",),
    "what users import; the package's root names it": ("drift_agents.analysis.run",),
    "one kind of table or picture a file, collected by one file": (
        "drift_agents.analysis.plots.draw",
        "drift_agents.analysis.plots.methods",
        "drift_agents.analysis.plots.visits",
        "drift_agents.analysis.tables.breakdowns",
        "drift_envs.wrappers.overlay.strip",
        "studies.experience.curves",
        "drift_agents.analysis.plots.board",
    ),
    "one study, or the claims of one experiment, a file; the registry collects them": (
        "studies.belief.convergence",
        "studies.belief.corpus",
        "studies.belief.registry",
        "studies.claims.adaptation",
        "studies.claims.detection",
        "studies.claims.families",
        "studies.claims.noise",
        "studies.claims.policies",
    ),
    "one controller, verifier, prober, reference or rule a file, as its siblings": (
        "drift_agents.controller.direct",
        "drift_agents.experiment.extra_episodes",
        "drift_agents.experiment.references",
        "drift_agents.policy.planner",
        "drift_agents.team.judge",
        "drift_agents.verifier.prober.snapshot",
    ),
    "an equation or algorithm of a paper, tested on its own": (
        "drift_agents.controller.strategy",
        "drift_agents.memory.generative_agents.salience",
        "drift_agents.memory.management.supervision",
        "drift_agents.verifier.prober.paths",
        "drift_agents.verifier.prober.transition_graph",
        "drift_envs.envs.webshop.clusters",
    ),
    "a data structure tested on its own, apart from a long file": (
        "drift_envs.envs.miniwob.knobs",
        "drift_agents.llm.request_parameters",
        "drift_agents.envs.mountain_car.motion_table",
        "drift_envs.envs.frozen_lake.tables",
        "drift_envs.vector.due_window",
        "drift_envs.vector.infos",
        "drift_envs.vector.reset_request",
        "drift_envs.vector.slope",
    ),
    "what a server sends, tested on its own, apart from the exchange": (
        "drift_agents.llm.server_errors",
        "drift_agents.llm.server_replies",
    ),
    "imports an optional or slow library, or is imported by one, at first use": (
        "drift_envs.envs.miniwob.package_form",
        "drift_envs.envs.webshop.picture",
        "drift_envs.oracle.factories",
        "drift_envs.functional.entry",
        "drift_envs.vector.entry",
    ),
    "plays by any oracle, so that it stands above those of each environment": ("drift_envs.oracle.severity",),
    "what is declared for each world, apart from what uses it": ("drift_envs.oracle.controllers",),
    "data without logic": ("webshop_server.vocabulary",),
}


def small_files_with_one_importer() -> set[str]:
    importers = defaultdict(set)
    for name, path in MODULES.items():
        for target, _ in imports(path):
            importers[target].add(name)
    return {
        name
        for name, path in MODULES.items()
        if path.name not in ("__init__.py", "__main__.py")
        and len(importers[name]) == 1
        and len(path.read_text(encoding="utf-8").splitlines()) < SMALL
    }


def test_a_small_file_with_one_importer_has_a_reason() -> None:
    reasons = [name for names in REASONS.values() for name in names]
    assert len(reasons) == len(set(reasons))
    missing = small_files_with_one_importer() - set(reasons)
    assert not missing, f"merge each into the file that imports it, or add it to REASONS: {sorted(missing)}"
    gone = set(reasons) - set(MODULES)
    assert not gone, f"REASONS names modules that do not exist: {sorted(gone)}"
