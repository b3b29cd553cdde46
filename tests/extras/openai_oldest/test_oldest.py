"""The exchanges with servers, by the oldest version of `openai` that is allowed."""

from tests.drift_agents.llm.conftest import chat as chat
from tests.drift_agents.llm.test_odd_servers import *  # noqa: F403
from tests.drift_agents.llm.test_openai_compatible import *  # noqa: F403
