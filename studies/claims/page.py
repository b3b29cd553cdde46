"""The results of the claims, as one page.

* `write_claims` - makes the page of runs or of stored findings, prints or writes it
* `to_page` - the page as Markdown

Equal runs give equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from drift_agents.analysis.mechanism_test import describe_rules
from drift_agents.analysis.table import MISSING
from drift_agents.errors import ExperimentError
from drift_agents.experiment.folder import write_text

from studies.claims.decisions import NOT_PLAYED
from studies.claims.evidence import HELD, INCONCLUSIVE, REFUTED
from studies.claims.findings import RESULTS, SHOWN, Finding, find, load, store
from studies.claims.registry import CLAIMS, FIRST_CONFIRMATION, Claim

LEGEND = (
    "**Verdict**: a check is *held* when the whole interval of its figure is within the bound, *refuted* when all of "
    "it is beyond, else *inconclusive*; counts have no interval, and one instance alone decides nothing. A claim is "
    "*refuted* when one of its checks is, *held* when all are, *not played* when something is missing, else "
    "*inconclusive*. Where the text of a claim leaves room, it is read as what refutes it more easily.",
    "**Checks**: those that hold, of all. Checks whose figures differ in nothing but the memory are one, named by all "
    "their memories. A claim of k checks with all figures exactly at their bounds is "
    "refuted by chance in up to k times 2.5 % of the studies.",
    "**Decided by**: the refuted check furthest beyond its bound, else the inconclusive one, else the one nearest to "
    "its bound; distances of different kinds are compared as they stand.",
    "**Intervals** are 95 %, percentile bootstrap over instances, schedule by schedule; no claim pools schedules. With "
    "ten instances and fewer such intervals are somewhat too narrow (Hesterberg 2015). `*`: the interval excludes 0, "
    "whatever the bound is. `**`: the interval excludes 0, "
    "and so does a two-sided sign-flip test at 5 % after Holm's correction over all distinct comparisons of the "
    "experiment, those that were not played counted with p = 1; p is corrected.",
    "**n that decides**: about how many instances bring the interval's nearer end to the bound (for `**` also the "
    "test, at the level of the smallest p-value of its family), if the figure stays. It may move either way, so that "
    "the odds of a decision at that number are about even. Of a claim, the largest number of its undecided checks.",
)
"""How to read the page."""


def write_claims(folders: Sequence[Path] = (), path: Path | None = None, results: Path | None = None) -> str:
    """Make the page of runs, or of stored findings.

    Args:
        folders: of finished runs; several of one experiment are parts of it. Those that test no claim are passed over.
        path: where to write the page; nowhere if not given.
        results: the folder in which the findings of the runs are stored; the page is of all that it has then. If not
            given, the page is of the runs alone, or of the project's own folder if there are no runs.

    Returns:
        The page.

    Raises:
        ExperimentError: if there is nothing to show, a folder holds no finished run, parts do not fit together, or the
            page cannot be written.
    """
    findings, passed = find(folders)
    if results is not None:
        store(findings, results)
    if results is not None or not folders:
        findings = load(results or RESULTS)
    if not findings and not passed:
        raise ExperimentError(f"{results or RESULTS}: has no findings, give the folders of runs")
    text = to_page(findings, passed)
    if path is not None:
        write_text(path, text)
    return text


def to_page(findings: Iterable[Finding], passed: Sequence[str] = ()) -> str:
    """The page as Markdown.

    Args:
        findings: those that there are; other claims were not played.
        passed: the names of experiments that test no claim.
    """
    found = {finding.number: finding for finding in findings}
    names = sorted({memory for finding in found.values() for memory in finding.memories})
    new = [claim for claim in CLAIMS.values() if not claim.post_hoc]
    old = [claim for claim in CLAIMS.values() if claim.post_hoc]
    lines = [
        "# Results of the claims",
        "",
        f"Confirmed or not on new instances: {_count(new, found)}. Judged again *post hoc*: {_count(old, found)}. Made "
        "by `python -m studies claims` from the lines of finished runs, or from the findings in "
        "[`results/claims`](../results/claims); do not edit.",
        "",
        describe_rules(names),
        "",
        f"## Claims from {FIRST_CONFIRMATION}",
        "",
        "Claim and rule were [committed](claims.md) before any of these instances was played.",
        "",
        *_overview(new, found),
        "",
        f"## Claims 1 to {FIRST_CONFIRMATION - 1}, post hoc",
        "",
        "The claims were written down before their first run; the rule that judges them by intervals came after it. "
        "What was not played again has no verdict.",
        "",
        *_overview(old, found),
        "",
        "## How to read this",
        "",
        *(f"- {line}" for line in LEGEND),
        "",
        "## The checks",
        "",
        f"At most {SHOWN} rows a claim: what did not hold first, then what is nearest to its bound.",
        "",
    ]
    for claim in (*new, *old):
        if claim.number in found and found[claim.number].checks:
            lines += _details(claim, found[claim.number])
    return "\n".join([*lines, *_origin(list(found.values()), passed)])


def _count(claims: Sequence[Claim], found: Mapping[int, Finding]) -> str:
    """How many of the claims held and so on, as in `of 7 claims 3 held, 1 refuted, ...`."""
    words = [found[claim.number].verdict if claim.number in found else NOT_PLAYED for claim in claims]
    counts = (f"{words.count(word)} {word}" for word in (HELD, REFUTED, INCONCLUSIVE, NOT_PLAYED))
    return f"of {len(words)} claims {', '.join(counts)}"


def _overview(claims: Iterable[Claim], found: Mapping[int, Finding]) -> list[str]:
    rows = []
    for claim in claims:
        about, finding = f"{claim.number}. {claim.about}", found.get(claim.number)
        if finding is None or not finding.decided_by:
            rows.append((about, f"{NOT_PLAYED}{' again' if claim.post_hoc else ''}", *[MISSING] * 5))
        else:
            rows.append((about, f"**{finding.verdict}**", *finding.decided_by))
    return _table(("claim", "verdict", "checks", "decided by", "effect; bound", "n", "n that decides"), rows)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table of texts; those of reports align their columns as figures."""
    rule = ["---"] * len(heads)
    safe = [[cell.replace("|", "\\|") for cell in row] for row in (heads, rule, *rows)]
    return [f"| {' | '.join(row)} |" for row in safe]


