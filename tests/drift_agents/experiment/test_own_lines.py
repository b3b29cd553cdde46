"""Lines of a loop of one's own beside those of a run: in its tables and curves, or one line that says what is wrong."""

from __future__ import annotations

import json
import re
import shutil

import pytest
from drift_agents.analysis.html.report import list_curves
from drift_agents.analysis.report import write_report
from drift_agents.analysis.rows import group, part_of, read_run
from drift_agents.analysis.run import describe_run
from drift_agents.cli.app import main
from drift_agents.errors import ExperimentError
from drift_agents.experiment.folder import read_manifest
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.own_lines import import_lines
from drift_agents.experiment.runner import run_experiment

from drift_envs.envs.frozen_lake.env import FrozenLake
from drift_envs.integrations.lifetime import TextLifetime

LAKE = "frozen_lake/explicit"
EXPERIMENT = {
    "name": "lake", "schedules": [LAKE], "seeds": 2, "rounds": 2,
    "agents": {"memory": ["vanilla", "voyager"], "verifier": ["none", "overwrite"], "policy": "planner"},
}  # fmt: skip


def log_loop(path, schedule=LAKE, seeds=2, rounds=2):
    """A loop of one's own that always takes the way that is best before any drift."""
    for seed in range(seeds):
        life = TextLifetime.of_schedule(schedule, seed, log=path, rounds=rounds)
        while not life.is_over:
            life.reset()
            for action in (1, 1, 2, 1, 1, 2, 2, 2, 1, 2):
                if life.act(action)["ended"]:
                    break
        life.close()
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "lake"
    run_experiment(parse_experiment(EXPERIMENT), folder, jobs=1)
    return folder


def test_it_stands_in_the_run_s_tables_and_curves_under_its_own_name(run, tmp_path):
    log, out = log_loop(tmp_path / "mine.jsonl"), tmp_path / "both"
    assert import_lines([log], "My loop", out, beside=run) == 12
    manifest, rows = read_run(out)
    own = [row for row in rows if row["memory"] == "My loop"]
    assert [row["score"] for row in own if row["seed"] == 0] == [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    assert [(row["phase"], row["round"]) for row in own[:3]] == [("source", 1), ("source", 2), ("drift-1", 1)]
    assert {row["regret"] for row in own} == {0.0, 1.0}, "the run knows the optimum"
    text = write_report(out).read_text("utf-8")
    assert f"| {LAKE}: My loop " in text
    assert "| My loop " in text[text.index("by phase") :]
    verification = text[text.index("Conflicts") :] if "Conflicts" in text else ""
    assert "My loop" not in verification.partition("## What was played")[0]
    (part,) = [part_of(manifest, schedule, runs) for schedule, runs in group(rows).items()]
    together = list_curves([part])[0]
    assert together["memory"] == "all agents (5)"
    assert manifest["name"] == "lake, with My loop"
    assert f"\n- My loop: -100 points on {LAKE}, from 100 to 0.\n" in text
    for curve in list_curves([part]):
        looks = {(line["colour"], line["dash"]) for line in curve["lines"]}
        assert len(looks) == len(curve["lines"]), curve["memory"]
        assert "My loop" in {line["name"] for line in curve["lines"]} or "success" not in curve["measure"]
    names = {line["name"] for line in together["lines"]}
    (way,) = [line for line in together["lines"] if line["name"] == "My loop"]
    assert way["mean"] == [100.0, 100.0, 0.0, 0.0, 0.0, 0.0]
    assert names >= {"Vanilla", "Vanilla + overwrite", "Voyager", "Voyager + overwrite", "My loop"}


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ({0: 0.25, 1: 0.5}, "38% of the tasks score 1 if the conversation is left at once; a score that is no higher"),
        ({0: 0.0, 1: 0.0}, "0% of the tasks score 1 if the conversation is left at once."),
    ],
)
def test_the_share_of_tasks_that_are_solved_by_leaving_stands_in_reports(tmp_path, monkeypatch, shares, said):
    """By a lake that has such tasks, in a run and in lines of one's own."""
    lines = log_loop(tmp_path / "mine.jsonl")

    def share(self):
        return shares[self.np_random_seed]

    monkeypatch.setattr(FrozenLake, "share_left_at_once", share, raising=False)
    agents = {"memory": "none", "policy": "planner"}
    run_experiment(parse_experiment({**EXPERIMENT, "rounds": 1, "agents": agents}), tmp_path / "run", jobs=1)
    import_lines([lines], "Mine", tmp_path / "own")
    for folder in (tmp_path / "run", tmp_path / "own"):
        assert f"- {LAKE}: {said}" in write_report(folder).read_text("utf-8")
        assert any(said in sentence for sentence in describe_run(folder)["headline"])


