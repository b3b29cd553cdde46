"""Plays the board in parts, each a file, so that an interrupted board goes on where it was.

* `Plan`, `FULL`, `SHORT` - what is played
* `play_board` - plays the parts that are missing, in several processes
* `tune`, `play`, `train_net` - one part each

A part is a Parquet file that appears when it is complete. The files of a folder are of one plan, which stands in
`plan.json` there; a folder of another plan is refused. Results do not depend on the number of processes.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

import drift_envs
from baselines import recurrent_ppo, references, rl_squared
from baselines.common import make_play, play_course
from baselines.environments import REGIMES, BoardEnv, Regime, draw_phases, make_course, make_env
from baselines.measures import read_lines
from baselines.rows import ROWS, Configuration, LearnerRow
from drift_envs.errors import ArgumentError

DEVELOPMENT = 10_000
"""The first seed of the lifetimes that settings are chosen on; the board has the seeds from 0."""
NET_SEED = 20_000
"""The seed of the first net of RL squared; their schedules are drawn from it, too."""
TUNED_ON = "recurring"
DECIMALS = 3

_FULL_CELLS = {
    "corners": ("none", "late", "recurring", "rush"),
    "holes": ("none", "late", "recurring", "rush", "forty"),
    "cart_pole": ("none", "late", "recurring", "rush", "forty"),
    "mountain_car": ("none", "late", "recurring"),
}


@dataclass(frozen=True)
class Plan:
    """What is played.

    Args:
        seeds: lifetimes of each row in each cell.
        cells: the regimes that are played in each environment; in `none` only rows that learn in the lifetime and have
            no privileges.
        development: lifetimes that each configuration is tried on; 0 to take the first one untried.
        nets: of each row of RL squared.
        updates: of each net.
    """

    seeds: int
    cells: dict[str, tuple[str, ...]]
    development: int
    nets: int
    updates: int

    def regimes(self, row: LearnerRow, env: str) -> tuple[Regime, ...]:
        """The regimes that a row plays in an environment."""
        names = self.cells[env]
        return tuple(REGIMES[name] for name in names if name != "none" or not (row.privileged or row.has_nets))


FULL = Plan(seeds=30, cells=_FULL_CELLS, development=5, nets=5, updates=rl_squared.UPDATES)
SHORT = Plan(seeds=2, cells={"corners": ("recurring",)}, development=0, nets=1, updates=20)
PLANS = {"full": FULL, "short": SHORT}

Report = Callable[[str], None]


class BoardFolder:
    """The parts of a board.

    Args:
        path: the folder; it is made.
        plan: what is played, a dataclass.

    Raises:
        ArgumentError: if the folder holds parts of another plan.
    """

    def __init__(self, path: Path, plan: Any) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        wanted = json.dumps({"drift-envs": drift_envs.__version__, **asdict(plan)}, indent=1)
        file = path / "plan.json"
        if file.exists() and file.read_text("utf-8") != wanted:
            raise ArgumentError(f"`out` should be empty or hold parts of the same plan. Received {str(path)!r}")
        self._write(file, lambda temporary: temporary.write_text(wanted, "utf-8"))

    def file(self, *name: str | int) -> Path:
        """The file of a part."""
        return self.path / "-".join(map(str, name))

    def _write(self, file: Path, write: Callable[[Path], Any]) -> None:
        temporary = file.with_suffix(f".{os.getpid()}.tmp")
        write(temporary)
        temporary.replace(file)

    def save(self, frame: pd.DataFrame, *name: str) -> None:
        """Write a part; it appears at once or not at all."""
        self._write(self.file(*name, "part.parquet"), lambda path: frame.to_parquet(path, index=False))

    def save_net(self, weights: Any, *name: str | int) -> None:
        """Write the weights of a net, in the order of the leaves of their tree."""

        def write(path: Path) -> None:
            with path.open("wb") as file:
                np.savez(file, *map(np.asarray, jax.tree.leaves(weights)))

        self._write(self.file(*name, "net.npz"), write)

    def load_net(self, like: Any, *name: str | int) -> Any:
        """Read the weights of a net, as a tree like another one."""
        file = self.file(*name, "net.npz")
        try:
            with np.load(file) as arrays:
                return jax.tree.unflatten(jax.tree.structure(like), [jnp.asarray(arrays[key]) for key in arrays.files])
        except (ValueError, BadZipFile) as error:
            raise ArgumentError(f"`out` should hold nets that can be read. Received {str(file)!r}: {error}") from error

    def has(self, *name: str | int) -> bool:
        """Whether a part is there."""
        suffix = "net.npz" if name[0] == "net" else "part.parquet"
        return self.file(*name, suffix).exists()


def fill(scores: np.ndarray) -> np.ndarray:
    """Scores of rounds in which no episode ended: that of the round before; 0 before the first.

    Example:
        >>> fill(np.array([[np.nan, 0.5, np.nan, 1.0]])).tolist()
        [[0.0, 0.5, 0.5, 1.0]]
    """
    return np.asarray(pd.DataFrame(scores).ffill(axis=1).fillna(0.0))


def settings_of(row: LearnerRow, configurations: list[Configuration]) -> Any:
    """Settings with a leading dimension, one for each lifetime."""
    defaults = row.settings()._asdict()
    filled = [{**defaults, **row.fixed, **each} for each in configurations]
    return row.settings(*(jnp.array([each[name] for each in filled], jnp.float32) for name in defaults))


# --- parts


def tune(
    folder: BoardFolder, plan: Plan, row: LearnerRow, env: BoardEnv, functions: Any, report: Report
) -> Configuration:
    """The configuration with the highest mean score over development lifetimes; each one's score is a part."""
    tried = row.configurations
    if not tried:
        return {}
    if not plan.development:
        return tried[0]
    if not folder.has("tune", row.name, env.name):
        if row.has_nets:
            scores = np.array([_score_net(plan, env, each, functions, report) for each in tried])
        else:
            seeds = [DEVELOPMENT + index for index in range(plan.development)] * len(tried)
            configurations = [each for each in tried for _ in range(plan.development)]
            found = []
            for first in range(0, len(seeds), plan.seeds):  # batches of the board's size are compiled already
                batch = slice(first, first + plan.seeds)
                course = make_course(env, REGIMES[TUNED_ON], seeds[batch])
                played = play_course(functions, settings_of(row, configurations[batch]), course)
                found += fill(np.asarray(played)).mean(1).tolist()
            scores = np.array(found).reshape(len(tried), -1).mean(1)
        lines = [
            {"learner": row.name, "environment": env.name, "score": round(float(score), DECIMALS), **configuration}
            for score, configuration in zip(scores, tried, strict=True)
        ]
        folder.save(pd.DataFrame(lines), "tune", row.name, env.name)
        report(f"tuned {row.name} in {env.name}")
    scores = read_lines(folder.file("tune", row.name, env.name, "part.parquet"), ["score"])["score"]
    return tried[int(scores.argmax())]


