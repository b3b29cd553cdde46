"""What tests of language models share: the server."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def _load(name: str) -> ModuleType:
    """A helper beside this file; tests are no package, so it is loaded by its path."""
    full = f"llm_tests_{name}"
    if full not in sys.modules:
        spec = importlib.util.spec_from_file_location(full, Path(__file__).with_name(f"{name}.py"))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[full] = module
        spec.loader.exec_module(module)
    return sys.modules[full]


@pytest.fixture(scope="session")
def chat() -> ModuleType:
    """The module `chat_server`: `serve`, `said`, `refused`, `Response`."""
    return _load("chat_server")
