"""tau2-bench's desks with knobs: published actions before and after drifts, rules of the layer, bad input, copies."""

import copy
import json
import re
from itertools import pairwise

import gymnasium as gym
import pytest

pytest.importorskip("tau2", reason="needs the extra `tau2`")

from hypothesis import given, settings
from hypothesis import strategies as st
from tau2.data_model.message import AssistantMessage, ToolCall, ToolMessage
from tau2.evaluator.evaluator_communicate import CommunicateEvaluator
from tau2.evaluator.evaluator_env import EnvironmentEvaluator

from drift_envs.envs.tau2 import package
from drift_envs.envs.tau2.env import Tau2Episode, Tau2Tools, list_choices
from drift_envs.envs.tau2.interface import Tau2Interface
from drift_envs.envs.tau2.package import (
    AIRLINE,
    Engine,
    load_database,
    load_tasks,
    load_tools,
    play_published,
    reads_before,
)
from drift_envs.errors import ArgumentError, MissingDependencyError
from drift_envs.schedule import load_schedule
from drift_envs.tasks.package_tools import PackageCall
from tests.drift_envs.envs.registered_contract import shipped
from tests.extras.task_contract import TaskContract, check_refusals, starts

ENV_ID = "DriftTau2-v0"
SHIPPED = shipped(ENV_ID)
DRIFTED = [name for name in SHIPPED if not load_schedule(name).control]
IMPLICIT = [name for name in SHIPPED if load_schedule(name).visibility == "implicit" and "transient" not in name]
DOMAINS = ("retail", "airline")
FEW = {"tau2/implicit": 15, "tau2/implicit:airline": 9}
"""Few published actions cancel for the usual reason, pay, or book."""


def play(interface, number, texts):
    """The score of these calls."""
    episode = Tau2Episode(interface, load_tasks()[number])
    for text in texts:
        episode.act(text)
    return episode.score


def make_episode(number, **knobs):
    task = load_tasks()[number]
    return Tau2Episode(Tau2Interface.of({**knobs, "domain": task.domain}), task)


def ask(episode, tool, **arguments):
    return json.loads(episode.act(json.dumps({"tool": tool, "arguments": arguments})))


def task_with(tool):
    return next(number for number in load_tasks() if any(call.tool == tool for call in play_published(number).calls))


class TestTau2Contract(TaskContract):
    env_id, page, copied = ENV_ID, "docs/tau2.md", ("tau2/explicit:airline", 20)
    walked = ("tau2/implicit", "tau2/implicit:airline", "tau2/explicit:family")
    foreseen, lost = ("tau2/implicit", "tau2/policy:airline", "tau2/transient"), '"not_found"'

    def test_without_a_schedule_it_is_the_packages(self):
        """Every task by its published actions as published, and every answer that of the package."""
        env = gym.make(ENV_ID, schedule=None)
        env.reset(seed=0)
        for number, task in load_tasks().items():
            env.reset(options={"goal_index": number})
            engine = Engine(task.domain)
            for call in task.published:
                answer = env.step(json.dumps({"tool": call.tool, "arguments": call.arguments}))[0]
                assert json.loads(answer) == engine.execute(call)
            end = {"tool": "finish", "arguments": {"message": " and ".join(task.told)}}
            assert env.step(json.dumps(end))[1:3] == (1.0, True)


