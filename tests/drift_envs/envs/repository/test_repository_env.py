"""Episodes in a repository: tools, attempts, reruns, what is merged, what documents say, and what shows no drift."""

from __future__ import annotations

import json
from typing import Any

import gymnasium as gym
import pytest

from drift_envs.envs.repository.conventions import Conventions, find_word, list_words, read_statements
from drift_envs.envs.repository.episode import ATTEMPTS, SUBMIT, write_call
from drift_envs.envs.repository.issues import ISSUES_OF_A_PROJECT, draw_issue, merge_issue
from drift_envs.envs.repository.lifetime import ProjectLifetime
from drift_envs.envs.repository.project import Project, start_project
from drift_envs.errors import ArgumentError
from drift_envs.tasks.invented_words import read_words
from drift_envs.wrappers.twin import twin


def make(schedule: Any = None, **arguments: Any) -> gym.Env[str, str]:
    return gym.make("DriftRepository-v0", schedule=schedule, text=True, **arguments)


def plan(base: dict[str, Any], *drifts: dict[str, Any]) -> dict[str, Any]:
    return {"version": 1, "name": "plan", "clock": "episode", "base": {"project": 7, **base}, "drifts": list(drifts)}


def solve(env: gym.Env[str, str], state: str, tick: int = 0) -> list[tuple[str, float, bool]]:
    """Play the oracle up to its first submission, and that."""
    oracle, steps, action = env.get_wrapper_attr("oracle"), [], ""
    while action != SUBMIT:
        action = oracle.action(state, tick)
        state, reward, done, _, _ = env.step(action)
        steps.append((state, reward, done))
    return steps


def drawn(number: int, conventions: Conventions, count: int) -> list[Project]:
    life = ProjectLifetime(number)
    return [(life.begin(place % ISSUES_OF_A_PROJECT, conventions), life.project)[1] for place in range(count)]


@pytest.mark.parametrize("number", [1, 7, 99, 4711])
def test_a_project_has_its_files_and_no_other_invented_word(number: int) -> None:
    words = list_words(number)
    assert len(words) == 6 * 16 + 2 * 5
    for project in drawn(number, Conventions(), 70):
        files = project.files()
        assert 12 <= len(files) <= 25
        for path, text in files.items():
            assert set(read_words(f"{path} {text}")) <= set(words)
            if path.endswith(".py"):
                compile(text, path, "exec")


@pytest.mark.parametrize("number", [2, 7])
def test_issues_are_told_apart_by_kind_and_wording(number: int) -> None:
    project = start_project(number, Conventions())
    texts = {draw_issue(project, place).text for place in range(ISSUES_OF_A_PROJECT)}
    held_out = {draw_issue(project, place, held_out=True).text for place in range(ISSUES_OF_A_PROJECT)}
    assert not texts & held_out
    for place in range(ISSUES_OF_A_PROJECT):
        issue = draw_issue(project, place)
        assert draw_issue(project, place) == issue
        assert "{" not in issue.text
        assert merge_issue(project, issue).find(issue.rule.name) == issue.rule


def test_a_drift_is_an_ordinary_commit_among_others() -> None:
    life = ProjectLifetime(7)
    life.begin(0, Conventions())
    before = life.project.files()
    life.begin(1, Conventions(layout=1, rounding=1))
    for commit in life.commits:
        assert "drift" not in commit.message.lower()
        before = {path: text for path, text in {**before, **commit.files}.items() if text is not None}
    assert before == life.project.files()
    assert [commit.message for commit in life.commits][1:] == ["Move the package"]
    life.begin(2, Conventions(layout=1, rounding=2))
    assert len(life.commits) == 1, "an implicit change commits nothing"


def test_documents_lag_behind_the_code() -> None:
    life, said = ProjectLifetime(7), []
    old, new = find_word(7, "helper", 0), find_word(7, "helper", 1)
    for episode in range(8):
        life.begin(episode, Conventions(helper=int(episode >= 3)), docs_lag=2)
        said.append(new in life.project.files()["CONTRIBUTING.md"])
        assert any(new in text for path, text in life.project.files().items() if path.endswith(".py")) == (episode >= 3)
    assert said == [False] * 5 + [True] * 3
    assert old not in life.project.files()["CONTRIBUTING.md"]


