"""The leaderboard: the agents of a run ranked over all its drifts, as one page.

* `write_leaderboard` - reads a run's folder and writes the page
* `to_page` - the page as Markdown
* `MARK` - what stands before a table of memories that carry papers' names and were played by rules

The figures are those of `drift_agents.analysis.ranking`. Equal runs give equal bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from drift_agents.analysis.aggregates import RESAMPLES
from drift_agents.analysis.plots.board import draw_board
from drift_agents.analysis.ranking import AXES, SHORT, Key, Standing, Standings, make_standings
from drift_agents.analysis.runs import FAILURE_SHARE, read_run
from drift_agents.analysis.schedule_runs import ALONE, MEMORY_NAMES, REFERENCE_NAMES, VERIFIER_NAMES
from drift_agents.analysis.table import (
    MISSING,
    Table,
    format_difference,
    format_estimate,
    format_plain,
    format_seeds,
    to_markdown,
)
from drift_agents.experiment.folder import write_text
from drift_agents.experiment.loader import load_experiment, shipped_experiments

MARK = "**Mechanism test by rules, no language model.**"
"""It stands before every table whose memories carry the names of papers and whose agents follow rules."""

DEFAULTS = {"verifier": "none", "controller": "direct", "team": "solo"}
"""Default parts, which names leave out."""

LEGEND = (
    "**Kept**: the score collected after the first drift, as a share of what the optimum of the same ticks collects "
    "on average, in percent. An instance (a schedule with a seed) gives one such number; the column is their "
    "interquartile mean over all schedules (Agarwal et al. 2021), with a 95 % interval from {resamples:,} resamples "
    "of schedules, and of instances within each; one instance a schedule has none. In stochastic environments a share "
    "can exceed 100.",
    "**At equal interactions**: the same, but an episode counts only if it ended within the interactions that the "
    "optimal policy takes for all episodes after the first drift; probes are interactions. It gives the rank. Who is "
    "done with less has no more episodes to play. Without the optimal policy in the run, *kept* gives the rank.",
    "One row with several names: these agents played the same episodes with the same probes, and take one rank. "
    "Tokens and records of such a row are those of the first name.",
    "An agent with GLOVE can exceed *oracle reset*, which removes all records at a drift and so also those that are "
    "still true; *oracle realign* removes exactly those that are false.",
    "**Ranks**: those that 95 % of the resamples give. All agents are resampled in the same way, so that differences "
    "between instances cancel out. Where a schedule draws no map from the seed, its instances differ in random "
    "outcomes and ties alone; that other schedules could have been played is in the intervals, that other kinds of "
    "environments could have been is not.",
    "**Gain**: kept with the verifier minus kept without it, over the same instances; `*`: the interval excludes 0. "
    "**Before**: the share of the optimum before any drift. **Lost**: instances that kept at most {failed:.0%} of the "
    "optimum.",
    "**Probes**: their share of all interactions. **Steps**: interactions of an episode, probes included. **Tokens** "
    "of a decision: as language models counted them, or else the length of all prompts and answers, "
    "four characters a token. **Dollars** of an episode, by the price that the run was given. **Records**: the size of "
    "memory at the end. All of these are means over instances, and cars take far more steps than lakes.",
    "**Supervision**: what an agent learns beyond its own observations, from `none` over `own reward` and `judge` to "
    "`privileged`. Agents with different supervision are not comparable.",
)
"""How to read the page."""

PLAYED_BY = {
    "planner": "an offline planner that reads the prompt of a language model",
    "message_reader": "rules that parse a language model's messages and nothing else",
    "forgetful_reader": "such rules that overlook a tenth of the known outcomes",
    "erring_reader": "such rules with 5 % other actions",
}
"""Policies that are no language models."""


def write_leaderboard(folder: Path, path: Path, plots: Path | None = None) -> Path:
    """Read a run's folder and write its leaderboard.

    Args:
        folder: the run's folder.
        path: the page.
        plots: a folder for its picture, see `drift_agents.analysis.plots.board`; `None` draws none.

    Returns:
        The page's path.

    Raises:
        ExperimentError: if the folder holds no finished run, there is nothing to compare, or the page cannot be
            written.
        MissingDependencyError: if the picture is wanted without matplotlib.
    """
    manifest, rows = read_run(folder)
    standings = make_standings(manifest, rows)
    write_text(path, to_page(manifest, standings))
    if plots is not None:
        draw_board(standings, _rows(standings), plots)
    return path


def to_page(manifest: Mapping[str, Any], standings: Standings) -> str:
    """The page as Markdown.

    Args:
        manifest: what was played.
        standings: its ranked agents.
    """
    seeds = manifest["experiment"]["seeds"]
    missing = ", ".join(f"{count} of `{schedule}`" for schedule, count in standings.left_out.items())
    rest = f" Left out, since not every agent played beyond a drift there: {missing}."
    lines = [
        f"# Leaderboard of the experiment `{manifest['name']}`",
        "",
        *([] if _asked_models(manifest) else [MARK, ""]),
        f"{len(standings.ranked)} agents on {len(standings.schedules)} schedules whose drifts matter, {len(seeds)} "
        f"seeds each: {standings.instances} instances.{rest if standings.left_out else ''}"
        f"{_uncounted(standings)} Made by `drift-agents leaderboard` from the lines of a run of "
        f"`{manifest['name']}`; do not edit.",
        "",
        to_markdown(_main(standings)),
        "",
        to_markdown(_by_part(standings)),
        "",
        "## How to read this",
        "",
        *(f"- {line.format(resamples=RESAMPLES, failed=FAILURE_SHARE)}" for line in LEGEND),
        *_policies(manifest),
        "",
        *_origin(manifest, standings),
    ]
    return "\n".join(lines)


def name_of(key: Key) -> str:
    """The display name of an agent: its memory, and the parts that are not the default.

    Example:
        >>> name_of(("vanilla", "glove", "direct", "solo", "planner"))
        'Vanilla + GLOVE'
        >>> name_of(("adamem", "none", "adamem(effort=high)", "solo", "planner"))
        'AdaMEM, controller adamem(effort=high)'
    """
    memory, verifier, controller, team, policy = key
    if policy in ALONE:
        return ALONE[policy]
    text = _called(memory, MEMORY_NAMES)
    if verifier in REFERENCE_NAMES:
        text += f", {REFERENCE_NAMES[verifier]}"
    elif verifier != DEFAULTS["verifier"]:
        text += f" + {_called(verifier, VERIFIER_NAMES)}"
    for axis, part in (("controller", controller), ("team", team)):
        if part != DEFAULTS[axis]:
            text += f", {axis} {part}"
    return text


def _called(label: str, names: Mapping[str, str]) -> str:
    name, mark, options = label.partition("(")
    return f"{names.get(name, name)}{mark and ' ('}{options}"


def _names(standings: Sequence[Standing]) -> dict[Key, str]:
    """The display names of agents; with their policies where there are several."""
    place = AXES.index("policy")
    policies = {standing.key[place] for standing in standings if standing.key[place] not in ALONE}
    several = len(policies) > 1
    return {
        standing.key: name_of(standing.key) + (f", {standing.key[place]}" if several else "") for standing in standings
    }


def _main(standings: Standings) -> Table:
    table = Table(
        "All drifts",
        (
            "agent",
            "rank",
            "ranks",
            "at equal interactions",
            "kept",
            "gain",
            "before",
            "lost",
            "probes, %",
            "steps",
            "tokens",
            "dollars",
            "records",
            "supervision",
        ),
    )
    names = _rows(standings)
    ranked = [one for one in standings.ranked if one.key in names]
    for one in (*ranked, *standings.references):
        table.add(
            names[one.key],
            MISSING if one.reference else str(1 + sum(other.ranked_by > one.ranked_by for other in ranked)),
            MISSING if one.reference else _span(*one.ranks),
            MISSING if one.at_equal is None else format_estimate(one.at_equal, 1),
            format_estimate(one.kept, 1),
            MISSING if one.gain is None else format_difference(one.gain, 1),
            format_plain(one.before),
            format_plain(one.lost),
            format_plain(one.probing, 1),
            format_plain(one.interactions),
            format_plain(one.tokens),
            format_plain(one.dollars, 4),
            format_plain(one.records),
            one.supervision,
        )
    return table.used()


def _rows(standings: Standings) -> dict[Key, str]:
    """The agents that have a row, with their names: those who played the same episodes share the first one's."""
    names = _names([*standings.ranked, *standings.references])
    others = {key for group in standings.same.values() for key in group}
    return {
        key: " = ".join(names[one] for one in (key, *standings.same.get(key, ()))) for key in names if key not in others
    }


