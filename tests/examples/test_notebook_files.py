"""Notebooks are kept with the outputs of one run from top to bottom, and become pages; tests/extras runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from website.notebooks import FOLDER, read_notebook

NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MOST_BYTES = 150_000


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_of_one_run_and_small(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert outputs
    assert all(output["output_type"] != "error" and output.get("name") != "stderr" for output in outputs)
    assert "pygame" not in "".join("".join(output.get("text", "")) for output in outputs)
    assert path.stat().st_size < MOST_BYTES
    for cell in code:
        compile("".join(cell["source"]), path.name, "exec")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_its_page_has_code_and_pictures(path: Path) -> None:
    text, pictures = read_notebook(path)
    assert text.startswith("# ")
    assert text.count("```python") >= 3
    assert all(data.startswith(b"\x89PNG") and f'src="{name}"' in text for name, data in pictures.items())


def test_text_and_tables_are_shown(tmp_path: Path) -> None:
    printed = {"output_type": "stream", "name": "stdout", "text": ["a\n", "b\n"]}
    table = {
        "output_type": "execute_result",
        "data": {"text/html": ["<table>\n", "\n", "</table>"], "text/plain": ["x"]},
    }
    cells = [{"cell_type": "code", "source": ["show()"], "outputs": [printed, table]}]
    path = tmp_path / "one.ipynb"
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    expected = '```python\nshow()\n```\n\n```text\na\nb\n```\n\n<div class="output">\n<table>\n</table>\n</div>\n'
    assert read_notebook(path) == (expected, {})
