"""Games that TextWorld generates, drifting through the same wrapper as every other environment."""

import copy
import pickle
import re

import pytest

from drift_envs import DriftWrapper, twin
from drift_envs.errors import ArgumentError, KnobError, StateError
from drift_envs.textworld import TEXTWORLD_KNOBS, TextWorldGame
from drift_envs.wrappers.snapshot import snapshot

textworld = pytest.importorskip("textworld", reason="needs the extra `textworld`")
pytestmark = pytest.mark.filterwarnings("ignore:.*is not fully supported")
"""TextWorld's interpreter says so of all games that it has not been written for."""


@pytest.fixture(scope="module")
def games(tmp_path_factory):
    """Two games of two rooms."""
    folder, paths = tmp_path_factory.mktemp("games"), []
    for seed in (1, 2):
        options = textworld.GameOptions()
        options.seeds, options.nb_rooms, options.nb_objects, options.quest_length = seed, 2, 4, 2
        options.path = str(folder / f"game-{seed}.z8")
        paths.append(textworld.make(options)[0])
    return paths


def schedule(**values):
    return {"version": 1, "name": "one", "drifts": [{"name": "d", "at": 1, "set": values}]}


def walk(env, steps=4):
    _, info = env.reset()
    answers = []
    for number in range(steps):
        text, reward, over, _, info = env.step(info["actions"][number % len(info["actions"])])
        answers.append((text, reward, over, tuple(info["actions"])))
    return answers


def test_a_game_can_be_won_by_its_walkthrough(games):
    env = TextWorldGame(games, render_mode="ansi")
    text, info = env.reset(seed=0)
    assert env.observation_space.contains(text)
    for key in info:
        assert f"| `{key}` |" in TextWorldGame.__doc__
    wanted = textworld.EnvInfos(policy_commands=True)
    plan = textworld.start(games[0], wanted).reset()["policy_commands"]
    total = 0.0
    for command in plan:
        assert env.action_space.contains(command)
        text, reward, over, truncated, info = env.step(command)
        total += reward
    assert (over, truncated, info["won"], info["score"], total) == (True, False, True, 1.0, 1.0)
    assert env.render() == text


def test_the_game_drifts(games):
    env = DriftWrapper(TextWorldGame(games), schedule(game=1))
    before, after = env.reset(seed=0), env.reset()
    assert before[1]["task"] != after[1]["task"]
    assert env.reset(seed=0) == before
    assert env.drift_state.knobs["game"] == 0


def test_words_drift_in_texts_and_commands(games):
    env = DriftWrapper(TextWorldGame(games), schedule(words={"mug": "goblet", "south": "down"}))
    _, info = env.reset(seed=0)
    assert "drop mug" in info["actions"]
    _, info = env.reset()
    assert "drop goblet" in info["actions"]
    assert not re.search(r"\bmug\b", " ".join(info["actions"]))
    assert "You drop the goblet" in env.step("drop goblet")[0]


def test_lost_commands_change_nothing(games):
    env = DriftWrapper(TextWorldGame(games), {"version": 1, "name": "lost", "base": {"transient": 1.0}})
    text, _ = env.reset(seed=0)
    assert env.step("go south")[0] == text


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_clones_go_on_where_the_game_was(games, clone):
    env = TextWorldGame(games)
    _, info = env.reset(seed=0)
    env.step(info["actions"][0])
    other = clone(env)
    for command in ("look", "inventory", "go south"):
        assert other.step(command) == env.step(command)


def test_twins_and_snapshots(games):
    env = DriftWrapper(TextWorldGame(games), schedule(game=1))
    env.reset(seed=0)
    second = twin(env)
    first = walk(env)  # at the next tick, where both play the other game
    assert walk(second) == first
    env.reset(seed=0)
    env.step("drop mug")
    saved = snapshot(env)
    first = env.step("inventory")
    env.step("go south")
    saved.restore()
    assert env.step("inventory") == first


def test_what_it_refuses(games):
    with pytest.raises(ArgumentError, match="`games` should be files of games"):
        TextWorldGame(["nowhere.z8"])
    env = TextWorldGame(games)
    with pytest.raises(StateError, match="`step` was called before `reset`"):
        env.step("look")
    with pytest.raises(ArgumentError, match="`options` should be empty"):
        env.reset(options={"game": 1})
    for words in ({"mug": "Big Cup"}, {"mug": "cup", "key": "cup"}):
        with pytest.raises(KnobError, match="`words` should"):
            env.words = words
    assert set(TEXTWORLD_KNOBS) == set(env.read_knobs())
