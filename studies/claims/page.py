"""The results of the claims, as one page.

* `write_claims` - reads folders of runs, prints the page or writes it
* `to_page` - the page as Markdown

Equal runs give equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from drift_agents.analysis.runs import read_run
from drift_agents.analysis.table import MISSING
from drift_agents.errors import ExperimentError
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.folder import write_text
from drift_agents.experiment.loader import load_experiment, shipped_experiments

from studies.claims.decisions import NOT_PLAYED, ClaimDecision, Result, decide, judge, same_episodes
from studies.claims.evidence import HELD, INCONCLUSIVE, REFUTED, Check, ClaimRun
from studies.claims.registry import CLAIMS

LEGEND = (
    "**Verdict**: a check is *held* when the whole interval of its figure is within the bound, *refuted* when all of "
    "it is beyond, else *inconclusive*; counts have no interval. A claim is *refuted* when one of its checks "
    "is, *held* when all are and all its experiments were played, *not played* when something is missing, else "
    "*inconclusive*. The number of instances that would decide it takes the figure as it is, and an interval that "
    "narrows with the root of their number. Where the text of a claim leaves room, it is read as what refutes it "
    "more easily; the reading stands with its checks.",
    "**Decided by**: of a refuted claim the checks that are furthest off, of another one the check that comes nearest "
    "to its bound. Bounds of different kinds within one claim are compared by their distance as it stands.",
    "**Checks that hold**: memories can play the same episodes, and their checks are then copies of one another; see "
    "*Memories that played the same episodes*.",
    "Intervals are 95 %, bootstrapped over instances. `all 30`: so many instances with the same figure. `**`: the "
    "interval excludes 0, and so does a two-sided sign-flip test at 5 % after Holm's correction over all comparisons "
    "of the run, those of the same episodes counted once; p is corrected. The ratio of two means stands in percent, "
    "with the means.",
    "**Instances**: how many of the experiment's instances all agents played, on the schedules of the "
    "checks. Fewer than the file has are named as such.",
)
"""How to read the page."""

SHOWN = 3
"""How many failed checks stand in the first table."""


def write_claims(folders: Sequence[Path], path: Path | None = None, first: int = 1) -> str:
    """Read folders of runs and decide the claims that they test.

    Args:
        folders: of finished runs, at most one of each experiment; those that test no claim are passed over.
        path: where to write the page; nowhere if not given.
        first: the number of the first claim of the page.

    Returns:
        The page.

    Raises:
        ExperimentError: if a folder holds no finished run, two hold the same experiment, or the page cannot be
            written.
    """
    manifests: dict[str, Mapping[str, Any]] = {}
    found: dict[int, list[Result]] = {number: [] for number in CLAIMS}
    same: dict[str, dict[str, list[str]]] = {}
    tested = {name for claim in CLAIMS.values() for name in claim.experiments}
    for folder in folders:
        manifest, rows = read_run(folder)
        name = manifest["name"]
        if name in manifests:
            raise ExperimentError(f"{folder}: a run of {name!r} was given already; give one of each")
        manifests[name] = manifest
        if name in tested:
            played = ClaimRun(manifest, rows)
            for number, result in judge(played).items():
                found[number].append(result)
            same[name] = same_episodes(played)
    text = to_page(
        [decide(claim, found[number]) for number, claim in CLAIMS.items() if number >= first], manifests, same
    )
    if path is not None:
        write_text(path, text)
    return text


def to_page(
    verdicts: Sequence[ClaimDecision],
    manifests: Mapping[str, Mapping[str, Any]],
    same: Mapping[str, Mapping[str, Sequence[str]]],
) -> str:
    """The page as Markdown.

    Args:
        verdicts: of all claims.
        manifests: what was played, by name.
        same: the memories that played the same episodes, by name and schedule.
    """
    words = [verdict.word for verdict in verdicts]
    lines = [
        "# Results of the claims",
        "",
        f"{words.count(HELD)} of the {len(words)} claims of [`claims.md`](claims.md) held, {words.count(REFUTED)} were "
        f"refuted, {words.count(INCONCLUSIVE)} are inconclusive, "
        f"{words.count(NOT_PLAYED)} were not played. Made by `python -m studies claims` from the lines of "
        "finished runs; do not edit.",
        "",
        *_overview(verdicts),
        "",
        "## How to read this",
        "",
        *(f"- {line}" for line in LEGEND),
        "",
    ]
    for verdict in verdicts:
        if verdict.results:
            lines += _details(verdict)
    return "\n".join([*lines, *_alike(same), *_origin(verdicts, manifests)])


def _overview(verdicts: Iterable[ClaimDecision]) -> list[str]:
    rows = []
    for verdict in verdicts:
        checks = verdict.checks
        held = f"{sum(check.word == HELD for check in checks)} of {len(checks)}" if checks else MISSING
        texts = "; ".join([*_deciding(verdict), *verdict.missing])
        word = verdict.word if verdict.word == NOT_PLAYED else f"**{verdict.word}**"
        rows.append((str(verdict.claim.number), word, held, texts or MISSING, _instances(verdict)))
    return _table(("claim", "verdict", "checks that hold", "decided by", "instances"), rows)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table of texts; those of reports align their columns as figures."""
    rule = ["---"] * len(heads)
    safe = [[cell.replace("|", "\\|") for cell in row] for row in (heads, rule, *rows)]
    return [f"| {' | '.join(row)} |" for row in safe]


