"""Prompts as files: each one rendered, and what happens to a file that a person has edited."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from drift_agents.envs.base import PLAIN_TEMPLATES
from drift_agents.envs.frozen_lake import FROZEN_LAKE
from drift_agents.envs.frozen_lake.knowledge import FrozenLakeFacts
from drift_agents.errors import ArgumentError
from drift_agents.llm.base import Message
from drift_agents.policy.messages import FACTS_FORMATS, arrange, count_entries, render_messages, without_oldest
from drift_agents.policy.prompt_template import PromptTemplate, load_template
from drift_agents.policy.ranked import PLAIN
from drift_agents.prompt.view import PromptView
from drift_agents.types import Outcome

from tests.drift_agents.views import LAKE_VIEW, on_ice, with_history

VIEWS = {
    "frozen_lake": LAKE_VIEW,
    "plain": PromptView("Open the door.", '{"room": "hall"}', ("open", "wait"), step=2),
}
VIEWS["react"] = replace(
    VIEWS["frozen_lake"], moves=VIEWS["frozen_lake"].here[:1] + VIEWS["frozen_lake"].elsewhere[:1], taken=2
)
PROMPTS = Path(__file__).with_name("prompts")


OWN = "drift_agents.envs.frozen_lake:frozen_lake"
LAKE = load_template(OWN)
LAKE_FACTS = load_template(f"{OWN}_facts")
IN_WORDS = FrozenLakeFacts()


def shown(messages: list[Message]) -> str:
    return "".join(f"=== {message.role} ===\n{message.content}\n" for message in messages)


@pytest.mark.parametrize("form", ["paper", "full"])
@pytest.mark.parametrize("name", ["plain", "react"])
def test_each_template_rendered(name: str, form: str) -> None:
    """The files under `prompts/` show what a model reads; edit a template and they have to follow."""
    messages = render_messages(VIEWS[name], load_template(f"drift_agents.policy:{name}"), PLAIN, form)
    assert shown(messages) == (PROMPTS / f"{name}-{form}.txt").read_text("utf-8")


@pytest.mark.parametrize("form", FACTS_FORMATS)
def test_the_facts_template_rendered(form: str) -> None:
    template = load_template(PLAIN_TEMPLATES[form])
    messages = render_messages(with_history(VIEWS["plain"]), template, PLAIN, form, examples=True)
    assert shown(messages) == (PROMPTS / f"plain-{form}.txt").read_text("utf-8")


@pytest.mark.parametrize("form", ["brief", "ranked"])
def test_the_changing_part_of_a_prompt_comes_last(form: str) -> None:
    template, view = load_template(FROZEN_LAKE.templates[form]), with_history(VIEWS["frozen_lake"])
    later = replace(view, state=on_ice(4, 4), here=(), step=view.step + 1)
    before, after = (
        "\n".join(message.content for message in render_messages(one, template, IN_WORDS, form))
        for one in (view, later)
    )
    shared = next(place for place, (one, other) in enumerate(zip(before, after, strict=False)) if one != other)
    assert "Keep away from the middle." in before[:shared]
    assert "Actions: 0 left" in before[:shared]
    assert before[shared:].count("\n") < before[:shared].count("\n")


def test_contradictions_are_named() -> None:
    view = VIEWS["frozen_lake"]
    other = view.here[0]._replace(outcome=Outcome(on_ice(3, 3, "H"), 0.0, True), last=44)
    text = render_messages(replace(view, here=(*view.here, other)), LAKE_FACTS, IN_WORDS, "ranked")[1].content
    assert text.count("Other outcomes of this action are known, newer ones among them.") == 1
    assert text.count("Other outcomes of this action are known, all of them older.") == 1
    assert "Seen 2 times, last at step 40, before the contradiction." in text


def render_brief(view: PromptView) -> str:
    return render_messages(view, load_template(FROZEN_LAKE.templates["brief"]), IN_WORDS, "brief")[1].content


def test_brief_outcomes_that_read_the_same_are_one() -> None:
    """Two records of one tile that differ in the score so far; the newer one is of after the contradiction."""
    view = VIEWS["frozen_lake"]
    again = view.here[0]._replace(outcome=Outcome(on_ice(3, 3, gold=0.5), 0.0, False), last=46, n=1.0, weight=0.25)
    lines = render_brief(replace(view, here=(*view.here, again))).split("\n")
    assert "- 2 led to [3, 3]. Seen 3 times, last at 46, weight 0.75." in lines
    assert "- 1 led to [4, 2]. Last at 41, old, verified." in lines


def test_brief_ends_are_marked_as_old_and_the_newest_ones_are_kept() -> None:
    view = VIEWS["frozen_lake"]
    holes = [
        view.elsewhere[0]._replace(outcome=Outcome(on_ice(row, column, "H"), 0.0, True), last=last)
        for row, column, last in [(0, 1, 44), (0, 2, 45), (0, 1, 46), *((4, n, n) for n in range(30))]
    ]
    lines = render_brief(replace(view, elsewhere=tuple(holes))).split("\n")
    assert "- score 0: [0, 1] at 46; [0, 2] at 45" in lines
    (old,) = (line for line in lines if line.startswith("- old, score 0: "))
    assert old.startswith("- old, score 0: [4, 29] at 29; [4, 28] at 28; ")
    assert "[4, 2]" not in old


def test_lessons_are_folded_and_name_states_in_words() -> None:
    lesson = f"Avoid the end in {on_ice(2, 1)}."
    view = replace(VIEWS["frozen_lake"], lessons=(lesson, lesson, "Else {unreadable."))
    text = render_messages(view, LAKE_FACTS, IN_WORDS, "ranked")[1].content
    assert "- Avoid the end in [2, 1], tile F. (2 times)\n- Else {unreadable.\n" in text


def test_the_papers_form_is_that_of_its_appendix() -> None:
    user = render_messages(VIEWS["frozen_lake"], LAKE, IN_WORDS)[1].content
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
    view = VIEWS["frozen_lake"]
    told = PromptView(
        view.task, view.state, view.actions, (view.here[0]._replace(value_estimate=0.25),), view.elsewhere
    )
    assert "Max score achievable from this path: 0.25" in render_messages(told, LAKE, IN_WORDS)[1].content


@pytest.mark.parametrize("name", ["plain", "react"])
def test_an_empty_memory_leaves_no_trace(name: str) -> None:
    view = PromptView(VIEWS[name].task, VIEWS[name].state, VIEWS[name].actions)
    user = render_messages(view, load_template(f"drift_agents.policy:{name}"), PLAIN, "full")[1].content
    assert "---" not in user
    assert "\n\n\n" not in user


def test_a_sheet_of_ones_own_takes_the_place_of_ours(tmp_path: Path) -> None:
    (tmp_path / "frozen_lake.txt").write_text(
        "For me.\n=== system ===\nGo.\n=== user ===\nAt $cur_pos for $$5.\nThat's it.\n"
    )
    system, user = render_messages(VIEWS["frozen_lake"], load_template(OWN, str(tmp_path)), IN_WORDS)
    assert system.content == "Go."
    assert user.content == "At [3, 2] for $5.\nThat's it."
    assert load_template("drift_agents.policy:plain", str(tmp_path)).name == "plain"


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
        render_messages(VIEWS["frozen_lake"], PromptTemplate("mine", f"=== system ===\n=== user ===\n{user}\n"))


def test_a_sheet_lacks_what_its_base_supplies(tmp_path: Path) -> None:
    """The base is looked up in the folder first."""
    (tmp_path / "mine.txt").write_text("=== base ===\na:theirs\n=== user ===\nHere: $here\n")
    (tmp_path / "theirs.txt").write_text("=== system ===\nGo.\n=== user ===\nNo.\n=== here ===\n$records\n")
    template = load_template("a:mine", str(tmp_path))
    assert template.fill("system", {}) == "Go."
    assert template.fill("user", {"here": "x"}) == "Here: x"
    assert template.fill("here", {"records": "y"}) == "y"


def test_a_sheet_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "frozen_lake.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(ArgumentError, match="the prompts cannot be read: is not UTF-8"):
        load_template(OWN, str(tmp_path))


def lasts(view: PromptView) -> tuple[list[int], list[int]]:
    return [item.last for item in view.here], [item.last for item in view.elsewhere]


def test_records_in_another_order() -> None:
    view, rng = VIEWS["frozen_lake"], np.random.default_rng(1)
    assert arrange(view, "memory", rng) is view
    assert lasts(arrange(view, "newest", rng)) == ([41, 40], [31, 30])
    assert lasts(arrange(arrange(view, "newest", rng), "oldest", rng)) == ([40, 41], [30, 31])
    many = PromptView("", "{}", ("0",), tuple(view.here[0]._replace(last=i) for i in range(30)))
    first, again = (arrange(many, "shuffled", np.random.default_rng(5)) for _ in range(2))
    assert first == again
    assert lasts(first) != lasts(many)
    assert sorted(lasts(first)[0]) == list(range(30))


def test_the_oldest_go_first_then_lessons() -> None:
    view = VIEWS["frozen_lake"]
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
    view = VIEWS["frozen_lake"]
    assert count_entries(view, "paper") == 3
    assert lasts(without_oldest(view, "paper", 1)) == ([41], [30, 31])
    assert without_oldest(view, "paper", 3).lessons == ()


def test_the_episode_is_left_out_last_and_keeps_its_numbers() -> None:
    """AdaMEM, B.1: the most recent observations with their numbers, and how many steps there were."""
    view, template = VIEWS["react"], load_template("drift_agents.policy:react")
    most = count_entries(view, "react")
    assert most == len(view.here) + len(view.elsewhere) + len(view.lessons) + 2
    assert without_oldest(view, "react", most - 2).moves == view.moves
    user = render_messages(without_oldest(view, "react", most - 1), template, PLAIN, "react")[1].content
    assert "you have already taken 2 step(s)" in user
    assert "the most recent 1 observations" in user
    assert f"[Observation 2: {view.moves[1].state}, Action 2: {view.moves[1].action}]" in user
    assert "Observation 1" not in user
    assert "You are now at step 3 " in user
