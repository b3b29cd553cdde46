"""A finished run in Python: a frame for pandas, a report for notebooks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drift_agents.analysis.html.report import to_html
from drift_agents.analysis.report import make_report
from drift_agents.analysis.runs import Row, read_run
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
        """A row for every episode and a column for every field of its line (`docs/logging.md`).

        What has no value is missing in the frame, too: `NaN` among numbers, else `None`. Episodes of a training phase
        have `train` as `stage` and belong to no phase.
        """
        import pandas as pd

        return pd.DataFrame({name: [row[name] for row in self.rows] for name in FIELDS})

    def _repr_html_(self) -> str:
        """The report for notebooks; its colours are those of the page."""
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
