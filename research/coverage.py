"""What of the five papers is here: the tables of coverage, from `coverage.yaml`.

* `write_coverage` - fills the tables of the papers' pages
* `render_coverage` - these pages
* `read_coverage`, `Paper`, `PaperItem`, `PaperClaim` - the file
* `tabulate_rows`, `as_code`, `relative_to` - parts of tables

Every item of a paper (a section, equation, table or figure) has a status, the command that plays or tests it, and
where its result stands. What the claims come to, with the choices that papers leave open, is in `research.choices`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from drift_agents.analysis.table import MISSING
from drift_agents.experiment.folder import write_text
from pydantic import Field, model_validator

from research.verify_map.pages import OF_OTHERS, ROOT, fill_page
from research.verify_map.rules import FileModel, read_model

FILE = Path(__file__).with_name("coverage.yaml")
FAITHFUL, NOT_HERE = "faithful", "not here"

Text = Annotated[str, Field(min_length=1)]
Result = Annotated[dict[Text, Text], Field(max_length=1)]
"""A text, and the file that it links to: a path from the root of the repository, perhaps with an anchor."""


class PaperItem(FileModel):
    """An item of a paper.

    Args:
        item: what it is.
        place: section, equation, table or figure.
        status: `faithful` means as printed.
        reason: what is missing or different, and why; for every status but `faithful`.
        command: what plays it, or a test of it; for every status but `not here`.
        result: where its result stands.
    """

    item: Text
    place: Text
    status: Literal["faithful", "in part", "different on purpose", "not here"]
    reason: Text | None = None
    command: Text | None = None
    result: Result = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> PaperItem:
        if (self.reason is None) != (self.status == FAITHFUL):
            raise ValueError(f"a `reason` should stand with every status but `{FAITHFUL}`")
        if (self.command is None) != (self.status == NOT_HERE):
            raise ValueError(f"a `command` should stand with every status but `{NOT_HERE}`")
        return self


class PaperClaim(FileModel):
    """A claim of a paper, and what came out here.

    Args:
        id: of the claim, in commands and in `research/choices`.
        claim: in the paper's sense, in one clause.
        place: section, table or figure.
        holds: in the shipped setting, `yes` or `no` by the interval, or `untestable` by rules, without a language
            model or its data.
        here: the figures with their intervals; of an untestable claim the reason.
        environment: schedules, and the paper's environment where it is another.
        n: the instances, as in `30`, or with the reason for few.
        command: what plays it.
        choices: the ids of what the paper leaves open and the claim may depend on, from `research/choices`.
        no_choices: the reason why there is none.
        one_setting: the reason why they are not named yet.
    """

    id: Text
    claim: Text
    place: Text
    holds: Literal["yes", "no", "untestable"]
    here: Text
    environment: Text | None = None
    n: Text | None = None
    command: Text | None = None
    choices: tuple[Text, ...] = ()
    no_choices: Text | None = None
    one_setting: Text | None = None

    @model_validator(mode="after")
    def _check(self) -> PaperClaim:
        played = (self.environment, self.n, self.command)
        if any(value is None for value in played) if self.holds != "untestable" else any(played):
            raise ValueError(
                "`environment`, `n` and `command` should stand with every claim that is tested, and only there"
            )
        if [bool(self.choices), self.no_choices is not None, self.one_setting is not None].count(True) > 1:
            raise ValueError("one of `choices`, `no_choices` and `one_setting` should stand with a claim")
        return self


class Paper(FileModel):
    """A paper.

    Args:
        name: its method, in short.
        page: its page, a path from the root of the repository.
        items: in the order of the paper.
        claims: in the order of the paper.
    """

    name: Text
    page: Text
    items: Annotated[tuple[PaperItem, ...], Field(min_length=1)]
    claims: tuple[PaperClaim, ...] = ()


class Coverage(FileModel):
    """The papers."""

    papers: Annotated[tuple[Paper, ...], Field(min_length=1)]


def read_coverage(path: Path = FILE) -> tuple[Paper, ...]:
    """The papers of a file.

    Raises:
        EvidenceError: if it cannot be read, or with everything that is wrong in it, one finding a line.

    Example:
        >>> [paper.name for paper in read_coverage()]
        ['GLOVE', 'BeliefMem', 'Management', 'AdaMEM', 'EDV']
    """
    return read_model(Coverage, path).papers


def write_coverage(root: Path = ROOT) -> list[Path]:
    """Fill the tables of the papers' pages.

    Returns:
        The pages.

    Raises:
        EvidenceError: if a page names an unknown table.
        ExperimentError: if a file cannot be written.
    """
    pages = render_coverage(root)
    for path, text in pages.items():
        write_text(path, text)
    return list(pages)


def render_coverage(root: Path = ROOT) -> dict[Path, str]:
    """The papers' pages with their tables.

    Raises:
        EvidenceError: if a page names an unknown table.
    """
    tables = {paper.page: {"coverage": tabulate_items(paper)} for paper in read_coverage()}
    return {
        root / page: fill_page((root / page).read_text("utf-8"), own, page, OF_OTHERS) for page, own in tables.items()
    }


def tabulate_items(paper: Paper) -> str:
    """What of a paper is here, an item a row, as Markdown.

    Args:
        paper: the paper.
    """
    rows = []
    for one in paper.items:
        here = one.status if one.reason is None else f"{one.status}: {one.reason}"
        rows.append((one.item, one.place, here, as_code(one.command), _link(one.result, paper.page)))
    return tabulate_rows(("item of the paper", "place", "here", "command", "result"), rows)


def tabulate_rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Sentences in columns, which `to_markdown` would align to the right and pad to the longest one."""
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def as_code(command: str | None) -> str:
    """A command in a table."""
    return MISSING if command is None else f"`{command}`"


def _link(result: Mapping[str, str], page: str) -> str:
    return "".join(f"[{text}]({relative_to(target, page)})" for text, target in result.items()) or MISSING


def relative_to(target: str, page: str) -> str:
    """The link from a page to a file, both as paths from the root of the repository, perhaps with an anchor."""
    path, mark, anchor = target.partition("#")
    if path == page:
        return f"{mark}{anchor}"
    return PurePosixPath(os.path.relpath(path, PurePosixPath(page).parent)).as_posix() + mark + anchor
