"""The code of docs/webshop_compat.md runs."""

from __future__ import annotations

import sys

from tests.documents import read_code, run_code


def test_the_code_of_the_page_runs(capsys):
    blocks = read_code("docs/webshop_compat.md")
    assert len(blocks) == 2
    names: dict[str, object] = {}
    try:
        for block in blocks:
            run_code(block, names)
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "web_agent_site"]:
            del sys.modules[name]
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "['back to search', 'next >']"
    assert printed[1].startswith("Instruction:")
    assert printed[1].endswith("/search_results/3/easy+assemble+desk/1")
