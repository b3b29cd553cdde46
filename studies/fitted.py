"""What constants that were fitted to an instance are worth: the page docs/fitted.md, from two finished runs.

* `write_fitted` - the command's work: compare the agents of both runs and write the page
* `compare` - an agent as shipped and with another constant, instance by instance
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from drift_agents.analysis.mechanism_test import describe_rules
from drift_agents.analysis.runs import Player, Runs, difference, estimate, group, mean_of, phases_of, read_run
from drift_agents.analysis.schedule_runs import ALONE, VERIFIER_NAMES, memory_name
from drift_agents.analysis.table import Table, format_difference, format_estimate, to_markdown
from drift_agents.errors import ExperimentError
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.folder import write_text

from drift_envs.metrics import Estimate

DEPTH = "ad_depth-"
"""Names of swept schedules end with it and the depth of advertisements."""

SHIPPED_DEPTH = "30"

HEAD = """# Constants that were fitted to an instance

{mark}

Some constants of the planner, of matching and of a schedule were \
chosen while looking at shipped instances. Each table changes one of them and plays the same held-out instances again: \
the mean score of all episodes after the first drift, in percent, and the paired difference, with 95 % intervals over \
instances; `*`: the interval excludes 0.
"""

ASPIRATION = "The planner's aspiration on lakes, switched off"
DEPTHS = "The depth of advertisements, 30 as shipped"
MATCHING = "What counts as the same state: pages by their whole text, cells of the car twice as wide, or no cells"

Found = dict[str, dict[Player, Runs]]
"""Runs by schedule and player."""


class FittedPair(NamedTuple):
    """An agent as shipped and with another constant.

    Args:
        where: the schedule on which the constant is changed.
        shipped: its runs as shipped.
        changed: its runs with the other constant.
    """

    where: str
    shipped: Runs
    changed: Runs


def write_fitted(fitted: Path, unfitted: Path, out: Path | None) -> str:
    """Compare the agents of finished runs of `fitted` and `unfitted`.

    Args:
        fitted: folder of the run of `fitted`.
        unfitted: folder of the run of `unfitted`.
        out: the page; `None` writes none.

    Returns:
        The page's text.

    Raises:
        ExperimentError: if a folder holds no finished run, the runs have no pair to compare, or the page cannot be
            written.
    """
    (one, shipped), (two, changed) = _read(fitted), _read(unfitted)
    tables = [
        _tabulate(title, list(pairs))
        for title, pairs in (
            (ASPIRATION, _by_policy(shipped)),
            (DEPTHS, _by_depth(shipped)),
            (MATCHING, _by_matching(shipped, changed)),
        )
    ]
    seeds = [Experiment.model_validate(manifest["experiment"]).seeds for manifest in (one, two)]
    commands = [
        f"drift-agents run {manifest['name']} --seeds {len(played)} --out runs/{manifest['name']}"
        for manifest, played in zip((one, two), seeds, strict=True)
    ]
    memories = {player.memory for played in shipped.values() for player in played}
    text = "\n\n".join([HEAD.format(mark=describe_rules(memories)).rstrip(), *map(to_markdown, tables)]) + (
        f"\n\nSeeds from {seeds[0][0]}. Made by `python -m studies fitted` from runs of "
        f"`{one['name']}` (configuration `{one['config_hash']}`) and `{two['name']}` "
        f"(`{two['config_hash']}`); do not edit.\n\n```sh\n" + "\n".join(commands) + "\n"
        "python -m studies fitted runs/fitted runs/unfitted --out docs/fitted.md\n```\n"
    )
    if out is not None:
        write_text(out, text)
    return text


def compare(pair: FittedPair) -> tuple[Estimate, Estimate, Estimate]:
    """The score after the first drift, in percent: as shipped, with the other constant, and the paired difference."""
    score = mean_of("score", 100)
    shipped, changed = (runs.without(phases_of([runs])[0]) for runs in (pair.shipped, pair.changed))
    before, after = (estimate(runs.per_instance(score), one_run=runs.is_one_run) for runs in (shipped, changed))
    return before, after, difference(changed, shipped, score)


def _read(folder: Path) -> tuple[Mapping[str, Any], Found]:
    manifest, rows = read_run(folder)
    found = {schedule: {runs.player: runs for runs in played} for schedule, played in group(rows).items()}
    return manifest, found


def _by_policy(shipped: Found) -> Iterator[FittedPair]:
    """Agents of one schedule that differ in the planner's options."""
    for schedule, played in shipped.items():
        for player, runs in played.items():
            if schedule.startswith("frozen_lake/") and player.policy != "planner":
                own = played.get(player._replace(policy="planner"))
                if own is not None:
                    yield FittedPair(schedule, own, runs)


def _by_depth(shipped: Found) -> Iterator[FittedPair]:
    """Agents of schedules that differ in the depth of advertisements."""
    for schedule, played in shipped.items():
        way, found, depth = schedule.rpartition(DEPTH)
        if found and depth != SHIPPED_DEPTH:
            deep = shipped.get(f"{way}{DEPTH}{SHIPPED_DEPTH}", {})
            for player, runs in played.items():
                if player.policy == "planner" and player in deep:
                    yield FittedPair(schedule, deep[player], runs)


def _by_matching(shipped: Found, changed: Found) -> Iterator[FittedPair]:
    """Agents that differ in what counts as the same state."""
    for schedule, played in changed.items():
        for player, runs in played.items():
            if player.policy not in ALONE and player in shipped.get(schedule, {}):
                yield FittedPair(schedule, shipped[schedule][player], runs)


def _tabulate(title: str, pairs: list[FittedPair]) -> Table:
    if not pairs:
        raise ExperimentError(f"the runs should have agents for {title!r}, as shipped and changed. Found none")
    table = Table(title, ("agent", "schedule", "as shipped", "changed", "difference"))
    for pair in pairs:
        player = pair.shipped.player
        name = memory_name(player)
        if player.verifier != "none":
            name += f" + {VERIFIER_NAMES.get(player.verifier, player.verifier)}"
        shipped, changed, gain = compare(pair)
        cells = (format_estimate(shipped), format_estimate(changed), format_difference(gain))
        table.add(name, f"`{pair.where}`", *cells)
    return table
