"""Claims under the choices that their papers leave open."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from drift_agents.errors import EvidenceError

from drift_envs.metrics import Estimate
from research.__main__ import main
from research.choices import model, pages, store, verdicts
from research.choices.cells import ChoiceCell, make_cell, measure, play_cell
from research.coverage import read_coverage

STUDIES = model.read_studies()
CLAIMS = store.claims_with_choices()
TRAINED = {"setting": {"train": {"epochs": 4}}}
PLAY = {"says": "more", "agents": {"a": {}, "b": {}}, "effects": ["after(a) - after(b)"]}


def test_the_pages_have_the_tables_of_the_cells() -> None:
    """`make tables` does not change them."""
    for path, text in pages.render_choices().items():
        assert path.read_text("utf-8") == text, f"run `make tables`: {path.name} has other rows"


def test_claims_and_choices_agree_with_the_coverage() -> None:
    for paper in read_coverage():
        study = STUDIES[paper.name]
        named = {name for one in paper.claims for name in one.choices}
        assert named == set(study.choices), paper.name
        assert {one.id for one in paper.claims if one.choices} >= set(study.claims), paper.name


def test_every_tested_claim_names_its_choices_or_why_it_has_none() -> None:
    without = [
        one.id
        for paper in read_coverage()
        for one in paper.claims
        if one.holds != "untestable" and not one.choices and one.no_choices is None and one.one_setting is None
    ]
    assert not without


@pytest.mark.parametrize("claim", CLAIMS)
def test_every_combination_of_a_claim_can_be_made(claim: str) -> None:
    """Options are known and in range; every value of a choice is played."""
    plan = store.plan_claim(claim)
    assert 1 < len(plan.combinations) <= model.MOST
    (named,) = [one.choices for paper in read_coverage() for one in paper.claims if one.id == claim]
    drawn = model.combine(plan.study.claims[claim], plan.study.choices, named)
    for name in named:
        assert {one.values[name] for one in drawn} == set(plan.study.choices[name].values)


def test_drawn_combinations_have_every_value_equally_often_and_share_those_of_other_claims() -> None:
    values = {str(number): {"rounds": number} for number in range(4)}
    choices = {name: model.OpenChoice(what="x", ours="y", values=values) for name in "abcd"}
    play = model.ClaimPlay.model_validate(PLAY)
    found = model.combine(play, choices, ["a", "b", "c", "d"])
    fewer = model.combine(play, choices, ["a", "c", "d"])
    assert len(found) == 32
    assert {sum(one.values["b"] == value for one in found) for value in values} == {8}
    assert [one.values["a"] for one in found] == [one.values["a"] for one in fewer]


@pytest.mark.parametrize("text", ["", "after", "after(a) after(b)", "after(a) - ", "- - after(a)"])
def test_an_effect_is_a_sum_of_terms(text: str) -> None:
    with pytest.raises(ValueError, match="an effect should"):
        model.parse_effect(text)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"effects": ["after(c)"]}, "an effect should name agents of the claim. Received 'c'"),
        ({"effects": []}, "`effects`, `equals` or `at_most` should have an entry"),
        ({"n": 12}, "`fewer` should stand with less than 30 instances or 32 combinations, and only there"),
        ({"fewer": "slow"}, "`fewer` should stand with less than 30 instances or 32 combinations, and only there"),
    ],
)
def test_plays_that_leave_something_out_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        model.ClaimPlay.model_validate({**PLAY, **change})


@pytest.mark.parametrize("words", [{}, {"open": "k", "ours": "k"}])
def test_a_choice_is_the_papers_or_ours(words: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="should stand with a choice, not both"):
        model.OpenChoice.model_validate({"what": "k", "values": {"a": {}, "b": {}}, **words})


@pytest.mark.parametrize(
    ("span", "kind", "paper", "says"),
    [
        ((10, 1, 20), "effects", None, "for"),
        ((-10, -20, -1), "effects", None, "against"),
        ((0, -3, 3), "effects", None, "against"),
        ((2, -5, 9), "effects", None, "open"),
        ((2, -5, 9), "effects", 20.0, "against"),
        ((2, -5, 9), "effects", 8.0, "open"),
        ((10, 1, 20), "effects", 40.0, "for"),
        ((1, -3, 3), "equals", None, "for"),
        ((1, -4, 3), "equals", None, "open"),
        ((9, 4, 12), "equals", None, "against"),
        ((-9, -12, -4), "at_most", None, "for"),
        ((2, -5, 9), "at_most", None, "open"),
        ((9, 4, 12), "at_most", None, "against"),
    ],
)
def test_what_a_combination_says(span: tuple[float, float, float], kind: str, paper: float | None, says: str) -> None:
    assert verdicts._say(Estimate(*span, 30), 3.0, kind, paper) == says


@pytest.mark.parametrize(
    ("says", "verdict"),
    [
        (["open", "for", "for"], "holds"),
        (["open", "open", "for"], "undecided"),
        (["open", "open", "for", "for"], "undecided"),
        (["against", "for", "for"], "depends"),
        (["against", "against", "open"], "does not hold"),
        (["against", "open"], "undecided"),
    ],
)
def test_what_all_combinations_say(says: list[str], verdict: str) -> None:
    estimate = Estimate(0, 0, 0, 1)
    found = [verdicts.CombinationResult(model.Combination({}, {}), estimate, one, ()) for one in says]
    assert verdicts._sum_up(found) == verdict


def judged(claim: str, **effects: float) -> verdicts.ClaimVerdict:
    """A claim with a combination for each effect, which has no spread."""
    results = [
        verdicts.CombinationResult(
            model.Combination({"order": name}, {}), Estimate(mean, mean, mean, 30), "for", (mean,) * 30
        )
        for name, mean in effects.items()
    ]
    play = model.ClaimPlay.model_validate(PLAY)
    return verdicts.ClaimVerdict(claim, play, tuple(results), len(results), verdicts.HOLDS)


def test_p_values_are_corrected_for_the_claims_of_a_paper() -> None:
    alone = verdicts.correct_family([judged("a", oldest=5.0)])
    family = verdicts.correct_family([judged("a", oldest=5.0), judged("b", oldest=0.0), judged("c", oldest=7.0)])
    assert family["a"] == pytest.approx(3 * alone["a"])
    assert family["b"] == 1.0
    assert pages._corrected(judged("b", oldest=0.0), family["b"]) == verdicts.UNDECIDED
    assert pages._corrected(judged("a", oldest=5.0), family["a"]) == verdicts.HOLDS


def test_a_combination_whose_effect_too_few_instances_have_counts_as_none() -> None:
    plan = store.plan_claim("management-replay")
    seeds = range(1000, 1012)
    cells = {
        cell.key: store.StoredCell(cell, {seed: {"retained": 5.0} for seed in seeds})
        for own in plan.cells
        for cell in own.values()
    }
    found = verdicts.judge_claim(plan, cells)
    assert (found.planned, found.results, found.verdict) == (0, (), None)
    first, last = (next(iter(own.values())) for own in (plan.cells[0], plan.cells[-1]))
    cells[first.key].values.update({seed: {"retained": 9.0, "deleted": 5.0} for seed in seeds[1:]})
    assert verdicts.judge_claim(plan, cells).planned == 0, "eleven instances are no interval"
    cells[first.key].values.update({seed: {"retained": 9.0, "deleted": 5.0} for seed in seeds})
    found = verdicts.judge_claim(plan, cells)
    assert (found.planned, len(found.results), found.verdict) == (1, 1, "holds")
    del cells[last.key]
    assert verdicts.judge_claim(plan, cells).verdict is None


def test_the_middle_of_two_is_the_lower_one() -> None:
    assert judged("a", oldest=5.0, newest=9.0).middle.effect.mean == 5.0


def test_the_strongest_choice_has_the_mean_of_each_value() -> None:
    """Here `order` moves the effect by 4 and `records` by 1; beside them nothing does."""
    found = crossed(lambda order, records, matching: 4 * order + records)
    assert pages._deciding(found).startswith("*order* (93% of the variance): a 0 (4 of 4 for), b 4 (4 of 4 for)")


def test_two_choices_are_named_where_only_both_together_matter() -> None:
    found = crossed(lambda order, records, matching: 9 * order * records)
    assert pages._deciding(found).endswith(
        "*order* with *records* (100% of the variance): from a with a 0 (2 of 2 for) to b with b 9 (2 of 2 for)"
    )
    assert pages._deciding(crossed(lambda *_: 7.0)) == ""


def crossed(effect: Callable[[int, int, int], float]) -> verdicts.ClaimVerdict:
    """A claim with all combinations of three choices of two values."""
    results = []
    for places in product((0, 1), repeat=3):
        values = dict(zip(("order", "records", "matching"), ("ab"[place] for place in places), strict=True))
        mean = effect(*places)
        estimate = Estimate(mean, mean, mean, 30)
        results.append(verdicts.CombinationResult(model.Combination(values, {}), estimate, "for", (mean,) * 30))
    results.sort(key=lambda one: one.effect.mean)
    return verdicts.ClaimVerdict("a", model.ClaimPlay.model_validate(PLAY), tuple(results), 8, verdicts.HOLDS)


def row(phase: str, number: int, score: float, probes: int) -> dict[str, Any]:
    """A row of a test."""
    base = {"stage": "test", "success": score == 1, "steps": 8, "tokens_estimated": 1, "refreshes": 0}
    more = {"memory_size": 3, "item_truth_rate": None, "probe_steps": probes}
    return {**base, **more, "phase": phase, "round": number, "score": score}


def test_what_is_measured_of_a_cell() -> None:
    rows = [row("source", 5, 1.0, 0), row("drift", 1, 0.0, 8), row("drift", 4, 1.0, 2), row("drift", 9, 0.5, 0)]
    found = measure([{**rows[0], "stage": "train", "score": 0.0}, *rows])
    assert (found["before"], found["after"], found["score_after"]) == (100, pytest.approx(100 / 3), 50)
    assert (found["soon"], found["early_probes"], found["stable_probes"]) == (100, 50, pytest.approx(200 / 26))


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A claim of which two combinations of two instances are enough."""
    monkeypatch.setattr(verdicts, "LEAST", 2)
    study = STUDIES["GLOVE"]
    play = study.claims["glove-collapse"].model_copy(
        update={"most": 2, "fewer": "a test", "setting": {"rounds": 2, "schedule": "frozen_lake/explicit"}}
    )
    choices = {name: one for name, one in study.choices.items() if name != "explicit"}
    choices["explicit"] = study.choices["order"]
    changed = study.model_copy(update={"claims": {"glove-collapse": play}, "choices": choices})
    monkeypatch.setattr(store, "read_studies", lambda: {"GLOVE": changed})
    store.plan_claim.cache_clear()
    yield "glove-collapse"
    store.plan_claim.cache_clear()


