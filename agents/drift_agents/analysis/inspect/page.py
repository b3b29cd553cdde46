"""The inspection page: one self-contained HTML file, or the same page from a local server.

The page refers to nothing outside itself, and its `Content-Security-Policy` forbids the browser to fetch anything.
Steps stay compressed as they were written; the browser unpacks those of a cell when it is opened. The server is for
runs whose file would be too large.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from drift_agents.analysis.names import shorten_labels
from drift_agents.analysis.plots import FAMILY_COLOURS
from drift_agents.analysis.rows import Player, read_run
from drift_agents.errors import ExperimentError
from drift_agents.experiment.folder import PAGE, TRACES, write_parts
from drift_agents.experiment.logs import TRAIN
from drift_agents.experiment.trace import SUFFIX, read_header, read_trace
from drift_envs.utils.command_line import HostRule

LARGE = 200 * 2**20
"""Bytes of steps from which a browser is slow to open the file."""

SCRIPTS = ("data.js", "timeline.js", "frames.js", "steps.js", "main.js")
"""In the order in which they are read: each one uses those before it."""


def write_page(folder: Path, out: Path | None = None, contents: InspectData | None = None) -> Path:
    """Write the page of a run.

    Args:
        out: the file; `inspect.html` in the run's folder if not given.
        contents: what `gather` returned for the folder, if it was called before.

    Returns:
        The file.

    Raises:
        ExperimentError: if the folder holds no finished run, or the file cannot be written.
    """
    contents = gather(folder) if contents is None else contents
    contents.check_steps()
    path = folder / PAGE if out is None else out
    try:
        write_parts(path, page_parts(contents))
    except ExperimentError as error:
        elsewhere = "" if out is not None else f". Elsewhere: drift-agents inspect {folder} --out FILE"
        raise ExperimentError(f"{error}{elsewhere}") from error
    return path


def page_parts(contents: InspectData, *, served: bool = False) -> Iterator[str]:
    """The page piece by piece.

    Args:
        served: whether the steps are fetched from the server of the page instead of standing in it.
    """
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(_static("page.html"))
    style, script = _static("page.css"), "".join(("'use strict';\n", *map(_static, SCRIPTS)))
    chunks = (base64.b64encode(path.read_bytes()).decode("ascii") for path in contents.chunks)
    yield from template.generate(
        name=contents.index["name"],
        style=Markup(style),
        script=Markup(script),
        style_source=Markup(hash_source(style)),
        script_source=Markup(hash_source(script)),
        connect=Markup("'self'" if served else "'none'"),
        index=Markup(script_json({**contents.index, "served": served})),
        chunks=() if served else chunks,
    )


def hash_source(content: str) -> str:
    """The source by which a `Content-Security-Policy` allows one inline element: its digest, as in CSP level 2.

    Args:
        content: everything between the element's tags.

    Example:
        >>> hash_source("alert('Hello, world.');")
        "'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='"
    """
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode('ascii')}'"


def script_json(data: Any) -> str:
    r"""JSON that can stand inside a `script` element.

    Example:
        >>> script_json("</script>")
        '"\\u003c/script>"'
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def _static(name: str) -> str:
    return (resources.files("drift_agents.analysis.inspect") / "static" / name).read_text("utf-8")


COLUMNS = (
    "episode",
    "round",
    "tick",
    "score",
    "steps",
    "surprises",
    "realignments",
    "probe_steps",
    "memory_size",
    "memory_truth_rate",
    "still_believed",
    "regret",
)
"""The fields of a line that the page shows of every episode; phases come as numbers beside them."""

_WHO = ("env", "schedule", "memory", "verifier", "policy", "controller", "team", "seed")


@dataclass(frozen=True)
class InspectData:
    """What the page shows.

    Args:
        index: plain data: the run's name and versions, its schedules, and its cells with all their
            episodes by columns, of which the first `training` came before the test. A cell's
            `chunk` is the number of its file, `None` without steps.
        chunks: the files with the steps, as `drift_agents.experiment.trace` wrote them.
        manifest: the content of the run's `run.json`.
        rows: those of the run.
    """

    index: dict[str, Any]
    chunks: tuple[Path, ...]
    manifest: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]

    def check_steps(self) -> None:
        """Check that a browser can show all steps.

        Raises:
            ExperimentError: if a file is damaged.
        """
        for path in self.chunks:
            for _ in read_trace(path):
                pass


