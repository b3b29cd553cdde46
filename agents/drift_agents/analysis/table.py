"""Tables that can be shown in a terminal and written as Markdown.

* `Table` - a title, columns, rows and notes
* `to_markdown`, `to_rich` - the two forms
* `show`, `format_difference`, `format_count` - an estimate in a few characters
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from rich import box
from rich.table import Table as RichTable
from rich.text import Text

from drift_envs.metrics import Estimate

MISSING = "-"


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

    def used(self) -> Table:
        """The same without the columns in which no row has anything."""
        keep = [
            index
            for index in range(len(self.columns))
            if index == 0 or any(cells[index] not in ("", MISSING) for cells, _ in self.rows)
        ]
        rows = [(tuple(cells[index] for index in keep), reference) for cells, reference in self.rows]
        return Table(self.title, tuple(self.columns[index] for index in keep), rows)


def to_markdown(table: Table) -> str:
    """The table as Markdown, its columns aligned so that the source reads well too."""
    heads = [head.replace("\n", " ") for head in table.columns]
    body = [[_escape(cell) for cell in cells] for cells, _ in table.rows]
    widths = [max(3, *(len(row[index]) for row in [heads, *body])) for index in range(len(heads))]

    def line(cells: list[str]) -> str:
        padded = [
            cell.ljust(width) if index == 0 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = ["-" * width if index == 0 else "-" * (width - 1) + ":" for index, width in enumerate(widths)]
    lines = [f"**{table.title}**", "", line(heads), line(rule), *map(line, body)]
    return "\n".join(lines)


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


def _escape(cell: str) -> str:
    return cell.strip().replace("|", "\\|")


def format_estimate(value: Estimate, digits: int = 0) -> str:
    """A mean with its interval.

    Example:
        >>> [format_estimate(Estimate(*x)) for x in ((62.5, 55.0, 71.4, 10), (85, 85, 85, 1), (100, 100, 100, 10))]
        ['62 [55, 71]', '85 (n = 1)', '100 (all 10)']
    """
    if value.n == 0:
        return MISSING
    if value.low == value.high:
        return f"{_number(value.mean, digits)} ({'n = 1' if value.n == 1 else f'all {value.n}'})"
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
        return f"{signs[0]} ({'n = 1' if value.n == 1 else f'all {value.n}'}){star}"
    return f"{signs[0]} [{signs[1]}, {signs[2]}]{star}"


def format_count(value: Estimate) -> str:
    """A mean count without its interval.

    Example:
        >>> format_count(Estimate(12345.6, 0, 0, 3)), format_count(Estimate(2.25, 2, 3, 4))
        ('12,346', '2.2')
    """
    if value.n == 0:
        return MISSING
    return _number(value.mean, 1 if abs(value.mean) < 100 and value.mean != round(value.mean) else 0)


def _number(value: float, digits: int, sign: str = "") -> str:
    if math.isnan(value):
        return MISSING
    rounded = round(value, digits) + 0.0  # no minus before zero
    return f"{rounded:{sign if rounded else ''},.{digits}f}"
