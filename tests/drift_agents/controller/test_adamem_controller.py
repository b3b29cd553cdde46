"""AdaMEM's controller: when it requests a strategy, its prompts, and when a strategy is dropped."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from drift_agents.agent.agent import Agent
from drift_agents.controller.adamem import RETRIEVED, STRATEGY, AdaMem, FollowedStrategy, make_strategy, tell_exemplars
from drift_agents.controller.base import Controller, Decision, make_controller
from drift_agents.envs.matching import Exact
from drift_agents.errors import ArgumentError
from drift_agents.llm.base import Completion
from drift_agents.memory.base import Exemplar, make_memory
from drift_agents.policy.base import LanguagePolicy, Reply, SideQuestion, make_policy
from drift_agents.prompt.lessons import parse_trajectories, read_line, read_view
from drift_agents.prompt.view import PromptView
from drift_agents.types import AgentClock, Outcome, Record, RecordId, Removed, Usage

import drift_envs  # noqa: F401 - registers the environments
from drift_envs.utils.json_schema import violations

LAKE: dict[str, Any] = {
    "version": 1,
    "name": "line",
    "env": "DriftFrozenLake-v0",
    "clock": "episode",
    "base": {"map": ["SFF", "HHF", "FFG"]},
    "drifts": [],
}


def record(number: int, state: str, after: str, ended: bool = False) -> Record:
    outcome = Outcome(after, float(ended), ended)
    return Record(number, state, "go", ((outcome, 1.0),), 1, AgentClock(0, number))


STEPS = (record(0, "[1]", "[2]"), record(1, "[2]", "[3]"), record(2, "[3]", "[4]", ended=True))


class Past:
    """A memory that recalls one trajectory."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int | None]] = []
        self.found: tuple[Exemplar, ...] = (Exemplar(STEPS, 1.0, 0.9),)

    def exemplars(self, state: str, k: int | None, now: AgentClock) -> tuple[Exemplar, ...]:
        self.asked.append((state, k))
        return self.found


class Rendering:
    """Makes prompts, and notes what was asked for."""

    now, matching = AgentClock(1, 9), Exact()

    def __init__(self, state: str, known: tuple[Any, ...] = (), actions: tuple[str, ...] = ("go", "stay")) -> None:
        self.state, self.known, self.actions = state, known, actions
        self.calls: list[tuple[bool, str | None]] = []

    def __call__(
        self, recall: bool = True, strategy: str | None = None, own_steps: bool = False
    ) -> tuple[PromptView, tuple[RecordId, ...]]:
        self.calls.append((recall, strategy))
        self.shows_own_steps = own_steps or not recall
        lessons = () if strategy is None else (strategy,)
        return PromptView("Go.", self.state, self.actions, self.known, lessons=lessons), ()


class Doer:
    """Goes where a strategy stands in the prompt, else stays."""

    name = "doer"

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        return Reply("go" if view.lessons else "stay", tokens_in=10)


class First:
    """Takes the first admissible action."""

    name = "first"

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        return Reply(view.actions[0])


class Speaker(Doer):
    """A policy that also answers other questions."""

    def __init__(self, wants: bool) -> None:
        self.wants = wants
        self.asides: list[SideQuestion] = []
        self.questions: list[tuple[Any, Any]] = []

    def decide_and_say(self, view: PromptView, aside: SideQuestion, rng: np.random.Generator) -> tuple[Reply, bool]:
        self.asides.append(aside)
        return self.decide(view, rng), self.wants

    def answer(self, messages: Any, schema: Mapping[str, Any], rules: Any, rng: Any) -> Completion:
        self.questions.append((messages, schema))
        data = {"reasoning": "", "strategy": ["Just go."]}
        return Completion(json.dumps(data), data, Usage(1, 100))


def decide(
    controller: AdaMem, state: str, memory: Any, policy: Any, known: tuple[Any, ...] = ()
) -> tuple[Decision, Rendering]:
    render = Rendering(state, known)
    return controller.act(state, memory, policy, render, np.random.default_rng(0)), render


def test_it_keeps_the_protocol() -> None:
    assert isinstance(make_controller("adamem"), Controller)
    assert isinstance(Speaker(True), LanguagePolicy)
    assert not isinstance(Doer(), LanguagePolicy)


def test_high_asks_decides_again_and_drops_the_strategy() -> None:
    controller, memory = AdaMem(effort="high", k=2), Past()
    made, render = decide(controller, "[1]", memory, Doer())
    assert memory.asked == [("[1]", 2)]
    assert [call[0] for call in render.calls] == [False, False, False], "trajectories stand in no prompt"
    assert (made.reply.text, made.reply.tokens_in) == ("go", 20), "both answers are paid for"
    assert made.thought is not None
    assert made.thought.baseline == "stay"
    assert made.retrieved == (0, 1, 2)
    again, render = decide(controller, "[2]", memory, Doer(), (parse_step(),))
    assert render.calls == [(False, None)], "no strategy is left, and what is known of this state needs no asking"
    assert (again.reply.text, again.thought, again.strategy) == ("stay", None, None)


