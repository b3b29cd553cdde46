"""Recorded lifetimes with the truth about their drifts, for stream learning and offline RL; needs the extra `dataset`.

* `DatasetOptions`, `write_dataset` - plays lifetimes into Parquet files
* `open_dataset`, `DatasetFolder` - reads them
* `write_minari` - the same in Minari's form
* `read_streams`, `STREAMS` - streams for drift detectors
"""

from drift_envs.datasets.folder import DatasetFolder, open_dataset
from drift_envs.datasets.minari import write_minari
from drift_envs.datasets.recorder import DatasetOptions, ReplayedEpisode, write_dataset
from drift_envs.datasets.streams import STREAMS, read_streams

__all__ = [
    "STREAMS",
    "DatasetFolder",
    "DatasetOptions",
    "ReplayedEpisode",
    "open_dataset",
    "read_streams",
    "write_dataset",
    "write_minari",
]
