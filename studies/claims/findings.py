"""What runs say about each claim, in words: what the page shows and `results/claims` keeps.

* `Finding` - the verdict of one claim with its deciding check, its first checks and the runs
* `find` - the findings of runs
* `store`, `load` - findings as files, one a claim
* `merge` - checks that differ in the memory's name alone, as one row
* `command_of` - the command that plays a run
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from drift_agents.analysis.runs import read_run
from drift_agents.analysis.table import MISSING
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.folder import write_text
from drift_agents.experiment.loader import load_experiment, shipped_experiments

from studies.claims.decisions import NOT_PLAYED, ClaimDecision, Played, Result, decide, join_parts, judge
from studies.claims.evidence import HELD, INCONCLUSIVE, REFUTED, Check, ClaimRun, count_unplayed
from studies.claims.registry import CLAIMS

PARTS = Path(__file__).parent / "parts"
"""Files with what the claims compare of an experiment, under its name."""

RESULTS = Path(__file__).resolve().parents[2] / "results" / "claims"
"""The folder of the findings."""

SHOWN = 8
"""How many checks of a claim a finding has at most."""


class Finding(NamedTuple):
    """What runs say about one claim, in words.

    Args:
        number: of the claim.
        verdict: `held`, `refuted`, `inconclusive` or `not played`.
        missing: what was not played; empty if nothing.
        decided_by: checks that hold, the deciding check, its figure with its bound, the number of instances, and the
            number that would decide it; empty without a check.
        checks: the first of its checks, what did not hold before the rest: figure, found, needed, n, verdict.
        others: verdict -> how many more checks there are.
        memories: the names of the memories that played.
        commands: those that play the runs again; of a run that no file plays, its experiment and configuration.
        versions: the packages that the runs were played with.
    """

    number: int
    verdict: str
    missing: Sequence[str] = ()
    decided_by: Sequence[str] = ()
    checks: Sequence[Sequence[str]] = ()
    others: Mapping[str, int] = {}
    memories: Sequence[str] = ()
    commands: Sequence[str] = ()
    versions: Sequence[str] = ()


class CheckRow(NamedTuple):
    """Checks with the same figures.

    Args:
        check: the first of them.
        memories: the memories that stand in its place in the others.
    """

    check: Check
    memories: tuple[str, ...]

    @property
    def figure(self) -> str:
        """What is checked, and where."""
        others = f" (also {', '.join(self.memories)})" if self.memories else ""
        return f"`{self.check.schedule}`: {self.check.what}{others}"


def find(folders: Sequence[Path]) -> tuple[list[Finding], list[str]]:
    """The findings of runs.

    Args:
        folders: of finished runs; several of one experiment are parts of it.

    Returns:
        A finding for each claim that the runs test, and the names of the experiments that test none.

    Raises:
        ExperimentError: if a folder holds no finished run, or parts do not fit together.
    """
    runs: dict[str, list[Played]] = {}
    for folder in folders:
        played = read_run(folder)
        runs.setdefault(played[0]["name"], []).append(played)
    results: dict[int, list[Result]] = {}
    memories: dict[str, list[str]] = {}
    for name, parts in runs.items():
        manifest, rows = join_parts(parts)
        memories[name] = sorted({row["memory"] for row in rows})
        for number, result in judge(ClaimRun(manifest, rows, count_unplayed(manifest))).items():
            results.setdefault(number, []).append(result)
    findings = []
    for number in sorted(results):
        claim = CLAIMS[number]
        own = [name for name in runs if name in claim.experiments]
        names = sorted({memory for name in own for memory in memories[name]})
        manifests = [manifest for name in own for manifest, _ in runs[name]]
        findings.append(_describe(decide(claim, results[number]), names, manifests))
    tested = {name for claim in CLAIMS.values() for name in claim.experiments}
    return findings, [name for name in runs if name not in tested]


def store(findings: Iterable[Finding], results: Path) -> None:
    """Store findings that have a check, a file for each claim; what lacks something does not replace what was decided.

    Args:
        findings: what is stored.
        results: the folder.

    Raises:
        ExperimentError: if a file cannot be read or written.
    """
    known = {finding.number: finding for finding in load(results)}
    for finding in findings:
        before = known.get(finding.number)
        if finding.checks and (finding.verdict != NOT_PLAYED or before is None or before.verdict == NOT_PLAYED):
            text = json.dumps(finding._asdict(), indent=1, ensure_ascii=False)
            write_text(results / f"{finding.number:02}.json", text + "\n", make_folder=True)


def load(results: Path) -> list[Finding]:
    """The findings of a folder, by number.

    Args:
        results: the folder.
    """
    return [Finding(**json.loads(path.read_text("utf-8"))) for path in sorted(results.glob("*.json"))]


def merge(checks: Iterable[Check], memories: Iterable[str]) -> list[CheckRow]:
    """Checks whose figures differ in nothing but the memory, as one row.

    Args:
        checks: of a claim.
        memories: the names of memories, which stand in the checks' descriptions.
    """
    names = [re.escape(name) for name in sorted(memories, key=len, reverse=True)]
    pattern = re.compile(rf"\b(?:{'|'.join(names)})(?!\w)" if names else r"(?!)")
    found: dict[tuple[Any, ...], list[Check]] = {}
    for check in checks:
        key = check._replace(what=pattern.sub("*", check.what))
        found.setdefault(key, []).append(check)
    return [
        CheckRow(first, tuple(one[0] for other in others if (one := pattern.findall(other.what))))
        for first, *others in found.values()
    ]


def _describe(verdict: ClaimDecision, memories: Sequence[str], manifests: Sequence[Mapping[str, Any]]) -> Finding:
    merged = merge(verdict.checks, memories)
    decided_by = () if verdict.nearest is None else _decided_by(verdict, verdict.nearest, merged)
    merged.sort(key=lambda row: ((REFUTED, INCONCLUSIVE, HELD).index(row.check.word), row.check.room))
    rows = tuple(
        (row.figure, row.check.found, row.check.needed, _instances(verdict, row.check), _word(row.check))
        for row in merged[:SHOWN]
    )
    rest = [row.check.word for row in merged[SHOWN:]]
    commands = []
    for manifest in manifests:
        command = command_of(manifest)
        commands.append(f"{manifest['name']}: configuration {manifest['config_hash']}" if command is None else command)
    versions = (
        ", ".join(f"{package} {number}" for package, number in manifest["versions"].items()) for manifest in manifests
    )
    return Finding(
        verdict.claim.number,
        verdict.word,
        verdict.missing,
        decided_by,
        rows,
        {word: rest.count(word) for word in dict.fromkeys(rest)},
        tuple(memories),
        tuple(commands),
        tuple(dict.fromkeys(versions)),
    )


def _decided_by(verdict: ClaimDecision, nearest: Check, merged: Sequence[CheckRow]) -> tuple[str, ...]:
    held = f"{sum(row.check.word == HELD for row in merged)} of {len(merged)}"
    shown = next(row for row in merged if row.check == nearest)
    needs = [row.check.deciding_n for row in merged if row.check.word == INCONCLUSIVE]
    most = max((need for need in needs if need is not None), default=None)
    enough = MISSING if verdict.word != INCONCLUSIVE else _number(most, None in needs)
    return held, shown.figure, f"{nearest.found}; {nearest.needed}", _instances(verdict, nearest), enough


def _number(number: int | None, unknown: bool) -> str:
    """A number of instances; `unknown` where the figure stands at its bound or has no interval."""
    known = "" if number is None else f"{number:,}"
    return f"{known or 'unknown'}{' or more' if known and unknown else ''}"


def _instances(verdict: ClaimDecision, check: Check) -> str:
    """How many instances a check has, and how many the experiment's file, where these are more."""
    counts = [result.instances[check.schedule] for result in verdict.results if check in result.checks]
    whole = max(whole for _, whole in counts)
    return f"{check.n}" if check.n >= whole else f"**{check.n}** of {whole}"


def _word(check: Check) -> str:
    if check.word != INCONCLUSIVE:
        return check.word if check.word == HELD else f"**{check.word}**"
    return f"{check.word}, n that decides: {_number(check.deciding_n, False)}"


def command_of(manifest: Mapping[str, Any]) -> str | None:
    """The command that plays a run, without its folder; `None` if neither an experiment nor a part is like it.

    Args:
        manifest: of the run.
    """
    count = len(Experiment.model_validate(manifest["experiment"]).seeds)
    files = [f"studies/claims/parts/{path.name}" for path in sorted(PARTS.glob("*.yaml"))]
    for source in [manifest["name"], *files] if manifest["name"] in shipped_experiments() else files:
        path = PARTS / Path(source).name if source in files else source
        for given, option in (({}, ""), ({"seeds": count}, f" --seeds {count}")):
            if load_experiment(path, given).config_hash() == manifest["config_hash"]:
                return f"drift-agents run {source}{option}"
    return None
