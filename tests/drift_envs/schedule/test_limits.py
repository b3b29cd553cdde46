"""How far a schedule reaches is told when it is loaded, with file and line."""

import warnings
from itertools import count, islice
from pathlib import Path

import gymnasium as gym
import pytest

import drift_envs  # noqa: F401
from drift_envs.errors import DriftWarning, ScheduleError
from drift_envs.schedule.loader import load_schedule
from drift_envs.schedule.phases import limits_of

HEAD = "version: 1\nname: far\nenv: DriftFrozenLake-v0\nclock: step\ndrifts:\n"


def write(folder: Path, *drifts: str) -> str:
    path = folder / "far.yaml"
    path.write_text(HEAD + "".join(f"  - {drift}\n" for drift in drifts), encoding="utf-8")
    return str(path)


def primes(number: int) -> list[int]:
    return list(islice((one for one in count(2) if all(one % other for other in range(2, one))), number))


def test_a_limit_that_long_experiments_meet_is_a_warning_with_file_and_line(tmp_path: Path) -> None:
    path = write(tmp_path, *(f"{{every: {period}, for: 1, set: {{slip: 0.1}}}}" for period in primes(85)))
    with pytest.warns(DriftWarning) as seen:
        env = gym.make("DriftFrozenLake-v0", schedule=path)
    last = env.get_wrapper_attr("timeline").last_phase_tick
    assert str(seen[0].message).startswith(f"{path}:5: drifts: can be played up to tick {last} only")


@pytest.mark.parametrize("drift", ["{every: 7, for: 2, set: {slip: 0.1}}", "{rate: 0.1, set: {slip: 0.1}}"])
def test_a_far_limit_is_no_warning(tmp_path: Path, drift: str) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        gym.make("DriftFrozenLake-v0", schedule=write(tmp_path, drift))
    assert seen == []


def test_a_drift_beyond_the_limit_is_an_error_with_file_and_line(tmp_path: Path) -> None:
    path = write(tmp_path, "{rate: 0.1, walk: {slip: 0.1}}", "{at: 2000000000, set: {slip: 0.1}}")
    last = min(limits_of(load_schedule(path).drifts))
    with pytest.raises(ScheduleError) as caught:
        gym.make("DriftFrozenLake-v0", schedule=path)
    assert str(caught.value).startswith(f"{path}:7: drifts[1].at: should be at most {last}: ")
    gym.make("DriftFrozenLake-v0", schedule=write(tmp_path, f"{{at: {last}, set: {{slip: 0.1}}}}"))


def test_the_last_tick_of_random_events_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("drift_envs.schedule.phases.EARLY", 10**12)
    monkeypatch.setattr("drift_envs.schedule.phases.MOST_EVENTS", 1_000_000)
    monkeypatch.setattr("drift_envs.schedule.occurrences.MOST_EVENTS", 1_000_000)
    monkeypatch.setattr("drift_envs.schedule.occurrences._SLACK", 70_000)
    path = write(tmp_path, "{rate: 0.1, walk: {slip: 0.1}}")
    last = limits_of(load_schedule(path).drifts).value
    assert last == 10_000_000
    with pytest.warns(DriftWarning):
        env = gym.make("DriftFrozenLake-v0", schedule=path)
    for seed in range(3):  # a limit that is not that of the phase
        env.reset(seed=seed)
        assert 0 <= env.get_wrapper_attr("timeline").values(last)["slip"] <= 1
