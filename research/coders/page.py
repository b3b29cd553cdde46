"""The tables and pictures of the study, from the lines in `research/results/coders`.

* `write_coders` - fills the tables of the pages and draws the pictures
* `render_coders` - the pages with the tables that the lines give
* `make_tables` - all tables, by name
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from drift_agents.analysis.rows import estimate
from drift_agents.analysis.table import MISSING, Table, format_difference, format_estimate, format_plain, to_markdown
from drift_agents.cli.check_coder import REFERENCES
from drift_agents.errors import EvidenceError
from drift_agents.experiment.folder import write_text

from drift_envs.envs.repository.episode import CORRECTION
from drift_envs.metrics import Estimate
from research.coders.play import CONDITIONS, EPISODES, RESULTS, read_lines
from research.pictures import PlotFile, make_folder, mark_drifts, style_of, write_panels
from research.verify_map.pages import ROOT, fill_page

PAGES = ("docs/research/coders.md", "docs/check_coder.md", "docs/research/when_to_verify.md")
"""Pages with tables whose names begin with `coders-`; other modules fill the others."""
PICTURES = ROOT / "docs" / "pictures"

DRIFT = 20
PRICE = 1 / 12
"""Of a rerun, where a table does not say it."""
PRICES = {"0": 0.0, "1/12": PRICE, "1/3": 1 / 3}
FLAKY = {0: "both", 10: "flaky-10", 30: "flaky-30"}
"""The condition of a share of false refusals, in percent."""
WINDOW = 3
"""Episodes over which a curve is averaged."""

NAMES = {
    "none": "no drift",
    "explicit": "explicit",
    "implicit": "implicit",
    "both": "both",
    "flaky-10": "both, flaky .1",
    "flaky-30": "both, flaky .3",
    "lag-3": "explicit, documents lag 3",
    "lag-10": "explicit, documents lag 10",
}

Measure = Callable[[pd.DataFrame], pd.Series]
"""Episodes -> one number an episode."""


def score(price: float = PRICE) -> Measure:
    """The score in percent, for a price of reruns."""

    def measure(lines: pd.DataFrame) -> pd.Series:
        return 100 * lines["success"] * (1 - CORRECTION * lines["corrections"] - price * lines["reruns"]).clip(lower=0)

    return measure


def percent_of(field: str) -> Measure:
    """A field in percent."""
    return lambda lines: 100 * lines[field]


def by_seed(lines: pd.DataFrame, agent: str, measure: Measure) -> pd.Series:
    """The mean of each repository after the first drift, where it is a number.

    Args:
        lines: of a condition.
        agent: whose.
        measure: what.
    """
    some = lines[(lines["agent"] == agent) & (lines["episode"] >= DRIFT)]
    return measure(some).groupby(some["seed"]).mean().dropna()


def stale_by_seed(lines: pd.DataFrame, agent: str) -> pd.Series:
    """The percentage of statements that are not the present convention alone, of each repository."""
    some = lines[(lines["agent"] == agent) & (lines["episode"] >= DRIFT)].groupby("seed")
    said = some["memory_size"].sum()
    return (100 * (said - some["present_statements"].sum()) / said).dropna()


def compare(lines: pd.DataFrame, agent: str, other: str, measure: Measure) -> Estimate:
    """An agent minus another one, in pairs of repositories."""
    return estimate((by_seed(lines, agent, measure) - by_seed(lines, other, measure)).tolist())


def find_best(lines: pd.DataFrame, measure: Measure, without: str) -> str:
    """The agent with the highest mean, without one of them."""
    return max((name for name in REFERENCES if name != without), key=lambda name: by_seed(lines, name, measure).mean())


Lines = Mapping[str, pd.DataFrame]
"""By condition."""


def read_all(folder: Path = RESULTS) -> Lines:
    """The lines of each condition that is stored."""
    lines = {name: read_lines(name, folder) for name in CONDITIONS}
    return {name: found for name, found in lines.items() if len(found)}


def make_tables(lines: Lines) -> dict[str, str]:
    """All tables as Markdown, by name.

    Raises:
        EvidenceError: if a condition has no lines.
    """
    if missing := CONDITIONS.keys() - lines.keys():
        raise EvidenceError(f"{RESULTS}: has no lines of {', '.join(sorted(missing))}; `python -m research coders`")
    counts = sorted({found["seed"].nunique() for found in lines.values()})
    episodes = sum(map(len, lines.values()))
    tables = {
        "score": _tabulate(lines, score()),
        "first": _tabulate(lines, percent_of("first_try")),
        "rerun": _tabulate(lines, percent_of("one_rerun")),
        "memory": _tabulate_memory(lines),
        "row": _tabulate_row(lines),
        "answers": _tabulate_answers(lines),
        "explicit": _tabulate_condition(lines["explicit"]),
        "flaky": _tabulate_condition(lines["flaky-30"]),
    }
    repositories = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    said = f"{repositories} repositories of {EPISODES} issues under each condition, {episodes:,} episodes."
    return {f"coders-{name}": to_markdown(table) for name, table in tables.items()} | {"coders-evidence": said}


def _estimate(lines: pd.DataFrame, agent: str, measure: Measure) -> str:
    return format_estimate(estimate(by_seed(lines, agent, measure).tolist()))


def _tabulate(lines: Lines, measure: Measure) -> Table:
    table = Table("", ("condition", *REFERENCES))
    for name, title in NAMES.items():
        table.add(
            title, *(format_estimate(estimate(by_seed(lines[name], one, measure).tolist())) for one in REFERENCES)
        )
    return table


def _tabulate_memory(lines: Lines) -> Table:
    agents = [name for name in REFERENCES if name != "look"]
    table = Table("", ("condition", *(f"{name}: stale, believed" for name in agents)))
    for name, title in NAMES.items():
        table.add(title, *(", ".join(_describe_memory(lines[name], agent)) for agent in agents))
    return table


def _describe_memory(lines: pd.DataFrame, agent: str) -> list[str]:
    """The stale statements, and the former values that are believed, in percent."""
    shares = stale_by_seed(lines, agent), by_seed(lines, agent, percent_of("still_believed"))
    return [format_plain(one.mean()) if len(one) else MISSING for one in shares]


def _tabulate_row(lines: Lines) -> Table:
    table = Table("", ("price of a rerun", "false refusals, %", *REFERENCES, "`rerun` over the best other"))
    for title, price in PRICES.items():
        for share, name in FLAKY.items():
            found, measure = lines[name], score(price)
            best = find_best(found, measure, "rerun")
            cells = [_estimate(found, agent, measure) for agent in REFERENCES]
            lead = format_difference(compare(found, "rerun", best, measure), 1)
            table.add(title, str(share), *cells, f"{lead} (`{best}`)")
    return table


def _tabulate_answers(lines: Lines) -> Table:
    table = Table("", ("condition", "agent", "beside", "score", "first try", "one rerun"))
    pairs = [(name, "rerun", "verify") for name in FLAKY.values()]
    pairs += [
        (name, "cite", other) for name in ("explicit", "lag-3", "lag-10") for other in ("verify", "newest", "look")
    ]
    for name, agent, other in pairs:
        measures = (score(), percent_of("first_try"), percent_of("one_rerun"))
        found = [format_difference(compare(lines[name], agent, other, one), 1) for one in measures]
        table.add(NAMES[name], f"`{agent}`", f"`{other}`", *found)
    return table


def _tabulate_condition(lines: pd.DataFrame) -> Table:
    """The columns of `check-coder`, of one condition."""
    table = Table(
        "",
        (
            "agent",
            "first try %",
            "one rerun %",
            "solved %",
            "score %",
            "corrections",
            "reruns",
            "stale %",
            "believed %",
        ),
    )
    for agent in REFERENCES:
        measures = [percent_of("first_try"), percent_of("one_rerun"), percent_of("success"), score()]
        cells = [_estimate(lines, agent, one) for one in measures]
        for field in ("corrections", "reruns"):
            cells.append(format_plain(by_seed(lines, agent, itemgetter(field)).mean(), 2))
        cells += _describe_memory(lines, agent)
        table.add(f"`{agent}`", *cells)
    return table


def render_coders(root: Path = ROOT) -> dict[Path, str]:
    """The pages with the tables that the lines give."""
    tables = make_tables(read_all(root / RESULTS.relative_to(ROOT)))
    pages = {}
    for page in PAGES:
        text = (root / page).read_text("utf-8")
        others = re.findall(r"<!-- table ((?!coders-)[a-z0-9-]+) -->", text)
        pages[root / page] = fill_page(text, tables, page, others)
    return pages


def write_coders(root: Path = ROOT) -> list[Path]:
    """Fill the tables of the pages and draw the pictures.

    Returns:
        The pages.
    """
    pages = render_coders(root)
    for path, text in pages.items():
        write_text(path, text)
    lines = read_all(root / RESULTS.relative_to(ROOT))
    make_folder(root / PICTURES.relative_to(ROOT))
    _draw(lines, root / PICTURES.relative_to(ROOT))
    return list(pages)


def _draw(lines: Lines, folder: Path) -> list[PlotFile]:
    score_title, stale_title = "Score, %", "Statements that are not the present convention, %"
    first = [(lines["explicit"], score_title, score()), (lines["explicit"], stale_title, _stale)]
    later = [(lines[name], NAMES[name], score()) for name in ("both", "flaky-30", "lag-10")]
    titles = ("Conventions that the files show change after issue 20", "Score in percent")
    return [
        write_panels(titles[0], _panels(first), 2, folder, "check_coder", columns=2),
        write_panels(titles[1], _panels(later), 3, folder, "coders"),
    ]


def _stale(lines: pd.DataFrame) -> pd.Series:
    said = lines["memory_size"].where(lambda size: size > 0)
    return 100 * (said - lines["present_statements"]) / said


def _panels(shown: Sequence[tuple[pd.DataFrame, str, Measure]]) -> Callable[[Sequence[Any]], None]:
    def draw(axes: Sequence[Any]) -> None:
        for axis, (lines, title, measure) in zip(axes, shown, strict=True):
            for number, agent in enumerate(REFERENCES):
                some = lines[lines["agent"] == agent]
                curve = measure(some).groupby(some["episode"]).mean()
                if curve.notna().any():
                    smooth = np.convolve(curve.to_numpy(), np.ones(WINDOW) / WINDOW, "valid")
                    style = style_of(number)
                    axis.plot(
                        np.arange(WINDOW, len(curve) + 1), smooth, color=style.colour, linestyle=style.dash,
                        marker=style.mark, markevery=(number, 8), markersize=4, linewidth=1.4, label=agent,
                    )  # fmt: skip
            axis.set(title=title, xlabel="issue", ylim=(-4, 104))
            mark_drifts(axis, [(DRIFT, "drift")])

    return draw
