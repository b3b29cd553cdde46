"""The report as one HTML file: tables, plots, the configuration, and links to the steps.

* `write_html` - the file of a run
* `to_html` - a table

The templates `report.html` and `table.html` hold the markup, `report.css` its style; the page needs no script.
"""

from __future__ import annotations

import base64
import json
from functools import lru_cache
from importlib import resources
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from drift_agents.analysis.inspect.page import gather, hash_source, write_page
from drift_agents.analysis.plots.draw import draw_all
from drift_agents.analysis.report import LEGEND, make_report, make_sentences, make_summary
from drift_agents.analysis.runs import Player, read_run
from drift_agents.analysis.table import Table
from drift_agents.experiment.folder import PAGE, REPORT_PAGE, write_text


def write_html(folder: Path) -> Path:
    """Write the report of a run as HTML, with its plots, and the inspection page to which it links.

    Args:
        folder: the run's folder.

    Returns:
        The file; it refers to nothing but the inspection page beside it.

    Raises:
        ExperimentError: if the folder holds no finished run, or a file cannot be written.
        MissingDependencyError: without matplotlib.
    """
    manifest, rows = read_run(folder)
    plots = draw_all(folder)
    sections = make_summary(manifest, rows) + make_report(manifest, rows)
    write_page(folder)
    text = (
        _templates()
        .get_template("report.html")
        .render(
            manifest=manifest,
            style=Markup((resources.files("drift_agents.analysis.html") / "report.css").read_text("utf-8")),
            sentences=make_sentences(manifest, rows),
            sections=sections,
            plots=plots,
            shown={section.subject for section in sections},
            links=_links(folder),
            legend=LEGEND,
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
    templates.filters["base64"] = lambda path: base64.b64encode(path.read_bytes()).decode("ascii")
    templates.filters["source"] = lambda content: Markup(hash_source(content))
    return templates


def _links(folder: Path) -> dict[str, list[tuple[str, str]]]:
    """For each schedule who can be looked at: the first instance of each player, where the first drift has come."""
    found: dict[str, list[tuple[str, str]]] = {}
    seen: set[tuple[str, ...]] = set()
    for number, cell in enumerate(gather(folder).index["cells"]):
        who = tuple(cell[field] for field in ("schedule", "memory", "verifier", "policy", "controller", "team"))
        if cell["chunk"] is None or who in seen or cell["policy"] == "clairvoyant":
            continue
        seen.add(who)
        after = next((at for at, phase in enumerate(cell["phase"]) if phase != cell["phase"][0]), 0)
        name = cell["memory"] if cell["verifier"] == "none" else f"{cell['memory']} + {cell['verifier']}"
        text = f"{name} ({', '.join((cell['policy'], *Player.of(cell).unusual_parts))}, seed {cell['seed']})"
        found.setdefault(cell["schedule"], []).append((text, f"{PAGE}#{number}/{cell['episode'][after]}/0"))
    return found
