"""Parts in a Python file, named on the command line or in an experiment file."""

from __future__ import annotations

import json
import re
import sys
from hashlib import sha256
from pathlib import Path

import pytest
from drift_agents.cli.app import main
from drift_agents.errors import ExperimentError, PartError
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.logs import read_rows
from drift_agents.experiment.runner import run_experiment
from drift_agents.memory.base import make_memory

from tests.drift_agents.experiment.cells import cell_files

EXPERIMENT = """\
name: short
schedules: frozen_lake/explicit
agents: {memory: [none, {vanilla: {k: 3}}], verifier: [none, glove], policy: planner}
seeds: 2
rounds: 2
environments:
  frozen_lake/explicit: {verifier: {glove: {epsilon: 0.4}}, memory: {vanilla: {k: 2}}}
"""

MINE = """\
from drift_agents import Glove
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.policy.base import Reply
from drift_agents.types import Verdict
from drift_agents.verifier.base import BaseVerifier


class Trusting(BaseVerifier):
    name = "trusting"

    def verify(self, experience, memory, prefix, now):
        return Verdict(observed=memory.observe(experience, now))


def probes(prober):
    return Glove(prober=prober, epsilon=0.5)


class Newest(VanillaMemory):
    def __init__(self):
        super().__init__(k=1, order="newest")


class WithMatching(VanillaMemory):
    def __init__(self, matching):
        assert matching is not None
        super().__init__(k=1, matching=matching)


class Idle(Trusting):
    def verify(self, experience, memory, prefix, now):
        return Verdict()


class Fails(Trusting):
    def verify(self, experience, memory, prefix, now):
        raise ZeroDivisionError("one step too many")


class Needs(Trusting):
    def __init__(self, window):
        super().__init__()


def breaks():
    raise OSError("no")


class Eager:
    name = "eager"

    def __init__(self, pick=0):
        self._pick = pick

    def decide(self, view, rng):
        return Reply(view.actions[self._pick])


class Vague(Eager):
    def decide(self, view, rng):
        return Reply("somewhere")


class Judged(Trusting):
    supervision = "a friend"


class Notes:
    def __init__(self):
        self.texts = []

    def add(self, text):
        self.texts.append(text)

    def search(self, query, k):
        return self.texts[-k:]


class Half:
    def add(self, text):
        pass


class Remote(Notes):
    def __init__(self, url):
        super().__init__()
        self.url = url


def make_notes():
    return Notes()


nothing = 5
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "short.yaml").write_text(EXPERIMENT)
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*more: str, out: str = "run") -> int:
    return main(["run", "short.yaml", "--out", out, "--jobs", "1", *more])


def hashed(name: str) -> str:
    return f"{name}(sha256={sha256(MINE.encode()).hexdigest()[:16]})"


@pytest.mark.integration
def test_parts_of_a_file_play_beside_those_with_names(folder: Path) -> None:
    assert run(out="plain") == 0
    verifiers = ("none", "glove", "mine.py:Trusting", "mine.py:probes")
    memories = ("vanilla", "mine.py:Newest", "mine.py:WithMatching")
    assert run("--verifier", ",".join(verifiers), "--memory", ",".join(memories)) == 0
    rows = read_rows(folder / "run" / "episodes.jsonl")
    assert {row["verifier"] for row in rows} == {"none", "glove", hashed("Trusting"), hashed("probes")}
    assert {row["memory"] for row in rows} == {"vanilla", hashed("Newest"), hashed("WithMatching")}
    named = [row for row in rows if row["memory"] == "vanilla" and row["verifier"] in ("none", "glove")]
    plain = [row for row in read_rows(folder / "plain" / "episodes.jsonl") if row["memory"] == "vanilla"]
    assert [dict(row) for row in named] == [dict(row) for row in plain], "with the file's options for them"
    assert any(row["probe_steps"] for row in rows if row["verifier"] == hashed("probes"))
    manifest = (folder / "run" / "run.json").read_text()
    assert f"mine.py:Trusting@{sha256(MINE.encode()).hexdigest()}" in manifest


@pytest.mark.integration
def test_a_memory_service_is_the_store_of_a_memory(folder: Path) -> None:
    """As in a file, and with the options of that memory."""
    assert run("--memory", "mine.py:Notes", "--set", "memory.k=2") == 0
    rows = read_rows(folder / "run" / "episodes.jsonl")
    assert {row["memory"] for row in rows} == {"store(Notes)"}
    digest = sha256(MINE.encode()).hexdigest()
    played = json.loads((folder / "run" / "run.json").read_text())["experiment"]["agents"]
    expected = [{"name": "store", "options": {"store": f"mine.py:Notes@{digest}", "k": 2}}]
    assert [block["memory"] for block in played] == [expected]
    with pytest.raises(PartError, match=f"as in {{store: {{store: 'mine.py:Notes@{digest}'}}}}"):
        make_memory(f"mine.py:Notes@{digest}")


def test_options_of_a_memory_service_are_set_as_those_of_a_memory(folder: Path) -> None:
    assert run("--memory", "mine.py:Remote,mine.py:Notes", "--set", "memory.url=here", "--set", "memory.k=2") == 0
    (block,) = json.loads((folder / "run" / "run.json").read_text())["experiment"]["agents"]
    digest = sha256(MINE.encode()).hexdigest()
    assert [part["options"] for part in block["memory"]] == [
        {"store": {f"mine.py:Remote@{digest}": {"url": "here"}}, "k": 2},
        {"store": f"mine.py:Notes@{digest}", "k": 2},
    ]
    assert run("--memory", "mine.py:Notes", "--set", "memory.url=here", out="other") == 2
    file = f"memory: [{{store: {{store: {{'mine.py:Remote@{digest}': {{url: here}}}}}}}}]"
    text = EXPERIMENT.replace("memory: [none, {vanilla: {k: 3}}]", file).replace("memory: {vanilla: {k: 2}}", "")
    (folder / "short.yaml").write_text(text)
    assert run("--set", "memory.url=there", out="file") == 0
    assert "{'url': 'there'}" in str(json.loads((folder / "file" / "run.json").read_text())["experiment"]["agents"])


def test_tables_name_parts_of_files_and_tell_two_files_apart(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A memory service has its own name, and two parts of one name the path of their file."""
    (folder / "old.py").write_text(MINE + "\n")
    memories = "mine.py:Notes,old.py:Notes,mine.py:Newest,old.py:Newest,mine.py:Remote"
    assert run("--memory", memories, "--verifier", "none,mine.py:Trusting", "--set", "memory.url=here") == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "memories: Notes, Newest, Remote; verifiers: none, Trusting" in printed
    assert main(["report", "run", "--html"]) == 0
    pages = [(folder / "run" / name).read_text("utf-8") for name in ("report.md", "report.html")]
    labels = json.loads(re.findall(r'"labels":({.*?})', (folder / "run" / "inspect.html").read_text("utf-8"))[0])
    assert labels[hashed("Newest")] == "Newest(mine.py)"
    assert labels[hashed("Trusting")] == "Trusting"
    assert f"store(store=mine.py:Notes@{sha256(MINE.encode()).hexdigest()})" in labels
    for name in ("Notes (mine.py)", "Notes (old.py)", "Newest (mine.py)", "Newest (old.py)", "Remote (url=here)"):
        assert all(name in page for page in pages), name
    table = "".join(line for line in pages[0].partition("\n## ")[0].splitlines() if line.startswith("|"))
    assert table.count("Notes (") == table.count("Newest (") == 2, "none is lost"
    assert main(["leaderboard", "run", "--json"]) == 0
    assert '"name": "Notes (sha256=' in capsys.readouterr().out


