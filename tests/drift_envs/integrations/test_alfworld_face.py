"""A client that knows ALFWorld's text interface, and nothing of this package, plays the house."""

import re

import pytest

from drift_envs.errors import ArgumentError, StateError
from drift_envs.integrations.alfworld import SPLITS, HouseGames

PREFIXES = {
    "pick_and_place": "put",
    "pick_clean_then_place": "clean",
    "pick_heat_then_place": "heat",
    "pick_cool_then_place": "cool",
    "look_at_obj": "examine",
    "pick_two_obj": "puttwo",
}
"""How clients of ALFWorld tell the types apart: by the path of the game."""

WORDINGS = {
    "put": (r"put a (\w+) in (\w+)", r"put some (\w+) on (\w+)", r"find a (\w+) and put it in (\w+)"),
    "examine": (
        r"look at (\w+) under the (\w+)",
        r"examine the (\w+) with the (\w+)",
        r"find a (\w+) and look at it under the (\w+)",
    ),
    "puttwo": (
        r"put two (\w+) in (\w+)",
        r"find two (\w+) and put them in (\w+)",
        r"take two (\w+) and put both in (\w+)",
    ),
    **{
        verb: (
            rf"put a {mark} (\w+) in (\w+)",
            rf"{verb} some (\w+) and put it in (\w+)",
            rf"find and {verb} a (\w+) and put it in (\w+)",
        )
        for verb, mark in {"clean": "clean", "heat": "hot", "cool": "cool"}.items()
    },
}
"""How a task can be said: the first two of each are ALFWorld's templates."""

APPLIANCES = {"heat": "microwave 1", "cool": "fridge 1", "clean": "sinkbasin 1"}


class TextClient:
    """Looks everywhere for the thing, as agents for ALFWorld do, from texts alone."""

    def __init__(self, first: str, kind: str) -> None:
        room, task = first.split("\n\n")[1:]
        self.places = re.findall(r"an? (\w+ \d+)", room)
        self.task = task.removeprefix("Your task is to: ").rstrip(".")
        self.kind = kind
        wording = next(wording for wording in WORDINGS[kind] if re.fullmatch(wording, self.task))
        self.thing, self.target = re.fullmatch(wording, self.task).groups()
        self.left = 2 if kind == "puttwo" else 1

    def play(self):
        """Yields commands, and is sent what they say."""
        lamp = None
        for place in sorted(self.places, key=lambda name: name.startswith(self.target)):
            text = yield f"go to {place}"
            if text.endswith("is closed."):
                text = yield f"open {place}"
            if self.kind == "examine" and (seen := re.search(rf"{self.target} \d+", text)):
                lamp = (place, seen[0])
            for thing in re.findall(rf"a ({self.thing} \d+)", text):
                yield f"take {thing} from {place}"
                yield from self.use(thing, lamp)
                self.left -= 1
                if not self.left:
                    return
                yield f"go to {place}"

    def use(self, thing, lamp):
        """Whatever is to be done with a thing in the hand."""
        if self.kind == "examine":
            places = [lamp[0]] if lamp else self.places
            for place in places:
                text = yield f"go to {place}"
                if seen := lamp or re.search(rf"{self.target} \d+", text):
                    yield f"use {seen[1] if lamp else seen[0]}"
                    return
        if self.kind in APPLIANCES:
            yield f"go to {APPLIANCES[self.kind]}"
            yield f"{self.kind} {thing} with {APPLIANCES[self.kind]}"
        goal = next(place for place in self.places if place.startswith(f"{self.target} "))
        text = yield f"go to {goal}"
        if text.endswith("is closed.") or text == "Nothing happens.":  # it may stand there already
            yield f"open {goal}"
        yield f"put {thing} in/on {goal}"


def run(env, obs, info, is_judged=True):
    """One game, the way published clients write the loop."""
    name = "/".join(info["extra.gamefile"][0].split("/")[-3:-1])
    kind = next(kind for prefix, kind in PREFIXES.items() if name.startswith(prefix))
    assert obs[0].startswith("-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. ")
    player = TextClient(obs[0], kind).play()
    text, done = None, [False]
    while not done[0]:
        try:
            command = player.send(text)
        except StopIteration:
            break
        is_admissible = command in info["admissible_commands"][0]
        obs, reward, done, info = env.step([command])
        text = obs[0]
        # both forms of putting down are understood; the admissible one is `move ... to ...`
        assert is_admissible == (text != "Nothing happens.") or " in/on " in command, command
        assert not is_judged or reward == [float(info["won"][0])]
    return kind, info["won"][0]


@pytest.mark.parametrize("split", SPLITS)
def test_a_client_of_alfworld_plays_every_type(split):
    config = {"rl": {"training": {"max_nb_steps_per_episode": 150}}, "general": {"training_method": "dqn"}}
    games = HouseGames(config, train_eval=split, houses=2)
    env = games.init_env(batch_size=1)
    wins = {}
    for _ in range(24):
        kind, won = run(env, *env.reset())
        wins.setdefault(kind, []).append(won)
    assert set(wins) == set(PREFIXES.values())
    assert all(all(won) for won in wins.values()), wins


