"""The board: parts that resume, tables, the page, and learners that join."""

import doctest
import importlib
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

for package in ("jax", "gymnax", "optax", "pyarrow"):
    pytest.importorskip(package, reason="needs the extra `baselines`")

import jax

from baselines import __main__ as command
from baselines import board, evaluate, exit_status, measures, recurrent_ppo, report
from baselines.environments import ENVIRONMENTS, REGIMES, Regime, draw_phases
from baselines.host import HostLifetime
from drift_envs.errors import ArgumentError
from drift_envs.utils.lazy import find_callable
from tests.documents import read_code, run_code

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = ROOT / "baselines" / "results" / "rl_board"
PAGE = (ROOT / "docs" / "research" / "rl_board.md").read_text("utf-8")
TINY = board.Plan(2, {"corners": ("none", "recurring")}, 1, 1, 10)


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setitem(board.PLANS, "tiny", TINY)


@pytest.fixture
def short_regime(monkeypatch):
    monkeypatch.setitem(REGIMES, "tiny", Regime("tiny", (0, 1), (2, 2), 1))


def play(folder):
    board.play_group(folder, "tiny", "corners", ("q_learning",), False)
    return {file.name: file.read_bytes() for file in sorted(folder.glob("*-part.parquet"))}


@pytest.mark.integration
def test_missing_parts_are_played_again_to_the_same_lines(tiny, tmp_path, capsys):
    played = play(tmp_path)
    assert [name.rsplit("-", 1)[0] for name in played] == [
        "play-q_learning-corners-none",
        "play-q_learning-corners-recurring",
        "reference-corners",
        "tune-q_learning-corners",
    ]
    tables = board.collect(tmp_path)
    (tmp_path / "play-q_learning-corners-recurring-part.parquet").unlink()
    capsys.readouterr()
    again = play(tmp_path)
    assert re.findall(r"played q_learning in corners, (\w+)", capsys.readouterr().out) == ["recurring"]
    assert again["play-q_learning-corners-none-part.parquet"] == played["play-q_learning-corners-none-part.parquet"]
    assert board.collect(tmp_path)["play"].equals(tables["play"])
    scores = tables["play"].groupby("regime", observed=True)["score"].mean()
    assert scores["none"] > scores["recurring"] > 0.3
    assert len(tables["tune"]) == 12

    report.ship(tables, tmp_path / "shipped")
    shipped = report.load(tmp_path / "shipped")
    cells = measures.make_cells(shipped["play"])
    assert set(cells) == {("corners", "none", "q_learning"), ("corners", "recurring", "q_learning")}
    blocks = report.make_blocks(shipped)
    assert "Q-learning" in blocks["scores"]
    assert "| *best fixed policy* | 1.00 | 0.50 |" in blocks["scores"]
    filled = report.fill_page(PAGE, blocks)
    assert filled != PAGE
    assert report.fill_page(filled, blocks) == filled


@pytest.mark.integration
def test_nets_are_tuned_trained_once_and_kept(monkeypatch, tmp_path):
    monkeypatch.setitem(board.PLANS, "tiny", board.Plan(4, {"corners": ("recurring",)}, 2, 2, 10))
    trained = []

    def train(env, seed, both, settings, updates):
        trained.append((seed, both, settings.rate))
        return recurrent_ppo.make_weights(env, jax.random.key(seed)), np.zeros(1)

    monkeypatch.setattr(board.rl_squared, "train", train)
    rows = ("rl_squared", "rl_squared_one")
    board.play_group(tmp_path, "tiny", "corners", rows, False)
    tried, nets = trained[:2], trained[2:]
    assert tried == [(board.DEVELOPMENT, True, 1e-3), (board.DEVELOPMENT, True, 3e-3)]
    scores = board.collect(tmp_path)["tune"]["score"]
    rate = tried[int(scores.argmax())][2]
    assert nets == [(board.NET_SEED + index, both, rate) for both in (True, False) for index in (0, 1)]
    first = board.collect(tmp_path)["play"]
    for part in tmp_path.glob("play-*"):
        part.unlink()
    board.play_group(tmp_path, "tiny", "corners", rows, False)
    assert len(trained) == 6
    assert board.collect(tmp_path)["play"].equals(first)


def test_parts_of_another_plan_are_refused(tmp_path):
    board.BoardFolder(tmp_path, TINY)
    board.BoardFolder(tmp_path, TINY)
    with pytest.raises(ArgumentError, match="should be empty or hold parts of the same plan"):
        board.BoardFolder(tmp_path, board.SHORT)


def test_rounds_are_averaged_and_filled():
    scores = np.full((1, 300), np.nan)
    scores[0, 10] = 0.5
    binned = board.bin_scores(scores, REGIMES["recurring"])
    assert binned.shape == (1, 150)
    assert (binned[0, :5] == 0).all()
    assert (binned[0, 5:] == 0.5).all()


def test_the_curve_around_drifts_has_the_drift_in_its_middle():
    regime = REGIMES["recurring"]
    scores = np.tile(np.repeat([[0.1, 0.9]], [5, 20], axis=1), 6)
    curve = measures.around_drifts(measures.ScoreCell(scores, regime), 5)
    np.testing.assert_allclose(curve, [[0.9] * 5 + [0.1] * 5])


