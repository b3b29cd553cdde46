"""What tests of language models share: the server, and a schedule."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.drift_agents.llm import chat_server


@pytest.fixture(scope="session")
def chat() -> ModuleType:
    """The module `chat_server`: `serve`, `said`, `refused`, `Response`."""
    return chat_server


@pytest.fixture(scope="session")
def puddle(puddle: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of a schedule that drifts after two episodes."""
    path = tmp_path_factory.mktemp("schedules") / "puddle.yaml"
    path.write_text(puddle.replace("at: 4", "at: 2"), encoding="utf-8")
    return str(path)
