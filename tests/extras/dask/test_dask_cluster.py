"""Cells on Dask's workers: a scheduler and two worker processes on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from drift_agents.errors import ExperimentError
from drift_agents.experiment.clusters import open_cluster
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.runner import run_experiment

from tests.extras.cluster_contract import ClusterContract, make_data

distributed = pytest.importorskip("distributed", reason="needs the extra `dask`")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address="127.0.0.1:0",
        local_directory=str(tmp_path_factory.mktemp("dask")),
    ) as cluster:
        yield cluster.scheduler_address


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")
class TestDask(ClusterContract):
    backend = "dask"
    worker = "spawn_main"

    def test_a_client_of_this_process_is_used(self, address: str, tmp_path: Path) -> None:
        experiment = parse_experiment(make_data(tmp_path))
        with distributed.Client(address) as client:
            with open_cluster("dask") as cluster:
                assert cluster.cores == 2
            run_experiment(experiment, tmp_path / "run", backend="dask")
            assert client.status == "running"

    def test_the_address_of_the_environment(self, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", address)
        with open_cluster("dask") as cluster:
            assert cluster.cores == 2

    @pytest.mark.parametrize("wrong", ["foo", "10.0.0.1:xx", "tcp://"])
    def test_an_address_that_is_none_is_refused(self, wrong: str) -> None:
        with pytest.raises(ExperimentError, match="should be tcp://host:port"), open_cluster("dask", wrong):
            pass