def test_a_house_of_one_room_is_played():
    games = HouseGames(train_eval="eval_in_distribution", houses=4, one_room=True)
    kinds = [next(kind for prefix, kind in PREFIXES.items() if f"/{prefix}" in name) for name in games.game_files]
    assert set(kinds) == set(PREFIXES.values())
    assert not any("Sinkbasin" in name or "Alarmclock" in name for name in games.game_files)
    env, places, wins = games.init_env(), set(), []
    for _ in range(0, games.num_games, 4):
        obs, info = env.reset()
        env.skip(3)
        places.add(len(re.findall(r"an? \w+ \d+", obs[0].split("\n\n")[1])))
        wins.append(run(env, obs, info)[1])
    assert all(wins)
    assert max(places) < 25  # a house of four rooms has 40 or so


def test_an_expert_and_all_wordings():
    config = {"general": {"training_method": "dagger"}}
    env = HouseGames(config, houses=2, schedule="house/tidy").init_env(batch_size=2)
    said = set()
    for _ in range(12):
        obs, info = env.reset()
        said |= {text.split("Your task is to: ")[1].split()[0] for text in obs}
        plans, dones = info["extra.expert_plan"], [False, False]
        while not all(dones):
            for plan, commands, done in zip(plans, info["admissible_commands"], dones, strict=True):
                assert done or plan[0] in commands
            before = plans
            _, _, dones, info = env.step([plan[0] if plan else "look" for plan in plans])
            plans = info["extra.expert_plan"]
            assert [len(plan) for plan in plans] == [max(len(plan) - 1, 0) for plan in before]
        assert info["won"] == [True, True]
    assert len(said) > 4
    assert "extra.expert_plan" not in HouseGames(config, "eval_in_distribution", houses=1).init_env().reset()[1]


def test_evaluators_read_phase_and_log():
    schedule = {"version": 1, "name": "d", "drifts": [{"name": "ice", "at": 1, "set": {"gone": ["fridge 1"]}}]}
    env = HouseGames(schedule=schedule, houses=1).init_env(batch_size=2)
    env.reset()
    assert [state.phase for state in env.drift_state] == ["source", "source"]
    _, info = env.reset()
    assert [state.phase for state in env.drift_state] == ["ice", "ice"]
    assert [[change.knob for change in log] for log in env.drift_log] == [["gone"], ["gone"]]
    assert not any("drift" in key for key in info)


def test_a_drift_reaches_the_client():
    schedule = {"version": 1, "name": "d", "drifts": [{"at": 1, "set": {"gone": ["fridge 1"]}}]}
    env = HouseGames(schedule=schedule, houses=1).init_env(batch_size=2)
    before, after = env.reset()[0], env.reset()[0]
    assert all("fridge 1" in text for text in before)
    assert not any("fridge 1" in text for text in after)


def test_splits_share_houses_as_in_alfworld():
    files = {split: HouseGames(train_eval=split, houses=3).game_files for split in SPLITS}
    houses = {split: {name.split("/")[2].split("-")[-1] for name in names} for split, names in files.items()}
    assert houses["train"] == houses["eval_in_distribution"]
    assert not houses["train"] & houses["eval_out_of_distribution"]
    assert not {name.split("/")[3] for name in files["train"]} & {
        name.split("/")[3] for name in files["eval_in_distribution"]
    }
    assert HouseGames(houses=3).game_files == files["train"] != HouseGames(houses=3, seed=1).game_files


def test_lists_of_a_batch_and_games_that_are_over():
    env = HouseGames({"env": {"task_types": [1]}, "dataset": {"num_train_games": 5}}, houses=1).init_env(batch_size=3)
    obs, info = env.reset()
    assert [len(column) for column in (obs, *info.values())] == [3] * 4
    for _ in range(50):
        obs, scores, dones, info = env.step(["look"] * 3)
    assert dones == [True] * 3
    assert scores == [0.0] * 3
    assert env.step(["go to bed 1"] * 3)[0] == obs
    assert env.reset()[0] != obs


def test_order_and_seeds():
    def seen(env):
        return [env.reset()[1]["extra.gamefile"][0] for _ in range(4)]

    games = HouseGames(houses=1)
    one, other = games.init_env(), games.init_env()
    first = seen(one)
    assert first == seen(other)
    one.seed(5)
    assert seen(one) != first
    fixed = HouseGames(train_eval="eval_in_distribution", houses=1)
    env = fixed.init_env()
    env.skip(2)
    assert seen(env) == fixed.game_files[2:6]


def test_what_it_refuses():
    with pytest.raises(ArgumentError, match="`train_eval` should be one of train, eval_in_distribution"):
        HouseGames(train_eval="test")
    with pytest.raises(ArgumentError, match="`task_types` should be a whole number"):
        HouseGames({"env": {"task_types": [7]}})
    with pytest.raises(ArgumentError, match="`task_types` should be a list of whole numbers"):
        HouseGames({"env": {"task_types": 3}})
    with pytest.raises(ArgumentError, match="`num_train_games` should be a whole number, at least -1, or None"):
        HouseGames({"dataset": {"num_train_games": "all"}}, houses=1)
    env = HouseGames(houses=1).init_env()
    with pytest.raises(StateError, match="`step` was called before `reset`"):
        env.step(["look"])
    env.reset()
    for commands in ("look", ["look"] * 2):
        with pytest.raises(ArgumentError, match="`commands` should be a list of 1 texts"):
            env.step(commands)
    env.close()
