"""An extra's package that is installed in a version which does not fit is one line."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.metadata import PackageNotFoundError

import pytest

from drift_envs import errors
from drift_envs.errors import MissingDependencyError, check_versions, load_all, needs_extra
from tests.core_ids import CORE_IDS

REQUIRED = [
    "numpy>=1.24",
    'mcp<2,>=1.10; extra == "mcp"',
    'some-package[more]>=2.3; extra == "some"',
    'old<0.5,>=0.4; python_version < "3.9" and extra == "new"',
    'old>=0.21; python_version >= "3.9" and extra == "new"',
    'pinned==1.7.0; extra == "pin"',
    'late>=1; python_version >= "9.1" and extra == "late"',
]
INNER = ['inner>=1; extra == "more"', "inner>=0"]


@pytest.fixture
def installations(monkeypatch):
    """Sets what is installed, in which version."""

    def install(found):
        def version(name):
            if name not in found and errors._normal(name) not in map(errors._normal, found):
                raise PackageNotFoundError(name)
            return next(installed for one, installed in found.items() if errors._normal(one) == errors._normal(name))

        monkeypatch.setattr(errors, "version", version)
        monkeypatch.setattr(errors, "requires", lambda name: REQUIRED if name == "drift-envs" else INNER)
        errors._find_misfits.cache_clear()

    yield install
    errors._find_misfits.cache_clear()


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
        ("mcp", "mcp", "1.12.0+local", None),
    ],
)
def test_a_version_that_does_not_fit(installations, package, extra, installed, rule):
    installations({package: installed, **({"other": "1"} if package != "other" else {})})
    if rule is None:
        with needs_extra(package, extra):
            pass
        check_versions(extra)
    else:
        words = f'should be of version {rule}, {installed} is installed; run `pip install ".[{extra}]"` in'
        with (
            pytest.raises(MissingDependencyError, match=re.escape(f"`{package}` {words}")),
            needs_extra(package, extra),
        ):
            pytest.fail("the imports should not run")
        with pytest.raises(MissingDependencyError, match=re.escape(words)):
            check_versions(extra)


def test_an_extra_of_a_package_counts(installations):
    installations({"some-package": "2.3", "inner": "0.9"})
    with pytest.raises(MissingDependencyError, match=r"^`inner` should be of version >=1, 0\.9 is installed; .*some"):
        check_versions("some")


def test_an_environment_whose_package_does_not_fit(installations, monkeypatch):
    installations({"pinned": "1.8"})
    parts = replace(CORE_IDS["DriftFrozenLake-v0"], extra="pin")
    with pytest.raises(MissingDependencyError, match=r"`pinned` should be of version ==1\.7\.0, 1\.8 is installed"):
        parts.load("env")


@pytest.mark.parametrize(
    ("error", "installed", "words"),
    [
        (ModuleNotFoundError("No module named 'mcp'", name="mcp"), "", "`mcp` is not installed, run"),
        (ModuleNotFoundError("No module named 'mcp'", name="mcp"), "1.12", "`mcp` is not installed, run"),
        (ImportError("cannot import name 'x'", name="mcp"), "1.12", "`mcp` 1.12 cannot be imported (cannot import"),
        (
            ModuleNotFoundError("No module named 'anyio'", name="anyio"),
            "1.12",
            "`mcp` 1.12 cannot be imported (No",
        ),
        (ImportError("libx.so: no such file"), "1.12", "`mcp` 1.12 cannot be imported (libx.so: no such file); run"),
    ],
)
def test_an_import_that_fails_says_why(installations, error, installed, words):
    installations({"mcp": installed} if installed else {})
    with pytest.raises(MissingDependencyError, match=re.escape(words)) as raised, needs_extra("mcp", "mcp"):
        raise error
    assert '`pip install ".[mcp]"`' in str(raised.value)
    assert (raised.value.packages, raised.value.extras) == (("mcp",), ("mcp",))


def test_a_package_for_a_later_python(installations):
    installations({})
    words = r"`late` is not installed, .*, with Python >=9\.1"
    with pytest.raises(MissingDependencyError, match=words), needs_extra("late", "late"):
        raise ModuleNotFoundError("No module named 'late'", name="late")


def test_what_is_missing_and_what_does_not_fit_stand_in_one_error(installations):
    installations({"mcp": "2.3.0"})

    def load(package):
        with needs_extra(package, package):
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)

    with pytest.raises(MissingDependencyError, match=r"`mcp` should be of version .*; `late` is not installed"):
        load_all([lambda: load("mcp"), lambda: load("late")])
    with pytest.raises(MissingDependencyError, match=r'^`a`, `b` are not installed, run `pip install "\.\[a,b\]"`'):
        load_all([lambda: load("a"), lambda: load("b")])
