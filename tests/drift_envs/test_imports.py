"""`import drift_envs` registers the ids and loads nothing that Gymnasium does not load; the rest loads at first use."""

import json
import subprocess
import sys
from importlib import import_module

import gymnasium as gym
import pytest

from tests.core_ids import CORE_IDS

HEAVY = ("flask", "jinja2", "matplotlib", "pandas", "pydantic", "rich", "scipy", "selenium", "webshop_server", "yaml")
PACKAGES = ("drift_envs", "drift_envs.envs", "drift_envs.schedule")


def modules_after(code):
    """The modules that a fresh interpreter has loaded after running the code."""
    program = f"{code}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(result.stdout.splitlines()[-1]))


@pytest.mark.integration
def test_the_import_loads_what_gymnasium_loads():
    ours = modules_after("import drift_envs") - modules_after("import gymnasium")
    assert not [name for name in ours if name.split(".")[0] in HEAVY]
    assert {name for name in ours if name.startswith("drift_envs.")} == {
        "drift_envs.errors",
        "drift_envs.registration",
        "drift_envs.utils",
        "drift_envs.utils.lazy",
        "drift_envs.utils.version",
    }


@pytest.mark.integration
def test_a_lake_loads_no_other_environment_and_no_oracle():
    loaded = modules_after("import gymnasium, drift_envs; gymnasium.make('DriftFrozenLake-v0', text=True)")
    unwanted = {"flask", "jinja2", "rich", "scipy", "selenium", "webshop_server"}
    assert not loaded & unwanted
    environments = {name.split(".")[2] for name in loaded if name.startswith("drift_envs.envs.")}
    assert environments == {"frozen_lake", "make", "poison"}
    assert not [name for name in loaded if name.startswith(("drift_envs.oracle", "drift_envs.vector"))]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_there(package):
    module = import_module(package)
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nonsense'"):
        module.nonsense  # noqa: B018  reading it is the test


@pytest.mark.parametrize("env_id", CORE_IDS)
def test_the_table_names_what_exists(env_id):
    entry = CORE_IDS[env_id]
    assert issubclass(entry.env_class, gym.Env)
    spec = gym.spec(env_id)
    assert isinstance(gym.envs.registration.load_env_creator(spec.entry_point).metadata, dict)
    assert (spec.vector_entry_point is None) == (entry.vector is None)
