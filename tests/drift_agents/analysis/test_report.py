"""Reports: every figure recomputed by hand from a log of a few lines."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from drift_agents.analysis.report import make_report, make_sentences, make_summary, write_report
from drift_agents.analysis.runs import estimate, group, mean_of, phases_of
from drift_agents.analysis.table import Table, print_table
from drift_agents.errors import ExperimentError
from drift_agents.experiment.logs import FIELDS, read_rows, to_line
from rich.console import Console

from drift_envs.metrics import Estimate, bootstrap

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
    values.update(detected=None, detection_delay=None, exposures=None if episode < ROUNDS else 0)
    values.update(success=score == 1.0, memory_truth_rate=0.5, items=None, item_truth_rate=None, cost=0.0)
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
                noticing = {"exposures": 2 + seed} if probing else {}
                if probing and seed == 0:
                    noticing |= {"detection_delay": 3, "detected": "reversal"}
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
    ((heading, found, more),) = make_report(manifest(), log_rows())
    assert heading == ("frozen_lake/implicit (DriftFrozenLake-v0, implicit drift): score in percent, 2 instances")
    return {table.title: table for table in found + more}


def cells(table: Table, name: str) -> dict[str, str]:
    (found,) = [cells for cells, _ in table.rows if cells[0].strip() == name]
    return dict(zip((column.replace("\n", " ") for column in table.columns), found, strict=True))


def test_scores_by_phase(tables: dict[str, Table]) -> None:
    table = tables["Score in percent, by phase"]
    assert [row[0] for row, _ in table.rows] == ["Vanilla", "  + GLOVE", "  oracle reset", "Clairvoyant"]
    plain, glove = cells(table, "Vanilla"), cells(table, "+ GLOVE")
    assert plain["→ reversal"] == "25 [0, 50]"  # the means of the instances are 50 and 0
    assert glove["→ reversal"] == "79 [67, 92]"  # 5.5 / 6 and 4 / 6
    assert plain["source"] == "100 (all 2)"  # two runs that differ later
    assert glove["source"] == "100 (all 2)"
    assert cells(table, "Clairvoyant")["→ reversal"] == "100 (n = 1)"
    assert plain["paper, GPT-4o"] == "47.5 → 50"
    assert glove["paper, GPT-4o"] == "35 → 97.5"
    assert cells(table, "oracle reset")["paper, GPT-4o"] == "-"


def test_the_summary_says_what_was_lost_and_won_back() -> None:
    (section,) = make_summary(manifest(), log_rows())
    (table,) = section.tables
    # Means of the hand-made scores: 25 of [50, 0]; 79 of [92, 67]; 4 + 5 probe steps beside 2 * 12 * 10 ordinary ones.
    assert cells(table, "frozen_lake/implicit, Vanilla") == {
        "schedule, memory": "frozen_lake/implicit, Vanilla",
        "before": "100",
        "plain": "25",
        "+ overwrite": "-",
        "+ GLOVE": "79",
        "oracle reset": "100",
        "probes, % of all steps": "3.6",
    }
    plain_only = [row for row in log_rows() if row["verifier"] != "glove"]
    assert make_summary(manifest(), plain_only) == []


def test_the_sentences_hold_the_figures_of_the_tables() -> None:
    played, lost, gained, probed, best = make_sentences(manifest(), log_rows())
    assert played == "2 agents and 2 references played 1 schedule with 2 seeds: 96 episodes."
    # Plain: 100 before, then 50 and 0; GLOVE: 92 and 67 after, 4 and 5 probe steps beside 120 ordinary ones.
    assert lost.startswith("1 of 1 plain agent ")
    assert lost.endswith(
        "the largest change is -75 [-100, -50] points, Vanilla on frozen_lake/implicit, from 100 (all 2) to 25 [0, 50]."
    )
    assert gained == (
        "GLOVE minus plain after drifts, in points: above 0 in 1 of 1 comparison, below in 0 (0 hold after Holm's "
        "correction); all are +54 [+42, +67]."
    )
    assert probed == (
        "Probe steps are 3.6 [3.2, 4.0] % (Vanilla + GLOVE on frozen_lake/implicit) of the interactions of agents with "
        "GLOVE."
    )
    assert best.startswith("The best agent of a schedule reaches 79 [67, 92] % (Vanilla + GLOVE on ")
    plain_only = [row for row in log_rows() if row["verifier"] == "none" and row["policy"] == "planner"]
    sentences = make_sentences(manifest(), plain_only)
    assert sentences[0] == "1 agent played 1 schedule with 2 seeds: 24 episodes."
    assert sentences[-1] == "An episode takes 10.0 (all 2) (Vanilla on frozen_lake/implicit) steps on average."
    assert not any("GLOVE" in sentence or "reference" in sentence for sentence in sentences)


def test_the_summary_keeps_policies_apart_and_takes_the_first_options_of_a_verifier() -> None:
    rows = [*log_rows(), *({**line, "policy": "reader", "score": 0.0, "success": False} for line in log_rows()[:48])]
    rows += [
        {**line, "verifier": "glove(budget=3)", "score": 0.0} for line in log_rows() if line["verifier"] == "glove"
    ]
    ((table,),) = (section.tables for section in make_summary(manifest(), rows))
    assert cells(table, "frozen_lake/implicit, Vanilla (planner)")["+ GLOVE"] == "79"
    assert cells(table, "frozen_lake/implicit, Vanilla (reader)")["+ GLOVE"] == "0"


def test_explicit_drifts_report_success_and_never_score() -> None:
    ((heading, found, _),) = make_report(manifest("explicit"), log_rows())
    assert "success in percent" in heading
    assert cells(found[0], "Vanilla")["→ reversal"] == "0 (all 2)"  # two different runs, none of them successful
    assert cells(found[0], "+ GLOVE")["→ reversal"] == "75 [67, 83]"


def test_after_the_drift(tables: dict[str, Table]) -> None:
    table = tables["After reversal"]
    glove = cells(table, "+ GLOVE")
    assert glove["rounds 1-3"] == "58 [33, 83]"  # 2.5 / 3 and 1 / 3
    assert glove["rounds 4-6"] == "100 (all 2)"
    assert glove["dynamic regret"] == "1.2 [0.5, 2.0]"
    # Windows of five: .9 and 1 for the first instance; .6 and .8 for the second, which never comes back.
    assert glove["recovered after rounds"] == "> 6, 1 of 2"
    assert cells(table, "Clairvoyant")["recovered after rounds"] == "0, 2 of 2"
    assert glove["memory true at the end, %"] == "50 (all 2)"


def test_paired_differences(tables: dict[str, Table]) -> None:
    table = tables["Paired differences in points"]
    # 91.7 - 50 and 66.7 - 0, instance by instance
    assert cells(table, "GLOVE - plain, Vanilla") == {
        "": "GLOVE - plain, Vanilla",
        "source": "0 (all 2)",
        "reversal": "+54 [+42, +67]*",
    }
    # (79.2 - 25) / (100 - 25)
    assert cells(table, "Recovery ratio, Vanilla")["reversal"].startswith("0.72 [")


def test_costs(tables: dict[str, Table]) -> None:
    glove = cells(tables["Costs of the whole run, mean of an instance"], "+ GLOVE")
    assert glove == {
        "method": "  + GLOVE",
        "steps": "120",
        "probe steps": "4.5",
        "total steps": "124",  # 124.5, to even
        "realignments": "1",
        "false ones": "0.5",
        "supervision": "none",
    }


def test_detections(tables: dict[str, Table]) -> None:
    table = tables["Drifts noticed, median delay in interactions"]
    # One of two noticed it; the other is longer than any, so that the lower median is 3.
    assert [row for row, _ in table.rows] == [("Vanilla + GLOVE", "1 of 2, 3", "2.5", "4.2", "0")]
    assert cells(table, "Vanilla + GLOVE") == {
        "method": "Vanilla + GLOVE",
        "reversal: noticed, delay": "1 of 2, 3",
        "exposures": "2.5",
        "false alarms in 1,000": "4.2",  # 0 and 1 in 120 interactions
        "in calm phases": "0",
    }


def test_probes(tables: dict[str, Table]) -> None:
    glove = cells(tables["Probes"], "Vanilla + GLOVE")
    assert glove["% of steps"] == "3.6"  # 4 of 124 and 5 of 125
    assert glove["% when calm"] == "0.0"
    assert (glove["steps a drift"], glove["resets a drift"]) == ("4.5", "1")
    assert (glove["steps a calm round"], glove["resets a calm round"]) == ("0", "0")


def test_equal_interaction(tables: dict[str, Table]) -> None:
    table = tables["Score collected at equal interaction"]
    assert [row[0] for row, _ in table.rows] == ["Vanilla", "  + GLOVE"]
    # The plain agent needs 60 interactions for its six rounds; with its probes GLOVE has finished five by then.
    assert cells(table, "Vanilla") == {"method": "Vanilla", "reversal: in 60 steps": "1.5 [0.0, 3.0]", "in 1,000": "25"}
    assert cells(table, "+ GLOVE")["reversal: in 60 steps"] == "3.8 [3.0, 4.5]"
    assert cells(table, "+ GLOVE")["in 1,000"] == "73.7"  # 5.5 in 64 and 4 in 65


def test_an_instance_that_never_came_to_a_phase_is_not_compared_there() -> None:
    """With clocks that count steps, sixty episodes may be over before a drift comes."""
    rows = [one for one in log_rows() if (one["verifier"], one["seed"], one["phase"]) != ("none", 1, "reversal")]
    (section,) = make_report(manifest(), rows)
    tables = {table.title: table for table in section.tables + section.more}
    table = tables["Score collected at equal interaction"]
    assert cells(table, "Vanilla")["reversal: in 60 steps"] == "3.0 (n = 1)"
    assert cells(table, "+ GLOVE")["reversal: in 60 steps"] == "4.5 (n = 1)"
    assert cells(tables["Drifts noticed, median delay in interactions"], "Vanilla + GLOVE") != {}
    rows = [one for one in rows if (one["verifier"], one["phase"]) != ("none", "reversal")]
    (section,) = make_report(manifest(), rows)
    assert not any(table.title == "Score collected at equal interaction" for table in section.more)


def test_prices(tables: dict[str, Table]) -> None:
    table = tables["Whole run, score in percent net of probes, by price of a probe step"]
    glove = cells(table, "+ GLOVE")
    assert (glove["0"], glove["0.1"]) == ("90", "86")  # .375 probe steps a round
    assert glove["break-even with plain"] == "0.72"  # (.896 - .625) / .375
    assert cells(table, "Vanilla")["break-even with plain"] == "-"


def test_means_taken_apart(tables: dict[str, Table]) -> None:
    table = tables["Mean / interquartile mean / % of instances that failed"]
    assert cells(table, "Vanilla") == {"method": "Vanilla", "source": "100 / 100 / 0", "reversal": "25 / 25 / 100"}
    assert cells(table, "+ GLOVE")["reversal"] == "79 / 79 / 0"
    rounds = cells(tables["Around reversal, round by round: score in percent"], "+ GLOVE")
    assert [rounds[key] for key in ("-2", "-1", "+1", "+2", "+3")] == ["100", "100", "25", "50", "100"]
    assert "+10" not in rounds  # there are six rounds
    assert "After reversal, by the score of the round before it" not in tables  # all of them held 1.0


def test_after_a_drift_by_what_was_held() -> None:
    rows = log_rows()
    for one in rows:
        if one["verifier"] == "none" and one["seed"] == 1 and one["episode"] == 5:
            one["score"] = 0.5
    (section,) = make_report(manifest(), rows)
    (table,) = [table for table in section.more if table.title.startswith("After reversal, by the score")]
    assert cells(table, "Vanilla") == {"method": "Vanilla", "1": "50, n = 1", "0.5": "0, n = 1"}
    assert cells(table, "+ GLOVE") == {"method": "  + GLOVE", "1": "79 [67, 92], n = 2", "0.5": "-"}


def test_without_an_optimum_nothing_is_claimed() -> None:
    rows = [{**row, "regret": None, "memory_truth_rate": None, "false_realignments": None} for row in log_rows()]
    ((_, found, _),) = make_report(manifest(), rows)
    details = found[1]
    assert details.columns == ("method", "rounds 1-3", "rounds 4-6")
    assert "false\nones" not in found[-1].columns or cells(found[-1], "+ GLOVE")["false ones"] == "-"


def test_more_than_three_phases_go_on_in_the_next_table() -> None:
    rows = [row("none", seed, episode, 1.0, phase=f"p{episode // 2}") for seed in (0, 1) for episode in range(10)]
    assert phases_of(group(rows)["frozen_lake/implicit"]) == ["p0", "p1", "p2", "p3", "p4"]
    ((_, found, _),) = make_report({**manifest(), "players": []}, rows)
    assert [table.columns[1:4] for table in found[:2]] == [("p0", "→ p1", "→ p2"), ("→ p3", "→ p4")]


def test_grouping_does_not_depend_on_the_order_of_lines() -> None:
    rows = log_rows()
    shuffled = sorted(rows, key=lambda row: (row["verifier"] == "none", -row["episode"]))
    first, second = (group(some)["frozen_lake/implicit"] for some in (rows, shuffled))
    assert {run.player: run for run in first} == {run.player: run for run in second}


def test_an_estimate_is_that_of_the_metrics_but_counts_runs() -> None:
    values = [0.0, 1.0, 1.0, 0.5]
    assert estimate(values) == bootstrap(values)
    assert estimate([0.5, 0.5]) == Estimate(0.5, 0.5, 0.5, 2)
    assert estimate([0.5, 0.5], one_run=True) == Estimate(0.5, 0.5, 0.5, 1)
    assert estimate([float("nan")]).n == 0
    assert mean_of("memory_truth_rate")([row("none", 0, 0, 1.0), row("none", 0, 1, 1.0, memory_truth_rate=None)]) == 0.5


def test_the_report_is_printed_and_written(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(manifest()))
    (tmp_path / "episodes.jsonl").write_text("".join(to_line(row) + "\n" for row in log_rows()))
    console = Console(file=StringIO(), width=100)
    path = write_report(tmp_path, console)
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    text = path.read_text()
    *lines, last = printed.splitlines()
    assert max(map(len, lines)) <= 100
    assert last == str(path), "a path stands in one line, so that it can be copied"
    for figure in ("79 [67, 92]", "35 → 97.5", "+54 [+42, +67]*"):
        assert figure in printed
        assert figure.replace("*", "*") in text
    assert "A log of a few lines." in text
    assert "Configuration (hash abc)" in text
    again = write_report(tmp_path).read_text()
    assert again == text


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("run.json", None, "holds no run, run.json is missing"),
        ("run.json", "{", "cannot be read"),
        ("run.json", "[]", "does not describe a run"),
        ("episodes.jsonl", None, "the run is not finished, episodes.jsonl is missing"),
        ("episodes.jsonl", "{}\n", "episodes.jsonl:1: not a line of this version of drift-envs: env, schedule"),
        ("episodes.jsonl", "nonsense\n", "episodes.jsonl:1: not a line of a run"),
        ("episodes.jsonl", "torn", "episodes.jsonl:1: the last line is torn off"),
        ("episodes.jsonl", b"\xff\n", "episodes.jsonl: cannot be read: is not UTF-8"),
        ("episodes.jsonl", to_line(row("none", 0, 0, 1.0, steps="ten")) + "\n", "`steps` should be a whole number"),
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
    rows = [row("none", 0, 0, 0.1 + 0.2, phase="Überlauf #2")]
    path = tmp_path / "episodes.jsonl"
    path.write_text("".join(to_line(row) + "\n" for row in rows))
    assert read_rows(path) == rows


def swept() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A run of two values of slip, in the second of which GLOVE loses half after the drift."""
    rows, schedules, players = [], {}, []
    for value, lost in ((0.0, 0.0), (0.2, 0.5)):
        name = f"frozen_lake/implicit/slip-{value}"
        for one in log_rows():
            score = one["score"] - (lost if one["verifier"] == "glove" and one["phase"] == "reversal" else 0)
            rows.append({**one, "schedule": name, "score": score})
        sweep = {"of": "frozen_lake/implicit", "path": "base.slip", "value": value}
        schedules[name] = {**manifest()["schedules"]["frozen_lake/implicit"], "sweep": sweep}
        players += [{**player, "schedule": name} for player in manifest()["players"]]
    return {**manifest(), "schedules": schedules, "players": players}, rows


