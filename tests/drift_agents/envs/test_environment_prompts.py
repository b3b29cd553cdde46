"""Prompts of each environment as files: each one rendered, in every format with a template of its own."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from drift_agents.envs.base import GENERIC, PLAIN_TEMPLATES, AgentEnvironment, environments
from drift_agents.errors import ArgumentError
from drift_agents.policy.messages import FACTS_FORMATS, render_messages
from drift_agents.policy.prompt_template import load_template
from drift_agents.prompt.lessons import Trajectory, render_trajectory
from drift_agents.prompt.view import PromptView, Recollection
from drift_agents.types import Outcome

from tests.drift_agents.views import LAKE_VIEW, on_ice, with_history

CAR_TASK = "You drive a car in a valley. Actions: 0 push left, 1 do nothing, 2 push right."
SHOP_TASK = "Find me a sofa with color: yellow, and price lower than 320.00 dollars"
ROOM_TASK = (
    "You are in a building of rooms, and see what is ahead of you. Your mission: get to the green goal square. The "
    "highest score is 1. Actions: 0 turn left, 1 turn right, 2 go forward, 3 pick up what is ahead, 4 drop, 5 open, "
    "close or unlock what is ahead, 6 wait."
)


def page(name: str, text: str) -> str:
    return json.dumps({"html": text, "url": f"http://shop/{name}"})


def in_house(at: str, sees: list[str], holds: str = "nothing") -> str:
    rest = {"done": ["take mug 2 from bed 1"] if holds != "nothing" else [], "opened": [], "visited": [at], "says": ""}
    task = "put a heated mug in cabinet"
    return json.dumps({"house": 7, "task": task, "at": at, "door": "none", "sees": sees, "holds": holds, **rest})


def in_room(ahead: str, pos: tuple[int, int]) -> str:
    things = {"3,1": "closed red door"} if ahead == "o" else {}
    view = {"corner": [0, 0], "rows": ["#####", f"#..{ahead}#", "#####"], "things": things}
    return json.dumps({"pos": pos, "facing": "east", "carries": "nothing", "changed": {}, **view})


def on_page(name: str) -> str:
    elements = [{"text": "Sign in"}, {"field": "Name", "value": name}, {"button": "Submit"}, {"button": "Submit (2)"}]
    return json.dumps({"page": "enter-text", "task": "Enter Tula.", "values": ["Tula"], "elements": elements})


def call(tool: str, **arguments: str) -> str:
    return json.dumps({"tool": tool, "arguments": arguments})


def at_desk(*calls: str, **answer: object) -> str:
    request = "I am Bo Meyer, bo@example.org. Please cancel my latest order."
    records = {"O-2054": {"order_id": "O-2054", "date": "2026-06-26", "status": "packed"}} if calls else {}
    made = [json.loads(one) for one in calls]
    return json.dumps({"shop": 7, "request": request, "records": records, "calls": made, "answer": answer})


LIST, CANCEL, FINISH = (
    call("list_orders", customer_id="C-1000"),
    call("cancel_order", order_id="O-2054"),
    call("finish"),
)
DESK_TASK = """I am Bo Meyer, bo@example.org. Please cancel my latest order.

Policy of the service desk. Today is 30 June 2026.
- cancel_until: an order can be cancelled while it is pending or packed.

