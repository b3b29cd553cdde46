"""Studies of belief: samples that meet the paper's criteria, figures by hand, files that come out alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drift_agents.envs.matching import Exact
from drift_agents.errors import ArgumentError, ExperimentError
from drift_agents.types import Outcome, Transition

from research.__main__ import main
from research.belief import corpus as belief_corpus
from research.belief.banks import METHODS, History, RecalledOutcome, find, live, outranks, supports
from research.belief.convergence import convergence_rows, convergence_tables, find_questions
from research.belief.correction import UPDATES, VALID, correct, correction_rows, correction_tables, draw, find_flaws
from research.studies import SEEDS, run_study

LAKE, SHOP = "frozen_lake/explicit:family", "webshop/explicit"
BELIEF, ONE, _, _, _, NEWEST, FREQUENCY = METHODS


@pytest.fixture(scope="module")
def history() -> History:
    return live(LAKE, 1000)


def test_a_history_ends_where_the_drift_begins(history: History) -> None:
    assert (history.before, history.after) == (0, 20)
    assert history.experiences[-1].now.episode == 19
    assert [one.now.step for one in history.experiences] == list(range(len(history.experiences)))
    with pytest.raises(ExperimentError, match=f"{LAKE}: "):
        live(LAKE, 1000, 21)


def test_flaws_meet_the_criteria(history: History) -> None:
    flaws, oracle = find_flaws(history), history.env.oracle
    assert flaws
    memory = history.memory(BELIEF.options)
    for believed, right, wrong in flaws:
        state, action, outcome = believed
        assert action in {str(oracle.action(state, tick)) for tick in (history.before, history.after)}
        assert oracle.holds(state, action, outcome.state, outcome.ended, history.before)
        assert not oracle.holds(state, action, outcome.state, outcome.ended, history.after)
        assert oracle.holds(state, action, right.outcome.state, right.outcome.ended, history.after)
        recalled = [one.transition for one in supports(memory, history.matching, state, action, history.now)]
        assert find(history.matching, believed, recalled) == 0
        assert find(history.matching, right, recalled) is None
        assert right not in wrong
        assert believed in wrong
        key = history.matching.state_key
        own = {one.outcome for one in history.experiences if key(one.state) == key(state)}
        assert {one.outcome for one in wrong} <= own, "noise is what may follow in that state"


def test_noise_is_never_right_and_the_pool_is_half_and_half(history: History) -> None:
    flaw = find_flaws(history)[0]
    every = draw(flaw, "without", np.random.default_rng(0))
    assert len(every) == UPDATES
    assert every.count(flaw.right) == VALID
    counts = {draw(flaw, "with", np.random.default_rng(seed)).count(flaw.right) for seed in range(20)}
    assert len(counts) > 1


def test_two_observations_in_a_row_decide_for_beliefs_the_last_for_one_and_the_count_for_frequency(
    history: History,
) -> None:
    flaw = find_flaws(history)[0]
    right, wrong = flaw.right, flaw.believed
    assert correct(history, BELIEF, flaw, [wrong] * 9 + [right]) is None
    assert correct(history, BELIEF, flaw, [wrong] * 8 + [right, right]) == 10
    assert correct(history, BELIEF, flaw, [right, right, right, wrong, right]) == 2
    for method in (ONE, NEWEST):
        assert correct(history, method, flaw, [wrong] * 9 + [right]) == 10
        assert correct(history, method, flaw, [right] * 9 + [wrong]) is None
        assert correct(history, method, flaw, [right, wrong, right, right]) == 3
    seen = sum(
        history.matching.same_outcome(Transition(*one[:3]), wrong)
        for one in history.experiences
        if one[:2] == wrong[:2]
    )
    assert correct(history, FREQUENCY, flaw, [right] * seen) is None
    assert correct(history, FREQUENCY, flaw, [right] * (seen + 3)) == seen + 1


def test_support_adds_up_and_ties_do_not_outrank() -> None:
    def said(name: str) -> Transition:
        return Transition("s", "1", Outcome(name, 0.0, False))

    recalled = [RecalledOutcome(said("a"), 0.8), RecalledOutcome(said("b"), 0.8), RecalledOutcome(said("c"), 0.25)]
    assert outranks(recalled, Exact(), said("a"), [said("c"), said("d")])
    assert not outranks(recalled, Exact(), said("a"), [said("b")])
    assert not outranks(recalled, Exact(), said("d"), [said("c")])


def test_questions_have_several_answers_and_one_that_is_most_probable() -> None:
    history = live("frozen_lake/slippery:family", 1000, 2)
    questions = find_questions(history)
    assert questions
    for answers, chances in questions:
        assert len(answers) == len(chances) >= 2
        assert chances[0] == max(chances) > chances[1]
        assert sum(chances) == pytest.approx(1)
        outcome = answers[0].outcome
        assert history.env.oracle.holds(*answers[0][:2], outcome.state, outcome.ended, 0)


def test_beliefs_converge_and_one_conclusion_an_observation_follows_the_newest() -> None:
    rows = list(convergence_rows([1000], ["frozen_lake/explicit:transient"]))
    leads = {(row["question"], row["method"]): row["leads"] for row in rows}
    for question in {row["question"] for row in rows}:
        assert leads[question, ONE.label] == leads[question, NEWEST.label]
        assert leads[question, BELIEF.label].count("1") >= leads[question, ONE.label].count("1")
        assert leads[question, FREQUENCY.label].endswith("1" * 10)
    (table,) = convergence_tables(rows)
    cells = {row[0]: row[1:] for row, _ in table.rows}
    own = [row["leads"] for row in rows if row["method"] == BELIEF.label]
    assert cells[BELIEF.label][0].startswith(f"{100 * sum(lead[0] == '1' for lead in own) / len(own):.0f}")
    assert cells[FREQUENCY.label][-1] == "100"


def test_correction_in_figures() -> None:
    def row(seed: int, corrected: bool, steps: int | None) -> dict[str, Any]:
        return {"schedule": "s", "seed": seed, "flaw": steps or 0, "draws": "with", "method": BELIEF.label} | {
            "corrected": corrected,
            "steps": steps,
        }

    (table,) = correction_tables([row(0, True, 4), row(0, False, None), row(1, True, 8)])
    assert table.title == "s: 3 flaws in 2 instances"
    assert table.rows[0][0][:3] == (BELIEF.label, "75 [50, 100]", "6.0")


def test_a_study_writes_the_same_each_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(belief_corpus, "CORPORA", (1, 3))
    assert main(["study", "belief-corpus", "--seeds", "1", "--out", str(tmp_path / "one")]) == 0
    assert "beliefmem: score after it" in capsys.readouterr().out
    run_study("belief-corpus", tmp_path / "two", 1)
    for name in ("lines.jsonl", "report.md"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    rows = [json.loads(line) for line in (tmp_path / "one" / "lines.jsonl").read_text().splitlines()]
    assert {row["corpus"] for row in rows} == {1, 3}
    sizes = {(row["memory"], row["schedule"], row["corpus"]): row["records"] for row in rows}
    assert all(sizes[memory, where, 1] < sizes[memory, where, 3] for memory, where, _ in sizes)


def test_lines_follow_the_instances() -> None:
    assert next(row["seed"] for row in correction_rows([1001, 1000], [LAKE])) == 1001
    assert tuple(range(1000, 1030)) == SEEDS


def test_wrong_usage_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "belief-corection", "--out", str(tmp_path)]) == 2
    assert "no study is called 'belief-corection', did you mean 'belief-correction'" in capsys.readouterr().err
    with pytest.raises(ArgumentError, match=r"`seeds` should be in the interval \[1, 30\]. Received 31"):
        run_study("belief-corpus", tmp_path, 31)
    (tmp_path / "file").write_text("")
    with pytest.raises(ExperimentError, match="cannot be written"):
        run_study("belief-convergence", tmp_path / "file", 1)
