"""From the parts of a board to the files that ship: Parquet, the tables of the page and its figures.

* `ship` - writes the tables of a board as Parquet
* `load` - reads them
* `make_blocks` - the generated parts of the page, by name
* `fill_page` - puts them into the page, between the marks `<!-- NAME -->` and `<!-- end -->`
* `sb3_table` - the second table
* `draw_curves`, `draw_adaptation` - the figures
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from drift_agents.analysis.plots import FAMILY_COLOURS, REFERENCES

from baselines import measures
from baselines.environments import ENVIRONMENTS, REGIMES
from baselines.measures import ScoreCell
from baselines.rows import ROWS
from drift_envs.errors import ArgumentError
from drift_envs.metrics import bootstrap, paired_difference

ALONE = "ppo_told"
"""The row that is trained on each phase alone."""
SHOWN = {
    "ppo": ("keep", "-"),
    "ppo_told": (REFERENCES, "-"),
    "ppo_page_hinkley": ("detectors", "-"),
    "shrink_and_perturb": ("patience", "-"),
    "recurrent_ppo": ("belief", "-"),
    "rl_squared": ("belief", "--"),
    "dqn_short": ("newest", "-"),
}
"""The learners of the curves, with the family of rules whose colour each has, and the dash."""
COLUMNS = 2
"""Panels side by side."""
AROUND = {"late": 20, "recurring": 12, "rush": 5, "forty": 5}
"""Bins on each side of a drift that the curves show."""
PRIVILEGED = frozenset(row.name for row in ROWS if row.privileged)
LABELS = {row.name: row.label for row in ROWS}

Cells = dict[tuple[str, str, str], ScoreCell]


def ship(tables: dict[str, pd.DataFrame], out: Path) -> list[Path]:
    """Write the tables of a board as Parquet files; returns them."""
    out.mkdir(parents=True, exist_ok=True)
    files = []
    for name, table in tables.items():
        packed = table.astype(dict.fromkeys(table.select_dtypes(["object", "string"]), "category"))
        files.append(out / f"{name}.parquet")
        packed.to_parquet(files[-1], index=False, compression="zstd")
    return files


def load(folder: Path) -> dict[str, pd.DataFrame]:
    """Read the tables of a board.

    Raises:
        ArgumentError: if there are none.
    """
    files = sorted(folder.glob("*.parquet"))
    missing = {"play", "reference", "speed"} - {file.stem for file in files}
    if missing:
        names = ", ".join(f"{name}.parquet" for name in sorted(missing))
        raise ArgumentError(f"`results` should hold {names}, from `python -m baselines table`. Received {folder}")
    return {file.stem: measures.read_lines(file, measures.COLUMNS if file.stem == "play" else ()) for file in files}


# --- tables


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(head), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _number(values: np.ndarray, digits: int = 2) -> str:
    """A mean and half the width of its interval."""
    found = bootstrap(values)
    return f"{found.mean:.{digits}f} ± {(found.high - found.low) / 2:.{digits}f}"


def _learners(cells: Cells) -> list[str]:
    """The rows of a board in their order; rows that joined come last."""
    there = list(dict.fromkeys(learner for _, _, learner in cells))
    known = [row.name for row in ROWS if row.name in there]
    return known + [name for name in there if name not in known]


def _label(learner: str) -> str:
    return LABELS.get(learner, learner) + (" †" if learner in PRIVILEGED else "")


def score_table(cells: Cells, references: pd.DataFrame, environment: str) -> str:
    """Scores after the first drift, by learner and regime, with the references."""
    regimes = [name for name in REGIMES if any(key[:2] == (environment, name) for key in cells)]
    rows = []
    for learner in _learners(cells):
        own = [cells.get((environment, regime, learner)) for regime in regimes]
        if any(own):
            rows.append([_label(learner), *(_number(measures.after_drift(cell)) if cell else "" for cell in own)])
    here = references[references["environment"] == environment]
    for name, label in (("fixed", "best fixed policy"), ("optimum", "optimum")):
        means = here.groupby("regime", observed=True)[name].mean()
        rows.append([f"*{label}*", *(f"{means[regime]:.2f}" if regime in means else "" for regime in regimes)])
    head = ["no drift" if regime == "none" else regime for regime in regimes]
    return _table([environment, *head], rows)


def rank_table(cells: Cells) -> str:
    """Ranks over all drifting cells that a learner can play, of learners that are given nothing privileged."""
    scores = _rankable(cells)
    found = measures.ranks(scores) if scores else {}
    ordered = sorted(found, key=lambda name: found[name][0])
    rows = [
        [
            f"{found[name][0]:.0f} [{found[name][1]:.0f}, {found[name][2]:.0f}]",
            _label(name),
            _number(scores[name].mean(0)),
        ]
        for name in ordered
    ]
    return _table(["rank", "learner", "mean score after drifts"], rows)


def _rankable(cells: Cells) -> dict[str, np.ndarray]:
    """The scores by drifting cell and seed, of the learners without privileges that played all of them."""
    keys = _drifting(cells)
    seeds = max(len(cell.scores) for cell in cells.values())
    found = {}
    for learner in _learners(cells):
        own = [cells[(*key, learner)] for key in keys if (*key, learner) in cells]
        if learner not in PRIVILEGED and len(own) == len(keys) and all(len(cell.scores) == seeds for cell in own):
            found[learner] = np.array([measures.after_drift(cell) for cell in own])
    return found


def _drifting(cells: Cells) -> list[tuple[str, str]]:
    """The environments and regimes in which something drifts, in the order of `ENVIRONMENTS` and `REGIMES`."""
    there = {key[:2] for key in cells}
    return [(env, regime) for env in ENVIRONMENTS for regime in REGIMES if regime != "none" and (env, regime) in there]


def measure_table(cells: Cells, references: pd.DataFrame) -> str:
    """Means over environments where phases return: regret, forward transfer, forgetting; plasticity in `forty`."""
    environments = [env for env, regime in _drifting(cells) if regime == "recurring"]
    long = [env for env, regime in _drifting(cells) if regime == "forty"]
    rows = []
    for learner in _learners(cells):
        own = [env for env in environments if (env, "recurring", learner) in cells]
        row = [_label(learner), "", "", ""]
        if own and all((env, "recurring", ALONE) in cells for env in own):
            found = [_recurring_measures(cells, references, env, learner) for env in own]
            row[1:] = [_number(np.mean(values, axis=0)) for values in zip(*found, strict=True)]
        for env in long:
            cell = cells.get((env, "forty", learner))
            if cell is None:
                row += ["", ""]
            else:
                early, late = measures.early_and_late(cell)
                row += [_number(measures.plasticity_loss(cell)), f"{early.mean():.2f} to {late.mean():.2f}"]
        rows.append(row)
    heads = [head for env in long for head in (f"{env}: plasticity loss", "phases 2-11 to 31-40")]
    return _table(["learner", "regret", "forward transfer", "forgetting", *heads], rows)


def _recurring_measures(
    cells: Cells, references: pd.DataFrame, environment: str, learner: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Regret, forward transfer and forgetting of each seed."""
    cell, alone = (cells[environment, "recurring", name] for name in (learner, ALONE))
    here = (references["environment"] == environment) & (references["regime"] == "recurring")
    optimum = references[here].sort_values("seed")["optimum"].to_numpy()[: len(cell.scores)]
    return measures.regret(cell, optimum), measures.transfer(cell, alone), measures.forgetting(cell)


