"""Event files of TensorBoard, read back by TensorBoard itself; nothing leaves this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("tensorboard", reason="needs the extra `tensorboard`")

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tests.documents import read_code, run_code
from tests.extras.offline import offline  # noqa: F401
from tests.extras.tracker_contract import TrackerContract


def load(path):
    return EventAccumulator(str(path)).Reload()


class TestTensorBoard(TrackerContract):
    name = "tensorboard"

    def read(self, folder):
        found = {}
        for path in sorted({file.parent for file in Path(folder).rglob("events.out.*")}):
            events = load(path)
            text = events.Tensors("settings/text_summary")[0].tensor_proto.string_val[0].decode()
            about = dict(line.strip().split(": ", 1) for line in text.splitlines())
            tags = events.Tags()["scalars"]
            found[path.name] = about, {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in tags}
        return found


def test_the_code_of_the_page_runs_and_phases_are_texts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    *_, code = read_code("docs/logs.md")
    run_code(code)
    (path,) = {file.parent for file in (tmp_path / "runs" / "tracking").rglob("events.out.*")}
    names = [event.tensor_proto.string_val[0].decode() for event in load(path).Tensors("phase/text_summary")]
    assert names == ["source", "reversal"]
