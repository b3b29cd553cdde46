"""AdaMEM: strategies made at test time, as often as the effort says.

* `AdaMem` - the controller
* `EFFORTS` - how often a strategy is made

Source: Zhang, Li, Payani and Wang, "AdaMEM: test-time adaptive memory for language agents", section 3.1,
algorithm 1 and appendix B.2. `docs/memories/adamem.md` says what is faithful and what was decided here.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import replace
from functools import lru_cache, partial
from importlib.resources import files

import numpy as np

from drift_agents.checks import check_choice, check_flag, check_integer
from drift_agents.controller.base import Decision, Render
from drift_agents.controller.strategy import HORIZON, STRATEGY, Strategy, make_strategy, tell_exemplars
from drift_agents.llm.base import Completion, ask
from drift_agents.llm.rules import RuleModel
from drift_agents.llm.template import read_messages
from drift_agents.memory.base import Exemplar, Memory, recall_exemplars
from drift_agents.policy.base import LanguagePolicy, Policy, Reply, SideQuestion
from drift_agents.prompt.lessons import parse_trajectories
from drift_agents.prompt.view import ANSWER, parse_prompt
from drift_agents.types import Episode, Removed, Thought

EFFORTS = ("low", "high", "max")
"""`low`: a strategy stays until a refresh is asked for. `high`: it is made when memory is asked for, and
serves one step. `max`: it is made at every step."""

ON_REMOVED = ("drop", "keep")
"""What `low` does with its strategy when a verifier takes away what it rests on."""

_FIELDS = {"high": "request_memory", "low": "refresh"}


class AdaMem:
    """Strategies made at test time, as often as the effort requires (AdaMEM, algorithm 1).

    * `high`: from the state alone the policy has an action in mind and says whether memory is asked. If
      so, memory is asked, a strategy made of what it recalls, the action decided again, the strategy dropped.
    * `low`: the strategy in force stands in the prompt. The policy has an action in mind and says
      whether the strategy is made anew. If so, the new one takes its place, and the action is decided again.
    * `max`: a strategy is made at every step (the paper's ablations).

    The state is what `render(recall=False)` shows: the present observation and the whole history of
    the episode, beside what a verifier vouches for.

    A policy that is a language model (`drift_agents.policy.base.LanguagePolicy`) is asked whether it asks, and
    makes the strategy. In the place of any other, declared rules answer: `high` asks where the prompt
    holds no experience of the present state; `low` asks where there is no strategy, or where for
    `patience` steps in a row the present state was none that the strategy names. The strategy tells
    the ways of what was recalled (`drift_agents.controller.strategy`).

    Args:
        effort: `low`, `high` or `max`.
        strategy: whether strategies are made; without them the prompt shows what memory recalls itself.
        trajectories: whether memory is asked; without it the strategy is made of the state alone, and
            the rules then know nothing to say, so that none is made.
        on_removed: `drop` or `keep`: what `low` does with a strategy when a verifier takes away a
            record that it rests on.
        patience: offline, after how many steps in a row that the strategy does not foresee `low` asks
            for another one; `None` for never.
        k: how many experiences a strategy is made of; the memory's own number if not given.
        horizon: offline, steps of a way that a strategy tells for each experience, at the most.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> AdaMem(effort="high").name
        'adamem'
        >>> AdaMem(effort="some")
        Traceback (most recent call last):
        drift_agents.errors.ArgumentError: `effort` should be one of low, high, max. Received 'some'
    """

    name = "adamem"

    def __init__(
        self,
        *,
        effort: str = "low",
        strategy: bool = True,
        trajectories: bool = True,
        on_removed: str = "drop",
        patience: int | None = 1,
        k: int | None = None,
        horizon: int = HORIZON,
    ) -> None:
        self.effort = check_choice("effort", effort, EFFORTS)
        self.strategy = check_flag("strategy", strategy)
        self.trajectories = check_flag("trajectories", trajectories)
        self.rule = check_choice("on_removed", on_removed, ON_REMOVED)
        self.patience = check_integer("patience", patience, optional=True)
        self.k = check_integer("k", k, optional=True)
        check_integer("horizon", horizon)
        self._rules = RuleModel({STRATEGY["title"]: partial(make_strategy, horizon=horizon)})
        self._current: Strategy | None = None
        self._astray = 0

    def begin_episode(self, task: str) -> None:
        """Nothing of the last episode's strategy stays."""
        self._current, self._astray = None, 0

    def act(self, state: str, memory: Memory, policy: Policy, render: Render, rng: np.random.Generator) -> Decision:
        """Decide, with as many questions as the effort asks for."""
        if self.effort == "max":
            return self._decide_again(None, state, memory, policy, render, rng)
        inner = None if self._current is None else self._current.text
        prompt, shown = render(recall=False, strategy=inner)
        reply, wants = self._propose(state, policy, prompt, render, rng)
        first = Decision(prompt, reply, shown, inner)
        return self._decide_again(first, state, memory, policy, render, rng) if wants else first

    def _decide_again(
        self,
        first: Decision | None,
        state: str,
        memory: Memory,
        policy: Policy,
        render: Render,
        rng: np.random.Generator,
    ) -> Decision:
        """Ask memory, make a strategy, and decide; what was in mind before stays where memory has nothing."""
        if not self.strategy:
            prompt, shown = render(recall=self.trajectories)
            return _after(first, Decision(prompt, policy.decide(prompt, rng), shown))
        exemplars = recall_exemplars(memory, state, self.k, render.now) if self.trajectories else ()
        made = self._make(exemplars, policy, render, rng)
        if made is None:
            if first is not None:
                return first
            prompt, shown = render(recall=False)
            return Decision(prompt, policy.decide(prompt, rng), shown)
        thought, answer, strategy = made
        if self.effort == "low":
            self._current, self._astray = strategy, 0
        prompt, shown = render(recall=False, strategy=strategy.text)
        reply = policy.decide(prompt, rng)
        # What was in mind under another strategy is no baseline without memory.
        baseline = None if first is None or first.strategy is not None else first.reply.text.strip()
        return _after(
            first,
            Decision(
                prompt,
                replace(reply, usage=reply.usage + answer.usage),
                (*shown, *sorted(strategy.evidence - set(shown))),
                strategy.text,
                thought._replace(baseline=baseline),
                (thought.instructions, thought.question, thought.answer),
            ),
        )

    def _make(
        self, exemplars: tuple[Exemplar, ...], policy: Policy, render: Render, rng: np.random.Generator
    ) -> tuple[Thought, Completion, Strategy] | None:
        """How a strategy was made, what that cost, and the strategy; `None` where rules have nothing to make one of."""
        if not exemplars and not isinstance(policy, LanguagePolicy):
            return None
        prompt, _ = render(recall=False)
        messages = read_messages(
            "controller/templates/adamem_strategy.txt",
            k=str(len(exemplars)),
            prompt=prompt.removesuffix(ANSWER).rstrip(),
            experiences=tell_exemplars(exemplars),
        )
        if isinstance(policy, LanguagePolicy):
            answer = policy.answer(messages, STRATEGY, self._rules, rng)
        else:
            answer = ask(self._rules, messages, STRATEGY)
        text = "\n".join(f"- {bullet}" for bullet in answer.data["strategy"])
        evidence = frozenset(record.id for exemplar in exemplars for record in exemplar.steps)
        told = json.dumps(answer.data, ensure_ascii=False)
        return Thought(messages[0].content, messages[1].content, told, text), answer, Strategy(text, evidence)

    def _propose(
        self, state: str, policy: Policy, prompt: str, render: Render, rng: np.random.Generator
    ) -> tuple[Reply, bool]:
        """The action in mind, and whether memory is asked."""
        if isinstance(policy, LanguagePolicy):
            return policy.decide_and_say(prompt, SideQuestion(_FIELDS[self.effort], _read(self.effort)), rng)
        wants = not parse_prompt(prompt).here if self.effort == "high" else self._is_astray(state, render)
        return policy.decide(prompt, rng), wants

    def _is_astray(self, state: str, render: Render) -> bool:
        """The rule of `low`: there is no strategy, or it has not foreseen where one is for too long."""
        if self._current is None:
            return True
        key = render.matching.state_key
        foreseen: set[Hashable] = {key(named) for way in parse_trajectories(self._current.text) for named in way.states}
        self._astray = 0 if key(state) in foreseen else self._astray + 1
        return self.patience is not None and self._astray >= self.patience

    def on_removed(self, removed: Removed) -> None:
        """Drop the strategy when a record that it rests on is gone, unless it is to be kept."""
        current = self._current
        if current is not None and self.rule == "drop" and not current.evidence.isdisjoint(removed.records):
            self._current, self._astray = None, 0

    def end_episode(self, result: Episode) -> None:
        """The strategy goes with the episode."""
        self._current, self._astray = None, 0


def _after(first: Decision | None, second: Decision) -> Decision:
    """The second decision, with what the first one cost."""
    if first is None:
        return second
    reply = replace(second.reply, usage=first.reply.usage + second.reply.usage)
    return second._replace(reply=reply, aside=(first.prompt, first.reply.text, *second.aside))


@lru_cache(maxsize=4)
def _read(effort: str) -> str:
    """What is said beside the prompt of a language model."""
    return files("drift_agents").joinpath(f"controller/templates/adamem_{effort}.txt").read_text("utf-8").strip()
