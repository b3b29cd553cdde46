"""Studies of memories under given evidence, without a run over episodes.

* `STUDIES` - all of them
* `run_study` - carries one out and writes its results
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from drift_agents.analysis.table import Table, to_markdown
from drift_agents.errors import ArgumentError, UnknownNameError
from drift_agents.experiment.folder import versions, write_text

from research.belief.convergence import convergence_rows, convergence_tables
from research.belief.corpus import corpus_rows, corpus_tables
from research.belief.correction import correction_rows, correction_tables
from research.experience.traffic import stream_rows, stream_tables

SEEDS = tuple(range(1000, 1030))
"""The instances that nothing was set on."""
LINES, REPORT = "lines.jsonl", "report.md"

Lines = Sequence[Mapping[str, Any]]


class Study(NamedTuple):
    """A study.

    Args:
        about: its question, in one sentence.
        rows: instances to lines.
        tables: lines to tables.
        page: what says what the rows are.
    """

    about: str
    rows: Callable[[Sequence[int]], Iterator[dict[str, Any]]]
    tables: Callable[[Lines], list[Table]]
    page: str = "docs/memories/beliefmem.md"


STUDIES: Mapping[str, Study] = {
    "belief-correction": Study(
        "how a flawed conclusion is corrected by evidence that is half wrong", correction_rows, correction_tables
    ),
    "belief-convergence": Study(
        "whether the true conclusion ranks first as evidence grows", convergence_rows, convergence_tables
    ),
    "belief-corpus": Study("how much a memory has to hold before it stops learning", corpus_rows, corpus_tables),
    "traffic": Study(
        "which executions to keep where an agent classifies what drifts",
        stream_rows,
        stream_tables,
        "docs/memories/management.md",
    ),
}
"""All studies, by name."""


def run_study(name: str, folder: Path, seeds: int | None = None) -> Path:
    """Carry out a study; equal versions give equal bytes.

    Args:
        name: one of `STUDIES`.
        folder: where its lines and its report go; existing files of these names are replaced.
        seeds: how many of the instances; all if not given.

    Returns:
        The report.

    Raises:
        UnknownNameError: if there is no such study.
        ArgumentError: if there are fewer instances.
        ExperimentError: if the folder cannot be written.
    """
    if name not in STUDIES:
        raise UnknownNameError("study", name, STUDIES)
    if seeds is not None and not 1 <= seeds <= len(SEEDS):
        raise ArgumentError(f"`seeds` should be in the interval [1, {len(SEEDS)}]. Received {seeds}")
    study, instances = STUDIES[name], SEEDS[:seeds]
    rows = list(study.rows(instances))
    text = [f"# {name}", "", f"{study.about[0].upper()}{study.about[1:]}.", ""]
    for table in study.tables(rows):
        text += [to_markdown(table), ""]
    text += [
        "Means over instances with a 95 % interval bootstrapped over them. What the rows are stands in "
        f"`{study.page}`.",
        "",
        f"- Again: `python -m research study {name}{'' if seeds is None else f' --seeds {seeds}'}`",
        f"- Instances: {instances[0]} to {instances[-1]}",
        f"- Versions: {', '.join(f'{package} {number}' for package, number in versions().items())}",
        "",
    ]
    report = folder / REPORT
    write_text(folder / LINES, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), make_folder=True)
    write_text(report, "\n".join(text))
    return report
