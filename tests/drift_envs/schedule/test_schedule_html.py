"""What notebooks show of a schedule."""

from __future__ import annotations

from xml.etree import ElementTree

from drift_envs.schedule.loader import load_schedule


def cells(html: str) -> list[list[str]]:
    table = ElementTree.fromstring(f"<div>{html}</div>").find("table")
    assert table is not None
    return [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]


def test_when_how_and_what_are_in_words_and_maps_keep_their_rows() -> None:
    schedule = load_schedule(
        {
            "version": 1,
            "name": "a-b",
            "description": "x",
            "base": {"map": ["SF", "<G"], "label": "<script>&"},
            "drifts": [
                {
                    "name": "ramp",
                    "at": 5,
                    "kind": "incremental",
                    "over": 4,
                    "set": {"slip": 0.5},
                    "curve": {"steps": 2},
                },
                {"name": "storm", "rate": 0.25, "for": 3, "walk": {"wind": 0.5}, "scale": {"force": -1}},
            ],
        }
    )
    html = schedule._repr_html_()
    _, source, ramp, storm = cells(html)
    assert source[3] == 'map: \nSF\n<G\nlabel: "<script>&"'
    assert "<script>" not in html
    assert ramp[1:] == ["at 5", "incremental over 4, 2 steps", "set slip: 0.5"]
    assert storm[1:] == ["rate 0.25, for 3", "sudden", "scale force: -1.0\nwalk wind: 0.5"]
