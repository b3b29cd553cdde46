"""What a run does with a cluster, shown by one of threads; `tests/extras/ray` has a real one."""

from __future__ import annotations

import _signal
import asyncio
import os
import re
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from os.path import basename
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from drift_agents.cli.app import main
from drift_agents.errors import ArgumentError, ExperimentError, MissingDependencyError, ModelError
from drift_agents.experiment import runner
from drift_agents.experiment.clusters import Request, _Requests, check_reachable, open_cluster
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.runner import run_experiment
from drift_agents.experiment.workers import play_in_pool
from drift_agents.interruption import stopped_by_signals, uninterrupted

from tests.drift_agents.experiment.cells import forget_cell, read_cells
from tests.drift_agents.experiment.cluster_of_threads import Threads


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Threads:
    """The cluster that a run gets, whose third and fifth call lose their workers."""
    cluster = Threads(lost=(2, 4))

    @contextmanager
    def connect(*_: Any) -> Iterator[Threads]:
        yield cluster

    monkeypatch.setattr(runner, "open_cluster", connect)
    return cluster


def test_the_call_of_a_lost_worker_is_sent_again() -> None:
    cluster = Threads(lost=(0, 3))
    found = play_in_pool(cluster, basename, [(path,) for path in ("x/c", "x/a", "x/b")], 2)
    assert sorted(found) == ["a", "b", "c"]
    assert cluster.started == 5


def test_workers_that_are_always_lost_stop_the_run() -> None:
    with pytest.raises(ExperimentError, match="workers were lost 4 times in a row: gone"):
        list(play_in_pool(Threads(lost=range(9)), basename, [("x",)] * 3, 1))


@pytest.mark.integration
def test_a_run_writes_the_same_bytes(threads: Threads, data: dict[str, Any], tmp_path: Path) -> None:
    experiment = parse_experiment(data)
    here = run_experiment(experiment, tmp_path / "here", trace="all")
    there = run_experiment(experiment, tmp_path / "there", trace="all", backend="ray")
    assert there.read_bytes() == here.read_bytes()
    assert threads.started == 12 + 2
    for name in [path.name for path in (tmp_path / "here" / "traces").iterdir()]:
        assert (tmp_path / "there" / "traces" / name).read_bytes() == (tmp_path / "here" / "traces" / name).read_bytes()


def test_a_run_goes_on_with_the_cells_that_are_left(threads: Threads, data: dict[str, Any], tmp_path: Path) -> None:
    experiment = parse_experiment(data)
    whole = run_experiment(experiment, tmp_path / "run").read_bytes()
    forget_cell(tmp_path / "run", next(iter(read_cells(tmp_path / "run"))))
    assert run_experiment(experiment, tmp_path / "run", backend="ray", resume=True).read_bytes() == whole
    assert threads.started == 1


