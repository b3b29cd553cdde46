"""The numbers of the documents, computed from stored lines.

* `write_tables` - fills the tables of the pages, and draws their pictures
* `render_pages` - the pages with the tables that the lines give
* `write_map` - the same tables of other lines, as one page
* `make_tables` - all tables, by name

A page has a line `<!-- table NAME -->` before a table and a line `<!-- end -->` after it. What stands between them is
replaced.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
from drift_agents.analysis.evidence import SUFFIX, EvidenceTable, read_evidence
from drift_agents.analysis.leaderboard import describe_standings, row_names, tabulate_standings
from drift_agents.analysis.price import AREA, CHARGES, MEASURES, price_cells
from drift_agents.analysis.ranking import Standings, rank_agents
from drift_agents.analysis.resampling import Resamples
from drift_agents.analysis.table import Table, format_difference, format_estimate, format_plain, to_markdown
from drift_agents.errors import EvidenceError
from drift_agents.experiment.folder import write_text

from research.pictures import PlotFile
from research.verify_map.claims import decide_claims, read_claims, tabulate_claims
from research.verify_map.map import (
    MapPoint,
    agent_values,
    common_instances,
    make_map,
    points_of,
    rule_curves,
    rule_of,
    select_points,
    tabulate_map,
)
from research.verify_map.plots import draw_map, draw_rule_curves
from research.verify_map.rules import RuleBook, read_rules
from research.verify_map.tuning import tabulate_options

ROOT = Path(__file__).resolve().parents[2]
STUDY = Path(__file__).parent
EVIDENCE = "research/results/verify_map"
PICTURES, MAP, CURVES = "docs/pictures", "verify_map", "verify_map_curves"
BOARD = "docs/research/leaderboard.md"
PAGES = ("README.md", BOARD, "docs/research/when_to_verify.md", "docs/research/map_method.md")
NETWORK = "research/results/verify_map_network"
"""The lines of a trained network in the planner's place, without references."""
OF_NETWORK = ("newest 5", "newest one", "overwrite", "forget(2)", "GLOVE(1)")
"""The rules that it was played with; the last one probes."""
MEMORIES = "belief"
"""The family of `rules.yaml` with the memories of papers."""
OF_OTHERS = ("tools-board", "tau2-evidence", "tau2-board", "tau2-schedules", "coders-row")
"""Tables on these pages that other modules fill."""

SECTIONS = {
    "map": "Who wins",
    "winners": "Who wins where failures are dear",
    "curves": "Success over the budget",
    "ranks": "Ranks at each price",
    "board": "Board",
}
"""The tables of `write_map`, with their headings."""

_ABOUT_MAP = "Which family of rules wins at each drift rate and share of false responses, and by how much"
_ABOUT_FRONT = (
    "Success around two drifts: the memory alone falls, with its oldest records recalled to nearly nothing; with "
    "GLOVE it is back in a few episodes"
)
_ABOUT_CURVES = "Success over the budget of interactions"
_WIDE_AND_NARROW = (
    '<picture><source media="(max-width: 700px)" srcset="../pictures/{name}-narrow.svg">'
    '<img src="../pictures/{name}.svg" alt="{about}"></picture>'
)

_BLOCK = re.compile(r"(<!-- table (?P<name>[a-z0-9-]+) -->\n).*?(?=<!-- end -->)", re.DOTALL)


def write_tables(root: Path = ROOT) -> list[Path]:
    """Fill the tables of the pages and draw their pictures, from the lines in `EVIDENCE`.

    Returns:
        The pages.

    Raises:
        EvidenceError: if there are no lines, or they lack what a table needs.
        ExperimentError: if a file cannot be written.
    """
    if not _has_evidence(root):
        raise EvidenceError(f"{root / EVIDENCE}: has no lines; `python -m research evidence` stores those of runs")
    pages = render_pages(root)
    for path, text in pages.items():
        write_text(path, text)
    evidence, book = read_evidence([root / EVIDENCE]), read_rules(STUDY / "rules.yaml")
    _draw(evidence, book, [*make_map(evidence, book), *_network_points(root, book)], root / PICTURES, MAP)
    return list(pages)


def render_pages(root: Path = ROOT) -> dict[Path, str]:
    """The pages with the tables that the lines give; without lines the tables are empty.

    Raises:
        EvidenceError: if a page names an unknown table, or the lines lack what a table needs.
    """
    tables: Mapping[str, str] | None = None
    if _has_evidence(root):
        evidence, book = read_evidence([root / EVIDENCE]), read_rules(STUDY / "rules.yaml")
        tables = make_tables(evidence, book, make_map(evidence, book), STUDY / "claims.yaml", STUDY / "later.yaml")
        tables = {**tables, "options": to_markdown(tabulate_options(book))}
        tables = {**tables, "network": to_markdown(_tabulate_network(root, book))}
    return {root / page: fill_page((root / page).read_text("utf-8"), tables, page, OF_OTHERS) for page in PAGES}


