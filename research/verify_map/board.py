"""The board as an interactive page: one HTML file without requests.

* `write_board_page` - reads lines and writes the page
* `to_board_page` - the page

The chart is Vega-Lite's (`board.json`); its libraries are inlined by vl-convert. The page's Content-Security-Policy
allows its own style and script by their digests and no others.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from drift_agents.analysis.evidence import AXES, EvidenceTable, Key, environment_of, read_evidence
from drift_agents.analysis.html.report import bundle_chart, read_part
from drift_agents.analysis.inspect.page import hash_source, script_json
from drift_agents.analysis.leaderboard import LEGEND, name_of
from drift_agents.analysis.names import VERIFIER_NAMES
from drift_agents.analysis.plots import FAMILY_COLOURS, OTHER, REFERENCES, family_of
from drift_agents.analysis.price import CHARGES, MEASURES, describe_cells, price_cells
from drift_agents.analysis.ranking import BOARD
from drift_agents.experiment.folder import write_text
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from research.verify_map.rules import RATES, RuleBook, parse_point

NOTES = (
    LEGEND[0],
    "Area: the mean success over the budgets from x1 to x3. Chain accuracy: the share of instances in which an agent "
    "recovered in every phase after the first drift. Probes: their share of all interactions.",
    "Supervision: what an agent is given beside its own episodes; nothing where nothing "
    "stands beside its bar, the score of its own episodes, a judge, or the truth about the drift (privileged).",
    "Bars are means over the chosen points, over the instances that all agents played; ranks with intervals are in the "
    "table of the leaderboard. Controls, where nothing drifts and no response is false, count only where their drift "
    "rate is chosen. References are privileged.",
)
"""How to read the page."""

ALL, NO_POINT = "all", "-"

_ORDERS = [("figure", "the measure"), ("probes", "probes"), ("agent", "name")]


def write_board_page(sources: Sequence[Path], out: Path) -> Path:
    """Read lines and write their interactive board; equal lines give equal bytes.

    Args:
        sources: folders of finished runs, Parquet files, and folders of Parquet files.
        out: the page.

    Raises:
        EvidenceError: if the lines cannot be read together.
        ExperimentError: if the page cannot be written.
        MissingDependencyError: without vl-convert.
    """
    write_text(out, to_board_page(read_evidence(sources)), make_folder=True)
    return out


def to_board_page(evidence: EvidenceTable, book: RuleBook | None = None, back: str | None = None) -> str:
    """The interactive board as one HTML file.

    Args:
        evidence: the lines.
        book: names and families of rules; without it agents have the names of their parts, and those with the same
            verifier are a family.
        back: the address of the page that links to this one.

    Raises:
        EvidenceError: if no agents can be compared.
        MissingDependencyError: without vl-convert.
    """
    rows = summarise_points(evidence, book)
    families = dict(
        sorted({row["family"]: row.pop("key") for row in rows}.items(), key=lambda one: _order(one[1], book))
    )
    spec = json.loads(_read_own("board.json"))
    colours = [FAMILY_COLOURS.get(family, FAMILY_COLOURS[OTHER]) for family in families.values()]
    spec["layer"][0]["encoding"]["color"]["scale"] = {"domain": list(families), "range": colours}
    choices = {
        "environment": [ALL, *sorted({row["environment"] for row in rows})],
        "rate": [ALL, *(rate for rate in (*RATES, NO_POINT) if any(row["rate"] == rate for row in rows))],
        "share": [ALL, *sorted({row["share"] for row in rows if row["share"] is not None})],
        "charge": CHARGES,
    }
    named = {name: [(str(value), str(value)) for value in values] for name, values in choices.items()}
    named["measure"] = [(_field(measure), measure) for measure in (MEASURES[-1], *MEASURES[:-1])]
    named["order"] = _ORDERS
    template = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template.filters["source"] = lambda content: Markup(hash_source(content))
    return template.from_string(_read_own("board.html")).render(
        title=f"Board of rules for keeping memory ({BOARD})",
        about=f"{len({row['agent'] for row in rows})} agents on {len(evidence.schedules)} schedules, played with "
        f"drift-envs {evidence.version}. Hover or tap for all measures.",
        back=back,
        legend=NOTES,
        style=Markup(read_part("report.css") + read_part("chart.css")),
        script=Markup(bundle_chart(_read_own("board.js"))),
        data=Markup(script_json(rows)),
        choices=Markup(script_json(named)),
        spec=Markup(script_json(spec)),
    )


def _read_own(name: str) -> str:
    """A file of this folder."""
    return (Path(__file__).parent / name).read_text("utf-8")


def summarise_points(evidence: EvidenceTable, book: RuleBook | None = None) -> list[dict[str, Any]]:
    """The means over instances of every agent, schedule and charge, as the chart reads them.

    The instances are those of the table, so that their means over points are the table's figures.

    Args:
        evidence: the lines.
        book: names and families of rules.
    """
    evidence = evidence.select(_is_compared(evidence))
    prices, described = price_cells(evidence), describe_cells(evidence)
    group = [evidence.cells["schedule"], evidence.keys]
    further = described.groupby(group, sort=True).mean()
    rows = []
    for charge in CHARGES:
        means = pd.concat([prices[charge].groupby(group, sort=True).mean(), further], axis=1)
        for (schedule, key), values in zip(means.index, means.to_dict("records"), strict=True):
            point = parse_point(schedule)
            row: dict[str, Any] = {
                "agent": _name(key, book),
                "family": _family(key, evidence, book),
                "key": _family_key(key, evidence, book),
                "control": evidence.schedules[schedule]["control"],
                "supervision": evidence.players[key]["supervision"],
                "environment": environment_of(schedule),
                "rate": NO_POINT if point is None else point.rate,
                "share": None if point is None else point.false,
                "charge": charge,
            }
            rows.append(row | {_field(name): _plain(value) for name, value in values.items()})
    return rows


def _is_compared(evidence: EvidenceTable) -> np.ndarray:
    """Which cells count: of schedules that are no controls those of instances that all agents played."""
    cells = evidence.cells
    control = cells["schedule"].map(lambda name: evidence.schedules[name]["control"]).to_numpy(bool)
    played = cells.groupby(["schedule", "seed"])["seed"].transform("size").to_numpy()
    counts: np.ndarray = control | (played == len(set(evidence.keys[~control])))
    return counts


def _name(key: Key, book: RuleBook | None) -> str:
    rule = None if book is None else book.by_key().get(key)
    return name_of(key) if rule is None else rule.name


def _family(key: Key, evidence: EvidenceTable, book: RuleBook | None) -> str:
    if evidence.players[key]["reference"] is not None:
        return REFERENCES
    if book is not None:
        rule = book.by_key().get(key)
        return "other" if rule is None else book.families[rule.family]
    verifier = key[AXES.index("verifier")].partition("(")[0]
    return "no verifier" if verifier == "none" else VERIFIER_NAMES.get(verifier, verifier)


def _family_key(key: Key, evidence: EvidenceTable, book: RuleBook | None) -> str:
    """The family's name in the table of colours."""
    if evidence.players[key]["reference"] is not None:
        return REFERENCES
    if book is not None:
        rule = book.by_key().get(key)
        return OTHER if rule is None else rule.family
    return family_of(key[AXES.index("verifier")])


def _order(family: str, book: RuleBook | None) -> tuple[bool, int, str]:
    names = [] if book is None else list(book.families)
    return family == REFERENCES, names.index(family) if family in names else len(names), family


def _field(measure: str) -> str:
    """A measure's name as a field of the chart, in which a dot would mean a part."""
    return measure.replace(".", "_")


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else round(value, 6)
