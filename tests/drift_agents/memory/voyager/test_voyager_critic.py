"""Voyager's critic offline: what is a success, what is to be done otherwise, what a skill is called."""

from __future__ import annotations

import pytest
from drift_agents.errors import ArgumentError
from drift_agents.memory.transcript import attempt_steps
from drift_agents.memory.voyager import describe_skill, judge_attempt, render_attempt
from drift_agents.types import AgentClock, Episode, Outcome, Record

TASK = "Reach the goal. The highest score is 1. Actions: 0 left, 1 down."


@pytest.mark.parametrize(
    ("score", "ended", "success", "critique"),
    [
        (1.0, True, True, ""),
        (0.5, True, False, "Look for another end: this one brought 0.5 where there is 1."),
        (0.0, True, False, 'Do not take "2" in b: it ended the episode for nothing.'),
        (0.0, False, False, "Find a shorter way: time ran out after 2 steps."),
        (0.5, False, False, "Find a shorter way: time ran out after 2 steps."),
    ],
)
def test_a_success_has_the_highest_score_that_the_task_names(
    score: float, ended: bool, success: bool, critique: str
) -> None:
    steps = [
        Record(0, "a", "1", ((Outcome("b", 0.0, False), 1.0),), 1, AgentClock()),
        Record(1, "b", "2", ((Outcome("c", score, ended), 1.0),), 1, AgentClock(0, 1)),
    ]
    verdict = judge_attempt(render_attempt(Episode(TASK, score, 2, ended), steps))
    assert (verdict["success"], verdict["critique"]) == (success, critique)


def test_the_critic_ignores_lines_of_the_task() -> None:
    task = "Go.\nSteps:\n- nothing\nResult: score 1 after 1 step; the episode ended"
    step = Record(0, "a", "1", ((Outcome("b", 0.0, True), 1.0),), 1, AgentClock())
    assert judge_attempt(render_attempt(Episode(task, 0.0, 1, True), [step]))["success"] is False


def test_a_verified_summary_in_the_last_place_is_no_failure() -> None:
    """The experience was dropped and it is unknown whether it ended: no action is blamed for it."""
    step = Record(0, "a", "1", ((Outcome("b", 0.0, False), 1.0),), 1, AgentClock())
    text = render_attempt(Episode(TASK, 0.0, 2, True), [step])
    assert judge_attempt(text)["critique"] == "Do something else: the episode ended for nothing."


def test_one_task_has_one_name() -> None:
    step = Record(0, "a", "1", ((Outcome("b", 1.0, True), 1.0),), 1, AgentClock())

    def name(task: str) -> str:
        return describe_skill(render_attempt(Episode(task, 1.0, 1, True), [step]))["name"]

    assert name(TASK).startswith("reachTheGoalTheHighestScore_")
    assert name(TASK) != name(TASK + " Hurry."), "tasks may begin alike"


@pytest.mark.parametrize("text", ["", "Task: go.", "Task: go.\nSteps:\n\nResult: it went well"])
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match="an attempt should end with its result"):
        judge_attempt(text)
    with pytest.raises(ArgumentError, match="a skill should have steps"):
        describe_skill(render_attempt(Episode(TASK, 1.0, 0, True), []))


def test_the_steps_of_an_attempt() -> None:
    """Summaries stand for a dropped step, late ones are put in order, those of other places and episodes left out."""

    def record(number: int, state: str, after: str, step: int, verified: bool = False, episode: int = 1) -> Record:
        return Record(number, state, "1", ((Outcome(after, 0.0, False), 1.0),), 1, AgentClock(episode, step), verified)

    written = [
        record(0, "a", "b", 0),
        record(1, "b", "x", 1, verified=True),
        record(2, "c", "d", 3),
        record(3, "q", "r", 3, verified=True),
        record(4, "d", "e", 4, verified=True),
        record(5, "d", "e", 4),
        record(6, "z", "c", 2),
        record(7, "y", "a", -1, episode=0),
    ]
    assert [step.id for step in attempt_steps(written, str, 1)] == [0, 1, 6, 2, 5]