def fill_page(text: str, tables: Mapping[str, str] | None, where: str, kept: Collection[str] = ()) -> str:
    """A page with its tables.

    Args:
        text: the page.
        tables: by name; `None` leaves all empty.
        where: the page's name, for messages.
        kept: names of tables that stay as they are.

    Raises:
        EvidenceError: if the page names an unknown table.
    """

    def replace(match: re.Match[str]) -> str:
        name = match["name"]
        if name in kept:
            return match[0]
        if tables is None:
            return match[1]
        if name not in tables:
            raise EvidenceError(f"{where}: no table is called {name!r}. Known: {', '.join(tables)}")
        return f"{match[1]}{tables[name]}\n"

    return _BLOCK.sub(replace, text)


def named_tables(text: str) -> set[str]:
    """The names of the tables of a page."""
    return {match["name"] for match in _BLOCK.finditer(text)}


def write_map(sources: Sequence[Path], out: Path) -> Path:
    """Write the map of some lines, with its pictures.

    Args:
        sources: folders of finished runs, Parquet files, and folders of Parquet files.
        out: the folder; it is made.

    Returns:
        The page, `map.md` in the folder.

    Raises:
        EvidenceError: if the lines cannot be read together, or lack what a table needs.
        ExperimentError: if a file cannot be written.
        MissingDependencyError: without matplotlib.
    """
    evidence, book = read_evidence(sources), read_rules(STUDY / "rules.yaml")
    points = make_map(evidence, book)
    tables = make_tables(evidence, book, points)
    lines = ["# The map", "", tables["evidence"], ""]
    for picture in _draw(evidence, book, points, out, "map"):
        lines += [f"![{picture.title}]({picture.svg.name})", ""]
    for name, heading in SECTIONS.items():
        lines += [f"## {heading}", "", tables[name], ""]
    write_text(out / "map.md", "\n".join(lines))
    return out / "map.md"


def make_tables(
    evidence: EvidenceTable,
    book: RuleBook,
    points: Sequence[MapPoint],
    claims: Path | None = None,
    later: Path | None = None,
) -> dict[str, str]:
    """All tables as Markdown, by name.

    Args:
        evidence: the lines.
        points: the map of the same lines.
        claims: the file of claims; without it there is no table `claims`.
        later: the file of claims that were written afterwards; likewise `later`.

    Raises:
        EvidenceError: if the lines lack what a table needs.
    """
    evidence = select_points(evidence)
    standings = rank_agents(evidence)
    names = {rule.key: rule.name for rule in book.rules}
    plain = [one for one in points if one.charge == 0]
    tables = {
        "evidence": _describe(evidence, plain),
        "front": to_markdown(_tabulate_families(standings, book, plain)),
        "map": to_markdown(tabulate_map(plain, book)),
        "winners": to_markdown(_tabulate_winners(points)),
        "curves": to_markdown(_tabulate_curves(evidence, book)),
        "ranks": to_markdown(_tabulate_ranks(evidence, book)),
        "board": f"{describe_standings(standings)}\n\n{to_markdown(tabulate_standings(standings, names))}",
    }
    tables |= {
        "map-picture": _WIDE_AND_NARROW.format(name=MAP, about=_ABOUT_MAP),
        "curves-picture": _WIDE_AND_NARROW.format(name=CURVES, about=_ABOUT_CURVES),
        "front-picture": f"![{_ABOUT_FRONT}]({PICTURES}/front.svg)",
    }
    for name, path in (("claims", claims), ("later", later)):
        if path is not None:
            tables[name] = to_markdown(tabulate_claims(decide_claims(evidence, book, read_claims(path, book))))
    return tables


def _read_network(root: Path) -> EvidenceTable:
    """The network's lines, with those of the planner and of the clairvoyant at the same points."""
    evidence = read_evidence([root / EVIDENCE, root / NETWORK])
    points = set(evidence.cells["schedule"][evidence.cells["policy"] == "learned_reader"])
    return evidence.select(evidence.cells["schedule"].isin(points).to_numpy(bool))


def _network_points(root: Path, book: RuleBook) -> list[MapPoint]:
    """The map of the network's lines, under a name of its own."""
    evidence = _read_network(root)
    own = [key[-1] == "learned_reader" or evidence.players[key]["reference"] is not None for key in evidence.keys]
    points = make_map(evidence.select(np.array(own)), book)
    return [one._replace(point=one.point._replace(environment=f"{one.point.environment}, network")) for one in points]


