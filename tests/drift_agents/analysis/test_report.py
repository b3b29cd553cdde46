"""Reports: every figure recomputed by hand from a log of a few lines."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from drift_agents.analysis.report import make_report, to_text, write_report
from drift_agents.analysis.rows import group, phases_of
from drift_agents.analysis.table import Table, print_table
from drift_agents.errors import ExperimentError
from drift_agents.experiment.logs import FIELDS, read_rows, to_line
from rich.console import Console

ROUNDS = 6


def row(verifier: str, seed: int, episode: int, score: float, **more: Any) -> dict[str, Any]:
    policy = "clairvoyant" if verifier == "clairvoyant" else "planner"
    memory = "none" if policy == "clairvoyant" else "vanilla"
    values: dict[str, Any] = dict.fromkeys(FIELDS, 0)
    values.update(env="DriftFrozenLake-v0", schedule="frozen_lake/implicit", schedule_hash="0", controller="direct")
    values.update(team="solo", stage="test", memory=memory, policy=policy)
    values.update(verifier="none" if policy == "clairvoyant" else verifier)
    values.update(seed=seed, episode=episode, round=episode % ROUNDS + 1, tick=episode, steps=10)
    values.update(phase="source" if episode < ROUNDS else "reversal", score=score, regret=1.0 - score)
    values.update(detected=None, detection_delay=None)
    values.update(
        success=score == 1.0, memory_truth_rate=0.5, items=None, item_truth_rate=None, still_believed=None, cost=0.0
    )
    return {**values, **more}


# Ten percent steps of score: what the plain agent, GLOVE and the reset get in the two phases.
PLAIN = {0: [1.0] * 6 + [0.5] * 6, 1: [1.0] * 6 + [0.0] * 6}
GLOVE = {0: [1.0] * 6 + [0.5] + [1.0] * 5, 1: [1.0] * 6 + [0.0, 0.0] + [1.0] * 4}
RESET = {0: [1.0] * 12, 1: [1.0] * 12}


def log_rows() -> list[dict[str, Any]]:
    rows = []
    for verifier, scores in (("none", PLAIN), ("glove", GLOVE), ("oracle_reset", RESET), ("clairvoyant", RESET)):
        for seed, values in scores.items():
            for episode, score in enumerate(values):
                probing = verifier == "glove" and episode == 6
                more = {"probe_steps": 4 + seed, "probe_resets": 1, "realignments": 1, "false_realignments": seed}
                noticing = {}
                if probing and seed == 0:
                    noticing = {"detection_delay": 3, "detected": "reversal"}
                rows.append(row(verifier, seed, episode, score, **(more if probing else {}), **noticing))
    return rows


def manifest(visibility: str = "implicit") -> dict[str, Any]:
    return {
        "name": "by-hand",
        "config_hash": "abc",
        "versions": {"drift-envs": "0"},
        "experiment": {"name": "by-hand", "about": "a log of a few lines", "seeds": [0, 1]},
        "schedules": {
            "frozen_lake/implicit": {"env": "DriftFrozenLake-v0", "visibility": visibility, "hash": "0", "episodes": 12}
        },
        "players": [
            {
                "schedule": "frozen_lake/implicit",
                "memory": "none" if verifier == "clairvoyant" else "vanilla",
                "verifier": "none" if verifier == "clairvoyant" else verifier,
                "policy": "clairvoyant" if verifier == "clairvoyant" else "planner",
                "reference": verifier if verifier in ("oracle_reset", "clairvoyant") else None,
                "supervision": "privileged" if verifier in ("oracle_reset", "clairvoyant") else "none",
            }
            for verifier in ("none", "glove", "oracle_reset", "clairvoyant")
        ],
    }


@pytest.fixture
def tables() -> dict[str, Table]:
    (section,) = make_report(manifest(), log_rows()).sections
    assert section.subject == "frozen_lake/implicit"
    assert section.about == "DriftFrozenLake-v0, implicit drift; score in percent, 2 instances"
    return {table.title: table for table in section.tables}


SCORES, COSTS = "Score in percent, by phase", "Costs of the whole run, mean of an instance"
VERIFICATION = "Verification: conflicts with memory, realignments, detection, truth"


def cells(table: Table, name: str) -> dict[str, str]:
    (found,) = [cells for cells, _ in table.rows if cells[0].strip() == name]
    return dict(zip((column.replace("\n", " ") for column in table.columns), found, strict=True))


def test_scores_by_phase(tables: dict[str, Table]) -> None:
    table = tables[SCORES]
    assert [row[0] for row, _ in table.rows] == ["Vanilla", "  + GLOVE", "  oracle reset", "Clairvoyant"]
    plain, glove = cells(table, "Vanilla"), cells(table, "+ GLOVE")
    assert plain["→ reversal"] == "25 [0, 50]"  # the means of the instances are 50 and 0
    assert glove["→ reversal"] == "79 [67, 92]"  # 5.5 / 6 and 4 / 6
    assert plain["source"] == "100 (all 2)"  # two runs that differ later
    assert glove["source"] == "100 (all 2)"
    assert cells(table, "Clairvoyant")["→ reversal"] == "100"  # one and the same run
    assert glove["reversal: regret"] == "1.2 [0.5, 2.0]"
    # Windows of five: .9 and 1 for the first instance; .6 and .8 for the second, which never comes back.
    assert glove["reversal: recovered"] == "> 6, 1 of 2"
    assert cells(table, "Clairvoyant")["reversal: recovered"] == "0, 2 of 2"


def test_the_overview_says_what_was_lost_and_won_back() -> None:
    table = make_report(manifest(), log_rows()).overview
    # Means of the hand-made scores: 25 of [50, 0]; 79 of [92, 67]; 4 + 5 probe steps beside 2 * 12 * 10 ordinary ones.
    assert cells(table, "frozen_lake/implicit: Vanilla") == {
        "schedule: memories": "frozen_lake/implicit: Vanilla",
        "before": "100",
        "plain": "25",
        "plain: cost": "120",
        "GLOVE": "79",
        "GLOVE: cost": "124",
        "oracle reset": "100",
        "oracle reset: cost": "120",
        "GLOVE's probes, %": "3.6",
    }


def test_every_glove_of_a_sweep_of_options_has_a_column_of_the_overview() -> None:
    labels = {"glove": "glove", "glove(budget=7, epsilon=0.2)": "oracle_reset"}
    rows = log_rows()
    others = [
        {**line, "verifier": label, "probe_steps": 0 if label == "glove" else 30}
        for label, source in labels.items()
        for line in rows
        if line["verifier"] == source
    ]
    plain = [line for line in rows if line["verifier"] == "none"]
    table = make_report({**manifest(), "players": []}, [*plain, *others]).overview
    ((row, _),) = table.rows
    assert dict(zip(table.columns[1:], row[1:], strict=True)) == {
        "before": "100",
        "plain": "25",
        "plain:\ncost": "120",
        "GLOVE": "79",
        "GLOVE:\ncost": "120",
        "GLOVE\nbudget=7\nepsilon=0.2": "100",
        "GLOVE\nbudget=7\nepsilon=0.2:\ncost": "480",
        "GLOVE:\nprobes, %": "0.0",
        "GLOVE\nbudget=7\nepsilon=0.2:\nprobes, %": "75.0",
    }


def test_memories_with_equal_figures_share_a_line_of_the_overview() -> None:
    rows = log_rows()
    for memory, worse in (("voyager", 1.0), ("memory_bank", 0.5)):
        rows += [
            {**line, "memory": memory, "score": worse * line["score"]}
            for line in log_rows()
            if line["memory"] == "vanilla"
        ]
    rows += [{**line, "memory": "none"} for line in log_rows() if line["verifier"] == "none"]
    table = make_report({**manifest(), "players": []}, rows).overview
    names = [cells[0].removeprefix("frozen_lake/implicit: ") for cells, _ in table.rows]
    assert names == ["Vanilla, Voyager", "MemoryBank"], "agents without memory are left out beside memories"
    alone = make_report(manifest(), [line for line in rows if line["memory"] == "none"]).overview
    assert [cells[0] for cells, _ in alone.rows] == ["frozen_lake/implicit: No memory"]


def test_the_headline_holds_the_figures_of_the_tables() -> None:
    lost, gained, played = make_report(manifest(), log_rows()).headline
    assert played == (
        "2 agents (memories: Vanilla; verifiers: none, GLOVE) and 2 references played 1 schedule with 2 seeds: "
        "96 episodes."
    )
    # Plain: 100 before, then 50 and 0; GLOVE: 92 and 67 after.
    assert lost == (
        "The worst change of an agent with memory and no verifier after the drifts: -75 [-100, -50] points, Vanilla on "
        "frozen_lake/implicit, from 100 (all 2) to 25 [0, 50]."
    )
    assert gained == "GLOVE minus plain after the drifts: +54 [+42, +67] points."
    plain_only = [row for row in log_rows() if row["verifier"] == "none" and row["policy"] == "planner"]
    sentences = make_report(manifest(), plain_only).headline
    assert sentences[-1].endswith("(memories: Vanilla; verifiers: none) played 1 schedule with 2 seeds: 24 episodes.")
    assert not any("GLOVE" in sentence or "reference" in sentence for sentence in sentences)


def test_the_headline_counts_agents_that_changed() -> None:
    rows = log_rows()
    for line in log_rows():
        if line["memory"] == "vanilla":  # without loss, and GLOVE no better
            rows.append({**line, "memory": "voyager", "verifier": line["verifier"], "score": 1.0})
    lost, gained, *_ = make_report({**manifest(), "players": []}, rows).headline
    assert lost == (
        "After the drifts 1 of 2 agents with memory and no verifier (counted once a schedule) scores lower than "
        "before; the worst change is -75 [-100, -50] points, Vanilla on frozen_lake/implicit, from 100 (all 2) to 25 "
        "[0, 50]."
    )
    assert gained == (
        "GLOVE minus plain after the drifts: from 0 (all 2) to +54 [+42, +67] points, above 0 in 1 of 2 pairs of "
        "agents, below 0 in 0."
    )


def test_the_headline_of_one_seed_is_that_of_its_tables() -> None:
    rows = [row for row in log_rows() if row["seed"] == 1]
    report = make_report(manifest(), rows)
    lost, gained, played = report.headline
    assert lost == (
        "One seed: means without intervals, which need more seeds. The worst change of an agent with memory and "
        "no verifier after the drifts: -100 points, Vanilla on frozen_lake/implicit, from 100 to 0."
    )
    assert gained == "GLOVE minus plain after the drifts: +67 points."
    assert played.endswith("with 1 seed: 48 episodes.")
    assert cells(report.overview, "frozen_lake/implicit: Vanilla")["plain"] == "0"
    assert "n = 1" not in to_text(manifest(), report)


def test_names_and_texts_cannot_become_html() -> None:
    hostile, schedule = "<script>alert(1)</script>", "frozen_lake/<img src=x>"
    played = json.loads(json.dumps(manifest()).replace("frozen_lake/implicit", schedule))
    played |= {"name": hostile, "experiment": {"name": hostile, "about": f"{hostile}```", "seeds": [0, 1]}}
    rows = [{**row, "schedule": schedule} for row in log_rows()]
    text = to_text(played, make_report(played, rows))
    assert re.findall(r"<(?:script|img)", text) == []
    assert "&lt;script>alert(1)" in text
    configuration = text.split("```json\n")[1].split("\n```")[0]
    assert json.loads(configuration)["about"] == f"{hostile}```"


def test_the_headline_warns_of_agents_that_moved_in_circles() -> None:
    rows = [{**line, "loop_steps": 6 if line["verifier"] == "glove" else 0} for line in log_rows()]
    assert make_report(manifest(), rows).headline[-1] == (
        "Warning: 1 agent (by schedule) moved in circles, with at least 5% of the steps in loops; most: 60%, "
        "Vanilla + GLOVE on frozen_lake/implicit."
    )


def test_explicit_drifts_report_success_and_never_score() -> None:
    (section,) = make_report(manifest("explicit"), log_rows()).sections
    assert "success in percent" in section.about
    assert cells(section.tables[0], "Vanilla")["→ reversal"] == "0 (all 2)"  # two different runs, none successful
    assert cells(section.tables[0], "+ GLOVE")["→ reversal"] == "75 [67, 83]"


def test_costs(tables: dict[str, Table]) -> None:
    glove = cells(tables[COSTS], "+ GLOVE")
    assert glove == {
        "method": "  + GLOVE",
        "steps": "120",
        "probe steps": "4.5",
        "total steps": "124",  # 124.5, to even
        "probe resets": "1",
        "supervision": "none",
    }


def test_requests_to_models_have_columns_where_there_are_some() -> None:
    rows = [
        {**line, "model_calls": 2, "tokens_in": 100, "tokens_out": 5, "cost": 0.25, "memory_size": 7}
        if line["verifier"] == "glove"
        else line
        for line in log_rows()
    ]
    (section,) = make_report(manifest(), rows).sections
    glove = cells(section.tables[1], "+ GLOVE")
    assert [glove[head] for head in ("model calls", "tokens", "dollars", "records")] == ["24", "1,260", "3", "7"]
    assert cells(section.tables[1], "Vanilla")["dollars"] == "-"


def test_verification(tables: dict[str, Table]) -> None:
    table = tables[VERIFICATION]
    assert [row[0] for row, _ in table.rows] == ["Vanilla", "  + GLOVE", "  oracle reset"], "clairvoyant has no memory"
    # One of two noticed it; the other is longer than any, so that the lower median is 3.
    assert cells(table, "+ GLOVE") == {
        "method": "  + GLOVE",
        "realignments": "1",
        "false ones": "0.5",
        "false alarms in 1,000": "4.2",  # 0 and 1 in 120 interactions
        "reversal: noticed, delay": "1 of 2, 3",
        "reversal: true at the end, %": "50 (all 2)",
    }
    assert cells(table, "Vanilla")["reversal: noticed, delay"] == "-"


def test_an_instance_that_never_came_to_a_phase_does_not_count_there() -> None:
    """With clocks that count steps, sixty episodes may be over before a drift comes."""
    rows = [one for one in log_rows() if (one["verifier"], one["seed"], one["phase"]) != ("none", 1, "reversal")]
    report = make_report(manifest(), rows)
    assert cells(report.sections[0].tables[0], "Vanilla")["→ reversal"] == "50"
    assert report.headline[1].endswith("GLOVE minus plain after the drifts: +42 points."), (
        "one instance has no interval"
    )


def test_without_an_optimum_nothing_is_claimed() -> None:
    rows = [{**row, "regret": None, "memory_truth_rate": None, "false_realignments": None} for row in log_rows()]
    (section,) = make_report(manifest(), rows).sections
    scores, _, verification = section.tables
    assert scores.columns == ("method", "source", "→ reversal")
    assert verification.columns == ("method", "realignments")


def test_more_than_three_phases_go_on_in_the_next_table() -> None:
    rows = [row("none", seed, episode, 1.0, phase=f"p{episode // 2}") for seed in (0, 1) for episode in range(10)]
    assert phases_of(group(rows)["frozen_lake/implicit"]) == ["p0", "p1", "p2", "p3", "p4"]
    (section,) = make_report({**manifest(), "players": []}, rows).sections
    first, second = [table for table in section.tables if table.title == SCORES]
    assert (first.columns[1:4], second.columns[1:3]) == (("p0", "→ p1", "→ p2"), ("→ p3", "→ p4"))


def test_the_report_is_printed_and_written(tmp_path: Path) -> None:
    about = manifest()
    about["experiment"]["about"] = "<script>a log of a few lines</script>"
    (tmp_path / "run.json").write_text(json.dumps(about))
    (tmp_path / "episodes.jsonl").write_text("".join(to_line(row) + "\n" for row in log_rows()))
    printed = {}
    for full in (False, True):
        console = Console(file=StringIO(), width=100)
        path = write_report(tmp_path, console, full=full)
        *lines, last = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
        assert max(map(len, lines)) <= 100
        assert last == str(path), "a path stands in one line, so that it can be copied"
        printed[full] = "\n".join(lines)
    text = path.read_text()
    assert len(printed[False].splitlines()) < 20
    for part in ("+54 [+42, +67]", "79 [67, 92]", "Costs of the whole run", "Verification", "Cells"):
        assert (part in printed[False]) is part.startswith("+54")
        assert part in printed[True]
        assert part in text
    assert "<script>" not in text.partition("## Configuration")[0], "descriptions stand among the configuration alone"
    assert "Configuration (hash abc)" in text
    again = write_report(tmp_path).read_text()
    assert again == text
    path.unlink()
    path.mkdir()  # as a folder in which nothing can be written
    console = Console(file=StringIO(), width=100)
    write_report(tmp_path, console)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "Not written as Markdown: " in shown
    assert "+54 [+42, +67]" in shown
    with pytest.raises(ExperimentError):
        write_report(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("run.json", None, "holds no run, run.json is missing"),
        ("run.json", "[]", "does not describe a run"),
        ("episodes.jsonl", None, "the run is not finished, episodes.jsonl is missing"),
        ("episodes.jsonl", "{}\n", "episodes.jsonl:1: not a line of this version of drift-envs: env, schedule"),
        ("episodes.jsonl", "torn", "episodes.jsonl:1: the last line is torn off"),
        ("episodes.jsonl", b"\xff\n", "episodes.jsonl: cannot be read: is not UTF-8"),
        ("episodes.jsonl", to_line(row("none", 0, 0, 1.0, steps="ten")) + "\n", "`steps` should be a whole number"),
        (
            "episodes.jsonl",
            to_line(row("none", 0, 0, 1.0, items="ten")) + "\n",
            "`extra.items` should be a whole number",
        ),
        ("episodes.jsonl", to_line(row("none", 0, 0, 1.0))[:-1] + ', "extra": {"a": 1}}\n', "`extra` has a"),
        ("episodes.jsonl", to_line(row("none", 0, 0, 1.0)).replace("1.0,", "NaN,", 1) + "\n", "NaN is not JSON"),
    ],
)
def test_what_cannot_be_reported(tmp_path: Path, name: str, content: Any, expected: str) -> None:
    (tmp_path / "run.json").write_text(json.dumps(manifest()))
    (tmp_path / "episodes.jsonl").write_text("")
    if content is None:
        (tmp_path / name).unlink()
    elif isinstance(content, bytes):
        (tmp_path / name).write_bytes(content)
    else:
        (tmp_path / name).write_text(content)
    with pytest.raises(ExperimentError, match=re.escape(expected)):
        write_report(tmp_path)


def test_lines_survive_the_way_to_the_file_and_back(tmp_path: Path) -> None:
    rows = [row("none", 0, 0, 0.1 + 0.2, phase="Überlauf #2"), row("none", 0, 1, 1.0, items=0, cost=0.5, refreshes=2)]
    path = tmp_path / "episodes.jsonl"
    path.write_text("".join(to_line(row) + "\n" for row in rows))
    assert read_rows(path) == rows
    plain, model = map(json.loads, path.read_text().splitlines())
    assert "extra" not in plain
    assert model["extra"] == {"items": 0, "cost": 0.5, "refreshes": 2}


def test_values_of_a_sweep_stand_one_below_the_other_in_the_overview() -> None:
    rows, schedules, players = [], {}, []
    for value, lost in ((0.0, 0.0), (0.2, 0.5)):
        name = f"frozen_lake/implicit/slip-{value}"
        for one in log_rows():
            score = one["score"] - (lost if one["verifier"] == "glove" and one["phase"] == "reversal" else 0)
            rows.append({**one, "schedule": name, "score": score})
        sweep = {"of": "frozen_lake/implicit", "path": "base.slip", "value": value}
        schedules[name] = {**manifest()["schedules"]["frozen_lake/implicit"], "sweep": sweep}
        players += [{**player, "schedule": name} for player in manifest()["players"]]
    report = make_report({**manifest(), "schedules": schedules, "players": players}, rows)
    shares = {row[0]: cells(report.overview, row[0])["GLOVE"] for row, _ in report.overview.rows}
    assert shares == {"frozen_lake/implicit/slip-0.0: Vanilla": "79", "frozen_lake/implicit/slip-0.2: Vanilla": "29"}
    still = make_report({**manifest(), "players": []}, [row for row in log_rows() if row["phase"] == "source"])
    assert still.overview.columns[:3] == ("schedule: memories", "plain", "GLOVE"), "without a drift nothing is before"


def test_columns_that_do_not_fit_follow_in_further_parts() -> None:
    table = Table("Many", ("method", *(f"a_long_head_{number}" for number in range(9))))
    table.add("Generative Agents", *(f"{number} [0, 100]" for number in range(9)))
    console = Console(file=StringIO(), width=60)
    print_table(console, table)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert text.count("Many") == text.count("Agents") == 3
    assert text.count("Many, continued") == 2
    for number in range(9):
        assert text.count(f"a_long_head_{number}") == text.count(f"{number} [0, 100]") == 1
    assert max(map(len, text.splitlines())) <= 60
