"""AgentLab's `GenericAgent`, unchanged, on the drifting shop: its loop, prompts and parser, and a scripted model.

AgentLab belongs to no extra, since its dependencies do not fit those of the project; `docs/browsergym.md` has the
commands that install it beside the extra. Without it these tests are skipped.
"""

from __future__ import annotations

import json
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import drift_envs.integrations.browsergym  # noqa: F401  registers the task
from drift_envs.integrations.browsergym import SHOP
from tests.drift_agents.llm.chat_server import Response, said, serve
from tests.extras.browsergym.bids import choose

if find_spec("agentlab") is None:
    pytest.skip("AgentLab is not installed, see docs/browsergym.md", allow_module_level=True)

pytestmark = [
    # AgentLab's loop leaves the file of its log open
    pytest.mark.filterwarnings("ignore:unclosed file"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
CALM = {"version": 1, "name": "calm", "env": SHOP, "tasks": {"pool": 2}}


def read_prompt(request: dict[str, Any]) -> str:
    """The text of a request's last message."""
    content = request["messages"][-1]["content"]
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def answer(request: dict[str, Any]) -> Response:
    """A reply in the form that the prompt prescribes."""
    tree = read_prompt(request).rpartition("## AXTree:")[2].partition("## Focused element")[0]
    return said(f"<think>\nThe next control.\n</think>\n\n<action>\n{choose(tree)}\n</action>")


def test_a_generic_agent_shops_with_a_scripted_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else its import downloads prices
    monkeypatch.setenv("VLLM_API_KEY", "none")
    generic = import_module("agentlab.agents.generic_agent.generic_agent")
    flags = import_module("agentlab.agents.generic_agent.agent_configs").FLAGS_GPT_4o.copy()
    models = import_module("agentlab.llm.chat_api")
    loop = import_module("agentlab.experiments.loop")
    flags.max_prompt_tokens = None  # tables that count tokens are downloaded
    monkeypatch.setattr(loop, "count_tokens", lambda text, *rest, **more: len(text.split()))
    task = {"schedule": CALM, "episodes": 2}
    env_args = loop.EnvArgs("drift_webshop", task_seed=3, max_steps=40, task_kwargs=task)
    with serve(answer) as server:
        monkeypatch.setenv("VLLM_API_URL", server.url)
        model = models.SelfHostedModelArgs(model_name="scripted", backend="vllm", max_new_tokens=512)
        run = loop.ExpArgs(generic.GenericAgentArgs(chat_model_args=model, flags=flags), env_args)
        run.prepare(tmp_path)
        run.run()
    summary = json.loads((Path(run.exp_dir) / "summary_info.json").read_text())
    assert summary["err_msg"] is None, summary["stack_trace"]
    assert summary["terminated"]
    assert not summary["truncated"]
    assert 0.0 < summary["cum_reward"] <= 2.0
    prompts = [read_prompt(request) for request in server.requests]
    assert len(prompts) == summary["n_steps"], "the parser of the agent refused a reply"
    assert all("Find me" in prompt for prompt in prompts)
    assert "fill(" in prompts[2], "the agent's own history"
