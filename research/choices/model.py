"""Open choices and the claims that are played under them: the files `research/choices/*.yaml`.

* `read_studies`, `ChoiceStudy` - the files, by the paper's name
* `OpenChoice`, `ClaimPlay` - a choice, and how a claim is played
* `Combination`, `combine` - one value of every choice; all of them, or as many as are drawn
* `Term`, `parse_effect` - what is measured

Source: Simonsohn, Simmons and Nelson, "Specification curve analysis" (2020); Steegen, Tuerlinckx, Gelman and
Vanpaemel, "Increasing transparency through a multiverse analysis" (2016).
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from drift_agents.errors import EvidenceError
from pydantic import Field, model_validator

from research.verify_map.rules import FileModel, read_model

FOLDER = Path(__file__).parent
MOST = 32
"""The most combinations of a claim that are played."""
LEAST = 12
"""The fewest instances of a combination that count."""

Text = Annotated[str, Field(min_length=1)]
Overlay = dict[str, Any]
"""What a value changes: `schedule`, keys of an experiment's `environments` entry, `parts` of agents that leave them
out, or `options` of a study."""

_DRAW = 62
_TERM = re.compile(r"\s*(?P<sign>[+-])?\s*(?P<measure>[a-z_]+)\((?P<agent>[a-z0-9_]+)\)\s*")


class OpenChoice(FileModel):
    """A choice that a paper leaves open.

    Args:
        what: what is chosen.
        open: the paper's words that leave it open, with their section.
        ours: the reason, where the setting is this project's and not a gap of the paper.
        values: by name, what each changes; the first is the reference.
    """

    what: Text
    open: Text | None = None
    ours: Text | None = None
    values: Annotated[dict[Text, Overlay], Field(min_length=2, max_length=5)]

    @model_validator(mode="after")
    def _check(self) -> OpenChoice:
        if (self.open is None) == (self.ours is None):
            raise ValueError("`open` (the paper's words) or `ours` (a reason) should stand with a choice, not both")
        return self


class Term(NamedTuple):
    """One part of an effect.

    Args:
        sign: 1 or -1.
        measure: a measure of a cell.
        agent: one of the claim's agents.
    """

    sign: int
    measure: str
    agent: str


def parse_effect(text: str) -> tuple[Term, ...]:
    """The terms of an effect.

    Raises:
        ValueError: if it is not a sum of terms as in `after(glove) - after(plain)`.

    Example:
        >>> parse_effect("after(glove) - after(plain)")
        (Term(sign=1, measure='after', agent='glove'), Term(sign=-1, measure='after', agent='plain'))
    """
    terms, at = [], 0
    while at < len(text):
        found = _TERM.match(text, at)
        if found is None or (at > 0) != (found["sign"] is not None):
            raise ValueError(
                f"an effect should be a sum of terms as in `after(glove) - after(plain)`. Received {text!r}"
            )
        terms.append(Term(-1 if found["sign"] == "-" else 1, found["measure"], found["agent"]))
        at = found.end()
    if not terms:
        raise ValueError("an effect should have a term")
    return tuple(terms)


class ClaimPlay(FileModel):
    """How a claim is played.

    Args:
        says: what the effect is, in words.
        kind: what plays its cells: an experiment, or one of `research.choices.cells.STUDIES`.
        agents: by name, the parts of each as a block `agents` of an experiment has them; of a study, its options.
            What `setting` has there is laid over that of every combination, as in `{setting: {train: {epochs: 4}}}`.
        effects: what the claim says is positive; with several, all of them.
        equals: what the claim says is none: it lies within the margin.
        at_most: what the claim says is no gain: it does not lie above the margin.
        unit: of the effect.
        setting: what all combinations have, as the value of a choice.
        paper: the paper's own figure in the unit of the effect, where it has one.
        first: the first seed.
        n: instances.
        most: combinations, at the most.
        fewer: the reason for fewer instances than 30 or fewer combinations than 32.
    """

    says: Text
    kind: Text = "experiment"
    agents: Annotated[dict[Text, dict[str, Any]], Field(min_length=1)]
    effects: tuple[Text, ...] = ()
    equals: tuple[Text, ...] = ()
    at_most: tuple[Text, ...] = ()
    unit: Literal["points", "steps", "tokens", "records", "updates", "correlation"] = "points"
    setting: Overlay = Field(default_factory=dict)
    paper: float | None = None
    first: Annotated[int, Field(ge=0)] = 1000
    n: Annotated[int, Field(ge=LEAST, le=30)] = 30
    most: Annotated[int, Field(ge=2, le=MOST)] = MOST
    fewer: Text | None = None

    @property
    def differences(self) -> tuple[str, ...]:
        """All that is measured, the effects first."""
        return (*self.effects, *self.equals, *self.at_most)

    @model_validator(mode="after")
    def _check(self) -> ClaimPlay:
        if not self.differences:
            raise ValueError("`effects`, `equals` or `at_most` should have an entry")
        for text in self.differences:
            for term in parse_effect(text):
                if term.agent not in self.agents:
                    raise ValueError(f"an effect should name agents of the claim. Received {term.agent!r}")
        if (self.fewer is None) != (self.n == 30 and self.most == MOST):
            raise ValueError("`fewer` should stand with less than 30 instances or 32 combinations, and only there")
        return self


class ChoiceStudy(FileModel):
    """The choices of a paper and its claims.

    Args:
        paper: its name in `coverage.yaml`.
        choices: by id.
        claims: by id.
    """

    paper: Text
    choices: dict[Text, OpenChoice]
    claims: dict[Text, ClaimPlay]


@cache
def read_studies(folder: Path = FOLDER) -> Mapping[str, ChoiceStudy]:
    """The files of a folder, by the paper's name.

    Raises:
        EvidenceError: with everything that is wrong in a file.
    """
    found = [read_model(ChoiceStudy, path) for path in sorted(folder.glob("*.yaml"))]
    ids = [claim for study in found for claim in study.claims]
    if len(set(ids)) < len(ids):
        raise EvidenceError(f"{folder}: every claim should be there once")
    return {study.paper: study for study in found}


class Combination(NamedTuple):
    """One value of every choice.

    Args:
        values: choice -> the value's name.
        setting: what these values change, together.
    """

    values: Mapping[str, str]
    setting: Overlay


def combine(play: ClaimPlay, choices: Mapping[str, OpenChoice], named: Sequence[str]) -> list[Combination]:
    """The combinations of the named choices: all, or as many as the claim has at the most, drawn with a fixed seed.

    Drawn combinations are a Latin hypercube: every value of a choice is there equally often.

    Args:
        play: the claim.
        choices: by id.
        named: the ids of the claim's choices.
    """
    axes = [list(choices[name].values) for name in named]
    if math.prod(map(len, axes)) > play.most:
        chosen = list(
            zip(*(_draw(name, values, play.most) for name, values in zip(named, axes, strict=True)), strict=True)
        )
    else:
        chosen = list(product(*axes))
    found = []
    for drawn in chosen:
        values = dict(zip(named, drawn, strict=True))
        setting = play.setting
        for name, value in values.items():
            setting = lay_over(setting, choices[name].values[value])
        found.append(Combination(values, setting))
    return found


def _draw(name: str, values: Sequence[str], count: int) -> list[str]:
    """Each value equally often, in an order of the choice's own, so that claims with equal choices share cells."""
    random = np.random.default_rng([_DRAW, zlib.crc32(name.encode())])
    return [values[number % len(values)] for number in random.permutation(count)]


def lay_over(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping with the values of another one laid over it, mapping by mapping.

    Example:
        >>> lay_over({"memory": {"vanilla": {"k": 1}}}, {"memory": {"vanilla": {"order": "newest"}}})
        {'memory': {'vanilla': {'k': 1, 'order': 'newest'}}}
    """
    merged = dict(under)
    for key, value in over.items():
        mine = merged.get(key)
        merged[key] = lay_over(mine, value) if isinstance(mine, Mapping) and isinstance(value, Mapping) else value
    return merged