def _tabulate_network(root: Path, book: RuleBook) -> Table:
    """The area of each rule with the network, and the lead of probing over the best other rule with either policy."""
    evidence, rules = _read_network(root), book.by_name()
    values = agent_values(evidence, price_cells(evidence)[0, AREA])
    of_network = [rules[f"{name}, network"].key for name in OF_NETWORK]
    lead = f"{OF_NETWORK[-1]} over the best other"
    table = Table("", ("point", "n", *OF_NETWORK, f"{lead}, network", f"{lead}, planner"))
    for point in points_of(evidence):
        found = common_instances(values.loc[of_network, [point.schedule]], point.schedule)
        resamples = Resamples(found.columns)
        leads = []
        for keys in (of_network, [rules[name].key for name in OF_NETWORK]):
            areas = values.loc[keys, found.columns].to_numpy()
            best = int(areas[:-1].mean(axis=1).argmax())
            leads.append(format_difference(resamples.estimate(areas[-1] - areas[best]), 1).rstrip("*"))
        means = (format_plain(float(mean), 1) for mean in found.loc[of_network].to_numpy().mean(axis=1))
        table.add(point.schedule, str(resamples.n), *means, *leads)
    return table


def _has_evidence(root: Path) -> bool:
    return any((root / EVIDENCE).glob(f"*{SUFFIX}"))


def _describe(evidence: EvidenceTable, points: Sequence[MapPoint]) -> str:
    counts = sorted({one.n for one in points})
    instances = " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))
    return (
        f"{len(points)} points, {instances} instances each: {len(evidence.cells):,} cells, "
        f"{len(evidence.episodes):,} episodes, played with drift-envs {evidence.version}."
    )


def _tabulate_families(standings: Standings, book: RuleBook, points: Sequence[MapPoint]) -> Table:
    """The best rule of each family of rules; memories of papers, which have no rule, stand on the board."""
    rows, rules = row_names(standings, {rule.key: rule.name for rule in book.rules}), book.by_key()
    table = Table("", ("family", "its best rule", "area", "x1", "x1.5", "x3", "unlimited", "points won", "clearly"))
    seen = {MEMORIES}
    for one in standings.ranked:
        family = rules[one.key].family if one.key in rules else ""
        if one.key not in rows or family not in book.families or family in seen:
            continue
        seen.add(family)
        won = [point for point in points if point.family == family]
        table.add(
            book.families[family],
            rules[one.key].name,
            format_estimate(one.score, 1),
            *(format_plain(one.success[measure], 1) for measure in ("x1", "x1.5", "x3", "unlimited")),
            str(len(won)),
            str(sum(point.is_clear for point in won)),
        )
    return table


def _tabulate_winners(points: Sequence[MapPoint]) -> Table:
    """The winner of each point at each charge; in parentheses those whose lead is not clear."""
    table = Table("", ("point", *(f"{charge} a failure" for charge in CHARGES)))
    for point in dict.fromkeys(one.point for one in points):
        found = {one.charge: one for one in points if one.point == point}
        cells = [one.winner if one.is_clear else f"({one.winner})" for one in (found[charge] for charge in CHARGES)]
        table.add(point.schedule, *cells)
    return table


def _tabulate_curves(evidence: EvidenceTable, book: RuleBook) -> Table:
    measures = MEASURES[:-1]
    table = Table("", ("environment: rule", *measures))
    for environment, rules in rule_curves(evidence, book).items():
        for rule, found in rules.items():
            table.add(f"{environment}: {rule}", *(format_estimate(one) for one in found[: len(measures)]))
    return table


def _tabulate_ranks(evidence: EvidenceTable, book: RuleBook) -> Table:
    """The rank of every rule by each measure, over the instances that all rules played."""
    prices = price_cells(evidence)
    columns = [(0, measure) for measure in MEASURES] + [(charge, AREA) for charge in CHARGES[1:]]
    common = common_instances(agent_values(evidence, prices[0, AREA]), "ranks")
    resamples = Resamples(common.columns)
    means = {
        column: resamples.mean(agent_values(evidence, prices[column]).loc[common.index, common.columns]).round(9)
        for column in columns
    }
    heads = [measure if charge == 0 else f"{measure}, {charge} a failure" for charge, measure in columns]
    table = Table("", ("rule", *heads))
    for place in (-means[0, AREA]).argsort(kind="stable"):
        ranks = [1 + int((values > values[place]).sum()) for values in means.values()]
        table.add(rule_of(common.index[place], book).name, *map(str, ranks))
    return table


def _draw(
    evidence: EvidenceTable, book: RuleBook, points: Sequence[MapPoint], folder: Path, name: str
) -> list[PlotFile]:
    """Draw the map, and the curves of the rules that were played."""
    pictures = [draw_map([one for one in points if one.charge == 0], book, folder, name)]
    if curves := rule_curves(evidence, book):
        pictures.append(draw_rule_curves(curves, book, folder, f"{name}_curves"))
    return pictures
