"""The core works without the libraries of the extra `agents`, and errors name the extra."""

from __future__ import annotations

import configparser
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parent.parent
AGENTS = ("scipy", "pandas")
WITHOUT = f"""
import sys
from importlib.abc import MetaPathFinder
class Missing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {AGENTS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name.split(".")[0] in {AGENTS!r} else found(name, package)
sys.meta_path.insert(0, Missing())
"""


def run_without_agents(code):
    done = subprocess.run([sys.executable, "-c", WITHOUT + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_environments_oracles_and_commands_work_on_the_core():
    out = run_without_agents(
        """
import gymnasium as gym, drift_envs
from drift_envs.cli import main
for env_id in ("DriftFrozenLake-v0", "DriftMountainCar-v0", "DriftWebShop-v0"):
    env = gym.make(env_id, text=True)
    env.reset(seed=0)
    env.get_wrapper_attr("oracle")
print(main(["list"]), main(["show", "mountain_car/explicit"]))
from drift_agents.cli.app import main
print(main(["list"]))
"""
    )
    assert "frozen_lake/explicit" in out
    assert out.strip().endswith("0")


def test_the_errors_name_the_extra():
    out = run_without_agents(
        """
import drift_agents
from drift_envs.metrics import bootstrap
for call in (lambda: drift_agents.Glove, lambda: bootstrap([1.0, 2.0, 3.0])):
    try:
        call()
    except ImportError as error:
        print(type(error).__name__, error)
from drift_agents.cli.app import main
print(main(["run", "glove-quick"]))
"""
    )
    lines = out.splitlines()
    assert len(lines) == 3
    assert all('".[agents]"' in line and line.startswith("MissingDependencyError") for line in lines[:2])
    assert lines[2] == "1"


def test_the_extra_holds_what_the_core_lacks():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    core = config["options"]["install_requires"]
    extras = config["options.extras_require"]
    for name in AGENTS:
        assert f"\n{name}>=" not in core
        assert f"\n{name}>=" in extras["agents"]
    assert extras["all"].strip() == "drift-envs[agents,plots,rl,video]"
    assert "drift-envs[agents,test]" in extras["dev"]


def test_each_folder_of_tests_has_packages_to_install():
    """`make test-extras` installs what `requirements.txt` of the folder says, or else the extra of its name."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    folders = [path for path in (ROOT / "tests" / "extras").iterdir() if list(path.glob("test_*.py"))]
    extras = config["options.extras_require"]
    assert len(folders) > 20
    assert [path.name for path in folders if path.name not in extras and not (path / "requirements.txt").exists()] == []