def test_a_rule_plays_alone_and_its_minutes_are_printed_before(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "short.yaml").write_text(f"{EXPERIMENT}references: [clairvoyant]\n")
    own = ("--memory", "vanilla", "--verifier", "mine.py:Trusting")
    for more, cells, episodes in (((), 4, 24), (("--set", "references=[]"), 2, 12)):
        assert run(*own, *more, "--dry-run") == 0
        text, progress = capsys.readouterr()
        assert re.search(r" (\d)/\1 elapsed", progress), "it takes minutes with many agents"
        assert re.search(rf"^ all +{cells} +{episodes} +\d+\.\d *$", text, re.MULTILINE)
        assert re.search(r"^minutes  \d+\.\d on \d+ cores? ", text, re.MULTILINE)
        assert not (folder / "run").exists()
    assert run(*own, "--set", "references=[]") == 0
    assert {row["verifier"] for row in read_rows(folder / "run" / "episodes.jsonl")} == {hashed("Trusting")}


@pytest.mark.parametrize(
    ("option", "name", "expected"),
    [
        (
            "--verifier",
            "mine.py:Idle",
            "its memory stayed empty. `verify` of a verifier should write what memory",
        ),
        (
            "--policy",
            "mine.py:Vague",
            "100% of its decisions are no admissible action, in the place of which the",
        ),
    ],
)
def test_parts_that_do_nothing_are_told(
    folder: Path, capsys: pytest.CaptureFixture[str], option: str, name: str, expected: str
) -> None:
    assert run(option, name, "--memory", "vanilla", "--set", "seeds=1") == 0
    assert expected in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("option", "name", "expected"),
    [
        ("--verifier", "absent.py:Rule", "absent.py: cannot be read: No such file or directory"),
        ("--memory", "mine.py:Absent", "mine.py: has no class or function 'Absent'"),
        ("--memory", "mine.py:nothing", "mine.py: 'nothing' should be a class or a function. Received 5"),
        ("--verifier", "exits.py:Rule", "exits.py: raises at import: SystemExit: bye"),
        ("--verifier", "syntax.py:Rule", "syntax.py: raises at import: SyntaxError: invalid syntax"),
        ("--verifier", "mine.py:breaks", "mine.py: 'breaks' cannot be made: OSError: no"),
        (
            "--verifier",
            "mine.py:Needs",
            "mine.py: 'Needs' cannot be made: the verifier 'Needs' needs the option 'window'",
        ),
        ("--memory", "mine.py:Trusting", "the memory 'mine.py:Trusting' should have what `Memory` has. Missing: inser"),
        (
            "--memory",
            "mine.py:Half",
            "the memory 'mine.py:Half' should have `add` and `search`, which make a memory service, or what `Memory` "
            "has. Missing of a service: search",
        ),
        (
            "--memory",
            "mine.py:Remote",
            "mine.py: 'Remote' cannot be made: the store 'Remote' needs the option 'url': --set memory.url=VALUE, or ",
        ),
        ("--memory", "mine.py:make_notes", "the memory 'mine.py:make_notes@"),
        ("--verifier", "mine.py:Judged", "`supervision` of the verifier 'mine.py:Judged' should be one of none, own"),
        (
            "--policy",
            "mine.py:Trusting",
            "the policy 'mine.py:Trusting' should have what `Policy` has. Missing: deci",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_with_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], option: str, name: str, expected: str
) -> None:
    (folder / "exits.py").write_text("raise SystemExit('bye')")
    (folder / "syntax.py").write_text("class Rule(:")
    assert run(option, name) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"drift-agents: {expected}")
    assert not (folder / "run").exists()


