"""The wheel has every file of the packages and nothing else, and works outside the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parent.parent


def run(command: list[str], cwd: Path, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    # a path to a checkout with an `.egg-info` would make pip take the wheel for installed
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False, env=clean)
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the files that git tracks, so that a stray file cannot hide a gap."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    tracked = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], ROOT).stdout
    for name in filter(None, tracked.split("\0")):
        if (ROOT / name).is_file():
            target = source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
    run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(source)], source)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment that has the wheel; its dependencies come from this one's site-packages.

    A plain path line in a `.pth` file does not run the `.pth` files found there, so the editable
    install of this environment stays out and only the wheel can provide our packages.
    """
    place = tmp_path_factory.mktemp("venv")
    run([sys.executable, "-m", "venv", "--without-pip", str(place)], place)
    python = place / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    run([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], place)
    asked = run([str(python), "-I", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], place)
    (Path(asked.stdout.strip()) / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


FOLDERS = {"drift_envs/": "drift_envs/", "webshop_server/": "webshop_server/", "schedules/": "drift_schedules/"}
FOLDERS["agents/drift_agents/"] = "drift_agents/"


def test_the_wheel_has_the_files_of_the_packages(wheel: Path) -> None:
    expected = {
        package + name.removeprefix(folder)
        for name in run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], ROOT).stdout.splitlines()
        for folder, package in FOLDERS.items()
        if name.startswith(folder) and (ROOT / name).is_file()
    }
    names = zipfile.ZipFile(wheel).namelist()
    assert {name for name in names if ".dist-info/" not in name} == expected


def test_gymnasium_makes_an_environment_from_the_wheel(python: Path, tmp_path: Path) -> None:
    code = (
        "import gymnasium, drift_envs; "
        "env = gymnasium.make('DriftFrozenLake-v0'); env.reset(seed=0); env.step(1); print(drift_envs.__file__)"
    )
    where = run([str(python), "-I", "-c", code], tmp_path).stdout.strip()
    assert Path(where).is_relative_to(python.parent.parent)
    run(
        [str(python), "-I", "-c", "import gymnasium; gymnasium.make('drift_envs:DriftFrozenLake-v0').reset(seed=0)"],
        tmp_path,
    )


def test_the_commands_work_from_the_wheel(python: Path, tmp_path: Path) -> None:
    commands = python.parent
    assert "frozen_lake/explicit" in run([str(commands / "drift-envs"), "list"], tmp_path).stdout
    command = [str(commands / "drift-agents"), "run", "glove-quick", "--out", "out", "--seeds", "1", "--rounds", "1"]
    run([*command, "--memory", "vanilla", "--schedules", "frozen_lake/implicit", "--jobs", "1"], tmp_path)
    assert (tmp_path / "out" / "episodes.jsonl").stat().st_size > 0
    run([str(commands / "drift-agents"), "report", "out"], tmp_path)
    assert (tmp_path / "out" / "report.md").stat().st_size > 0
