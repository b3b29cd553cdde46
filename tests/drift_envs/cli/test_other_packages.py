"""Every command on environments of other packages, which stand in a module of one's own here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from drift_envs import make_from_schedule
from drift_envs.cli.app import main

MODULE = '''
import random
import gymnasium as gym
import numpy as np

print("the module was imported")


class Tank(gym.Env):
    """A tank without `render_mode`; `leak` counts at once, `inflow` is read by `reset` alone."""

    metadata = {"render_modes": []}

    def __init__(self, noise=False, fails=False):
        if fails:
            raise ZeroDivisionError("no tank is left")
        self.leak, self.inflow, self.noise = 0.1, 1.0, noise
        self.observation_space = gym.spaces.Box(-100, 100, (2,))
        self.action_space = gym.spaces.Discrete(2)
        self._buffer = np.zeros(2, np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._now = self.inflow
        self._level = 10.0
        self._buffer[:] = self._level, 0
        return self._buffer, {"luck": random.random()}

    def step(self, action):
        if action == 1 and self._level > 1e9:
            raise RuntimeError("overflow")
        self._level += self._now * action - self.leak + (random.random() if self.noise else 0)
        self._buffer[:] = self._level, action
        return self._buffer, float(self._level), False, False, {"luck": random.random()}


class Two(Tank):
    def step(self, action):
        return (*super().step(action)[:1], np.array([1.0, 2.0]), False, False, {})


class Dry(Tank):
    def step(self, action):
        raise KeyError("the pump")


class Lazy(Tank):
    def reset(self, **options):
        self.built = getattr(self, "built", self.leak)
        return super().reset(**options)

    def step(self, action):
        now, self.leak = self.leak, self.built
        results = super().step(action)
        self.leak = now
        return results


class Forgets(Tank):
    def step(self, action):
        self.leak = 0.1
        return super().step(action)


for name, entry, arguments in (
    ("Tank", "Tank", {}),
    ("Lazy", "Lazy", {}),
    ("Forgets", "Forgets", {}),
    ("Two", "Two", {}),
    ("Dry", "Dry", {}),
    ("Noisy", "Tank", {"noise": True}),
    ("Failing", "Tank", {"fails": True}),
):
    gym.register(name, f"{__name__}:{entry}", kwargs=arguments, disable_env_checker=True)
'''
SCHEDULE = """
version: 1
env: {module}:{env}
clock: {clock}
knobs:
  leak: {{attribute: leak, bounds: [0, 5]}}
  inflow: {{attribute: inflow, bounds: [0, 5]}}
drifts:
  - {{name: leaky, at: 2, set: {{leak: 0.7}}}}
  - {{name: rain, at: 4, set: {{inflow: 2.5}}}}
