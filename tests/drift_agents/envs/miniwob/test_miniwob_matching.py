"""When states of a web page count as the same."""

import json

from drift_agents.envs.miniwob.planner import MiniwobMatching, read_web_state
from drift_agents.types import Outcome, Transition

RULE = MiniwobMatching()


def state(name="tula", secret="8F", page="login-user", **fields):
    elements = [
        {"text": "Username"},
        {"field": "Username", "value": fields.get("user", name)},
        {"field": "Password", "value": fields.get("password", "**")},
        {"button": "Login"},
        *fields.get("more", ()),
    ]
    task = f'Enter the username "{name}" and the password "{secret}".'
    return json.dumps({"page": page, "task": task, "values": [name, secret], "elements": elements})


def test_another_task_is_the_same_state():
    assert RULE.state_key(state()) == RULE.state_key(state(name="joye", secret="x91"))
    for other in (
        state(user=""),
        state(user="8F"),
        state(password=""),
        state(page="sign-up"),
        state(more=[{"button": "Login (2)"}]),
    ):
        assert RULE.state_key(state()) != RULE.state_key(other)
    assert RULE.path_key(state()) != RULE.path_key(state(name="joye"))


def test_texts_and_options_that_are_not_chosen_do_not_count():
    options = [{"option": "Mali", "chosen": True}, {"option": "Peru", "chosen": False}]
    one = RULE.state_key(state(more=options))
    assert one == RULE.state_key(state(more=[*options[:1], {"option": "Chad", "chosen": False}, {"text": "lorem"}]))
    assert one != RULE.state_key(state(more=[{"option": "Peru", "chosen": True}]))


def test_outcomes():
    def step(score, ended, after):
        return Transition(state(), "click[Login]", Outcome(after, score, ended))

    over = state(more=[])
    assert RULE.same_outcome(step(1.0, True, over), step(1.0, True, state(name="joye")))
    assert not RULE.same_outcome(step(1.0, True, over), step(0.0, True, over))
    assert not RULE.same_outcome(step(0.0, True, over), step(0.0, False, over))
    assert not RULE.same_outcome(step(0.0, False, over), step(0.0, False, state(user="")))


def test_other_texts_are_compared_as_they_are():
    for text in (
        "",
        "[]",
        "{}",
        '{"page": "x"}',
        '{"page": "x", "task": "", "values": [], "elements": [{"video": "a"}]}',
    ):
        assert read_web_state(text) is None
        assert RULE.state_key(text) == text
    assert RULE.related(state(), state(name="joye"))
    assert not RULE.related(state(), state(page="sign-up"))
