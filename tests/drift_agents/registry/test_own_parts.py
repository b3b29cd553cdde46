"""Parts of one's own that are called otherwise, or return something else, than their protocol says: one sentence."""

from __future__ import annotations

import re
from typing import Any, cast

import gymnasium as gym
import pytest
from drift_agents import make_agent, make_memory
from drift_agents.analysis.check_memory import check_memory
from drift_agents.controller.base import Decision, Direct
from drift_agents.embedding.base import HashedEmbedding, resolve_embedding
from drift_agents.envs.matching import Exact
from drift_agents.errors import ArgumentError, PartError
from drift_agents.llm.base import RuleModel
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.policy.base import RandomPolicy, Reply, make_policy
from drift_agents.stores.base import InProcessStore, make_store
from drift_agents.stores.services import CommonWords
from drift_agents.team.base import Member, check_members
from drift_agents.types import Retrieved, Verdict
from drift_agents.verifier.base import NoVerifier


def change(part: Any, **methods: Any) -> Any:
    """A part with other methods, of a class that is called `Mine`."""
    return type("Mine", (type(part),), methods)()


def play(**parts: Any) -> None:
    env = gym.make("DriftFrozenLake-v0", text=True)
    agent = make_agent(env, **parts)
    for episode in range(2):
        agent.run_episode(env, seed=0 if episode == 0 else None)


async def nothing(*_: Any) -> None:
    """An async method."""


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (
            lambda: make_memory("store", store=change(CommonWords(), search=lambda self, query: [])),
            "`search` of the memory service 'Mine' should be callable as search(query, k). Received search(query)",
        ),
        (
            lambda: make_memory("store", store=change(CommonWords(), add=lambda self: None)),
            "`add` of the memory service 'Mine' should be callable as add(text). Received add()",
        ),
        (
            lambda: make_memory("store", store=change(CommonWords(), delete=lambda self: None)),
            "`delete` of the memory service 'Mine' should be callable as delete(id). Received delete()",
        ),
        (
            lambda: make_store(change(InProcessStore(), search=lambda self, query: [])),
            "`search` of the store 'Mine' should be callable as search(query, k). Received search(query)",
        ),
        (
            lambda: play(memory=change(VanillaMemory(), retrieve=lambda self, state: Retrieved())),
            "`retrieve` of the memory 'Mine' should be callable as retrieve(state, k, now). Received retrieve(state)",
        ),
        (
            lambda: play(memory=change(VanillaMemory(), observe=nothing)),
            "`observe` of the memory 'Mine' should not be async: wrap it in a method that runs it to its end",
        ),
        (
            lambda: play(verifier=change(NoVerifier(), verify=lambda self, experience, memory: Verdict())),
            "`verify` of the verifier 'Mine' should be callable as verify(experience, memory, prefix, now). Received ",
        ),
        (
            lambda: play(policy=change(RandomPolicy(), decide=lambda self, view: Reply("0"))),
            "`decide` of the policy 'Mine' should be callable as decide(view, rng). Received decide(view)",
        ),
        (
            lambda: check_members([Member("a", change(RandomPolicy(), decide="left"))]),
            "`decide` of the policy 'Mine' should be a method. Received 'left'",
        ),
        (
            lambda: play(controller=change(Direct(), begin_episode=lambda self: None)),
            "`begin_episode` of the controller 'Mine' should be callable as begin_episode(task). Received ",
        ),
        (
            lambda: play(matching=change(Exact(), state_key=lambda self: 0)),
            "`state_key` of the matching 'Mine' should be callable as state_key(state). Received state_key()",
        ),
        (
            lambda: resolve_embedding(change(HashedEmbedding(), embed=lambda self: 0)),
            "`embed` of the embedding 'Mine' should be callable as embed(texts). Received embed()",
        ),
        (
            lambda: make_policy("llm", model=type("Mine", (RuleModel,), {"complete": lambda self, messages: 0})({})),
            "`complete` of the model 'Mine' should be callable as complete(messages, schema, parameters, sample_index)",
        ),
        (
            lambda: make_memory("memory_bank", model=object()),
            "the model 'object' should have what `Model` has. Missing: complete, name",
        ),
        (
            lambda: play(memory=CommonWords()),
            "the memory 'CommonWords' has `add` and `search` alone, which make a memory service: name it as the store ",
        ),
        (lambda: play(verifier=object()), "the verifier 'object' should have what `Verifier` has. Missing: begin_"),
    ],
    ids=[
        "service search", "service add", "service delete", "store", "memory", "async", "verifier", "policy", "member",
        "controller", "matching", "embedding", "model", "no model", "service as memory", "no verifier",
    ],
)  # fmt: skip
def test_what_cannot_be_called_is_refused_before_anything_is_played(use: Any, message: str) -> None:
    with pytest.raises(PartError, match=re.escape(message)):
        use()


@pytest.mark.parametrize(
    ("kind", "method", "result", "rule"),
    [
        ("policy", "decide", "0", "a value of type Reply. Received '0'"),
        ("policy", "decide", Reply(cast(str, 0)), "a Reply with a text, one of `view.actions`, and a Usage. Received "),
        ("memory", "retrieve", [], "a value of type Retrieved. Received []"),
        ("memory", "retrieve", Retrieved((), (1.0,)), "a weight in (0, 1] for each record. Received (1.0,)"),
        ("memory", "retrieve", Retrieved(notes=cast(Any, ("a note",))), "a Retrieved of Record and Note. Received Ret"),
        ("memory", "same_transitions", None, "a list of Record. Received None"),
        ("memory", "records", None, "a value of type Iterable. Received None"),
        ("verifier", "verify", None, "a value of type Verdict. Received None"),
        (
            "verifier",
            "verify",
            Verdict(removed=cast(Any, [3])),
            "a Verdict with `removed`, what `remove` of the memory",
        ),
        ("verifier", "consider", True, "a value of type Verdict. Received True"),
        ("verifier", "consider", Verdict(realigned=True), "a verdict without `realigned` after at most 1000 with it. "),
        ("verifier", "end_episode", None, "a value of type Iterable. Received None"),
        ("controller", "act", "0", "a value of type Decision. Received '0'"),
        (
            "controller",
            "act",
            Decision(cast(Any, 0), Reply("0"), ()),
            "a Decision with a PromptView and a Reply. Re",
        ),
    ],
)
def test_what_returns_something_else_is_named(kind: str, method: str, result: Any, rule: str) -> None:
    parts = {"policy": RandomPolicy(), "memory": VanillaMemory(), "verifier": NoVerifier(), "controller": Direct()}
    with pytest.raises(PartError, match=re.escape(f"`{method}` of the {kind} 'Mine' should return {rule}")):
        play(**{**parts, kind: change(parts[kind], **{method: lambda self, *_: result})})


def test_a_check_of_a_service_says_how_it_is_called() -> None:
    found = check_memory(lambda: change(CommonWords(), clock=lambda self: None), "mine", worlds=1, days=5)
    assert found.error == "`clock` of the memory service 'Mine' should be callable as clock(day). Received clock()"
    assert check_memory(CommonWords, "mine", worlds=1, days=5).error is None
    with pytest.raises(ArgumentError, match="should be"):
        make_store(object())
