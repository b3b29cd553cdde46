"""The learned reader as a policy.

* `LearnedReader` - the policy
* `choose` - the action of some messages
* `SHIPPED` - the names of the shipped weights
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

from drift_agents.errors import ArgumentError
from drift_agents.llm.rules import RuleModel
from drift_agents.policy.base import Reply
from drift_agents.policy.brief import BRIEF
from drift_agents.policy.learned_reader.network import Network, load_weights
from drift_agents.policy.learned_reader.reading import read_messages
from drift_agents.policy.llm import LanguageModelPolicy
from drift_agents.prompt.view import parse_prompt

SHIPPED = ("first", "second", "third", "source", "together")
"""Three trainings on lakes that differ in their seeds, one on decisions before any drift alone, and one on lakes, shops
and houses together."""
SUFFIX = ".npz"


def choose(text: str, actions: Sequence[str], network: Network) -> str:
    """The action with the highest score; of equal ones the first.

    Args:
        text: the messages.
        actions: the admissible actions.
        network: the network.
    """
    return actions[int(network.score(*read_messages(text, actions)).argmax())]


@lru_cache(maxsize=8)
def load_network(weights: str) -> Network:
    """A network by the name of its weights, or by the path of their file.

    Args:
        weights: one of `SHIPPED`, or a path.

    Raises:
        ArgumentError: if there are no such weights, or the file cannot be used.
    """
    if weights in SHIPPED:
        with as_file(files("drift_agents.policy.learned_reader") / "weights" / f"{weights}{SUFFIX}") as path:
            return Network(load_weights(path))
    if not weights.endswith(SUFFIX):
        raise ArgumentError(
            f"`weights` should be one of {', '.join(SHIPPED)}, or an {SUFFIX} file. Received {weights!r}"
        )
    return Network(load_weights(Path(weights)))


class LearnedReader:
    """A small trained network that reads the messages to a language model, in the format `brief`.

    It was trained on decisions of `message_reader` on lakes that no experiment plays, the weights `together` in shops
    and houses too (docs/learned_reader.md). Messages of other environments are read, but it has never seen them.

    Args:
        weights: one of `SHIPPED`, or the path of a file that `examples/train_reader` wrote.

    Raises:
        ArgumentError: if there are no such weights, or the file cannot be used.

    Example:
        >>> LearnedReader(weights="fifth")
        Traceback (most recent call last):
        drift_agents.errors.ArgumentError: `weights` should be one of first, second, third, source, together, or an \
.npz file. Received 'fifth'
    """

    name = "learned_reader"
    needs_history = True

    def __init__(self, *, weights: str = SHIPPED[0]) -> None:
        self._network = load_network(weights)
        self._renderer = LanguageModelPolicy(RuleModel({}), format=BRIEF)  # renders, and is not called

    def decide(self, prompt: str, rng: np.random.Generator) -> Reply:
        """Answer a prompt.

        Args:
            prompt: the rendered text.
            rng: is not used: equal prompts have equal answers.

        Raises:
            ArgumentError: if the prompt cannot be parsed.
        """
        view = parse_prompt(prompt)
        if len(view.actions) == 1:
            return Reply(view.actions[0])
        text = "\n".join(message.content for message in self._renderer.messages(view))
        return Reply(choose(text, view.actions, self._network))