def adaptation_table(cells: Cells) -> str:
    """Rounds to nine tenths of what a learner reaches that is trained on the phase alone."""
    keys = list(dict.fromkeys(key[:2] for key in cells if key[1] in ("late", "recurring")))
    keys = [key for key in keys if (key[0], "recurring", ALONE) in cells]
    rows = []
    for learner in _learners(cells):
        row = [_label(learner)]
        for key in keys:
            cell = cells.get((*key, learner))
            if cell is None:
                row.append("")
                continue
            found = measures.adaptation(cell, measures.level_of(cells[key[0], "recurring", ALONE]))
            row.append(f"{_number(found.rounds, 1)} ({found.censored:.0%})")
        rows.append(row)
    return _table(["rounds", *(" ".join(key) for key in keys)], rows)


def speed_table(speed: pd.DataFrame, tuning: pd.DataFrame | None) -> str:
    """Thousands of steps a second, and the configuration that was chosen, by environment."""
    rows = []
    for learner in [row.name for row in ROWS if row.name in set(speed["learner"])]:
        own = speed[speed["learner"] == learner]["steps_per_second"].median() / 1000
        chosen = []
        if tuning is not None:
            for environment, part in tuning[tuning["learner"] == learner].groupby(
                "environment", observed=True, sort=False
            ):
                best = part.reset_index(drop=True)["score"].idxmax()
                values = part.iloc[best].drop(["learner", "environment", "score"]).dropna()
                chosen.append(f"{environment}: " + ", ".join(f"{name} {value:g}" for name, value in values.items()))
        rows.append([_label(learner), f"{own:.0f}", "; ".join(chosen)])
    return _table(["learner", "thousand steps a second", "chosen of 12"], rows)


