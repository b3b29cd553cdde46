"""What the network learns from: it or the rules play, and the rules say what they would have done.

* `Lessons` - instances of an environment; `LESSONS` has them by name
* `play` - decisions on some instances
* `live` - the scores of one agent on one instance
* `win` - the share of episodes before the drift that are won
* `rename_actions`, `rename_buttons` - other names in a prompt
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import gymnasium as gym
import numpy as np
from drift_agents.agent.agent import Agent
from drift_agents.envs.base import find_environment
from drift_agents.llm.base import Message, RuleModel
from drift_agents.memory.base import make_memory
from drift_agents.policy.base import Reply
from drift_agents.policy.brief import BRIEF
from drift_agents.policy.learned_reader.network import Network
from drift_agents.policy.learned_reader.reader import ReadMessages, Words, read_messages
from drift_agents.policy.llm import LanguageModelPolicy
from drift_agents.prompt.builder import Recall
from drift_agents.prompt.view import PromptView, Recollection
from drift_agents.verifier.base import make_verifier
from drift_agents.verifier.prober import ReplayProber

import drift_envs
from research.experiments.readers import MessageModel
from research.train_reader.decisions import Decisions

ALL = 60
"""Episodes of all phases."""
NEWEST = {"k": 1, "order": "newest"}
AGENTS: tuple[tuple[Mapping[str, object], str], ...] = (
    ({"k": 5}, "none"),
    ({"k": 5}, "overwrite"),
    ({"k": 5}, "glove"),
    (NEWEST, "none"),
    ({"k": 5}, "announce_only"),
    ({"k": 5}, "glove"),
    (NEWEST, "none"),
    ({"k": 5}, "glove"),
    (NEWEST, "none"),
)
"""The memories and rules of the agents that play, in turn; before the first drift alone the rule is `none`."""
NOISE = (0.0, 0.1, 0.3, 0.5)
"""Shares of random actions of the rules that play; one an agent."""
KEPT = 3
"""Decisions of an episode in the same state that are kept. Of further ones those whose number is a power of two: loops
would fill the data, but a network that never sees how often it was somewhere does not learn to leave."""

_MEANINGS = re.compile(r"(Actions: )(.*?)(\.?)$", re.DOTALL)
_CLICK = ("click", "[")


class Lessons(NamedTuple):
    """Instances of an environment.

    Args:
        env_id: its id in Gymnasium.
        schedule: the schedule, a seed of which is an instance.
        limit: steps of an episode, so that a network that walks in circles costs little.
        has_codes: whether actions are numbers with meanings that the task tells, and so are permuted.
        source: episodes before the first drift.
    """

    env_id: str
    schedule: str
    limit: int
    has_codes: bool = False
    source: int = 20


LESSONS = {
    "lake": Lessons("DriftFrozenLake-v0", "frozen_lake/explicit:family", 60, has_codes=True),
    "goals": Lessons("DriftFrozenLake-v0", "frozen_lake/implicit:choice", 60, has_codes=True, source=11),
    "shop": Lessons("DriftWebShop-v0", "webshop/explicit", 30),
    "house": Lessons("DriftHouse-v0", "house/explicit", 50),
}


class TaughtPlayer:
    """A policy that plays and keeps what the rules would have done.

    Args:
        lessons: the instances.
        decisions: where decisions are kept.
        network: what plays; the rules if not given.
        noise: the share of random actions.
    """

    name = "player"
    needs_history = True

    def __init__(
        self, lessons: Lessons, decisions: Decisions, network: Network | None = None, noise: float = 0.0
    ) -> None:
        self.lessons, self.decisions, self.network, self.noise = lessons, decisions, network, noise
        self.seen: Counter[str] = Counter()
        """States of the present episode."""
        self._rules = MessageModel()
        self._renderer = LanguageModelPolicy(RuleModel({}), format=BRIEF)  # renders, and is not called

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        """Choose an action, under permuted names.

        Args:
            rng: for the names, and for random actions.
        """
        names: dict[str, str] = {}
        if self.lessons.has_codes:
            shuffled = [view.actions[place] for place in rng.permutation(len(view.actions))]
            names = dict(zip(view.actions, shuffled, strict=True))
        shown = rename_actions(view, names) if names else view
        messages = self._renderer.messages(shown)
        text = "\n".join(message.content for message in messages)
        right = self._rules.choices(text, view.actions)
        read = read_messages(text, view.actions)
        if not self.lessons.has_codes:
            read = rename_buttons(read, rng)
        self.seen[view.state] += 1
        seen = self.seen[view.state]
        is_open = not self.lessons.has_codes and len(right) == len(view.actions)  # any action will do
        if (seen <= KEPT or seen.bit_count() == 1) and not is_open:
            self.keep(messages, view.actions, read, right)
        if rng.random() < self.noise:
            chosen = view.actions[int(rng.integers(len(view.actions)))]
        else:
            chosen = self.choose(messages, view.actions, read, right, rng)
        return Reply(next((action for action, name in names.items() if name == chosen), chosen))

    def choose(
        self,
        messages: Sequence[Message],
        actions: Sequence[str],
        read: ReadMessages,
        right: Sequence[str],
        rng: np.random.Generator,
    ) -> str:
        """The action of the network, or one of the equally good actions if there is none.

        Args:
            messages: to a language model.
            read: the same as words, under other names of buttons.
            rng: for ties.
        """
        if self.network is None:
            return right[int(rng.integers(len(right)))]
        return actions[int(self.network.score(*read).argmax())]

    def keep(
        self, messages: Sequence[Message], actions: Sequence[str], read: ReadMessages, right: Sequence[str]
    ) -> None:
        """Keep a decision.

        Args:
            messages: to a language model.
            read: the same as words, under other names of buttons.
        """
        self.decisions.add(read, [action in right for action in actions])


def rename_buttons(read: ReadMessages, rng: np.random.Generator) -> ReadMessages:
    """Other names of buttons that are letters, where all actions are such.

    Args:
        read: the messages and the admissible actions.
        rng: draws the names.

    Example:
        >>> buttons = tuple(("click", "[", letter, "]") for letter in "abc")
        >>> read = ReadMessages((("click", "[", "c", "]", "led", "to", "c"),), buttons)
        >>> rename_buttons(read, np.random.default_rng(0)).lines
        (('click', '[', 'b', ']', 'led', 'to', 'c'),)
    """
    letters = [_button(words) for words in read.candidates]
    if not all(letters):
        return read
    names = dict(zip(letters, [letters[place] for place in rng.permutation(len(letters))], strict=True))

    def renamed(words: Words) -> Words:
        return tuple(
            names.get(word, word) if words[max(0, at - 2) : at] == _CLICK else word for at, word in enumerate(words)
        )

    return ReadMessages(*(tuple(map(renamed, part)) for part in read))


def _button(words: Words) -> str:
    """The letter of a button; empty if the action is none."""
    name = words[-2] if len(words) > 3 and words[-4:-2] == _CLICK else ""
    return name if len(name) == 1 and name.isalpha() else ""


def rename_actions(view: PromptView, names: Mapping[str, str]) -> PromptView:
    """The same prompt with other names of the actions.

    Args:
        view: the prompt; its task ends with what the actions do.
        names: the new name of each action.

    Example:
        >>> view = PromptView("Go. Actions: 0 left, 1 right.", "{}", ("0", "1"), visits=(("0", 2),))
        >>> renamed = rename_actions(view, {"0": "1", "1": "0"})
        >>> renamed.task, renamed.visits
        ('Go. Actions: 0 right, 1 left.', (('1', 2),))
    """

    def renamed(items: Sequence[Recollection]) -> tuple[Recollection, ...]:
        return tuple(item._replace(action=names.get(item.action, item.action)) for item in items)

    def meanings(found: re.Match[str]) -> str:
        entries = [entry.partition(" ") for entry in found[2].split(", ")]
        return found[1] + ", ".join(sorted(f"{names[name]} {words}" for name, _, words in entries)) + found[3]

    return replace(
        view,
        task=_MEANINGS.sub(meanings, view.task),
        here=renamed(view.here),
        elsewhere=renamed(view.elsewhere),
        moves=renamed(view.moves),
        visits=None if view.visits is None else tuple((names[action], count) for action, count in view.visits),
    )


def play(
    lessons: Lessons,
    first: int,
    count: int,
    episodes: int | None = None,
    network: Network | None = None,
    say: Callable[[str], None] = print,
) -> Decisions:
    """Decisions on instances, one agent an instance; rules, memories and noise take turns.

    Args:
        lessons: the instances.
        first: the seed of the first instance.
        count: how many decisions at the least.
        episodes: of each instance; those before the first drift if not given.
        network: what plays; the rules if not given.
        say: prints the result.
    """
    decisions, turn, scores, begin = Decisions(), 0, [], time.process_time()
    while len(decisions.prompts) < count:
        memory, rule = AGENTS[turn % len(AGENTS)]
        player = TaughtPlayer(lessons, decisions, network, NOISE[turn % len(NOISE)] if network is None else 0.0)
        rule = "none" if episodes is None else rule
        scores += list(live(player, memory, rule, first + turn, episodes or lessons.source))
        turn += 1
    spent = time.process_time() - begin
    won = np.mean([score >= 1 for score in scores])
    say(f"  {len(decisions.prompts)} decisions on {turn} instances, {won:.0%} of episodes won, {spent:.0f} s")
    return decisions


def win(lessons: Lessons, first: int, count: int, network: Network | None = None) -> float:
    """The share of episodes before the drift that are won, without a verifier and without random actions.

    Args:
        lessons: the instances.
        first: the seed of the first instance.
        count: how many instances.
        network: what plays; the rules if not given.
    """
    players = (TaughtPlayer(lessons, Decisions(), network) for _ in range(count))
    lives = (live(player, AGENTS[0][0], "none", first + turn, lessons.source) for turn, player in enumerate(players))
    return float(np.mean([score >= 1 for life in lives for score in life]))


def live(player: TaughtPlayer, memory: Mapping[str, object], rule: str, seed: int, episodes: int) -> Iterator[float]:
    """The scores of one agent on one instance.

    Args:
        player: the policy.
        memory: options of `vanilla`.
        rule: the verifier.
        seed: of the instance and of the agent.
        episodes: how many.
    """
    lessons, environment = player.lessons, find_environment(player.lessons.env_id)
    matching, recall = environment.make("matching"), Recall(**environment.recall)  # as experiments have them
    env = gym.make(lessons.env_id, schedule=lessons.schedule, text=True, max_episode_steps=lessons.limit)
    options = {"prober": ReplayProber(drift_envs.twin(env))} if rule == "glove" else {}
    agent = Agent(
        player,
        make_memory("vanilla", matching=matching, **memory),
        make_verifier(rule, **options),
        matching=matching,
        recall=recall,
        seed=seed,
        keep_trace=False,
    )
    for episode in range(episodes):
        player.seen.clear()
        yield agent.run_episode(env, seed=None if episode else seed).score
    env.close()
