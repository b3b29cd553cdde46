"""Recorded lifetimes with labels of their drifts, for stream learning and offline RL; needs the extra `dataset`."""

from drift_envs.datasets.folder import DatasetFolder, open_dataset
from drift_envs.datasets.recorder import DatasetOptions, ReplayedEpisode, write_dataset
from drift_envs.datasets.streams import STREAMS, read_streams, write_minari

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
