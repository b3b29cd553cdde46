"""Pictures of the recipes: `python -m website.recipes` runs their blocks and keeps what they draw.

A block that needs an extra that is not installed is left out, and its picture stays as it is.

* `recipes` - the pages
* `pictures_in` - the names of the pictures that a page shows
* `main` - draws all pictures, or those of the pages that are named
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "recipes"
PICTURES = ROOT / "docs" / "pictures" / "recipes"
MISSING = "ModuleNotFoundError"


def recipes() -> list[Path]:
    """The pages, without the overview."""
    return [page for page in sorted(FOLDER.glob("*.md")) if page.stem != "index"]


def pictures_in(page: Path) -> list[str]:
    """The names of the pictures that a page shows: what its blocks draw, one each.

    Args:
        page: the page.
    """
    return re.findall(r"^!\[[^\]]*\]\(\.\./pictures/recipes/([\w.]+)\)", page.read_text("utf-8"), re.MULTILINE)


def main(names: list[str]) -> None:
    """Run the blocks in processes of their own.

    Args:
        names: of pages, without their ending; all by default.
    """
    PICTURES.mkdir(parents=True, exist_ok=True)
    for page in recipes():
        if names and page.stem not in names:
            continue
        blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
        for block, picture in zip(blocks, pictures_in(page), strict=True):
            with tempfile.TemporaryDirectory() as folder:
                variables = {**os.environ, "MPLBACKEND": "agg", "PYTHONPATH": str(ROOT)}
                done = subprocess.run(
                    [sys.executable, "-c", block],
                    cwd=folder,
                    env=variables,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                if done.returncode and MISSING not in done.stderr:
                    raise SystemExit(f"{page.stem}: {done.stderr}")
                if done.returncode:
                    print(f"{picture}: left as it is: {done.stderr.splitlines()[-1]}")
                else:
                    shutil.copyfile(Path(folder) / picture, PICTURES / picture)
                    print(f"{picture}: {(PICTURES / picture).stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
