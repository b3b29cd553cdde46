"""The report as one HTML file: what was found, the curve, a table; folded: all tables, links to steps, configuration.

The templates `report.html` and `table.html` hold the markup, `report.css` and `chart.css` its style. The chart is
Vega-Lite's (`curve.json`, `curve.js`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from importlib import resources
from itertools import count, pairwise
from math import isnan
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from drift_agents.analysis.inspect.page import InspectData, gather, hash_source, script_json, write_page
from drift_agents.analysis.names import CLAIRVOYANT
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
from drift_agents.analysis.rows import WINDOW, Player, PlayerIndex, Runs, ScheduleRuns, parts_of
from drift_agents.analysis.table import Table, format_seeds
from drift_agents.analysis.tables import tabulate_cells
from drift_agents.errors import needs_extra
from drift_agents.experiment.folder import PAGE, REPORT_PAGE, write_text
from drift_agents.experiment.own_lines import OWN_LOOP


def write_html(folder: Path) -> Path:
    """Write the report of a run as HTML, with its curve, and the inspection page to which it links.

    Returns:
        The file; it refers to nothing but the inspection page beside it.

    Raises:
        ExperimentError: if the folder holds no finished run, or a file cannot be written.
        MissingDependencyError: without vl-convert.
    """
    contents = gather(folder)
    write_page(folder, contents=contents)
    manifest = contents.manifest
    report, parts = make_report(manifest, contents.rows), parts_of(manifest, contents.rows)
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
            links=_links(contents),
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


def _links(contents: InspectData) -> dict[tuple[str, Player, int], str]:
    """By schedule, player and seed the address of the steps after the first drift, where the run kept steps."""
    found = {}
    for number, cell in enumerate(contents.index["cells"]):
        if cell["chunk"] is not None:
            after = next((at for at, phase in enumerate(cell["phase"]) if phase != cell["phase"][0]), 0)
            found[cell["schedule"], Player.of(cell), cell["seed"]] = f"{PAGE}#{number}/{cell['episode'][after]}/0"
    return found


CONFLICTS = "conflicts with memory in an episode"
MOST_LINES = 8
"""Agents that are legible in one curve."""
BELIEVED = "changed facts that memory still believes, in percent"


def list_curves(parts: Sequence[ScheduleRuns]) -> list[dict[str, Any]]:
    """Curves for each schedule: of several memories together, and of each memory with a line for each verifier.

    They are success or score, conflicts with memory, and the share of changed facts that memory still believes.
    Clairvoyant stands in all curves of success or score. Of single memories the one with the most lines comes first.

    Returns:
        Plain data: `schedule`, `memory`, `measure`, `percent` (whether values are; else they are counts of an episode),
        `drifts` (the episode after which each begins, and its name) and `lines`.
    """
    return [curve for part in parts for curve in _curves_of(part)]


def _curves_of(part: ScheduleRuns) -> Iterator[dict[str, Any]]:
    @cache
    def read(player: Player, field: str, scale: float = 100, window: int = WINDOW) -> PlotSeries:
        return series(part.players.runs[player], field, scale=scale, window=window)

    for title, lines in _lines_by_memory(part.players).items():
        about = {"schedule": part.schedule, "memory": title, "drifts": drifts_of(part.players)}
        measure = f"{part.measure.name}, mean of up to {WINDOW} episodes"
        found = [(name, run, read(run.player, part.measure.field)) for name, run in lines]
        yield {**about, "measure": measure, "percent": True, "lines": _style(found)}
        found = [
            (name, run, read(run.player, "surprises", 1, 1))
            for name, run in lines
            if run.player.memory != "none" and run.player.policy != OWN_LOOP
        ]
        if any(any(data.middle) for _, _, data in found):
            yield {**about, "measure": CONFLICTS, "percent": False, "lines": _style(found)}
        found = [(name, run, read(run.player, "still_believed", 100, 1)) for name, run in lines]
        found = [one for one in found if not all(map(isnan, one[2].middle))]
        if found:
            yield {**about, "measure": BELIEVED, "percent": True, "lines": _style(found)}


def _style(lines: Sequence[tuple[str, Runs, PlotSeries]]) -> list[dict[str, Any]]:
    """Names, looks and rounded values of lines.

    Several memories differ in colour, and their verifiers in dash; of one memory the verifiers have the colours of
    their families. Two lines that would look alike get another dash, and then a darker shade. Lines are drawn one
    above the other; one below an equal line is wider, so that its edges are seen.
    """
    players = [run.player for _, run, _ in lines]
    several = len({player.memory for player in players if player.policy not in (CLAIRVOYANT, OWN_LOOP)}) > 1
    verifiers = list(dict.fromkeys(player.verifier for player in players))
    taken: set[tuple[str, int]] = set()
    styled: list[dict[str, Any]] = []
    for number, (name, run, data) in enumerate(lines):
        first, colour = _dash(run.player, number, verifiers if several else ()), _colour(run.player, several)
        looks = ((_darken(colour, shade), (first + at) % len(DASHES)) for shade in count() for at in range(len(DASHES)))
        colour, dash = next(look for look in looks if look not in taken)
        taken.add((colour, dash))
        values = {"mean": _round(data.middle), "low": _round(data.low), "high": _round(data.high)}
        styled.append({"name": name, "colour": colour, "dash": DASHES[dash], **values})
    return [
        {**one, "width": width} for one, width in zip(styled, _widths([one["mean"] for one in styled]), strict=True)
    ]


def _darken(colour: str, shade: int) -> str:
    """A colour as `#rrggbb`, each shade with three quarters of the light of the one before."""
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(part * 0.75**shade):02x}" for part in parts)


NARROW, WIDER, WIDEST = 2.0, 1.5, 10.0
"""Pixels of a line, what one below an equal line has more, and the most."""


def _widths(means: Sequence[Sequence[float | None]]) -> list[float]:
    """The width of each line: those below others that they equal for two episodes are wider than these."""
    near = 0.01 * max((abs(value) for mean in means for value in mean if value is not None), default=0)
    levels = [0] * len(means)
    for below in reversed(range(len(means))):
        for above in range(below + 1, len(means)):
            pairs = zip(means[below], means[above], strict=False)
            equal = [a is not None and b is not None and abs(a - b) <= near for a, b in pairs]
            if any(map(all, pairwise(equal))):
                levels[below] = max(levels[below], levels[above] + 1)
    step = min(WIDER, (WIDEST - NARROW) / max(1, *levels)) if levels else WIDER
    return [round(NARROW + step * level, 2) for level in levels]


def _dash(player: Player, number: int, verifiers: Sequence[str]) -> int:
    if verifiers and player.policy == CLAIRVOYANT:
        return len(DASHES) - 1  # no memory is as grey
    return (verifiers.index(player.verifier) if verifiers else number) % len(DASHES)


def _colour(player: Player, several: bool) -> str:
    family = REFERENCES if player.policy == CLAIRVOYANT else family_of(player.verifier)
    if player.policy == OWN_LOOP or family == OTHER or (several and family != REFERENCES):
        return colour_of(player.memory)
    return FAMILY_COLOURS[family]


def _round(values: Sequence[float]) -> list[float | None]:
    """Two digits; `None` where there is no value, which leaves a gap."""
    return [None if isnan(value) else round(value, 2) for value in values]


def _lines_by_memory(players: PlayerIndex) -> dict[str, list[tuple[str, Runs]]]:
    """Lines to choose from, of which the page opens with the first; clairvoyant stands in all.

    All agents are together if they are few, or all but the references. Else each memory with its verifiers comes
    first, so that it is seen with and without them, then all memories with each verifier. A loop of one's own stands
    in all of them.
    """
    agents = [(player, run) for player, run in players.runs.items() if player.policy != CLAIRVOYANT]
    shared = [(CLAIRVOYANT, run) for player, run in players.runs.items() if player.policy == CLAIRVOYANT]
    loops = [(players.full_name(player), run) for player, run in agents if player.policy == OWN_LOOP]
    by_memory: dict[str, list[tuple[str, Runs]]] = {}
    by_verifier: dict[str, list[tuple[str, Runs]]] = {}
    for player, run in agents:
        if player.policy == OWN_LOOP:
            continue
        name, memory = players.name(player), players.memory_name(player)
        line = name.strip(" +") if name.startswith(" ") else f"plain{name.removeprefix(memory)}"
        by_memory.setdefault(memory, []).append((line, run))
        title = f"all memories, {line.partition(' (')[0]}"
        by_verifier.setdefault(title, []).append((players.full_name(player), run))
    found: dict[str, list[tuple[str, Runs]]] = {}
    for title, some in (
        ("all agents", agents),
        ("all agents but references", [one for one in agents if not players.is_reference(one[0])]),
    ):
        if len(by_memory) != 1 and len(some) <= MOST_LINES and not found:
            found[f"{title} ({len(some)})"] = [(players.full_name(player), run) for player, run in some]
    each = [(title, [*lines, *loops]) for title, lines in sorted(by_memory.items(), key=lambda item: -len(item[1]))]
    every = [(title, [*lines, *loops]) for title, lines in by_verifier.items() if len(lines) > 1]
    every = every if len(agents) > MOST_LINES else []
    is_verified = any(len(lines) > 1 for lines in by_memory.values())
    found |= dict([*each, *every] if is_verified else [*every, *each])
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
    with needs_extra("vl-convert-python", "agents"):
        import vl_convert
    source = read_part("chart.js") + script
    return str(vl_convert.javascript_bundle(source)).replace("</script", "<\\/script")


def read_part(name: str) -> str:
    """A file of this folder."""
    return (resources.files("drift_agents.analysis.html") / name).read_text("utf-8")
