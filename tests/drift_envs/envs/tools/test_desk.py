"""What calls do at the service desk, and what is answered."""

import json
from datetime import date
from itertools import permutations

import gymnasium as gym
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drift_envs.envs.tools.database import CATALOGUE, MERGERS, SPLITS, DeskState, RecordKind, draw_database
from drift_envs.envs.tools.desk import make_desk
from drift_envs.envs.tools.env import ServiceDesk
from drift_envs.envs.tools.episode import START, DeskEpisode, find_request, key_of, solve_request
from drift_envs.envs.tools.interface import TOOLS_KNOBS
from drift_envs.envs.tools.requests import KINDS, find_goal, list_requests, score
from drift_envs.errors import KnobError
from drift_envs.knobs import thaw

SHOP = 7
SEEN = frozenset(draw_database(SHOP).records)


def desk(**knobs):
    return make_desk(SHOP, {name: TOOLS_KNOBS[name].check(value) for name, value in knobs.items()})


def find(kind, **knobs):
    """The first request of a kind that is granted, and a cheapest plan for it."""
    one = desk(**knobs)
    request = next(r for r in list_requests(SHOP) if r.kind == kind and not declined(find_goal(r, one.rules)))
    return request, plan(one, request)


def declined(goal):
    return goal.end != "finish" or any(field == "declined" for (_, field), _ in goal.changes)


def plan(one, request):
    plans, state, calls = solve_request(one, request), START, []
    assert plans.score == 1.0
    while not state.ended:
        calls.append(plans.best[key_of(one, state)][0])
        state, _ = one.call(state, calls[-1])
    return calls


def play(one, request, calls):
    episode = DeskEpisode(one, request)
    return episode, [json.loads(episode.act(call)) for call in calls]


def call(tool, **arguments):
    return json.dumps({"tool": tool, "arguments": arguments})


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_request_is_met_by_three_to_nine_calls(kind):
    request, calls = find(kind)
    episode, answers = play(desk(), request, calls)
    assert 3 <= len(calls) <= 9
    assert episode.score == 1.0
    assert not any("error" in answer for answer in answers)


@pytest.mark.parametrize("kind", ["cancel_and_return", "return_two", "exchange"])
def test_the_order_of_writes_does_not_matter_and_a_missing_or_additional_one_does(kind):
    request, calls = find(kind)
    one = desk()
    writes = [c for c in calls if CATALOGUE[json.loads(c)["tool"]].effect == "write"]
    reads = [c for c in calls if CATALOGUE[json.loads(c)["tool"]].effect == "read"]
    assert len(writes) > 1
    for order in permutations(writes):
        assert play(one, request, [*reads, *order, calls[-1]])[0].score == 1.0
    for left_out in writes:
        assert play(one, request, [c for c in calls if c != left_out])[0].score == 0.0
    more = call("decline", order_id=f"O-{request.order}", rule="other_card")
    assert play(one, request, [*calls[:-1], more, calls[-1]])[0].score == 0.0


def test_harm_to_another_customer_takes_off():
    request, calls = find("address")
    other = next(r for r in list_requests(SHOP) if r.customer != request.customer)
    harm = [
        call("find_customer", email=other.stated["email"][0]),
        call("update_address", customer_id=f"C-{other.customer}", street="Elsewhere 1", city="Nowhere"),
    ]
    assert play(desk(), request, [*calls[:-1], *harm, calls[-1]])[0].score == 0.5


