"""The options of the map's rules: candidates, the experiments that play them, and what is chosen.

* `read_candidates`, `Candidates`, `RuleCandidates` - the rules and their candidates, from `candidates.yaml`
* `tuning_experiments` - what plays the candidates, on development instances
* `choose_conflict`, `choose_options` - the best candidates of a finished run
* `map_experiments` - the shipped experiments, with the chosen options
* `tabulate_options` - the chosen options, for the page of the map

A candidate is judged by the area of `drift_agents.analysis.price`, without a charge, averaged over the development
instances of an environment; of equals the first of the file is taken. Both lakes are one environment, and so are
the drifts of the house.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import yaml
from drift_agents.analysis.evidence import AXES, EvidenceTable, read_evidence
from drift_agents.analysis.price import AREA, price_cells
from drift_agents.analysis.table import Table
from drift_agents.errors import ExperimentError
from drift_agents.experiment.config import PartSpec
from drift_agents.experiment.folder import write_text
from pydantic import Field

from research.verify_map.rules import FileModel, RuleBook, read_model
from research.verify_map.schedules import DEVELOPMENT_SUFFIX, PLACES, Plain, episodes_of, suffix_of

FOLDER = Path(__file__).parent
TUNED = FOLDER / "tuned.yaml"
DEVELOPMENT_SEEDS = {"frozen_lake/verify-6x6": 3, "frozen_lake/verify-8x8": 2, "webshop/verify": 5}
DEVELOPMENT_SEEDS |= {"house/verify-locked": 3, "house/verify-keys": 2}
"""How many development instances of each place are played, from seed 0: five an environment."""

HELD_OUT = {"first": 5000, "count": 30}
"""The seeds of the map's instances."""

MOST = 8
"""The most candidates of a rule."""

MAP, MEMORIES = "verify-map", "verify-map-memories"

Options = dict[str, Any]


class RuleCandidates(FileModel):
    """A rule, or a memory without one, with the candidates of its options.

    Args:
        verifier: its verifier.
        memory: its memory; the base memory if not given.
        fixed: the options that make it this rule.
        grid: the values of each option to choose from; every combination is a candidate.
    """

    verifier: str = "none"
    memory: str | None = None
    fixed: Options = Field(default_factory=dict)
    grid: dict[str, list[Any]] = Field(default_factory=dict)

    @property
    def axis(self) -> str:
        """Which part of an agent it is."""
        return "verifier" if self.memory is None else "memory"

    def part(self, options: Mapping[str, Any] | None = None) -> PartSpec:
        """The part of an agent, with further options."""
        return PartSpec(name=self.memory or self.verifier, options={**self.fixed, **(options or {})})

    def candidates(self) -> list[Options]:
        """The candidates of its options, in the order of the file."""
        return [dict(zip(self.grid, values, strict=True)) for values in product(*self.grid.values())]


class ConflictCandidates(FileModel):
    """The rules for conflicts, and the rules for memory that they are judged by.

    Args:
        candidates: the rules for conflicts.
        rules: names of rules; each plays with its first candidate.
    """

    candidates: list[str]
    rules: list[str]


class Candidates(FileModel):
    """What is compared, and what is chosen from.

    Args:
        base: the memory of all rules.
        conflict: what the planner's rule for conflicts is chosen from.
        rules: by name.
        memories: memories beside the base, without a rule, by name.
    """

    base: PartSpec
    conflict: ConflictCandidates
    rules: dict[str, RuleCandidates]
    memories: dict[str, RuleCandidates]

    def entries(self) -> dict[str, RuleCandidates]:
        """Rules and memories."""
        return {**self.rules, **self.memories}


def read_candidates() -> Candidates:
    """The rules and their candidates.

    Raises:
        ExperimentError: if the file is wrong, or a rule has more than `MOST` candidates.
    """
    found = read_model(Candidates, FOLDER / "candidates.yaml")
    for name, entry in found.entries().items():
        if len(entry.candidates()) > MOST:
            raise ExperimentError(f"{name}: should have at most {MOST} candidates. Received {len(entry.candidates())}")
    return found


def environments() -> dict[str, list[str]]:
    """The places of each environment."""
    found: dict[str, list[str]] = {}
    for place in PLACES:
        found.setdefault(place.partition("/")[0], []).append(place)
    return found


