"""The rules for keeping memory that a map compares: their names and families, from a file.

* `RuleBook`, `Rule` - the rules of a map
* `read_model` - a YAML file as a pydantic model, for this and other files of a study
* `parse_point`, `Point` - the environment, the drift rate and the share of false responses of a schedule
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple, TypeVar

from drift_agents.analysis.evidence import AXES, Key
from drift_agents.errors import EvidenceError
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from drift_envs.schedule.yaml import YamlError, parse_yaml

RATES = ("none", "rare", "often", "rush")
"""The drift rates, from the lowest: no drift, or one in 60, 20 or 8 episodes of the clairvoyant on average."""

OTHER = "other"
"""The family of agents that the file does not name."""

_POINT = re.compile(rf"(?P<environment>[^:]+):(?P<rate>{'|'.join(RATES)})-(?P<false>\d+)")

Model = TypeVar("Model", bound=BaseModel)


class FileModel(BaseModel):
    """Data of a file; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Rule(FileModel):
    """One rule: the labels of an agent's parts, as lines have them, with a name and a family.

    Args:
        name: for tables.
        family: one of the file's.
        memory: the label.
        verifier: the label.
        controller: the label.
        team: the label.
        policy: the label.
    """

    name: str
    family: str
    memory: str
    verifier: str = "none"
    controller: str = "direct"
    team: str = "solo"
    policy: str = "planner"

    @property
    def key(self) -> Key:
        """The labels, in the order of `AXES`."""
        return tuple(getattr(self, axis) for axis in AXES)


class RuleBook(FileModel):
    """The rules of a map.

    Args:
        families: families of rules, by name what each is called in figures, in the order of their colours.
        rules: the rules.
        curves: the names of the rules whose curves are drawn.
        baselines: the families over whose best rule the lead of every winner is stated.
    """

    families: dict[str, str] = Field(min_length=1)
    rules: tuple[Rule, ...] = Field(min_length=1)
    curves: tuple[str, ...] = ()
    baselines: tuple[str, ...] = ()

    def by_key(self) -> dict[Key, Rule]:
        """The rules by their agents' labels."""
        return {rule.key: rule for rule in self.rules}

    def by_name(self) -> dict[str, Rule]:
        """The rules by name."""
        return {rule.name: rule for rule in self.rules}


class Point(NamedTuple):
    """A point of the map: a schedule's place on its axes.

    Args:
        environment: the schedule's name up to the colon.
        rate: one of `RATES`.
        false: the share of false responses, percent.
    """

    environment: str
    rate: str
    false: int

    @property
    def schedule(self) -> str:
        """The schedule's name."""
        return f"{self.environment}:{self.rate}-{self.false}"


def parse_point(schedule: str) -> Point | None:
    """The point of a schedule; `None` for a schedule that is none of the map's.

    Example:
        >>> parse_point("frozen_lake/verify-6x6:often-3")
        Point(environment='frozen_lake/verify-6x6', rate='often', false=3)
        >>> parse_point("frozen_lake/explicit:storms") is None
        True
    """
    match = _POINT.fullmatch(schedule)
    return None if match is None else Point(match["environment"], match["rate"], int(match["false"]))


def read_rules(path: Path) -> RuleBook:
    """The rules of a file.

    Raises:
        EvidenceError: if it cannot be read, or with everything that is wrong in it.
    """
    book = read_model(RuleBook, path)
    named = set(book.by_name())
    findings = [
        f"rules: every {what} should be there once"
        for what, found in (("name", named), ("agent", set(book.by_key())))
        if len(found) < len(book.rules)
    ]
    findings += [
        f"{where}: {name!r} should be one of {', '.join(sorted(known))}"
        for where, names, known in (
            ("rules", [rule.family for rule in book.rules], set(book.families)),
            ("curves", book.curves, named),
            ("baselines", book.baselines, set(book.families)),
        )
        for name in dict.fromkeys(names)
        if name not in known
    ]
    if findings:
        raise EvidenceError("\n".join(f"{path}: {finding}" for finding in findings))
    return book


def read_model(model: type[Model], path: Path) -> Model:
    """A YAML file as a pydantic model.

    Args:
        model: the model.

    Raises:
        EvidenceError: if it cannot be read, or with everything that is wrong in it, one finding a line.
    """
    try:
        document = parse_yaml(path.read_text("utf-8"), str(path))
        if document.problems:
            raise EvidenceError("\n".join(map(str, document.problems)))
        return model.model_validate(document.data)
    except (OSError, UnicodeDecodeError) as error:
        raise EvidenceError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    except YamlError as error:
        raise EvidenceError(f"{path}:{error.line}: {error.text}") from error
    except ValidationError as error:
        raise EvidenceError(
            "\n".join(
                f"{path}:{document.mark.find(found['loc']).line}: {'.'.join(map(str, found['loc']))}: {found['msg']}. "
                f"Received {str(found['input'])[:80]!r}"
                for found in error.errors()
            )
        ) from error
