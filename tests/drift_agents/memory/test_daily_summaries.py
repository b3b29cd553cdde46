"""Days as text: the rendering, and what the offline rule keeps."""

from __future__ import annotations

import pytest
from drift_agents.memory.memory_bank import DAY, RUNS, summarise_day
from drift_agents.memory.transcript import render_steps
from drift_agents.types import AgentClock, Episode, Outcome, Record
from hypothesis import given
from hypothesis import strategies as st

from drift_envs.utils.json_schema import violations


def render_day(*steps: tuple[str, str, str, float, bool], task: str = "Reach the goal.") -> str:
    records = [
        Record(i, state, action, ((Outcome(after, score, ended), 1.0),), 1, AgentClock(0, i))
        for i, (state, action, after, score, ended) in enumerate(steps)
    ]
    return render_steps(Episode(task, steps[-1][3] if steps else 0.0, len(steps), True), records)


def summarise(text: str) -> str:
    return summarise_day(text)["summary"]


def test_steps_are_rendered_in_order() -> None:
    diary = render_day(('{"at": 1}', "2", '{"at": 2}', 0.0, False), ('{"at": 2}', 'say "é"', '{"at": 3}', 0.5, True))
    assert diary == (
        "Task: Reach the goal.\n"
        "Steps:\n"
        '- in {"at": 1} action "2" led to {"at": 2} (score 0)\n'
        '- in {"at": 2} action "say \\"é\\"" led to {"at": 3} (score 0.5; the episode ended)'
    )
    assert summarise(diary) == 'From {"at": 1} "2", "say \\"é\\"" led to score 0.5.'


def test_a_verified_summary_is_rendered_by_its_most_probable_outcome() -> None:
    likely, rare = Outcome("ice", 0.0, False), Outcome("hole", 0.0, True)
    record = Record(4, "s", "1", ((likely, 0.9), (rare, 0.1)), 10, AgentClock(), verified=True)
    assert render_steps(Episode("t", 0.0, 1, False), [record]).endswith('- in s action "1" led to ice (score 0)')


def test_a_long_path_is_given_by_its_length() -> None:
    steps = [(f"s{i}", str(i % 2), f"s{i + 1}", 0.0, False) for i in range(RUNS)]
    assert '"0", "1", "0"' in summarise(render_day(*steps))
    steps.append(("s", str(RUNS % 2), "t", 1.0, True))
    assert summarise(render_day(*steps)) == f"From s0 a way of {RUNS + 1} steps led to score 1."


def test_an_end_without_score_is_a_warning() -> None:
    text = render_day(("s0", "1", "s1", 0.0, False), ("s1", "2", "hole", 0.0, True))
    assert summarise(text).endswith('led to score 0. Avoid "2" in s1: the episode ended there for nothing.')


def test_lines_of_a_task_are_no_steps() -> None:
    text = render_day(("s", "1", "t", 1.0, True), task='Do it.\nSteps:\n- in x action "9" led to y (score 0)')
    assert summarise(text) == 'From s "1" led to score 1.'


def test_nothing_happened() -> None:
    assert summarise(render_day()) == summarise("") == "Nothing happened."


def test_long_pages_are_cut() -> None:
    steps = [("x" * 3000, f"click[{'y' * 300}{i}]", "z" * 3000, 0.0, i == 11) for i in range(12)]
    assert violations(summarise_day(render_day(*steps)), DAY) == []


words = st.text(max_size=30) | st.sampled_from([' action "', " led to ", "(score 1)", "\n", "\nSteps:\n", "\u2028"])


@given(st.lists(st.tuples(words, words, words, st.floats(0, 1), st.booleans()), max_size=4), words)
def test_any_day_has_a_summary(steps: list[tuple[str, str, str, float, bool]], task: str) -> None:
    assert violations(summarise_day(render_day(*steps, task=task)), DAY) == []


@pytest.mark.parametrize("text", ["a", "Steps:\n", "\nSteps:\n- in s action 1 led to t (score 0)"])
def test_any_text_has_a_summary(text: str) -> None:
    assert summarise(text) == "Nothing happened."
