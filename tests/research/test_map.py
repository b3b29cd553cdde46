"""Who wins at each point of the map, and by how much."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from drift_agents.analysis.price import AREA, MEASURES, price_cells
from drift_agents.analysis.table import to_markdown
from drift_agents.errors import EvidenceError

from research.verify_map.map import MapPoint, make_map, rule_curves, tabulate_map
from research.verify_map.plots import draw_map, draw_rule_curves
from research.verify_map.rules import Rule, RuleBook, read_rules
from tests.drift_agents.analysis.lines_by_hand import evidence, key, steady

OFTEN, RUSH, SHOP = "frozen_lake/verify-6x6:often-3", "frozen_lake/verify-6x6:rush-10", "webshop/verify:none-0"
SEEDS = range(12)
BOOK = RuleBook(
    families={"newest": "newest wins", "patience": "patience", "probing": "probing"},
    rules=(
        Rule(name="overwrite", family="newest", memory="vanilla", verifier="overwrite"),
        Rule(name="forget(2)", family="patience", memory="vanilla", verifier="forget(persistence=2)"),
        Rule(name="forget(3)", family="patience", memory="vanilla", verifier="forget(persistence=3)"),
        Rule(name="GLOVE", family="probing", memory="vanilla", verifier="glove"),
    ),
    curves=("GLOVE", "overwrite"),
    baselines=("newest", "probing"),
)


def played() -> dict[str, Any]:
    """Patience wins where probes are dear; in a rush GLOVE is within its noise of it."""

    def everywhere(**success: Any) -> dict[str, Any]:
        return {
            schedule: {seed: success[name](seed) for seed in SEEDS}
            for schedule, name in ((OFTEN, "often"), (RUSH, "rush"), (SHOP, "shop"))
        }

    def always(success: float, probes: int = 0) -> Any:
        return lambda seed: steady(success, probes=probes)

    def noisy(success: float) -> Any:
        return lambda seed: steady(success + (0.2 if seed % 2 else -0.2))

    return {
        "clairvoyant": everywhere(often=always(1), rush=always(1), shop=always(1)),
        "oracle_realign": everywhere(often=always(1), rush=always(1), shop=always(1)),
        "glove": everywhere(often=always(0.95, probes=19), rush=noisy(0.55), shop=always(0.2)),
        "forget(persistence=3)": everywhere(often=always(0.65), rush=always(0.6), shop=always(0.2)),
        "forget(persistence=2)": everywhere(often=always(0.7), rush=always(0.5), shop=always(0.2)),
        "overwrite": everywhere(often=always(0.4), rush=always(0.3), shop=always(0.2)),
        "mine": everywhere(often=always(0.1), rush=always(0.1), shop=always(0.9)),
    }


def points(charge: int = 0) -> dict[str, MapPoint]:
    return {one.point.schedule: one for one in make_map(evidence(played()), BOOK) if one.charge == charge}


def test_a_point_by_hand() -> None:
    """Patience succeeds in 14 of 20 episodes; GLOVE in 19, of which few are within the tightest budget."""
    found = points()
    assert list(found) == [OFTEN, RUSH, SHOP]
    often = found[OFTEN]
    assert (often.winner, often.family, often.area, often.n) == ("forget(2)", "patience", pytest.approx(70), 12)
    assert often.next is not None
    assert (often.next.over, often.next.points.mean) == ("forget(3)", pytest.approx(5)), "of its own family"
    glove = price_cells(evidence(played()))[0, AREA].to_numpy()[evidence(played()).keys == key("glove")][0]
    assert often.rival is not None
    assert (often.rival.over, often.rival.points.mean) == ("GLOVE", pytest.approx(70 - glove))
    assert (often.is_clear, often.first) == (True, 100)
    assert often.baselines["newest"].points.mean == pytest.approx(30)
    assert set(often.baselines) == {"newest", "probing"}


def test_a_lead_within_the_noise_is_not_clear() -> None:
    rush = points()[RUSH]
    assert (rush.winner, rush.is_clear) == ("forget(3)", False)
    assert rush.rival is not None
    assert not rush.rival.points.excludes_zero
    assert 50 < rush.first < 95


def test_a_rule_that_the_file_does_not_name_can_win() -> None:
    shop = points()[SHOP]
    assert (shop.winner, shop.family) == ("Vanilla + mine", "other")
    assert set(shop.baselines) == {"newest", "probing"}


def test_leads_of_an_environment_are_corrected_together() -> None:
    found = points()
    assert found[OFTEN].rival is not None
    assert found[OFTEN].adjusted == pytest.approx(2 * found[OFTEN].rival.p), "two points of the lake"
    assert found[SHOP].rival is not None
    assert found[SHOP].adjusted == found[SHOP].rival.p


def test_where_a_failure_is_dear_probes_are_cheap() -> None:
    assert points(charge=50)[OFTEN].winner == "GLOVE"


def test_what_cannot_be_a_map_is_refused() -> None:
    lines = played()
    lines["mine"] = {OFTEN: {99: steady(1)}}
    lines["clairvoyant"][OFTEN][99] = steady(1)
    with pytest.raises(EvidenceError, match=re.escape(f"{OFTEN}: there is no instance that every agent played; Van")):
        make_map(evidence(lines), BOOK)
    with pytest.raises(EvidenceError, match=r"no schedule is a point of the map, as .* Received frozen_lake/explicit"):
        make_map(evidence({"none": {"frozen_lake/explicit": {0: steady(1)}}}), BOOK)
    del lines["mine"], lines["clairvoyant"]
    with pytest.raises(EvidenceError, match="the reference `clairvoyant` should play every instance"):
        make_map(evidence(lines), BOOK)


def test_curves_are_means_over_the_points_of_an_environment() -> None:
    found = rule_curves(evidence(played()), BOOK)
    assert list(found) == ["frozen_lake/verify-6x6", "webshop/verify"]
    whole = found["frozen_lake/verify-6x6"]["GLOVE"][MEASURES.index("unlimited")]
    assert whole.mean == pytest.approx((95 + 55) / 2)


@pytest.mark.integration
def test_pictures_show_winners_leads_and_doubt(tmp_path: Path) -> None:
    found = list(points().values())
    picture = draw_map(found, BOOK, tmp_path / "pictures")
    text = picture.svg.read_text("utf-8")
    assert all(f">+{one.rival.points.mean:.1f}<" in text for one in found if one.rival)
    assert ">probing<" not in text, "the legend names the families that win"
    curves = draw_rule_curves(rule_curves(evidence(played()), BOOK), BOOK, tmp_path / "pictures")
    assert ">GLOVE<" in curves.narrow.read_text("utf-8")
    draw_map(found, BOOK, tmp_path / "again")
    assert (tmp_path / "again" / "map.svg").read_text("utf-8") == text
    table = to_markdown(tabulate_map(found, BOOK))
    assert re.search(rf"\| {RUSH} .* forget\(3\) .*\(not clear\)", table)


WRONG = {
    "rules: []": "rules: Tuple should have at least 1 item",
    "rules: [{name: a, family: keep, memory: vanilla, colour: red}]": ":2: rules.0.colour: Extra inputs are not",
    "rules: [{name: a, family: odd, memory: vanilla}]": "rules: 'odd' should be one of keep",
    "rules: [{name: a, family: keep, memory: vanilla}]\ncurves: [b]": "curves: 'b' should be one of a",
    "rules: [{name: a, family: keep, memory: v}, {name: b, family: keep, memory: v}]": "every agent should",
    "rules: [": ":3: ",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_file_of_rules_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(f"families: {{keep: keep everything}}\n{text}\n", "utf-8")
    with pytest.raises(EvidenceError, match=re.escape(WRONG[text])):
        read_rules(path)