def test_handing_over_scores_where_the_policy_demands_it():
    request, calls = find("charged_twice")
    strict = desk(policy={"approval_limit": 10})
    assert play(strict, request, calls)[0].score == 0.0
    handed = plan(strict, request)
    assert json.loads(handed[-1])["tool"] == "hand_over"
    assert play(strict, request, handed)[0].score == 1.0
    assert play(desk(), request, handed)[0].score == 0.0


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "invalid_call"),
        ("refund", "invalid_call"),
        ("[" * 1900, "invalid_call"),
        ("[" * 100_000, "invalid_call"),
        ('{"tool": "finish", "arguments": {"x": "' + "x" * 1_000_000 + '"}}', "invalid_call"),
        ('{"tool": 5}', "invalid_call"),
        ('{"tool": "finish", "arguments": []}', "invalid_call"),
        ('{"tool": "finish", "more": 1}', "invalid_call"),
        (call("drop_table"), "unknown_tool"),
        (call("finish", now=True), "unexpected_argument"),
        (call("get_order"), "missing_argument"),
        (call("get_order", order_id=2000), "invalid_value"),
        (call("get_order", order_id="C-1000"), "invalid_value"),
        (call("get_order", order_id="O-2999"), "not_found"),
        (call("get_order", order_id="O-9999"), "not_found"),
        (call("get_order", order_id="O-2000' OR '1'='1"), "invalid_value"),
        (call("find_customer", email="x'; DROP TABLE customers; --"), "not_found"),
        (call("find_customer", email="\u00e9\u0000"), "invalid_value"),
        (call("refund", payment_id="P-4000", amount=-5), "invalid_value"),
        ('{"tool": "refund", "arguments": {"payment_id": "P-4000", "amount": NaN}}', "invalid_value"),
        ('{"tool": "refund", "arguments": {"payment_id": "P-4000", "amount": 1e400}}', "invalid_value"),
        (call("refund", payment_id="P-4000", amount=0), "conflict"),
        (call("refund", payment_id="P-4000", amount=100_000), "conflict"),
        (call("list_orders", customer_id="C-1000", page=99), "not_found"),
        (call("find_order", customer_id="C-1000", date="2026-6-1"), "invalid_value"),
        (call("create_shipment", order_id="O-2000", date="2026-01-01"), "conflict"),
    ],
)
def test_a_call_that_is_refused_changes_nothing(text, code):
    state = DeskState(seen=SEEN)
    after, answer = desk().call(state, text)
    assert after is state
    assert answer.content["error"] == code


def test_a_number_of_another_kind_is_the_id_of_no_record():
    number = desk(types={"id": "number"})
    for key in (4000, 9999, 0):
        answer = number.call(DeskState(seen=SEEN), call("get_order", order_id=key))[1]
        assert answer.content["error"] == "not_found"
    assert number.call(DeskState(seen=SEEN), call("get_order", order_id=2000))[1].content["order_id"] == 2000


def test_a_lost_call_reads_as_one_for_no_record():
    episode = DeskEpisode(desk(), list_requests(SHOP)[0])
    episode.act(call("find_customer", email="nobody@example.org"))
    true = episode.answer
    episode.lose()
    assert episode.answer == true == desk().call(START, call("get_order", order_id="O-9999"))[1].content


def test_errors_and_the_task_have_the_present_names():
    one = desk(names={"send_item.speed": "pace", "finish": "close_request"})
    _, answer = one.call(
        DeskState(seen=SEEN), call("send_item", order_id="O-2000", product_id="G-7000", pace="standard")
    )
    assert answer.content == {"error": "redundant", "message": "this is the default: leave `pace` out"}
    assert '{"tool": "close_request", "arguments": {}}' in DeskEpisode(one, list_requests(SHOP)[0]).task_text


def test_errors_say_what_a_value_should_be():
    for arguments, words in (
        ({"amount": -5}, "amount should be number from 0 to 1000000"),
        ({"amount": 5, "card_id": "5"}, "card_id should be K-0000"),
    ):
        content = desk().call(START, call("refund", payment_id="P-4000", **arguments))[1].content
        assert content == {"error": "invalid_value", "message": words}
    schema = next(one for one in desk().interface.description if one["name"] == "refund")["inputSchema"]
    assert schema["properties"]["amount"]["maximum"] == 1_000_000


def test_records_have_to_be_looked_up_first():
    after, answer = desk().call(START, call("cancel_order", order_id="O-2000"))
    assert (after, answer.content["error"]) == (START, "not_looked_up")


@given(
    st.text(max_size=60) | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(json.dumps)
)
def test_whatever_is_said_is_answered(text):
    after, answer = desk().call(START, text)
    assert after == START
    assert "error" in answer.content