@pytest.mark.parametrize("domain", DOMAINS)
def test_the_score_is_that_of_the_packages_evaluators(domain):
    """With and without the last write, and with and without what has to be told."""
    own = package.import_part(f"domains.{domain}.environment")
    tasks = {task.id: task for task in own.get_tasks()}
    shared, first = load_database(domain), AIRLINE if domain == "airline" else 0

    def construct(solo_mode=False):
        return own.get_environment(db=shared.model_copy(deep=True))

    told = [
        one
        for one in Tau2Tools.list_tasks(domain)
        if load_tasks()[one].told and any(map(is_write, play_published(one).calls))
    ]
    for number in told[:2]:
        task, calls = tasks[str(number - first)], list(play_published(number).calls)
        without = [call for call in calls if call != next(filter(is_write, reversed(calls)))]
        for made, message in ((calls, "; ".join(load_tasks()[number].told)), (without, ""), (calls, "nothing")):
            environment, said = construct(), []
            for place, call in enumerate(made):
                request = ToolCall(id=str(place), name=call.tool, arguments=copy.deepcopy(call.arguments))
                said.append(AssistantMessage(role="assistant", tool_calls=[request]))
                answer = environment.get_response(request)
                said.append(ToolMessage(id=str(place), role="tool", content=answer.content, requestor="assistant"))
            said.append(AssistantMessage(role="assistant", content=message))
            wanted = EnvironmentEvaluator.calculate_reward(construct, task, said).reward
            wanted *= CommunicateEvaluator.calculate_reward(task, said).reward
            episode = make_episode(number)
            for call in made:
                episode.act(episode.interface.write(call))
            episode.act(episode.interface.write(PackageCall("finish", {"message": message})))
            assert episode.score == wanted


def is_write(call):
    return any(call.tool in load_tools(domain) and load_tools(domain)[call.tool].is_write for domain in DOMAINS)


@pytest.mark.integration
@pytest.mark.parametrize("name", SHIPPED)
def test_carried_actions_reach_the_goal_and_old_ones_do_not(name):
    """Every task of the domain, in every phase; lost calls are played by the next test."""
    env = gym.make(ENV_ID, schedule=name)
    affected, olds = set(), {}
    for tick in starts(name):
        env.reset(seed=0, options={"drift_tick": tick})
        interface = Tau2Interface.of(env.unwrapped.read_knobs())
        for number in Tau2Tools.list_tasks(interface.place):
            texts = env.unwrapped.reference(number)
            assert play(interface, number, texts) == 1.0
            if play(interface, number, olds.get(number, texts)) < 1.0:
                affected.add(number)
            olds[number] = texts
    if load_schedule(name).control or "transient" in name:
        assert not affected
    else:
        assert len(affected) >= FEW.get(name, 20)


@pytest.mark.parametrize("name", ["tau2/transient", "tau2/transient:airline"])
def test_actions_that_are_lost_are_repeated(name):
    env = gym.make(ENV_ID, schedule=name)
    env.reset(seed=0)
    for number in Tau2Tools.list_tasks(env.unwrapped.domain)[::8]:
        env.reset(options={"goal_index": number, "drift_tick": 20, "drift_clock": "hold"})
        for text in env.unwrapped.reference(number):
            answer = '"not_found"'
            while '"not_found"' in answer:
                answer, reward, *_ = env.step(text)
        assert reward == 1.0


def test_drifts_of_all_schedules_affect_most_tasks():
    """At least 100 of the tasks lose by an explicit drift; most of the others write nothing."""
    affected = set()
    for name in ("tau2/explicit", "tau2/explicit:airline", "tau2/policy"):
        env = gym.make(ENV_ID, schedule=name)
        for tick in starts(name)[1:]:
            env.reset(seed=0, options={"drift_tick": tick})
            new = Tau2Interface.of(env.unwrapped.read_knobs())
            for number in Tau2Tools.list_tasks(env.unwrapped.domain):
                texts = Tau2Tools.write_reference(number, Tau2Interface.of({"domain": new.place}))
                affected |= {number} if play(new, number, texts) < 1.0 else set()
    assert len(affected) >= 100


