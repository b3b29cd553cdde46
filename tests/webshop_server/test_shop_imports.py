"""Modules that the command line and clients load do not import the search or the web framework."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.integration

HEAVY = ("flask", "werkzeug", "jinja2", "numpy", "scipy", "rich")


@pytest.mark.parametrize("module", ["client", "page_model", "renderer", "settings", "urls"])
def test_light_modules(module):
    code = f"import sys, webshop_server.{module}; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
