"""docs/measures.md documents all public functions, and its examples run."""

from __future__ import annotations

import doctest
from pathlib import Path

from drift_envs import metrics

PAGE = Path(__file__).parents[3] / "docs" / "measures.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_every_function_is_documented() -> None:
    functions = [name for name in metrics.__all__ if name[0].islower()]
    assert len(functions) > 20
    missing = [name for name in functions if f"`{name}`" not in TEXT]
    assert not missing


def test_every_field_of_a_detection_is_documented() -> None:
    assert not [name for name in metrics.Detection._fields if f"`{name}`" not in TEXT]


def test_the_examples_run() -> None:
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert tried == 4
    assert failed == 0
