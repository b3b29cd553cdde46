"""The code of docs/webshop_compat.md runs."""

from __future__ import annotations

import re
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "webshop_compat.md"


def test_the_code_of_the_page_runs(capsys):
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    names: dict[str, object] = {}
    try:
        for block in blocks:
            exec(block, names)
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "web_agent_site"]:
            del sys.modules[name]
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "['back to search', 'next >']"
    assert printed[1].startswith("Instruction:")
    assert printed[1].endswith("/search_results/3/easy+assemble+desk/1")
