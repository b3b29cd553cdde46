"""BFCL's tools with knobs: published calls before and after drifts, rules of the layer, bad input, copies, oracle."""

import copy
import decimal
import json
from itertools import pairwise

import gymnasium as gym
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("bfcl_eval", reason="needs the extra `bfcl`")

from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker import state_checker

from drift_envs.envs.bfcl.env import BfclEpisode, BfclTools
from drift_envs.envs.bfcl.interface import QUANTITIES, UNITS, BfclInterface
from drift_envs.envs.bfcl.package import (
    load_tasks,
    load_tools,
    make_engine,
    parse_published_call,
    replay_reference,
)
from drift_envs.errors import ArgumentError
from drift_envs.schedule import load_schedule
from drift_envs.tasks.package_tools import PackageCall
from tests.drift_envs.envs.registered_contract import shipped
from tests.extras.task_contract import TaskContract, check_refusals, starts

ENV_ID = "DriftBfcl-v0"
list_tasks = BfclTools.list_tasks
DRIFTED = [name for name in shipped(ENV_ID) if not load_schedule(name).control]
PHASES = (0, 20, 40)
FINISH = PackageCall("finish", {})
LEAST_TASKS = 50
FEW = {"bfcl/defaults": 20}
"""Few published calls leave an argument out."""
DATED = [name for name in DRIFTED if all(drift.rate is None for drift in load_schedule(name).drifts)]
DEFAULTS = {
    tool.name: {name: one.default for name, one in tool.arguments.items() if not one.required}
    for tool in load_tools().values()
}


def published(number):
    """The published calls of a task, with the end of each turn."""
    return [call for turn in load_tasks()[number].reference for call in (*turn, FINISH)]


def play_package(number):
    """The package's own objects after the published calls, without episode, interface and knobs.

    Defaults are given, since `mention` changes the list that `post_tweet` has as default for the whole process.
    """
    task = load_tasks()[number]
    objects = {name: make_engine(name, task.scenario.get(name, {})) for name in task.engines}
    for turn in task.reference:
        for tool, arguments in turn:
            method = getattr(objects[load_tools()[tool].engine], tool)
            method(**copy.deepcopy({**DEFAULTS[tool], **arguments}))
    return objects


def play(env, number, texts, tick=0):
    """The reward of these calls, and the package's objects after them."""
    env.reset(options={"goal_index": number, "drift_tick": tick})
    reward, done = 0.0, False
    for text in texts:
        assert not done
        _, reward, done, _, _ = env.step(text)
    return reward, env.unwrapped.episode.engines.instances


def make_episode(number=None, **knobs):
    return BfclEpisode(BfclInterface.of(knobs), load_tasks()[list_tasks()[0] if number is None else number])


def task_with(engine):
    return next(number for number in list_tasks() if engine in load_tasks()[number].engines)


PROGRAM = """
import hashlib
from drift_envs.envs.bfcl.env import BfclEpisode, BfclTools
from drift_envs.envs.bfcl.interface import BfclInterface
from drift_envs.envs.bfcl.package import load_tasks, load_tools
import json
seen = hashlib.sha256()
plain, cents = BfclInterface.of({}), BfclInterface.of({"units": {"money": "cents"}})
samples = {"string": "x", "number": 2, "integer": 2, "array": [], "boolean": True, "object": {"title": "x"}}
for number, task in list(load_tasks().items())[::7]:
    episode = BfclEpisode(plain, task)
    for offer in plain.offers_of(task):
        arguments = {name: samples[one.schema["type"]] for name, one in offer.arguments.items()}
        seen.update(episode.act(json.dumps({"tool": offer.name, "arguments": arguments})).encode())
        seen.update(episode.write_state().encode())
    episode = BfclEpisode(plain, task)
    for call in (call for turn in task.reference for call in turn):
        for name in call.arguments:
            wrong = call._replace(arguments={**call.arguments, name: "x"})
            seen.update(episode.act(plain.write(wrong)).encode())
        seen.update(episode.act(plain.write(call)).encode())
seen.update(repr(BfclTools.draw_tasks(0, 8, 3, interfaces=(plain, cents))).encode())
print(seen.hexdigest())
"""
"""Engines put sets into texts of errors; such calls are refused by the schema."""


