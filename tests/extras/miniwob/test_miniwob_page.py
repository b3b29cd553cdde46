"""The page on MiniWoB++ against the code that it describes."""

from __future__ import annotations

import re
from pathlib import Path

from drift_envs.envs.miniwob.knobs import LAYOUTS, MINIWOB_KNOBS
from drift_envs.registration import IDS
from tests.documents import read_code, run_code
from webshop_server.settings import THEMES

TEXT = (Path(__file__).parents[3] / "docs" / "miniwob.md").read_text(encoding="utf-8")


def test_its_example_runs() -> None:
    (code,) = read_code("docs/miniwob.md")
    names = run_code(code)
    assert names["info"]["actions"]
    assert not names["terminated"]


def test_it_names_every_id_knob_and_choice() -> None:
    ids = [name for name in IDS if name.startswith("DriftMiniWoB")]
    for name in (*ids, *MINIWOB_KNOBS, *LAYOUTS, *THEMES):
        assert f"`{name}`" in TEXT, name
    for knob in MINIWOB_KNOBS.knobs:
        assert re.search(rf"^\| `{knob.name}` \|", TEXT, re.MULTILINE), knob.name
