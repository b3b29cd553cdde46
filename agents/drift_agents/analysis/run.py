"""A finished run in Python: a frame for pandas, a report for notebooks, its figures as data for `--json`.

`docs/command_line.md` documents the fields of the data. Figures are in percent, as in the tables.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drift_agents.analysis.report import make_report
from drift_agents.analysis.rows import (
    Row,
    Runs,
    ScheduleRuns,
    describe_interval,
    estimate,
    parts_of,
    read_run,
    sum_of,
)
from drift_agents.analysis.tables import write_headline
from drift_agents.experiment.logs import FIELDS

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Run:
    """A finished run.

    A notebook shows it as its report, without the plots.

    Args:
        folder: where it is.
        manifest: what `run.json` says: the experiment, its schedules, versions.
        rows: a mapping for every episode, in the order of `episodes.jsonl`.
    """

    folder: Path
    manifest: dict[str, Any] = field(repr=False)
    rows: Sequence[Row] = field(repr=False)

    def frame(self) -> pd.DataFrame:
        """A row for every episode and a column for every field of its line (`docs/logs.md`).

        What has no value is missing in the frame, too: `NaN` among numbers, else `None`. Episodes of a training phase
        have `train` as `stage` and belong to no phase.
        """
        import pandas as pd

        return pd.DataFrame({name: [row[name] for row in self.rows] for name in FIELDS})

    def _repr_html_(self) -> str:
        """The report for notebooks; its colours are those of the page."""
        from drift_agents.analysis.html.report import to_html  # needs Jinja, which data do without

        report = make_report(self.manifest, self.rows)
        parts = [f"<h3>{escape(self.manifest['name'])}</h3>"]
        parts.append(f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in report.headline)}</ul>")
        parts.append(to_html(report.overview))
        for section in report.sections:
            tables = "".join(map(to_html, section.tables))
            heading = escape(f"{section.subject} ({section.about})")
            parts.append(f"<details><summary>{heading}</summary>{tables}</details>")
        return "".join(parts)


def load_run(folder: str | os.PathLike[str]) -> Run:
    """The run in a folder.

    Args:
        folder: of `drift-agents run` or `run_experiment`.

    Raises:
        ExperimentError: if it holds no finished run.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from drift_agents.experiment.loader import parse_experiment
        >>> from drift_agents.experiment.runner import run_experiment
        >>> agents = {"memory": "vanilla", "verifier": "none", "policy": "random"}
        >>> data = {"name": "try", "schedules": ["frozen_lake/implicit"], "seeds": 2, "rounds": 1, "agents": agents}
        >>> with TemporaryDirectory() as home:
        ...     path = Path(home, "run")
        ...     _ = run_experiment(parse_experiment(data), path, jobs=1)
        ...     run = load_run(path)
        >>> run.frame().groupby("phase", sort=False)["score"].count().to_dict()
        {'source': 2, 'reversal': 2}
    """
    path = Path(folder)
    manifest, rows = read_run(path)
    return Run(path, manifest, rows)


COUNTS = ("steps", "probe_steps", "probe_resets", "model_calls", "tokens_in", "tokens_out")
"""Fields of `episodes.jsonl` that are summed over an instance, training included."""


def describe_run(folder: Path) -> dict[str, Any]:
    """The figures of a finished run.

    Raises:
        ExperimentError: if the folder holds no finished run.
    """
    manifest, rows = read_run(folder)
    parts = parts_of(manifest, rows)
    return {
        "name": manifest["name"],
        "versions": manifest["versions"],
        "headline": write_headline(manifest, parts),
        "schedules": [
            {
                "name": part.schedule,
                **{key: manifest["schedules"].get(part.schedule, {}).get(key) for key in ("env", "hash", "visibility")},
                "control": bool(manifest["schedules"].get(part.schedule, {}).get("control")),
                "measure": part.measure.field,
                "phases": list(part.phases),
                "agents": [_describe_runs(part, runs) for runs in part.players.runs.values()],
            }
            for part in parts
        ],
    }


def _describe_runs(part: ScheduleRuns, runs: Runs) -> dict[str, Any]:
    player = runs.player
    return {
        "name": part.players.full_name(player),
        **player._asdict(),
        "reference": part.players.is_reference(player),
        "supervision": part.players.supervision(player),
        "seeds": list(runs.seeds),
        "phases": [{"id": phase, **_score(part, runs.phase(phase))} for phase in part.phases],
        "after": _score(part, part.after(runs)),
        "per_seed": {field: runs.whole.per_instance(sum_of(field)) for field in COUNTS},
    }


def _score(part: ScheduleRuns, runs: Runs) -> dict[str, Any]:
    return describe_interval(estimate(runs.per_instance(part.measure.of), one_run=runs.is_one_run))