class TestBfclContract(TaskContract):
    env_id, page, copied, program = ENV_ID, "docs/bfcl.md", ("bfcl/names", 20), PROGRAM
    foreseen, lost = ("bfcl/implicit",), "none is lost"

    def test_without_a_schedule_it_is_the_packages(self):
        """Published calls, as published, leave the package's objects as they leave them without this environment."""
        env = gym.make(ENV_ID, schedule=None)
        env.reset(seed=0)
        for number in list_tasks():
            plain = [json.dumps({"tool": tool, "arguments": arguments}) for tool, arguments in published(number)]
            env.reset(options={"goal_index": number})
            rewards = [env.step(text)[1] for text in plain]
            assert rewards == [0.0] * (len(plain) - 1) + [1.0]
            found = env.unwrapped.episode.engines.instances
            assert state_checker(found, play_package(number)) == {"valid": True}


@pytest.mark.integration
@pytest.mark.parametrize("name", DATED)
def test_carried_calls_reach_the_undrifted_state_and_old_calls_do_not(name):
    """Every task, in every phase; tasks for which a drift changes nothing are left out and counted as such."""
    env = gym.make(ENV_ID, schedule=name)
    env.reset(seed=0)
    affected = set()
    for number in list_tasks():
        goal, old = play_package(number), None
        for tick in starts(name):
            env.reset(options={"goal_index": number, "drift_tick": tick})
            texts = list(env.unwrapped.reference(number))
            reward, found = play(env, number, texts, tick)
            assert reward == 1.0
            assert state_checker(found, goal) == {"valid": True}
            if old is not None and texts != old:
                reward, _ = play(env, number, old, tick)
                if reward < 1.0:
                    affected.add(number)
            old = texts
    assert len(affected) >= FEW.get(name, LEAST_TASKS)


def test_the_pool_of_a_schedule_is_affected_by_each_drift():
    for name in DRIFTED:
        env = gym.make(ENV_ID, schedule=name)
        env.reset(seed=3)
        base, oracle = env.unwrapped, env.get_wrapper_attr("oracle")
        assert len(set(base.task_pool)) == 8
        assert not set(base.task_pool) & set(base.other_tasks(4))
        for before, after in pairwise(starts(name)):
            assert oracle.effect(before, after).loss >= 0.05
            assert oracle.value(after) == 1.0


def test_controls_change_no_published_call():
    for name in set(shipped(ENV_ID)) - set(DRIFTED):
        env = gym.make(ENV_ID, schedule=name)
        env.reset(seed=3)
        assert all(env.get_wrapper_attr("oracle").effect(0, tick).loss == 0.0 for tick in PHASES)


amounts = st.decimals(0, 10**6, places=4).map(float) | st.integers(0, 10**9)


@given(st.sampled_from([path for paths in QUANTITIES.values() for path in paths]), amounts, st.data())
def test_amounts_go_round_in_every_unit(path, amount, data):
    tool, _, name = path.partition(".")
    quantity = next(one for one, paths in QUANTITIES.items() if path in paths)
    unit = data.draw(st.sampled_from([*UNITS[quantity]]))
    interface, spec = BfclInterface.of({"units": {quantity: unit}}), load_tools()[tool]
    samples = {"string": "x", "number": 1, "integer": 1, "array": [], "boolean": True}
    arguments = {one.name: samples[one.schema["type"]] for one in spec.arguments.values()} | {name: amount}
    task = load_tasks()[task_with(spec.engine)]._replace(excluded=frozenset())
    text = interface.write(PackageCall(tool, arguments))
    assert interface.parse(text, task).arguments == arguments
    assert json.loads(text)["arguments"][name] == pytest.approx(amount * UNITS[quantity][unit], abs=1e-6)