def tuning_experiments(candidates: Candidates, conflict: Mapping[str, str] | None) -> dict[str, dict[str, Any]]:
    """What plays the candidates: first the rules for conflicts, then the options with those that were chosen.

    Args:
        candidates: the rules and their candidates.
        conflict: by environment, the rule for conflicts; `None` for the experiment that it is chosen from.

    Returns:
        By name, the content of experiment files.
    """
    base = _plain(candidates.base)
    if conflict is None:
        rules = [candidates.rules[name] for name in candidates.conflict.rules]
        blocks = [{"memory": base, "verifier": [_plain(rule.part(rule.candidates()[0])) for rule in rules]}]
        policies = [{"planner": {"conflict": name}} for name in candidates.conflict.candidates]
        return {"map-conflict": _experiment("map-conflict", blocks, policies, development=True)}
    blocks = [
        {"memory": base, "verifier": [_plain(part) for part in parts(candidates.rules)]},
        {"memory": [_plain(part) for part in parts(candidates.memories)], "verifier": "none"},
    ]
    made = _experiment("map-tuning", blocks, ["planner"], development=True)
    for place, settings in made["environments"].items():
        settings["policy"] = {"planner": {"conflict": conflict[place.partition("/")[0]]}}
    return {"map-tuning": made}


def parts(entries: Mapping[str, RuleCandidates]) -> list[PartSpec]:
    """All candidates as parts of agents."""
    return [entry.part(options) for entry in entries.values() for options in entry.candidates()]


def _experiment(name: str, blocks: list[dict[str, Any]], policies: list[Any], development: bool) -> dict[str, Any]:
    points = {
        place: [f"{place}:{DEVELOPMENT_SUFFIX}"] if development else [f"{place}:{suffix_of(*at)}" for at in one.points]
        for place, one in PLACES.items()
    }
    settings: dict[str, Any] = {place: {"episodes": episodes_of(place)} for place in PLACES}
    if development:
        for place, count in DEVELOPMENT_SEEDS.items():
            settings[place]["seeds"] = count
    return {
        "name": name,
        "schedules": [point for some in points.values() for point in some],
        "agents": [{**block, "policy": policies} for block in blocks],
        "references": ["clairvoyant"],
        "seeds": 5 if development else dict(HELD_OUT),
        "episodes": 1,
        "environments": settings,
    }


def _plain(part: PartSpec) -> Any:
    return {part.name: dict(part.options)} if part.options else part.name


def choose_conflict(evidence: EvidenceTable) -> dict[str, dict[str, float]]:
    """What each rule for conflicts is worth in each environment.

    Returns:
        By environment and rule for conflicts the mean area over rules and instances, percent; the best one first.
    """
    areas = _areas(evidence)
    found: dict[str, dict[str, float]] = {}
    for environment, some in areas.groupby("environment"):
        own = some[some["policy"] != "clairvoyant"].groupby("policy", sort=False)["area"].mean()
        figures = {label.partition("conflict=")[2].rstrip(")"): round(float(x), 2) for label, x in own.items()}
        found[str(environment)] = dict(sorted(figures.items(), key=lambda item: -item[1]))
    return found


def choose_options(evidence: EvidenceTable, candidates: Candidates) -> dict[str, dict[str, Any]]:
    """The best candidate of every rule in each environment.

    Returns:
        By environment and rule: the options, and what all candidates are worth.

    Raises:
        ExperimentError: if a candidate did not play.
    """
    areas = _areas(evidence)
    found: dict[str, dict[str, Any]] = {}
    for environment in environments():
        some = areas[areas["environment"] == environment]
        means = {
            axis: some[some["policy"] == "planner"].groupby(axis)["area"].mean() for axis in ("memory", "verifier")
        }
        for entries in (candidates.rules, candidates.memories):
            among = parts(entries) if entries is candidates.rules else [candidates.base, *parts(entries)]
            for name, entry in entries.items():
                worth = []
                for options in entry.candidates():
                    label = entry.part(options).label(among)
                    area = float(means[entry.axis].get(label, math.nan))
                    if math.isnan(area):
                        raise ExperimentError(f"{environment}: the candidate {label} of {name} did not play")
                    worth.append(round(area, 2))
                best = max(range(len(worth)), key=lambda place: worth[place])
                found.setdefault(environment, {})[name] = {"options": entry.candidates()[best], "areas": worth}
    return found


def _areas(evidence: EvidenceTable) -> Any:
    cells = evidence.cells[["schedule", *AXES]].copy()
    cells["area"] = price_cells(evidence)[0, AREA]
    cells["environment"] = cells["schedule"].str.partition("/")[0]
    return cells


