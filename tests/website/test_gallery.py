"""The gallery: one picture for each environment and schedule, or the reason why there is none."""

from __future__ import annotations

import pytest

from website import gallery

pytest.importorskip("matplotlib", reason="needs the extra `plots`")


@pytest.mark.integration
def test_a_picture_or_the_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(gallery, "IDS", {name: gallery.IDS[name] for name in ("DriftFrozenLake-v0",)})
    monkeypatch.setattr(gallery, "shipped_schedules", lambda: ("frozen_lake/thaw", "frozen_lake/thaw:walk"))
    pictures = gallery.draw(tmp_path)
    assert [picture.file for picture in pictures] == [
        "DriftFrozenLake-v0.png",
        "frozen_lake-thaw.svg",
        "frozen_lake-thaw-walk.svg",
    ]
    assert all((tmp_path / picture.file).stat().st_size > 1_000 for picture in pictures)

    def without(*arguments):
        raise ImportError("run `pip install something`")

    monkeypatch.setattr(gallery, "plot_schedule", without)
    *_, missing = gallery.draw(tmp_path)
    assert missing.file == ""
    page = gallery.page([*pictures, missing, missing._replace(title="frozen_lake/melt")])
    assert "![frozen_lake/thaw](gallery/frozen_lake-thaw.svg)" in page
    assert page.endswith("\n| run `pip install something` | `frozen_lake/thaw:walk`, `frozen_lake/melt` |\n")
    assert "## `lone`" not in gallery.page([missing._replace(group="`lone`")]), "no heading without a picture"
