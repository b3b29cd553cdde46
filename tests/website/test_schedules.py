"""Shipped schedules by kind, and their drawings."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from tests.core_ids import CORE_IDS
from website import schedules
from website.shipped import read_table


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("mountain_car/fatigue", "Gets weaker or smaller slowly"),
        ("frozen_lake/thaw", "Gets stronger or larger slowly"),
        ("frozen_lake/thaw:walk", "Wanders"),
        ("frozen_lake/explicit", "Changes several times"),
        ("mountain_car/reversed", "Changes once"),
        ("mountain_car/reversed:jittered", "Changes at random times"),
        ("tools/merged", "Changes and comes back"),
        ("frozen_lake/null", "Controls"),
    ],
)
def test_kinds(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(schedules.KINDS) >= {kind}
    monkeypatch.setattr(schedules, "read_table", lambda: {name: read_table()[name]})
    schedules.read_shipped.cache_clear()
    (one,) = schedules.read_shipped()
    schedules.read_shipped.cache_clear()
    assert one.kind == kind


def test_every_core_schedule_has_a_kind_a_drawing_and_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {name: row for name, row in read_table().items() if name.partition("/")[0] in {"frozen_lake", "tools"}}
    monkeypatch.setattr(schedules, "read_table", lambda: rows)
    schedules.read_shipped.cache_clear()
    found, page = schedules.read_shipped(), schedules.page()
    sections = {one.name: "\n".join(schedules.section(one)) for one in found}
    schedules.read_shipped.cache_clear()
    for one in found:
        assert one.env_id in CORE_IDS
        assert one.kind in schedules.KINDS
        assert {ElementTree.fromstring(text).tag for text in (one.drawing, one.small) if text}
        assert f"[`{one.name}`](environments/{one.env_id}.md#{one.anchor})" in page
        assert f"{{ #{one.anchor} }}" in sections[one.name]
    assert "`drift-1` at episode 20" in sections["frozen_lake/explicit"]