Tools, called by JSON as {"tool": "finish", "arguments": {}}:
cancel_order(order_id: O-0000) - Cancel an order.
finish() - End the request."""

FRAGMENT, SUBMIT = (
    call("write_file", path="domika/6.md", text="Mend it.\n\nChecked: python daroku.py\n"),
    call("submit"),
)


def in_repository(is_written: bool, **answer: object) -> str:
    files = {"domika/6.md": "Mend it.\n\nChecked: python daroku.py\n"} if is_written else {}
    shown = {"project": 7, "number": 6, "issue": "Please mend `a_fee`.", "written": files, "submitted": None}
    return json.dumps({**shown, "corrections": 0, "reruns": 0, "log": "", "answer": answer})


VIEWS = {
    "frozen_lake": LAKE_VIEW,
    "mountain_car": PromptView(
        CAR_TASK,
        '{"position": -0.472608, "velocity": 0.000000}',
        ("0", "1", "2"),
        (
            Recollection(
                '{"position": -0.47, "velocity": 0.000093}',
                "2",
                Outcome('{"position": -0.469, "velocity": 0.001}', 0.0, False),
                1.0,
                3,
            ),
        ),
        (
            Recollection(
                '{"position": 0.49, "velocity": 0.03}',
                "2",
                Outcome('{"position": 0.52, "velocity": 0.03}', 1.0, True),
                1.0,
                9,
            ),
        ),
        step=20,
        doubt_since=12,
    ),
    "webshop": PromptView(
        SHOP_TASK,
        page("item", "A sofa for $99\n\nBuy Now"),
        ("click[buy now]", "click[< prev]"),
        (Recollection(page("item", "A sofa"), "click[buy now]", Outcome(page("done", "Thanks"), 0.75, True), 1.0, 5),),
        (Recollection(page("list", "Results"), "click[b1]", Outcome(page("item", "A sofa"), 0.0, False), 1.0, 4),),
        ("Yellow sofas cost less.",),
        step=6,
    ),
    "house": PromptView(
        "put a heated mug in cabinet",
        in_house("microwave 1", ["egg 1"], "mug 2"),
        ("use microwave 1", "go to cabinet 1"),
        (
            Recollection(
                in_house("microwave 1", ["egg 1"], "mug 2"),
                "go to cabinet 1",
                Outcome(in_house("cabinet 1", ["cup 1"], "mug 2"), 0.0, False),
                1.0,
                5,
            ),
        ),
        (
            Recollection(
                in_house("bed 1", ["mug 2"]), "take mug 2 from bed 1", Outcome(in_house("bed 1", []), 1.0, True), 1.0, 2
            ),
        ),
        ("A microwave heats.",),
        step=9,
        doubt_since=4,
    ),
    "tools": PromptView(
        DESK_TASK,
        at_desk(LIST, order_id="O-2054"),
        (CANCEL, FINISH),
        (
            Recollection(
                at_desk(LIST, order_id="O-2054"), CANCEL, Outcome(at_desk(LIST, CANCEL, ok=True), 0.0, False), 1.0, 5
            ),
        ),
        (
            Recollection(
                at_desk(LIST, CANCEL, ok=True),
                FINISH,
                Outcome(at_desk(LIST, CANCEL, FINISH, ok=True), 1.0, True),
                1.0,
                6,
            ),
        ),
        ("A packed order can be cancelled.",),
        step=9,
        doubt_since=4,
    ),
    "repository": PromptView(
        "Please mend `a_fee`.\n\nYou contribute to `ledger`.",
        in_repository(False),
        (FRAGMENT, SUBMIT),
        (
            Recollection(
                in_repository(False),
                FRAGMENT,
                Outcome(in_repository(True, written="domika/6.md"), 0.0, False),
                1.0,
                5,
            ),
        ),
        (
            Recollection(
                in_repository(True),
                SUBMIT,
                Outcome(in_repository(True, accepted=True, log="checks passed", attempts_left=0), 1.0, True),
                1.0,
                6,
            ),
        ),
        ("Fragments stand in domika.",),
        step=9,
        doubt_since=4,
    ),
    "minigrid": PromptView(
        ROOM_TASK,
        in_room("o", (2, 1)),
        ("0", "1", "2", "5"),
        (Recollection(in_room("o", (2, 1)), "5", Outcome(in_room(".", (2, 1)), 0.0, False), 1.0, 7),),
        (Recollection(in_room(".", (2, 1)), "2", Outcome(in_room(".", (3, 1)), 1.0, True), 1.0, 3),),
        step=11,
        doubt_since=5,
    ),
    "miniwob": PromptView(
        "Enter Tula.",
        on_page("Tula"),
        ("click[Submit]", "click[Submit (2)]"),
        (Recollection(on_page("Tula"), "click[Submit]", Outcome(on_page("Tula"), 0.0, True), 2.0, 4),),
        (Recollection(on_page(""), "type[Name = Tula]", Outcome(on_page("Tula"), 0.0, False), 1.0, 1),),
        ("The second control acts.",),
        step=6,
    ),
}
PROMPTS = Path(__file__).with_name("prompts")
NAMED = {one.name: one for one in environments()}
OWN = [
    (name, form)
    for name in VIEWS
    for form, template in NAMED[name].templates.items()
    if template != PLAIN_TEMPLATES[form]
]


def render(name: str, view: PromptView, form: str, examples: bool = False) -> tuple[str, str]:
    one: AgentEnvironment = NAMED[name]
    template = load_template(one.templates[form])
    system, user = render_messages(view, template, one.share("facts"), form, examples)
    return system.content, user.content


@pytest.mark.parametrize(("name", "form"), OWN)
def test_each_template_rendered(name: str, form: str) -> None:
    """The files under `prompts/` show what a model reads; edit a template and they have to follow."""
    view = with_history(VIEWS[name]) if form in FACTS_FORMATS else VIEWS[name]
    system, user = render(name, view, form, examples=True)
    shown = f"=== system ===\n{system}\n=== user ===\n{user}\n"
    assert shown == (PROMPTS / f"{name}-{form}.txt").read_text("utf-8")


@pytest.mark.parametrize(("name", "form"), OWN)
def test_an_empty_memory_leaves_no_trace(name: str, form: str) -> None:
    view = VIEWS[name]
    _, user = render(name, PromptView(view.task, view.state, view.actions), form)
    assert "---" not in user
    assert "\n\n\n" not in user


def test_another_lake_is_refused_by_name() -> None:
    with pytest.raises(
        ArgumentError, match=re.escape("the task of a lake should tell its size, destinations and actions")
    ):
        render("frozen_lake", PromptView("Skate.", on_ice(0, 0), ("0",)), "paper")


def test_a_lake_of_unknown_size_is_shown_all_the_same() -> None:
    view = PromptView("Skate.", on_ice(0, 0), ("0",))
    assert "All known ways are shut" not in render("frozen_lake", view, "ranked")[1]


def test_long_trajectories_of_lessons_count_equal_actions() -> None:
    states = tuple(f'{{"position": {number / 10}, "velocity": 0.1}}' for number in range(26))
    told = render_trajectory(Trajectory(states, ("2",) * 20 + ("0",) * 5, 1.0, True, 9))
    short = render_trajectory(Trajectory(states[:4], ("2",) * 3, 0.0, False, 4))
    view = replace(VIEWS["mountain_car"], lessons=(f"First. {told} {short} Then.", short))
    _, text = render("mountain_car", view, "ranked")
    assert (
        'do "2" 20 times to get to position 2.0, velocity 0.1, then do "0" 5 times to get to position 2.5, velocity '
        "0.1: score 1, the end, last seen at step 9. From position 0.0, velocity 0.1 do"
    ) in text
    assert '- From position 0.0, velocity 0.1 do "2" to get to position 0.1, velocity 0.1, then do "2" to get' in text


@pytest.mark.parametrize(
    ("name", "start", "words"),
    [
        ("webshop", '{"html": "WebShop\nInstruction:\nFind me a sofa", "url": "http://shop/<se', "a page"),
        ("house", '{"house": 7, "task": "put a m', "a place"),
        ("tools", '{"shop": 7, "request": "I am B', "a state of the desk"),
        ("repository", '{"project": 7, "number": 6, "iss', "a state of the repository"),
        ("minigrid", '{"pos": [1, 1], "facing": "ea', "a place"),
        ("miniwob", '{"page": "enter-te', "a page"),
    ],
)
def test_a_state_that_a_lesson_cuts_off_is_named(name: str, start: str, words: str) -> None:
    view = replace(VIEWS[name], lessons=(f"From {start}... a way led to score 0.",))
    assert f"- From {words} a way led to score 0." in render(name, view, "ranked")[1]


@pytest.mark.parametrize("name", VIEWS)
def test_a_text_that_is_no_state_is_shown_as_it_is(name: str) -> None:
    facts = NAMED[name].share("facts")
    if name in ("frozen_lake", "mountain_car"):
        with pytest.raises(ValueError, match="Expecting value"):
            facts.describe_state("no state")
        return
    assert facts.describe_state("no state") == "no state"
    fields = facts.state_fields("no state")
    assert "no state" in fields.values() or not fields


def test_an_environment_without_words_is_described_by_its_texts() -> None:
    assert GENERIC.share("facts").describe_state('{"at": 1}') == '{"at": 1}'
