from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import gymnasium as gym
import pytest
from drift_agents.cli.app import main
from drift_agents.embedding.base import HashedEmbedding, resolve_embedding
from drift_agents.envs.base import find_environment
from drift_agents.errors import ArgumentError, PartError, UnknownNameError
from drift_agents.experiment.cell_environment import make_prober
from drift_agents.experiment.config import PartSpec
from drift_agents.experiment.folder import read_manifest
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.players import with_prober
from drift_agents.experiment.runner import run_experiment
from drift_agents.memory.base import make_memory
from drift_agents.policy.base import RandomPolicy, make_policy
from drift_agents.registry import parts as module
from drift_agents.registry.parts import Registry, make_part
from drift_agents.registry.tables import MEMORIES, REGISTRIES
from drift_agents.stores.base import make_store
from drift_agents.team.base import Member, make_team

SHORT = """\
name: short
schedules: frozen_lake/explicit
agents: {{memory: {memory}, policy: random}}
seeds: 1
rounds: 1
"""


class NotedPart:
    """The part of another package.

    More about it.
    """


@pytest.mark.parametrize("kind", REGISTRIES)
def test_the_line_in_the_table_is_the_first_of_the_docstring(kind: str) -> None:
    registry = REGISTRIES[kind]
    parts = {name: registry.load(name) for name in registry.names()}
    lines = {name: getattr(part, "about", None) or part.__doc__.splitlines()[0] for name, part in parts.items()}
    assert {name: registry.summaries()[name] for name in parts} == lines


