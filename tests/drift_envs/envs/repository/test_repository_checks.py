"""Hidden checks: what solves an issue counts, however it is written; nothing a submission does can forge a verdict."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import fields, replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drift_envs.envs.repository import checks
from drift_envs.envs.repository.checks import check, find_invalid, refuse_falsely, run_command
from drift_envs.envs.repository.conventions import EXPLICIT, IMPLICIT, Conventions
from drift_envs.envs.repository.issues import (
    ISSUES_OF_A_PROJECT,
    KINDS,
    Issue,
    apply_change,
    draw_issue,
    kind_of,
    merge_issue,
    right_change,
)
from drift_envs.envs.repository.oracle import is_right
from drift_envs.envs.repository.project import Project, start_project

pytestmark = pytest.mark.integration


def begin(kind: str = "add", number: int = 7, **conventions: object) -> tuple[Project, Issue]:
    project = start_project(number, Conventions(**conventions))  # type: ignore[arg-type]
    return project, draw_issue(project, KINDS.index(kind))


def solve(project: Project, issue: Issue) -> dict[str, str]:
    return apply_change(project.files(), right_change(project, issue))


def with_code(project: Project, issue: Issue, code: str, instead: bool = False) -> dict[str, str]:
    """The right submission with code before that of the rule, or instead of it."""
    files, path = solve(project, issue), project.rule_path(issue.rule)
    return {**files, path: code if instead else f"{code}\n{files[path]}"}


@pytest.mark.parametrize("number", [3, 7, 1234])
def test_every_kind_of_issue_is_solved_by_its_right_change_alone(number: int) -> None:
    project = start_project(number, Conventions(rounding=number % 5, unit=number % 2))
    for place in range(0, ISSUES_OF_A_PROJECT, 7):
        issue = draw_issue(project, place)
        assert check(solve(project, issue), project, issue).problems == ()
        assert not check(project.files(), project, issue).solved
        project = merge_issue(project, issue).tidy()


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_a_change_is_right_where_the_oracle_says_so(data: st.DataObject) -> None:
    project, issue = begin(data.draw(st.sampled_from(KINDS)))
    names = data.draw(st.lists(st.sampled_from([*EXPLICIT, *IMPLICIT, "old_helper"]), max_size=2))
    now = replace(project.conventions, **{name: "kept" if name == "old_helper" else 1 for name in names})
    later = replace(project, conventions=now)
    issue_later = issue._replace(rule=replace(issue.rule, style=now.style))
    files = apply_change(later.files(), right_change(project, issue))
    assert check(files, later, issue_later).solved == is_right(project.conventions, now, issue.kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*EXPLICIT, *IMPLICIT])
def test_each_convention_is_checked(kind: str, name: str) -> None:
    if name == "register" and kind not in ("add", "rename", "move"):
        pytest.skip("changes no line of the register")
    project, issue = begin(kind)
    wrong = replace(project, conventions=replace(project.conventions, **{name: 1}))
    change = right_change(wrong, issue._replace(rule=replace(issue.rule, style=wrong.conventions.style)))
    assert not check(apply_change(project.files(), change), project, issue).solved


def test_an_unusual_submission_is_right() -> None:
    project, issue = begin("add", number=8)
    files, path = solve(project, issue), project.rule_path(issue.rule)
    name, rule = issue.rule.name, files[path]
    unusual = [
        rule.replace(f"def {name}(", "def other(") + f"\n\n{name} = lambda *values: other(*values)\n",
        rule.replace("from decimal import Decimal", "import fractions\nfrom decimal import Decimal")
        + "\nprint('ok')\n",
        "# äöü 漢字\n" + rule,
    ]
    for code in unusual:
        assert check({**files, path: code, "notes/äö.txt": "漢"}, project, issue).problems == ()


def test_a_number_of_another_type_is_the_same_number() -> None:
    for number in range(1, 12):
        project, issue = begin("add", number=number)
        files, path = solve(project, issue), project.rule_path(issue.rule)
        helper = project.word("helper")
        changed = files[path].replace(
            f'return {helper}("{issue.rule.name}", ', f'return {helper}("{issue.rule.name}", Fraction('
        )
        changed = changed.rstrip() + ")\n"
        changed = changed.replace("from decimal", "from fractions import Fraction\nfrom decimal", 1)
        assert check({**files, path: changed}, project, issue).problems == ()


SUBTLE = {
    "free days": ("max(days - {free}, 0)", "max(days - {free} + 1, 0)"),
    "no least charge": ("result = max(result,", "max(result,"),
    "zero is refused": ("amount < 0", "amount <= 0"),
    "bare error": ("raise {error}(", "raise ValueError("),
    "name of the entry": ('"{name}", ', '"other", '),
    "not entered": ("return {helper}(", "return (lambda name, value: value)("),
    "least charge in the code": ('Decimal(settings["minimum"])', 'Decimal("{minimum}")'),
}


@pytest.mark.parametrize("fault", SUBTLE)
def test_a_subtle_fault_is_refused(fault: str) -> None:
    project, issue = begin("add")
    files, path = solve(project, issue), project.rule_path(issue.rule)
    words = {"free": issue.rule.free, "name": issue.rule.name, "helper": project.word("helper")}
    words |= {"error": project.word("error").title(), "minimum": project.minimum}
    old, new = (text.format(**words) for text in SUBTLE[fault])
    assert old in files[path]
    assert not check({**files, path: files[path].replace(old, new)}, project, issue).solved


def test_other_rules_have_to_stay_as_they_are() -> None:
    project, issue = begin("add")
    files, other = solve(project, issue), project.rules[0]
    path = project.rule_path(other)
    assert not check({one: text for one, text in files.items() if one != path}, project, issue).solved
    broken = files[path].replace("result = max(", "result = min(")
    assert not check({**files, path: broken}, project, issue).solved


FORGERIES = {
    "patches decimal": "import decimal\ndecimal.Decimal.__eq__ = decimal.Decimal.quantize = lambda *a, **k: True",
    "replaces decimal": "import decimal, sys\nclass D:\n    __eq__ = lambda *a: True\ndecimal.Decimal = D",
    "patches json": "import json\njson.dumps = lambda *a, **k: '[]'",
    "prints": "print('passed', flush=True)\nimport sys\nsys.stdout.write('[]')\nsys.__stdout__.flush()",
    "leaves": "import os\nos._exit(0)",
    "exits": "import sys\nsys.exit(0)",
    "writes to every descriptor": "import os, contextlib\nfor number in range(64):\n"
    "    with contextlib.suppress(OSError):\n        os.write(number, b'[]')",
    "does not end": "while True: pass",
    "takes memory": "x = bytearray(10**10)",
    "kills its parent": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)",
    "starts a process": "import subprocess\nsubprocess.run(['true'])",
    "forks": "import os\nos.fork()",
    "syntax": "def (",
    "no text": "\x00",
    "calls foreign code": "import ctypes\nctypes.CDLL(None)._exit(0)",
    "recursion": "def f(): f()\nf()",
}
VALUE_FORGERIES = {
    "equal to everything": "class V(int):\n    __eq__ = lambda *a: True\n    __hash__ = int.__hash__",
    "a fraction of its own": "class V(int):\n    as_integer_ratio = lambda self: (1, 1)",
}


@pytest.mark.parametrize("name", FORGERIES)
def test_code_at_import_forges_no_verdict(name: str) -> None:
    project, issue = begin("add")
    code = FORGERIES[name] + f"\ndef {issue.rule.name}(*values):\n    return True\n"
    result = check(with_code(project, issue, code, instead=True), project, issue)
    assert not result.solved
    assert result.log.startswith("checks failed")


@pytest.mark.parametrize("name", VALUE_FORGERIES)
def test_a_value_forges_no_verdict(name: str) -> None:
    project, issue = begin("add")
    helper = project.word("helper")
    code = (
        f"from {project.package}.journal import {helper}\n{VALUE_FORGERIES[name]}\n"
        f"def {issue.rule.name}(*values):\n    return {helper}('{issue.rule.name}', V(1))\n"
    )
    assert not check(with_code(project, issue, code, instead=True), project, issue).solved


def test_the_callers_frames_hold_no_expected_value() -> None:
    """A submission that looks through all frames of the process finds calls and names, and no result."""
    project, issue = begin("add")
    (call,) = [one for one in checks.choose_calls(project, issue.rule) if one.days == issue.rule.free + 6]
    value = issue.rule.charge(call, project.number, checks._MINIMUM, checks._CAP)
    code = (
        "import sys\ndef search():\n    frame, seen = sys._getframe(), []\n    while frame:\n"
        "        seen.append(repr({**frame.f_globals, **frame.f_locals}))\n        frame = frame.f_back\n"
        "    return ' '.join(seen)\n"
        f"def {issue.rule.name}(*values):\n    found = search()\n"
        f"    raise ValueError(('{call.amount}' in found, '{value}' in found.replace(repr('{value}'), '')))\n"
    )
    result = check(with_code(project, issue, code, instead=True), project, issue)
    assert any("ValueError: (True, False)" in one for one in result.problems), result.problems


@pytest.mark.parametrize("character", ["\ud800", "\x00", "\x1b", "\x85"], ids=ascii)
def test_a_log_is_text_that_can_be_shown_whatever_the_code_raises(character: str) -> None:
    project, issue = begin("add")
    code = f"def {issue.rule.name}(*values):\n    raise ValueError({character!a})\n"
    log = check(with_code(project, issue, code, instead=True), project, issue).log
    assert "ValueError: \N{REPLACEMENT CHARACTER}" in log
    assert character not in log


def test_tests_count_for_nothing() -> None:
    project, issue = begin("change")
    passing = "import unittest\n\nclass TestAll(unittest.TestCase):\n    def test_all(self):\n        pass\n"
    files = {**project.files(), "tests/test_register.py": passing, f"{project.word('check_command')}.py": "print('OK')"}
    assert not check(files, project, issue).solved
    emptied = {path: text for path, text in solve(project, issue).items() if not path.startswith("tests/")}
    assert check(emptied, project, issue).solved


def test_nothing_outside_the_folder_is_written_or_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "checks"))
    monkeypatch.setattr(checks.tempfile, "tempdir", None)
    (tmp_path / "checks").mkdir()
    kept = tmp_path / "kept.txt"
    kept.write_text("kept")
    project, issue = begin("add")
    for action in (
        f"open({str(kept)!r}, 'w').write('lost')",
        f"import os; os.remove({str(kept)!r})",
        f"import os; os.rename({str(kept)!r}, 'here')",
        f"import os; os.symlink({str(tmp_path)!r}, 'link'); open('link/kept.txt', 'w')",
        f"import shutil; shutil.rmtree({str(tmp_path)!r})",
        f"import os; os.truncate({str(kept)!r}, 0)",
        f"import os; os.chmod({str(kept)!r}, 0)",
        f"import os; os.open({str(tmp_path / 'new')!r}, os.O_CREAT | os.O_WRONLY)",
        f"import os; os.mkdir({str(tmp_path / 'new')!r})",
        f"import os; os.chdir({str(tmp_path)!r}); open('new', 'w')",
        f"import sqlite3; sqlite3.connect({str(tmp_path / 'new')!r}).execute('create table t (x)')",
        "open('big', 'w').write('x' * 10**8)",
        "open('/proc/self/environ').read()",
    ):
        assert not check(with_code(project, issue, action), project, issue).solved, action
        assert kept.read_text() == "kept"
        assert sorted(os.listdir(tmp_path)) == ["checks", "kept.txt"]
        assert os.listdir(tmp_path / "checks") == []


def test_a_submission_inherits_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "abc")
    project, issue = begin("add")
    code = "import os, sys\nraise SystemError(repr([*os.environ, *(p for p in sys.path if 'site-packages' in p)]))"
    (problem,) = {one.split(": ", 1)[1] for one in check(with_code(project, issue, code), project, issue).problems}
    assert "SECRET_KEY" not in problem
    assert "site-packages" not in problem


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("../out.txt", ""),
        ("/etc/passwd", ""),
        ("a/../../b", ""),
        ("a//b", ""),
        ("", ""),
        ("a\x00b", ""),
        ("a\nb", ""),
        (".git/config", ""),
        ("x" * 300, ""),
        ("big.txt", "x" * 2**21),
        ("README.md/a", ""),
        ("half.txt", "\ud800"),
    ],
)
def test_a_file_that_cannot_be_is_refused(path: str, text: str) -> None:
    project, issue = begin("add")
    files = {**solve(project, issue), path: text}
    assert find_invalid(files) is not None
    assert not check(files, project, issue).solved


@pytest.mark.parametrize(
    "text", ["", "[]", "{", "null", '{"x": 1}', "[" * 100_000, '{"nukele": []}', '{"nukele": "a"}']
)
def test_settings_that_are_none_are_refused(text: str) -> None:
    project, issue = begin("option")
    assert not check({**solve(project, issue), "settings.json": text}, project, issue).solved


def test_no_files_at_all_are_refused() -> None:
    project, issue = begin("add")
    assert not check({}, project, issue).solved


def test_equal_submissions_are_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    project, issue = begin("add", number=4321)
    calls = []
    execute = checks._execute
    monkeypatch.setattr(checks, "_execute", lambda *given: calls.append(1) or execute(*given))
    files = solve(project, issue)
    assert check(files, project, issue) == check(dict(reversed(files.items())), project, issue)
    assert len(calls) == 1


def test_a_hanging_submission_ends_in_time() -> None:
    project, issue = begin("add")
    start = time.monotonic()
    assert not check(with_code(project, issue, "import time\ntime.sleep(1000)"), project, issue).solved
    assert time.monotonic() - start < 30


@pytest.mark.parametrize("kind", KINDS)
def test_a_false_refusal_reads_like_a_true_one(kind: str) -> None:
    """It is, byte for byte, the log of the same submission where that convention is in force."""
    project, issue = begin(kind)
    files = solve(project, issue)
    true = set()
    for name in ("rounding", "error", "unit"):
        for version in range(IMPLICIT[name][0]):
            style = issue.rule.style._replace(**{name: version})
            result = check(files, project, issue._replace(rule=replace(issue.rule, style=style)))
            true |= {result.log} if not result.solved else set()
    false = {refuse_falsely(project, issue, np.random.default_rng(seed)) for seed in range(60)}
    assert false == true
    assert len(false) > 3


def test_the_command_of_the_checks_runs_the_tests() -> None:
    project, _ = begin("add")
    assert run_command(project.files(), project.check_command).endswith("OK")
    broken = {**project.files(), project.rule_path(project.rules[0]): "raise RuntimeError('broken')"}
    output = run_command(broken, project.check_command)
    assert "RuntimeError: broken" in output
    assert tempfile.gettempdir() not in output
    for command in ("python nothing.py", "rm -rf /", "python ../x.py", "", "python x.py; true"):
        assert run_command(project.files(), command).endswith("no such command")


def test_the_lists_of_conventions_agree() -> None:
    assert {field.name for field in fields(Conventions)} == {*EXPLICIT, *IMPLICIT, "old_helper"}
    assert [kind_of(number) for number in range(len(KINDS))] == list(KINDS)
    assert isinstance(begin("option")[1].rule.cap, Decimal)
