"""Code of the project's own documents, for tests that run it.

* `read_code` - the code blocks of a language in a page
* `run_code` - runs a block as a program of its own
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def read_code(page: str | Path, language: str = "python") -> list[str]:
    """The code blocks of a language, in the order of the page.

    Args:
        page: a path below the project's root, as in `docs/mcp.md`.
        language: what stands behind the opening fence.
    """
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def run_code(code: str, names: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run a block of code and return its global names.

    Args:
        code: of a page or a notebook of this project.
        names: those of the blocks before, to which this one adds its own.
    """
    names = {"__name__": "__main__"} if names is None else names
    exec(compile(code, "example", "exec"), names)
    return names