@pytest.mark.integration
def test_listing_parts_imports_none_of_them() -> None:
    code = (
        "import sys; from drift_agents.registry.tables import REGISTRIES\n"
        "print(all(r.summaries() for r in REGISTRIES.values()))\n"
        "names = [m for m in sys.modules if m.startswith('drift_agents.') and m.count('.') > 1]\n"
        "print([m for m in names if '.registry.' not in m])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["True", "[]"]


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
    message = "the memory 'vanilla' does not take the option 'ordre', did you mean 'order'\\? Known: k, order,"
    with pytest.raises(ArgumentError, match=message):
        MEMORIES.make("vanilla", ordre="newest")


def test_a_missing_option_is_named() -> None:
    class Needy:
        def __init__(self, depth: int, k: int = 3) -> None: ...

    in_a_file = "{NAME: {depth: VALUE}} in a file"
    for kind, given, ways in (
        ("memory", {"k": 2}, f"--set memory.depth=VALUE, or {in_a_file}. Received {{'k': 2}}"),
        ("store", {}, f"--set memory.depth=VALUE, or {in_a_file}. Received no options"),
        ("prober", {}, f"{in_a_file}. Received no options"),
    ):
        with pytest.raises(ArgumentError) as caught:
            make_part(kind, "needy", Needy, given)
        assert str(caught.value) == f"the {kind} 'needy' needs the option 'depth': {ways}"


BROKEN = {
    "raises": ("1 / 0", "raises at import: ZeroDivisionError: division by zero"),
    "exits": ("raise SystemExit('bye')", "raises at import: SystemExit: bye"),
    "panics": ("class Panic(BaseException): pass\nraise Panic('odd')", "raises at import: Panic: odd"),
    "mute": (
        "class Mute(Exception):\n    def __str__(self): return 1 / 0\nraise Mute",
        "raises at import: Mute: its text cannot be read",
    ),
    "lacks": ("", "raises at import: AttributeError: module 'lacks_part' has no attribute 'Part'"),
    "constant": ("Part = 5", "should be a class or a function. Received 5"),
}


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package whose memories, verifiers and environments cannot be used; its name."""
    lines = []
    for group in ("memories", "verifiers", "environments"):
        lines += [f"[drift_envs.{group}]", *(f"{name} = {name}_part:Part" for name in BROKEN)]
    (tmp_path / "bad-1.dist-info").mkdir()
    (tmp_path / "bad-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: bad-pack\nVersion: 1\n")
    (tmp_path / "bad-1.dist-info" / "entry_points.txt").write_text("\n".join(lines))
    for name, (code, _) in BROKEN.items():
        (tmp_path / f"{name}_part.py").write_text(code)
        monkeypatch.delitem(sys.modules, f"{name}_part", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    return "bad-pack"


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_plug_in_is_listed_and_refused(broken: str, name: str) -> None:
    message = f"the memory {name!r} of the package {broken} {BROKEN[name][1]}"
    assert MEMORIES.summaries()[name] == f"cannot be used: {message}"
    assert MEMORIES.summaries()["vanilla"].startswith("Append every transition")
    for use in (MEMORIES.load, MEMORIES.make, MEMORIES.options):
        with pytest.raises(PartError, match=re.escape(message)):
            use(name)


def test_the_command_lists_broken_plug_ins(broken: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for kind in ("memory", "verifier"):
        for name, (_, message) in BROKEN.items():
            assert f"{name} cannot be used: the {kind} {name!r} of the package {broken} {message}" in printed


@pytest.mark.parametrize("name", BROKEN)
def test_a_run_that_names_a_broken_plug_in_ends_with_one_line(
    broken: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = tmp_path / "named.yaml"
    named.write_text(SHORT.format(memory=name))
    plain = tmp_path / "plain.yaml"
    plain.write_text(SHORT.format(memory="none"))
    for more in ([str(named)], [str(plain), "--memory", name]):
        assert main(["run", *more, "--out", str(tmp_path / "run")]) == 2
        (line,) = capsys.readouterr().err.strip().splitlines()
        assert f"the memory {name!r} of the package {broken} {BROKEN[name][1]}" in line
        assert not (tmp_path / "run").exists()
    assert main(["run", str(plain), "--out", str(tmp_path / "run"), "--jobs", "1"]) == 0, "others are not affected"


def test_a_plug_in_whose_line_cannot_be_read_is_listed(broken: str, tmp_path: Path) -> None:
    code = "class Kind(type):\n    about = property(lambda part: 1 / 0)\nclass Part(metaclass=Kind): pass"
    (tmp_path / "raises_part.py").write_text(code)
    expected = "has no line about it: ZeroDivisionError: division by zero"
    assert MEMORIES.summaries()["raises"] == expected


def test_an_interruption_at_import_ends_the_command(broken: str, tmp_path: Path) -> None:
    (tmp_path / "raises_part.py").write_text("raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        MEMORIES.load("raises")


def test_a_broken_environment_is_named_where_no_other_fits(broken: str) -> None:
    assert find_environment("DriftFrozenLake-v0").name == "frozen_lake"
    with pytest.raises(PartError, match=rf"the environment '\w+' of the package {broken} "):
        find_environment("Other-v0")


@pytest.mark.parametrize("error", ["SystemExit", "BaseException"])
def test_a_plug_in_that_exits_while_it_is_made_is_refused(broken: str, tmp_path: Path, error: str) -> None:
    code = f"class Part:\n    def __init__(self):\n        raise {error}(3)"
    (tmp_path / "raises_part.py").write_text(code)
    message = f"the memory 'raises' of the package {broken} cannot be made: {error}: 3"
    with pytest.raises(PartError, match=re.escape(message)):
        MEMORIES.make("raises")


@pytest.mark.parametrize("kind", ["memory", "verifier", "policy"])
def test_a_run_holds_the_version_of_a_package_whose_part_it_names(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = tmp_path / "other-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: other-parts\nVersion: 7.1\n")
    made = {
        "memory": "memory.base:NoMemory",
        "verifier": "verifier.base:NoVerifier",
        "policy": "policy.base:RandomPolicy",
    }
    (about / "entry_points.txt").write_text(f"[{REGISTRIES[kind].group}]\nother = drift_agents.{made[kind]}\n")
    monkeypatch.syspath_prepend(tmp_path)
    agents = {"memory": "vanilla", "verifier": "none", "policy": "random", kind: "other"}
    data = {"name": "short", "schedules": "frozen_lake/explicit", "agents": agents, "seeds": 1, "rounds": 1}
    run_experiment(parse_experiment(data), tmp_path / "run")
    assert read_manifest(tmp_path / "run")["versions"]["other-parts"] == "7.1"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: resolve_embedding({"hashed": 5}), "`embedding` should be a name, or one name with its options."),
        (lambda: make_store({"in_process": 5}), "`store` should be a store, a name, or one name with its options."),
        (lambda: make_store({"in_process": {5: 1}}), "Received {'in_process': {5: 1}}"),
        (
            lambda: make_store({"in_process": {"embedding": "hashed"}}, HashedEmbedding()),
            "`embedding` should be given once. Received 'hashed' for the store 'in_process' too",
        ),
        (
            lambda: with_prober(PartSpec(name="glove", options={"prober": {"replay": 5}}), gym.Env()),
            "`prober` should be a name, or one name with its options. Received {'replay': 5}",
        ),
        (
            lambda: make_prober("replay_live", {"env": 1}, gym.Env()),
            "the prober 'replay_live' gets `env` from the agent. Received {'env': 1}",
        ),
        (lambda: make_memory("vanilla", matching="exact"), "`matching` of a memory should be a rule itself"),
        (
            lambda: make_team("judge", [Member("a", RandomPolicy())], model="m"),
            "`model` of the team 'judge' should be a language model itself. Received 'm'",
        ),
        (lambda: make_policy("llm", model="m", reason="no"), "`reason` should be true or false. Received 'no'"),
    ],
)
def test_options_of_files_that_are_of_the_wrong_kind_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        make()


def test_a_store_takes_its_embedding_by_name() -> None:
    assert make_store({"in_process": {"embedding": {"hashed": {"dimension": 64}}}}).embedding.dimension == 64
