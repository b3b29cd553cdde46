"""What tests of language models share: the server."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.drift_agents.llm import chat_server


@pytest.fixture(scope="session")
def chat() -> ModuleType:
    """The module `chat_server`: `serve`, `said`, `refused`, `Response`."""
    return chat_server
