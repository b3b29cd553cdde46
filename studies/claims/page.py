"""The results of the claims, as one page.

* `write_claims` - reads folders of runs, prints the page or writes it
* `to_page` - the page as Markdown
* `merge` - checks that differ in the memory's name alone, as one row
* `command_of` - the command that plays a run

Equal runs give equal bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from drift_agents.analysis.mechanism_test import describe_rules
from drift_agents.analysis.runs import read_run
from drift_agents.analysis.table import MISSING
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.folder import write_text
from drift_agents.experiment.loader import load_experiment, shipped_experiments

from studies.claims.decisions import NOT_PLAYED, ClaimDecision, Played, Result, decide, join_parts, judge
from studies.claims.evidence import HELD, INCONCLUSIVE, REFUTED, Check, ClaimRun, count_unplayed
from studies.claims.registry import CLAIMS, FIRST_CONFIRMATION

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

PARTS = Path(__file__).parent / "parts"
"""Files with what the claims compare of an experiment, under its name."""

SHOWN = 8
"""How many checks of a claim the page shows at most."""


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


def write_claims(folders: Sequence[Path], path: Path | None = None) -> str:
    """Read folders of runs and decide the claims that they test.

    Args:
        folders: of finished runs; several of one experiment are parts of it. Those that test no claim are passed over.
        path: where to write the page; nowhere if not given.

    Returns:
        The page.

    Raises:
        ExperimentError: if a folder holds no finished run, parts do not fit together, or the page cannot be written.
    """
    runs: dict[str, list[Played]] = {}
    for folder in folders:
        played = read_run(folder)
        runs.setdefault(played[0]["name"], []).append(played)
    found: dict[int, list[Result]] = {number: [] for number in CLAIMS}
    tested = {name for claim in CLAIMS.values() for name in claim.experiments}
    memories: set[str] = set()
    for name in (one for one in runs if one in tested):
        manifest, rows = join_parts(runs[name])
        memories |= {row["memory"] for row in rows}
        for number, result in judge(ClaimRun(manifest, rows, count_unplayed(manifest))).items():
            found[number].append(result)
    verdicts = [decide(claim, found[number]) for number, claim in CLAIMS.items()]
    text = to_page(verdicts, [manifest for parts in runs.values() for manifest, _ in parts], memories)
    if path is not None:
        write_text(path, text)
    return text


def to_page(verdicts: Sequence[ClaimDecision], manifests: Sequence[Mapping[str, Any]], memories: Iterable[str]) -> str:
    """The page as Markdown.

    Args:
        verdicts: of all claims.
        manifests: what was played.
        memories: the names of the memories that played.
    """
    names = sorted(memories)
    new = [verdict for verdict in verdicts if not verdict.claim.post_hoc]
    old = [verdict for verdict in verdicts if verdict.claim.post_hoc]
    lines = [
        "# Results of the claims",
        "",
        f"Confirmed or not on new instances: {_count(new)}. Judged again *post hoc*: {_count(old)}. Made by "
        "`python -m studies claims` from the lines of finished runs; do not edit.",
        "",
        describe_rules(names),
        "",
        f"## Claims from {FIRST_CONFIRMATION}",
        "",
        "Claim and rule were [committed](claims.md) before any of these instances was played.",
        "",
        *_overview(new, names),
        "",
        f"## Claims 1 to {FIRST_CONFIRMATION - 1}, post hoc",
        "",
        "The claims were written down before their first run; the rule that judges them by intervals came after it. "
        "What was not played again has no verdict.",
        "",
        *_overview(old, names),
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
    for verdict in (*new, *old):
        if verdict.checks:
            lines += _details(verdict, names)
    return "\n".join([*lines, *_origin(verdicts, manifests)])


def _count(verdicts: Sequence[ClaimDecision]) -> str:
    """How many of the claims held and so on, as in `of the 7 claims 3 held, 1 was refuted, ...`."""
    words = [verdict.word for verdict in verdicts]
    counts = (f"{words.count(word)} {word}" for word in (HELD, REFUTED, INCONCLUSIVE, NOT_PLAYED))
    return f"of {len(words)} claims {', '.join(counts)}"


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


def _overview(verdicts: Iterable[ClaimDecision], memories: Iterable[str]) -> list[str]:
    rows = []
    for verdict in verdicts:
        about, word = f"{verdict.claim.number}. {verdict.claim.about}", f"**{verdict.word}**"
        nearest = verdict.nearest
        if nearest is None:
            again = " again" if verdict.claim.post_hoc else ""
            rows.append((about, f"{verdict.word}{again}", *[MISSING] * 5))
            continue
        merged = merge(verdict.checks, memories)
        held = f"{sum(row.check.word == HELD for row in merged)} of {len(merged)}"
        shown = next(row for row in merged if row.check == nearest)
        needs = [row.check.deciding_n for row in merged if row.check.word == INCONCLUSIVE]
        most = max((need for need in needs if need is not None), default=None)
        enough = MISSING if verdict.word != INCONCLUSIVE else _number(most, None in needs)
        figure = f"{nearest.found}; {nearest.needed}"
        rows.append((about, word, held, shown.figure, figure, _instances(verdict, nearest), enough))
    return _table(("claim", "verdict", "checks", "decided by", "effect; bound", "n", "n that decides"), rows)


def _number(number: int | None, unknown: bool) -> str:
    """A number of instances; `unknown` where the figure stands at its bound or has no interval."""
    known = "" if number is None else f"{number:,}"
    return f"{known or 'unknown'}{' or more' if known and unknown else ''}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table of texts; those of reports align their columns as figures."""
    rule = ["---"] * len(heads)
    safe = [[cell.replace("|", "\\|") for cell in row] for row in (heads, rule, *rows)]
    return [f"| {' | '.join(row)} |" for row in safe]


