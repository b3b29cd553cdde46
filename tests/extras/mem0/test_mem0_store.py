"""mem0, held to the contract of stores; nothing leaves this machine."""

from __future__ import annotations

import gc
import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from drift_agents.errors import ArgumentError
from drift_agents.stores.mem0 import Mem0Store

from tests.drift_agents.stores.store_contract import PersistentStoreContract
from tests.extras.offline import offline

__all__ = ["offline"]

if find_spec("mem0") is None:  # not imported here: the adapter sets where mem0 keeps its settings first
    pytest.skip("needs the extra `mem0`", allow_module_level=True)


class TestMem0(PersistentStoreContract):
    name = "mem0"
    finds_blanks = False


def test_telemetry_is_off_and_the_home_folder_is_left_alone() -> None:
    Mem0Store().add("a river", {})
    from mem0.memory.telemetry import MEM0_TELEMETRY

    assert MEM0_TELEMETRY is False
    assert Path(os.environ["MEM0_DIR"]).resolve() != Path.home() / ".mem0"
    assert not (Path.home() / ".mem0").exists()


def test_it_only_adds() -> None:
    """A statement that contradicts another one replaces nothing: mem0 without a language model has no update."""
    store = Mem0Store()
    for end in ("open", "closed", "open"):
        store.add(f"the bridge is {end}", {})
    assert [text for _, text, _ in store.entries()] == [f"the bridge is {end}" for end in ("open", "closed", "open")]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_folder_is_opened_once(tmp_path: Path) -> None:
    store = Mem0Store(path=tmp_path)
    with pytest.raises(ArgumentError, match="`path` should be a folder of this store or a new one"):
        Mem0Store(path=tmp_path)
    gc.collect()  # Qdrant leaves the lock file open that it could not lock
    store.close()
    Mem0Store(path=tmp_path).close()