@pytest.mark.parametrize("name", SHIPPED)
def test_the_pool_of_a_schedule_is_affected_by_each_drift(name):
    env = gym.make(ENV_ID, schedule=name)
    env.reset(seed=3)
    base, oracle, ticks = env.unwrapped, env.get_wrapper_attr("oracle"), starts(name)
    assert len(set(base.task_pool)) == 8
    assert not set(base.task_pool) & set(base.other_tasks(4))
    for before, after in pairwise(ticks):
        effect = oracle.effect(before, after)
        assert effect.loss == 0.0 if load_schedule(name).control else effect.loss >= 0.05
        assert oracle.value(after) >= 0.99


@pytest.mark.parametrize("name", IMPLICIT)
def test_an_implicit_drift_is_seen_in_outcomes_alone(name):
    env = gym.make(ENV_ID, schedule=name, text=True)
    runs = []
    for tick in starts(name):
        run = [env.reset(seed=0, options={"drift_tick": tick})]
        reads = [one for one in run[0][1]["actions"] if '"get_' in one or '"find_' in one]
        runs.append([*run, *(env.step(one)[::4] for one in reads[:12])])
    assert all(run == runs[0] for run in runs)


def test_knobs_change_names_types_requirements_and_defaults():
    number, dated = task_with("cancel_pending_order"), task_with("update_reservation_flights")
    call = next(one for one in play_published(number).calls if one.tool == "cancel_pending_order")
    knobs = {
        "names": {"cancel_pending_order": "void", "cancel_pending_order.order_id": "number"},
        "required": {"cancel_pending_order": "confirm"},
        "types": {"id": "number", "date": "month_first"},
        "defaults": {"cancel_pending_order.reason": call.arguments["reason"]},
    }
    interface = Tau2Interface.of(knobs)
    text = interface.write(call)
    order = int(call.arguments["order_id"].removeprefix("#W"))
    assert json.loads(text) == {"tool": "void", "arguments": {"number": order, "confirm": True}}
    assert interface.parse(text) == call
    (schema,) = (one["inputSchema"] for one in interface.describe() if one["name"] == "void")
    assert schema["required"] == ["number", "confirm"]
    assert "void(number: integer, reason?: string, confirm: boolean) - Cancel a pending order" in interface.summarize()
    flights = next(one for one in play_published(dated).calls if one.tool == "update_reservation_flights")
    airline = Tau2Interface.of({**knobs, "domain": "airline"})
    assert re.search(r'"date": "05/\d\d/2024"', airline.write(flights))
    assert airline.parse(airline.write(flights)) == flights


@given(st.integers(0, 10**7), st.sampled_from(["dollars", "cents"]))
@settings(max_examples=50)
def test_amounts_go_round_in_every_unit(amount, unit):
    interface = Tau2Interface.of({"domain": "airline", "units": {"money": unit}})
    call = PackageCall("send_certificate", {"user_id": "sara_doe_496", "amount": amount})
    text = interface.write(call)
    assert interface.parse(text) == call
    assert json.loads(text)["arguments"]["amount"] == amount * (100 if unit == "cents" else 1)


def test_a_rule_of_the_policy_refuses_what_was_not_read_first_and_the_page_can_say_so():
    number = task_with("cancel_reservation")
    call = next(one for one in play_published(number).calls if one.tool == "cancel_reservation")
    episode = make_episode(number, policy={"look_up": True, "identify": True}, page={"look_up": True})
    assert "- look_up: read an order or reservation" in episode.task_text
    assert "- identify" not in episode.task_text
    text = episode.interface.write(call)
    for rule, read in reads_before("airline", call).items():
        refused = json.loads(episode.act(text))
        assert (refused["error"], refused["message"].partition(":")[0]) == ("policy", rule)
        shown = json.loads(episode.act(refused["message"].partition("first call ")[2]))
        assert shown == Engine("airline").execute(read)
    assert json.loads(episode.act(text))["status"] == "cancelled"
    plain = make_episode(number, errors="numbers", policy={"look_up": True})
    assert json.loads(plain.act(text)) == {"error": 403}