def test_a_sweep_is_printed_as_a_table_over_its_values() -> None:
    overview, *own = make_report(*swept())
    assert overview.heading == "frozen_lake/implicit by slip"
    assert [section.tables for section in own] == [[], []]
    tables = {table.title: table for table in overview.tables}
    after = tables["Score in percent after the drifts"]
    assert after.columns == ("method", "slip\n0", "slip\n0.2")
    assert cells(after, "+ GLOVE") == {"method": "  + GLOVE", "slip 0": "79 [67, 92]", "slip 0.2": "29 [17, 42]"}
    gain = cells(tables["Paired differences after the drifts, in points"], "GLOVE - plain, Vanilla")
    assert (gain["slip 0"][:3], gain["slip 0.2"][:2]) == ("+54", "+4")
    assert (
        cells(tables["Noticed the last drift, median delay in interactions"], "Vanilla + GLOVE")["slip 0"]
        == "1 of 2, 3"
    )
    assert cells(tables["Probe steps, % of all interactions"], "Vanilla + GLOVE")["slip 0"] == "3.6"


def test_a_sweep_without_a_drift_speaks_of_none() -> None:
    about, rows = swept()
    titles = [
        table.title for table in make_report(about, [row for row in rows if row["phase"] != "reversal"])[0].tables
    ]
    assert titles[0] == "Score in percent; nothing drifts"
    assert not [title for title in titles if "after" in title or "before" in title]


