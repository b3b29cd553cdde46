"""The study of when to verify: its claims, and the numbers of its pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from drift_agents.analysis.table import to_markdown
from drift_agents.errors import EvidenceError

from research.verify_map.claims import (
    HELD,
    NOT_PLAYED,
    REFUTED,
    UNDECIDED,
    Claim,
    decide_claims,
    read_claims,
    tabulate_claims,
)
from research.verify_map.rules import RuleBook, read_rules
from tests.drift_agents.analysis.lines_by_hand import evidence, steady
from tests.research.test_map import BOOK, OFTEN, played

STUDY = Path(__file__).parents[2] / "research" / "verify_map"


def claim(a: list[str], b: list[str], rates: tuple[str, ...] = ("often",), **changed: Any) -> Claim:
    points = {"environments": ["frozen_lake/verify-6x6"], "rates": rates, "false": [3]}
    data = {"id": "one", "statement": "a is better", "points": points, "measure": "unlimited", "a": a, "b": b}
    return Claim.model_validate(data | changed)


def decide(*claims: Claim, lines: dict[str, Any] | None = None) -> list[str]:
    return [one.decision for one in decide_claims(evidence(lines or played()), BOOK, claims)]


def test_claims_are_decided_by_their_measure() -> None:
    """GLOVE is ahead without a limit and behind at x1, where most of its episodes are beyond the budget."""
    ahead = claim(["GLOVE"], ["forget(2)", "forget(3)"])
    behind = claim(["GLOVE"], ["forget(2)"], measure="x1")
    assert decide(ahead, behind, claim(["GLOVE"], ["forget(2)"], measure="x3", charge=50)) == [HELD, REFUTED, HELD]
    rush = {"environments": ["frozen_lake/verify-6x6"], "rates": ["rush"], "false": [10]}
    assert decide(claim(["forget(3)"], ["GLOVE"], points=rush)) == [UNDECIDED]


def test_points_weigh_the_same_and_the_best_of_a_list_is_chosen_at_each() -> None:
    point = {"environments": ["frozen_lake/verify-6x6"], "rates": ["often", "rush"], "false": [3]}
    lines = {
        name: {schedule.replace("rush-10", "rush-3"): own for schedule, own in schedules.items()}
        for name, schedules in played().items()
    }
    (found,) = decide_claims(evidence(lines), BOOK, [claim(["forget(2)", "forget(3)"], ["overwrite"], points=point)])
    assert found.difference.mean == pytest.approx(((70 - 40) + (60 - 30)) / 2)
    assert "| a is better | unlimited |      2 |        12 |" in to_markdown(tabulate_claims([found]))


def test_more_claims_need_smaller_p_values() -> None:
    """A difference that is significant alone is undecided among claims that are no better."""
    lines = {
        "clairvoyant": {OFTEN: {seed: steady(1) for seed in range(12)}},
        "overwrite": {OFTEN: {seed: steady(0.5) for seed in range(12)}},
        "glove": {OFTEN: {seed: steady(0.5 + (0.2 if seed % 3 else -0.1)) for seed in range(12)}},
        "forget(persistence=2)": {OFTEN: {seed: steady(0.5) for seed in range(12)}},
        "forget(persistence=3)": {OFTEN: {seed: steady(0.5) for seed in range(12)}},
    }
    weak = claim(["GLOVE"], ["overwrite"])
    null = [claim(["forget(2)"], ["overwrite"]), claim(["forget(3)"], ["overwrite"])]
    assert decide(weak, lines=lines) == [HELD]
    assert decide(weak, *null, *null, weak, lines=lines) == [UNDECIDED] * 6


def test_a_claim_is_decided_when_all_of_its_points_and_rules_are_there() -> None:
    assert decide(claim(["GLOVE"], ["overwrite"], rates=("often", "rare"))) == [NOT_PLAYED]
    lines = {name: own for name, own in played().items() if name != "glove"}
    assert decide(claim(["GLOVE"], ["overwrite"]), lines=lines) == [NOT_PLAYED]


CLAIM = (
    "  - {id: %s, statement: s, points: {environments: [e], rates: [%s], false: [0]}, measure: %s, a: [%s], b: [%s]}"
)
WRONG = {
    (CLAIM % ("a", "often", "x1", "GLOVE", "glove"),): "a: no rule is called 'glove'",
    (CLAIM % ("a", "often", "x1", "GLOVE", "GLOVE"),): "a: a rule should not be in both `a` and `b`",
    (CLAIM % ("a", "weekly", "x1", "GLOVE", "overwrite"),): ":2: claims.0.points.rates.0: Input should be 'none'",
    (CLAIM % ("a", "often", "x4", "GLOVE", "overwrite"),): ":2: claims.0.measure: Input should be 'x1', 'x1.25'",
    (CLAIM % ("a", "often", "x1", "GLOVE", "overwrite"),) * 2: "every id should be there once",
    (CLAIM % ("a", "often", "x1", "GLOVE", "overwrite"),) * 7: "claims: Tuple should have at most 6 items",
}


@pytest.mark.parametrize("lines", WRONG)
def test_a_wrong_file_of_claims_is_refused(lines: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "claims.yaml"
    path.write_text("\n".join(["claims:", *lines]), "utf-8")
    with pytest.raises(EvidenceError, match=re.escape(WRONG[lines])):
        read_claims(path, BOOK)


def test_the_files_of_the_study_go_together() -> None:
    book: RuleBook = read_rules(STUDY / "rules.yaml")
    assert read_claims(STUDY / "claims.yaml", book)