def test_the_first_write_is_silent_and_a_read_shows_it():
    number = task_with("cancel_reservation")
    call = next(one for one in play_published(number).calls if one.tool == "cancel_reservation")
    episode = make_episode(number, silent={"cancel_reservation": 1})
    read = reads_before("airline", call)["look_up"]
    for expected in (None, "cancelled"):
        assert json.loads(episode.act(episode.interface.write(call)))["status"] == "cancelled"
        assert json.loads(episode.act(episode.interface.write(read)))["status"] == expected


def test_a_lost_call_is_answered_as_if_no_record_were_there_and_changes_nothing():
    env = gym.make(ENV_ID, schedule=None, text=True)
    env.unwrapped.transient = 1.0
    before, _ = env.reset(seed=0)
    after, reward, terminated, *_ = env.step('{"tool": "finish", "arguments": {}}')
    assert (reward, terminated) == (0.0, False)
    answer = {"error": "not_found", "message": "there is no such record"}
    assert json.loads(after) == {**json.loads(before), "answer": answer}


def test_forms_of_errors():
    call = {"tool": "get_order_details", "arguments": {"order_id": "#W0"}}
    for form, expected in (("numbers", 409), ("terse", "failed"), ("words", "Order not found")):
        assert json.loads(make_episode(0, errors=form).act(json.dumps(call))) == {"error": expected}
        unknown = json.loads(make_episode(0, errors=form).act('{"tool": "nothing"}'))
        assert unknown["error"] == {"numbers": 404, "terse": "failed", "words": "unknown_tool"}[form]


DEEP = '{"tool": "get_order_details", "arguments": {"order_id": ' + "[" * 900 + "]" * 900 + "}}"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "invalid_call"),
        ("x" * 1_000_000, "invalid_call"),
        ("[" * 1_000, "invalid_call"),
        ('{"tool": ["get_order_details"]}', "invalid_call"),
        ('{"tool": "get_order_details", "arguments": []}', "invalid_call"),
        ('{"tool": "finish", "arguments": {"message": "' + "\U0001f600" * 200 + '"}}', "invalid_call"),
        (DEEP, "invalid_value"),
        ('{"tool": "use_tool"}', "unknown_tool"),
        ('{"tool": "update_db", "arguments": {}}', "unknown_tool"),
        ('{"tool": "cancel_reservation", "arguments": {"reservation_id": "EHGLP3"}}', "unknown_tool"),
        ('{"tool": "get_order_details", "arguments": {"id": 1}}', "unexpected_argument"),
        ('{"tool": "get_order_details", "arguments": {"order_id": 1}}', "invalid_value"),
        ('{"tool": "get_order_details"}', "missing_argument"),
        ('{"tool": "calculate", "arguments": {"expression": "9**9**9**9"}}', "invalid_value"),
        ('{"tool": "calculate", "arguments": {"expression": "2 (3)"}}', "invalid_value"),
    ],
)
def test_a_bad_call_changes_nothing_and_is_answered(text, code):
    env = gym.make(ENV_ID, schedule=None, text=True)
    env.reset(seed=0, options={"goal_index": 0})
    before = env.unwrapped.save_state()["episode"]
    state, reward, terminated, truncated, _ = env.step(text)
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert json.loads(state)["answer"]["error"] == code
    assert env.observation_space.contains(state)
    assert {**env.unwrapped.save_state()["episode"], "answer": {}} == {**before, "answer": {}}


def test_a_bad_payment_is_answered_by_the_package():
    episode = make_episode(AIRLINE, units={"money": "cents"})
    assert ask(episode, "send_certificate", user_id="emma_kim_9957", amount=150)["error"] == "invalid_value"
    assert ask(episode, "send_certificate", user_id="nobody", amount=100) == {"error": "User nobody not found"}


def test_an_episode_leaves_nothing_to_the_next():
    number = task_with("book_reservation")
    before = load_database("airline").get_hash()
    states = []
    for _ in range(2):
        episode = make_episode(number)
        for text in Tau2Tools.write_reference(number, episode.interface):
            episode.act(text)
        states.append(episode.write_state())
    assert states[0] == states[1]
    assert load_database("airline").get_hash() == before


