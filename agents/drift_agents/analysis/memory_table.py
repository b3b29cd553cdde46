"""The table of `drift-agents check-memory`, for the terminal and as a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

from drift_agents.analysis.check_memory import CHANGED, RATES, UNCHANGED, UNSAID, Answered, MemoryCheck, check_memory
from drift_agents.embedding.base import Embedding, Vectors, make_embedding
from drift_agents.envs.facts.planner import read_about, read_claim
from drift_agents.errors import UnknownNameError
from drift_agents.experiment.folder import write_text
from drift_agents.registry.part_file import PartFile
from drift_agents.registry.tables import STORES
from drift_agents.stores.base import StoreProtocol
from drift_agents.stores.services import AskFirst, CommonWords, Everything, NewestFirst, Replace

WORST = 10
"""Questions on the page."""

ASKED_AFTER = 7
"""Days after which a wrapper asks before a text is used."""


class FactIndex:
    """An index by fact: the newest statement about each, without hearsay; the best that is possible without asking.

    Example:
        >>> index = FactIndex()
        >>> for text in ("Ana's office is bolitu.", "News of day 2: Ana's office was nofeze on that day."):
        ...     index.add(text)
        >>> index.search("What is Ana's office?", 5)
        ["Ana's office is bolitu."]
    """

    def __init__(self) -> None:
        self._texts: dict[tuple[str, str], str] = {}

    def __len__(self) -> int:
        """The number of facts."""
        return len(self._texts)

    def add(self, text: str) -> None:
        """Store a statement, if it is about a fact and not older than what is known."""
        claim = read_claim(text)
        if claim is None or (claim.about in self._texts and (claim.is_hearsay or claim.day is not None)):
            return
        self._texts[claim.about] = text

    def search(self, query: str, k: int) -> list[str]:
        """The statement about the fact of a question."""
        about = read_about(query)
        return [self._texts[about]] if about in self._texts else []


class Glued(Everything):
    """Everything that was ever said, in one text."""

    def search(self, query: str, k: int) -> list[str]:
        """One text."""
        return [" ".join(self.texts)]


class Asking:
    """Asks each time: what the check sets as `truth`."""

    truth: Mapping[str, str] = {}

    def add(self, text: str) -> None:
        """Do nothing."""

    def search(self, query: str, k: int) -> list[str]:
        """The present value."""
        return [self.truth[query]]


REFERENCES: Mapping[str, Callable[[], Any]] = {
    "newest first": CommonWords,
    "oldest first": lambda: CommonWords(newest=False),
    "everything in one text": Glued,
    "index by fact": FactIndex,
    "asking each time": Asking,
}
"""What a service is compared with: common words of question and text, all texts, and the best that is possible."""


class _AskFirst(AskFirst):
    """`AskFirst` that asks what the check sets as `truth`."""

    truth: Mapping[str, str] = {}

    def __init__(self, service: Any) -> None:
        super().__init__(service, lambda question: self.truth.get(question), age=ASKED_AFTER)


WRAPPERS: Mapping[str, Callable[[Any], Any]] = {
    "newest first": NewestFirst,
    "replace": Replace,
    f"ask after {ASKED_AFTER} days": _AskFirst,
}
"""Wrappers around a service, whose gain the table shows."""


def check_wrapped(make: Callable[[], Any], name: str, **options: Any) -> list[MemoryCheck]:
    """Check a service in each of `WRAPPERS`, and by a caller that edits, if it has `update` or `delete`.

    Args:
        make: makes an empty service.
        options: of `check_memory`.
    """
    checks = [check_memory(lambda w=w: w(make()), f"{name} + {told}", **options) for told, w in WRAPPERS.items()]  # type: ignore[misc]
    edit = next((one for one in ("update", "delete") if hasattr(make(), one)), None)
    if edit is not None:
        checks.append(check_memory(make, f"{name} + {edit}", edits=True, **options))
    return checks


class _CachedEmbedding:
    """An embedding that computes equal texts once."""

    def __init__(self, embedding: Embedding) -> None:
        self._embedding, self._known = embedding, dict[str, Vectors]()
        self.name, self.dimension = embedding.name, embedding.dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One vector for each text."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, self._embedding.embed(new), strict=True))
        return np.array([self._known[text] for text in texts]).reshape(len(texts), self.dimension)


class _StoreTexts:
    """A store as a service of two methods."""

    def __init__(self, store: StoreProtocol) -> None:
        self._store = store
        self._added = 0

    def __len__(self) -> int:
        return self._added

    def add(self, text: str, metadata: Mapping[str, Any] | None = None) -> str:
        self._added += 1
        return self._store.add(text, metadata or {})

    def search(self, query: str, k: int) -> Sequence[Any]:
        return self._store.search(query, k)

    def delete(self, entry: str) -> None:
        self._store.delete(entry)


def find_service(name: str, embedding: str = "hashed") -> Callable[[], Any]:
    """What makes a service.

    Args:
        name: of a store, as `chroma`, or a class or function of a Python file, as `mine.py:MyMemory`.

    Raises:
        UnknownNameError: if it is neither, or there is no embedding of that name.
        PartError: if the file cannot be used.
        MissingDependencyError: if the store needs a package that is not installed.
    """
    file = PartFile.read(name)
    if file is not None:
        made: Callable[[], Any] = (file if file.sha256 else file.pin()).load()
        return made
    if name not in STORES.names():
        raise UnknownNameError("store", name, STORES.names())

    def make() -> _StoreTexts:
        return _StoreTexts(STORES.make(name, embedding=_embed_once(embedding)))

    make()  # what is missing is reported before anything is checked
    return make


@lru_cache(maxsize=4)
def _embed_once(name: str) -> _CachedEmbedding:
    """One for all stores of a table, which are told the same texts."""
    return _CachedEmbedding(make_embedding(name))


_COLUMNS = {
    "present": "present value",
    "stale_first": "stale first",
    "both": "both",
    "mixed": "mixed",
    "nothing": "nothing",
}


_PLAIN: dict[str, Any] = {"title_justify": "left", "box": SIMPLE_HEAD, "padding": (0, 0, 0, 1), "pad_edge": False}
"""Tables of seven columns fit 80 characters."""


def _write_rate(rate: tuple[float, float, float]) -> str:
    mean, low, high = (round(100 * one) for one in rate)
    return f"{mean} [{low},{high}]"  # a narrow terminal breaks before the interval and not within it


def tabulate_check(check: MemoryCheck) -> Table:
    """The rows of a service by kind of change, with its times below."""
    held = "" if check.entries is None else f", {check.entries:.0f} entries"
    times = f"{check.add_ms:.2f} ms an `add`, {check.search_ms:.2f} ms a `search`{held}"
    table = Table(title=f"{check.name}, in %", caption=times, **_PLAIN, caption_justify="left")
    for column in ("change", "n", *_COLUMNS.values()):
        table.add_column(column, justify="left" if column == "change" else "right")
    for kind, row in check.rows.items():
        table.add_row(kind, str(row.n), *(_write_rate(row.rates[name]) for name in RATES))
    return table


def tabulate_references(checks: Sequence[MemoryCheck]) -> Table:
    """A row for each service: changed facts, and the unchanged ones beside them."""
    table = Table(title="Changed facts, compared, in %", **_PLAIN)
    for column in ("memory", *_COLUMNS.values(), "unchanged: present value"):
        table.add_column(column, justify="left" if column == "memory" else "right", overflow="fold")
    for check in checks:
        if CHANGED in check.rows:
            rates = [_write_rate(check.rows[CHANGED].rates[name]) for name in RATES]
            same = _write_rate(check.rows[UNCHANGED].rates["present"]) if UNCHANGED in check.rows else "-"
            table.add_row(check.name, *rates, same)
    return table


def write_timelines(checks: Sequence[MemoryCheck], path: Path) -> None:
    """Write the worst questions of each service: what was said when, and what came back.

    Changes that were not said come last: no service can know them.

    Raises:
        ExperimentError: if it cannot be written.
    """
    parts = [
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>check-memory</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "<style>body{font:15px sans-serif;max-width:50em;margin:2em auto;padding:0 1em;overflow-wrap:anywhere}",
        ".new{color:#067}.old{color:#b30}</style>",
    ]
    for check in checks:
        parts.append(f"<h1>{escape(check.name)}</h1>")
        wrong = [one for one in check.answered if one.rates[1] or not one.rates[0]]
        for one in sorted(wrong, key=lambda one: (one.kind == UNSAID, one.rates[0], one.world, one.day))[:WORST]:
            parts.append(_write_question(one))
    write_text(path, "\n".join(parts) + "\n")


def _write_question(one: Answered) -> str:
    def mark(text: str) -> str:
        marked = escape(text)
        for value in {one.value, *one.stale}:
            kind = "new" if value == one.value else "old"
            marked = marked.replace(value, f'<b class="{kind}">{value}</b>')
        return marked

    said = "".join(f"<li>day {day}: {mark(text)}</li>" for day, text in one.said)
    came = "".join(f"<li>{mark(text)}</li>" for text in one.texts)
    title = f"{escape(one.kind)}, world {one.world}, day {one.day}: {escape(one.question)}"
    return f"<h2>{title}</h2><p>True: {mark(one.value)}</p><p>Said:</p><ul>{said}</ul><p>Returned:</p><ol>{came}</ol>"