def winner_table(cells: Cells) -> str:
    """For each cell the best learner without privileges, and what being told of drifts is worth to PPO."""
    rows = []
    for key in _drifting(cells):
        scores = {name: measures.after_drift(cells[(*key, name)]) for name in _learners(cells) if (*key, name) in cells}
        others = [name for name in scores if name not in PRIVILEGED]
        if not others:
            continue
        best = max(others, key=lambda name: scores[name].mean())
        gain = ""
        if "ppo" in scores and ALONE in scores:
            found = paired_difference(scores[ALONE], scores["ppo"])
            gain = f"{found.mean:+.2f} [{found.low:+.2f}, {found.high:+.2f}]"
        rows.append([f"{key[0]}, {key[1]}", _label(best), _number(scores[best]), gain])
    return _table(["cell", "most", "score", "what restarts at drifts add to PPO †"], rows)


def sb3_table(lines: pd.DataFrame) -> str:
    """Scores of the second table after the drift, and what restarts add."""
    cells = measures.make_cells(lines)
    environments = list(dict.fromkeys(key[0] for key in cells))
    scores = {(key[0], key[2]): measures.after_drift(cell) for key, cell in cells.items()}
    names = {"sb3_ppo": "PPO", "sb3_ppo_told": LABELS[ALONE] + " †", "sb3_ppo_page_hinkley": LABELS["ppo_page_hinkley"]}
    rows = [[label, *(_number(scores[each, name]) for each in environments)] for name, label in names.items()]
    for name, label in list(names.items())[1:]:
        gains = [paired_difference(scores[each, name], scores[each, "sb3_ppo"]) for each in environments]
        added = (f"{gain.mean:+.2f} [{gain.low:+.2f}, {gain.high:+.2f}]" for gain in gains)
        rows.append([f"*{label.replace(' †', '')}, minus PPO*", *added])
    return _table([f"late, n = {lines['seed'].nunique()}", *environments], rows)


def make_blocks(tables: dict[str, pd.DataFrame]) -> dict[str, str]:
    """The generated parts of the page, by name."""
    cells = measures.make_cells(tables["play"])
    references = tables["reference"]
    seeds = tables["play"]["seed"].nunique()
    environments = [name for name in ENVIRONMENTS if any(key[0] == name for key in cells)]
    second = {"sb3": sb3_table(tables["sb3"])} if "sb3" in tables else {}
    return second | {
        "seeds": f"n = {seeds} lifetimes a cell; ± is half the width of the 95 % bootstrap interval over lifetimes.",
        "winners": winner_table(cells),
        "ranks": rank_table(cells),
        "scores": "\n\n".join(score_table(cells, references, name) for name in environments),
        "adaptation": adaptation_table(cells),
        "measures": measure_table(cells, references),
        "curves": "![Mean score around the drifts of the regime `recurring`](../pictures/rl_board_curves.png)",
        "times": "![Mean adaptation time by regime](../pictures/rl_board_adaptation.png)",
        "speed": speed_table(tables["speed"], tables.get("tune")),
    }