def test_records_and_answers_fit_the_space():
    """All reads of many records in one episode: those that were read first are left out."""
    env = gym.make(ENV_ID, schedule=None, text=True, max_episode_steps=1000)
    env.reset(seed=0, options={"goal_index": 0})
    for product in list(load_database("retail").products)[:45]:
        state, *_ = env.step(json.dumps({"tool": "get_product_details", "arguments": {"product_id": product}}))
        assert env.observation_space.contains(state)
    assert 10 < len(json.loads(state)["records"]) < 46


def test_choices_hold_the_reference_and_calls_of_other_users():
    for number in (*range(0, 114, 9), *range(AIRLINE, AIRLINE + 50, 9)):
        for knobs in ({}, {"units": {"money": "cents"}, "policy": {"identify": True}}):
            interface = Tau2Interface.of({**knobs, "domain": load_tasks()[number].domain})
            listed = list_choices(number, interface)
            assert set(Tau2Tools.write_reference(number, interface)) <= set(listed)
            assert list(listed) == sorted(listed)
        assert 3 < len(listed) < 80


def test_what_a_user_gets_wrong_is_named():
    env = gym.make(ENV_ID, schedule=None)
    for index in (114, 999, 1050, -1, "x"):
        with pytest.raises(ArgumentError, match="`goal_index` should be"):
            env.reset(seed=0, options={"goal_index": index})
    with pytest.raises(ArgumentError, match=re.escape("0 to 113 (retail) or 1000 to 1049 (airline). Received 114")):
        env.unwrapped.reference(114)
    with pytest.raises(ArgumentError, match="`pool` should be at most"):
        gym.make(ENV_ID, schedule=None, pool=900).reset(seed=0)
    rows = (
        ("names", {"fly": "walk"}, "`names` should name tools or arguments of the package. Received 'fly'"),
        ("names", {"calculate": "finish"}, "two tools should not have one name"),
        ("required", {"get_user": "confirm"}, "`required` should name tools of the package"),
        ("silent", {"get_user_details": 1}, "`silent` should name tools of the package that write"),
        ("silent", {"cancel_reservation": 9}, "a whole number in the interval [0, 3]. Received 9"),
        ("defaults", {"book_reservation.insurance": "maybe"}, "a value of its schema"),
        ("defaults", {"book_reservation": "yes"}, "`defaults` should name arguments"),
        ("types", {"date": "last_first"}, "one of iso, day_first, month_first. Received 'last_first'"),
        ("units", {"money": "euros"}, "one of dollars, cents. Received 'euros'"),
        ("policy", {"smile": True}, "`policy` should name one of identify, look_up. Received 'smile'"),
        ("page", {"look_up": 1}, "one of True, False. Received 1"),
        ("domain", "telecom", "`domain`"),
    )
    check_refusals(ENV_ID, rows)


@pytest.mark.parametrize("found", ["27.0", ""])
def test_another_version_or_none_is_refused_with_one_line(found, monkeypatch):
    def version(name):
        if not found:
            raise package.PackageNotFoundError(name)
        return found

    monkeypatch.setattr(package, "version", version)
    package.find_package.cache_clear()
    try:
        with pytest.raises(MissingDependencyError, match=re.escape('pip install ".[tau2]"')) as caught:
            gym.make(ENV_ID)
        assert "\n" not in str(caught.value)
        assert ("Received version 27.0" in str(caught.value)) == bool(found)
    finally:
        package.find_package.cache_clear()