def test_what_is_played_is_stored_and_not_played_again(
    short: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = store.play_claims([short], n=2, folder=tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert played == 2 * len({cell.key for own in store.plan_claim(short).cells for cell in own.values()})
    assert store.play_claims([short], n=2, folder=tmp_path) == 0
    found = verdicts.judge_claim(store.plan_claim(short), store.read_cells(tmp_path))
    assert found.verdict is not None
    assert found.n == 2
    for path in tmp_path.iterdir():
        path.unlink()
    original, seen = store._play, []

    def interrupted(task: store.CellInstance) -> Any:
        seen.append(task)
        if len(seen) == 4:
            raise KeyboardInterrupt
        return original(task)

    monkeypatch.setattr(store, "_play", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.play_claims([short], n=2, folder=tmp_path)
    assert store.play_claims([short], n=2, folder=tmp_path) == played - 2, "a finished combination is kept"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_an_instance_without_any_value_is_not_played_again(
    short: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = store._play
    monkeypatch.setattr(store, "_play", lambda task: {} if task.seed % 2 else original(task))
    assert store.play_claims([short], n=4, folder=tmp_path) > 0
    assert store.play_claims([short], n=4, folder=tmp_path) == 0
    assert [missing for _, missing, _ in store.count_missing([short], 4, tmp_path)] == [0]
    assert verdicts.judge_claim(store.plan_claim(short), store.read_cells(tmp_path)).n == 2


def test_a_stored_cell_is_what_is_played_now() -> None:
    """The first instance of a cell of every file that plays in seconds."""
    known = store.read_cells()
    for claim in ("glove-collapse", "glove-hidden"):
        plan = store.plan_claim(claim)
        play = plan.study.claims[claim]
        combination, cells = plan.combinations[0], plan.cells[0]
        for name, cell in cells.items():
            stored = known[cell.key].values[play.first]
            assert play_cell(play.kind, play.agents[name], combination.setting, play.first) == stored


def test_a_file_of_cells_that_is_broken_is_named(tmp_path: Path) -> None:
    (tmp_path / "shop.jsonl").write_text(json.dumps({"kind": "experiment"}) + "\n", "utf-8")
    with pytest.raises(EvidenceError, match=r"shop\.jsonl:1: not a cell"):
        store.read_cells(tmp_path)


def test_instances_may_have_gaps_and_come_from_two_commands(tmp_path: Path) -> None:
    cell = ChoiceCell("traffic", "traffic", {"a": 1})
    store._write_cell(tmp_path, store.StoredCell(cell, {1000: {"x": 0.5}, 1003: {"x": 1.0, "y": 2.0}}))
    store._write_cell(tmp_path, store.StoredCell(cell, {1002: {"x": 0.0}}))
    assert store.read_cells(tmp_path)[cell.key].values == {
        1000: {"x": 0.5},
        1002: {"x": 0.0},
        1003: {"x": 1.0, "y": 2.0},
    }


def test_cells_are_keyed_by_their_content() -> None:
    one, other = (ChoiceCell("traffic", "traffic", content) for content in ({"a": 1, "b": 2}, {"b": 2, "a": 1}))
    assert one.key == other.key != ChoiceCell("traffic", "traffic", {"a": 1}).key


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (["glove-collapse", "--count"], 0, "glove-collapse: "),
        (["glove-colapse"], 2, "glove-collapse"),
    ],
)
def test_the_command(words: list[str], status: int, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["choices", *words]) == status
    said = capsys.readouterr()
    assert text in said.out + said.err


def test_an_agent_can_have_a_setting_of_its_own() -> None:
    setting = {"schedule": "frozen_lake/explicit", "rounds": 2, "train": {"episodes": 2}}
    plain, longer = (make_cell("experiment", {"memory": "vanilla", **own}, setting) for own in ({}, TRAINED))
    assert plain.content["training"] | {"epochs": 4} == longer.content["training"]
    assert plain.key == make_cell("experiment", {"memory": "vanilla", "setting": {}}, setting).key


def test_cells_that_need_an_extra_are_left_out_without_it(
    short: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr("research.choices.cells.EXTRAS", {"frozen_lake": "no_such_package"})
    assert store.play_claims([short], n=2, folder=tmp_path, tell=said.append) == 0
    assert re.fullmatch(r"\d+ instances are left out: they need the extra `frozen_lake`", said[0])
    assert not list(tmp_path.iterdir())


def test_how_often_a_teams_banks_are_retrieved_from() -> None:
    setting = {"schedule": "webshop/null", "episodes": 2, "learning": "frozen", "train": {"episodes": 1}}
    found = play_cell("hits", {"memory": "consensus", "team": {"edv": {"members": "planners"}}}, setting, 1002)
    assert set(found) == {"shared", "private"}
    assert found["private"] == 0, "planners that do not err agree"
    assert found["shared"] in (0, 50, 100)
