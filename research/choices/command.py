"""The command `python -m research choices`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from drift_agents.errors import UnknownNameError

from research.choices.model import read_studies
from research.choices.store import RESULTS, claims_with_choices, count_missing, plan_claim, play_claims, read_cells
from research.choices.verdicts import AGAINST, FOR, OPEN, ClaimVerdict, judge_claim


def run(words: Sequence[str], seeds: int | None, jobs: int, out: Path | None, count: bool) -> Iterator[str]:
    """Play claims and say what they come to.

    Args:
        words: ids of claims, names of papers, or `all`.
        seeds: instances, at the most; those of the claims if not given.
        jobs: instances that are played at the same time.
        out: folder of the cells.
        count: whether to say what is missing, and to play nothing.

    Yields:
        Lines.

    Raises:
        UnknownNameError: if a word is none of these.
    """
    claims, folder = _choose(words), out or RESULTS
    if count:
        for claim, missing, planned in count_missing(claims, seeds, folder):
            yield f"{claim}: {missing} of {planned} instances missing"
        return
    play_claims(claims, n=seeds, jobs=jobs, folder=folder, tell=lambda line: print(line, file=sys.stderr, flush=True))
    cells = read_cells(folder)
    for claim in claims:
        yield describe(judge_claim(plan_claim(claim), cells))


def _choose(words: Sequence[str]) -> list[str]:
    known, studies = claims_with_choices(), read_studies()
    chosen: list[str] = []
    for word in words:
        if word == "all":
            chosen += known
        elif word in studies:
            chosen += [claim for claim in known if claim in studies[word].claims]
        elif word in known:
            chosen.append(word)
        else:
            raise UnknownNameError("claim", word, ["all", *studies, *known])
    return list(dict.fromkeys(chosen))


def describe(found: ClaimVerdict) -> str:
    """What a claim comes to, in a line.

    Args:
        found: the claim.
    """
    if not found.results:
        return f"{found.claim}: too few instances"
    counts = ", ".join(f"{found.count(says)} {says}" for says in (FOR, AGAINST, OPEN))
    middle = found.middle.effect
    return (
        f"{found.claim}: {found.verdict or 'not all played'}; {len(found.results)} of {found.planned} combinations: "
        f"{counts}; middle {middle.mean:.1f} [{middle.low:.1f}, {middle.high:.1f}] {found.play.unit}, "
        f"from {found.results[0].effect.mean:.1f} to {found.results[-1].effect.mean:.1f}; n {found.n}"
    )
