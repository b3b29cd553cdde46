"""Where cells are played: the same bytes in processes and on Ray's workers."""

from __future__ import annotations

import gc
import os
import re
import signal
import socket
import sys
from collections.abc import Iterator
from os.path import basename
from pathlib import Path
from typing import Any

import pytest
from drift_agents.cli.app import main
from drift_agents.errors import ArgumentError, ExperimentError, MissingDependencyError, UnknownNameError
from drift_agents.experiment.loader import load_experiment, parse_experiment
from drift_agents.experiment.runner import run_experiment
from drift_agents.experiment.workers import check_reachable, play_in_processes, play_on_ray, ray_cores


def test_processes_give_what_each_call_returned() -> None:
    assert sorted(play_in_processes(basename, [(path,) for path in ("x/c", "x/a", "x/b")], 2)) == ["a", "b", "c"]


def test_an_error_of_a_process_is_the_calls_own() -> None:
    with pytest.raises(UnknownNameError, match="nowhere"):
        list(play_in_processes(load_experiment, [("nowhere",), ("nowhere",)], 2))


def test_what_cells_leave_behind_is_not_searched_for_garbage_again() -> None:
    """The workers' caches grow large, and joblib has garbage collected every second."""
    frozen = list(play_in_processes(gc.get_freeze_count, [()] * 6, 2))
    assert max(frozen) > 10_000


def test_what_a_killed_process_was_at_is_done_again(tmp_path: Path) -> None:
    def play(name: str) -> str:
        mark = tmp_path / name
        if name == "b" and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return name

    assert sorted(play_in_processes(play, [(name,) for name in "abcde"], 2)) == list("abcde")


def test_processes_that_are_always_killed_stop_the_run() -> None:
    def play() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(ExperimentError, match=r"worker processes were killed 4 times in a row, .* with --jobs"):
        list(play_in_processes(play, [()] * 2, 2))


def test_unknown_backends_are_refused(data: dict[str, Any], tmp_path: Path) -> None:
    message = re.escape("`backend` should be one of processes, ray. Received 'dask'")
    with pytest.raises(ArgumentError, match=message):
        run_experiment(parse_experiment(data), tmp_path / "run", backend="dask")
    assert not (tmp_path / "run").exists()


def test_language_models_are_asked_from_one_process(data: dict[str, Any], tmp_path: Path) -> None:
    experiment = parse_experiment({**data, "agents": {"memory": ["none"], "policy": "llm"}})
    with pytest.raises(ArgumentError, match="should be processes with language models"):
        run_experiment(experiment, tmp_path / "run", backend="ray")


def test_without_ray_its_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingDependencyError, match=re.escape('pip install "drift-envs[scale]"')):
        ray_cores()
    assert main(["run", "glove-quick", "--backend", "ray", "--out", str(tmp_path / "run")]) == 1
    assert "drift-envs[scale]" in capsys.readouterr().err


@pytest.mark.parametrize("prefix", ["", "ray://"])
def test_an_address_where_nobody_listens_is_refused_at_once(prefix: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"{prefix}127.0.0.1:{server.getsockname()[1]}"
        check_reachable(address)
    with pytest.raises(ExperimentError, match=re.escape(f"No server listens at {address!r}")):
        check_reachable(address)


@pytest.mark.parametrize("address", ["", "auto", "local", "ray://cluster"])
def test_addresses_without_a_port_are_left_to_ray(address: str) -> None:
    check_reachable(address)


@pytest.fixture(scope="module")
def local_ray() -> Iterator[Any]:
    """Two of Ray's workers on this machine."""
    ray = pytest.importorskip("ray", reason="the extra `scale` is not installed")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield ray
    ray.shutdown()


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")
class TestRay:
    def test_it_has_its_own_cores(self, local_ray: Any) -> None:
        assert ray_cores() == 2

    def test_a_run_writes_the_same_bytes(self, local_ray: Any, data: dict[str, Any], tmp_path: Path) -> None:
        experiment = parse_experiment(data)
        here = run_experiment(experiment, tmp_path / "here", trace="all")
        there = run_experiment(experiment, tmp_path / "there", trace="all", backend="ray", jobs=2)
        assert there.read_bytes() == here.read_bytes()

    def test_a_folder_may_be_named_from_where_one_stands(
        self, local_ray: Any, data: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert run_experiment(parse_experiment({**data, "seeds": 1}), Path("run"), backend="ray").exists()

    def test_a_job_at_a_time_keeps_the_order(self, local_ray: Any) -> None:
        assert list(play_on_ray(basename, [(path,) for path in ("x/c", "x/a", "x/b")], 1)) == ["c", "a", "b"]

    def test_what_a_killed_worker_was_at_is_done_again(self, local_ray: Any, tmp_path: Path) -> None:
        def play(name: str) -> str:
            mark = tmp_path / name
            if name == "b" and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return name

        assert sorted(play_on_ray(play, [(name,) for name in "abc"], 2)) == list("abc")

    def test_an_error_is_the_calls_own(self, local_ray: Any) -> None:
        with pytest.raises(UnknownNameError, match="nowhere") as caught:
            list(play_on_ray(load_experiment, [("nowhere",), ("nowhere",)], 2))
        assert type(caught.value) is UnknownNameError
