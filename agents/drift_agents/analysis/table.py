"""Tables that can be shown in a terminal and written as Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from drift_envs.metrics import Estimate

MISSING = "-"
MARGINS = 2
"""Blanks beside a column in a terminal."""


@dataclass
class Table:
    """A table.

    Args:
        title: what it shows.
        columns: the heads; the first column is text, the others stand to the right.
        rows: the cells, and whether the row is a reference (shown dimly).
    """

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[tuple[str, ...], bool]] = field(default_factory=list)

    def add(self, *cells: str, reference: bool = False) -> None:
        """Add a row."""
        self.rows.append((cells, reference))

    def used(self, empty: Sequence[str] = ("", MISSING)) -> Table:
        """The same without the columns whose cells are all empty.

        Args:
            empty: the cells that count as empty.
        """
        keep = [
            index
            for index in range(len(self.columns))
            if index == 0 or any(cells[index] not in empty for cells, _ in self.rows)
        ]
        return _take(self, keep)


def to_markdown(table: Table) -> str:
    """The table as Markdown, its columns aligned so that the source reads well too."""
    heads = [_escape(head.replace("\n", " ")) for head in table.columns]
    body = [[_escape(cell) for cell in cells] for cells, _ in table.rows]
    widths = [max(3, *(len(row[index]) for row in [heads, *body])) for index in range(len(heads))]

    def line(cells: list[str]) -> str:
        padded = [
            cell.ljust(width) if index == 0 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = ["-" * width if index == 0 else "-" * (width - 1) + ":" for index, width in enumerate(widths)]
    title = [f"**{escape_html(table.title)}**", ""] if table.title else []
    return "\n".join([*title, line(heads), line(rule), *map(line, body)])


def to_rich(table: Table) -> RichTable:
    """The table for a terminal."""
    shown = RichTable(
        title=table.title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1),
        collapse_padding=True,
    )
    for index, head in enumerate(table.columns):
        shown.add_column(Text(head), justify="left" if index == 0 else "right", no_wrap=index > 0, overflow="fold")
    for cells, reference in table.rows:
        shown.add_row(*map(Text, cells), style="dim" if reference else None)
    return shown


def print_table(console: Console, table: Table) -> None:
    r"""Print a table; columns for which the console is too narrow follow in further parts with the same rows.

    Example:
        >>> table = Table("Wide", ("method", "score of\nthe source", "score of\nthe drift"))
        >>> table.add("Vanilla", "100 [90, 100]", "50 [40, 60]")
        >>> print_table(Console(width=28), table)  # doctest: +NORMALIZE_WHITESPACE
        Wide
        <BLANKLINE>
                      score of
         method     the source
         ──────────────────────
         Vanilla  100 [90, 100]
        <BLANKLINE>
        Wide, continued
        <BLANKLINE>
                   score of
         method   the drift
         ────────────────────
         Vanilla  50 [40, 60]
        <BLANKLINE>
    """
    for part in _parts(console.width, table):
        console.print(to_rich(part))


def _parts(width: int, table: Table) -> list[Table]:
    """The table, or its columns in parts that fit; a part has one column of figures at least."""
    parts: list[Table] = []
    chosen = [0]
    for index in range(1, len(table.columns)):
        wider = [*chosen, index]
        if len(chosen) > 1 and sum(_needed(table, one) + MARGINS for one in wider) > width:
            parts.append(_take(table, chosen))
            wider = [0, index]
        chosen = wider
    parts.append(_take(table, chosen))
    return [
        Table(f"{part.title}, continued" if number else part.title, part.columns, part.rows)
        for number, part in enumerate(parts)
    ]


def _needed(table: Table, column: int) -> int:
    """The width of a column: its longest line; of the first one, whose lines can be broken, its longest word."""
    texts = [table.columns[column], *(cells[column] for cells, _ in table.rows)]
    pieces = (text.split() if column == 0 else text.split("\n") for text in texts)
    return max((cell_len(piece) for found in pieces for piece in found), default=0)


def _take(table: Table, columns: list[int]) -> Table:
    rows = [(tuple(cells[index] for index in columns), reference) for cells, reference in table.rows]
    return Table(table.title, tuple(table.columns[index] for index in columns), rows)


def _escape(cell: str) -> str:
    return escape_html(cell.strip()).replace("|", "\\|")


def escape_html(text: str) -> str:
    """Text in which Markdown finds no HTML.

    Example:
        >>> escape_html("<script>")
        '&lt;script>'
    """
    return text.replace("<", "&lt;")


def format_estimate(value: Estimate, digits: int = 0) -> str:
    """A mean with its interval; a single instance has none.

    Example:
        >>> [format_estimate(Estimate(*x)) for x in ((62.5, 55.0, 71.4, 10), (85, 85, 85, 1), (100, 100, 100, 10))]
        ['62 [55, 71]', '85', '100 (all 10)']
    """
    if value.n == 0:
        return MISSING
    if value.low == value.high:
        return f"{_number(value.mean, digits)}{_alike(value)}"
    return f"{_number(value.mean, digits)} [{_number(value.low, digits)}, {_number(value.high, digits)}]"


def format_difference(value: Estimate, digits: int = 0) -> str:
    """A difference with its sign, and a star when its interval excludes 0.

    Example:
        >>> format_difference(Estimate(12, 4, 20, 10)), format_difference(Estimate(-3, -8, 2, 10))
        ('+12 [+4, +20]*', '-3 [-8, +2]')
    """
    if value.n == 0:
        return MISSING
    signs = [_number(number, digits, sign="+") for number in value[:3]]
    star = "*" if value.excludes_zero else ""
    if value.low == value.high:
        return f"{signs[0]}{_alike(value)}{star}"
    return f"{signs[0]} [{signs[1]}, {signs[2]}]{star}"


def _alike(value: Estimate) -> str:
    """A note that all instances have the figure; nothing for one instance, which has no interval."""
    return f" (all {value.n})" if value.n > 1 else ""


def format_count(value: Estimate) -> str:
    """A mean count without its interval.

    Example:
        >>> format_count(Estimate(12345.6, 0, 0, 3)), format_count(Estimate(2.25, 2, 3, 4))
        ('12,346', '2.2')
    """
    if value.n == 0:
        return MISSING
    return _number(value.mean, 1 if abs(value.mean) < 100 and value.mean != round(value.mean) else 0)


def format_plain(value: float, digits: int = 0) -> str:
    """A number without an interval.

    Example:
        >>> format_plain(12345.6), format_plain(float("nan"))
        ('12,346', '-')
    """
    return MISSING if math.isnan(value) else f"{value + 0.0:,.{digits}f}"


def format_seeds(seeds: Sequence[int]) -> str:
    """Seeds in ascending order, in a few characters.

    Example:
        >>> format_seeds([0, 1, 2, 3]), format_seeds([0, 2]), format_seeds([5])
        ('0 to 3', '0, 2', '5')
    """
    first, last = seeds[0], seeds[-1]
    is_range = first < last and list(seeds) == list(range(first, last + 1))
    return f"{first} to {last}" if is_range else ", ".join(map(str, seeds))


def _number(value: float, digits: int, sign: str = "") -> str:
    if math.isnan(value):
        return MISSING
    rounded = round(value, digits) + 0.0  # no minus before zero
    return f"{rounded:{sign if rounded else ''},.{digits}f}"