def test_merged_code_shows_an_implicit_convention_and_nothing_else_does() -> None:
    both = []
    for rounding in (0, 1):
        life = ProjectLifetime(7)
        life.begin(0, Conventions())
        life.begin(6, Conventions(rounding=rounding))
        both.append(life.project.files())
    assert both[0] == both[1], "before something is merged under the new convention"
    life.begin(12, Conventions(rounding=1))
    assert any(
        find_word(7, "rounding", 1) in text for path, text in life.project.files().items() if "/rounding" not in path
    )


@pytest.mark.parametrize("schedule", ["implicit", "both", "explicit"])
def test_what_is_merged_at_a_drift_has_the_style_of_its_time(schedule: str) -> None:
    env = gym.make("DriftRepository-v0", schedule=f"repository/{schedule}")
    env.reset(seed=0)
    for _ in range(20):
        env.reset()
    life = env.unwrapped.lifetime  # type: ignore[attr-defined]
    assert life.history[-2] == Conventions()
    assert life.history[-1] != Conventions()
    assert {rule.style for rule in life.project.rules} == {Conventions().style}
    (merged, *_), last = life.commits, life.commits[-1]
    assert any(path.endswith(".py") for path in merged.files)
    assert (last.files.keys() != {"CONTRIBUTING.md"}) or schedule == "implicit"


def test_what_a_text_says_is_counted() -> None:
    old, new = (find_word(7, "setting", version) for version in (0, 1))
    other = find_word(7, "helper", 3)
    text = f"section `{old}`\nsection {new.title()}\nnot {old} but {new}\nuse {other}\nnothing here"
    found = list(read_statements(text, 7, (Conventions(), Conventions(setting=1))))
    assert [(one.line, one.kind) for one in found] == [(0, "former"), (1, "present"), (2, "mixed"), (3, "never")]


@pytest.mark.integration
def test_a_submission_unchanged_is_a_rerun_and_a_changed_one_a_correction() -> None:
    env = make(plan({"rerun_price": 0.125}))
    env.reset(seed=0)
    state, reward, done, *_ = env.step(SUBMIT)
    assert (reward, done, json.loads(state)["answer"]["attempts_left"]) == (0.0, False, 2)
    env.step(SUBMIT)
    _, reward, done = solve(env, env.get_wrapper_attr("episode").write_state())[-1]
    assert done
    assert reward == pytest.approx(1 - 1 / 3 - 0.125)


@pytest.mark.integration
def test_three_refusals_end_an_episode() -> None:
    env = make(plan({}))
    env.reset(seed=0)
    results = [env.step(SUBMIT) for _ in range(ATTEMPTS)]
    assert [one[2] for one in results] == [False, False, True]
    assert sum(one[1] for one in results) == 0.0
    again = env.step(SUBMIT)
    assert again[1:3] == (0.0, True)


@pytest.mark.integration
def test_a_flaky_refusal_is_no_verdict() -> None:
    env = make(plan({"flaky": 1.0, "rerun_price": 0.1}))
    state, _ = env.reset(seed=0)
    state, reward, done = solve(env, state)[-1]
    assert (reward, done) == (0.0, False)
    shown = json.loads(state)
    assert shown["answer"]["accepted"] is False
    assert shown["log"].startswith("checks failed\n")
    env.step(SUBMIT)
    state, reward, done, *_ = env.step(SUBMIT)
    assert (reward, done) == (pytest.approx(0.8), True), "the last submission is right, whatever the log says"
    oracle = env.get_wrapper_attr("oracle")
    assert oracle.value(0) == pytest.approx(0.8)


