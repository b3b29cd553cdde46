"""The site is built without a warning, opens from files and requests nothing from other hosts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mkdocs", reason="needs the extra `docs`")

from drift_envs.registration import IDS
from website import hooks

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_nothing_is_loaded_from_another_host(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe)[^>]+src=\"?([^\" >]+)", text)
        loaded += re.findall(r"<link[^>]+(?:stylesheet|preload|preconnect)[^>]+href=\"?([^\" >]+)", text)
        assert loaded
        assert not [address for address in loaded if re.match(r"(https?:)?//", address)], page.name


def test_pages_and_the_search_open_from_files(site: Path) -> None:
    assert (site / "search" / "search_index.js").read_text(encoding="utf-8").startswith("var __index = ")
    start = (site / "index.html").read_text(encoding="utf-8")
    assert "assets/iframe-worker.js" in start
    assert 'href="quickstart_rl.html"' in start


def test_every_environment_has_a_page_that_its_overview_links(site: Path) -> None:
    overview = (site / "environments.html").read_text(encoding="utf-8")
    for env_id in IDS:
        assert f'href="environments/{env_id}.html"' in overview
        assert f"<h1>{env_id}" in re.sub(
            r"(<h1)[^>]*", r"\1", (site / "environments" / f"{env_id}.html").read_text("utf-8")
        )


def test_schedules_are_found_by_kind(site: Path) -> None:
    text = (site / "shipped_schedules.html").read_text(encoding="utf-8")
    weaker = text.partition('id="gets-weaker-or-smaller-slowly"')[2].partition("<h2")[0]
    assert 'href="environments/DriftMountainCar-v0.html#mountain_car-fatigue"' in weaker
    assert "<svg" in weaker


@pytest.mark.parametrize(
    ("page", "target", "expected"),
    [
        ("index.md", "docs/faq.md", "faq.md"),
        ("index.md", "CONTRIBUTING.md", "contributing.md"),
        ("your_environment.md", "../CONTRIBUTING.md", "contributing.md"),
        ("memories/edv.md", "../../CONTRIBUTING.md", "../contributing.md"),
        ("index.md", "LICENSE", ""),
    ],
)
def test_links_that_leave_the_folder_of_documents(page: str, target: str, expected: str) -> None:
    assert hooks.link(page, target) == expected
