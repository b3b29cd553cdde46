"""How rule-based message policies play: tables of docs/research/readers.md, from the figures in `results/readers`.

* `store_figures` - reads finished runs and stores the figures of the page, a small file a run
* `read_whole` - reads a finished run of a whole experiment
* `write_readers` - fills the tables of the page from these files
* `summarise` - the figures of a run
* `tabulate_phases` - success by phase, of the default format
* `tabulate_verifiers` - success after the drifts by verifier, and the share of steps in loops, of other policies
* `tabulate_formats` - the format `brief` minus `ranked`, over pairs of instances

Equal runs give equal bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from drift_agents.analysis.rows import estimate, read_run
from drift_agents.analysis.table import MISSING, Table, to_markdown
from drift_agents.errors import ExperimentError
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.folder import write_text
from drift_agents.experiment.loader import load_experiment

from drift_envs.metrics.statistics import paired_difference
from research.verify_map.pages import fill_page, named_tables

EXPERIMENTS = ("readers", "readers-brief", "readers-kinds", "readers-formats")
"""The experiments of the page."""

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "readers"
"""The folder of the figures."""

PARTS = {"MessageReader": "message_reader", "ForgetfulReader": "forgetful_reader", "ErringReader": "erring_reader"}
"""The short names of the parts of `experiments/readers.py`."""

_LABEL = re.compile(rf"({'|'.join(PARTS)})\(sha256=[0-9a-f]{{16}}(?:, )?(.*)\)")
_PART = re.compile(rf'[^"]*readers\.py:({"|".join(PARTS)})@[0-9a-f]{{64}}')
_WEIGHTS = re.compile(r"research/weights/(\w+)\.npz")

VERIFIERS = ("none", "glove", "oracle_reset")
"""The verifiers that every policy was played with, in the order of the table's figures."""

TEMPERS = ("eager", "content", "cautious")
"""The tempers of `readers-brief`."""

Rows = Sequence[Mapping[str, Any]]
Figures = Mapping[str, Any]
"""Of one schedule: `rounds`, `seeds`, `phases`, and `agents` with `policy`, `verifier`, `successes` (by phase, of every
instance in the order of the seeds), `steps` and `loop_steps`."""

PAGE = HERE.parent / "docs" / "research" / "readers.md"
"""The page, of which `research.learned_reader` fills other tables."""


def find_experiment(name: str) -> Path:
    """The file of an experiment of this folder."""
    return HERE / "experiments" / f"{name}.yaml"


def short_label(label: str) -> str:
    """A label with the short names of this folder's parts and weights, as stored figures have it.

    Example:
        >>> short_label("MessageReader(sha256=0123456789abcdef, ties=last)"), short_label("planner")
        ('message_reader(ties=last)', 'planner')
    """
    found = _LABEL.fullmatch(label)
    if found is not None:
        label = f"{PARTS[found[1]]}({found[2]})" if found[2] else PARTS[found[1]]
    return _WEIGHTS.sub(r"\1", label)


def short_form(experiment: Experiment) -> Experiment:
    """An experiment with the short names of this folder's parts and weights, whatever the parts' hash and place."""
    text = _PART.sub(lambda found: PARTS[found[1]], json.dumps(experiment.to_dict()))
    return Experiment.model_validate(json.loads(_WEIGHTS.sub(r"\1", text)))


def store_figures(folders: Sequence[Path], results: Path = RESULTS) -> None:
    """Store the figures of finished runs.

    Args:
        folders: folders of runs of `EXPERIMENTS`.
        results: the folder of the figures.

    Raises:
        ExperimentError: if a run is another one, or cannot be read.
    """
    for folder in folders:
        name, config_hash, rows = read_whole(folder, EXPERIMENTS)
        figures = {"config_hash": config_hash, "schedules": summarise(rows)}
        write_text(results / f"{name}.json", json.dumps(figures, indent=1) + "\n", make_folder=True)


def read_whole(folder: Path, names: Collection[str]) -> tuple[str, str, Rows]:
    """The name, the hash and the lines of a run of an experiment as it is, without other seeds or agents.

    Args:
        folder: of the run.
        names: of the experiments that may have been played.

    Raises:
        ExperimentError: if the run is another one, or cannot be read.
    """
    manifest, rows = read_run(folder)
    name = manifest["name"]
    if name not in names:
        raise ExperimentError(f"{folder}: the run should be one of {', '.join(names)}. Received a run of {name}")
    file = f"research/experiments/{name}.yaml"
    whole = short_form(load_experiment(find_experiment(name)))
    played = short_form(Experiment.model_validate(manifest["experiment"]))
    if played.config_hash() != whole.config_hash():
        raise ExperimentError(
            f"{folder}: its figures would replace those of the whole experiment {name}, which was changed here. "
            f"Play it without other options: drift-agents run {file} --trace none"
        )
    return name, whole.config_hash(), [{**row, "policy": short_label(row["policy"])} for row in rows]


def write_readers(page: Path = PAGE, results: Path = RESULTS) -> Path:
    """Fill the tables of the page that are about rules.

    Args:
        results: the folder of the figures.

    Returns:
        The page.

    Raises:
        ExperimentError: if figures are missing.
    """
    text, tables = page.read_text("utf-8"), {}
    for name in EXPERIMENTS:
        file = results / f"{name}.json"
        if not file.is_file():
            raise ExperimentError(f"{results}: has no figures of `{name}`, give the folder of its run")
        schedules = json.loads(file.read_text("utf-8"))["schedules"]
        tables[name] = "\n\n".join([_played(schedules), *map(to_markdown, TABLES[name](schedules))])
    write_text(page, fill_page(text, tables, page.name, kept=named_tables(text) - tables.keys()))
    return page