def test_the_commands(run, tmp_path, capsys):
    log, out = log_loop(tmp_path / "mine.jsonl"), tmp_path / "both"
    assert main(["import-lines", str(log), "--name", "Mine", "--beside", str(run), "--out", str(out)]) == 0
    assert f"wrote {out}: 12 episodes of Mine; next: drift-agents report {out} --html" in capsys.readouterr().out
    assert main(["report", str(out), "--html"]) == 0
    assert "Mine" in (out / "report.html").read_text("utf-8")
    assert main(["leaderboard", str(out), "--json"]) == 0
    again = ["import-lines", str(log), "--name", "Mine", "--beside", str(run), "--out", str(out)]
    assert main(again) == 1
    assert "should be a new or empty folder" in capsys.readouterr().err
    assert main([*again, "--fresh"]) == 0
    assert not (out / "report.html").exists(), "of the lines that were deleted"
    assert main([*again[:-1], str(run), "--fresh"]) == 1
    assert "holds a run, which --fresh does not delete" in capsys.readouterr().err
    assert main([*again[:5], str(out), "--out", str(out), "--fresh"]) == 1
    assert "should be another folder than that of --beside" in capsys.readouterr().err


def test_alone_and_with_a_schedule_of_ones_own(tmp_path):
    """Without a run the optimum is the oracle's; the environment is another package's."""
    file = tmp_path / "turn.yaml"
    file.write_text("version: 1\nname: heavy\nenv: Pendulum-v1\ndrifts: [{at: 1, set: {g: 2.0}}]\n", "utf-8")
    log = tmp_path / "mine.jsonl"
    life = TextLifetime.of_schedule(str(file), log=log, episodes=3)
    while not life.is_over:
        life.reset()
        life.act("0.5")
        life.abandon()
    with pytest.raises(ExperimentError, match=re.escape("mine.jsonl:1: heavy is no shipped schedule; give its file")):
        import_lines([log], "Mine", tmp_path / "one")
    import_lines([log], "Mine", tmp_path / "two", schedule=str(file))
    assert [row["phase"] for row in read_run(tmp_path / "two")[1]] == ["source", "drift-1", "drift-1"]
    import_lines([log_loop(tmp_path / "lake.jsonl", seeds=1)], "Mine", tmp_path / "three")
    assert [row["regret"] for row in read_run(tmp_path / "three")[1]] == [0.0, 0.0, 1.0, 1.0, 1.0, 1.0]


