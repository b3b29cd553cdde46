"""MLflow's file store, read back by MLflow itself; nothing leaves this machine."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("mlflow", reason="needs the extra `mlflow`")

from tests.extras.offline import offline  # noqa: F401
from tests.extras.tracker_contract import TrackerContract

pytestmark = pytest.mark.filterwarnings("ignore:The filesystem tracking backend:FutureWarning")


class TestMlflow(TrackerContract):
    name = "mlflow"

    def read(self, folder):
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        from mlflow.tracking import MlflowClient

        client = MlflowClient(tracking_uri=folder.resolve().as_uri())
        found = {}
        for run in client.search_runs([experiment.experiment_id for experiment in client.search_experiments()]):
            keys = run.data.metrics
            series = {
                key: [(metric.step, metric.value) for metric in client.get_metric_history(run.info.run_id, key)]
                for key in keys
            }
            name = run.info.run_name
            assert run.data.tags["phase_0"] in ("source", "always")
            assert run.info.status == "FINISHED"
            found[f"{name} {run.info.run_id}" if name in found else name] = dict(run.data.params), series
        return found
