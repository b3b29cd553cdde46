"""Prompts as files: each one rendered, and what happens to a file that a person has edited."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from drift_agents.errors import ArgumentError
from drift_agents.policy.messages import arrange, count_entries, render_messages, without_oldest
from drift_agents.policy.prompt_template import TEMPLATES, PromptTemplate, load_template
from drift_agents.prompt.lessons import Trajectory, render_trajectory
from drift_agents.prompt.view import PromptView, Recollection
from drift_agents.types import Outcome

LAKE_TASK = (
    "You walk over a frozen lake of 6 rows x 6 columns, from [0, 0]. Reach the destination with the highest score and "
    "avoid holes. There are a total of 2 destination(s): [3, 5], [5, 5]. The highest score is 1. "
    "Actions: 0 left, 1 down, 2 right, 3 up."
)
CAR_TASK = "You drive a car in a valley. Actions: 0 push left, 1 do nothing, 2 push right."
SHOP_TASK = "Find me a sofa with color: yellow, and price lower than 320.00 dollars"


def on_ice(row: int, column: int, tile: str = "F", gold: float = 0) -> str:
    return json.dumps({"cur_pos": [row, column], "tile_type": tile, "gold_collected": gold})


def page(name: str, text: str) -> str:
    return json.dumps({"html": text, "url": f"http://shop/{name}"})


VIEWS = {
    "lake": PromptView(
        LAKE_TASK,
        on_ice(3, 2),
        ("0", "1", "2", "3"),
        (
            Recollection(on_ice(3, 2), "2", Outcome(on_ice(3, 3), 0.0, False), 2.0, 40),
            Recollection(on_ice(3, 2), "1", Outcome(on_ice(4, 2), 0.0, False), 1.0, 41, verified=True),
        ),
        (
            Recollection(on_ice(3, 3), "2", Outcome(on_ice(3, 5, "G", 0.5), 0.5, True), 1.0, 30),
            Recollection(on_ice(4, 2), "1", Outcome(on_ice(5, 5, "G", 1), 1.0, True), 1.0, 31),
        ),
        ("Keep away from the middle.",),
        step=50,
        doubt_since=45,
    ),
    "car": PromptView(
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
    "shop": PromptView(
        SHOP_TASK,
        page("item", "A sofa for $99\n\nBuy Now"),
        ("click[buy now]", "click[< prev]"),
        (Recollection(page("item", "A sofa"), "click[buy now]", Outcome(page("done", "Thanks"), 0.75, True), 1.0, 5),),
        (Recollection(page("list", "Results"), "click[b1]", Outcome(page("item", "A sofa"), 0.0, False), 1.0, 4),),
        ("Yellow sofas cost less.",),
        step=6,
    ),
    "plain": PromptView("Open the door.", '{"room": "hall"}', ("open", "wait"), step=2),
}
VIEWS["react"] = VIEWS["lake"]
PROMPTS = Path(__file__).with_name("prompts")


@pytest.mark.parametrize("form", ["paper", "full"])
@pytest.mark.parametrize("world", TEMPLATES)
def test_each_sheet_rendered(world: str, form: str) -> None:
    """The files under `prompts/` show what a model reads; edit a template and they have to follow."""
    messages = render_messages(VIEWS[world], load_template(world), world, form)
    shown = "".join(f"=== {message.role} ===\n{message.content}\n" for message in messages)
    assert shown == (PROMPTS / f"{world}-{form}.txt").read_text("utf-8")


@pytest.mark.parametrize("form", ["ranked", "raw"])
@pytest.mark.parametrize("world", ["lake", "car", "shop", "plain"])
def test_each_facts_template_rendered(world: str, form: str) -> None:
    messages = render_messages(with_history(VIEWS[world]), load_template(f"{world}_facts"), world, form, examples=True)
    shown = "".join(f"=== {message.role} ===\n{message.content}\n" for message in messages)
    assert shown == (PROMPTS / f"{world}-{form}.txt").read_text("utf-8")


def with_history(view: PromptView) -> PromptView:
    """The view with an episode of one step, and values with steps where there are records."""
    here = tuple(
        item._replace(value_estimate=item.outcome.score or 1.0, steps_to_go=None if item.outcome.ended else 3)
        for item in view.here
    )
    here = tuple(item if item.outcome.ended else item._replace(visits=2) for item in here)
    moves = tuple(item._replace(last=view.step - 1) for item in view.elsewhere[:1])
    return replace(view, here=here, moves=moves, visits=((view.actions[0], 2),))


def test_the_changing_part_of_a_prompt_comes_last() -> None:
    template, view = load_template("lake_facts"), with_history(VIEWS["lake"])
    later = replace(view, state=on_ice(4, 4), here=(), step=view.step + 1)
    before, after = (
        "\n".join(message.content for message in render_messages(one, template, "lake", "ranked"))
        for one in (view, later)
    )
    shared = next(place for place, (one, other) in enumerate(zip(before, after, strict=False)) if one != other)
    assert "Keep away from the middle." in before[:shared]
    assert "Actions: 0 left" in before[:shared]
    assert before[shared:].count("\n") < before[:shared].count("\n")


def test_contradictions_are_named() -> None:
    view = VIEWS["lake"]
    other = view.here[0]._replace(outcome=Outcome(on_ice(3, 3, "H"), 0.0, True), last=44)
    text = render_messages(replace(view, here=(*view.here, other)), load_template("lake_facts"), "lake", "ranked")[
        1
    ].content
    assert text.count("Other outcomes of this action are known, newer ones among them.") == 1
    assert text.count("Other outcomes of this action are known, all of them older.") == 1
    assert "Seen 2 times, last at step 40, before the contradiction." in text


def test_lessons_are_folded_and_name_states_in_words() -> None:
    lesson = f"Avoid the end in {on_ice(2, 1)}."
    view = replace(VIEWS["lake"], lessons=(lesson, lesson, "Else {unreadable."))
    text = render_messages(view, load_template("lake_facts"), "lake", "ranked")[1].content
    assert "- Avoid the end in [2, 1], tile F. (2 times)\n- Else {unreadable.\n" in text


def test_the_papers_form_is_that_of_its_appendix() -> None:
    user = render_messages(VIEWS["lake"], load_template("lake"), "lake")[1].content
    assert (
        "--- Historical Experience from Similar States ---\n"
        "You have been at this position before. Here are 2 previous experience(s):\n\n"
        "  Action taken: 2\n  Result Position: [3, 3]\n  Result Tile: F\n  Max score achievable from this path: 0.5\n\n"
        "  Action taken: 1\n  Result Position: [4, 2]\n  Result Tile: F\n  Max score achievable from this path: 1.0\n"
    ) in user
    assert "Map Size: 6 rows x 6 columns\nCurrent Position: [3, 2]\n" in user
    assert "There are a total of 2 destination(s).\nDestinations: [3, 5], [5, 5]\n" in user
    assert "step 45" not in user
    assert "Other States" not in user


def test_a_value_from_memory_takes_precedence_over_a_computed_one() -> None:
    view = VIEWS["lake"]
    told = PromptView(
        view.task, view.state, view.actions, (view.here[0]._replace(value_estimate=0.25),), view.elsewhere
    )
    assert (
        "Max score achievable from this path: 0.25" in render_messages(told, load_template("lake"), "lake")[1].content
    )


@pytest.mark.parametrize("world", TEMPLATES)
def test_an_empty_memory_leaves_no_trace(world: str) -> None:
    view = VIEWS[world]
    user = render_messages(PromptView(view.task, view.state, view.actions), load_template(world), world, "full")[
        1
    ].content
    assert "---" not in user
    assert "\n\n\n" not in user


def test_the_plain_sheet_does_not_say_how_to_answer() -> None:
    user = render_messages(VIEWS["lake"], load_template("plain"), "plain", "plain")[1].content
    assert user.endswith('- "Keep away from the middle."')
    assert "Memory was contradicted at step: 45" in user


def test_a_sheet_of_ones_own_takes_the_place_of_ours(tmp_path: Path) -> None:
    (tmp_path / "lake.txt").write_text("For me.\n=== system ===\nGo.\n=== user ===\nAt $cur_pos for $$5.\nThat's it.\n")
    system, user = render_messages(VIEWS["lake"], load_template("lake", str(tmp_path)), "lake")
    assert system.content == "Go."
    assert user.content == "At [3, 2] for $5.\nThat's it."
    assert load_template("car", str(tmp_path)).name == "car"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("=== system ===\nGo.\n", "the section 'user' is missing"),
        ("=== system ===\n=== user ===\n=== hear ===\n", "the section 'hear' is unknown. Known: system, user, here"),
        ("=== system ===\n=== user ===\n=== user ===\n", "the section 'user' is duplicate"),
    ],
)
def test_a_sheet_that_cannot_be_meant_is_refused(text: str, told: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(f"the prompts mine: {told}")):
        PromptTemplate("mine", text)


@pytest.mark.parametrize(
    ("user", "told"),
    [
        (
            "At $place.",
            "section 'user' has the placeholder $place, which has no value there. Known: actions, ",
        ),
        ("It costs $ 5.", "A dollar sign is written $$"),
    ],
)
def test_a_gap_that_cannot_be_filled_is_told(user: str, told: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(told)):
        render_messages(VIEWS["lake"], PromptTemplate("mine", f"=== system ===\n=== user ===\n{user}\n"), "lake")


def test_a_sheet_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "lake.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(ArgumentError, match="the prompts cannot be read: is not UTF-8"):
        load_template("lake", str(tmp_path))


def test_another_lake_is_refused_by_name() -> None:
    with pytest.raises(
        ArgumentError, match=re.escape("the task of a lake should tell its size, destinations and actions")
    ):
        render_messages(PromptView("Skate.", on_ice(0, 0), ("0",)), load_template("lake"), "lake")


def lasts(view: PromptView) -> tuple[list[int], list[int]]:
    return [item.last for item in view.here], [item.last for item in view.elsewhere]


def test_records_in_another_order() -> None:
    view, rng = VIEWS["lake"], np.random.default_rng(1)
    assert arrange(view, "memory", rng) is view
    assert lasts(arrange(view, "newest", rng)) == ([41, 40], [31, 30])
    assert lasts(arrange(arrange(view, "newest", rng), "oldest", rng)) == ([40, 41], [30, 31])
    many = PromptView("", "{}", ("0",), tuple(view.here[0]._replace(last=i) for i in range(30)))
    first, again = (arrange(many, "shuffled", np.random.default_rng(5)) for _ in range(2))
    assert first == again
    assert lasts(first) != lasts(many)
    assert sorted(lasts(first)[0]) == list(range(30))


def test_the_oldest_go_first_then_lessons() -> None:
    view = VIEWS["lake"]
    assert count_entries(view, "full") == 5
    assert [lasts(without_oldest(view, "full", count)) for count in range(5)] == [
        ([40, 41], [30, 31]),
        ([40, 41], [31]),
        ([40, 41], []),
        ([41], []),
        ([], []),
    ]
    assert without_oldest(view, "full", 4).lessons == view.lessons
    assert without_oldest(view, "full", 5).lessons == ()


def test_what_the_papers_form_does_not_tell_is_not_left_out() -> None:
    view = VIEWS["lake"]
    assert count_entries(view, "paper") == 3
    assert lasts(without_oldest(view, "paper", 1)) == ([41], [30, 31])
    assert without_oldest(view, "paper", 3).lessons == ()


def test_long_trajectories_of_lessons_count_equal_actions() -> None:
    states = tuple(f'{{"position": {number / 10}, "velocity": 0.1}}' for number in range(26))
    told = render_trajectory(Trajectory(states, ("2",) * 20 + ("0",) * 5, 1.0, True, 9))
    short = render_trajectory(Trajectory(states[:4], ("2",) * 3, 0.0, False, 4))
    view = replace(VIEWS["car"], lessons=(f"First. {told} {short} Then.", short))
    text = render_messages(view, load_template("car_facts"), "car", "ranked")[1].content
    assert (
        'do "2" 20 times to get to position 2.0, velocity 0.1, then do "0" 5 times to get to position 2.5, velocity '
        "0.1: score 1, the end, last seen at step 9. From position 0.0, velocity 0.1 do"
    ) in text
    assert '- From position 0.0, velocity 0.1 do "2" to get to position 0.1, velocity 0.1, then do "2" to get' in text


def test_a_state_that_a_lesson_cuts_off_is_a_page() -> None:
    lesson = 'From {"html": "WebShop\nInstruction:\nFind me a sofa", "url": "http://shop/<se... a way led to score 0.'
    view = replace(VIEWS["shop"], lessons=(lesson,))
    text = render_messages(view, load_template("shop_facts"), "shop", "ranked")[1].content
    assert "- From a page a way led to score 0." in text