def _instances(verdict: ClaimDecision, check: Check) -> str:
    """How many instances a check has, and how many the experiment's file, where these are more."""
    counts = [result.instances[check.schedule] for result in verdict.results if check in result.checks]
    whole = max(whole for _, whole in counts)
    return f"{check.n}" if check.n >= whole else f"**{check.n}** of {whole}"


def _details(verdict: ClaimDecision, memories: Iterable[str]) -> list[str]:
    claim = verdict.claim
    mark = " (post hoc)" if claim.post_hoc else ""
    lines = [f"### {claim.number}: {verdict.word}{mark}", "", f"{claim.reading}", ""]
    if verdict.missing:
        lines += [f"Missing: {'; '.join(verdict.missing)}.", ""]
    merged = merge(verdict.checks, memories)
    merged.sort(key=lambda row: ((REFUTED, INCONCLUSIVE, HELD).index(row.check.word), row.check.room))
    if merged:
        rows = [
            (row.figure, row.check.found, row.check.needed, _instances(verdict, row.check), _word(row.check))
            for row in merged[:SHOWN]
        ]
        lines += [*_table(("figure", "found", "needed", "n", "verdict"), rows), ""]
    rest = [row.check.word for row in merged[SHOWN:]]
    if rest:
        counts = [f"{rest.count(word)} {word}" for word in dict.fromkeys(rest)]
        lines += [f"And {', '.join(counts)}.", ""]
    return lines


def _word(check: Check) -> str:
    if check.word != INCONCLUSIVE:
        return check.word if check.word == HELD else f"**{check.word}**"
    return f"{check.word}, n that decides: {_number(check.deciding_n, False)}"


def _origin(verdicts: Iterable[ClaimDecision], manifests: Sequence[Mapping[str, Any]]) -> list[str]:
    """Versions and commands that reproduce the figures."""
    tested = {name for verdict in verdicts for name in verdict.claim.experiments}
    lines, folders = ["## Reproduction", "", "```sh"], []
    versions: dict[str, None] = {}
    for manifest in (one for one in manifests if one["name"] in tested):
        command = command_of(manifest)
        source = manifest["name"] if command is None else command.split()[2]
        folders.append(f"runs/{Path(source).name.removesuffix('.yaml')}")
        lines.append(
            f"# {source}: configuration {manifest['config_hash']}, not as it is shipped; its run.json has it"
            if command is None
            else f"{command} --out {folders[-1]}"
        )
        numbers = ", ".join(f"{package} {number}" for package, number in manifest["versions"].items())
        versions[numbers] = None
    lines += [f"python -m studies claims {' '.join(folders)} --out docs/claims_results.md", "```", ""]
    lines += [f"Played with {'; '.join(versions)}.", ""] if versions else []
    passed = dict.fromkeys(f"`{one['name']}`" for one in manifests if one["name"] not in tested)
    lines += [f"Passed over, since no claim is about them: {', '.join(passed)}.", ""] if passed else []
    return lines


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