def _uncounted(standings: Standings) -> str:
    """A sentence for each reason for which schedules do not count."""
    text = ""
    for names, reason in (
        (standings.short, f"they have {SHORT} episodes or fewer"),
        (standings.saturated, "more than half of the agents keep everything there"),
    ):
        if names:
            text += f" Not counted, since {reason}: {', '.join(f'`{name}`' for name in names)}."
    return text


def _asked_models(manifest: Mapping[str, Any]) -> bool:
    """Whether a policy or a member of a team was a language model."""
    return any("llm" in str(player.get(part, "")) for player in manifest["players"] for part in ("policy", "team"))


def _policies(manifest: Mapping[str, Any]) -> list[str]:
    """What the policies are."""
    names = {str(player["policy"]).partition("(")[0] for player in manifest["players"]}
    known = [f"`{name}`: {about}" for name, about in PLAYED_BY.items() if name in names]
    return [f"- **Policies**: {'; '.join(known)}. With a language model, the ranking can differ."] if known else []


def _by_part(standings: Standings) -> Table:
    names = _rows(standings)
    agents = [one for one in (*standings.ranked, *standings.references) if one.key in names]
    parts = list(agents[0].groups)
    table = Table("Kept, by kind of drift and by environment", ("agent", *parts))
    for one in agents:
        table.add(names[one.key], *(format_estimate(one.groups[part]) for part in parts))
    return table