def _details(claim: Claim, finding: Finding) -> list[str]:
    mark = " (post hoc)" if claim.post_hoc else ""
    lines = [f"### {claim.number}: {finding.verdict}{mark}", "", f"{claim.reading}", ""]
    if finding.missing:
        lines += [f"Missing: {'; '.join(finding.missing)}.", ""]
    lines += [*_table(("figure", "found", "needed", "n", "verdict"), finding.checks), ""]
    if finding.others:
        lines += [f"And {', '.join(f'{number} {word}' for word, number in finding.others.items())}.", ""]
    return lines


def _origin(findings: Sequence[Finding], passed: Sequence[str]) -> list[str]:
    """Versions and commands that reproduce the figures."""
    lines, folders = ["## Reproduction", "", "```sh"], []
    for command in dict.fromkeys(command for finding in findings for command in finding.commands):
        is_shipped = command.startswith("drift-agents ")
        source = command.split()[2] if is_shipped else command.partition(":")[0]
        folders.append(f"runs/{Path(source).name.removesuffix('.yaml')}")
        lines.append(
            f"{command} --out {folders[-1]}"
            if is_shipped
            else f"# {command}, not as it is shipped; its run.json has it"
        )
    lines += [f"python -m studies claims {' '.join(folders)} --store --out docs/claims_results.md", "```", ""]
    versions = dict.fromkeys(version for finding in findings for version in finding.versions)
    lines += [f"Played with {'; '.join(versions)}.", ""] if versions else []
    names = ", ".join(f"`{name}`" for name in dict.fromkeys(passed))
    lines += [f"Passed over, since no claim is about them: {names}.", ""] if passed else []
    return lines