def test_plasticity_and_transfer_have_the_right_sign():
    forty = REGIMES["forty"]
    falling = np.repeat(np.linspace(0.9, 0.1, 40), 10)[None]
    cell = measures.ScoreCell(falling, forty)
    assert measures.plasticity_loss(cell)[0] == pytest.approx(0.8)
    early, late = measures.early_and_late(cell)
    assert early[0] > late[0]
    worse = measures.ScoreCell(falling / 2, forty)
    assert measures.transfer(worse, cell)[0] < 0 < measures.transfer(cell, worse)[0]
    assert measures.adaptation(worse, 0.9).censored == 1.0


def test_the_page_is_what_the_shipped_files_give():
    assert sum(file.stat().st_size for file in SHIPPED.iterdir()) < 5_000_000
    assert report.fill_page(PAGE, report.make_blocks(report.load(SHIPPED))) == PAGE


@pytest.mark.integration
def test_the_agent_of_the_page_joins(short_regime, tmp_path, monkeypatch, capsys):
    (code,) = [code for code in read_code("docs/research/rl_board.md") if "class QLearning" in code]
    (tmp_path / "my_agent.py").write_text(code, "utf-8")
    monkeypatch.chdir(tmp_path)
    options = ["my_agent:make", "--environment", "holes", "--regime", "tiny", "--seeds", "2", "--out", "mine.parquet"]
    assert evaluate.main(options) == 0
    assert "my_agent:make, holes, tiny" in capsys.readouterr().out
    again = evaluate.evaluate(run_code(code)["make"], "my_agent:make", "holes", "tiny", 2)
    assert again.equals(report.pd.read_parquet("mine.parquet"))
    assert again["bin"].max() == 3


@pytest.mark.integration
@pytest.mark.parametrize("model", ["ppo", "dqn", "dqn_copied", "recurrent_ppo"])
@pytest.mark.parametrize("environment", ["corners", "cart_pole"])
def test_a_model_of_stable_baselines3_joins(short_regime, environment, model):
    sb3 = pytest.importorskip("baselines.sb3")
    lines = evaluate.evaluate(getattr(sb3, model), model, environment, "tiny", 1)
    assert len(lines) == 4
    assert lines["score"].between(0, 1).all()
    assert lines["score"].any() or environment == "corners"
    assert sb3.is_model_class(find_callable("agent", "stable_baselines3:PPO"))


@pytest.mark.integration
def test_a_lifetime_that_is_stepped_from_python_drifts_as_the_compiled_ones(short_regime):
    lifetime = HostLifetime("corners", REGIMES["tiny"], 3)
    plan = lifetime.env.plan(draw_phases(lifetime.env, 3)[0])
    step = lifetime.start()
    for _ in range(lifetime.length):
        step = lifetime.step(plan[step.observation])
    assert lifetime.scores.tolist() == [1, 1, 0, 0]
    for wrong in (np.zeros(3, int), np.full(8, 4)):
        with pytest.raises(ArgumentError, match="`actions` should be 8 integers from 0 to 3"):
            lifetime.step(wrong)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--learners", "sarsa"], "`learner` should be one of ppo, ppo_told"),
        (["table", "--results", "nowhere"], "`results` should hold play.parquet"),
        (["table", "nowhere"], "`folder` should hold parts of a board"),
        (["table", "--results", "broken"], "a file of the board should be Parquet"),
        (["table", "--results", "foreign"], "should have the columns regime, seed, bin"),
        (["table", "--results", str(SHIPPED), "--join", "none.parquet"], "should be Parquet. Received 'none.parquet'"),
    ],
)
def test_wrong_usage_is_one_line(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for folder in ("broken", "foreign"):
        shutil.copytree(SHIPPED, folder)
    Path("broken/play.parquet").write_text("no Parquet", "utf-8")
    shutil.copy(SHIPPED / "tune.parquet", "foreign/play.parquet")
    assert command.main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "`agent` should be 'module:name'"),
        (["no_such_module:make"], "`agent` should be 'module:name' of an installed module"),
        (["math:pi"], "`agent` should be 'module:name' of a function or a class"),
        (["builtins:dict", "--regime", "none_such"], "`regime` should be one of none, late"),
        (["builtins:dict", "--environment", "moon"], "`environment` should be one of corners, holes"),
    ],
)
def test_agents_that_cannot_play_are_refused(arguments, message, capsys):
    assert evaluate.main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_the_help_of_evaluate_names_every_environment_and_regime(capsys):
    assert evaluate.main(["--help"]) == 0
    words = set(re.findall(r"\w+", capsys.readouterr().out))
    assert words >= {*ENVIRONMENTS, *REGIMES}


@pytest.mark.parametrize("program", [command, evaluate], ids=lambda program: program.PROGRAM)
def test_without_the_extra_one_line_names_it(program, monkeypatch, capsys):
    monkeypatch.setattr(exit_status, "find_spec", lambda name: None if name == "optax" else name)
    assert program.main(["table"]) == 1
    error = capsys.readouterr().err
    assert error.startswith(
        f'{program.PROGRAM}: `optax` is not installed, run `pip install ".[baselines]"` in a checkout'
    )
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "module", sorted(file.stem for file in (ROOT / "baselines").glob("*.py") if not file.stem.startswith("_"))
)
def test_examples_of_docstrings_run(module):
    found = doctest.testmod(importlib.import_module(f"baselines.{module}"))
    assert found.failed == 0