def _span(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"


def _played(manifest: Mapping[str, Any]) -> tuple[str, str]:
    """The options that repeat a run of a shipped experiment, and a note where the run is not the whole experiment."""
    name, given, count = manifest["name"], manifest["config_hash"], len(manifest["experiment"]["seeds"])
    if name in shipped_experiments():
        whole = load_experiment(name)
        if whole.config_hash() == given:
            return "", ""
        if load_experiment(name, {"seeds": count}).config_hash() == given:
            return f" --seeds {count}", f" These are {count} of the {len(whole.seeds)} instances of the file."
    return "", " This is not the experiment of that name as it is shipped: its `run.json` has it."


def _origin(manifest: Mapping[str, Any], standings: Standings) -> list[str]:
    """Configuration, versions and commands that reproduce the figures."""
    name, seeds = manifest["name"], manifest["experiment"]["seeds"]
    option, note = _played(manifest)
    lengths = manifest["schedules"]
    page = "leaderboard" if name == "board" else f"leaderboard_{name.replace('-', '_')}"
    return [
        "## Reproduction",
        "",
        "```sh",
        f"drift-agents run {name}{option} --out runs/{name}",
        f"drift-agents leaderboard runs/{name} --out docs/{page}.md",
        "```",
        "",
        f"- Configuration: hash `{manifest['config_hash']}`.{note} Seeds: {format_seeds(seeds)}.",
        f"- Versions: {', '.join(f'{package} {number}' for package, number in manifest['versions'].items())}. Equal "
        "versions give equal lines, whatever the number of jobs.",
        "- Schedules, with episodes and hashes: "
        + ", ".join(
            f"`{schedule}` ({lengths[schedule]['episodes']}, {lengths[schedule]['hash']})"
            for schedule in standings.schedules
        )
        + ".",
        "",
    ]