def test_knobs_change_names_requirements_and_defaults():
    number = task_with("TwitterAPI")
    knobs = {
        "names": {"post_tweet": "publish", "post_tweet.content": "text"},
        "required": {"post_tweet": "confirm"},
        "defaults": {"post_tweet.mentions": ["@all"]},
    }
    interface, task = BfclInterface.of(knobs), load_tasks()[number]
    text = interface.write(PackageCall("post_tweet", {"content": "hello"}))
    assert json.loads(text) == {"tool": "publish", "arguments": {"text": "hello", "mentions": [], "confirm": True}}
    assert interface.parse(text, task).arguments == {"content": "hello", "tags": [], "mentions": []}
    short = '{"tool": "publish", "arguments": {"text": "hello", "confirm": true}}'
    assert interface.parse(short, task).arguments["mentions"] == ["@all"]
    (schema,) = (one["inputSchema"] for one in interface.describe(task) if one["name"] == "publish")
    assert schema["required"] == ["text", "confirm"]
    assert "publish(text: string, tags?: array, mentions?: array, confirm: boolean)" in interface.summarize(task)


def test_implicit_knobs_leave_tools_and_words_as_they_are():
    hidden = {"units": {"money": "cents"}, "defaults": {"create_ticket.priority": 3}}
    for number in list_tasks()[::10]:
        old, new = make_episode(number), make_episode(number, **hidden)
        assert (old.task_text, old.interface.describe(old.task)) == (new.task_text, new.interface.describe(new.task))


def test_forms_of_errors():
    number = task_with("GorillaFileSystem")
    for form, expected in (("numbers", 409), ("terse", "failed")):
        episode = make_episode(number, errors=form)
        assert json.loads(episode.act('{"tool": "cat", "arguments": {"file_name": "none"}}')) == {"error": expected}
        assert json.loads(episode.act('{"tool": "nothing"}')) in ({"error": 404}, {"error": "failed"})
    plain = json.loads(make_episode(number).act('{"tool": "cat", "arguments": {"file_name": "none"}}'))
    assert plain == {"error": "cat: 'none': No such file or directory"}


DEEP = '{"tool": "cd", "arguments": {"folder": ' + "[" * 900 + "]" * 900 + "}}"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "invalid_call"),
        ("cd", "invalid_call"),
        ("x" * 1_000_000, "invalid_call"),
        ('{"tool": "cd", "arguments": {"folder": "' + "x" * 1_000_000 + '"}}', "invalid_call"),
        ('{"tool": "cd", "arguments": {"folder": "' + "\U0001f600" * 200 + '"}}', "invalid_call"),
        ("[" * 1_000, "invalid_call"),
        ("[]", "invalid_call"),
        ('{"tool": ["cd"]}', "invalid_call"),
        ('{"tool": "cd", "arguments": []}', "invalid_call"),
        ('{"tool": "cd", "more": 1}', "invalid_call"),
        ('{"tool": "cd", "arguments": {"folder": ' + "9" * 1_900 + "}}", "invalid_value"),
        (DEEP, "invalid_value"),
        ('{"tool": "_load_scenario", "arguments": {"scenario": {}}}', "unknown_tool"),
        ('{"tool": "__init__"}', "unknown_tool"),
        ('{"tool": "ls", "arguments": {"b": true}}', "unexpected_argument"),
        ('{"tool": "ls", "arguments": {"a": 1}}', "invalid_value"),
        ('{"tool": "cd"}', "missing_argument"),
        ('{"tool": "tail", "arguments": {"file_name": "a", "lines": 1e400}}', "invalid_value"),
        ('{"tool": "tail", "arguments": {"file_name": "a", "lines": NaN}}', "invalid_value"),
        ('{"tool": "tail", "arguments": {"file_name": "a", "lines": 9000000000000}}', "invalid_value"),
    ],
)
def test_a_bad_call_changes_nothing_and_is_answered(text, code):
    env = gym.make(ENV_ID, schedule=None, text=True)
    env.reset(seed=0, options={"goal_index": task_with("GorillaFileSystem")})
    before = env.unwrapped.save_state()
    state, reward, terminated, truncated, _ = env.step(text)
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert json.loads(state)["answer"]["error"] == code
    assert env.observation_space.contains(state)
    after = env.unwrapped.save_state()
    assert {**after["episode"], "answer": {}} == {**before["episode"], "answer": {}}


