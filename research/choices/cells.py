"""Cells: what one agent does under one combination, keyed by its content, so that claims share it.

* `ChoiceCell`, `make_cell` - a cell; `EXTRAS`, the packages that some need
* `play_cell` - plays one instance of it
* `PLAYERS`, `STUDIES` - what plays cells of experiments, and cells without one
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from drift_agents.envs.matching import Matching
from drift_agents.experiment.cell_environment import EvaluationWrapper, read_schedule
from drift_agents.experiment.config import Agents, Experiment, ScheduleSettings
from drift_agents.experiment.episode import play
from drift_agents.experiment.evaluator import EpisodeEvaluator, ItemAudit
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.logs import TEST
from drift_agents.experiment.plan import Cell, plan_cells
from drift_agents.memory.base import Memory
from drift_agents.types import Episode

from research.belief.banks import Method
from research.belief.convergence import convergence_rows
from research.belief.correction import correction_rows
from research.choices.model import lay_over
from research.experience.command import watch_cell
from research.experience.following import correlation, follow_executions, split_by_fate
from research.experience.traffic import (
    INITIAL,
    OWN,
    SPREAD,
    TrafficPolicy,
    TrafficStream,
    make_stream,
    play_stream,
    similarities,
)

Measures = dict[str, float]
DIGITS = 3
SOON = 3
"""Rounds after a drift in which a recovery is under way."""


EXTRAS: Mapping[str, str] = {"alfworld": "textworld"}
"""The package behind an environment's extra, by the folder of its schedules."""


@dataclass(frozen=True)
class ChoiceCell:
    """What is played, without its instances.

    Args:
        kind: one of `PLAYERS` or `STUDIES`.
        place: the schedule, or the study's name.
        content: all that decides what is played, as plain data.
    """

    kind: str
    place: str
    content: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The hash of the content, 16 hexadecimal digits."""
        text = json.dumps([self.kind, self.place, self.content], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def missing_extra(self) -> str | None:
        """The extra without which it cannot be played, if that is not installed."""
        extra = self.place.partition("/")[0]
        return extra if extra in EXTRAS and find_spec(EXTRAS[extra]) is None else None


def make_cell(kind: str, agent: Mapping[str, Any], setting: Mapping[str, Any]) -> ChoiceCell:
    """The cell of an agent under a setting.

    Args:
        kind: one of `PLAYERS` or `STUDIES`.
        agent: the agent's parts, or options of a study.
        setting: the combination's.

    Raises:
        ExperimentError: if they make no experiment.
    """
    if kind in STUDIES:
        return ChoiceCell(kind, kind, lay_over(setting.get("options", {}), agent))
    experiment = _experiment(agent, setting, [0])
    (cell,) = plan_cells(experiment)
    settings = experiment.settings_of(cell.schedule)
    parts = {"memory": cell.memory, "verifier": cell.verifier, "policy": cell.policy}
    parts |= {"controller": cell.decision.controller, "team": cell.decision.team}
    left_out = {"seeds", "sweep", *parts} | ({"recall"} if cell.memory.name == "none" else set())
    content = {
        "schedule": read_schedule(cell.schedule, cell.change).content_hash(),
        **{axis: part.model_dump(mode="json", exclude_defaults=True) for axis, part in parts.items()},
        **settings.model_dump(mode="json", exclude_defaults=True, exclude_none=True, exclude=left_out),
    }
    return ChoiceCell(kind, cell.schedule, content)


def _experiment(agent: Mapping[str, Any], setting: Mapping[str, Any], seeds: Sequence[int]) -> Experiment:
    setting = lay_over(setting, agent.get("setting", {}))
    schedule, blocks = setting["schedule"], {"policy": "planner", **setting.get("parts", {}), **agent}
    blocks.pop("setting", None)
    own = {key: value for key, value in setting.items() if key not in ("schedule", "parts", "options")}
    for axis in own.keys() & set(Agents.model_fields):  # what is of other parts than the agent's does not count
        own[axis] = {name: options for name, options in own[axis].items() if name == _name(blocks.get(axis, "none"))}
    return parse_experiment(
        {
            "name": "choices",
            "schedules": [schedule],
            "agents": blocks,
            "seeds": list(seeds),
            "environments": {schedule: own},
        }
    )


def _name(part: str | Mapping[str, Any]) -> str:
    """The name of a part, as an experiment has it."""
    return part if isinstance(part, str) else next(iter(part))


def play_cell(kind: str, agent: Mapping[str, Any], setting: Mapping[str, Any], seed: int) -> Measures:
    """Play one instance; every measure is rounded to `DIGITS` decimals.

    Args:
        kind: as for `make_cell`.
        agent: likewise.
        setting: likewise.
        seed: the instance.
    """
    if kind in PLAYERS:
        experiment = _experiment(agent, setting, [seed])
        (cell,) = plan_cells(experiment)
        found = PLAYERS[kind](cell, experiment.settings_of(cell.schedule))
    else:
        found = STUDIES[kind](lay_over(setting.get("options", {}), agent), seed)
    return {name: round(value, DIGITS) for name, value in found.items() if not math.isnan(value)}


def measure(rows: Sequence[Mapping[str, Any]]) -> Measures:
    """What is kept of the episodes of a cell's test: percentages, and means of an episode.

    Args:
        rows: its rows, those of the training phase too.
    """
    test = [row for row in rows if row["stage"] == TEST]
    first = test[0]["phase"]
    parts = {
        "before": [row for row in test if row["phase"] == first],
        "after": [row for row in test if row["phase"] != first],
        "all": test,
    }
    found = {}
    for name, own in parts.items():
        found[name] = 100 * _mean(own, "success")
        found[f"score_{name}"] = 100 * _mean(own, "score")
    for name, field in (
        ("steps", "steps"),
        ("probes", "probe_steps"),
        ("tokens", "tokens_estimated"),
        ("updates", "refreshes"),
    ):
        found[name] = _mean(test, field)
    later = [row for row in parts["after"] if row["round"] > SOON]
    found["soon"] = 100 * _mean([row for row in later if row["round"] <= 8], "success")
    found["stable_probes"] = _share([*(row for row in parts["before"] if row["round"] > SOON), *later])
    found["early_probes"] = _share([row for row in parts["after"] if row["round"] <= SOON])
    found["records"] = float(test[-1]["memory_size"])
    truth = test[-1]["item_truth_rate"]
    found["truth"] = math.nan if truth is None else 100 * float(truth)
    return found


def _mean(rows: Sequence[Mapping[str, Any]], field: str) -> float:
    return math.fsum(float(row[field]) for row in rows) / len(rows) if rows else math.nan


def _share(rows: Sequence[Mapping[str, Any]]) -> float:
    """The percent of all steps that are probes."""
    probes = sum(row["probe_steps"] for row in rows)
    return 100 * probes / (probes + sum(row["steps"] for row in rows)) if rows else math.nan


class _Counts(EpisodeEvaluator):
    """Measures the fields of a row that `measure` and `_count_hits` read; truth and belief take longer than playing."""

    def __init__(self, env: EvaluationWrapper, matching: Matching) -> None:
        self._audit = ItemAudit(env)

    def evaluate(self, episode: Episode, memory: Memory) -> dict[str, Any]:
        return {**self._audit.evaluate(episode, memory)._asdict(), "memory_size": sum(1 for _ in memory.records())}


def _play_episodes(cell: Cell, settings: ScheduleSettings) -> Measures:
    return measure(list(play(cell, settings, evaluator=_Counts)))


def _follow(cell: Cell, settings: ScheduleSettings) -> Measures:
    """Experience following: the correlation of similarities, and how alike outputs are by the fate of what was used."""
    seen = watch_cell(cell, settings).executions
    gone, kept = (
        [pair.output for pair in pairs] for pairs in split_by_fate(seen, follow_executions(seen, by="output"))
    )
    return {
        "correlation": correlation(follow_executions(seen)),
        "deleted": 100 * math.fsum(gone) / len(gone) if gone else math.nan,
        "retained": 100 * math.fsum(kept) / len(kept) if kept else math.nan,
    }


def _count_hits(cell: Cell, settings: ScheduleSettings) -> Measures:
    """The percent of a team's tasks in which an item of a bank stood in a prompt."""
    test = [row for row in play(cell, settings, evaluator=_Counts) if row["stage"] == TEST]
    return {bank: 100 * sum(row[f"{bank}_hits"] > 0 for row in test) / len(test) for bank in ("shared", "private")}