def test_two_files_with_one_content_are_one_part(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "copy.py").write_text(MINE)
    assert run("--memory", "mine.py:Newest,copy.py:Newest") == 1
    assert f"every entry should be there once. Received {hashed('Newest')!r} twice" in capsys.readouterr().err


def test_a_file_names_parts_beside_it_with_their_hash(folder: Path) -> None:
    """From another folder than that of the command, with options that tell them apart."""
    own = f"@{sha256(MINE.encode()).hexdigest()}"
    policies = f"policy: [{{'mine.py:Eager{own}': {{pick: 1}}}}, {{'mine.py:Eager{own}': {{pick: 2}}}}]"
    text = EXPERIMENT.replace("policy: planner", policies).replace("vanilla: {k: 3}", f"mine.py:Newest{own}: null")
    (folder / "own").mkdir()
    (folder / "own" / "named.yaml").write_text(text.replace("memory: {vanilla: {k: 2}}", ""))
    (folder / "mine.py").rename(folder / "own" / "mine.py")
    assert main(["run", "own/named.yaml", "--out", "run", "--jobs", "1"]) == 0
    rows = read_rows(folder / "run" / "episodes.jsonl")
    assert {row["policy"] for row in rows} == {f"{hashed('Eager')[:-1]}, pick={pick})" for pick in (1, 2)}
    assert {row["memory"] for row in rows} == {"none", hashed("Newest")}


@pytest.mark.parametrize("given", ["", f"@{'0' * 64}"])
@pytest.mark.parametrize(
    ("agents", "line"),
    [
        ("{memory: 'mine.py:NAME', policy: planner}", 3),
        ("{memory: vanilla, verifier: {'mine.py:NAME': {}}, policy: planner}", 3),
        ("{memory: {managed: {memory: 'mine.py:NAME'}}, policy: planner}", 3),
        ("{memory: vanilla, team: {judge: {members: ['mine.py:NAME']}}, policy: planner}", 3),
    ],
)
def test_a_part_without_the_hash_of_its_file_is_refused(folder: Path, agents: str, line: int, given: str) -> None:
    head, tail = "name: x\nschedules: frozen_lake/explicit\nagents: ", "\nseeds: 1\nrounds: 1\n"
    (folder / "short.yaml").write_text(f"{head}{agents.replace('NAME', f'Newest{given}')}{tail}")
    expected = f"mine.py:Newest should end in the hash of the file, which is @{sha256(MINE.encode()).hexdigest()} now. "
    with pytest.raises(ExperimentError, match=re.escape(expected)) as found:
        load_experiment("short.yaml")
    assert str(found.value).startswith(f"short.yaml:{line}: agents")
    assert str(found.value).endswith(f"Received {given or 'no hash'}")