def gather(folder: Path) -> InspectData:
    """Read a run's folder.

    Raises:
        ExperimentError: if the folder holds no finished run, or a file cannot be read.
    """
    manifest, lines = read_run(folder)
    files: dict[tuple[Any, ...], tuple[Path, str]] = {}
    for path in sorted((folder / TRACES).glob(f"*{SUFFIX}")):
        header = read_header(path)
        files[tuple(getattr(header, field) for field in _WHO)] = path, header.kept
    chunks: list[Path] = []
    cells: list[dict[str, Any]] = []
    references = {(one["schedule"], *Player.of(one)): one.get("reference") for one in manifest["players"]}
    by_cell: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in lines:
        by_cell.setdefault(tuple(row[field] for field in _WHO), []).append(row)
    for who, rows in by_cell.items():
        cell: dict[str, Any] = dict(zip(_WHO, who, strict=True))
        cell["reference"] = references.get(who[1:7])
        cell["chunk"], cell["kept"] = None, "none"
        if who in files:
            path, cell["kept"] = files[who]
            cell["chunk"] = len(chunks)
            chunks.append(path)
        cell["training"] = sum(row["stage"] == TRAIN for row in rows)
        cell |= _columns(rows)
        cells.append(cell)
    index = {
        "name": manifest["name"],
        "config_hash": manifest["config_hash"],
        "versions": manifest["versions"],
        "schedules": {
            name: {key: value for key, value in about.items() if key != "content"}
            for name, about in manifest["schedules"].items()
        },
        "cells": cells,
        "labels": shorten_labels((cell[field] for cell in cells for field in Player._fields), manifest["experiment"]),
        "probing": FAMILY_COLOURS["probing"],
    }
    return InspectData(index, tuple(chunks), manifest, lines)


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The episodes of a cell by columns: much shorter than by rows."""
    phases = list(dict.fromkeys(row["phase"] for row in rows))
    number = {phase: index for index, phase in enumerate(phases)}
    columns: dict[str, Any] = {field: [_short(row[field]) for row in rows] for field in COLUMNS}
    return {"phases": phases, "phase": [number[row["phase"]] for row in rows], **columns}


def _short(value: Any) -> Any:
    """Four digits: as many as the page shows."""
    return float(f"{value:.4g}") if isinstance(value, float) else value


HOST = "127.0.0.1"
"""Requests from this machine alone are served."""


class PageServer(ThreadingHTTPServer):
    """Serves the page at `/` and the steps of a cell at `/chunk/N`; nothing else of the machine.

    Args:
        port: 0 for any that is free.
        page: the page.
        chunks: the files with the steps.
        hosts: decides which `Host` headers are answered.
    """

    daemon_threads = True

    def __init__(self, port: int, page: bytes, chunks: tuple[Path, ...], hosts: HostRule) -> None:
        self.page, self.chunks, self.hosts = page, chunks, hosts
        super().__init__((HOST, port), _Handler)

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.server_address[1]}/"


def make_server(folder: Path, port: int = 0, allow_hosts: Iterable[str] = ()) -> PageServer:
    """A server for a run's folder; `serve_forever` runs it.

    Args:
        port: 0 for any that is free.
        allow_hosts: names under which the server is addressed, beside `localhost`, this machine's name and IP
            addresses; requests to other names are refused.

    Raises:
        ExperimentError: if the folder holds no finished run, or the port cannot be used.
    """
    contents = gather(folder)
    contents.check_steps()
    page = "".join(page_parts(contents, served=True)).encode()
    try:
        return PageServer(port, page, contents.chunks, HostRule(allow_hosts))
    except OSError as error:
        raise ExperimentError(f"port {port}: cannot be used: {error.strerror}") from error


class _Handler(BaseHTTPRequestHandler):
    server: PageServer

    def do_GET(self) -> None:
        """Answer with the page, the steps of a cell, or nothing."""
        if not self.server.hosts.allows(self.headers.get("Host")):
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST, explain="See --allow-host.")
            return
        chunk = re.fullmatch(r"/chunk/(\d{1,9})", self.path)
        if self.path == "/":
            self._answer(self.server.page, "text/html; charset=utf-8")
        elif chunk is not None and int(chunk[1]) < len(self.server.chunks):
            self._answer(self.server.chunks[int(chunk[1])].read_bytes(), "application/octet-stream")
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _answer(self, body: bytes, kind: str) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""
