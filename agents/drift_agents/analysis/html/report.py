"""The report as one HTML file: what was found, the curve, a table; folded: all tables, links to steps, configuration.

* `write_html` - the file of a run
* `to_html` - a table

The templates `report.html` and `table.html` hold the markup, `report.css` and `chart.css` its style. The chart is
Vega-Lite's (`curve.json`, `curve.js`).
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from drift_agents.analysis.html.curves import list_curves
from drift_agents.analysis.html.vega import bundle_chart, read_part
from drift_agents.analysis.inspect.page import gather, hash_source, script_json, write_page
from drift_agents.analysis.report import LEGEND, make_report
from drift_agents.analysis.runs import Player, group, read_run
from drift_agents.analysis.schedule_runs import part_of
from drift_agents.analysis.table import Table, format_seeds
from drift_agents.analysis.tables import tabulate_cells
from drift_agents.experiment.folder import PAGE, REPORT_PAGE, write_text


def write_html(folder: Path) -> Path:
    """Write the report of a run as HTML, with its curve, and the inspection page to which it links.

    Args:
        folder: the run's folder.

    Returns:
        The file; it refers to nothing but the inspection page beside it.

    Raises:
        ExperimentError: if the folder holds no finished run, or a file cannot be written.
        MissingDependencyError: without vl-convert.
    """
    manifest, rows = read_run(folder)
    report = make_report(manifest, rows)
    parts = [part_of(manifest, schedule, runs) for schedule, runs in group(rows).items()]
    write_page(folder)
    text = (
        _templates()
        .get_template("report.html")
        .render(
            manifest=manifest,
            style=Markup(read_part("report.css") + read_part("chart.css")),
            script=Markup(bundle_chart(read_part("curve.js"))),
            curves=Markup(script_json(list_curves(parts))),
            spec=Markup(read_part("curve.json")),
            report=report,
            cells=tabulate_cells(report.cells),
            links=_links(folder),
            legend=LEGEND,
            seeds=format_seeds(manifest["experiment"]["seeds"]),
            inspect_page=PAGE,
            configuration=json.dumps(manifest["experiment"], indent=2, ensure_ascii=False),
        )
    )
    write_text(folder / REPORT_PAGE, text)
    return folder / REPORT_PAGE


def to_html(table: Table) -> str:
    """A table.

    Example:
        >>> table = Table("A", ("method", "score"))
        >>> table.add("<b>", "1")
        >>> to_html(table).count("&lt;b&gt;")
        1
    """
    return _templates().get_template("table.html").render(table=table)


@lru_cache(maxsize=1)
def _templates() -> Environment:
    templates = Environment(
        loader=PackageLoader("drift_agents.analysis.html", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters["source"] = lambda content: Markup(hash_source(content))
    return templates


def _links(folder: Path) -> dict[tuple[str, Player, int], str]:
    """By schedule, player and seed the address of the steps after the first drift, where the run kept steps."""
    found = {}
    for number, cell in enumerate(gather(folder).index["cells"]):
        if cell["chunk"] is not None:
            after = next((at for at, phase in enumerate(cell["phase"]) if phase != cell["phase"][0]), 0)
            found[cell["schedule"], Player.of(cell), cell["seed"]] = f"{PAGE}#{number}/{cell['episode'][after]}/0"
    return found
