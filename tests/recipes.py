"""What the tests of recipes share: a recipe's blocks draw the pictures that its page shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documents import read_code, run_code
from website.recipes import PICTURES, ROOT, pictures_in, recipes

MOST_BYTES = 60_000
"""Of a picture, so that the pages load quickly."""


def blocks(*stems: str, picture: str | None = None) -> list[object]:
    """The blocks of recipes with their pictures, as parameters of a test.

    Args:
        stems: the names of the pages.
        picture: the block that draws this one alone.
    """
    return [
        pytest.param(code, name, id=name.removesuffix(".png"))
        for page in recipes()
        if page.stem in stems
        for code, name in zip(read_code(page.relative_to(ROOT)), pictures_in(page), strict=True)
        if picture in (None, name)
    ]


def check_block(code: str, picture: str, folder: Path) -> None:
    """Run a block in a folder, and compare its picture with the committed one.

    Args:
        code: the block.
        picture: the name of its picture.
        folder: the present folder, empty.
    """
    from matplotlib import image, pyplot

    try:
        run_code(code)
    finally:
        pyplot.close("all")
    assert (folder / picture).stat().st_size < MOST_BYTES
    assert (PICTURES / picture).stat().st_size < MOST_BYTES
    drawn, kept = image.imread(folder / picture), image.imread(PICTURES / picture)
    assert drawn.shape == kept.shape, "python -m website.recipes draws it again"
    assert (drawn < 1).any(), "something is drawn"