def map_experiments(candidates: Candidates, tuned: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The shipped experiments: the rules on the base memory, and the memories without a rule.

    Args:
        candidates: the rules.
        tuned: what was chosen, as `tuned.yaml` has it.

    Returns:
        By name, the content of the files.
    """
    about = {
        MAP: "over drift rate and false responses, which rule for keeping memory wins, and at which price",
        MEMORIES: "the map of verification for memories that keep no rule",
    }
    blocks = {
        MAP: [
            {"memory": _plain(candidates.base), "verifier": [_plain(one.part()) for one in candidates.rules.values()]}
        ],
        MEMORIES: [
            {"memory": ["none", *(_plain(one.part()) for one in candidates.memories.values())], "verifier": "none"}
        ],
    }
    found = {}
    for name, entries in ((MAP, candidates.rules), (MEMORIES, candidates.memories)):
        made = _experiment(name, blocks[name], ["planner"], development=False)
        made = {"name": name, "about": about[name], **made}
        if name == MAP:
            made["references"] = ["clairvoyant", "oracle_realign", "oracle_truth"]
        among = _among(candidates, entries)
        for place, settings in made["environments"].items():
            chosen = tuned["environments"][place.partition("/")[0]]
            settings["policy"] = {"planner": {"conflict": chosen["conflict"]}}
            for rule, entry in entries.items():
                options = chosen["rules"][rule]["options"]
                if options:
                    settings.setdefault(entry.axis, {})[entry.part().label(among)] = options
        found[name] = made
    return found


def _among(candidates: Candidates, entries: Mapping[str, RuleCandidates]) -> list[PartSpec]:
    """The parts that stand beside each other in a shipped experiment, which labels tell apart."""
    others = [PartSpec(name="none")] if entries is candidates.memories else []
    return [*(one.part() for one in entries.values()), *others]


def tabulate_options(book: RuleBook) -> Table:
    """What was chosen for each rule in each environment; rules without options are left out.

    Args:
        book: the names of the rules.
    """
    candidates, tuned = read_candidates(), yaml.safe_load(TUNED.read_text("utf-8"))["environments"]
    table = Table("", ("rule", *tuned))
    table.add("all: planner", *(f"conflict={chosen['conflict']}" for chosen in tuned.values()))
    for entries in (candidates.rules, candidates.memories):
        among = _among(candidates, entries)
        for name, entry in entries.items():
            if entry.grid:
                label = entry.part().label(among)
                title = next(rule.name for rule in book.rules if label == getattr(rule, entry.axis))
                options = (chosen["rules"][name]["options"] for chosen in tuned.values())
                table.add(title, *(", ".join(f"{key}={value}" for key, value in one.items()) for one in options))
    return table


HEAD = """\
# {about}: the points of
# `python -m research map-schedules`, with the options of `research/verify_map/tuned.yaml`. Made by
# `python -m research map-tuned`; do not edit.
"""


def write_experiment(data: Mapping[str, Any], path: Path, head: str = "") -> None:
    """Write an experiment file."""
    write_text(path, head + yaml.dump(dict(data), Dumper=Plain, sort_keys=False, default_flow_style=None, width=110))


def experiment_path(name: str) -> Path:
    """Where an experiment of the map stands."""
    return FOLDER.parent / "experiments" / f"{name}.yaml"


def write_tuning(runs: Sequence[Path], out: Path) -> Path:
    """Write the experiment that plays the next candidates.

    Args:
        runs: the finished run of `map-conflict`; none for that experiment itself.
    """
    candidates = read_candidates()
    conflict = None
    if runs:
        conflict = {place: next(iter(found)) for place, found in choose_conflict(read_evidence(runs)).items()}
    ((_, made),) = tuning_experiments(candidates, conflict).items()
    write_experiment(made, out)
    return out


def write_tuned(conflict_run: Path, options_run: Path) -> list[Path]:
    """Write what was chosen, and the shipped experiments that play with it.

    Args:
        conflict_run: the finished run of `map-conflict`.
        options_run: the finished run of `map-tuning`.
    """
    candidates = read_candidates()
    conflicts = choose_conflict(read_evidence([conflict_run]))
    chosen = choose_options(read_evidence([options_run]), candidates)
    tuned = {
        "environments": {
            place: {"conflict": next(iter(conflicts[place])), "conflicts": conflicts[place], "rules": chosen[place]}
            for place in environments()
        }
    }
    write_experiment(tuned, TUNED, TUNED_HEAD)
    for name, made in map_experiments(candidates, tuned).items():
        write_experiment(made, experiment_path(name), HEAD.format(about=made["about"].capitalize()))
    return [TUNED, *map(experiment_path, (MAP, MEMORIES))]


TUNED_HEAD = """\
# What was chosen from `candidates.yaml` on the schedules `*:development`, and the mean area of each candidate there, in
# its order. Made by `python -m research map-tuned`; do not edit.
"""