def test_a_calculator_stays_bounded_and_leaves_the_process_alone():
    number, precision = task_with("MathAPI"), decimal.getcontext().prec
    episode = make_episode(number)

    def ask(tool, **arguments):
        return json.loads(episode.act(json.dumps({"tool": tool, "arguments": arguments})))

    assert ask("square_root", number=2, precision=5) == {"result": "1.4142"}
    assert decimal.getcontext().prec == precision
    for tool, arguments in (
        ("power", {"base": 10, "exponent": 10**9}),
        ("round_number", {"number": 1, "decimal_places": -(10**9)}),
        ("square_root", {"number": 2, "precision": 10**9}),
    ):
        assert ask(tool, **arguments)["error"] == "invalid_value"
    assert ask("logarithm", value=-1, base=10, precision=5)  # whatever the engine says, as text
    assert "Error during execution" in ask("power", base=1e12, exponent=99.5)["error"]


def test_a_folder_does_not_come_to_contain_itself():
    task = load_tasks()[task_with("GorillaFileSystem")]
    episode = BfclEpisode(BfclInterface.of({}), task._replace(excluded=frozenset()))
    episode.act('{"tool": "mkdir", "arguments": {"dir_name": "own"}}')
    before = episode.engines.read_state()
    answer = json.loads(episode.act('{"tool": "cp", "arguments": {"source": "own", "destination": "own"}}'))
    assert answer == {"error": "conflict", "message": "the records would become too large"}
    assert episode.engines.read_state() == before
    assert "own" in json.loads(episode.act('{"tool": "ls", "arguments": {}}'))["current_directory_content"]


def test_an_episode_leaves_nothing_to_the_next():
    """The engine keeps lists that it takes as defaults; a mention must not stand in every later post."""
    number = next(one for one in list_tasks() if any(call.tool == "mention" for call in published(one)))
    posts = []
    for _ in range(2):
        episode = make_episode(number)
        interface = episode.interface
        for call in published(number)[:-1]:
            episode.act(interface.write(call))
        posts.append(episode.engines.read_state())
    assert posts[0] == posts[1] != replay_reference(number)[0]
    fresh = make_engine("TwitterAPI", {"authenticated": True, "username": "a"})
    assert fresh.post_tweet("hello")["mentions"] == []


def test_a_wrong_state_after_a_turn_scores_nothing_even_if_it_is_mended():
    number = next(
        one for one in list_tasks() if len(load_tasks()[one].reference) > 2 and all(load_tasks()[one].reference)
    )
    texts = [BfclInterface.of({}).write(call) for call in published(number)]
    late = [one for one in texts if "finish" not in one] + [one for one in texts if "finish" in one]
    rewards = []
    for order in (texts, late):
        episode = make_episode(number)
        for text in order:
            episode.act(text)
        assert episode.is_over
        rewards.append(episode.score)
    assert rewards == [1.0, 0.0]


def test_no_task_scores_if_it_is_left_at_once():
    env = gym.make("DriftBfcl-v0")
    numbers = [number for number in load_tasks() if env.unwrapped.is_played(number)]
    assert len(numbers) == 191
    for number in numbers:
        _, info = env.reset(options={"goal_index": number})
        done = False
        while not done:
            _, _, done, _, info = env.step('{"tool": "finish", "arguments": {}}')
        assert info["score"] == 0


def test_what_a_user_gets_wrong_is_named():
    env = gym.make(ENV_ID, schedule=None)
    for index in (999, -1, "x"):
        with pytest.raises(ArgumentError, match="`goal_index` should be"):
            env.reset(seed=0, options={"goal_index": index})
    with pytest.raises(ArgumentError, match="`pool` should be at most"):
        gym.make(ENV_ID, schedule=None, pool=900).reset(seed=0)
    rows = (
        ("names", {"fly": "walk"}, "`names` should name tools or arguments of the package. Received 'fly'"),
        ("required", {"cd.folder": "confirm"}, "`required` should name tools of the package. Received 'cd.folder'"),
        ("names", {"cd": "ls"}, "two tools should not have one name"),
        ("defaults", {"create_ticket.priority": True}, "a value of its schema"),
        ("defaults", {"cd.folder": "a"}, "with a default that can be given"),
    )
    check_refusals(ENV_ID, rows)


@pytest.mark.parametrize(
    "text", ["cd", "cd(", "f()", "cd(folder=open('x'))", "a.cd('x')", "cd(*x)", "cd('a', 'b')", "(" * 500]
)
def test_published_calls_are_read_as_literals_alone(text):
    with pytest.raises(ArgumentError, match="a published call should be a tool with literals"):
        parse_published_call(text, load_tools())
