"""The planner of web pages, with prompts as text."""

import json

import numpy as np
import pytest
from drift_agents.errors import ArgumentError
from drift_agents.policy.base import make_policy
from drift_agents.prompt.view import PromptView, Recollection
from drift_agents.types import Outcome

TASK = 'Enter the username "tula" and the password "8F" into the text fields and press login.'
ACTIONS = (
    "type[Username = tula]",
    "type[Username = 8F]",
    "type[Password = tula]",
    "type[Password = 8F]",
    "click[Login]",
    "click[Login (2)]",
)


def state(user="tula", password="**", buttons=("Login", "Login (2)"), task=TASK, values=("tula", "8F")):
    fields = [{"field": "Username", "value": user}, {"field": "Password", "value": password}]
    elements = [*fields, *({"button": name} for name in buttons)]
    return json.dumps({"page": "login-user", "task": task, "values": list(values), "elements": elements})


def record(action, score, n=1, last=1, ended=True, after=None):
    return Recollection(state(), action, Outcome(after or state(buttons=()), score, ended), n, last)


def decide(now, *here, seed=0, actions=ACTIONS, conflict="majority"):
    view = PromptView(TASK, now, actions, here=here, environment="miniwob")
    return make_policy("planner", conflict=conflict).decide(view, np.random.default_rng(seed)).text


def test_it_fills_the_fields_that_the_instruction_names():
    assert decide(state(user="", password="")) == "type[Username = tula]"
    assert decide(state(password="")) == "type[Password = 8F]"
    swapped = TASK.replace("username", "x").replace("password", "username").replace("x", "password")
    assert decide(state(user="", password="", task=swapped)) == "type[Username = 8F]"


def test_of_equal_controls_it_takes_the_one_that_is_known_to_act():
    assert {decide(state(), seed=seed) for seed in range(20)} == {"click[Login]", "click[Login (2)]"}
    for seed in range(5):
        assert decide(state(), record("click[Login (2)]", 1.0), seed=seed) == "click[Login (2)]"
        assert decide(state(), record("click[Login]", 0.0), seed=seed) == "click[Login (2)]"
        stays = record("click[Login]", 0.0, ended=False, after=state())
        assert decide(state(), stays, seed=seed) == "click[Login (2)]"


def test_contradicting_records_are_weighed_by_the_rule():
    records = (record("click[Login]", 1.0, n=5, last=5), record("click[Login]", 0.0, n=2, last=9))
    assert decide(state(), *records) == "click[Login]"
    assert decide(state(), *records, conflict="newest") == "click[Login (2)]"


def test_an_advertisers_page():
    page = state(user="tula", password="**")
    page = json.dumps({**json.loads(page), "elements": [{"button": "Continue"}, {"button": "Next"}]})
    actions = ("click[Continue]", "click[Next]")
    leads_on = Recollection(page, "click[Next]", Outcome(state(), 0.0, False), 1, 1)
    assert decide(page, leads_on, actions=actions) == "click[Next]"


def test_another_state_is_refused():
    with pytest.raises(ArgumentError, match="should be one of a web page"):
        decide('{"elements": 3}')
