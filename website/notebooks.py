"""Notebooks as pages of the site, with the outputs that the files hold.

`python -m website.notebooks` runs them anew and stores their outputs, in an environment with the extras `agents`,
`plots` and `rl`, and the packages `nbclient` and `ipykernel`.

* `read_notebook` - a notebook as Markdown, and its pictures
* `run_notebook` - its outputs anew
"""

from __future__ import annotations

import base64
import json
import os
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "examples" / "notebooks"


def read_notebook(path: Path) -> tuple[str, dict[str, bytes]]:
    """A notebook as Markdown, and its pictures by name.

    Args:
        path: the file.
    """
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else _fenced(source, "python"))
        for output in cell.get("outputs", []):
            parts.append(_show(output, f"{path.stem}-{len(pictures) + 1}.png", pictures))
    return "\n\n".join(part for part in parts if part) + "\n", pictures


def _show(output: dict[str, Any], name: str, pictures: dict[str, bytes]) -> str:
    """An output: a picture, a table as HTML, or text."""
    data = output.get("data", {})
    if "image/png" in data:
        pictures[name] = base64.b64decode("".join(data["image/png"]))
        return f'<p><img src="{name}" alt="Output of the cell above" loading="lazy"></p>'
    if "text/html" in data:
        lines = "".join(data["text/html"]).splitlines()
        return "\n".join(['<div class="output">', *(line.strip() for line in lines if line.strip()), "</div>"])
    text = "".join(output.get("text", data.get("text/plain", "")))
    return _fenced(text, "text") if text.strip() else ""


def _fenced(text: str, language: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"


def run_notebook(path: Path) -> None:
    """Run a notebook, and store it with its outputs, without times, versions and texts beside pictures.

    Args:
        path: the file.
    """
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, record_timing=False, coalesce_streams=True).execute()
    for output in (one for cell in notebook.cells for one in cell.get("outputs", [])):
        if len(output.get("data", {})) > 1:
            output.data.pop("text/plain", None)  # beside a picture or a table it says nothing
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    nbformat.write(notebook, path)


if __name__ == "__main__":
    os.environ["PYTHONPATH"] = str(FOLDER.parents[1])
    for name in sys.argv[1:] or sorted(path.stem for path in FOLDER.glob("*.ipynb")):
        run_notebook(FOLDER / f"{name}.ipynb")
