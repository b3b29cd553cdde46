"""AdaMEM: strategies made at test time, as often as the effort requires.

Source: Zhang, Li, Payani and Wang, "AdaMEM: test-time adaptive memory for language agents", section 3.1,
algorithm 1 and appendix B.2. `docs/memories/adamem.md` says what is faithful and what was decided here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from drift_agents.controller.base import Decision, Render
from drift_agents.envs.matching import Matching
from drift_agents.errors import ArgumentError
from drift_agents.llm.base import Completion, RuleModel, ask, object_schema, read_messages
from drift_agents.memory.base import Exemplar, Memory, recall_exemplars
from drift_agents.memory.episodic import MOST
from drift_agents.policy.base import LanguagePolicy, Policy, Reply, SideQuestion, decide
from drift_agents.prompt.lessons import build_trajectories, parse_trajectories, read_line, render_trajectory
from drift_agents.prompt.view import ANSWER, PromptView, Recollection
from drift_agents.types import Episode, RecordId, Removed, Thought
from drift_envs.checks import check_choice, check_count, check_flag

HORIZON = 20
"""The maximum number of steps of a bullet."""

EFFORTS = ("low", "high", "max")
"""`low`: a strategy stays in force until a refresh is requested. `high`: one is made when memory is requested, for
one step. `max`: one is made at each step."""

ON_REMOVED = ("drop", "keep")
"""What `low` does with its strategy when a verifier removes a record of its evidence."""

_FIELDS = {"high": ("request_memory", "memory_request_rationale"), "low": ("refresh", "")}


class AdaMem:
    """Strategies made at test time, as often as the effort requires (AdaMEM, algorithm 1).

    * `high`: given the state alone, the policy proposes an action and whether to query memory. If so, memory is
      queried, a strategy made from the result, the action decided again, and the strategy dropped.
    * `low`: the prompt contains the strategy in force. The policy proposes an action and whether to refresh
      the strategy. If so, a new one replaces it, and the action is decided again.
    * `max`: a strategy is made at each step (the paper's ablations).

    The state is what `render(recall=False)` shows: the present observation, the history of the episode, and
    verified summaries.

    A language model as the policy (`drift_agents.policy.base.LanguagePolicy`) decides whether to query or
    refresh, and makes the strategy. For other policies declared rules do: `high` queries if the prompt has no
    experience of the present state; `low` refreshes if there is no strategy, or if for `patience` steps in a
    row it did not go on. A strategy goes on where the present state is part of it, or the step after the last
    one that was taken is admissible; the latter says something only where admissible actions differ between
    states. The strategy contains the retrieved trajectories.

    Args:
        effort: `low`, `high` or `max`.
        strategy: whether strategies are made; without them the prompt shows what memory recalls itself.
        trajectories: whether memory is queried; otherwise the strategy is made from the state alone, from which
            the rules make none.
        on_removed: `drop` or `keep`: what `low` does with a strategy when a verifier removes a record of its
            evidence.
        patience: for rules, the number of steps in a row without a next step of the strategy after which `low`
            refreshes it; `None` for never.
        k: the number of experiences for a strategy, from 1 to 16; by default the memory's own number.
        horizon: for rules, the maximum number of steps of each experience in a strategy.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> AdaMem(effort="high").name
        'adamem'
        >>> AdaMem(effort="some")
        Traceback (most recent call last):
        drift_envs.errors.ArgumentError: `effort` should be one of low, high, max. Received 'some'
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
        self.patience = check_count("patience", patience, optional=True)
        self.k = check_count("k", k, 1, MOST, optional=True)
        check_count("horizon", horizon)
        self._rules = RuleModel({STRATEGY["title"]: partial(make_strategy, horizon=horizon)})
        self._current: Strategy | None = None
        self._followed = FollowedStrategy("")
        self._stuck = 0
        self._menus: set[tuple[str, ...]] = set()

    def begin_episode(self, task: str) -> None:
        """Nothing of the last episode's strategy stays."""
        self._drop()

    def _drop(self) -> None:
        self._current, self._stuck = None, 0

    def act(self, state: str, memory: Memory, policy: Policy, render: Render, rng: np.random.Generator) -> Decision:
        """Decide by the rule of the effort."""
        if self.effort == "max":
            return self._decide_again(None, state, memory, policy, render, rng)
        inner = None if self._current is None else self._current.text
        view, shown = render(recall=False, strategy=inner)
        reply, wants = self._propose(state, policy, view, render, rng)
        made = Decision(view, reply, shown, inner)
        if wants:
            made = self._decide_again(made, state, memory, policy, render, rng)
        self._followed.take(made.reply.text.strip())
        return made

    def _decide_again(
        self,
        first: Decision | None,
        state: str,
        memory: Memory,
        policy: Policy,
        render: Render,
        rng: np.random.Generator,
    ) -> Decision:
        """Query memory, make a strategy, and decide; without a strategy the first decision stays."""
        if not self.strategy:
            view, shown = render(recall=self.trajectories, own_steps=True)
            return _after(first, Decision(view, decide(policy, view, rng), shown))
        exemplars = recall_exemplars(memory, state, self.k, render.now) if self.trajectories else ()
        made = self._make(exemplars, policy, render, rng)
        if made is None:
            if first is not None:
                return first
            view, shown = render(recall=False)
            return Decision(view, decide(policy, view, rng), shown)
        thought, answer, strategy = made
        if self.effort == "low":
            self._current, self._stuck = strategy, 0
            self._followed = FollowedStrategy(strategy.text)
        view, shown = render(recall=False, strategy=strategy.text)
        reply = decide(policy, view, rng)
        # An action proposed under another strategy is no baseline without memory.
        baseline = None if first is None or first.strategy is not None else first.reply.text.strip()
        return _after(
            first,
            Decision(
                view,
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
        view, _ = render(recall=False)
        messages = read_messages(
            "controller/templates/adamem_strategy.txt",
            k=str(len(exemplars)),
            prompt=view.render().removesuffix(ANSWER).rstrip(),
            experiences=tell_exemplars(exemplars),
        )
        if isinstance(policy, LanguagePolicy):
            answer = policy.answer(messages, STRATEGY, self._rules, rng)
        else:
            answer = ask(self._rules, messages, STRATEGY)
        text = "\n".join(f"- {bullet}" for bullet in answer.data["strategy"])
        evidence = frozenset(record.id for exemplar in exemplars for record in exemplar.steps)
        reply = json.dumps(answer.data, ensure_ascii=False)
        return Thought(messages[0].content, messages[1].content, reply, text), answer, Strategy(text, evidence)

    def _propose(
        self, state: str, policy: Policy, view: PromptView, render: Render, rng: np.random.Generator
    ) -> tuple[Reply, bool]:
        """The proposed action, and whether to query memory."""
        if isinstance(policy, LanguagePolicy):
            field, rationale = _FIELDS[self.effort]
            return policy.decide_and_say(view, SideQuestion(field, _read(self.effort), rationale), rng)
        wants = not view.here if self.effort == "high" else self._needs_refresh(state, view.actions, render)
        return decide(policy, view, rng), wants

    def _needs_refresh(self, state: str, actions: tuple[str, ...], render: Render) -> bool:
        """The rule of `low`: there is no strategy, or it did not go on for `patience` steps."""
        self._menus.add(actions)
        if self._current is None:
            return True
        goes_on = self._followed.foresees(state, render.matching) or (
            # Where every action is always admissible, that says nothing about a strategy.
            len(self._menus) > 1 and not self._followed.next_steps().isdisjoint(actions)
        )
        self._stuck = 0 if goes_on else self._stuck + 1
        return self.patience is not None and self._stuck >= self.patience

    def on_removed(self, removed: Removed) -> None:
        """Drop the strategy when a record that it rests on is gone, unless it is to be kept."""
        current = self._current
        if current is not None and self.rule == "drop" and not current.evidence.isdisjoint(removed.records):
            self._drop()

    def end_episode(self, result: Episode) -> None:
        """The strategy goes with the episode."""
        self._drop()


def _after(first: Decision | None, second: Decision) -> Decision:
    """The second decision, with what the first one cost."""
    if first is None:
        return second
    reply = replace(second.reply, usage=first.reply.usage + second.reply.usage)
    return second._replace(reply=reply, aside=(first.view.render(), first.reply.text, *second.aside))


@lru_cache(maxsize=4)
def _read(effort: str) -> str:
    """What is said beside the prompt of a language model."""
    return files("drift_agents").joinpath(f"controller/templates/adamem_{effort}.txt").read_text("utf-8").strip()


class Strategy(NamedTuple):
    """A strategy in force, and what it rests on.

    Args:
        text: its words.
        evidence: the records of what was retrieved.
    """

    text: str
    evidence: frozenset[RecordId]


class FollowedStrategy:
    """How far the trajectories of a strategy have been followed: the step after the last one that was taken is next.

    Args:
        text: the strategy; what is no trajectory is ignored.

    Example:
        >>> followed = FollowedStrategy('From [1] do "0" to get to [2], then do "1" to get to [3]: score 1, the end, '
        ...                             'last seen at step 7.')
        >>> followed.take("0")
        >>> followed.next_steps()
        {'1'}
    """

    def __init__(self, text: str) -> None:
        self._trajectories = parse_trajectories(text)
        self._places = [0] * len(self._trajectories)

    def take(self, action: str) -> None:
        """An action is executed; steps before it are no longer next."""
        for number, trajectory in enumerate(self._trajectories):
            rest = trajectory.actions[self._places[number] :]
            if action in rest:
                self._places[number] += rest.index(action) + 1

    def next_steps(self) -> set[str]:
        """The next action of each trajectory that has not come to its end."""
        pairs = zip(self._trajectories, self._places, strict=True)
        return {one.actions[place] for one, place in pairs if place < len(one.actions)}

    def foresees(self, state: str, matching: Matching) -> bool:
        """Whether a trajectory contains the state."""
        key = matching.state_key
        return key(state) in {key(one) for trajectory in self._trajectories for one in trajectory.states}


ITEMS = 3
"""Bullets of a strategy, at the most (AdaMEM, appendix B.2: 1 to 3)."""

STRATEGY = object_schema(
    "adamem_strategy",
    reasoning={"type": "string", "maxLength": 8000},
    strategy={
        "type": "array",
        "items": {"type": "string", "minLength": 1, "maxLength": 100000},
        "minItems": 1,
        "maxItems": ITEMS,
    },
)

RETRIEVED = "\nRetrieved experiences:\n"
_HEAD = re.compile(r"Experience \d+ \(similarity (?P<like>\S+); final outcome: .*\):")


def tell_exemplars(exemplars: Sequence[Exemplar]) -> str:
    """What was retrieved, in words: past state, past action, remaining trajectory, final outcome.

    Example:
        >>> from drift_agents.types import AgentClock, Outcome, Record
        >>> step = Record(0, "[1]", "0", (((Outcome("[2]", 1.0, True)), 1.0),), 1, AgentClock(0, 4))
        >>> print(tell_exemplars([Exemplar((step,), 1.0)]))
        Experience 1 (similarity 1; final outcome: score 1):
        - in [1] action "0" led to [2] (the episode ended; score 1; seen once; last at step 4)
    """
    lines = []
    for number, exemplar in enumerate(exemplars, 1):
        lines.append(
            f"Experience {number} (similarity {exemplar.similarity:.3g}; final outcome: score {exemplar.score:g}):"
        )
        for record in exemplar.steps:
            item = Recollection(record.state, record.action, record.outcome, float(record.n), record.now.step)
            lines.append(item._replace(verified=record.verified).line())
    return "\n".join(lines) if lines else "None."


def make_strategy(text: str, horizon: int = HORIZON) -> dict[str, Any]:
    r"""The rule that answers `STRATEGY` offline: one bullet for each of the first experiences, its trajectory.

    Args:
        text: the question: what stands after `RETRIEVED` is read, and nothing else.
        horizon: the maximum number of steps of a bullet.

    Returns:
        JSON by the schema `STRATEGY`.

    Example:
        >>> step = '- in [1] action "0" led to [2] (score 0; seen once; last at step 3)'
        >>> text = f"{RETRIEVED}Experience 1 (similarity 0.9; final outcome: score 1):\n{step}"
        >>> make_strategy(text)["strategy"][0][:61]
        'What worked before (similarity 0.9): From [1] do "0" to get t'
    """
    groups: list[tuple[str, list[Recollection]]] = []
    # The last mark is the true one: what stands before it may contain anything, the lines below it cannot.
    for line in text.rpartition(RETRIEVED)[2].split("\n"):
        if head := _HEAD.fullmatch(line):
            groups.append((head["like"], []))
        elif line.startswith("- in ") and groups:
            with suppress(ArgumentError):  # a state that is no JSON text is left out
                groups[-1][1].append(read_line(line))
    bullets = []
    for like, steps in groups[:ITEMS]:
        trajectories = " ".join(map(render_trajectory, build_trajectories(steps[:horizon])))
        if trajectories:
            bullets.append(f"What worked before (similarity {like}): {trajectories}")
    if not bullets:
        return {"reasoning": "Nothing like it is remembered.", "strategy": ["Nothing like this is remembered."]}
    reasoning = f"{len(groups)} past experiences were retrieved; the most similar ones are told as ways to go."
    return {"reasoning": reasoning, "strategy": bullets}
