"""The inspection page: one HTML file that needs nothing else.

* `write_page` - the page of a run, as a file
* `page_parts` - the page piece by piece
* `LARGE` - from how many bytes of steps `--serve` is the better way

The page has no reference to anything outside of it, and its own policy (a `Content-Security-Policy`)
forbids the browser to fetch anything. Steps stay as they were written, compressed; the browser
unpacks those of a cell when somebody looks at it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from drift_agents.analysis.inspect.gather import InspectData, gather
from drift_agents.errors import ExperimentError
from drift_agents.experiment.folder import PAGE

LARGE = 200 * 2**20
"""Bytes of steps from which a browser is slow to open the file."""

SCRIPTS = ("data.js", "timeline.js", "frames.js", "steps.js", "main.js")
"""In the order in which they are read: each one uses those before it."""


def write_page(folder: Path, out: Path | None = None) -> Path:
    """Write the page of a run.

    Args:
        folder: the run's folder.
        out: the file; `inspect.html` in the run's folder if not given.

    Returns:
        The file.

    Raises:
        ExperimentError: if the folder holds no finished run, or the file cannot be written.
    """
    contents = gather(folder)
    path = folder / PAGE if out is None else out
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(page_parts(contents))
    except OSError as error:
        raise ExperimentError(f"{path}: cannot be written: {error.strerror}") from error
    return path


def page_parts(contents: InspectData, *, served: bool = False) -> Iterator[str]:
    """The page piece by piece.

    Args:
        contents: what it shows.
        served: whether the steps are fetched from the server of the page instead of standing in it.
    """
    head, end = _static("page.html").split("<!-- data -->")
    index = {**contents.index, "served": served}
    head = head.replace("/* style */", _static("page.css"))
    head = head.replace("CONNECT", "'self'" if served else "'none'")
    yield head.replace("NAME", _escape(str(contents.index["name"])))
    yield f'<script type="application/json" id="index">{script_json(index)}</script>\n'
    for number, path in enumerate(() if served else contents.chunks):
        yield f'<script type="text/plain" id="chunk-{number}">'
        yield base64.b64encode(path.read_bytes()).decode("ascii")
        yield "</script>\n"
    yield "<script>\n'use strict';\n"
    for name in SCRIPTS:
        yield _static(name)
    yield "</script>\n"
    yield end


def script_json(data: Any) -> str:
    r"""JSON that can stand inside a `script` element.

    Args:
        data: plain data.

    Example:
        >>> script_json("</script>")
        '"\\u003c/script>"'
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _static(name: str) -> str:
    return (resources.files("drift_agents.analysis.inspect") / "static" / name).read_text("utf-8")
