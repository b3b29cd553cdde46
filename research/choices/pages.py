"""The pages on claims and choices: the verdicts of docs/research/papers.md, and docs/research/choices.md.

* `write_choices` - fills their tables and draws a picture for each paper
* `render_choices` - these pages
* `read_verdicts` - what all claims come to by the stored cells
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from drift_agents.analysis.table import MISSING
from drift_agents.experiment.folder import write_text

from drift_envs.metrics import Estimate
from research.choices.model import read_studies
from research.choices.plots import draw_curves, picture_of, title_of
from research.choices.store import RESULTS, claims_with_choices, plan_claim, read_cells
from research.choices.verdicts import (
    AGAINST,
    DEPENDS,
    FOR,
    HOLDS,
    OPEN,
    REFUTED,
    UNDECIDED,
    VERDICTS,
    ClaimVerdict,
    CombinationResult,
    correct_family,
    judge_claim,
)
from research.coverage import Paper, PaperClaim, as_code, read_coverage, relative_to, tabulate_rows
from research.pictures import make_folder
from research.verify_map.pages import ROOT, fill_page

PAPERS, CHOICES = "docs/research/papers.md", "docs/research/choices.md"
PICTURES = ROOT / "docs" / "pictures"
ONE_SETTING, UNTESTABLE = "one setting", "untestable"
LEVEL = 0.05


class JudgedClaim(NamedTuple):
    """A claim with its verdict.

    Args:
        paper: its paper.
        claim: its row.
        verdict: one of `VERDICTS`, `one setting` or `untestable`.
        found: what its choices come to, if it is played under them.
        p: its p-value by the combination in the middle, corrected for the claims of the paper.
    """

    paper: Paper
    claim: PaperClaim
    verdict: str
    found: ClaimVerdict | None = None
    p: float | None = None


def read_verdicts(folder: Path = RESULTS) -> list[JudgedClaim]:
    """What all claims come to by the stored cells, in the order of the papers.

    Args:
        folder: the stored cells.

    Raises:
        EvidenceError: if a file cannot be read.
    """
    cells, playable = read_cells(folder), set(claims_with_choices())
    judged = []
    for paper in read_coverage():
        found = {one.id: judge_claim(plan_claim(one.id), cells) for one in paper.claims if one.id in playable}
        corrected = correct_family(list(found.values()))
        for one in paper.claims:
            own = found.get(one.id)
            if own is not None and own.verdict is not None:
                judged.append(
                    JudgedClaim(paper, one, _corrected(own, corrected.get(one.id)), own, corrected.get(one.id))
                )
            elif one.holds == UNTESTABLE:
                judged.append(JudgedClaim(paper, one, UNTESTABLE))
            elif one.no_choices is not None:
                judged.append(JudgedClaim(paper, one, HOLDS if one.holds == "yes" else REFUTED))
            else:
                judged.append(JudgedClaim(paper, one, ONE_SETTING, own))
    return judged


def _corrected(found: ClaimVerdict, p: float | None) -> str:
    """A claim that would hold, but not after the correction for the claims of its paper, is undecided."""
    is_lost = found.verdict == HOLDS and p is not None and p > LEVEL
    return UNDECIDED if is_lost else str(found.verdict)


def write_choices(root: Path = ROOT) -> list[Path]:
    """Fill the tables of both pages and draw the pictures.

    Raises:
        EvidenceError: if a file or page cannot be used.
        ExperimentError: if a file cannot be written.
        MissingDependencyError: without matplotlib.
    """
    judged = read_verdicts()
    pages = render_choices(root, judged)
    for path, text in pages.items():
        write_text(path, text)
    make_folder(PICTURES)
    for paper in read_coverage():
        own = [
            (one.claim.claim, one.found, plan_claim(one.claim.id).study)
            for one in judged
            if one.paper.name == paper.name and one.found is not None and one.found.verdict is not None
        ]
        if own:
            draw_curves(paper.name, own, PICTURES)
    return list(pages)


def render_choices(root: Path = ROOT, judged: Sequence[JudgedClaim] | None = None) -> dict[Path, str]:
    """Both pages with their tables.

    Args:
        root: of the repository.
        judged: of `read_verdicts`, which is called if not given.

    Raises:
        EvidenceError: if a page names an unknown table.
    """
    judged = read_verdicts() if judged is None else judged
    papers = {f"claims-{verdict.replace(' ', '-')}": _tabulate(judged, verdict) for verdict in VERDICTS}
    papers["claims-one-setting"] = _tabulate_one_setting(judged)
    papers["claims-untestable"] = _tabulate_untestable(judged)
    papers["claims-count"] = _count(judged)
    choices = {}
    for paper in read_coverage():
        own = [one for one in judged if one.paper.name == paper.name]
        choices[f"curves-{paper.name.lower()}"] = _tabulate_curves(own)
        choices[f"choices-{paper.name.lower()}"] = _tabulate_choices(paper.name)
    return {
        root / page: fill_page((root / page).read_text("utf-8"), tables, page)
        for page, tables in ((PAPERS, papers), (CHOICES, choices))
    }


def _count(judged: Sequence[JudgedClaim]) -> str:
    """How many claims of each paper have each verdict."""
    names = (*VERDICTS, UNTESTABLE, ONE_SETTING)
    rows = []
    for paper in read_coverage():
        own = [one.verdict for one in judged if one.paper.name == paper.name]
        rows.append((_paper(paper, PAPERS), *(str(own.count(name)) for name in names)))
    return tabulate_rows(("paper", *VERDICTS, "cannot be tested by rules", "one setting so far"), rows)


def _tabulate(judged: Sequence[JudgedClaim], verdict: str) -> str:
    rows = []
    for paper, claim, own, found, p in judged:
        if own != verdict:
            continue
        name = f"{claim.claim} ({claim.place})"
        if found is None:
            rows.append(
                (_paper(paper, PAPERS), name, f"{claim.here}; {claim.no_choices}", MISSING, as_code(claim.command))
            )
        else:
            link = f"[{len(found.results)}]({relative_to(CHOICES, PAPERS)}#{paper.name.lower()})"
            rows.append(
                (
                    _paper(paper, PAPERS),
                    name,
                    _describe(found, p),
                    link,
                    as_code(f"python -m research choices {claim.id}"),
                )
            )
    return tabulate_rows(("paper", "claim", "here", "combinations", "command"), rows)


def _describe(found: ClaimVerdict, p: float | None) -> str:
    """What a claim comes to, in words."""
    unit = found.play.unit
    counts = ", ".join(f"{found.count(says)} {says}" for says in (FOR, AGAINST, OPEN) if found.count(says))
    text = f"{found.play.says}: {_span(found.middle.effect, unit)}{_corrected_p(p)} in the middle, "
    text += f"{_number(found.results[0].effect.mean, unit)} to {_number(found.results[-1].effect.mean, unit)} {unit}; "
    text += f"{counts}; n {found.n}"
    if found.verdict in (DEPENDS, UNDECIDED) and (deciding := _deciding(found)):
        text += f". On {deciding}"
    if found.verdict == DEPENDS:
        text += f". Lowest with {', '.join(found.results[0].combination.values.values())}"
    return text


def _deciding(found: ClaimVerdict) -> str:
    """The choice that explains most of the effects' variance, with the mean effect of its values."""
    by_choice = {}
    for choice in found.results[0].combination.values:
        groups: dict[str, list[CombinationResult]] = {}
        for result in found.results:
            groups.setdefault(result.combination.values[choice], []).append(result)
        means = {value: float(np.mean([one.effect.mean for one in own])) for value, own in groups.items()}
        total = float(np.mean([one.effect.mean for one in found.results]))
        spread = sum(len(own) * (means[value] - total) ** 2 for value, own in groups.items())
        by_choice[choice] = (spread, means, groups)
    choice, (spread, means, groups) = max(by_choice.items(), key=lambda item: item[1][0])
    if spread == 0:
        return ""
    parts = [
        f"{value} {_number(means[value], found.play.unit)} ({sum(one.says == FOR for one in own)} of {len(own)} for)"
        for value, own in groups.items()
    ]
    return f"*{choice}*: {', '.join(parts)}"


