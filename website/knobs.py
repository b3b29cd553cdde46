"""The tables of knobs in documents, from the knobs that environments declare: `python -m website.knobs` writes them.

* `show_knobs` - the table of an id
* `fill_knobs` - a page with its tables, each between `<!-- knobs ID -->` and `<!-- end -->`
* `PAGES` - the pages
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from drift_envs.cli.listing import show_bounds
from drift_envs.knobs import Knob, thaw
from drift_envs.registration import IDS

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = ("environments.md", "classic_control.md", "minigrid.md", "miniwob.md")
BLOCK = re.compile(r"(<!-- knobs (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def show_knobs(env_id: str) -> str:
    """The table of an id: name, default, bounds and meaning of each knob."""
    rows = [
        f"| `{knob.name}` | {_show(thaw(knob.default))} | {_show_bounds(knob)} | {knob.doc} |"
        for knob in IDS[env_id].knob_table.knobs
    ]
    return "\n".join(["| knob | default | bounds | meaning |", "|---|---|---|---|", *rows, ""])


def _show_bounds(knob: Knob) -> str:
    return show_bounds(knob) if knob.is_numeric or not knob.bounds else _show(list(knob.bounds))


def _show(value: Any) -> str:
    if isinstance(value, list) and value:
        return ", ".join(f"`{item}`" for item in value)
    return f"`{value}`" if isinstance(value, str) else f"`{json.dumps(value)}`"


def fill_knobs(text: str) -> str:
    """A page's text with its tables written anew."""
    return BLOCK.sub(lambda found: f"{found[1]}{show_knobs(found[2])}{found[3]}", text)


def main() -> None:
    """Write the tables of all pages."""
    for name in PAGES:
        page = DOCS / name
        page.write_text(fill_knobs(page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