"""


@pytest.fixture
def module(tmp_path: Path) -> Iterator[str]:
    name = f"tanks_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE, encoding="utf-8")
    path = list(sys.path)
    yield name
    sys.path[:] = path
    sys.modules.pop(name, None)
    for env_id in ("Tank", "Lazy", "Forgets", "Two", "Dry", "Noisy", "Failing"):
        gym.registry.pop(env_id, None)


def write(folder: Path, module: str, env: str = "Tank", clock: str = "episode", more: str = "") -> str:
    file = folder / f"{env}.yaml"
    file.write_text(SCHEDULE.format(module=module, env=env, clock=clock) + more, encoding="utf-8")
    return str(file)


@pytest.mark.parametrize("command", ["validate", "show", "plot", "diff"])
def test_reading_a_file_imports_nothing_unless_told(
    command: str, module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [command, write(tmp_path, module), *(["source", "rain"] if command == "diff" else [])]
    assert main(words) == (0 if command == "validate" else 1)
    printed = capsys.readouterr()
    assert f"`{module}` is imported only with `--import {module}`" in printed.out + printed.err
    assert module not in sys.modules
    assert main([*words, "--import", str(tmp_path)]) == 0
    assert "the module was imported" in capsys.readouterr().out


def test_the_message_says_what_finds_a_module(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["check", write(tmp_path, module)]) == 2
    assert f"the module `{module}` stands in '.'" in (shown := capsys.readouterr().err)
    assert "`--import .`" in shown
    assert main(["check", write(tmp_path, "no_such_package")]) == 2
    assert "install the package that registers `Tank`" in capsys.readouterr().err
    file = write(tmp_path, module)
    assert main(["validate", file]) == 0
    assert f"`{module}` is imported only with `--import .`" in capsys.readouterr().out
    assert main(["validate", file, "--import", module]) == 2
    assert "it stands in a folder: `--import .`" in capsys.readouterr().err
    assert main(["validate", write(tmp_path, module), "--import", "no_such_package"]) == 2
    assert "--import: should be a folder, or a module that can be imported" in capsys.readouterr().err


def test_the_message_says_which_module_registers_no_such_id(
    module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "wrong.yaml").write_text(
        SCHEDULE.format(module=module, env="Tnk-v0", clock="episode"), encoding="utf-8"
    )
    assert main(["check", str(tmp_path / "wrong.yaml"), "--import", str(tmp_path)]) == 2
    assert f"It is not registered by {tmp_path / module}.py" in capsys.readouterr().err
    (tmp_path / "bare.yaml").write_text("version: 1\nenv: Tonk-v0\ndrifts: []\n", encoding="utf-8")
    assert main(["check", str(tmp_path / "bare.yaml")]) == 2
    assert "is written `MODULE:Tonk-v0`" in capsys.readouterr().err


def test_check_names_the_line_of_a_knob(module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = SCHEDULE.format(module=module, env="Tank", clock="episode")
    (tmp_path / "typo.yaml").write_text(content.replace("attribute: leak,", "attribute: laek,"), encoding="utf-8")
    assert main(["check", str(tmp_path / "typo.yaml"), "--import", str(tmp_path)]) == 1
    assert "typo.yaml:6: knobs.leak" in capsys.readouterr().err


def test_check_names_the_phase_in_which_a_value_is_lost(
    module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = MODULE.replace("def step(self, action):", "def step(self, action):\n        self.leak = 0.1")
    (tmp_path / f"{module}.py").write_text(broken, encoding="utf-8")
    assert main(["check", write(tmp_path, module), "--import", str(tmp_path)]) == 1
    shown = capsys.readouterr().err
    assert "it was lost in the phase leaky" in shown


def test_a_folder_hides_no_other_module(module: str, tmp_path: Path) -> None:
    (tmp_path / "colorsys.py").write_text("raise SystemExit('hidden')", encoding="utf-8")
    sys.modules.pop("colorsys", None)
    assert main(["validate", write(tmp_path, module), "--import", str(tmp_path)]) == 0
    import colorsys

    assert str(tmp_path) not in str(colorsys.__file__)


def test_check_tells_apart_what_counts_at_once_and_what_at_a_reset(
    module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--import", str(tmp_path), "--steps", "20", "--episodes", "2"]
    assert main(["check", write(tmp_path, module, clock="step"), *words]) == 0
    shown = capsys.readouterr().out
    assert shown.count("warning: ") == 1
    assert "rain: `inflow` changed after the first step of 2 episodes, and nothing differed" in shown
    assert main(["check", write(tmp_path, module), *words]) == 0
    assert "warning" not in capsys.readouterr().out, "`luck` in `info` is random, which accuses no one"
    assert main(["check", write(tmp_path, module, "Noisy"), *words]) == 0
    shown = capsys.readouterr().out
    assert shown.count("not reproducible") == 4
    assert "differ with the seed 0" in shown


def test_check_finds_what_counts_in_the_first_reset_alone_and_what_a_step_sets_back(
    module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--import", str(tmp_path), "--steps", "20", "--episodes", "2"]
    assert main(["check", write(tmp_path, module, "Lazy"), *words]) == 0
    shown = capsys.readouterr().out
    assert shown.count("warning: ") == 1
    assert "leaky: `leak` changed, and 2 episodes with random actions showed no difference" in shown
    assert "after its construction and its first reset?" in shown
    assert main(["check", write(tmp_path, module, "Forgets"), *words]) == 1
    assert "`leak` is driven by the schedule and should keep its value" in capsys.readouterr().err


def test_check_reaches_drifts_behind_many_phases(
    module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = "  - {name: weekly, every: 7, for: 2, set: {leak: 0.2}}\n  - {name: late, at: 9000, set: {inflow: 0.3}}\n"
    words = ["--import", str(tmp_path), "--steps", "9", "--episodes", "1"]
    assert main(["check", write(tmp_path, module, more=more), *words]) == 0
    shown = capsys.readouterr().out
    assert "late " in shown
    assert "left out: phases from tick" in shown
    for command, expected in (("show", "late "), ("plot", "ticks 0 to 11249")):
        assert main([command, str(tmp_path / "Tank.yaml")]) == 0
        assert expected in capsys.readouterr().out


def test_show_plot_and_check_go_beyond_the_last_change_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The end of a ramp and of a `for`, and a first repetition, also where other drifts begin all the time."""
    file = tmp_path / "long.yaml"
    file.write_text(
        "version: 1\nname: long\nenv: DriftFrozenLake-v0\ndrifts:\n"
        "  - {name: short, every: 3, for: 1, set: {slip: 0.1}}\n"
        "  - {name: late, at: 1000, for: 100, set: {reward_scale: 2}}\n"
        "  - {name: tide, at: 1300, every: 410, for: 7, set: {reward_scale: 3}}\n"
        "  - {name: ramp, kind: incremental, at: 2000, over: 500, set: {slip: 0.4}}\n"
    )
    assert main(["show", str(file)]) == 0
    shown = capsys.readouterr().out
    for change in ("reward_scale 1 -> 2", "reward_scale 2 -> 1", "reward_scale 3 -> 1", " 1710 - ", "slip 0 -> 0.4"):
        assert change in shown
    assert main(["plot", str(file)]) == 0
    assert "ticks 0 to 3124" in capsys.readouterr().out
    assert main(["check", str(file), "--episodes", "2", "--steps", "30"]) == 0
    shown = capsys.readouterr().out
    assert "slip 0 -> 0.4" in shown
    assert "slip 0.4002" not in shown, "the last step of a ramp is no change of its own"