def parse_step() -> Any:
    return read_line('- in [2] action "go" led to [3] (score 0; seen once; last at step 8)')


def test_low_keeps_its_strategy_as_long_as_it_foresees() -> None:
    controller, memory = AdaMem(effort="low", patience=2), Past()
    refreshed = []
    for state in ("[1]", "[2]", "[3]", "[8]", "[2]", "[8]", "[9]", "[9]"):
        made, _ = decide(controller, state, memory, Doer())
        assert made.strategy is not None
        refreshed.append(made.thought is not None)
    assert refreshed == [True, False, False, False, False, False, True, False]
    first = AdaMem(effort="low")
    made, _ = decide(first, "[1]", memory, Doer())
    assert made.thought is not None
    assert made.thought.baseline == "stay", "there was no strategy before"
    made, _ = decide(first, "[9]", memory, Doer())
    assert made.thought is not None
    assert made.thought.baseline is None, "the action under another strategy is no baseline"


def test_low_keeps_a_strategy_of_another_task_while_its_next_step_is_admissible() -> None:
    """No state of it is ever seen again, as where houses and tasks differ."""
    controller, memory = AdaMem(effort="low"), Past()
    steps = tuple(record(n, f"[{n}]", f"[{n + 1}]")._replace(action=action) for n, action in enumerate("abc"))
    memory.found = (Exemplar(steps, 1.0, 0.9),)
    refreshed = []
    for number, actions in enumerate(["ax", "bx", "xy", "cx", "xyz", "ax"]):
        render = Rendering(f"[9{number}]", actions=tuple(actions))
        made = controller.act(render.state, memory, First(), render, np.random.default_rng(0))
        refreshed.append(made.thought is not None)
    # a and b are taken; c is not admissible, so there is a new strategy, whose first step a comes last.
    assert refreshed == [True, False, True, True, True, False]


def test_where_every_action_is_admissible_states_decide() -> None:
    controller, memory = AdaMem(effort="low"), Past()
    refreshed = [decide(controller, state, memory, Doer())[0].thought is not None for state in ("[1]", "[2]", "[9]")]
    assert refreshed == [True, False, True]


def test_a_strategy_is_followed_from_its_last_step_taken() -> None:
    told = (
        'From [1] do "a" to get to [2], then do "b" to get to [3], then do "c" to get to [4]: score 1, the end, last '
    )
    followed = FollowedStrategy(f"What worked: {told}seen at step 7. From here on be careful.")
    assert followed.next_steps() == {"a"}
    followed.take("x")
    followed.take("b")
    assert followed.next_steps() == {"c"}, "a was left out"
    followed.take("c")
    assert followed.next_steps() == set()
    assert followed.foresees("[4]", Exact())
    assert not followed.foresees("[5]", Exact())


def test_without_patience_it_never_asks_again() -> None:
    controller, memory = AdaMem(effort="low", patience=None), Past()
    for state in ("[1]", *["[9]"] * 20):
        decide(controller, state, memory, Doer())
    assert len(memory.asked) == 1
    controller.begin_episode("Go.")
    decide(controller, "[9]", memory, Doer())
    assert len(memory.asked) == 2, "nothing of the last episode's strategy stays"


@pytest.mark.parametrize(("rule", "gone", "asked"), [("drop", 1, 2), ("keep", 1, 1), ("drop", 7, 1)])
def test_low_drops_or_keeps_a_strategy_whose_evidence_fell(rule: str, gone: int, asked: int) -> None:
    controller, memory = AdaMem(effort="low", on_removed=rule, patience=None), Past()
    decide(controller, "[1]", memory, Doer())
    controller.on_removed(Removed((gone,)))
    decide(controller, "[2]", memory, Doer())
    assert len(memory.asked) == asked


def test_max_makes_a_strategy_at_every_step() -> None:
    controller, memory = AdaMem(effort="max"), Past()
    for state in ("[1]", "[1]", "[2]"):
        made, render = decide(controller, state, memory, Doer())
        assert made.thought is not None
        assert made.thought.baseline is None
        assert len(render.calls) == 2
    assert len(memory.asked) == 3


def test_ablations() -> None:
    memory = Past()
    made, render = decide(AdaMem(effort="max", strategy=False), "[1]", memory, Doer())
    assert (render.calls, made.thought, memory.asked) == ([(True, None)], None, []), "memory itself, no strategy"
    assert render.shows_own_steps
    made, render = decide(AdaMem(effort="max", trajectories=False), "[1]", memory, Doer())
    assert (made.thought, memory.asked, render.calls) == (None, [], [(False, None)]), "rules know nothing to say"
    made, render = decide(AdaMem(effort="max", trajectories=False), "[1]", memory, Speaker(True))
    assert made.strategy == "- Just go."
    assert memory.asked == []
    made, render = decide(AdaMem(effort="max", trajectories=False, strategy=False), "[1]", memory, Doer())
    assert render.calls == [(False, None)]