def _tabulate_one_setting(judged: Sequence[JudgedClaim]) -> str:
    rows = [
        (
            _paper(one.paper, PAPERS),
            f"{one.claim.claim} ({one.claim.place})",
            HOLDS if one.claim.holds == "yes" else REFUTED,
            one.claim.here,
            f"{one.claim.environment}; n {one.claim.n}",
            as_code(one.claim.command),
        )
        for one in judged
        if one.verdict == ONE_SETTING
    ]
    return tabulate_rows(("paper", "claim", "in one setting", "here", "environment", "command"), rows)


def _tabulate_untestable(judged: Sequence[JudgedClaim]) -> str:
    rows = [
        (_paper(one.paper, PAPERS), f"{one.claim.claim} ({one.claim.place})", one.claim.here)
        for one in judged
        if one.verdict == UNTESTABLE
    ]
    return tabulate_rows(("paper", "claim", "why"), rows)


def _tabulate_curves(judged: Sequence[JudgedClaim]) -> str:
    """The claims of a paper that are played under their choices."""
    rows = []
    for _, claim, verdict, found, p in judged:
        if found is None or not found.results:
            continue
        unit, first, last = found.play.unit, found.results[0].effect.mean, found.results[-1].effect.mean
        played = f"{len(found.results)}" if found.verdict is not None else f"{len(found.results)} of {found.planned}"
        rows.append(
            (
                f"`{claim.id}`: {claim.claim}",
                found.play.says,
                f"**{verdict}**" if found.verdict is not None else "not all played",
                "/".join(str(found.count(says)) for says in (FOR, AGAINST, OPEN)),
                f"{_span(found.middle.effect, unit)}{_corrected_p(p)}",
                f"{_number(first, unit)} to {_number(last, unit)} {unit}",
                _deciding(found) or MISSING,
                f"{played}, n {found.n}" + (f" ({found.play.fewer})" if found.play.fewer else ""),
            )
        )
    picture = ""
    if any(one.found is not None and one.found.verdict is not None for one in judged):
        name = judged[0].paper.name
        picture = f"![{title_of(name)}](../pictures/{picture_of(name)}.svg)\n\n"
    head = (
        "claim",
        "effect",
        "verdict",
        "for/against/open",
        "middle",
        "range",
        "widest choice, mean effect by value",
        "combinations",
    )
    return picture + tabulate_rows(head, rows)


def _tabulate_choices(paper: str) -> str:
    """What a paper leaves open."""
    study = read_studies().get(paper)
    rows = [
        (
            name,
            one.what,
            "; ".join(one.values),
            f"the paper: {one.open}" if one.open is not None else f"ours: {one.ours}",
        )
        for name, one in (study.choices if study is not None else {}).items()
    ]
    return tabulate_rows(("choice", "what", "values", "why it is open"), rows)


def _paper(paper: Paper, page: str) -> str:
    return f"[{paper.name}]({relative_to(paper.page, page)})"


_DIGITS: Mapping[str, int] = {"steps": 1, "updates": 1, "correlation": 2}


def _number(value: float, unit: str) -> str:
    return f"{value:,.{_DIGITS.get(unit, 0)}f}"


def _span(effect: Estimate, unit: str) -> str:
    return f"{_number(effect.mean, unit)} [{_number(effect.low, unit)}, {_number(effect.high, unit)}]"


def _corrected_p(p: float | None) -> str:
    return "" if p is None else f" (p {'< .001' if p < 0.001 else f'= {p:.3f}'.replace('0.', '.')})"
