"""Cells on Ray's workers: two nodes on this machine, each with worker processes of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from drift_agents.errors import ExperimentError
from drift_agents.experiment.clusters import open_cluster
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.runner import run_experiment

from tests.extras.cluster_contract import ClusterContract, make_data

ray = pytest.importorskip("ray", reason="needs the extra `ray`")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    yield cluster.address
    ray.shutdown()
    cluster.shutdown()


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")
class TestRay(ClusterContract):
    backend = "ray"
    worker = "^ray::"

    def test_a_connection_of_this_process_is_used(self, address: str, tmp_path: Path) -> None:
        ray.init(address, log_to_driver=False)
        try:
            run_experiment(parse_experiment(make_data(tmp_path)), tmp_path / "run", backend="ray")
            assert ray.is_initialized()
            refused = pytest.raises(ExperimentError, match="should not be given where Ray is connected already")
            with refused, open_cluster("ray", address):
                pass
        finally:
            ray.shutdown()

    def test_the_address_of_the_environment(self, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RAY_ADDRESS", address)
        with open_cluster("ray") as cluster:
            assert cluster.cores == 2