def _score_net(plan: Plan, env: BoardEnv, configuration: Configuration, functions: Any, report: Report) -> float:
    """The mean score of a net on development lifetimes."""
    settings = rl_squared.MetaSettings(**configuration)
    weights, _ = rl_squared.train(env, DEVELOPMENT, True, settings, plan.updates)
    report(f"trained a net in {env.name} with {configuration}")
    course = make_course(env, REGIMES[TUNED_ON], [DEVELOPMENT + index for index in range(plan.development)])
    nets = rl_squared.Net(jax.tree.map(lambda part: jnp.repeat(part[None], plan.development, 0), weights))
    return float(fill(np.asarray(play_course(functions, nets, course))).mean())


def train_net(
    folder: BoardFolder,
    plan: Plan,
    row: LearnerRow,
    env: BoardEnv,
    index: int,
    configuration: Configuration,
    report: Report,
) -> Any:
    """The weights of a net of RL squared."""
    if not folder.has("net", row.name, env.name, index):
        settings = rl_squared.MetaSettings(**configuration)
        weights, curve = rl_squared.train(env, NET_SEED + index, row.both, settings, plan.updates)
        folder.save_net(weights, "net", row.name, env.name, index)
        report(f"trained {row.name} {index + 1} in {env.name}: score {curve[-1]:.2f}")
    like = recurrent_ppo.make_weights(env, jax.random.key(0))
    return folder.load_net(like, "net", row.name, env.name, index)


def play(
    folder: BoardFolder, plan: Plan, row: LearnerRow, env: BoardEnv, regime: Regime, settings: Any, functions: Any
) -> float:
    """Play the lifetimes of a row in a cell; returns the mean score."""
    seeds = list(range(plan.seeds))
    course = make_course(env, regime, seeds)
    times: list[float] = []
    scores = np.asarray(play_course(functions, settings, course, lambda rounds: times.append(time.monotonic())))
    binned = bin_scores(scores, regime)
    frame = lines_of(row.name, env.name, regime, seeds, binned)
    rounds = regime.length - regime.length // len(times)  # the first piece compiles
    steps = rounds * env.ticks * 8 * plan.seeds / (times[-1] - times[0])
    frame.attrs = {"steps_per_second": round(steps)}
    folder.save(frame, "play", row.name, env.name, regime.name)
    return float(binned.mean())


def bin_scores(scores: np.ndarray, regime: Regime) -> np.ndarray:
    """Scores of rounds as means over the bins of the regime, `(N, bins)`."""
    filled = fill(scores)
    return filled.reshape(len(filled), -1, regime.bin).mean(2).round(DECIMALS)


def lines_of(learner: str, env: str, regime: Regime, seeds: list[int], binned: np.ndarray) -> pd.DataFrame:
    """The lines of a part: one for each bin of each lifetime."""
    count = binned.shape[1]
    return pd.DataFrame(
        {
            "learner": learner,
            "environment": env,
            "regime": regime.name,
            "seed": np.repeat(np.array(seeds, np.int32), count),
            "bin": np.tile(np.arange(count, dtype=np.int32), len(seeds)),
            "score": binned.reshape(-1).astype(np.float32),
        }
    )


