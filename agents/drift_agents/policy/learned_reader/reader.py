"""The learned reader as a policy.

* `LearnedReader` - the policy
* `choose` - an action by its scores
* `DEFAULT` - the weights that come with the package
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

from drift_agents.errors import ArgumentError
from drift_agents.llm.base import RuleModel
from drift_agents.policy.base import Reply
from drift_agents.policy.brief import BRIEF
from drift_agents.policy.learned_reader.network import Array, Network, load_weights
from drift_agents.policy.learned_reader.reading import read_messages
from drift_agents.policy.llm import LanguageModelPolicy
from drift_agents.prompt.view import PromptView
from drift_envs.checks import check_interval

SUFFIX = ".npz"
DEFAULT = f"first{SUFFIX}"
"""The weights that come with the package, trained on lakes."""


def choose(scores: Array, temperature: float, rng: np.random.Generator) -> int:
    """The place of an action, drawn from the softmax of the scores.

    Args:
        scores: of each action, of the shape (actions,).
        temperature: divides the scores; with 0 the highest one is taken, of equal ones the first.
        rng: draws.

    Example:
        >>> scores = np.array([0.0, 3.0], np.float32)
        >>> [choose(scores, 1.0, rng) for rng in map(np.random.default_rng, range(3))], choose(scores, 0, None)
        ([1, 1, 1], 1)
    """
    if not temperature:
        return int(scores.argmax())
    shares = np.exp((scores.astype(np.float64) - scores.max()) / temperature)
    return int(rng.choice(len(shares), p=shares / shares.sum()))


@lru_cache(maxsize=8)
def load_network(weights: str | None) -> Network:
    """A network by the file of its weights.

    Args:
        weights: a path; `None` for `DEFAULT`.

    Raises:
        ArgumentError: if the file cannot be used.
    """
    if weights is None:
        with as_file(files("drift_agents.policy.learned_reader") / "weights" / DEFAULT) as path:
            return Network(load_weights(path))
    return Network(load_weights(Path(weights)))


class LearnedReader:
    """A small trained network that reads the messages to a language model, in the format `brief`.

    It was trained on decisions of a rule-based policy on lakes that no experiment plays
    (docs/research/readers.md). It has never seen messages of other environments.

    Args:
        weights: the path of an `.npz` file with other weights.
        temperature: an action is drawn with its probability at this temperature, since a network that always takes the
            likeliest one walks in circles where it is undecided; 0 takes the likeliest.

    Raises:
        ArgumentError: if the file cannot be used, or the temperature is no number from 0 on.

    Example:
        >>> LearnedReader(weights="second")
        Traceback (most recent call last):
        drift_envs.errors.ArgumentError: `weights` should be the path of an .npz file. Received 'second'
    """

    name = "learned_reader"
    needs_history = True

    def __init__(self, *, weights: str | None = None, temperature: float = 1.0) -> None:
        self._temperature = check_interval("temperature", temperature, "[0, inf)")
        if weights is not None and not (isinstance(weights, str) and weights.endswith(SUFFIX)):
            raise ArgumentError(f"`weights` should be the path of an {SUFFIX} file. Received {weights!r}")
        self._network = load_network(weights)
        self._renderer = LanguageModelPolicy(RuleModel({}), format=BRIEF)  # renders, and is not called

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        """Choose an action.

        Args:
            view: what the policy decides by.
            rng: draws the action.
        """
        if len(view.actions) == 1:
            return Reply(view.actions[0])
        text = "\n".join(message.content for message in self._renderer.messages(view))
        scores = self._network.score(*read_messages(text, view.actions))
        return Reply(view.actions[choose(scores, self._temperature, rng)])
