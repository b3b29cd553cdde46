"""The pages on claims and choices: the verdicts of docs/research/papers.md, and docs/research/choices.md.

* `write_choices` - fills their tables and draws a picture for each paper
* `render_choices` - these pages
* `read_verdicts` - what all claims come to by the stored cells
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
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
MORE = 0.1
"""So much more of the variance two choices have to explain than one, to be named."""


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
            link = f"[{_counts(found)}]({relative_to(CHOICES, PAPERS)}#{paper.name.lower()})"
            rows.append(
                (
                    _paper(paper, PAPERS),
                    name,
                    _describe(found, p),
                    link,
                    as_code(f"python -m research choices {claim.id}"),
                )
            )
    return tabulate_rows(("paper", "claim", "here", "for / against / open", "command"), rows)


def _describe(found: ClaimVerdict, p: float | None) -> str:
    """What a claim comes to, in words."""
    unit = found.play.unit
    text = f"{found.play.says}: {_span(found.middle.effect, unit)}{_corrected_p(p)} in the middle, "
    text += f"{_number(found.results[0].effect.mean, unit)} to {_number(found.results[-1].effect.mean, unit)} {unit}"
    if found.verdict in (DEPENDS, UNDECIDED) and (deciding := _deciding(found)):
        text += f". On {deciding}"
    if found.verdict == DEPENDS:
        text += f". Lowest with {', '.join(found.results[0].combination.values.values())}"
    return text


def _counts(found: ClaimVerdict) -> str:
    """How many combinations are for, against and open, of how many, and with how many instances."""
    counts = " / ".join(str(found.count(says)) for says in (FOR, AGAINST, OPEN))
    return f"{counts} of {found.planned}, n {found.n}"


def _deciding(found: ClaimVerdict) -> str:
    """The strongest choice with the mean effect of each of its values, and the strongest two where they say more."""
    choices = list(found.results[0].combination.values)
    one = max((_share(found, [choice]) for choice in choices), key=lambda group: group.share)
    if one.share <= 0:
        return ""
    parts = [_tell(group, found.play.unit) for group in one.groups]
    text = f"{one.label}: {', '.join(parts)}"
    two = max((_share(found, pair) for pair in combinations(choices, 2)), key=lambda group: group.share, default=one)
    if two.share >= one.share + MORE:
        low, high = (_tell(two.groups[place], found.play.unit) for place in (0, -1))
        text += f"; {two.label}: from {low} to {high}"
    return text


class _Grouping(NamedTuple):
    """Combinations by the values of one choice or of two.

    Args:
        label: the choices, and how much they explain.
        share: of the variance of the effects, as the adjusted R squared: more values explain more by chance.
        groups: the results that have the same values, by their mean effect.
    """

    label: str
    share: float
    groups: list[tuple[str, list[CombinationResult]]]


def _share(found: ClaimVerdict, choices: Sequence[str]) -> _Grouping:
    """How much of the effects' variance choices explain."""
    groups: dict[str, list[CombinationResult]] = {}
    for result in found.results:
        groups.setdefault(" with ".join(result.combination.values[one] for one in choices), []).append(result)
    effects = np.array([one.effect.mean for one in found.results])
    total = float(((effects - effects.mean()) ** 2).sum())
    rest = sum((one.effect.mean - _mean_effect(own)) ** 2 for own in groups.values() for one in own)
    freedom = len(effects) - len(groups)
    share = 1 - rest * (len(effects) - 1) / (total * freedom) if total and freedom and len(groups) > 1 else 0.0
    label = f"{' with '.join(f'*{one}*' for one in choices)} ({share:.0%} of the variance)"
    return _Grouping(label, share, sorted(groups.items(), key=lambda group: _mean_effect(group[1])))


def _mean_effect(results: Sequence[CombinationResult]) -> float:
    return float(np.mean([one.effect.mean for one in results]))


def _tell(group: tuple[str, Sequence[CombinationResult]], unit: str) -> str:
    values, own = group
    return f"{values} {_number(_mean_effect(own), unit)} ({sum(one.says == FOR for one in own)} of {len(own)} for)"


def _tabulate_one_setting(judged: Sequence[JudgedClaim]) -> str:
    rows = [
        (
            _paper(one.paper, PAPERS),
            f"{one.claim.claim} ({one.claim.place})",
            HOLDS if one.claim.holds == "yes" else REFUTED,
            one.claim.here,
            f"{one.claim.environment}; n {one.claim.n}",
            MISSING if one.found is None else _played(one.found),
            as_code(one.claim.command),
        )
        for one in judged
        if one.verdict == ONE_SETTING
    ]
    if not rows:
        return "None at present."
    return tabulate_rows(
        ("paper", "claim", "in one setting", "here", "environment", "combinations played", "command"), rows
    )


def _played(found: ClaimVerdict) -> str:
    """How many combinations are played, with how many instances."""
    return f"{len(found.results)} of {found.planned}" + (f", n {found.n}" if found.results else "")


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
        rows.append(
            (
                f"`{claim.id}`: {claim.claim}",
                found.play.says,
                f"**{verdict}**" if found.verdict is not None else "not all played",
                " / ".join(str(found.count(says)) for says in (FOR, AGAINST, OPEN)),
                f"{_span(found.middle.effect, unit)}{_corrected_p(p)}",
                f"{_number(first, unit)} to {_number(last, unit)} {unit}",
                _deciding(found) or MISSING,
                _played(found) + (f" ({found.play.fewer})" if found.play.fewer else ""),
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
        "for / against / open",
        "middle",
        "range",
        "strongest choice, mean effect by value",
        "combinations played",
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