def summarise(rows: Rows) -> dict[str, Figures]:
    """The figures of a run, by schedule.

    Args:
        rows: of one run.
    """
    schedules: dict[str, Figures] = {}
    for schedule, of_schedule in _grouped(rows, "schedule").items():
        seeds = sorted({int(row["seed"]) for row in of_schedule})
        phases = list(dict.fromkeys(str(row["phase"]) for row in of_schedule))
        agents = []
        for policy, of_policy in _grouped(of_schedule, "policy").items():
            for verifier, own in _grouped(of_policy, "verifier").items():
                successes = {phase: dict.fromkeys(seeds, 0) for phase in phases}
                for row in own:
                    successes[str(row["phase"])][int(row["seed"])] += bool(row["success"])
                agents.append(
                    {
                        "policy": policy,
                        "verifier": verifier,
                        "successes": {phase: list(counts.values()) for phase, counts in successes.items()},
                        "steps": sum(row["steps"] for row in own),
                        "loop_steps": sum(row["loop_steps"] for row in own),
                    }
                )
        rounds = max(row["round"] for row in of_schedule)
        schedules[schedule] = {"rounds": rounds, "seeds": seeds, "phases": phases, "agents": agents}
    return schedules


def tabulate_phases(schedules: Mapping[str, Figures]) -> list[Table]:
    """Success by phase with 95 % intervals, a table a schedule; the policies are one and the same.

    Args:
        schedules: the figures of a run.
    """
    tables = []
    for schedule, figures in schedules.items():
        table = Table(f"`{schedule}`: success, % [95 % interval]", ("verifier", *figures["phases"]))
        for agent in figures["agents"]:
            found = [estimate(_rates(agent["successes"][phase], figures["rounds"])) for phase in figures["phases"]]
            table.add(agent["verifier"], *(f"{one.mean:.0f} [{one.low:.0f}, {one.high:.0f}]" for one in found))
        tables.append(table)
    return tables


def tabulate_formats(schedules: Mapping[str, Figures]) -> list[Table]:
    """The success of `brief` minus that of `ranked`, paired by instance: a row a temper and time, a column a schedule.

    Args:
        schedules: the figures of a run.
    """
    title = "`brief` minus `ranked` with GLOVE, points of success [95 % interval]"
    table = Table(title, ("temper", "phases", *(f"`{schedule}`" for schedule in schedules)))
    for temper in TEMPERS:
        for words, phases in (("before the drifts", slice(0, 1)), ("after the drifts", slice(1, None))):
            cells = []
            for figures in schedules.values():
                own = {agent["policy"]: _of_instances(agent, figures, phases) for agent in figures["agents"]}
                brief, ranked = (own[f"message_reader(format={form}, temper={temper})"] for form in ("brief", "ranked"))
                found = paired_difference(brief, ranked)
                cells.append(f"{found.mean:+.1f} [{found.low:+.1f}, {found.high:+.1f}]")
            table.add(temper, words, *cells)
    return [table]


def tabulate_verifiers(schedules: Mapping[str, Figures]) -> list[Table]:
    """Mean success after the drifts with each of `VERIFIERS`, a column a schedule, a row a policy.

    The last column is the share of steps in loops, over all schedules and verifiers.

    Args:
        schedules: the figures of a run.
    """
    title = f"Success after the drifts, %, with {', '.join(VERIFIERS)}"
    table = Table(title, ("policy", *(f"`{schedule}`" for schedule in schedules), "steps in loops, %"))
    policies = dict.fromkeys(agent["policy"] for figures in schedules.values() for agent in figures["agents"])
    for policy in policies:
        cells, steps, loop_steps = [], 0, 0
        for figures in schedules.values():
            own = {agent["verifier"]: agent for agent in figures["agents"] if agent["policy"] == policy}
            steps += sum(agent["steps"] for agent in own.values())
            loop_steps += sum(agent["loop_steps"] for agent in own.values())
            cells.append(", ".join(_after_drifts(own[verifier], figures) for verifier in VERIFIERS if verifier in own))
        table.add(f"`{policy}`", *cells, f"{100 * loop_steps / steps:.0f}")
    return [table]


TABLES = {
    "readers": tabulate_phases,
    "readers-brief": tabulate_formats,
    "readers-kinds": tabulate_verifiers,
    "readers-formats": tabulate_verifiers,
}
"""What shows the figures, by experiment."""


def _played(schedules: Mapping[str, Figures]) -> str:
    counts = [
        f"`{schedule}`: {len(figures['seeds'])} instances, {figures['rounds']} round"
        f"{'s' * (figures['rounds'] > 1)} a phase"
        for schedule, figures in schedules.items()
    ]
    return "; ".join(counts) + "."


def _grouped(rows: Rows, field: str) -> dict[str, Rows]:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(str(row[field]), []).append(row)
    return dict(groups)


def _of_instances(agent: Mapping[str, Any], figures: Figures, phases: slice) -> np.ndarray:
    counts = np.array([agent["successes"][phase] for phase in figures["phases"][phases]])
    return np.asarray(100 * counts.mean(axis=0) / figures["rounds"])


def _after_drifts(agent: Mapping[str, Any], figures: Figures) -> str:
    counts = [count for phase in figures["phases"][1:] for count in agent["successes"][phase]]
    return f"{np.mean(_rates(counts, figures['rounds'])):.0f}" if counts else MISSING


def _rates(successes: Sequence[int], rounds: int) -> list[float]:
    return [100 * count / rounds for count in successes]