def test_several_policies_stand_in_the_layout_of_table_3() -> None:
    rows = [
        {**one, "policy": policy, "score": one["score"] * share}
        for policy, share in (("able", 1.0), ("poor", 0.5))
        for one in log_rows()
        if one["policy"] == "planner"
    ]
    overview, _ = make_report({**manifest(), "players": []}, rows)
    assert [row for row, _ in overview.tables[0].rows] == [
        ("able", "100 → 25"),
        ("  + GLOVE", "100 → 79 (+54)"),
        ("poor", "50 → 12"),
        ("  + GLOVE", "50 → 40 (+27)"),
    ]


def test_a_second_star_survives_the_correction() -> None:
    def rows_of(seeds: int) -> list[dict[str, Any]]:
        return [
            row(verifier, seed, episode, float(episode < ROUNDS or verifier == "glove"), steps=10 + seed)
            for verifier in ("none", "glove")
            for seed in range(seeds)
            for episode in range(2 * ROUNDS)
        ]

    stars = {}
    for seeds in (4, 8):
        (section,) = make_report(manifest("explicit"), rows_of(seeds))
        (table,) = [table for table in section.tables if table.title == "Paired differences in points"]
        stars[seeds] = cells(table, "GLOVE - plain, Vanilla")["reversal"]
    assert stars == {4: "+100 (all 4)*", 8: "+100 (all 8)**"}  # chances of 1/8 and 1/128


def printed_words(folder: Path, width: int) -> set[str]:
    console = Console(file=StringIO(), width=width)
    write_report(folder, console)
    *lines, _, _ = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert max(map(len, lines)) <= width
    return {word for line in lines for word in line.split() if set(word) != {"─"}}


def test_tables_of_a_terminal_break_no_word_and_leave_nothing_out(tmp_path: Path, traced_run: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(manifest()))
    (tmp_path / "episodes.jsonl").write_text("".join(to_line(row) + "\n" for row in log_rows()))
    for folder in (tmp_path, traced_run):
        wide, narrow = (printed_words(folder, width) for width in (1000, 80))
        assert {word.rstrip(",") for word in narrow} - {word.rstrip(",") for word in wide} == {"continued"}
        assert wide - narrow == set()


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
