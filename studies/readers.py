"""How readers of messages play: the page docs/readers.md, from the figures in results/readers.

* `store_figures` - reads finished runs and stores the figures of the page, a small file a run
* `write_readers` - writes the page from these files
* `summarise` - the figures of a run
* `tabulate` - success by phase, and the share of steps in loops
* `judge_aims` - the aims of the default format: each with what was found

Equal runs give equal bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from drift_agents.analysis.leaderboard import MARK
from drift_agents.analysis.runs import estimate, read_run
from drift_agents.analysis.table import Table, to_markdown
from drift_agents.errors import ExperimentError
from drift_agents.experiment.folder import write_text
from drift_agents.experiment.loader import load_experiment

SOURCE_AIM, KEPT_AIM = 0.8, 0.85
"""The success rate in the source phase, and GLOVE's as a share of oracle reset's after every drift."""

EXPERIMENTS = ("readers", "readers-kinds", "readers-formats")
"""The experiments of the page."""

RESULTS = Path(__file__).resolve().parents[1] / "results" / "readers"
"""The folder of the figures."""

Rows = Sequence[Mapping[str, Any]]
Figures = Mapping[str, Any]
"""Of one schedule: `rounds`, `seeds`, `phases`, and `agents` with `policy`, `verifier`, `successes` (by phase, of every
instance in the order of the seeds), `steps` and `loop_steps`."""

HEAD = """# Readers of the messages

{mark}

The policies `message_reader`, `forgetful_reader` (overlooks a tenth of the known outcomes) and `erring_reader` (5 % \
other actions) parse the messages of a language model and nothing else. They take the action with the highest score \
that the messages show, in records or at the end of a way in a lesson, of equal ones that with the fewest steps \
where these are shown (else `ties`: `first`, `last` or `random`), and elsewhere what their common sense says: walk \
towards the destination, push in the direction of the motion, read a listing's features, compare words. They are no \
language models; a format with which they move in circles gives a deterministic model little chance.

The instances are held out (seeds from 1000); wording and common sense were chosen on the seeds 0 to 29. Figures are \
success rates in percent, means over instances with 95 % intervals. The figures are in \
[`results/readers`](../results/readers); `python -m studies readers --out docs/readers.md` writes the page from them. \
They are made anew by