def test_a_worker_with_other_versions_is_refused(
    threads: Threads, data: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, calls = runner.versions(), []

    def differ() -> dict[str, str]:
        calls.append(None)
        return ours if len(calls) <= 2 else {**ours, "numpy": "0.1"}

    monkeypatch.setattr(runner, "versions", differ)
    message = r"other versions than the run .*: numpy: there \"\d\S+\", here \"0\.1\""
    with pytest.raises(ExperimentError, match=message) as caught:
        run_experiment(parse_experiment(data), tmp_path / "run", backend="ray")
    assert caught.value.is_resumable


def test_unknown_backends_are_refused(data: dict[str, Any], tmp_path: Path) -> None:
    message = re.escape("`backend` should be one of processes, ray. Received 'spark'")
    with pytest.raises(ArgumentError, match=message):
        run_experiment(parse_experiment(data), tmp_path / "run", backend="spark")
    with pytest.raises(ArgumentError, match="`address` should stand with the backend ray"):
        run_experiment(parse_experiment(data), tmp_path / "run", address="127.0.0.1:1")
    assert not (tmp_path / "run").exists()


def test_without_the_package_its_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    message = re.escape('pip install ".[ray]"')
    with pytest.raises(MissingDependencyError, match=message), open_cluster():
        pass
    words = ["run", "glove-quick", "--seeds", "1", "--rounds", "1", "--memory", "none"]
    assert main([*words, "--ray", "local", "--out", str(tmp_path / "run")]) == 1
    assert '".[ray]"' in capsys.readouterr().err


class TestHandlers:
    """The handlers of signals while Ray starts, and after: here by a module of its name that does what Ray does."""

    @pytest.fixture
    def ray(self, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
        """What Ray sets on SIGTERM: in Python a handler that exits, in C++ one that `signal.signal` does not show."""
        monkeypatch.delenv("RAY_ADDRESS", raising=False)
        for name in ("RAY_USAGE_STATS_ENABLED", "RAY_DISABLE_FAILURE_SIGNAL_HANDLER"):
            monkeypatch.setenv(name, "")  # so that what is set here is forgotten
            monkeypatch.delenv(name)

        def start(*_: Any, **__: Any) -> None:
            assert os.environ["RAY_DISABLE_FAILURE_SIGNAL_HANDLER"] == "1"
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(15))
            for number in module.sent:
                signal.raise_signal(number)
            _signal.signal(signal.SIGTERM, _signal.SIG_DFL)

        module = SimpleNamespace(is_initialized=lambda: False, init=start, sent=(), ended=[])
        module.shutdown = lambda: module.ended.append(True)
        monkeypatch.setitem(sys.modules, "ray", module)
        return module

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal_while_ray_starts_is_this_commands(self, ray: SimpleNamespace, number: signal.Signals) -> None:
        ray.sent = (number,)
        with stopped_by_signals(), uninterrupted(), pytest.raises(KeyboardInterrupt), open_cluster():
            pytest.fail("the run goes on")

    def test_a_signal_after_the_start_is_too_and_ray_ends_itself_at_exit(self, ray: SimpleNamespace) -> None:
        def receive() -> None:
            assert signal.getsignal(signal.SIGTERM) is signal.getsignal(signal.SIGINT)  # both are this command's
            signal.raise_signal(signal.SIGTERM)

        with stopped_by_signals(), pytest.raises(KeyboardInterrupt), open_cluster():
            receive()
        assert not ray.ended
        with stopped_by_signals(), open_cluster():
            pass
        assert ray.ended == [True]

    def test_handlers_are_set_again_as_they_were(self, ray: SimpleNamespace) -> None:
        before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
        set_handler = signal.signal
        with open_cluster():
            pass
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
        assert signal.signal is set_handler

    def test_a_machine_on_which_ray_does_not_start(self, ray: SimpleNamespace) -> None:
        def fail(*_: Any, **__: Any) -> None:
            raise Exception("The current node timed out during startup")  # as Ray does, of no other class

        ray.init = fail
        message = "Ray cannot start on this machine: The current node timed out"
        with pytest.raises(ExperimentError, match=message), open_cluster():
            pass
        message = "`address` should name a running Ray. Received 'auto': The current node timed out"
        with pytest.raises(ExperimentError, match=message), open_cluster("auto"):
            pass


@pytest.mark.integration
@pytest.mark.parametrize("prefix", ["", "ray://", "tcp://"])
def test_an_address_where_nobody_listens_is_refused_at_once(prefix: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"{prefix}127.0.0.1:{server.getsockname()[1]}"
        check_reachable(address, "Ray")
    with pytest.raises(ExperimentError, match=re.escape(f"No server listens at {address!r}")):
        check_reachable(address, "Ray")


@pytest.mark.parametrize("address", ["", "auto", "local", "ray://cluster"])
def test_addresses_without_a_port_are_left_to_the_client(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[object] = []
    monkeypatch.setattr(socket, "create_connection", lambda *where, **_: tried.append(where))
    check_reachable(address, "Ray")
    assert not tried


def test_requests_wait_until_the_command_answers_them() -> None:
    """The actor behind Ray's mailbox: answers reach the call that sent the request, in whatever order they come."""

    async def exchange() -> tuple[list[Any], list[Any]]:
        requests = _Requests()
        asked = [asyncio.create_task(requests.ask(Request((name,), ()))) for name in "ab"]
        taken = [await requests.take() for _ in asked]
        for number, request in reversed([one for one in taken if one is not None]):
            await requests.answer(number, ModelError(f"answer to {request.model[0]}"))
        await requests.close(2)
        return [str(await one) for one in asked], [await requests.take() for _ in range(2)]

    answers, left = asyncio.run(exchange())
    assert answers == ["answer to a", "answer to b"]
    assert left == [None, None]
