"""The board's map of drifts: dots stand where severity and visibility put them, and show what an agent keeps there."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from drift_agents.analysis.drift_map import DriftPlace, keep_by_schedule, place_schedules
from drift_agents.analysis.ranking import measure_instances
from drift_agents.submission.board import MEASURED, TrackBoard, gather_board
from drift_agents.submission.board_map import BOTTOM, LEFT, RADIUS, RIGHT, TOP, make_figures, place_dots
from drift_agents.submission.board_pages import to_html_page, to_markdown_page

from drift_envs.oracle import measure_drifts
from drift_envs.schedule import load_schedule

RESULTS = Path(__file__).resolve().parents[3] / "results" / "board"


@pytest.fixture(scope="module")
def board() -> TrackBoard:
    return gather_board(RESULTS)[1]


def test_places_are_means_over_instances_of_the_measured_drifts() -> None:
    name = "frozen_lake/explicit:family"
    drifts = [drift for seed in MEASURED for drift in measure_drifts(load_schedule(name), seed)]
    place = place_schedules({name: {}}, MEASURED)[name]
    assert place.severity == pytest.approx(100 * math.fsum(one.severity for one in drifts) / 6)
    assert place.visibility == pytest.approx(100 * math.fsum(one.visibility for one in drifts) / 6)


def test_what_changes_nothing_has_no_severity_and_the_unknown_no_place() -> None:
    found = place_schedules({"frozen_lake/null": {}, "frozen_lake/gone": {}}, [0])
    assert found == {"frozen_lake/null": DriftPlace(0, 0)}


def test_every_entry_of_the_track_is_drawn_with_what_it_keeps(board: TrackBoard) -> None:
    figures = [figure for _, own in make_figures(board) for figure in own]
    agents = [row for row in board.views[0].rows if not row.standing.reference]
    assert {figure.name for figure in figures} == {row.name for row in agents}
    rows = [row for result in board.results for row in result.rows()]
    kept = measure_instances([row for row in rows if row["memory"] == "vanilla" and row["verifier"] == "glove"])["kept"]
    (vanilla,) = [figure for figure in figures if figure.name == "Vanilla + GLOVE"]
    assert len(vanilla.dots) == len(board.track.schedules) == 8
    for dot in vanilla.dots:
        name = dot.title.partition(":")[0]
        mean = min(100.0, 100 * kept.xs(name, level="schedule").mean())
        assert dot.kept == round(mean)
        assert dot.title.endswith(f"kept {mean:.0f} %")
    assert keep_by_schedule(rows)[agents[0].standing.key] == pytest.approx(board.kept[agents[0].standing.key])


def test_the_maps_of_a_memory_stand_in_one_order(board: TrackBoard) -> None:
    found = dict(make_figures(board))
    endings = ["", " + announce_only", " + overwrite", " + GLOVE"]
    assert [figure.name for figure in found["Vanilla"]] == [f"Vanilla{ending}" for ending in endings]


def test_dots_stand_where_they_belong_and_cover_none(board: TrackBoard) -> None:
    about = {"env": "DriftFrozenLake-v0", "visibility": "explicit"}
    places = {"a": DriftPlace(100, 100), "b": DriftPlace(100, 100), "c": DriftPlace(0, 0), "d": DriftPlace(97, 99)}
    own = replace(board, places=places, abouts=dict.fromkeys(places, about))
    dots = {dot.title[0]: dot for dot in place_dots(own, {"a": 100.0, "b": 19.9, "c": 20.0, "d": 0.0, "e": 50.0})}
    assert (dots["c"].x, dots["c"].y) == (LEFT, BOTTOM)
    assert {dot.own for name, dot in dots.items() if name in "ab"} == {TOP}
    assert dots["a"].x == dots["b"].x == RIGHT
    assert [dots[name].shade for name in "abcd"] == [4, 0, 1, 0]
    centres = [(dot.x, dot.y) for dot in dots.values()]
    apart = [math.dist(one, other) for one in centres for other in centres if one is not other]
    assert min(apart) >= 2 * RADIUS - 1.1
    assert len(dots) == 4, "a schedule without a place has no dot"


def test_both_pages_show_the_map(board: TrackBoard) -> None:
    page = to_html_page([board])
    assert page.count("<svg viewBox") == 23
    assert "house/implicit:family: severity 1 %, visibility 100 %, kept 100 %" in page
    text = to_markdown_page([board])
    assert re.search(r"\| frozen_lake/slippery:family +\| +explicit \| +61 \| +99 \|", text)
