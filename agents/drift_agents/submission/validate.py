"""What can be checked of a submission without playing and without the agent's package.

* `check_submission` - files, hashes, experiment, schedules, lines, counts, costs and recorded replies
* `CHECKS` - the checks in words, as certificates state them
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from drift_agents.errors import DriftAgentsError
from drift_agents.experiment.folder import REPLIES
from drift_agents.llm.cache import ReplyStore
from drift_agents.submission.bundle import NAMES, OPTIONAL, STATEMENT, digest_of, read_statement, state_file
from drift_agents.submission.cell_lines import check_lines
from drift_agents.submission.checked import Checked
from drift_agents.submission.line_values import check_counts, check_values
from drift_agents.submission.run_statement import check_manifest
from drift_envs.errors import DriftEnvsError

CHECKS = (
    "the files are those that submission.json states, by name, size and SHA-256",
    "run.json: configuration hash, cells and players follow from the experiment; each schedule's hash is that of its "
    "content",
    "every line has all fields with the right types, and values within their limits",
    "the lines are those of the experiment's cells, in order, with the planned seeds, rounds, phases and ticks",
    "each cell's lines have the hash that finished.jsonl states",
    "score plus regret, the optimum, is the same for all agents in an episode of an instance",
    "the counts and costs are the sums over the lines",
    "each recorded reply stands under the hash of its request",
)
"""What `check_submission` checks, in words."""

MOST_FINDINGS = 20
"""The most findings that are listed."""


def check_submission(folder: Path) -> Checked:
    """Check a submission without playing; no part of an agent is imported.

    Args:
        folder: the submission's folder.

    Returns:
        What was found. A stage whose input is wrong is left out, so that one fault is reported once.
    """
    found = Checked(folder)
    try:
        found.findings += _check_files(found)
        if found.is_valid:
            found.findings += check_manifest(found)
        if found.is_valid:
            found.findings += _shortened(check_lines(found))
        if found.is_valid:
            found.findings += _shortened(check_values(found))
            found.findings += check_counts(found)
            found.findings += _check_replies(found)
    except (DriftAgentsError, DriftEnvsError) as error:
        found.findings += str(error).replace(f"{found.folder}/", "").splitlines()
    except RecursionError:
        found.findings += ["a file is nested too deeply"]
    return found


def _shortened(findings: Iterable[str]) -> list[str]:
    kept = list(findings)
    rest = len(kept) - MOST_FINDINGS
    return kept if rest <= 0 else [*kept[:MOST_FINDINGS], f"and {rest} more"]


def _check_files(found: Checked) -> Iterator[str]:
    found.statement = read_statement(found.folder)
    found.digest = digest_of(found.folder)
    stated = found.statement.files
    present = {path.name for path in found.folder.iterdir()} - {STATEMENT}
    for name in sorted(set(stated) - set(NAMES)):
        yield f"{STATEMENT}: states {name!r}, which is no file of a submission"
    for name in NAMES[1:]:
        if name not in stated and name not in OPTIONAL:
            yield f"{STATEMENT}: does not state {name}"
    for name in sorted(present - set(stated)):
        yield f"{name}: is not stated in {STATEMENT}"
    for name in (name for name in NAMES[1:] if name in stated):
        if name not in present:
            yield f"{name}: is missing"
            continue
        real = state_file(found.folder / name)
        if real != stated[name]:
            yield (
                f"{name}: is not the stated file: {stated[name].bytes} bytes {stated[name].sha256[:12]}... stated, "
                f"{real.bytes} bytes {real.sha256[:12]}... found"
            )


def _check_replies(found: Checked) -> Iterator[str]:
    asked = any(row["model_calls"] for row in found.rows)
    path = found.folder / REPLIES
    if not path.is_file():
        if asked:
            yield f"{REPLIES}: is missing, although language models were asked: no cell could be played again"
        return
    with ReplyStore(path, read_only=True) as replies:
        misfiled = replies.count_misfiled()
        if misfiled:
            yield f"{REPLIES}: {misfiled} replies do not stand under the hash of their request"
        if asked and not len(replies):
            yield f"{REPLIES}: holds no reply, although language models were asked"
