"""Which mechanisms of memories change an episode: the page docs/mechanisms.md, from a finished run.

* `write_mechanisms` - the command's work: compare the agents of a run and write the page
* `count_changes` - episodes that a mechanism changed
* `MECHANISMS` - each mechanism with the option that switches it off
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from drift_agents.analysis.mechanism_test import MARK
from drift_agents.analysis.runs import Row, read_run
from drift_agents.analysis.schedule_runs import MEMORY_NAMES
from drift_agents.analysis.table import MISSING, Table, to_markdown
from drift_agents.errors import ExperimentError
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.folder import write_text


class Mechanism(NamedTuple):
    """A mechanism of a memory.

    Args:
        memory: the memory's name.
        what: the mechanism.
        off: the options of the memory without it.
    """

    memory: str
    what: str
    off: Mapping[str, Any]


MECHANISMS = (
    Mechanism("vanilla", "the oldest records first", {"order": "newest"}),
    Mechanism("memory_bank", "daily summaries", {"days": 0}),
    Mechanism("memory_bank", "the sixth record", {"k": 5}),
    Mechanism("voyager", "rows of attempts", {"attempts": 1}),
    Mechanism("voyager", "records of failures weigh less", {"failed": 1.0}),
    Mechanism("generative_agents", "reflection", {"reflect": "threshold", "threshold": 1_000_000}),
    Mechanism("generative_agents", "recency", {"weights": [0, 1, 1]}),
    Mechanism("generative_agents", "importance", {"weights": [1, 0, 1]}),
    Mechanism("generative_agents", "relevance", {"weights": [1, 1, 0]}),
    Mechanism("generative_agents", "the newest of equals", {"ties": "oldest"}),
    Mechanism("beliefmem", "several candidates with probabilities", {"without": "belief"}),
    Mechanism("beliefmem", "retrieval by probability", {"without": "retrieval"}),
    Mechanism("beliefmem", "merging of observations", {"without": "merge"}),
    Mechanism("synapse", "successes alone", {"pool": "all"}),
    Mechanism("reasoning_bank", "successes alone", {"pool": "all"}),
)
"""What is switched off, one at a time."""

HEAD = f"""# Mechanisms, switched off one at a time

{MARK} Each row compares a memory with the same memory without one of its \
mechanisms, over the same instances and with the same random numbers: the episodes whose score or number of steps \
differs. A mechanism that changes none did nothing in these episodes, whatever the memory is \
called; in other worlds, or with a language model, which reads the texts that the planner does not, it may. Where one \
episode changes, later ones of the same instance can change with it, so that counts say whether, not how much.

"""


def write_mechanisms(folder: Path, out: Path | None) -> str:
    """Compare the agents of a finished run of `mechanisms`.

    Args:
        folder: the run's folder.
        out: the page; `None` writes none.

    Returns:
        The page's text.

    Raises:
        ExperimentError: if the folder holds no finished run, an agent is missing, or the page cannot be written.
    """
    manifest, rows = read_run(folder)
    experiment = Experiment.model_validate(manifest["experiment"])
    verifiers = [part.label() for block in experiment.agents for part in block.verifier]
    table = Table("Episodes that change", ("memory", "mechanism", "switched off by", *map(_heading, verifiers)))
    for mechanism in MECHANISMS:
        options = ", ".join(f"`{key}: {value}`" for key, value in mechanism.off.items())
        cells = []
        for verifier in verifiers:
            changed, played = count_changes(experiment, rows, mechanism, verifier)
            cells.append(f"{changed:,} of {played:,}" if played else MISSING)
        table.add(MEMORY_NAMES.get(mechanism.memory, mechanism.memory), mechanism.what, options, *cells)
    seeds = f"{experiment.seeds[0]} to {experiment.seeds[-1]}"
    schedules = ", ".join(f"`{name}`" for name in experiment.schedules)
    text = (
        f"{HEAD}{to_markdown(table)}\n\nSchedules: {schedules}; seeds {seeds}. Made by `python -m studies mechanisms` "
        f"from a run of `{manifest['name']}` (configuration `{manifest['config_hash']}`); do not edit.\n\n"
        f"```sh\ndrift-agents run mechanisms --seeds {len(experiment.seeds)} --out runs/mechanisms\n"
        "python -m studies mechanisms runs/mechanisms --out docs/mechanisms.md\n```\n"
    )
    if out is not None:
        write_text(out, text)
    return text


def count_changes(experiment: Experiment, rows: Sequence[Row], mechanism: Mechanism, verifier: str) -> tuple[int, int]:
    """How many episodes a mechanism changed, and of how many.

    Args:
        experiment: what was played.
        rows: the rows of the run.
        mechanism: what is switched off.
        verifier: the label of the verifier that both agents have.

    Raises:
        ExperimentError: if the memory was not played with and without the mechanism.
    """
    parts = [part for block in experiment.agents for part in block.memory]
    labels = {}
    for part in parts:
        if part.name == mechanism.memory and part.options in ({}, dict(mechanism.off)):
            labels[not part.options] = part.label(parts)
    if len(labels) < 2:
        raise ExperimentError(f"{experiment.name}: {mechanism.memory} was not played with and without {mechanism.what}")
    played: dict[bool, dict[tuple[Any, ...], tuple[Any, ...]]] = {True: {}, False: {}}
    for row in rows:
        if row["verifier"] == verifier and row["memory"] in labels.values():
            at = (row["schedule"], row["seed"], row["episode"])
            for is_whole, label in labels.items():
                if row["memory"] == label:
                    played[is_whole][at] = (row["score"], row["steps"])
    common = played[True].keys() & played[False].keys()
    return sum(played[True][at] != played[False][at] for at in common), len(common)


def _heading(verifier: str) -> str:
    return "plain" if verifier == "none" else f"with {verifier}"
