"""The command `drift-envs`: exit status, errors, help, and the commands that print."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import gymnasium as gym
import pytest
import typer

from drift_envs.cli import main
from drift_envs.cli.app import app
from drift_envs.errors import ArgumentError
from drift_envs.knobs import thaw
from drift_envs.registration import IDS
from drift_envs.schedule import load_schedule, schedule_schema, shipped_schedules
from tests.core_ids import CORE_IDS, by_file

COMMANDS = (
    "list",
    "show",
    "validate",
    "new-schedule",
    "plot",
    "schema",
    "play",
    "record",
    "diff",
    "dataset",
    "score-detector",
)
OURS = [name for name in shipped_schedules() if (load_schedule(name) or pytest.fail(name)).env in CORE_IDS]
LAKES = [name for name in OURS if name.startswith("frozen_lake/")]


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")


def example_of(command: str, capsys: pytest.CaptureFixture) -> list[str]:
    """The arguments of the example that stands under the help of a command."""
    assert main([command, "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    return text.split("Example: drift-envs ")[1].split()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_has_an_example_of_that_command(command: str, capsys: pytest.CaptureFixture) -> None:
    example = example_of(command, capsys)
    assert example[0] == command
    arguments = example[: example.index(">")] if ">" in example else example
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    group.commands[command].make_context(command, arguments[1:])  # a wrong one raises


@pytest.mark.parametrize("command", ["list", "show", "schema"])
def test_the_example_works(command: str, capsys: pytest.CaptureFixture) -> None:
    example = example_of(command, capsys)
    assert main(example[: example.index(">")] if ">" in example else example) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "arguments",
    [[], ["nosuch"], ["show"], ["list", "--nosuch"], ["plot", "x", "--ticks", "0"], ["list", "--env", "DriftTool-v0"]],
)
def test_wrong_usage_is_status_2(arguments: list[str], capsys: pytest.CaptureFixture) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("drift-envs")
    assert captured.err.count("\n") == 1
    assert "--help`)" in captured.err


def test_a_failure_is_status_1_and_one_line(capsys: pytest.CaptureFixture) -> None:
    assert main(["show", "nosuch.yaml"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "drift-envs: nosuch.yaml: can't be read: No such file or directory\n"


@pytest.mark.parametrize("command", ["play", "record"])
@pytest.mark.parametrize(
    ("name", "hint"),
    [("DriftFrozenLak-v0", "Did you mean `DriftFrozenLake-v0`?"), ("zzzz", "The nearest of ")],
)
def test_an_unknown_id_is_wrong_usage_with_the_nearest_ids(
    command: str, name: str, hint: str, capsys: pytest.CaptureFixture
) -> None:
    assert main([command, name, *(["--out", "a.png"] if command == "record" else [])]) == 2
    error = capsys.readouterr().err
    assert hint in error
    assert error.count("Drift") <= 3, "not all of them"


@pytest.mark.parametrize("command", ["show", "validate", "plot", "severity"])
@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("frozen_lake/implicitt", "frozen_lake/implicit"),
        ("frozen_lake/implicit-family", "frozen_lake/implicit:family"),
    ],
)
def test_an_unknown_schedule_is_wrong_usage(
    command: str, name: str, nearest: str, capsys: pytest.CaptureFixture
) -> None:
    assert main([command, name]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("drift-envs: ")
    assert f"Did you mean `{nearest}`?" in captured.err
    assert captured.err.count("\n") == 1


def test_validate_checks_the_variants_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = tmp_path / "lake.yaml"
    head = "version: 1\nenv: DriftFrozenLake-v0\ndrifts:\n  - {at: 5, set: {slip: 0.5}}\nvariants:\n"
    path.write_text(f"{head}  calm: {{base: {{slip: 0.1}}}}\n  windy:\n    base: {{slip: 3}}\n", encoding="utf-8")
    assert main(["validate", str(path)]) == 1
    captured = capsys.readouterr()
    assert captured.out == f"{path}: ok, 2 phases\n{path}:calm: ok, 2 phases\n"
    assert (
        captured.err == f"{path}:8: variants.windy.base.slip: `slip` should be in the interval [0.0, 1.0]. Received 3\n"
    )
    assert main(["validate", f"{path}:calm"]) == 0
    path.write_text(f"{head}  calm: 7\n", encoding="utf-8")
    assert main(["validate", str(path)]) == 1
    assert capsys.readouterr().err == f"{path}:6: variants.calm: should be a mapping of replaced keys. Received 7\n"


def test_an_interruption_is_no_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    def interrupt(*_: object) -> dict:
        raise KeyboardInterrupt

    monkeypatch.setattr("drift_envs.schedule.schedule_schema", interrupt)
    assert main(["schema"]) == 130
    assert capsys.readouterr().err.strip() == "drift-envs: interrupted"


@pytest.mark.integration
def test_a_reader_that_stops_early_is_no_error() -> None:
    script = f"{sys.executable} -m drift_envs schema | head -n 1; exit ${{PIPESTATUS[0]}}"
    root = Path(__file__).parents[3]
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, cwd=root, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "{", "")


def test_list_names_everything(capsys: pytest.CaptureFixture) -> None:
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) < 80
    assert set(IDS) <= {line.split()[0] for line in lines if line}
    listed = set()
    for env_id in CORE_IDS:
        assert main(["list", "--schedules", env_id]) == 0
        listed |= {line.split()[0] for line in capsys.readouterr().out.splitlines() if line}
    assert set(OURS) <= listed


def test_list_can_be_narrowed(capsys: pytest.CaptureFixture) -> None:
    for option, parts in {
        "--env": ("goal_position", "-0.3 to 0.6", "observation_noise"),
        "--schedules": ("mountain_car/reversed", "drift-1 20", "(control)"),
    }.items():
        assert main(["list", option, "DriftMountainCar-v0"]) == 0
        text = capsys.readouterr().out
        assert all(part in text for part in parts)
        assert "frozen_lake" not in text


@pytest.mark.integration
@pytest.mark.parametrize("name", by_file([*LAKES, "mountain_car/reversed", "mountain_car_continuous/goal"]))
def test_show_works_for_every_shipped_schedule(name: str, capsys: pytest.CaptureFixture) -> None:
    assert main(["show", name]) == 0
    text = capsys.readouterr().out
    assert text.startswith(name)
    assert "source" in text


def test_show_says_what_a_drift_costs(capsys: pytest.CaptureFixture) -> None:
    assert main(["show", "frozen_lake/implicit"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (row,) = [line.split() for line in lines if line.startswith("reversal")]
    assert row[-4:] == ["4%", "1.00", "0.50", "50%"]
    assert "S . . H . ." in [line.strip() for line in lines]
    assert sum("source" in line for line in lines) == 2, "one map, since it stays"


def test_show_cuts_a_schedule_that_never_ends(capsys: pytest.CaptureFixture) -> None:
    assert main(["show", "frozen_lake/tides", "--phases", "3"]) == 0
    text = capsys.readouterr().out
    assert "and more from tick 60 on" in text
    assert "flood#2" not in text


def test_show_of_another_environment(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    file = tmp_path / "pole.yaml"
    file.write_text("version: 1\nname: pole\ndrifts:\n  - {at: 5, set: {length: 1.0}}\n", encoding="utf-8")
    assert main(["show", str(file)]) == 1
    assert "names no environment; give one with `--env ID`" in capsys.readouterr().err
    assert main(["show", str(file), "--env", "CartPole-v1"]) == 0
    assert "length 0.5 -> 1" in capsys.readouterr().out
    assert main(["show", "CartPole-v1", "--schedule", str(file)]) == 0
    assert "length 0.5 -> 1" in capsys.readouterr().out
    assert main(["show", str(file), "--env", "Nosuch-v0"]) == 2
    assert "there is no environment `Nosuch-v0`" in capsys.readouterr().err


def test_show_says_no_figure_that_would_be_wrong(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    file = tmp_path / "late.yaml"
    file.write_text(
        "version: 1\nname: late\nenv: DriftFrozenLake-v0\ndrifts:\n  - {at: 5, set: {action_delay: 2}}\n",
        encoding="utf-8",
    )
    assert main(["show", str(file)]) == 0
    text = capsys.readouterr().out
    assert "action_delay 0 -> 2" in text
    assert "loss" not in text


class TestValidate:
    def test_good_files(self, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
        plain = tmp_path / "plain.yaml"
        plain.write_text("version: 1\nname: plain\n", encoding="utf-8")
        assert main(["validate", "frozen_lake/slippery", "frozen_lake/flapping", str(plain)]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[:3] == [f"frozen_lake/slippery{one}: ok, 3 phases" for one in ("", ":family", ":long")]
        assert lines[3] == "frozen_lake/flapping: ok, over 100 phases"
        assert lines[4] == f"{plain}: ok; it names no `env`, so that its knobs were not checked"

    def test_the_last_tick_of_random_drifts_is_told_and_later_ones_are_refused(
        self, tmp_path: Path, capsys: pytest.CaptureFixture
    ) -> None:
        often = tmp_path / "often.yaml"
        often.write_text(
            "version: 1\nname: often\nenv: DriftFrozenLake-v0\ndrifts:\n- {name: a, rate: 0.5, walk: {slip: 0.1}}\n",
            encoding="utf-8",
        )
        assert main(["validate", str(often)]) == 0
        last = int(capsys.readouterr().out.rsplit(" ", 1)[1])
        timeline = gym.make("DriftFrozenLake-v0", schedule=str(often)).get_wrapper_attr("timeline")
        with pytest.raises(ArgumentError, match="`tick` should have at most 100000000 random events before it"):
            timeline.values(last + 3_000_000)  # a million more events than are told

    def test_the_last_tick_whose_phase_is_found_is_told(self, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
        drifts = "".join(f"- {{every: {10**6 + 2 * n + 1}, set: {{slip: 0.5}}}}\n" for n in range(85))
        many = tmp_path / "many.yaml"
        many.write_text(f"version: 1\nname: many\nenv: DriftFrozenLake-v0\ndrifts:\n{drifts}", encoding="utf-8")
        assert main(["validate", str(many)]) == 0
        printed, last = capsys.readouterr().out.strip().rsplit(" ", 1)
        assert printed == f"{many}: ok, over 100 phases, named up to tick"
        timeline = gym.make("DriftFrozenLake-v0", schedule=str(many)).get_wrapper_attr("timeline")
        with pytest.raises(ArgumentError, match=f"`tick` should be at most {last} .* Received {int(last) + 1}"):
            timeline.phase(int(last) + 1)

    def test_every_error_of_every_file_with_its_line(self, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
        bad = tmp_path / "bad [1].yaml"
        bad.write_text(
            "version: 1\nname: bad\nenv: DriftFrozenLake-v0\nclokc: step\n"
            "drifts:\n  - {at: 5, set: {slip: 2}}\n  - {at: 6, set: {slop: 0.1}}\n",
            encoding="utf-8",
        )
        assert main(["validate", "frozen_lake/null", str(bad), str(tmp_path / "none.yaml")]) == 1
        captured = capsys.readouterr()
        assert captured.out == "frozen_lake/null: ok, 3 phases\n"
        errors = captured.err.splitlines()
        # Keys and knobs together: a mistake in one does not hide those in the other.
        assert [line.split(": ")[:2] for line in errors[:3]] == [
            [f"{bad}:4", "clokc"],
            [f"{bad}:6", "drifts[0].set.slip"],
            [f"{bad}:7", "drifts[1].set.slop"],
        ]
        assert any("none.yaml" in line for line in errors)


def test_schema_is_the_published_one(capsys: pytest.CaptureFixture) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == schedule_schema()


@pytest.mark.parametrize("name", [["frozen_lake/explicit"], ["DriftFrozenLake-v0"]], ids=" ".join)
def test_show_as_json_has_the_values_of_the_timeline(name: list[str], capsys: pytest.CaptureFixture) -> None:
    assert main(["show", *name, "--seed", "3", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["version"], shown["env"], shown["seed"]) == (1, "DriftFrozenLake-v0", 3)
    env = gym.make("DriftFrozenLake-v0", schedule="frozen_lake/explicit")
    for phase in shown["phases"]:
        env.reset(seed=3)
        env.reset(options={"drift_phase": phase["id"]})
        state = env.get_wrapper_attr("drift_state")
        assert state.tick == phase["start"] == phase["full"]
        assert thaw(state.knobs["map"]) == phase["knobs"]["map"]
    assert [phase.get("change", {}).get("loss") for phase in shown["phases"]] == [None, 1.0, 1.0]
    assert shown["phases"][-1]["stop"] is None


def test_list_as_json_agrees_with_the_registry(capsys: pytest.CaptureFixture) -> None:
    assert main(["list", "--json"]) == 0
    listed = {one["id"]: one for one in json.loads(capsys.readouterr().out)["environments"]}
    assert {name: (one["steps"], one["schedule"]) for name, one in listed.items()} == {
        name: (entry.limit, entry.schedule) for name, entry in IDS.items()
    }
    for one in listed.values():
        assert one["schedule"] in one["schedules"]
    assert main(["list", "--env", "DriftMountainCar-v0", "--json"]) == 0
    knobs = {one["name"]: one for one in json.loads(capsys.readouterr().out)["knobs"]}
    assert knobs["goal_position"]["bounds"] == [-0.3, 0.6]
    assert main(["list", "--schedules", "DriftMountainCar-v0", "--json"]) == 0
    schedules = {one["name"]: one for one in json.loads(capsys.readouterr().out)["schedules"]}
    assert {"name": "drift-1", "at": 20} in schedules["mountain_car/explicit"]["drifts"]


@pytest.mark.parametrize(("variable", "is_colored"), [("FORCE_COLOR", True), ("NO_COLOR", False)])
def test_variables_decide_on_colors(
    variable: str, is_colored: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv(variable, "1")
    assert main(["show", "frozen_lake/implicit"]) == 0
    assert ("\x1b[1;36m" in capsys.readouterr().out) is is_colored, "the start tile of a map"


@pytest.mark.parametrize("columns", ["0", "3", "-1", "wide"])
def test_odd_widths_of_a_terminal(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["show", "mountain_car/fatigue"]) == 0
    assert "clock episode" in capsys.readouterr().out


@pytest.mark.filterwarnings("always")
def test_warnings_are_one_line_without_our_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    periods = [one for one in range(2, 440) if all(one % other for other in range(2, one))]
    drifts = "".join(f"  - {{every: {period}, for: 1, set: {{slip: 0.1}}}}\n" for period in periods)
    file = tmp_path / "many.yaml"
    file.write_text(f"version: 1\nenv: DriftFrozenLake-v0\ndrifts:\n{drifts}", encoding="utf-8")
    for command in ("validate", "show"):
        assert main([command, str(file)]) == 0
        (line,) = capsys.readouterr().err.splitlines()
        assert line.partition("warning: ")[2].startswith(f"{file}:3: drifts: can be played up to tick ")


def test_the_log_of_an_mcp_server_gets_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    served = []
    parts = {"LifetimeServer": None, "make_server": lambda *given: given[-1], "serve_http": None}
    stand_in = SimpleNamespace(**parts, serve_stdio=served.append)
    monkeypatch.setitem(sys.modules, "drift_envs.integrations.mcp", stand_in)
    log = tmp_path / "new" / "folder" / "episodes.jsonl"
    assert main(["mcp", "DriftFrozenLake-v0", "--log", str(log)]) == 0
    assert (served, log.parent.is_dir(), log.exists()) == ([log], True, False)
    assert main(["mcp", "DriftFrozenLake-v0", "--log", str(tmp_path)]) == 1
    assert "`--log` should be a file that can be written: " in capsys.readouterr().err
