"""The site is built without a warning, opens from files and requests nothing from other hosts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mkdocs", reason="needs the extra `docs`")

from tests.core_ids import CORE_IDS
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


def test_the_gallery_shows_every_environment(site: Path) -> None:
    gallery = (site / "gallery.html").read_text(encoding="utf-8")
    assert all(env_id in gallery for env_id in CORE_IDS)


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
