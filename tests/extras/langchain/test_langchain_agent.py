"""The agent of the example, with a chat model that calls tools by a rule; nothing leaves this machine."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain", reason="needs the extra `langchain`")

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from tests.extras.offline import offline  # noqa: F401

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "langchain_agent.py"
TURN = {
    "version": 1, "name": "turn", "env": "DriftFrozenLake-v0",
    "base": {"map": ["SFF", "HHG"]},
    "drifts": [{"name": "moved", "at": 4, "set": {"map": ["SHF", "FFG"]}}],
}  # fmt: skip


class Walker(BaseChatModel):
    """Goes along the first path until it has failed once, then along the second; `words` instead of an action."""

    words: str = ""
    seen: Any = None

    @property
    def _llm_type(self):
        return "walker"

    def bind_tools(self, tools, **arguments):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **arguments):
        self.seen.append([type(message).__name__ for message in messages])
        results = [json.loads(m.content) for m in messages if isinstance(m, ToolMessage) and m.content[0] == "{"]
        failed = any(result["ended"] and result["score"] == 0 for result in results)
        last = messages[-1]
        shown = json.loads(last.content) if last.content[0] == "{" else {"ended": True}
        message = AIMessage("I learned where the holes are.")
        if self.words and isinstance(last, HumanMessage):
            message = self.call(self.words, len(messages))
        elif not shown["ended"]:
            message = self.call(str(((1, 2, 2) if failed else (2, 2, 1))[shown["step"]]), len(messages))
        return ChatResult(generations=[ChatGeneration(message=message)])

    def call(self, action, number):
        return AIMessage("", tool_calls=[{"name": "act", "args": {"action": action}, "id": f"call {number}"}])


@pytest.fixture(scope="module")
def play():
    return runpy.run_path(str(EXAMPLE))["play"]


def test_the_agent_remembers_earlier_episodes_and_recovers(play):
    model = Walker(seen=[])
    scores = play(model, "DriftFrozenLake-v0", schedule=TURN, rounds=4)
    assert (scores["score_source"], scores["score_moved"], scores["recovered"]) == (1.0, 0.75, 1.0)
    kinds = model.seen[-1]
    assert kinds[0] == "SystemMessage"
    assert kinds.count("HumanMessage") == 8  # the transcript of all episodes


def test_an_action_that_cannot_be_read_ends_nothing_and_an_episode_that_is_left_is_abandoned(play):
    scores = play(Walker(words="north", seen=[]), "DriftFrozenLake-v0", schedule=TURN, rounds=1)
    assert scores["score"] == 0.0


def test_the_agent_has_forty_lines():
    code = EXAMPLE.read_text(encoding="utf-8").split('"""', 2)[2]
    assert len([line for line in code.splitlines() if line.strip()]) <= 40
