"""What trackers receive of episodes, from the wrapper and from runs of experiments."""

from __future__ import annotations

import re
import sys

import gymnasium as gym
import pytest

from drift_envs.errors import ArgumentError, MissingDependencyError
from drift_envs.integrations.trackers import TRACKERS, TrackEpisodes, make_tracker

TURN = {
    "version": 1,
    "name": "turn",
    "base": {"map": ["SG"]},
    "drifts": [{"name": "far", "at": 2, "set": {"map": ["SFFG"]}}],
}


class Memo:
    """Keeps every call."""

    def __init__(self):
        self.calls = []

    def begin(self, name, about):
        self.calls.append(("begin", name, dict(about)))

    def log(self, step, values):
        self.calls.append(("log", step, dict(values)))

    def mark(self, step, text):
        self.calls.append(("mark", step, text))

    def end(self, summary):
        self.calls.append(("end", dict(summary)))


def walk(env, episodes):
    for episode in range(episodes):
        env.reset(seed=0 if episode == 0 else None)
        while not any(env.step(2)[2:4]):
            pass


def test_the_wrapper_logs_episodes_and_marks_the_drift():
    memo = Memo()
    env = TrackEpisodes(gym.make("DriftFrozenLake-v0", schedule=TURN), [memo], name="walk")
    walk(env, 3)
    env.reset()  # an episode that does not end is not logged
    env.step(2)
    env.close()
    env.close()
    assert memo.calls == [
        ("begin", "walk", {"env": "DriftFrozenLake-v0", "schedule": "turn"}),
        ("mark", 0, "source"),
        ("log", 0, {"score": 1.0, "phase_score/source": 1.0, "drift": 0.0, "steps": 1.0, "tick": 0.0}),
        ("log", 1, {"score": 1.0, "phase_score/source": 1.0, "drift": 0.0, "steps": 1.0, "tick": 1.0}),
        ("mark", 2, "far"),
        ("log", 2, {"score": 1.0, "phase_score/far": 1.0, "drift": 1.0, "steps": 3.0, "tick": 2.0}),
        ("end", {"mean_score/source": 1.0, "mean_score/far": 1.0}),
    ]
    assert env.by_phase() == {"source": [1.0, 1.0], "far": [1.0]}


def test_a_tracker_that_cannot_be_copied_logs():
    memo = Memo()
    memo.tool = re  # as the trackers here hold their tool
    TrackEpisodes(gym.make("DriftFrozenLake-v0"), [memo]).close()
    assert [call[0] for call in memo.calls] == ["begin", "end"]


def test_the_agent_observes_what_it_would_observe_without():
    plain = gym.make("DriftMountainCar-v0")
    tracked = TrackEpisodes(gym.make("DriftMountainCar-v0"), [Memo()])
    assert repr(tracked.reset(seed=4)) == repr(plain.reset(seed=4))
    for action in (0, 1, 2, 2):
        assert repr(tracked.step(action)) == repr(plain.step(action))


def test_each_cell_of_a_run_is_a_run_of_the_tracker(tmp_path):
    from drift_agents.analysis.rows import read_run
    from drift_agents.experiment.loader import parse_experiment
    from drift_agents.experiment.runner import run_experiment

    experiment = parse_experiment({
        "name": "small", "schedules": ["frozen_lake/implicit"], "seeds": 1, "rounds": 2,
        "agents": {"memory": ["vanilla"], "verifier": ["none", "glove"], "policy": "planner"},
    })  # fmt: skip
    with pytest.raises(ArgumentError, match="`trackers` should be a list of trackers"):
        run_experiment(experiment, tmp_path / "run", trackers=["tensorboard"])
    memo, other = Memo(), Memo()
    run_experiment(experiment, tmp_path / "run", trackers=[memo, other])
    assert memo.calls == other.calls
    begun = [call[2] for call in memo.calls if call[0] == "begin"]
    assert [about["verifier"] for about in begun] == ["none", "glove"]
    assert begun[0]["schedule"] == "frozen_lake/implicit"
    _, rows = read_run(tmp_path / "run")
    logged = [call[2] for call in memo.calls if call[0] == "log"]
    assert [values["score"] for values in logged] == [row["score"] for row in rows]
    assert [values["probes"] for values in logged] == [row["probe_steps"] for row in rows]
    assert [values.get("truth_rate") for values in logged] == [row["memory_truth_rate"] for row in rows]
    assert [call[1:] for call in memo.calls if call[0] == "mark"] == [(0, "source"), (2, "reversal")] * 2
    run_experiment(experiment, tmp_path / "run", resume=True, trackers=[memo])
    assert memo.calls == other.calls  # nothing was played, so nothing is logged


def test_mistakes_name_the_rule(monkeypatch, tmp_path):
    with pytest.raises(ArgumentError, match="`name` should be one of tensorboard, wandb, mlflow"):
        make_tracker("excel", tmp_path)
    with pytest.raises(ArgumentError, match="should have a `DriftWrapper` inside"):
        TrackEpisodes(gym.make("CartPole-v1"), [Memo()])
    for wrong in ("tensorboard", None, [5]):
        with pytest.raises(ArgumentError, match="`trackers` should be a list of trackers"):
            TrackEpisodes(gym.make("DriftFrozenLake-v0"), wrong)
    for name in TRACKERS:
        for module in [module for module in sys.modules if module.split(".")[0] == name]:
            monkeypatch.delitem(sys.modules, module)
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(MissingDependencyError, match=re.escape(f'pip install ".[{name}]"')):
            make_tracker(name, tmp_path / name)


def test_the_command_logs_to_all_trackers_that_it_names(tmp_path, monkeypatch, capsys):
    from drift_agents.cli.app import main

    made = {}

    def tracker_of(name):
        def make(folder, project):
            made[name] = (folder, project, Memo())
            return made[name][2]

        return make

    for name in ("tensorboard", "mlflow"):
        monkeypatch.setitem(TRACKERS, name, tracker_of(name))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(
        "name: small\nschedules: [frozen_lake/implicit]\nseeds: 1\nrounds: 1\n"
        "agents: {memory: vanilla, verifier: none, policy: planner}\n",
        encoding="utf-8",
    )
    (tmp_path / "mine" / "tracking" / "mlflow").mkdir(parents=True)  # a tool may write before the run begins
    assert main(["run", "small.yaml", "--log-to", "tensorboard,mlflow", "--jobs", "1", "--out", "mine"]) == 0
    assert [(name, folder, project) for name, (folder, project, _) in made.items()] == [
        (name, tmp_path / "mine" / "tracking" / name, "small") for name in ("tensorboard", "mlflow")
    ]
    assert made["tensorboard"][2].calls == made["mlflow"][2].calls
    assert made["mlflow"][2].calls[-1][0] == "end"
    assert f"mlflow has the run in {tmp_path / 'mine' / 'tracking' / 'mlflow'}" in " ".join(
        capsys.readouterr().err.split()
    )