```sh
{commands}
python -m studies readers {folders} --out docs/readers.md
```
"""

NOTES = {
    "readers": (
        '**The same words for all**: every agent reads "At step N an outcome contradicted memory". With it '
        "the plain agent wins the car without a verifier, since the reader then trusts its newest pushes. On "
        "the lake and in the shop the line does not help the plain agent: the records that it recalls first "
        "are the oldest.",
        "`overwrite` plays GLOVE's episodes here: no outcome is false. `announce_only` changes no record, so "
        "it shows what the line alone does.",
        "GLOVE can exceed *oracle reset*, which also forgets the records that still hold.",
    ),
    "readers-kinds": (
        "On the car no two actions are tied, and readers use the velocities before and after pushes, not the "
        "estimates.",
        "`ties: last` finds the right button of the advertisements in the source phase only after all the others, so "
        "that after a drift no button is untried. The reader then presses first what last failed before the "
        "contradiction (common sense that was added after a first run of this table, where GLOVE stayed at 0; it was "
        "found and tried on the seeds 0 and 1). A wrong button brings the next advertisement, and takes all steps of "
        "an episode: with four wrong ones known, an agent that keeps them needs more episodes than one that forgets.",
    ),
    "readers-formats": (
        "`paper` and `react` show neither the steps to a score nor the episode so far. A step against the "
        'wall, a step back and the right way all read "Max score achievable 1.0", so a reader with a fixed '
        "rule for ties repeats them until time runs out. In the shop these formats do not show which options "
        "are chosen, and the reader chooses the first one again and again.",
        "`raw` has no estimate: what prevents most circles are facts (which actions the episode executed here, how"
        " often it was in the state that an action leads to, what ended episodes elsewhere).",
        "Four rounds of the lakes are hardly more than the search for a way: compare rows with each other, not with "
        "the twenty rounds of `readers`.",
    ),
}
"""What the figures say, by experiment."""


class Aim(NamedTuple):
    """An aim with what was found.

    Args:
        schedule: the schedule.
        phase: the phase.
        what: the aim in words.
        found: the figure in words.
        is_met: whether it is met.
    """

    schedule: str
    phase: str
    what: str
    found: str
    is_met: bool


def store_figures(folders: Sequence[Path], results: Path = RESULTS) -> None:
    """Store the figures of finished runs.

    Args:
        folders: folders of runs of `EXPERIMENTS`.
        results: the folder of the figures.

    Raises:
        ExperimentError: if a run is another one, or cannot be read.
    """
    for folder in folders:
        manifest, rows = read_run(folder)
        name = manifest["name"]
        if name not in EXPERIMENTS:
            raise ExperimentError(
                f"{folder}: the run should be one of {', '.join(EXPERIMENTS)}. Received a run of {name}"
            )
        figures = {"config_hash": manifest["config_hash"], "schedules": summarise(rows)}
        write_text(results / f"{name}.json", json.dumps(figures, indent=1) + "\n", make_folder=True)


def write_readers(out: Path | None = None, results: Path = RESULTS) -> str:
    """Make the page from the figures.

    Args:
        out: where it is written, if anywhere.
        results: the folder of the figures.

    Returns:
        The page.

    Raises:
        ExperimentError: if figures are missing.
    """
    names = [name for name in EXPERIMENTS if (results / f"{name}.json").is_file()]
    if EXPERIMENTS[0] not in names:
        raise ExperimentError(f"{results}: has no figures of `{EXPERIMENTS[0]}`, give the folder of its run")
    commands = "\n".join(f"drift-agents run {name} --trace none" for name in names)
    parts = [HEAD.format(mark=MARK, commands=commands, folders=" ".join(f"runs/{name}" for name in names)).strip()]
    for name in names:
        schedules = json.loads((results / f"{name}.json").read_text("utf-8"))["schedules"]
        about = load_experiment(name).about
        parts.append(f"## `{name}`\n\n{about[:1].upper()}{about[1:]}. {_played(schedules)}")
        if name == EXPERIMENTS[0]:
            parts.append(to_markdown(_aims_table(judge_aims(schedules))))
        parts += [to_markdown(table) for table in tabulate(schedules)]
        parts.append("\n".join(f"- {note}" for note in NOTES[name]))
    text = "\n\n".join(parts) + "\n"
    if out is not None:
        write_text(out, text)
    return text


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


def tabulate(schedules: Mapping[str, Figures]) -> list[Table]:
    """Success by phase, and the share of steps in loops: a table a schedule.

    Args:
        schedules: the figures of a run.
    """
    tables = []
    for schedule, figures in schedules.items():
        phases = figures["phases"]
        table = Table(f"`{schedule}`: success, %", ("reader", "verifier", *phases, "steps in loops, %"))
        for agent in figures["agents"]:
            rates = [_rate(agent["successes"][phase], figures["rounds"]) for phase in phases]
            share = agent["loop_steps"] / agent["steps"]
            table.add(f"`{agent['policy']}`", agent["verifier"], *rates, f"{100 * share:.0f}")
        tables.append(table)
    return tables


def judge_aims(schedules: Mapping[str, Figures]) -> list[Aim]:
    """The aims, schedule by schedule.

    Args:
        schedules: the figures of a run with the verifier `glove` and the reference `oracle_reset`, of one policy.
    """
    aims = []
    for schedule, figures in schedules.items():
        rates = {
            agent["verifier"]: {
                phase: float(np.mean(counts)) / figures["rounds"] for phase, counts in agent["successes"].items()
            }
            for agent in figures["agents"]
        }
        for phase in figures["phases"]:
            glove, oracle = rates["glove"][phase], rates["oracle_reset"][phase]
            if phase == "source":
                aims.append(Aim(schedule, phase, f"at least {SOURCE_AIM:.0%}", f"{glove:.1%}", glove >= SOURCE_AIM))
            else:
                kept = glove / oracle if oracle else 0.0
                found = f"{kept:.0%} ({glove:.1%} of {oracle:.1%})"
                what = f"GLOVE at least {KEPT_AIM:.0%} of oracle reset"
                aims.append(Aim(schedule, phase, what, found, kept >= KEPT_AIM))
    return aims


def _aims_table(aims: Iterable[Aim]) -> Table:
    table = Table("Aims", ("schedule", "phase", "aim", "found", "met"))
    for aim in aims:
        table.add(f"`{aim.schedule}`", aim.phase, aim.what, aim.found, "yes" if aim.is_met else "**no**")
    return table


def _played(schedules: Mapping[str, Figures]) -> str:
    counts = [
        f"`{schedule}`: {len(figures['seeds'])} instances, {figures['rounds']} round"
        f"{'s' * (figures['rounds'] > 1)} of every phase"
        for schedule, figures in schedules.items()
    ]
    return "; ".join(counts) + "."


def _grouped(rows: Rows, field: str) -> dict[str, Rows]:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(str(row[field]), []).append(row)
    return dict(groups)


def _rate(successes: Sequence[int], rounds: int) -> str:
    value = estimate([100 * count / rounds for count in successes])
    return f"{value.mean:.0f} [{value.low:.0f}, {value.high:.0f}]"
