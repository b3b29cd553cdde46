"""A LangChain agent on LangGraph that plays a lifetime of a drifting lake, in forty lines.

    pip install "drift-envs[langchain]" langchain-openai
    python examples/langchain_agent.py openai:MODEL

One thread of the checkpointer is one lifetime: what the agent saw in earlier episodes is its memory.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from drift_envs import DriftEnvsError
from drift_envs.integrations.lifetime import TextLifetime, lifetime_scores

PROMPT = (
    "You act in an environment of text, one episode after another, with the tool `act`. Go on until the episode has "
    "ended, then answer with what you learned. What was true in earlier episodes may no longer be true."
)


def play(model: Any, env_id: str, **arguments: Any) -> dict[str, float]:
    """Play a lifetime with a chat model that calls tools; returns the score by phase, and recovery."""
    lines: list[dict[str, Any]] = []
    life = TextLifetime(env_id, on_episode=lines.append, **arguments)

    @tool  # type: ignore[untyped-decorator, unused-ignore]
    def act(action: str) -> str:
        """Take an action of the present episode, spelled as `actions` shows it."""
        try:
            return json.dumps(life.act(action))
        except DriftEnvsError as error:
            return f"No action was taken: {error}"

    agent = create_agent(model, [act], system_prompt=PROMPT, checkpointer=InMemorySaver())
    while not life.is_over:  # an episode that the agent leaves is abandoned by the next `reset`
        message = {"role": "user", "content": json.dumps(life.reset())}
        agent.invoke({"messages": [message]}, {"configurable": {"thread_id": "life"}, "recursion_limit": 300})
        life.abandon()
    return lifetime_scores(lines, life.planned)


if __name__ == "__main__":
    print(play(init_chat_model(sys.argv[1]), "DriftFrozenLake-v0", schedule="frozen_lake/implicit", rounds=5))
