"""Offline runs of Weights & Biases, read back from the files that would be uploaded; nothing leaves this machine."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

pytest.importorskip("wandb", reason="needs the extra `wandb`")

from wandb.proto import wandb_internal_pb2

from tests.extras.offline import offline  # noqa: F401
from tests.extras.tracker_contract import TrackerContract
from tests.processes import wait_until


def records(path):
    """The records of an offline run: LevelDB's log format, in blocks of 32 KiB, after a header of 7 bytes."""
    data, place, whole = path.read_bytes(), 7, b""
    assert data[:4] == b":W&B"
    while place + 7 <= len(data):
        left = 32768 - place % 32768
        if left < 7:  # no header fits into the rest of a block
            place += left
            continue
        _, length, kind = struct.unpack("<IHB", data[place : place + 7])
        whole += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # a whole record, or its last part
            record = wandb_internal_pb2.Record()
            record.ParseFromString(whole)
            yield record
            whole = b""


def read_finished(path):
    """The records of a run that has ended; its process writes them, and may still do so after `finish` has returned."""
    assert wait_until(lambda: any(record.WhichOneof("record_type") == "exit" for record in records(path)), 30)
    return list(records(path))


class TestWandb(TrackerContract):
    name = "wandb"

    def read(self, folder):
        found = {}
        for path in sorted(Path(folder).glob("wandb/offline-run-*/*.wandb")):
            name, about, series = "", {}, {}
            for record in read_finished(path):
                kind = record.WhichOneof("record_type")
                if kind == "run" and record.run.display_name:
                    name = record.run.display_name
                    about |= {item.key: json.loads(item.value_json) for item in record.run.config.update}
                items = record.history.item if kind == "history" else record.summary.update if kind == "summary" else ()
                row = {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items}
                for key, value in row.items():
                    if kind == "history" and not key.startswith("_") and key != "phase":
                        series.setdefault(key, []).append((row["_step"], value))
                    elif kind == "summary" and key.startswith("mean_score"):
                        series[key] = [(0, value)]
            found[f"{name} {path.stem}" if name in found else name] = about, series
        return found
