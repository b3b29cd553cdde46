"""Rule-based message policies: they parse the messages to a language model and nothing else, without a model.

* `MessageReader` - follows the highest score that the messages show, and common sense where they show none
* `ForgetfulReader` - the same, which overlooks a part of the known outcomes
* `ErringReader` - the same, which answers with another action at a stated rate
* `MessageModel` - the model behind them: messages in, an action out

They measure what a prompt lets a policy do: a prompt with which these policies move in circles cannot be expected
to serve a language model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from drift_agents.llm.base import Completion, Message
from drift_agents.policy.base import Reply
from drift_agents.policy.brief import BRIEF
from drift_agents.policy.llm import LanguageModelPolicy
from drift_agents.policy.message_reader.common_sense import ENOUGH, sense_of
from drift_agents.policy.message_reader.text import MessageText, read_text
from drift_envs.checks import check_choice, check_interval

TIES = ("first", "last", "random")
"""Which of several equally good actions is taken, in the order of the messages."""

EAGER, CONTENT, CAUTIOUS = "eager", "content", "cautious"
TEMPERS = (EAGER, CONTENT, CAUTIOUS)
"""What is done about scores and dangers: look for a better score than the best known one; take the best known one as
it is; and, as the eager one, but believe a known failure until the messages say that all known ways are shut."""

REPEATS = 2
"""How often an action may be executed in one state within an episode before others are preferred."""


class MessageModel:
    """A model that reads messages in any format of `drift_agents.policy.messages` and answers with an action.

    It takes the action with the highest score that the messages show, in records or at the end of a way in a lesson,
    of equal ones that with the fewest steps where the messages show steps. Where no score is shown it uses common
    sense of the environment (`drift_agents.policy.message_reader.common_sense`), if it is declared any.

    Args:
        ties: one of `TIES`.
        temper: one of `TEMPERS`.
        forget: the probability with which each known outcome is overlooked, in [0, 1).
        err: the probability of another action than the chosen one, in [0, 1].

    Raises:
        ArgumentError: if an argument breaks its rule.

    Example:
        >>> lines = ["What is known in this state:", "- action open led to the hall. Seen once, last at step 4."]
        >>> lines[1] += " Highest score reachable from there: 1, in 2 more steps."
        >>> schema = {"title": "action", "properties": {"action": {"enum": ["wait", "open"]}}}
        >>> MessageModel().complete([Message("user", chr(10).join(lines))], schema).data
        {'action': 'open'}
    """

    name = "message_reader"

    def __init__(self, *, ties: str = "first", temper: str = EAGER, forget: float = 0.0, err: float = 0.0) -> None:
        self.ties = check_choice("ties", ties, TIES)
        self.temper = check_choice("temper", temper, TEMPERS)
        self.forget = check_interval("forget", forget, "[0, 1)")
        self.err = check_interval("err", err, "[0, 1]")

    def complete(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        sample_index: int = 0,
    ) -> Completion:
        """Answer with an action.

        Args:
            messages: the messages.
            schema: the form of the answer; its `action` lists the admissible actions.
            parameters: are ignored.
            sample_index: seeds ties and errors.
        """
        rng = np.random.default_rng(sample_index)
        properties = {} if schema is None else schema["properties"]
        actions = tuple(properties["action"]["enum"])
        action = self._choose("\n".join(message.content for message in messages), actions, rng)
        if self.err and rng.random() < self.err:
            others = [one for one in actions if one != action]
            action = others[int(rng.integers(len(others)))]
        data = {**({"reasoning": ""} if "reasoning" in properties else {}), "action": action}
        return Completion(json.dumps(data), data)

    def _choose(self, text: str, actions: tuple[str, ...], rng: np.random.Generator) -> str:
        read = read_text(text, actions)
        if self.forget:
            read = read._replace(known=tuple(known for known in read.known if rng.random() >= self.forget))
        return self._tied(self._choices(read), rng)

    def choices(self, text: str, actions: tuple[str, ...]) -> list[str]:
        """The equally good actions, of which `complete` takes one.

        Args:
            text: the messages, one after the other.
            actions: the admissible actions.
        """
        return self._choices(read_text(text, actions))

    def _choices(self, read: MessageText) -> list[str]:
        if self.temper == CAUTIOUS and not read.is_shut:
            read = read._replace(doubt_since=-1)
        return self._best(read) or sense_of(read).choose(read)

    def _best(self, read: MessageText) -> list[str]:
        """The actions with the highest score, if that is enough; those executed here too often are left out."""
        if not sense_of(read).follows_scores:
            return []
        ranks: dict[str, tuple[float, int]] = {}
        failed = {known.action for known in read.known if known.ended and known.score < ENOUGH}
        told = [one for one in read.lessons if one.action not in failed and not read.is_stale(one)]
        for known in (*read.known, *told):
            if read.times(known.action) < REPEATS and known.action in read.actions:
                rank = (known.score, -known.steps)
                ranks[known.action] = max(ranks.get(known.action, rank), rank)
        best = max(ranks.values(), default=(0.0, 0))
        is_enough = best[0] > 0 if self.temper == CONTENT else best[0] >= ENOUGH
        return [action for action, rank in ranks.items() if rank == best] if is_enough else []

    def _tied(self, actions: Sequence[str], rng: np.random.Generator) -> str:
        if self.ties == "random":
            return actions[int(rng.integers(len(actions)))]
        return actions[0 if self.ties == "first" else -1]


class MessageReader:
    """A rule-based message policy: follows the highest score that the messages to a language model show.

    The messages are those of the policy `llm` in the same format, so what this policy can do is in them.

    Args:
        format: one of `drift_agents.policy.messages.FORMATS`.
        ties: which of several equally good actions is taken: `first`, `last` or `random`.
        temper: `eager` looks for a better score than the best known one, `content` takes that one, and `cautious`
            believes a known failure until the messages say that all known ways are shut.

    Raises:
        ArgumentError: if an argument breaks its rule.

    Example:
        >>> MessageReader(ties="random").name
        'message_reader'
    """

    name = "message_reader"
    forget, err = 0.0, 0.0

    def __init__(self, *, format: str = BRIEF, ties: str = "first", temper: str = EAGER) -> None:
        self._read = self._make(format, ties, temper)
        self.needs_history = self._read.needs_history

    def _make(self, format: str, ties: str, temper: str) -> LanguageModelPolicy:
        # The temperature is above 0, so that ties and errors are drawn anew at each decision.
        model = MessageModel(ties=ties, temper=temper, forget=self.forget, err=self.err)
        return LanguageModelPolicy(model, format=format, temperature=1.0)

    def decide(self, prompt: str, rng: np.random.Generator) -> Reply:
        """Answer a prompt.

        Args:
            prompt: the rendered text.
            rng: for ties and errors.

        Raises:
            ArgumentError: if the prompt cannot be parsed, or the template does not fit the environment.
        """
        return self._read.decide(prompt, rng)


class ForgetfulReader(MessageReader):
    """`message_reader` that overlooks a part of the known outcomes, drawn anew at each decision.

    Args:
        forget: the probability with which each known outcome is overlooked, in [0, 1).
        format: as for `MessageReader`.
        ties: as for `MessageReader`.

    Raises:
        ArgumentError: if an argument breaks its rule.

    Example:
        >>> ForgetfulReader().forget
        0.1
    """

    name = "forgetful_reader"

    def __init__(self, *, forget: float = 0.1, format: str = BRIEF, ties: str = "first") -> None:
        self.forget = forget
        super().__init__(format=format, ties=ties)


class ErringReader(MessageReader):
    """`message_reader` that answers with another action than the chosen one at a stated rate.

    Args:
        err: the probability of another action, in [0, 1].
        format: as for `MessageReader`.
        ties: as for `MessageReader`.

    Raises:
        ArgumentError: if an argument breaks its rule.

    Example:
        >>> ErringReader(err=0.2).err
        0.2
    """

    name = "erring_reader"

    def __init__(self, *, err: float = 0.05, format: str = BRIEF, ties: str = "first") -> None:
        self.err = err
        super().__init__(format=format, ties=ties)