@pytest.mark.integration
def test_a_run_goes_on_with_the_same_file_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--verifier", "none,mine.py:Trusting", "--memory", "vanilla,mine.py:Newest")
    assert run(*options) == 0
    episodes = folder / "run" / "episodes.jsonl"
    whole = episodes.read_bytes()
    episodes.unlink()
    for file in cell_files(folder / "run")[2:]:
        file.unlink()
    assert run(*options, "--resume") == 0
    assert episodes.read_bytes() == whole
    (folder / "mine.py").write_text(f"{MINE}\n")
    capsys.readouterr()
    assert run(*options, "--resume") == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("drift-agents: mine.py: was changed since the run in run began: its SHA-256 should be ")
    assert episodes.read_bytes() == whole


def test_a_file_that_changes_during_the_run_is_refused(folder: Path) -> None:
    own = f"mine.py:Trusting@{sha256(MINE.encode()).hexdigest()}"
    experiment = load_experiment("short.yaml", {"agents": {"memory": "vanilla", "verifier": own, "policy": "random"}})
    (folder / "mine.py").write_text(f"{MINE}\n")
    with pytest.raises(PartError, match=r"mine\.py: was changed: its SHA-256 should be"):
        run_experiment(experiment, folder / "run")


def test_a_rule_that_raises_ends_the_run_with_its_place(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--verifier", "none,mine.py:Fails") == 1
    line = capsys.readouterr().err.strip().splitlines()[-1]
    place = MINE.splitlines().index('        raise ZeroDivisionError("one step too many")') + 1
    assert f"ZeroDivisionError: one step too many (mine.py:{place}; --debug shows the calls)" in line
    assert len(cell_files(folder / "run")) == 2, "those that were played before it are kept"
    advice = "After a change of mine.py: --fresh in the place of --resume, or another --out. What is done is kept; "
    assert f"shows the calls). {advice}continue with: drift-agents run short.yaml" in line
    (folder / "mine.py").write_text(f"{MINE}\n")
    assert run("--verifier", "none,mine.py:Fails", "--resume") == 2


def test_other_machines_do_not_have_the_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--memory", "mine.py:Newest", "--ray", "local") == 2
    assert "`backend` should be processes with mine.py. Received 'ray'" in capsys.readouterr().err


def test_options_of_parts_that_are_left_out_are_no_mistake(folder: Path) -> None:
    assert run("--memory", "none") == 0
    settings = json.loads((folder / "run" / "run.json").read_text())["experiment"]["environments"]
    assert "vanilla" not in json.dumps(settings)


LINE = """\
import gymnasium as gym


class Line(gym.Env):
    observation_space, action_space, goal = gym.spaces.Discrete(5), gym.spaces.Discrete(2), 4

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 2
        return 2, {}

    def step(self, action):
        self.place += 1 if action else -1
        return self.place, float(self.place == self.goal), self.place in (0, 4), False, {}


gym.register("Line-v0", Line, max_episode_steps=9)
"""

TURN = """\
version: 1
name: turn
env: lines_of_ours:Line-v0
knobs: {goal: {attribute: goal, bounds: [0, 4]}}
drifts: [{at: 3, set: {goal: 0}}]
"""


@pytest.mark.integration
def test_an_environment_in_a_folder_is_found_by_an_option(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.path", [path for path in sys.path if path])
    (folder / "lines_of_ours.py").write_text(LINE)
    (folder / "turn.yaml").write_text(TURN)
    text = EXPERIMENT.replace("frozen_lake/explicit", "turn.yaml", 1).partition("environments:")[0]
    (folder / "short.yaml").write_text(text)
    assert run() == 1
    assert "a command takes `--import .`" in capsys.readouterr().err
    assert run("--import", ".", "--fresh", "--verifier", "none,overwrite", "--jobs", "2") == 0
    assert main(["replay", "run", "--import", ".", "--cells", "2"]) == 0
    assert "equal: " in capsys.readouterr().out