def _deciding(verdict: ClaimDecision) -> list[str]:
    checks = verdict.failed[:SHOWN] or ([] if verdict.nearest is None else [verdict.nearest])
    texts = [f"`{one.schedule}`, {one.what}: {one.found}; {one.needed}: {_word(one)}" for one in checks]
    more = len(verdict.failed) - SHOWN
    return [f"({one})" for one in texts] + ([f"and {more} more"] if more > 0 else [])


def _instances(verdict: ClaimDecision) -> str:
    """How many of how many, with the schedules where these are not the same everywhere."""
    schedules: dict[tuple[int, int], list[str]] = {}
    for result in verdict.results:
        for schedule, counts in result.instances.items():
            schedules.setdefault(counts, [])
            schedules[counts] += [] if schedule in schedules[counts] else [schedule]
    parts = []
    for (played, whole), names in schedules.items():
        text = f"all {whole}" if played == whole else f"**only {played}** of {whole}"
        parts.append(text if len(schedules) == 1 else f"{text} ({', '.join(f'`{name}`' for name in names)})")
    return "; ".join(parts) or MISSING


def _details(verdict: ClaimDecision) -> list[str]:
    lines = [f"## Claim {verdict.claim.number}: {verdict.word}", "", f"Read as: {verdict.claim.reading}", ""]
    if verdict.missing:
        lines += [f"Missing: {'; '.join(verdict.missing)}.", ""]
    if verdict.checks:
        rows = [
            (f"`{check.schedule}`", check.what, check.found, check.needed, _word(check)) for check in verdict.checks
        ]
        lines += [*_table(("schedule", "figure", "found", "needed", "verdict"), rows), ""]
    return lines


def _word(check: Check) -> str:
    if check.word != INCONCLUSIVE:
        return check.word if check.word == HELD else f"**{check.word}**"
    return f"{check.word}, {'no number decides' if check.deciding_n is None else f'n = {check.deciding_n:,}'}"


def _alike(same: Mapping[str, Mapping[str, Sequence[str]]]) -> list[str]:
    """The memories that make no difference, so that their checks are not counted as evidence several times."""
    rows = [
        (f"`{name}`", f"`{schedule}`", "; ".join(groups))
        for name, schedules in same.items()
        for schedule, groups in schedules.items()
    ]
    if not rows:
        return []
    text = (
        "These agents had the same score and the same number of steps in every episode of every instance. Their checks "
        "are one piece of evidence, not several."
    )
    table = _table(("experiment", "schedule", "the same episodes"), rows)
    return ["## Memories that played the same episodes", "", text, "", *table, ""]


def _origin(verdicts: Iterable[ClaimDecision], manifests: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Configuration, versions and commands that reproduce the figures."""
    tested = {name for verdict in verdicts for name in verdict.claim.experiments}
    names = [name for name in manifests if name in tested]
    lines = ["## Reproduction", "", "```sh"]
    lines += [f"drift-agents run {name} --out runs/{name}" for name in names]
    lines += [
        f"python -m studies claims {' '.join(f'runs/{name}' for name in names)} --out docs/claims_results.md",
        "```",
        "",
    ]
    for name in names:
        manifest = manifests[name]
        versions = ", ".join(f"{package} {number}" for package, number in manifest["versions"].items())
        lines.append(f"- `{name}`: configuration {manifest['config_hash']}{_note(name, manifest)}; {versions}.")
    passed = [f"`{name}`" for name in manifests if name not in tested]
    lines += [f"- Passed over, since no claim is about them: {', '.join(passed)}."] if passed else []
    return [*lines, ""]


def _note(name: str, manifest: Mapping[str, Any]) -> str:
    """Whether the run plays what is shipped under its name."""
    if name not in shipped_experiments():
        return ", which is not shipped"
    ours, theirs = load_experiment(name), Experiment.model_validate(manifest["experiment"])
    if ours.config_hash() == manifest["config_hash"]:
        return ", as shipped"
    same = _without_seeds(ours) == _without_seeds(theirs)
    return ", as shipped but for the instances" if same else ", **not as it is shipped now**: its `run.json` has it"


def _without_seeds(experiment: Experiment) -> dict[str, Any]:
    data = {key: value for key, value in experiment.to_dict().items() if key not in ("seeds", "about", "trace")}
    worlds = {
        name: rest
        for name, world in data.pop("worlds", {}).items()
        if (rest := {key: value for key, value in world.items() if key != "seeds"})
    }
    return {**data, "worlds": worlds}
