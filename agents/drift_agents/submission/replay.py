"""A sample of a submission's cells, played again and compared byte by byte; the certificate states what was found.

* `replay_submission` - plays the sample
* `Certificate` - which cells were played again, on which versions and platform, and what was different
* `choose_cells` - the sample
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from drift_agents.checks import check_integer
from drift_agents.errors import DriftAgentsError, ExperimentError, SubmissionError
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.episode import play
from drift_agents.experiment.folder import MANIFEST, REPLIES, RunFolder, find_differences
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.logs import first_difference, to_line
from drift_agents.experiment.manifest import describe
from drift_agents.experiment.packages import run_versions
from drift_agents.experiment.pipe.process import measure_isolation
from drift_agents.experiment.plan import Cell
from drift_agents.experiment.players import needs_model
from drift_agents.llm.cache import ReplyStore
from drift_agents.llm.service import Service
from drift_agents.submission.bundle import Hash, PackageStatement, StrictModel, describe_platform
from drift_agents.submission.prepare import state_packages
from drift_agents.submission.validate import Checked, shorten
from drift_envs.errors import DriftEnvsError


class Certificate(StrictModel):
    """What came of a replay.

    Args:
        format: the number of the format.
        submission: the digest of the submission.
        differences: what is different, where; nothing, if all compared lines and the run's description are equal.
        cells: the names of the cells that were played again.
        of: how many cells the submission has.
        lines: how many lines were compared.
        nonce: what the sample was drawn with.
        versions: those that played the sample.
        packages: other packages whose parts played the sample.
        platform: where it was played.
        isolation: the layers of `drift_agents.experiment.pipe.process.Isolation` that held.
    """

    format: Literal[3] = 3
    submission: Hash
    differences: tuple[str, ...]
    cells: tuple[str, ...]
    of: int
    lines: int
    nonce: str
    versions: dict[str, str]
    packages: tuple[PackageStatement, ...]
    platform: dict[str, str]
    isolation: dict[str, bool]


def replay_submission(checked: Checked, cells: int = 5, nonce: str | None = None) -> Certificate:
    """Play a sample of the cells again, with the recorded replies, and compare every line byte by byte.

    The description of the run is made again too: supervision, labels and schedules of all players. No request is
    sent to a language model.

    Args:
        checked: a valid submission.
        cells: how many cells are played; at most all.
        nonce: what the sample is drawn with. By default it is new at each call, so that it cannot be foreseen;
            a given one repeats a sample.

    Raises:
        ArgumentError: if `cells` is not positive.
        SubmissionError: if the submission is not valid, or an agent's package is not installed.
    """
    check_integer("cells", cells)
    if checked.findings or checked.statement is None:
        raise SubmissionError("\n".join([f"{checked.folder}: the submission is not valid:", *checked.findings]))
    try:
        experiment = parse_experiment(checked.manifest["experiment"], MANIFEST)
    except ExperimentError as error:
        wanted = ", ".join(f"{package.name}=={package.version}" for package in checked.statement.packages)
        hint = f"\nThe agent is in: {wanted}. Install it first" if wanted else ""
        raise SubmissionError(f"{error}{hint}") from error
    nonce = secrets.token_hex(16) if nonce is None else nonce
    sample = choose_cells(checked.cells, cells, f"{nonce}:{checked.digest}")
    return Certificate(
        submission=checked.digest,
        differences=tuple(shorten(_differences(checked, experiment, sample))),
        cells=tuple(cell.key for cell in sample),
        of=len(checked.cells),
        lines=sum(len(checked.read_lines(cell)) for cell in sample),
        nonce=nonce,
        versions=run_versions(experiment),
        packages=state_packages(experiment),
        platform=describe_platform(),
        isolation=measure_isolation()._asdict(),
    )


def choose_cells(cells: Sequence[Cell], count: int, nonce: str) -> tuple[Cell, ...]:
    """A sample in which all subsets of this size are equally likely, as far as the nonce is unknown before.

    Args:
        cells: all cells.
        count: how many are chosen, at most all.
        nonce: what the sample is drawn with.

    Returns:
        The sample, in the order of the cells.
    """
    drawn = sorted(cells, key=lambda cell: hashlib.sha256(f"{nonce}:{cell.key}".encode()).digest())[:count]
    chosen = {cell.key for cell in drawn}
    return tuple(cell for cell in cells if cell.key in chosen)


def _differences(checked: Checked, experiment: Experiment, sample: Sequence[Cell]) -> Iterator[str]:
    """What is different when the run is described and the sample is played again."""
    replies = checked.folder / REPLIES
    asks = needs_model(experiment)
    if asks and not replies.is_file():
        yield f"{REPLIES}: is missing, although the experiment has language models"
        return
    service = Service(replies=ReplyStore(replies, read_only=True)) if asks else None
    try:
        try:
            again, _ = describe(experiment, checked.cells, service)
        except (DriftAgentsError, DriftEnvsError) as error:
            yield f"{MANIFEST}: the run cannot be described here: {error}"
            return
        there, here = ({**data, "versions": None} for data in (checked.manifest, again))
        yield from (f"{MANIFEST}: {line} (there: submitted)" for line in find_differences(there, here))
        for cell in sample:
            try:
                difference = _play_again(checked, experiment, cell, service)
            except (DriftAgentsError, DriftEnvsError) as error:
                difference = str(error).replace(f"{checked.folder}/", "")
            if difference is not None:
                yield f"{cell.key}: {difference}"
    finally:
        if service is not None:
            service.close()


def _play_again(checked: Checked, experiment: Experiment, cell: Cell, service: Service | None) -> str | None:
    """Play a cell and compare its lines with the submitted ones, byte by byte; the first difference, if any."""
    submitted = checked.read_lines(cell)
    with TemporaryDirectory(prefix="drift-replay-") as scratch:
        folder = RunFolder(Path(scratch)).memories(cell.key)
        count = 0
        for row in play(cell, experiment.settings_of(cell.schedule), service=service, folder=folder):
            line = to_line(row).encode("utf-8")
            if count == len(submitted):
                return f"{count} lines are submitted, more were played"
            if line != submitted[count]:
                return f"line {count + 1} is not what was played{first_difference(submitted[count], line)}"
            count += 1
    return None if count == len(submitted) else f"{len(submitted)} lines are submitted, {count} were played"