def play_references(folder: BoardFolder, plan: Plan, env: BoardEnv) -> None:
    """Optimum and best fixed policy of each lifetime."""
    regimes = [REGIMES[name] for name in plan.cells[env.name]]
    number = max(max(regime.order) for regime in regimes) + 1
    lines = []
    for seed in range(plan.seeds):
        scores = references.play_plans(env, draw_phases(env, seed)[:number])
        for regime in regimes:
            found = references.references_of(scores, regime)
            lines.append({"environment": env.name, "regime": regime.name, "seed": seed, **found._asdict()})
    folder.save(pd.DataFrame(lines), "reference", env.name)


# --- the board


def groups(plan: Plan, learners: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Rows that share a compilation, by environment; the longest work first."""
    modules = list(dict.fromkeys(row.module for row in ROWS))
    for module in modules:
        for env in sorted(plan.cells, key=lambda name: -len(plan.cells[name])):
            names = tuple(row.name for row in ROWS if row.module is module and (not learners or row.name in learners))
            if names:
                yield env, names


def play_group(path: Path, name: str, name_of_env: str, learners: tuple[str, ...], only_tune: bool) -> str:
    """Play what is missing of some rows in one environment; they share compiled functions.

    Args:
        path: the folder.
        name: of the plan.
        name_of_env: the environment.
        learners: the rows.
        only_tune: whether nothing but the tuning is played.
    """
    plan = PLANS[name]
    folder, env = BoardFolder(path, plan), make_env(name_of_env)
    jax.config.update("jax_compilation_cache_dir", str(path / "compiled"))

    def report(line: str) -> None:
        print(line, flush=True)

    if not only_tune and not folder.has("reference", name_of_env):
        play_references(folder, plan, env)
    rows = [row for row in ROWS if row.name in learners and row.plays(env)]
    functions = make_play(env, rows[0].module) if rows else None
    for row in rows:
        source = row if row.both else ROWS[[each.has_nets for each in ROWS].index(True)]
        configuration = tune(folder, plan, source, env, functions, report)
        missing = [
            regime
            for regime in plan.regimes(row, name_of_env)
            if not folder.has("play", row.name, name_of_env, regime.name)
        ]
        if only_tune or not missing:
            continue
        if row.has_nets:
            nets = [train_net(folder, plan, row, env, index, configuration, report) for index in range(plan.nets)]
            of_seeds = [nets[seed % plan.nets] for seed in range(plan.seeds)]
            settings = rl_squared.Net(jax.tree.map(lambda *parts: jnp.stack(parts), *of_seeds))
        else:
            settings = settings_of(row, [configuration] * plan.seeds)
        for regime in missing:
            score = play(folder, plan, row, env, regime, settings, functions)
            report(f"played {row.name} in {name_of_env}, {regime.name}: score {score:.2f}")
    return name_of_env


def play_board(
    path: Path,
    plan: str,
    jobs: int = 1,
    learners: tuple[str, ...] = (),
    only_tune: bool = False,
    report: Report = lambda line: None,
) -> None:
    """Play the parts that are missing.

    Args:
        path: the folder.
        plan: its name.
        jobs: processes.
        learners: the rows; all by default.
        only_tune: whether nothing but the tuning is played.
        report: gets a line for each group of rows that is complete; return values are ignored.

    Raises:
        ArgumentError: if the folder holds parts of another plan.
    """
    BoardFolder(path, PLANS[plan])
    todo = [(path, plan, env, names, only_tune) for env, names in groups(PLANS[plan], learners)]
    start = time.monotonic()
    # one thread for each process, so that sums do not depend on the number of processes
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    context = multiprocessing.get_context("spawn")
    with context.Pool(jobs, maxtasksperchild=1) as pool:
        for done, _ in enumerate(pool.imap_unordered(_play_one, todo), start=1):
            report(f"{done} of {len(todo)} groups after {time.monotonic() - start:.0f} s")


def _play_one(arguments: tuple[Path, str, str, tuple[str, ...], bool]) -> str:
    return play_group(*arguments)


def collect(path: Path) -> dict[str, pd.DataFrame]:
    """The tables of a board: scores, tuning, references and speed.

    Raises:
        ArgumentError: if no part is there.
    """
    found: dict[str, pd.DataFrame] = {}
    for kind in ("play", "tune", "reference"):
        parts = [read_lines(file) for file in sorted(path.glob(f"{kind}-*-part.parquet"))]
        if parts:
            found[kind] = pd.concat(parts, ignore_index=True)
        if kind == "play" and parts:
            speeds = [{**part.iloc[0][["learner", "environment", "regime"]], **part.attrs} for part in parts]
            found["speed"] = pd.DataFrame(speeds)
    if "play" not in found:
        raise ArgumentError(f"`folder` should hold parts of a board. Received {str(path)!r}")
    return found
