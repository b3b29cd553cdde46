"""How states of a repository are read, and when two of them are the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from drift_agents.envs.repository.planner import read_blame
from drift_agents.envs.repository.states import (
    NEEDS,
    RepositoryFacts,
    RepositoryMatching,
    read_change,
    read_kind,
    read_repository_state,
    read_text,
)
from drift_agents.types import Outcome, Transition

from drift_envs.envs.repository.conventions import NAMED, Conventions, find_word
from drift_envs.envs.repository.issues import draw_issue, right_change
from drift_envs.envs.repository.project import start_project

STYLED = Conventions(helper=2, layout=1, fragment=1, register=3, check_command=2, setting=1, rounding=2, error=3)


def state(**changes: Any) -> str:
    plain = {"project": 7, "number": 6, "issue": "Please mend `a_fee`.", "written": {}, "submitted": None}
    return json.dumps({**plain, "corrections": 0, "reruns": 0, "log": "", "answer": {}, **changes})


@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize("number", [7, 8, 12])
def test_the_kind_of_every_issue_is_read(number: int, held_out: bool) -> None:
    project = start_project(number, Conventions())
    issues = [draw_issue(project, place, held_out) for place in range(60)]
    assert [read_kind(issue.text) for issue in issues] == [issue.kind for issue in issues]


@pytest.mark.parametrize("number", [7, 8, 12])
def test_files_say_the_conventions_by_which_they_are_written(number: int) -> None:
    project = start_project(number, STYLED)
    words = {name: find_word(number, name, getattr(STYLED, name)) for name in NAMED}
    said = {}
    for path, text in project.files().items():
        said |= read_text(path, text)[1]
    assert {name: value.lower().partition("/")[0] for name, value in said.items() if name in NAMED} == words
    assert read_text("CONTRIBUTING.md", project.files()["CONTRIBUTING.md"])[1].keys() == {
        *("layout", "register", "helper", "setting", "fragment", "check_command")
    }


@pytest.mark.parametrize("number", [7, 8, 12])
def test_a_right_change_has_the_roles_that_its_kind_needs(number: int) -> None:
    project = start_project(number, STYLED)
    for place in range(12):
        issue = draw_issue(project, place)
        change = {path: text for path, text in right_change(project, issue).items() if not path.endswith(".md")}
        change |= {path: text for path, text in right_change(project, issue).items() if "Checked: " in (text or "")}
        says, roles = read_change(change)
        assert {"rule", "fragment", *NEEDS.get(issue.kind, ())} <= set(roles)
        assert says["layout"] == find_word(number, "layout", 1)


def test_a_listing_says_nothing_by_what_was_written() -> None:
    answer = {"files": ["aa/6.md", "bb/5.rst"]}
    shown = read_repository_state(state(answer=answer, written={"aa/6.md": "Checked: python c.py\n"}))
    assert shown is not None
    assert shown.shows == {"fragment": "bb/*.rst"}


def test_a_change_that_contradicts_itself_says_nothing_of_that() -> None:
    text = "Mend it.\n\nChecked: python daroku.py\n"
    says, roles = read_change({"aa/6.md": text, "bb/6.rst": text})
    assert (says, roles) == ({"check_command": "daroku"}, ("fragment",))


def test_submissions_are_compared_by_their_verdict_and_reads_by_what_they_say() -> None:
    rule, document = RepositoryMatching(), start_project(7, Conventions()).files()["CONTRIBUTING.md"]
    later = start_project(7, Conventions(setting=1)).files()["CONTRIBUTING.md"]

    def end(score: float = 0.0, **answer: Any) -> Transition:
        return Transition(state(), "any", Outcome(state(answer=answer), score, False))

    accepted, refused = end(1.0, accepted=True, log="checks passed"), end(accepted=False, log="checks failed")
    assert rule.same_outcome(accepted, end(0.9, accepted=True))
    assert rule.same_outcome(refused, end(accepted=False, log="another log"))
    assert not rule.same_outcome(accepted, refused)
    read = end(path="CONTRIBUTING.md", text=document)
    assert rule.same_outcome(read, end(path="CONTRIBUTING.md", text=document + "\nBe polite."))
    assert not rule.same_outcome(read, end(path="CONTRIBUTING.md", text=later))


def test_what_an_issue_still_needs_tells_states_apart() -> None:
    rule = RepositoryMatching()
    written = {"aa/6.md": "Checked: python c.py\n"}
    mend, option = state(written=written), state(written=written, issue="Let the setting `a_fee_cap` be 9.")
    assert rule.state_key(mend) != rule.state_key(option)
    assert rule.state_key(mend) == rule.state_key(state(written=written, number=9, issue="A bug in `b_toll`."))
    assert rule.state_key("no state") == "no state"


@pytest.mark.parametrize(
    ("line", "blamed"),
    [
        ("no changelog fragment for #6 was found", {"fragment"}),
        ("the changelog fragment for #6 does not say that the checks were run", {"check_command"}),
        ("a_fee is missing: ModuleNotFoundError: No module named 'x.journal'", {"helper", "layout", "register"}),
        ("a_fee(9, 3) failed: KeyError: 'nukele'", {"setting"}),
        ("a_fee(9, 3): the result was not entered", {"helper"}),
        ("a_fee(-1, 3) raised Kilepo, which reviewers refuse", {"error"}),
        ("a_fee(9, 3): expected 9.01, got 9.02", {"rounding"}),
        ("a_fee(9, 3): expected 901, got 902", {"rounding"}),
        ("a_fee(9, 3): expected 9.01, got 901", {"unit"}),
        ("a_fee(120, 3): expected 1.35, got 91.20", {"order"}),
        ("a_fee(-1, 3) is not refused", {"order"}),
        ("checks passed", set()),
    ],
)
def test_a_log_blames_conventions(line: str, blamed: set[str]) -> None:
    assert set(read_blame(line)) == blamed


def test_states_in_words() -> None:
    facts = RepositoryFacts()
    refused = state(written={"old.py": None}, answer={"accepted": False, "log": "checks failed\nit is wrong"})
    assert facts.describe_state(refused) == (
        "issue #6 (mend), written: old.py (deleted), the last answer: refused, checks failed\nit is wrong"
    )
    listed = state(answer={"files": ["daroku.py"]})
    assert facts.describe_state(listed).endswith("the paths of all files was read, with check_command daroku")
