"""Cells on Ray's workers: two nodes on this machine, each with worker processes of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

import pytest
from drift_agents.errors import ExperimentError, UnknownNameError, UnusableAnswersError
from drift_agents.experiment.clusters import open_cluster
from drift_agents.experiment.loader import load_experiment, parse_experiment
from drift_agents.experiment.runner import run_experiment
from drift_agents.experiment.workers import play_in_pool
from drift_agents.llm.reask import AnswerMonitor
from drift_agents.llm.service import Service

from tests.drift_agents.experiment.cells import cell_files
from tests.extras.short_run import make_data
from tests.processes import children_of, command_of, is_alive, wait_until

ray = pytest.importorskip("ray", reason="needs the extra `ray`")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    yield cluster.address
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture
def sessions() -> Iterator[Path]:
    """A folder for the sessions of Ray: a short name, since it holds sockets."""
    with TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture
def begun(tmp_path: Path, sessions: Path) -> Iterator[tuple[subprocess.Popen[str], Path, dict[str, Any]]]:
    """A run with a cluster of its own on this machine."""
    data = make_data(tmp_path, seeds=30, rounds=8)
    file, folder = tmp_path / "tiny.yaml", tmp_path / "started"
    file.write_text(json.dumps(data))
    words = ["run", str(file), "--out", str(folder), "--jobs", "2", "--ray", "local"]
    environment = {k: v for k, v in os.environ.items() if k != "RAY_ADDRESS"}
    process = subprocess.Popen(
        [sys.executable, "-m", "drift_agents", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**environment, "RAY_TMPDIR": str(sessions)},
    )
    yield process, folder, data
    for pid in children_of(process.pid):
        os.kill(pid, signal.SIGKILL)
    process.kill()
    process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_core_of_ray_connects(
    begun: tuple[subprocess.Popen[str], Path, dict[str, Any]], sessions: Path, number: signal.Signals
) -> None:
    """The call in C is over after about a second; what it sets on SIGTERM must not end the process in its own way."""
    process, folder, _ = begun
    log = "ray/session_2*/logs/python-core-driver-*"  # the core's, which begins when it connects
    assert wait_until(lambda: any(sessions.glob(log)) or process.poll() is not None, 120)
    assert process.poll() is None, process.communicate()[1]
    started = children_of(process.pid)
    process.send_signal(number)
    errors = process.communicate(timeout=120)[1]
    assert process.returncode == 130, errors
    assert "What is done is kept; continue with: drift-agents run" in errors
    assert "Traceback" not in errors
    assert "***" not in errors  # a stack trace of C++
    assert not (folder / "held-by.json").exists()
    assert wait_until(lambda: not any(map(is_alive, started)), 10)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")
class TestRay:
    @pytest.fixture
    def started(
        self, begun: tuple[subprocess.Popen[str], Path, dict[str, Any]]
    ) -> tuple[subprocess.Popen[str], Path, dict[str, Any]]:
        """A run that has finished a cell."""
        process, folder, _ = begun
        assert wait_until(lambda: cell_files(folder) or process.poll() is not None, 120)
        assert process.poll() is None, process.communicate()[1]
        return begun

    def workers_of(self, process: subprocess.Popen[str]) -> list[int]:
        """Both worker processes."""

        def find() -> list[int]:
            return [
                pid for pid in children_of(process.pid) if command_of(pid).startswith(("ray::_play_cell", "ray::IDLE"))
            ]

        assert wait_until(lambda: len(find()) == 2 or process.poll() is not None)
        return find()

    def test_a_run_writes_the_same_bytes(self, address: str, tmp_path: Path) -> None:
        experiment = parse_experiment(make_data(tmp_path))
        here = run_experiment(experiment, tmp_path / "here", trace="all")
        there = run_experiment(experiment, tmp_path / "there", trace="all", backend="ray", address=address)
        assert there.read_bytes() == here.read_bytes()
        names = [path.name for path in sorted((tmp_path / "here" / "traces").iterdir())]
        assert len(names) == 12
        for name in names:
            same = [(tmp_path / run / "traces" / name).read_bytes() for run in ("here", "there")]
            assert same[0] == same[1]

    def test_cells_run_in_several_processes(self, address: str, tmp_path: Path) -> None:
        with open_cluster(address) as cluster:
            found = set(play_in_pool(cluster, _own_pid, [(tmp_path,)] * 8, 2))
        assert len(found) >= 2
        assert os.getpid() not in found

    def test_an_error_is_the_calls_own(self, address: str) -> None:
        with open_cluster(address) as cluster, pytest.raises(UnknownNameError, match="nowhere") as caught:
            list(play_in_pool(cluster, load_experiment, [("nowhere",), ("nowhere",)], 2))
        assert type(caught.value) is UnknownNameError

    def test_a_killed_worker_costs_its_cell_alone(
        self, started: tuple[subprocess.Popen[str], Path, dict[str, Any]], tmp_path: Path
    ) -> None:
        process, folder, data = started
        workers = self.workers_of(process)
        assert len(workers) == 2
        os.kill(workers[0], signal.SIGKILL)
        _, errors = process.communicate(timeout=240)
        assert process.returncode == 0, errors
        whole = run_experiment(parse_experiment(data), tmp_path / "whole", jobs=2)
        assert (folder / "episodes.jsonl").read_bytes() == whole.read_bytes()
        assert len(cell_files(folder)) == 90

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
    def test_no_worker_writes_after_the_end_of_its_run(
        self, started: tuple[subprocess.Popen[str], Path, dict[str, Any]], number: signal.Signals, tmp_path: Path
    ) -> None:
        process, folder, data = started
        workers = self.workers_of(process)
        process.send_signal(number)
        process.wait(120)
        left = contents(folder)
        # Ray 2.60 ends the workers of a killed program after 60 seconds.
        assert wait_until(lambda: not any(map(is_alive, workers)), 120)
        assert contents(folder) == left
        if number == signal.SIGTERM:
            assert process.returncode == 130
            assert "What is done is kept; continue with: drift-agents run" in process.communicate()[1]
            assert not (folder / "held-by.json").exists()
        whole = run_experiment(parse_experiment(data), tmp_path / "whole", jobs=2)
        again = run_experiment(parse_experiment(data), folder, jobs=2, resume=True)
        assert again.read_bytes() == whole.read_bytes()

    def test_a_connection_of_this_process_is_used(self, address: str, tmp_path: Path) -> None:
        ray.init(address, log_to_driver=False)
        try:
            run_experiment(parse_experiment(make_data(tmp_path)), tmp_path / "run", backend="ray")
            assert ray.is_initialized()
            refused = pytest.raises(ExperimentError, match="should not be given where Ray is connected already")
            with refused, open_cluster(address):
                pass
        finally:
            ray.shutdown()

    def test_the_address_of_the_environment(self, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RAY_ADDRESS", address)
        with open_cluster() as cluster:
            assert cluster.cores == 2


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")
class TestLanguageModels:
    """Workers send requests to the command, so that the model's server is asked as often as by one process."""

    @pytest.fixture
    def server(self) -> Iterator[Any]:
        pytest.importorskip("openai")
        from tests.drift_agents.llm import chat_server

        def answer(request: dict[str, Any]) -> Any:
            asked = json.dumps(request["messages"]).encode()
            return chat_server.said(json.dumps({"action": str(crc32(asked) % 4)}))

        with chat_server.serve(answer) as server:
            yield server

    def make_data(self, folder: Path, server: Any, **changes: Any) -> dict[str, Any]:
        policy = {"llm": {"model": "tiny", "base_url": server.url}}
        agents = {"memory": ["none", "vanilla"], "policy": policy}
        return make_data(folder, agents=agents, rounds=1, **changes)

    def test_a_run_writes_the_same_lines(self, server: Any, address: str, tmp_path: Path) -> None:
        experiment = parse_experiment(self.make_data(tmp_path, server, seeds=2))
        here = run_experiment(experiment, tmp_path / "here")
        asked = len(server.requests)
        there = run_experiment(experiment, tmp_path / "there", backend="ray", address=address)
        assert _timeless(there) == _timeless(here)
        assert len(server.requests) == 2 * asked > 0

    def test_invalid_answers_of_all_workers_stop_the_run(self, server: Any, address: str, tmp_path: Path) -> None:
        from tests.drift_agents.llm import chat_server

        server.answer = lambda _: chat_server.said("Hm.")
        experiment = parse_experiment(self.make_data(tmp_path, server, seeds=20))
        service = Service(monitor=AnswerMonitor())
        with pytest.raises(ExperimentError, match=r": 5\d of 5\d answers are invalid") as caught:
            run_experiment(experiment, tmp_path / "run", backend="ray", address=address, service=service)
        assert isinstance(caught.value.__cause__, UnusableAnswersError)
        assert caught.value.is_resumable

    def test_a_killed_worker_and_a_killed_head(self, server: Any, tmp_path: Path) -> None:
        """The first costs nothing but time; the second ends the run, which goes on without another request."""
        data = self.make_data(tmp_path, server, seeds=20)
        whole = run_experiment(parse_experiment(data), tmp_path / "whole", jobs=2)
        asked = len(server.requests)
        file, folder = tmp_path / "tiny.yaml", tmp_path / "killed"
        file.write_text(json.dumps(data))
        words = ["run", str(file), "--out", str(folder), "--jobs", "2", "--ray", "local"]
        environment = {k: v for k, v in os.environ.items() if k != "RAY_ADDRESS"}
        process = subprocess.Popen(
            [sys.executable, "-m", "drift_agents", *words], stderr=subprocess.PIPE, text=True, env=environment
        )

        def count_finished() -> int:
            return len(cell_files(folder))

        def kill(name: str) -> None:
            pid = next(pid for pid in children_of(process.pid) if name in command_of(pid))
            os.kill(pid, signal.SIGKILL)

        try:
            assert wait_until(lambda: count_finished() > 0 or process.poll() is not None, 240)
            assert process.poll() is None, process.communicate()[1]
            kill("ray::_play_cell")
            before = count_finished()
            assert wait_until(lambda: count_finished() > before or process.poll() is not None, 240)
            assert process.poll() is None, process.communicate()[1]
            for name in ("gcs_server", "raylet/raylet"):
                kill(name)
            _, errors = process.communicate(timeout=240)
        finally:
            for pid in children_of(process.pid):
                os.kill(pid, signal.SIGKILL)
            process.kill()
        assert process.returncode != 0, errors
        assert not (folder / "episodes.jsonl").exists()
        again = run_experiment(parse_experiment(data), folder, backend="ray", resume=True)
        assert _timeless(again) == _timeless(whole)
        assert len(server.requests) <= 2 * asked + 4  # of the killed ones, those that were under way


def _timeless(file: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return [{**line, "extra": {**line.get("extra", {}), "milliseconds": 0}} for line in lines]


def _own_pid(folder: Path) -> int:
    (folder / str(os.getpid())).touch()
    wait_until(lambda: len(list(folder.iterdir())) > 1)  # one worker alone does not take all calls
    return os.getpid()
