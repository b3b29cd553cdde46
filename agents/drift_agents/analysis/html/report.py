"""The report as one HTML file: what was found, the curve, a table; folded: all tables, links to steps, configuration.

The templates `report.html` and `table.html` hold the markup, `report.css` and `chart.css` its style. The chart is
Vega-Lite's (`curve.json`, `curve.js`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from math import isnan
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from drift_agents.analysis.inspect.page import gather, hash_source, script_json, write_page
from drift_agents.analysis.plots import (
    FAMILY_COLOURS,
    OTHER,
    REFERENCES,
    PlotSeries,
    colour_of,
    drifts_of,
    family_of,
    series,
)
from drift_agents.analysis.report import LEGEND, make_report
from drift_agents.analysis.runs import (
    WINDOW,
    Player,
    PlayerIndex,
    Runs,
    ScheduleRuns,
    group,
    memory_name,
    part_of,
    read_run,
)
from drift_agents.analysis.table import Table, format_seeds
from drift_agents.analysis.tables import tabulate_cells
from drift_agents.errors import MissingDependencyError
from drift_agents.experiment.folder import PAGE, REPORT_PAGE, write_text
from drift_agents.experiment.own_lines import OWN_LOOP


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


CLAIRVOYANT = "clairvoyant"
CONFLICTS = "conflicts with memory in an episode"
MOST_LINES = 8
"""Agents that are legible in one curve."""
BELIEVED = "changed facts that memory still believes, in percent"


def list_curves(parts: Sequence[ScheduleRuns]) -> list[dict[str, Any]]:
    """Curves for each schedule: of several memories together, and of each memory with a line for each verifier.

    They are success or score, conflicts with memory, and the share of changed facts that memory still believes.
    Clairvoyant stands in all curves of success or score. Of single memories the one with the most lines comes first.

    Args:
        parts: the schedules that were played.

    Returns:
        Plain data: `schedule`, `memory`, `measure`, `percent` (whether values are; else they are counts of an episode),
        `drifts` (the episode after which each begins, and its name) and `lines`.
    """
    curves = []
    for part in parts:
        read = _Series()
        for title, lines in _lines_by_memory(part.players).items():
            about = {"schedule": part.schedule, "memory": title, "drifts": drifts_of(part.players)}
            measure = f"{part.measure.name}, mean of up to {WINDOW} episodes"
            found = [(name, run, read(run, part.measure.field)) for name, run in lines]
            curves.append({**about, "measure": measure, "percent": True, "lines": _style(found)})
            found = [
                (name, run, read(run, "surprises", scale=1, window=1))
                for name, run in lines
                if run.player.memory != "none" and run.player.policy != OWN_LOOP
            ]
            if any(any(data.middle) for _, _, data in found):
                curves.append({**about, "measure": CONFLICTS, "percent": False, "lines": _style(found)})
            found = [(name, run, read(run, "still_believed", window=1)) for name, run in lines]
            found = [one for one in found if not all(map(isnan, one[2].middle))]
            if found:
                curves.append({**about, "measure": BELIEVED, "percent": True, "lines": _style(found)})
    return curves


class _Series:
    """`series`, computed once for each player and field: a line stands in several curves."""

    def __init__(self) -> None:
        self._found: dict[tuple[Player, str], PlotSeries] = {}

    def __call__(self, run: Runs, field: str, **options: Any) -> PlotSeries:
        key = run.player, field
        if key not in self._found:
            self._found[key] = series(run, field, **options)
        return self._found[key]


def _style(lines: Sequence[tuple[str, Runs, PlotSeries]]) -> list[dict[str, Any]]:
    """Names, looks and rounded values of lines.

    Several memories differ in colour, and their verifiers in dash; of one memory the verifiers have the colours of
    their families.
    """
    players = [run.player for _, run, _ in lines]
    several = len({player.memory for player in players if player.policy != CLAIRVOYANT}) > 1
    verifiers = list(dict.fromkeys(player.verifier for player in players))
    return [
        {
            "name": name,
            "colour": _colour(run.player, several),
            "dash": DASHES[_dash(run.player, number, verifiers if several else ())],
            "mean": _round(data.middle),
            "low": _round(data.low),
            "high": _round(data.high),
        }
        for number, (name, run, data) in enumerate(lines)
    ]


def _dash(player: Player, number: int, verifiers: Sequence[str]) -> int:
    if verifiers and player.policy == CLAIRVOYANT:
        return len(DASHES) - 1  # no memory is as grey
    return (verifiers.index(player.verifier) if verifiers else number) % len(DASHES)


def _colour(player: Player, several: bool) -> str:
    family = REFERENCES if player.policy == CLAIRVOYANT else family_of(player.verifier)
    if several and family != REFERENCES:
        return colour_of(player.memory)
    return colour_of(player.memory) if family == OTHER else FAMILY_COLOURS[family]


def _round(values: Sequence[float]) -> list[float | None]:
    """Two digits; `None` where there is no value, which leaves a gap."""
    return [None if isnan(value) else round(value, 2) for value in values]


def _lines_by_memory(players: PlayerIndex) -> dict[str, list[tuple[str, Runs]]]:
    """Lines to choose from: of several memories together first, then of each memory; clairvoyant stands in all.

    Together are all agents if they are few; else all without a verifier, and all with each verifier. A loop of one's
    own, which has no verifier, stands beside those too.
    """
    agents = [(player, run) for player, run in players.runs.items() if player.policy != CLAIRVOYANT]
    shared = [(CLAIRVOYANT, run) for player, run in players.runs.items() if player.policy == CLAIRVOYANT]
    by_memory: dict[str, list[tuple[str, Runs]]] = {}
    together: dict[str, list[tuple[str, Runs]]] = {}
    for player, run in agents:
        name, memory = players.name(player), memory_name(player)
        line = name.strip(" +") if name.startswith(" ") else f"plain{name.removeprefix(memory)}"
        by_memory.setdefault(memory, []).append((line, run))
        together.setdefault(f"all memories, {line.partition(' (')[0]}", []).append((players.full_name(player), run))
    found = {f"all agents ({len(agents)})": [(players.full_name(player), run) for player, run in agents]}
    if len(agents) > MOST_LINES:
        loops = [(players.full_name(player), run) for player, run in agents if player.policy == OWN_LOOP]
        several = {title: lines for title, lines in together.items() if len(lines) > 1}
        found = {title: [*lines, *(one for one in loops if one not in lines)] for title, lines in several.items()}
    if len(by_memory) == 1:
        found = {}
    found |= {memory: by_memory[memory] for memory in sorted(by_memory, key=lambda memory: -len(by_memory[memory]))}
    return {title: [*lines, *shared] for title, lines in found.items()} or {"": shared}


DASHES = ((1, 0), (7, 3), (2, 2), (7, 2, 2, 2), (4, 4), (12, 3))
"""Lengths of dashes and gaps in pixels, so that equal lines can be told apart."""


def bundle_chart(script: str) -> str:
    """A page's script with the libraries that it uses; it can stand inside a `script` element.

    Args:
        script: the page's own script; it follows `chart.js`.

    Raises:
        MissingDependencyError: without vl-convert.
    """
    try:
        import vl_convert
    except ImportError as error:
        message = '`vl-convert-python` is not installed, run `pip install "drift-envs[agents]"`'
        raise MissingDependencyError(message) from error
    source = read_part("chart.js") + script
    return str(vl_convert.javascript_bundle(source)).replace("</script", "<\\/script")


def read_part(name: str) -> str:
    """A file of this folder.

    Args:
        name: its name.
    """
    return (resources.files("drift_agents.analysis.html") / name).read_text("utf-8")
