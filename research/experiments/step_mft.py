"""A planner that makes AdaMEM's strategies with a small network: the policy of the study of STEP-MFT.

* `StrategyPlanner` - decides by the planner's rules; which retrieved experience becomes the strategy is learned
* `StrategyNetwork` - scores retrieved experiences
* `read_question`, `describe` - a question for a strategy, parsed, and as the network's input

Source: Zhang, Li, Payani and Wang, "AdaMEM: test-time adaptive memory for language agents", section 3.2. There the
policy is fine-tuned to write a strategy z given the state s and the retrieved experiences. A network of a few thousand
parameters cannot write: here pi(z | s, E) is a distribution over the experiences retrieved, and z tells the chosen one
in the words of `drift_agents.controller.adamem.make_strategy`. The file stands alone, as experiments need it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from drift_agents.controller.adamem import RETRIEVED, make_strategy
from drift_agents.embedding.base import HashedEmbedding
from drift_agents.errors import ArgumentError
from drift_agents.llm.base import Completion, Message, Model
from drift_agents.policy.base import Reply, SideQuestion, make_policy
from drift_agents.prompt.lessons import parse_trajectories, read_view
from drift_agents.prompt.view import PromptView

DIMENSION, HIDDEN = 64, 32
INPUTS = 3 * DIMENSION + 3
_BLOCK = re.compile(r"^Experience \d+ \(similarity (?P<similarity>\S+); ", re.MULTILINE)
_EMBEDDING = HashedEmbedding(DIMENSION)


class StrategyQuestion(NamedTuple):
    """A question for a strategy.

    Args:
        situation: the task and the present state.
        strategies: for each retrieved experience, the most similar first, the strategy that tells it; `None` if it
            cannot be told.
        similarities: of each experience.
    """

    situation: str
    strategies: tuple[str | None, ...]
    similarities: tuple[float, ...]


def read_question(text: str) -> StrategyQuestion:
    """Parse the user message of a question for a strategy.

    Args:
        text: the message.
    """
    prompt, _, experiences = text.rpartition(RETRIEVED)
    view = read_view(prompt.rstrip())
    heads = list(_BLOCK.finditer(experiences))
    ends = [*(head.start() for head in heads), len(experiences)][1:]
    strategies = []
    for head, end in zip(heads, ends, strict=True):
        made = str(make_strategy(RETRIEVED + experiences[head.start() : end])["strategy"][0])
        strategies.append(made if parse_trajectories(made) else None)
    similarities = tuple(float(head["similarity"]) for head in heads)
    return StrategyQuestion(f"{view.task}\n{view.state}", tuple(strategies), similarities)


def describe(question: StrategyQuestion) -> np.ndarray:
    """The network's input for each experience; shape (experiences, `INPUTS`)."""
    (here,) = _EMBEDDING.embed([question.situation])
    rows = []
    for place, (strategy, similarity) in enumerate(zip(question.strategies, question.similarities, strict=True)):
        told = parse_trajectories(strategy or "")
        actions = [action for one in told for action in one.actions]
        state, done = _EMBEDDING.embed([told[0].states[0] if told else "", " ".join(actions)])
        rows.append(np.concatenate([here * state, here * done, done, [similarity, 1 / (1 + place), len(actions) / 20]]))
    return np.array(rows).reshape(len(rows), INPUTS)


class StrategyNetwork:
    """One hidden layer that scores retrieved experiences.

    Args:
        arrays: `first` (`INPUTS` x `HIDDEN`), `bias` and `last` (`HIDDEN`).

    Raises:
        ArgumentError: if an array is missing, or has another shape.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        shapes = {"first": (INPUTS, HIDDEN), "bias": (HIDDEN,), "last": (HIDDEN,)}
        found = {name: np.shape(arrays[name]) if name in arrays else None for name in shapes}
        if found != shapes:
            raise ArgumentError(f"`weights` should have arrays of the shapes {shapes}. Received {found}")
        self.arrays = {name: np.asarray(arrays[name], np.float64) for name in shapes}

    @classmethod
    def load(cls, path: str | Path) -> StrategyNetwork:
        """Read the weights of a file.

        Raises:
            ArgumentError: if it cannot be read.
        """
        try:
            with np.load(path, allow_pickle=False) as arrays:
                return cls(dict(arrays))
        except (OSError, ValueError) as error:
            raise ArgumentError(
                f"`weights` should be a file of NumPy arrays. Received {str(path)!r}: {error}"
            ) from error

    def score(self, inputs: np.ndarray) -> np.ndarray:
        """A score for each row; rounded, since the order of additions differs between machines."""
        hidden = np.tanh(inputs @ self.arrays["first"] + self.arrays["bias"])
        scores: np.ndarray = np.round(hidden @ self.arrays["last"], 6)
        return scores


class StrategyPlanner:
    """Decides by the planner's rules; one retrieved experience becomes the strategy.

    Args:
        weights: a file of the network's weights, which chooses the experience with the highest score.
        choice: without weights, `first` takes the most similar experience, `random` draws one.

    Raises:
        ArgumentError: if an option is outside its range.
    """

    name = "strategy_planner"

    def __init__(self, *, weights: str | None = None, choice: str = "random") -> None:
        if choice not in ("first", "random"):
            raise ArgumentError(f"`choice` should be one of first, random. Received {choice!r}")
        self._network = None if weights is None else StrategyNetwork.load(weights)
        self._choice = choice
        self._planner = make_policy("planner", house={"common_sense": False})

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        """Decide by rules."""
        return self._planner.decide(view, rng)

    def decide_and_say(self, view: PromptView, aside: SideQuestion, rng: np.random.Generator) -> tuple[Reply, bool]:
        """Decide, and request memory where the view has no experience of the present state, as all planners do."""
        return self._planner.decide(view, rng), not view.here

    def answer(
        self, messages: Sequence[Message], schema: Mapping[str, Any], rules: Model, rng: np.random.Generator
    ) -> Completion:
        """Answer with the strategy of one experience."""
        question = read_question(messages[-1].content)
        usable = [place for place, strategy in enumerate(question.strategies) if strategy is not None]
        text = "Nothing like this is remembered."
        if usable:
            if self._network is not None:
                chosen = usable[int(self._network.score(describe(question)[usable]).argmax())]
            else:
                chosen = usable[0] if self._choice == "first" else int(rng.choice(usable))
            text = question.strategies[chosen] or text
        data = {"reasoning": "", "strategy": [text]}
        return Completion(json.dumps(data, ensure_ascii=False), data)