PLAYERS: Mapping[str, Callable[[Cell, ScheduleSettings], Measures]] = {
    "experiment": _play_episodes,
    "following": _follow,
    "hits": _count_hits,
}
"""Kind -> what plays a cell of an experiment."""


def _play_traffic(options: Mapping[str, Any], seed: int) -> Measures:
    """A policy on a stream of traffic."""
    stream, near = _stream(options["stream"], seed, options.get("own", OWN), options.get("spread", SPREAD))
    policy = TrafficPolicy(**options["policy"])
    return play_stream(stream, near, policy, seed, weight=options.get("weight", 1.0))


@lru_cache(4)
def _stream(kind: str, seed: int, own: float, spread: float) -> tuple[TrafficStream, Any]:
    stream = make_stream(kind, seed, own=own, spread=spread)
    return stream, np.array([similarities(one, stream.features) for one in stream.features[INITIAL:]])


def _play_correction(options: Mapping[str, Any], seed: int) -> Measures:
    """The percent of flawed conclusions that a memory corrects."""
    rows = list(correction_rows([seed], [options["schedule"]], methods=[_method(options)]))
    own = [row["corrected"] for row in rows if row["draws"] == options["draws"]]
    return {"corrected": 100 * math.fsum(own) / len(own) if own else math.nan}


def _play_convergence(options: Mapping[str, Any], seed: int) -> Measures:
    """The percent of questions in which the true conclusion ranks first, after one observation and after more."""
    rows = list(convergence_rows([seed], [options["schedule"]], methods=[_method(options)]))
    return {
        f"first_after_{words}": 100 * sum(row["leads"][count - 1] == "1" for row in rows) / len(rows)
        if rows
        else math.nan
        for words, count in (("one", 1), ("ten", 10), ("forty", 40))
    }


def _method(options: Mapping[str, Any]) -> Method:
    ((name, own),) = options["memory"].items()
    return Method(name, {"name": name, **options.get(name, {}), **own})


STUDIES: Mapping[str, Callable[[Mapping[str, Any], int], Measures]] = {
    "traffic": _play_traffic,
    "correction": _play_correction,
    "convergence": _play_convergence,
}
"""Kind -> what plays one instance with the given options."""