NAMES = st.dictionaries(
    st.sampled_from([*CATALOGUE, "refund.amount", "get_order.order_id", "find_customer.email"]),
    st.text("abcdefgh", min_size=6, max_size=12),
    max_size=6,
)
FORMS = st.fixed_dictionaries(
    {},
    optional={
        "names": NAMES,
        "types": st.fixed_dictionaries(
            {}, optional={"id": st.sampled_from(["string", "number"]), "date": st.sampled_from(["iso", "month_first"])}
        ),
        "split": st.lists(st.sampled_from(sorted(SPLITS)), unique=True),
        "merged": st.lists(st.sampled_from(sorted(MERGERS)), unique=True),
        "required": st.dictionaries(st.sampled_from(["finish", "refund", "get_order"]), st.just("confirm")),
    },
)


@settings(max_examples=60, deadline=None)
@given(FORMS, st.sampled_from(KINDS))
def test_every_interface_reads_what_it_writes_and_meets_every_request(knobs, kind):
    checked = {name: TOOLS_KNOBS[name].check(value) for name, value in knobs.items()}
    if TOOLS_KNOBS.problems(checked):
        return
    request, _ = find(kind)
    one = make_desk(SHOP, checked)
    calls = plan(one, request)
    episode, answers = play(one, request, calls)
    assert episode.score == 1.0
    assert not any("error" in answer for answer in answers)
    listed = one.list_calls(episode.state.seen, request.stated)
    for text in {*calls, *listed}:
        parsed = one.interface.parse(text)
        assert parsed is not None
        assert one.interface.write(parsed.tool.name, parsed.arguments) == text == parsed.text
    if "refund" not in " ".join(calls):  # amounts after a fee that no page states are not listed
        assert set(calls) <= set(listed)


def test_descriptions_are_json_schemas_of_what_is_read():
    for tool in desk(types={"id": "number"}, required={"refund": "confirm"}).interface.description:
        schema = tool["inputSchema"]
        assert set(schema["required"]) <= set(schema["properties"])
        assert json.loads(json.dumps(tool)) == thaw(tool)


def test_what_a_user_does_to_the_tools_of_info_stays_in_the_episode():
    env = ServiceDesk(pool=2)
    _, info = env.reset(seed=0)
    before = json.dumps(info["tools"])
    info["tools"][0]["name"] = "mine"
    assert json.dumps(env.reset()[1]["tools"]) == before


def refused(one, state, text):
    return one.call(state, text)[1].content.get("error")


@pytest.mark.parametrize(
    ("knobs", "old", "error", "new"),
    [
        ({"names": {"find_customer": "lookup"}}, "find_customer", "unknown_tool", "lookup"),
        (
            {"names": {"find_customer": "lookup"}, "gone": {"find_customer": "named"}},
            "find_customer",
            "gone",
            "lookup",
        ),
        ({"names": {"find_customer": "lookup"}, "gone": {"find_customer": "mute"}}, "find_customer", None, "lookup"),
        ({"merged": ["open_account"]}, "find_customer", "unknown_tool", "open_account"),
    ],
)
def test_a_tool_that_is_replaced(knobs, old, error, new):
    one, email = desk(**knobs), draw_database(SHOP).records[1000]["email"]
    after, answer = one.call(START, call(old, email=email))
    assert (after, answer.content.get("error")) == (START, error)
    if error == "gone":
        assert new in answer.content["message"]
    assert one.call(START, call(new, email=email))[0].seen


@pytest.mark.parametrize(("units", "amount"), [("euros", 24.0), ("cents", 2400.0), ("dollars", 30.0)])
def test_amounts_count_in_the_unit_in_force_and_are_shown_in_euros(units, amount):
    one = desk(units=units)
    payment = next(
        key for key in draw_database(SHOP).of(RecordKind.PAYMENT) if draw_database(SHOP).records[key]["amount"] > 2400
    )
    order = draw_database(SHOP).records[payment]["order"]
    state, answer = one.call(DeskState(seen=SEEN), call("refund", payment_id=f"P-{payment}", amount=amount))
    assert answer.content == {"ok": True}
    _, answer = one.call(state, call("get_order", order_id=f"O-{order}"))
    paid = next(one for one in answer.content["payments"] if one["payment_id"] == f"P-{payment}")
    assert paid["refunded"][0]["amount"] == 24.0