@pytest.mark.integration
def test_the_oracle_solves_every_episode_of_both_kinds_of_drift() -> None:
    env = make("repository/both:family")
    for tick in (0, 19, 20, 39, 40, 41):
        state, _ = env.reset(options={"drift_tick": tick}) if tick else env.reset(seed=3)
        assert solve(env, state, tick)[-1][1:] == (1.0, True)


@pytest.mark.integration
def test_a_response_is_what_happens() -> None:
    env = make(plan({"flaky": 0.5}))
    state, info = env.reset(seed=0)
    oracle = env.get_wrapper_attr("oracle")
    for action in [*info["actions"], write_call("read_file", path="nothing"), "no call", SUBMIT, SUBMIT]:
        possible = oracle.response(state, action, 0)
        assert sum(one.probability for one in possible) == pytest.approx(1.0)
        after, _, done, _, _ = env.step(action)
        assert (after, done) in [(one.state, one.ended) for one in possible]
        state = after
    with pytest.raises(ArgumentError, match="`state` should be a JSON text of an issue that was played here"):
        oracle.action("{}", 0)


@pytest.mark.integration
def test_a_twin_has_the_same_issue_and_files() -> None:
    env = make(plan({}, {"at": 1, "set": {"helper": 1}}))
    env.reset(seed=0)
    env.step(write_call("write_file", path="notes.txt", text="mine"))
    env.reset()
    second = twin(env)
    assert second.reset()[0] == env.get_wrapper_attr("episode").write_state()
    for call in (write_call("list_files"), write_call("read_file", path="CONTRIBUTING.md"), SUBMIT):
        assert second.step(call)[0] == env.step(call)[0]


def test_actions_have_only_words_that_were_read() -> None:
    env = make("repository/both")
    _, info = env.reset(seed=0)
    read: set[str] = set()
    for _ in range(2):
        for call in (
            write_call("read_file", path="CONTRIBUTING.md"),
            write_call("list_files"),
            *(
                write_call("read_file", path=path)
                for path in env.get_wrapper_attr("episode").files
                if path[-3:] == ".py"
            ),
        ):
            assert set(read_words(" ".join(info["actions"]))) <= read
            state, _, _, _, info = env.step(call)
            read |= set(read_words(state))
        edits = [one for one in info["actions"] if "write_file" in one]
        assert len(edits) > 5
        _, info = env.reset()


@pytest.mark.integration
def test_the_edits_to_choose_from_solve_an_issue() -> None:
    env = make("repository/explicit")
    state, info = env.reset(seed=1)
    oracle = env.get_wrapper_attr("oracle")
    newest = env.get_wrapper_attr("episode").project
    for path in ("CONTRIBUTING.md", newest.rule_path(newest.rules[-1])):
        state, _, _, _, info = env.step(write_call("read_file", path=path))
    while (action := oracle.action(state, 0)) != SUBMIT:
        assert action in info["actions"]
        state, _, _, _, info = env.step(action)
    assert env.step(SUBMIT)[1] == 1.0


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("read", "invalid_call"),
        (write_call("nothing"), "unknown_tool"),
        (write_call("read_file"), "missing_argument"),
        (write_call("read_file", path="x", text="y"), "unexpected_argument"),
        ('{"tool": "read_file", "arguments": {"path": 1}}', "invalid_value"),
        (write_call("read_file", path="../x"), "not_found"),
        (write_call("write_file", path="../x", text=""), "invalid_value"),
        (write_call("write_file", path="nothing"), "not_found"),
        (write_call("write_file", path="a", text="x" * 30_000), "invalid_call"),
        (write_call("search", text=" "), "invalid_value"),
        ("[" * 19_000, "invalid_call"),
        ('{"tool": "write_file", "arguments": {"path": "a", "text": "\\ud800"}}', "invalid_value"),
    ],
)
def test_a_call_that_is_refused_changes_nothing(call: str, code: str) -> None:
    env = make(plan({}))
    env.reset(seed=0)
    state, reward, done, _, _ = env.step(call)
    shown = json.loads(state)
    assert shown["answer"]["error"] == code
    assert (shown["written"], reward, done) == ({}, 0.0, False)
    assert env.observation_space.contains(state)