def test_the_planner_plays_every_desk_and_adapts():
    """Without memory; what it cannot do at sight is to say the sums that some users want."""
    import numpy as np
    from drift_agents.envs.tau2.planner import Tau2Planner
    from drift_agents.prompt.view import PromptView

    for name, least in (("tau2/null", 0.9), ("tau2/explicit", 0.9), ("tau2/explicit:airline", 0.85)):
        env = gym.make(ENV_ID, schedule=name, text=True)
        env.reset(seed=0)
        scores = []
        for number in Tau2Tools.list_tasks(env.unwrapped.domain)[::5]:
            tick = max(starts(name))
            state, info = env.reset(options={"goal_index": number, "drift_tick": tick, "drift_clock": "hold"})
            done = truncated = False
            while not (done or truncated):
                view = PromptView(info["task"], state, tuple(info["actions"]))
                reply = Tau2Planner().decide(view, np.random.default_rng(0)).text
                assert reply in info["actions"]
                state, score, done, truncated, info = env.step(reply)
            scores.append(score)
        assert sum(scores) / len(scores) >= least, name


@pytest.mark.parametrize(("domain", "score", "tasks"), [("retail", 7, 114), ("airline", 19, 50)])
def test_leaving_at_once_scores_where_the_published_actions_change_nothing(domain, score, tasks):
    """In text, as an agent sees it; the counts are those of the package itself."""
    from drift_agents.experiment.players import make_agent

    env = gym.make(ENV_ID, schedule={"version": 1, "base": {"domain": domain}}, text=True)
    agent = make_agent(env, policy="leaving", memory="none")
    numbers = [number for number, task in load_tasks().items() if task.domain == domain]
    episodes = [agent.run_episode(env, options={"goal_index": number}) for number in numbers]
    assert (sum(episode.score for episode in episodes), len(episodes)) == (score, tasks)


def test_the_tools_over_mcp():
    pytest.importorskip("mcp", reason="needs the extra `mcp`")
    from drift_envs.integrations.mcp_tools import DeskLifetime

    life = DeskLifetime("DriftTau2-v0", "tau2/policy", 0)
    tools = {tool.name: tool for tool in life.describe_tools()}
    assert tools["get_user_details"].annotations.readOnlyHint
    assert tools["cancel_pending_order"].annotations.destructiveHint
    assert "# Retail agent policy" in life.page
    assert life.begin_request()["request"] == life.request
    assert life.use_tool("get_order_details", {"order_id": "#W0"}) == {"error": "Order not found"}
    env = life._env
    for text in env.unwrapped.reference(env.unwrapped.goal_index):
        call = json.loads(text)
        answer = life.use_tool(call["tool"], call["arguments"])
    assert (answer["request_ended"], answer["score"]) == (True, 1.0)


@pytest.mark.integration
def test_teams_play_it(tmp_path):
    """EDV's team, the judge and the router, with the memory that each has."""
    from drift_agents.experiment.loader import parse_experiment
    from drift_agents.experiment.runner import run_experiment

    pooled = {"members": "planners"}
    agents = [
        {"memory": "vanilla", "policy": "planner", "team": [{"judge": pooled}, {"router": pooled}]},
        {"memory": "consensus", "policy": "planner", "team": {"edv": {**pooled, "online": True}}},
    ]
    data = {"name": "teams", "schedules": "tau2/explicit:airline", "agents": agents, "seeds": 1, "episodes": 6}
    report = run_experiment(parse_experiment(data), tmp_path / "run")
    lines = [json.loads(line) for line in (report.parent / "episodes.jsonl").read_text().splitlines()]
    assert {line["team"] for line in lines} == {"judge", "router", "edv"}
    assert sum(line["success"] for line in lines) >= 12


def test_as_many_tasks_score_1_if_they_are_left_at_once_as_in_the_package():
    env = gym.make(ENV_ID, schedule=None)
    env.reset(seed=0)
    for domain, count in (("retail", 7), ("airline", 19)):
        env.unwrapped.domain = domain
        assert env.unwrapped.share_left_at_once() == count / len(Tau2Tools.list_tasks(domain))
