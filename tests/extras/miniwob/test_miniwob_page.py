"""The page on MiniWoB++ against the code that it describes."""

from __future__ import annotations

from tests.documents import read_code, run_code


def test_its_example_runs() -> None:
    (code,) = read_code("docs/miniwob.md")
    names = run_code(code)
    assert names["info"]["actions"]
    assert not names["terminated"]
