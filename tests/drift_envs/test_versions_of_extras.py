"""An extra's package that is installed in a version which does not fit is one line."""

from __future__ import annotations

import re

import pytest

from drift_envs import errors
from drift_envs.errors import MissingDependencyError, needs_extra

REQUIRED = [
    "numpy>=1.24",
    'mcp<2,>=1.10; extra == "mcp"',
    'some-package[more]>=2.3; extra == "some"',
    'old<0.5,>=0.4; python_version < "3.9" and extra == "new"',
    'old>=0.21; python_version >= "3.9" and extra == "new"',
    'pinned==1.7.0; extra == "pin"',
]


@pytest.mark.parametrize(
    ("package", "extra", "installed", "rule"),
    [
        ("mcp", "mcp", "2.3.0", ">=1.10,<2"),
        ("mcp", "mcp", "2.0.0rc1", ">=1.10,<2"),
        ("mcp", "mcp", "1.9.4", ">=1.10,<2"),
        ("some_package", "some", "2.2.9", ">=2.3"),
        ("old", "new", "0.4.7", ">=0.21"),
        ("pinned", "pin", "1.7.1", "==1.7.0"),
        ("mcp", "mcp", "1.10", None),
        ("mcp", "mcp", "1.27.2", None),
        ("some_package", "some", "2.3", None),
        ("old", "new", "1.0", None),
        ("pinned", "pin", "1.7", None),
        ("mcp", "openenv", "2.3.0", None),
        ("numpy", "mcp", "0.1", None),
    ],
)
def test_a_version_that_does_not_fit(monkeypatch, package, extra, installed, rule):
    errors._find_misfit.cache_clear()
    monkeypatch.setattr(errors, "version", lambda _: installed)
    monkeypatch.setattr(errors, "requires", lambda _: REQUIRED)
    if rule is None:
        with needs_extra(package, extra):
            pass
    else:
        words = f'`{package}` should be of version {rule}, {installed} is installed; run `pip install ".[{extra}]"` in'
        with pytest.raises(MissingDependencyError, match=re.escape(words)), needs_extra(package, extra):
            pytest.fail("the imports should not run")
    errors._find_misfit.cache_clear()