LINE = {"schedule": LAKE, "seed": 0, "episode": 0, "phase": "source", "tick": 0, "score": 1.0, "steps": 10}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "log: has no line"),
        ("{", "log:1: should be a line of JSON"),
        ("[1]", "log:1: should be a JSON object"),
        ({"seed": None}, "log:1: `seed` is missing; give it with --seed"),
        ({"phase": None}, "log:1: `phase` is missing"),
        ({"score": "1"}, "log:1: `score` should be a number. Received '1'"),
        ({"score": float("nan")}, "log:1: `score` should be a number. Received nan"),
        ({"steps": -1}, "log:1: `steps` should be a whole number of at least 0. Received -1"),
        ({"episode": True}, "log:1: `episode` should be a whole number"),
        ({"tokens_in": 1.5}, "log:1: `tokens_in` should be a whole number"),
        ({"schedule": "frozen_lake/nowhere"}, "log:1: frozen_lake/nowhere is no shipped schedule"),
        ({"schedule": "mountain_car/explicit"}, "log:1: mountain_car/explicit was not played by the run"),
        ({"schedule_hash": "0"}, "log:1: was played on another version of frozen_lake/explicit"),
        ({"tick": 5}, "log:1: episode 0 of frozen_lake/explicit should be tick 0, phase 'source'"),
        ({"seed": 2}, "log:1: seed 2 of frozen_lake/explicit was not played by the run, which has 0, 1"),
        ({}, "the log has 1 of the 12 episodes of frozen_lake/explicit in the run: 1 of 6 of seed 0, 0 of 6 of seed 1"),
        ({"episode": 6}, "log:1: episode 6 of frozen_lake/explicit was not played by the run, which has 6"),
    ],
)
def test_a_bad_log_is_one_line(run, tmp_path, capsys, text, message):
    log = tmp_path / "log"
    log.write_text(text if isinstance(text, str) else json.dumps(LINE | text) + "\n", "utf-8")
    words = ["import-lines", str(log), "--name", "Mine", "--beside", str(run), "--out", str(tmp_path / "out")]
    assert main(words) == 1
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 2**60}, "log:1: `seed` should be a whole number from 0 to 9007199254740991. Received"),
        ({"episode": 1}, "log:1: `episode` should be 0, which frozen_lake/explicit, seed 0, lacks. Received 1"),
        (
            {"phase": "nowhere"},
            "log:1: `phase` at tick 0 of frozen_lake/explicit, seed 0, should be 'source'. Received",
        ),
        ({"tick": 20}, "log:1: `phase` at tick 20 of frozen_lake/explicit, seed 0, should be 'drift-1'. Received 'sou"),
    ],
)
def test_a_log_alone_is_compared_with_its_schedule(tmp_path, change, message):
    (tmp_path / "log").write_text(json.dumps(LINE | change) + "\n", "utf-8")
    with pytest.raises(ExperimentError, match=re.escape(message)):
        import_lines([tmp_path / "log"], "Mine", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_alone_its_run_names_the_seeds_and_beside_a_run_those_of_that_run(run, tmp_path):
    log = log_loop(tmp_path / "mine.jsonl", seeds=2)
    import_lines([log], "Mine", tmp_path / "alone")
    assert read_manifest(tmp_path / "alone")["experiment"]["seeds"] == [0, 1]
    import_lines([log], "Mine", tmp_path / "both", beside=run)
    assert read_manifest(tmp_path / "both")["experiment"] == read_manifest(run)["experiment"]


def test_a_run_whose_lines_were_changed_is_refused(run, tmp_path):
    log, changed = log_loop(tmp_path / "mine.jsonl", seeds=1), tmp_path / "changed"
    shutil.copytree(run, changed)
    file = changed / "episodes.jsonl"
    file.write_bytes(file.read_bytes().replace(b'"steps": ', b'"steps": 1', 1))
    with pytest.raises(ExperimentError, match=r"episodes\.jsonl: is not what the run wrote"):
        import_lines([log], "Mine", tmp_path / "out", beside=changed)
    assert not (tmp_path / "out").exists()


def test_other_refusals(run, tmp_path):
    log = tmp_path / "log"
    log.write_text(2 * (json.dumps(LINE) + "\n"), "utf-8")
    with pytest.raises(ExperimentError, match=r"log:2: episode 0 of .* stands in .*log:1 too; delete the log"):
        import_lines([log], "Mine", tmp_path / "out", beside=run)
    for name in ("", "vanilla", "Vanilla", "VOYAGER", "No memory", "a\nb", "f(x)"):
        with pytest.raises(ExperimentError, match="`name` should"):
            import_lines([log], name, tmp_path / "out", beside=run)
    with pytest.raises(ExperimentError, match="cannot be read: No such file"):
        import_lines([tmp_path / "none"], "Mine", tmp_path / "out")