def fill_page(text: str, blocks: dict[str, str]) -> str:
    r"""The page with its generated parts.

    Raises:
        ArgumentError: if a mark is missing.

    Example:
        >>> print(fill_page("<!-- ranks -->\nold\n<!-- end -->", {"ranks": "new"}))
        <!-- ranks -->
        new
        <!-- end -->
    """
    for name, block in blocks.items():
        before, mark, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition("<!-- end -->")
        if not end:
            raise ArgumentError(f"the page should have the marks `<!-- {name} -->` and `<!-- end -->`")
        text = f"{before}{mark}{block}\n{end}{after}"
    return text


# --- figures


def _axes(number: int) -> tuple[Any, list[Any]]:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = -(-number // COLUMNS)
    size = (4.4 * COLUMNS, 3 * rows + 0.6)
    figure, axes = pyplot.subplots(rows, COLUMNS, figsize=size, layout="constrained", squeeze=False)
    for each in axes.flat:
        each.spines[["top", "right"]].set_visible(False)
    for each in axes.flat[number:]:
        each.remove()
    return figure, list(axes.flat[:number])


def _add_legend(figure: Any, axes: Sequence[Any]) -> None:
    """One legend of what any of the panels shows."""
    found: dict[str, Any] = {}
    for axis in axes:
        handles, labels = axis.get_legend_handles_labels()
        found = dict(zip(labels, handles, strict=True)) | found
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=3, frameon=False)


def _is_left(axis: Any) -> bool:
    return bool(axis.get_subplotspec().is_first_col())


def draw_curves(cells: Cells, path: Path) -> None:
    """The mean score around drifts where phases return, by environment."""
    environments = [name for name in ENVIRONMENTS if any(key[:2] == (name, "recurring") for key in cells)]
    figure, axes = _axes(len(environments))
    for axis, environment in zip(axes, environments, strict=True):
        for learner, (family, dash) in SHOWN.items():
            cell = cells.get((environment, "recurring", learner))
            if cell is None:
                continue
            bins = AROUND["recurring"]
            curve = measures.around_drifts(cell, bins).mean(axis=0)
            rounds = (np.arange(-bins, bins) + 0.5) * cell.regime.bin
            axis.plot(rounds, curve, dash, color=FAMILY_COLOURS[family], label=LABELS[learner])
        axis.axvline(0, color="black", linewidth=1, linestyle="--")
        axis.set(title=environment, xlabel="rounds since the drift", ylim=(0, 1.02))
        axis.set_ylabel("score" if _is_left(axis) else "")
    _add_legend(figure, axes)
    figure.savefig(path, dpi=110)


def draw_adaptation(cells: Cells, path: Path) -> None:
    """The adaptation time by regime and learner, by environment."""
    environments = [name for name in ENVIRONMENTS if (name, "recurring", ALONE) in cells]
    figure, axes = _axes(len(environments))
    names = [name for name in _learners(cells) if name in LABELS]
    marks = {"late": "o", "recurring": "s", "forty": "^"}
    for axis, environment in zip(axes, environments, strict=True):
        level = measures.level_of(cells[environment, "recurring", ALONE])
        for regime, mark in marks.items():
            own = [
                (names.index(key[2]), cell)
                for key, cell in cells.items()
                if key[:2] == (environment, regime) and key[2] in names
            ]
            if own:
                times = [measures.adaptation(cell, level).rounds.mean() for _, cell in own]
                axis.plot(times, [place for place, _ in own], mark, label=regime, alpha=0.8)
        axis.set(title=environment, xlabel="rounds to 90 %", xlim=(0, None), yticks=range(len(names)))
        axis.set_yticklabels([LABELS[name] for name in names] if _is_left(axis) else [])
        axis.invert_yaxis()
    _add_legend(figure, axes)
    figure.savefig(path, dpi=110)
