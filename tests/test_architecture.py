"""The order of folders and files: a folder imports only from folders below its own.

`ORDER` is the one table; CONTRIBUTING shows the same, and a test compares them.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Folders and files from bottom to top, for each package; one row holds what may stand side by side, and does not
# import each other. Below a row's folder, files may import each other as long as that makes no circle, neither
# between files nor between the folder's own subfolders.
ORDER: dict[str, list[list[str]]] = {
    "webshop_server": [
        ["command_line", "errors", "product"],
        ["catalogue", "json_stream", "urls"],
        ["page_model", "progress", "record", "search", "settings"],
        ["index_builder"],
        ["index"],
        ["generate", "goals", "importer"],
        ["inventory", "renderer", "reward"],
        ["page_builder"],
        ["shop"],
        ["client", "oracle", "sessions"],
        ["routes", "shared_sessions"],
        ["compat"],
        ["app"],
        ["__init__", "__main__"],
    ],
    "drift_envs": [
        ["errors"],
        ["utils"],
        ["checks", "messages", "show"],
        ["knobs"],
        ["registration"],
        ["tunable"],
        ["attributes", "tasks"],
        ["schedule"],
        ["wrappers"],
        ["functional", "metrics", "oracle", "vector"],
        ["envs"],
        ["datasets", "integrations", "show.plots"],
        ["cli"],
        ["__init__", "__main__"],
    ],
    "drift_agents": [
        ["errors", "interruption", "types"],
        ["registry"],
        ["embedding", "envs.base", "llm"],
        ["envs.matching"],
        ["prompt", "stores"],
        ["memory", "policy"],
        ["controller", "team", "verifier"],
        ["envs"],
        ["agent"],
        ["experiment"],
        ["analysis"],
        ["cli"],
        ["__init__", "__main__"],
    ],
    "research": [
        ["experiments", "pictures"],
        ["belief", "detectors", "experience", "injection", "verify_map"],
        ["readers"],
        [
            "coders",
            "coverage",
            "glove_figures",
            "learned_reader",
            "prompts",
            "reader_speed",
            "step_mft",
            "studies",
            "tools_results",
            "train_reader",
        ],
        ["choices"],
        ["__init__", "__main__"],
    ],
    "baselines": [
        ["continual_backprop", "detectors", "environments", "exit_status", "regenerative", "sb3", "shrink_and_perturb"],
        ["common", "measures"],
        ["dqn", "host", "ppo", "q_learning", "recurrent_ppo", "references"],
        ["rl_squared"],
        ["rows"],
        ["board", "report"],
        ["evaluate", "sb3_table"],
        ["__init__", "__main__"],
    ],
}
# What a package may import beside itself and third-party libraries: packages, or modules of them.
GUESTS = {
    "drift_envs": {"webshop_server", "drift_schedules"},
    "webshop_server": set(),
    "drift_agents": {
        "drift_envs.checks",
        "drift_envs.utils.error_messages",
        "drift_envs.errors",
        "drift_envs.utils.json_schema",
        "drift_envs.utils.lazy",
        "drift_envs.messages",
    },
    "drift_agents.experiment": {"drift_envs"},
    "drift_agents.analysis": {"drift_envs"},
    "drift_agents.cli": {"drift_envs", "webshop_server.command_line"},
    "research": {"drift_agents", "drift_envs", "webshop_server"},
    "baselines": {"drift_envs", "drift_agents.analysis.plots"},
}
OURS = {"drift_envs", "webshop_server", "drift_agents", "drift_schedules", "research", "baselines"}
FILES = sorted(
    path
    for top in ("drift_envs", "webshop_server", "agents/drift_agents", "research", "baselines")
    for path in (ROOT / top).rglob("*.py")
    if "__pycache__" not in path.parts
)


def module_name(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    if parts[0] == "agents":
        parts = parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in FILES}


def place_of(name: str) -> tuple[int, str]:
    """The row in which a module stands, counted from the bottom of its package, and what stands there.

    A file of a folder may have a row of its own: `envs.base` stands below what `envs` stands on.
    """
    top, _, rest = name.partition(".")
    first, _, second = rest.partition(".")
    rows = {entry: index for index, row in enumerate(ORDER[top]) for entry in row}
    place = next((entry for entry in (f"{first}.{second.split('.')[0]}", first or "__init__") if entry in rows), None)
    assert place is not None, f"{name} stands in no row"
    return rows[place], place


@cache
def syntax_tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path) -> list[tuple[str, int]]:
    """Every module that the file imports, wherever in the file, with the line."""
    found = []
    for node in ast.walk(syntax_tree(path)):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.append((full if full in MODULES else str(node.module), node.lineno))
    return found


def test_imports_go_down() -> None:
    for own, path in MODULES.items():
        top = own.split(".")[0]
        for target, line in imports(path):
            head = target.split(".")[0]
            if head not in OURS:
                continue
            where = f"{path.relative_to(ROOT)}:{line} imports {target}"
            if head != top:
                prefixes = (prefix for prefix in GUESTS if f"{own}.".startswith(f"{prefix}."))
                assert {head, target} & set().union(*(GUESTS[prefix] for prefix in prefixes)), where
            elif path.name not in ("__init__.py", "__main__.py") or own != top:
                assert target != top, f"{where}: no module imports its own package root"
                assert target in MODULES, f"{where}: no such module"
                (mine, room), (other, other_room) = place_of(own), place_of(target)
                assert room == other_room or other < mine, f"{where}: not downward"


ENVIRONMENTS = ("drift_agents.envs.",)
"""Packages in which each folder holds one environment."""


def test_no_environment_imports_another() -> None:
    for name, path in MODULES.items():
        for prefix in ENVIRONMENTS:
            own = name.removeprefix(prefix).split(".")[0]
            for target, line in imports(path) if name.startswith(prefix) else []:
                other = target.removeprefix(prefix).split(".")[0]
                is_shared = MODULES.get(f"{prefix}{other}", path).name != "__init__.py"
                assert not target.startswith(prefix) or other == own or is_shared, f"{path}:{line} imports {target}"


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
            for one, module in (mine, name), (other, target):
                if "." in (place := place_of(module)[1]):
                    one[1:3] = [place]  # a room of its own
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


def test_nothing_imports_research() -> None:
    """`website` alone shows its interactive board."""
    for top in ("drift_envs", "webshop_server", "agents", "baselines", "benchmarks", "examples"):
        for path in (ROOT / top).rglob("*.py"):
            assert not [target for target, _ in imports(path) if target.split(".")[0] == "research"], path


def test_agents_import_no_oracle() -> None:
    """Not those of `drift_envs/oracle`, and not those in the environments' folders."""
    for name, path in MODULES.items():
        if name.startswith("drift_agents") and name != "drift_agents.experiment.players":
            for target, line in imports(path):
                parts = target.split(".")
                assert parts[0] != "drift_envs" or not any(part.startswith("oracle") for part in parts), (
                    f"{path}:{line}"
                )


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
        reached = {r for r in reached if not any(f"{r}.".startswith(f"{guest}.") for guest in GUESTS["drift_agents"])}
        evil = [r for r in reached if r.split(".")[0] in ("drift_envs", "webshop_server", "drift_schedules")]
        evil += [r for r in reached if r.startswith("drift_agents.experiment")]
        assert not evil, f"{start} reaches {evil}"


# One class name may stand in several packages only where each package has its own base for it.
SHARED_NAMES = {"ArgumentError"}


def test_a_class_name_means_one_thing() -> None:
    found = defaultdict(list)
    for path in FILES:
        for node in ast.walk(syntax_tree(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    twice = {name: places for name, places in found.items() if len(places) > 1 and name not in SHARED_NAMES}
    assert not twice, twice


def test_no_benchmark_hides_a_package() -> None:
    """`python benchmarks/NAME.py` looks for imports beside the file first."""
    names = {path.stem for path in (ROOT / "benchmarks").glob("*.py")} - {"__init__", "__main__"}
    tops = {target.split(".")[0] for path in FILES for target, _ in imports(path)}
    assert not names & (tops | {"jax"}), "a benchmark should not be called like a package that is imported"
