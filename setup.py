"""What `setup.cfg` cannot express: addresses, which come from `PROJECT_URL` and are left out until there is one."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).resolve().parent
PROJECT_URL = runpy.run_path(str(ROOT / "drift_envs" / "_version.py"))["PROJECT_URL"].rstrip("/")
LABELS = {"Source": "", "Documentation": "/tree/main/docs", "Changelog": "/blob/main/CHANGELOG.md", "Issues": "/issues"}


def describe() -> str:
    """The README; with an address, links to files and pictures are absolute, so that a package index shows them."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    if not PROJECT_URL:
        return text
    pictures = re.sub(r"(!\[[^\]]*\]\()(?!https?://|#)", rf"\g<1>{PROJECT_URL}/raw/main/", text)
    return re.sub(r"((?<!!)\[[^\]]*\]\()(?!https?://|#)", rf"\g<1>{PROJECT_URL}/blob/main/", pictures)


if __name__ == "__main__":
    addresses = {label: PROJECT_URL + path for label, path in LABELS.items()}
    setup(
        long_description=describe(),
        long_description_content_type="text/markdown",
        **({"url": PROJECT_URL, "project_urls": addresses} if PROJECT_URL else {}),
    )