def test_reads_lag_behind_writes():
    request, _ = find("split_delivery")
    order = f"O-{request.order}"
    for lag in (0, 1, 3):
        state = DeskState(seen=SEEN)
        one = desk(stale=lag)
        state, _ = one.call(state, call("create_shipment", order_id=order, date="2026-07-09"))
        counts = []
        for _ in range(5):
            state, answer = one.call(state, call("get_order", order_id=order))
            counts.append(len(answer.content["shipments"]))
        assert counts == [1] * lag + [2] * (5 - lag)


def test_the_first_writes_are_swallowed_and_later_ones_are_not():
    request, calls = find("cancel")
    one = desk(silent={"cancel_order": 2})
    write = next(c for c in calls if "cancel_order" in c)
    state = DeskState(seen=SEEN)
    for changes in (0, 0, 1):
        state, answer = one.call(state, write)
        assert (answer.content, len(state.changes)) == ({"ok": True}, changes)
    assert plan(one, request).count(write) == 3


def test_defaults_and_codes_and_lists():
    request, calls = find("return")
    database = draw_database(SHOP)
    assert play(desk(defaults={"refund": "credit"}), request, calls)[0].score == 0.0
    assert play(desk(enum={"changed_mind": "damaged", "damaged": "changed_mind"}), request, calls)[0].score == 0.0
    pages = [
        desk(order=order).call(DeskState(seen=SEEN), call("list_orders", customer_id="C-1000"))[1].content["orders"]
        for order in ("newest", "oldest")
    ]
    dates = [[date.fromisoformat(one["date"]) for one in page] for page in pages]
    own = sorted((database.records[one]["date"] for one in database.records[1000]["orders"]), reverse=True)
    assert dates == [own[:2], own[::-1][:2]]


@pytest.mark.parametrize(
    ("knob", "value", "message"),
    [
        ("names", {"telephone": "x"}, "`names` should name tools"),
        ("names", {"refund": "Pay back"}, "lower-case letters"),
        ("required", {"find_customer": "email"}, "without an email address"),
        ("required", {"finish": "email"}, "`confirm`"),
        ("types", {"id": "roman"}, "should give 'id' one of string, number"),
        ("policy", {"return_days": 0}, "interval [1, 90]"),
        ("page", {"dress_code": True}, "`page` should name one of"),
        ("enum", {"damaged": "changed_mind"}, "another meaning"),
        ("silent", {"get_order": 1}, "tools that write"),
        ("split", ["finish"], "`split` should list"),
        ("units", "pounds", "should be one of"),
    ],
)
def test_values_that_a_knob_refuses(knob, value, message):
    with pytest.raises(KnobError) as caught:
        TOOLS_KNOBS[knob].check(value)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        {"names": {"refund": "decline"}},
        {"names": {"update_address.street": "city"}},
        {"gone": {"refund": "named"}},
    ],
)
def test_combinations_that_are_refused(values):
    assert TOOLS_KNOBS.problems({name: TOOLS_KNOBS[name].check(value) for name, value in values.items()})


def test_wordings_that_are_held_out_are_others_for_the_same_requests():
    usual, held_out = list_requests(SHOP), list_requests(SHOP, True)
    assert not {one.text for one in usual} & {one.text for one in held_out}
    assert {one._replace(text="") for one in usual} == {one._replace(text="") for one in held_out}
    env = ServiceDesk(held_out=True, pool=2)
    env.shop = SHOP
    _, info = env.reset(seed=0)
    assert find_request(env.goal_index)[1] in held_out
    assert info["task"].startswith(find_request(env.goal_index)[1].text)


def test_one_episode_does_not_touch_another():
    first, second = ServiceDesk(pool=2), ServiceDesk(pool=2)
    for env in (first, second):
        env.shop = SHOP
        env.reset(seed=0)
    goal, request = find_goal(first.task, first.episode.desk.rules), first.task
    for text in plan(first.episode.desk, request):
        first.step(text)
    assert first.episode.score == 1.0
    assert second.episode.state == START
    assert score(draw_database(SHOP), request, goal, second.episode.state) == 0.0
    assert first.step(call("finish"))[1:3] == (0.0, True), "what comes after the end pays nothing"


def test_documented_keys_are_the_real_ones():
    env = gym.make("DriftTools-v0", text=True)
    state, info = env.reset(seed=0)
    for key in info:
        assert f"| `{key}` |" in ServiceDesk.__doc__
    for key in json.loads(state):
        assert f"`{key}`" in ServiceDesk.__doc__