def test_an_empty_memory_changes_nothing() -> None:
    memory = Past()
    memory.found = ()
    for effort in ("low", "high", "max"):
        made, _ = decide(AdaMem(effort=effort), "[1]", memory, Doer())
        assert (made.reply.text, made.thought) == ("stay", None)


@pytest.mark.parametrize(("effort", "field"), [("low", "refresh"), ("high", "request_memory")])
def test_a_language_model_says_itself_whether_it_asks(effort: str, field: str) -> None:
    memory, silent, asking = Past(), Speaker(False), Speaker(True)
    made, _ = decide(AdaMem(effort=effort), "[1]", memory, silent)
    assert (made.thought, memory.asked) == (None, [])
    assert silent.asides[0].field == field
    assert field in silent.asides[0].text
    made, _ = decide(AdaMem(effort=effort), "[1]", memory, asking)
    assert made.strategy == "- Just go."
    assert made.reply.text == "go"
    assert (made.reply.model_calls, made.reply.tokens_in) == (1, 120)
    (messages, schema) = asking.questions[0]
    assert schema is STRATEGY
    assert "1 retrieved experiences" in " ".join(messages[0].content.split())
    assert RETRIEVED + "Experience 1 (similarity 0.9; final outcome: score 1):" in messages[1].content
    assert "Answer with one admissible action" not in messages[1].content


def test_the_rule_tells_the_ways_of_what_was_retrieved() -> None:
    message = (
        "Any - in [5] state" + RETRIEVED + tell_exemplars([Exemplar(STEPS, 1.0, 0.91), Exemplar(STEPS[2:], 1.0)] * 2)
    )
    data = make_strategy(message)
    assert violations(data, STRATEGY) == []
    assert len(data["strategy"]) == 3
    assert [way.states for bullet in data["strategy"] for way in parse_trajectories(bullet)] == [
        ("[1]", "[2]", "[3]", "[4]"),
        ("[3]", "[4]"),
        ("[1]", "[2]", "[3]", "[4]"),
    ]
    (way,) = parse_trajectories(make_strategy(message, horizon=2)["strategy"][0])
    assert (way.states, way.ended) == (("[1]", "[2]", "[3]"), False)
    assert violations(make_strategy(RETRIEVED + "None."), STRATEGY) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"effort": "some"}, "`effort` should be one of low, high, max. Received 'some'"),
        ({"on_removed": "?"}, "`on_removed` should be one of drop, keep. Received '?'"),
        ({"strategy": 1}, "`strategy` should be true or false. Received 1"),
        ({"patience": 0}, "`patience` should be a whole number, at least 1, or None. Received 0"),
        ({"k": True}, "`k` should be a whole number in the interval [1, 16], or None. Received True"),
        ({"k": 17}, "`k` should be a whole number in the interval [1, 16], or None. Received 17"),
        ({"horizon": None}, "`horizon` should be a whole number, at least 1. Received None"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        make_controller("adamem", **options)


def play(memory: str, controller: Controller, episodes: int = 12, **options: Any) -> tuple[Agent, list[Any]]:
    env = gym.make("DriftFrozenLake-v0", schedule=LAKE, text=True)
    agent = Agent(make_policy("planner"), make_memory(memory, **options), controller=controller)
    return agent, [agent.run_episode(env, seed=0 if n == 0 else None) for n in range(episodes)]


@pytest.mark.parametrize("memory", ["adamem", "synapse"])
@pytest.mark.parametrize("effort", ["low", "high", "max"])
def test_on_a_lake_words_are_enough(memory: str, effort: str) -> None:
    """The strategy is the policy's only information about earlier episodes, and it repeats the path that worked."""
    _, episodes = play(memory, AdaMem(effort=effort))
    worked = next(n for n, episode in enumerate(episodes) if episode.score == 1)
    later = episodes[worked + 1 :]
    assert later
    assert {episode.score for episode in later} == {1.0}
    refreshes = {episode.refreshes for episode in later}
    if memory == "adamem":
        assert refreshes == ({1} if effort == "low" else {episodes[-1].steps})
    for episode in later:
        start = episode.trace[0].experience.now.step
        for step in episode.trace:
            view = read_view(step.prompt)
            assert not view.here
            assert len(view.elsewhere) == step.experience.now.step - start, "of this episode alone"


def test_costs_are_told() -> None:
    _, direct = play("adamem", make_controller("direct"))
    _, low = play("adamem", AdaMem(effort="low"))
    _, high = play("adamem", AdaMem(effort="max"))
    assert [episode.score for episode in direct] == [episode.score for episode in low] == [e.score for e in high]
    assert 0 < low[-1].tokens_estimated < high[-1].tokens_estimated
    assert (direct[-1].refreshes, low[-1].refreshes, high[-1].refreshes) == (0, 1, 4)
    assert direct[-1].trace[0].thought is None
    assert low[-1].trace[0].thought is not None