def test_exceptions_of_other_packages_are_one_line(
    module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--import", str(tmp_path)]
    assert main(["validate", write(tmp_path, module, "Failing"), *words]) == 1
    shown = capsys.readouterr().err
    assert f"env: {module}:Failing cannot be made: {module}: ZeroDivisionError: no tank is left" in shown
    assert main(["check", write(tmp_path, module, "Dry"), *words]) == 1
    assert capsys.readouterr().err == f"drift-envs: {module}: KeyError: 'the pump'\n"
    out = ["--out", str(tmp_path / "film.png"), "--policy", "random"]
    assert main(["record", f"{module}:Tank", "--schedule", write(tmp_path, module), *out]) == 1
    assert f"`render_mode` of {module}:Tank should be one of its own: none" in capsys.readouterr().err
    assert main(["severity", write(tmp_path, module)]) == 1
    assert "there is no oracle for" in capsys.readouterr().err


def test_the_spec_drifts(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    env = make_from_schedule(Path(write(tmp_path, module)), text=True)
    assert env.spec is not None
    for spec in (env.spec, gym.envs.registration.EnvSpec.from_json(env.spec.to_json())):
        again = gym.make(spec)
        again.reset(seed=0, options={"drift_tick": 4})
        assert (again.unwrapped.leak, again.unwrapped.inflow) == (0.7, 2.5)  # type: ignore[attr-defined]
        assert again.spec == spec


def test_data_sets_keep_copies_and_refuse_vectors(
    module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    from drift_envs.datasets import open_dataset

    words = ["--episodes", "1", "-q", "--import", str(tmp_path)]
    out = tmp_path / "data"
    assert main(["dataset", f"{module}:Tank", "--schedule", write(tmp_path, module), "--out", str(out), *words]) == 0
    (table,) = open_dataset(out).tables(0)
    seen, following = (table.column(name).to_pylist() for name in ("observation", "next_observation"))
    assert seen[0] == [10.0, 0.0]
    assert len({level for level, _ in seen}) > 900
    assert seen[1:] == following[:-1]
    args = ["dataset", f"{module}:Two", "--schedule", write(tmp_path, module, "Two"), "--out", str(tmp_path / "two")]
    assert main([*args, *words]) == 1
    assert "the reward should be one number" in capsys.readouterr().err


def test_actions_with_a_start_and_observations_without_dimensions() -> None:
    from drift_envs.wrappers.drift import DriftWrapper
    from drift_envs.wrappers.text import list_actions

    space = gym.spaces.MultiDiscrete([2, 3], start=[5, -1])
    actions = list_actions(space)
    assert actions == ("[5, -1]", "[5, 0]", "[5, 1]", "[6, -1]", "[6, 0]", "[6, 1]")

    class Single(gym.Env[Any, Any]):
        observation_space = gym.spaces.Box(-1, 9, ())
        action_space = gym.spaces.Discrete(2)

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
            super().reset(seed=seed)
            return np.array(3, np.float32), {}

    drift = {"at": 0, "set": {"observation_noise": 1.0, "observation_mask": "0"}}
    env = DriftWrapper(Single(), {"version": 1, "name": "s", "drifts": [drift]})
    assert env.reset(seed=0)[0] == 0
