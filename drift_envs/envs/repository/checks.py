"""Hidden checks: a submission runs in a process of its own, and what it returns is compared here.

The process reports raw values over a pipe; expected values and the verdict stay on this side, so that a submission can
forge neither. Equal submissions are run once.
"""

from __future__ import annotations

import contextlib
import decimal
import json
import os
import re
import select
import shutil
import signal
import subprocess  # nosec B404
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from drift_envs.envs.repository.conventions import ERRORS, IMPLICIT, ROUNDINGS, find_word, permute
from drift_envs.envs.repository.issues import Issue
from drift_envs.envs.repository.project import ChargeCall, ChargeRule, Project
from drift_envs.envs.repository.sandbox import SECONDS

MOST_FILES = 300
MOST_BYTES = 2**20
"""The size of a submission, all files together."""
MOST_PATH = 200
UNREADABLE = re.compile(r"[^\n\t\x20-\x7e\xa0-\ud7ff\ue000-\U0010ffff]")
"""A character of code that no log shows: half a surrogate, or one that controls a terminal or ends a text."""
_MOST_REPORT = 2**20
_WAIT = 2.0 * SECONDS
_LOGGED = 3
"""How many problems a log shows."""
_OUTPUT = 4000

_SANDBOX = str(Path(__file__).with_name("sandbox.py"))
_CENT = Decimal("0.01")
_CAP = Decimal("41.37")
_MINIMUM = Decimal("3.75")
"""Settings while the checks run: other values than those in the project."""


class CheckResult(NamedTuple):
    """The hidden verdict on a submission.

    Args:
        solved: whether the issue is solved.
        problems: what is wrong, in the words of continuous integration.
    """

    solved: bool
    problems: tuple[str, ...]

    @property
    def log(self) -> str:
        """The log of continuous integration."""
        return write_log(self.problems)


def write_log(problems: tuple[str, ...]) -> str:
    """The log of continuous integration.

    Args:
        problems: what is wrong; empty if nothing is.
    """
    if not problems:
        return "checks passed"
    more = f"\n... and {len(problems) - _LOGGED} more" if len(problems) > _LOGGED else ""
    return "checks failed\n" + UNREADABLE.sub("\N{REPLACEMENT CHARACTER}", "\n".join(problems[:_LOGGED])) + more


def check(files: Mapping[str, str], project: Project, issue: Issue) -> CheckResult:
    """Whether files solve an issue, by what their functions do.

    Args:
        files: all files of the submission: text by path.
        project: the project as it was before, under the conventions in force.
        issue: the issue.

    Returns:
        The verdict; whatever the files contain, there is no error.

    Example:
        >>> from drift_envs.envs.repository.conventions import Conventions
        >>> from drift_envs.envs.repository.issues import draw_issue
        >>> from drift_envs.envs.repository.project import start_project
        >>> project = start_project(7, Conventions())
        >>> print(check(project.files(), project, draw_issue(project, 3)).log)
        checks failed
        no changelog fragment for #6 was found
        repair_charge is missing: KeyError: 'repair_charge'
        scanning_fee is still there
    """
    return _check(tuple(files.items()), project, issue)


@lru_cache(maxsize=4096)
def _check(submission: tuple[tuple[str, str], ...], project: Project, issue: Issue) -> CheckResult:
    files = dict(submission)
    problem = find_invalid(files)
    if problem is not None:
        return CheckResult(False, (problem,))
    problems = list(_check_fragment(files, project, issue))
    expectations = tuple(_expect(project, issue))
    calls = tuple((one.target, one.arguments) for one in expectations)
    files, problem = _set_settings(files, project)
    if problem is not None:
        return CheckResult(False, (*problems, problem))
    errors = tuple(find_word(project.number, "error", version).title() for version in range(ERRORS))
    plan = project.word("layout"), project.package, errors
    reported = _run(tuple(sorted(files.items())), plan, calls)
    if isinstance(reported, str):
        return CheckResult(False, (*problems, reported))
    found = [one.judge(raw) for one, raw in zip(expectations, reported, strict=True)]
    problems += dict.fromkeys(one for one in found if one is not None)
    return CheckResult(not problems, tuple(problems))


def find_invalid(files: Mapping[str, str]) -> str | None:
    """Why files cannot be written into a folder; `None` if they can.

    Args:
        files: text by path.
    """
    if len(files) > MOST_FILES:
        return f"a submission should have at most {MOST_FILES} files"
    size = 0
    for path, text in files.items():
        parts = path.split("/")
        is_plain = path.isprintable() and "\\" not in path and len(path.encode("utf-8", "replace")) <= MOST_PATH
        if not is_plain or any(part in ("", ".", "..", ".git") for part in parts):
            return f"{path[:MOST_PATH]!r} is no path of a file in the project"
        try:
            size += len(text.encode("utf-8"))
        except UnicodeEncodeError:
            return f"{path} is no text in UTF-8"
        if any("/".join(parts[:end]) in files for end in range(1, len(parts))):
            return f"{path} lies in a file"
    return f"a submission should have at most {MOST_BYTES} bytes" if size > MOST_BYTES else None


def _check_fragment(files: Mapping[str, str], project: Project, issue: Issue) -> list[str]:
    text = files.get(project.fragment_path(issue.id), "")
    if not text.strip():
        return [f"no changelog fragment for #{issue.id} was found"]
    said = [" ".join(line.split()) for line in text.splitlines()]
    if f"Checked: {project.check_command}" not in said:
        return [f"the changelog fragment for #{issue.id} does not say that the checks were run"]
    return []


def _set_settings(files: Mapping[str, str], project: Project) -> tuple[dict[str, str], str | None]:
    """The files with other values of the present settings, and what is wrong with the settings."""
    word = project.word("setting")
    try:
        settings = json.loads(files["settings.json"])
        section = settings[word]
        changed = {key: str(_MINIMUM if key == "minimum" else _CAP) for key in section}
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        return dict(files), f"settings.json cannot be read: {type(error).__name__}"
    return {**files, "settings.json": json.dumps({**settings, word: changed}, indent=2)}, None


class _Expectation(NamedTuple):
    """A call and what it should do.

    Args:
        target: where the function is found.
        arguments: of the call; `None` if it should not be called.
        shown: the call in words.
        name: of the rule, for its entry.
        value: what it should return, if it should.
        error: the name of the exception that it should raise, if it should.
    """

    target: tuple[str, ...]
    arguments: tuple[tuple[str, str], ...] | None
    shown: str
    name: str = ""
    value: Fraction | None = None
    error: str | None = None
    text: str = ""

    def judge(self, raw: Any) -> str | None:
        """What is wrong with a report; `None` if nothing is."""
        try:
            return self._judge(raw)
        except (KeyError, TypeError, ValueError, ZeroDivisionError, IndexError, AttributeError):
            return f"{self.shown}: no result"

    def _judge(self, raw: dict[str, Any]) -> str | None:
        is_gone = self.value is None and self.error is None
        if is_gone:
            return None if "absent" in raw else f"{self.shown} is still there"
        if "absent" in raw:
            return f"{self.name} is missing: {raw['absent']}"
        if "raised" in raw:
            if self.error is None:
                return f"{self.shown} failed: {raw['text']}"
            if list(raw["accepted"]) == [self.error]:
                return None
            return f"{self.shown} raised {raw['raised'][0]}, which reviewers refuse"
        if self.error is not None:
            return f"{self.shown} is not refused"
        if not _is_number(raw, self.value):
            return f"{self.shown}: expected {self.text}, got {raw.get('text', raw.get('other'))}"
        if not any(name == self.name and _is_number(one, self.value) for name, one in raw["entered"]):
            return f"{self.shown}: the result was not entered"
        return None


def _is_number(raw: dict[str, Any], value: Fraction | None) -> bool:
    return "number" in raw and Fraction(*raw["number"]) == value


def _expect(project: Project, issue: Issue) -> list[_Expectation]:
    """What the checks call."""
    rule, before, package = issue.rule, issue.before, project.package
    found: list[_Expectation] = []
    gone: list[tuple[tuple[str, ...], str]] = []
    if before is not None and before.name != rule.name:
        gone = [(("find", before.name), before.name)]
    if before is not None and before.area != rule.area:
        gone = [(("import", f"{package}.{before.area}.{rule.name}", rule.name), f"{before.area}/{rule.name}.py")]
    targets: list[tuple[str, ...]] = [("find", rule.name)]
    if issue.kind in ("add", "move"):
        targets.append(("import", f"{package}.{rule.area}.{rule.name}", rule.name))
    for target in targets:
        found += [_expect_call(project, rule, call, target) for call in choose_calls(project, rule)]
    found += [_Expectation(target, None, shown) for target, shown in gone]
    others = [one for one in project.rules if one.name not in (rule.name, before.name if before else "")]
    return found + [_expect_call(project, one, ChargeCall(Decimal("250"), 9), ("find", one.name)) for one in others]


def _expect_call(project: Project, rule: ChargeRule, call: ChargeCall, target: tuple[str, ...]) -> _Expectation:
    kind = "text" if isinstance(call.amount, str) else "decimal"
    arguments = ((kind, str(call.amount)), ("integer", str(call.days)))
    if bool(rule.style.order) != permute(project.number)[2]:
        arguments = arguments[::-1]
    shown = f"{rule.name}({', '.join(repr(text) if kind == 'text' else text for kind, text in arguments)})"
    value = rule.charge(call, project.number, _MINIMUM, _CAP)
    if value != rule.charge(call, project.number, project.minimum, rule.cap):
        shown += f" with the settings minimum {_MINIMUM}" + (f" and {rule.name}_cap {_CAP}" if rule.cap else "")
    if value is None:
        error = find_word(project.number, "error", rule.style.error).title()
        return _Expectation(target, arguments, shown, rule.name, error=error)
    is_in_cents = bool(rule.style.unit) != permute(project.number)[1]
    text = str(int(value)) if is_in_cents else str(value)
    return _Expectation(target, arguments, shown, rule.name, value=Fraction(value), text=text)


@lru_cache(maxsize=1024)
def choose_calls(project: Project, rule: ChargeRule) -> tuple[ChargeCall, ...]:
    """Calls that tell a rule from one with other terms, and each rounding from the others.

    Args:
        project: the project.
        rule: the rule.
    """
    calls = [
        ChargeCall(Decimal(amount), days) for amount, days in (("120", rule.free), ("121", rule.free + 1), ("1", 0))
    ]
    calls += [ChargeCall(Decimal("137.5"), rule.free + 6), ChargeCall(Decimal("0"), 0), ChargeCall(Decimal("4000"), 3)]
    calls += [ChargeCall(Decimal("-1"), 2), ChargeCall(Decimal("-0.01"), 0)]
    for other in range(IMPLICIT["rounding"][0]):
        amount = None if other == rule.style.rounding else _find_telling_amount(project, rule, other)
        if amount is not None:
            calls.append(ChargeCall(amount, rule.free + 2))
    if "days" in rule.guards:
        calls += [ChargeCall(Decimal("100"), -1), ChargeCall(Decimal("100"), -9)]
    if "zero" in rule.guards:
        calls += [ChargeCall(Decimal("0"), 5), ChargeCall(Decimal("0"), rule.free + 9)]
    if "comma" in rule.guards:
        calls += [ChargeCall("1,250.00", 4), ChargeCall("12", 9)]
    return tuple(dict.fromkeys(calls))


def _find_telling_amount(project: Project, rule: ChargeRule, other: int) -> Decimal | None:
    """The first amount from 100.00 to 399.99 whose charge, for two days, differs under another rounding.

    Neither the least nor the highest charge hides it.
    """
    ours, theirs = (
        getattr(decimal, ROUNDINGS[permute(project.number)[0][one]]) for one in (rule.style.rounding, other)
    )
    charge, step = rule.percent + 2 * rule.daily, rule.percent / 10_000
    for cents in range(10_000, 40_000):
        if charge >= _MINIMUM and charge.quantize(_CENT, ours) != charge.quantize(_CENT, theirs):
            call = ChargeCall(amount := Decimal(cents) / 100, rule.free + 2)
            value = rule.charge(call, project.number, Decimal(0), None)
            if value == rule.charge(call, project.number, _MINIMUM, _CAP):
                return amount
        charge += step
    return None


def refuse_falsely(project: Project, issue: Issue, rng: np.random.Generator) -> str:
    """The log of a flaky refusal: what the log of the right change would be if another convention were in force.

    Args:
        project: the project.
        issue: the issue.
        rng: draws which.
    """
    style, name = issue.rule.style, ("rounding", "error", "unit")[int(rng.integers(3))]
    others = [one for one in range(IMPLICIT[name][0]) if one != getattr(style, name)]
    false = replace(issue.rule, style=style._replace(**{name: others[int(rng.integers(len(others)))]}))
    problems = []
    for call in choose_calls(project, false):
        wanted, given = (_expect_call(project, rule, call, ()) for rule in (false, issue.rule))
        raw = {"accepted": [given.error], "raised": [given.error]} if given.error else _report(given)
        problems.append(wanted.judge(raw))
    return write_log(tuple(dict.fromkeys(one for one in problems if one is not None)))


def _report(given: _Expectation) -> dict[str, Any]:
    """What the process reports of a right call."""
    value = given.value or Fraction(0)
    number = {"number": [value.numerator, value.denominator], "text": given.text}
    return {**number, "entered": [[given.name, number]]}


@lru_cache(maxsize=2048)
def _run(
    files: tuple[tuple[str, str], ...], plan: tuple[str, str, tuple[str, ...]], calls: tuple[tuple[Any, Any], ...]
) -> tuple[Any, ...] | str:
    """What the calls, each a target and its arguments, report, or why they report nothing."""
    with _Folder(dict(files)) as folder:
        home, package, errors = plan
        given = {"folder": str(folder), "home": home, "package": package, "errors": errors, "calls": calls}
        text = _execute([_SANDBOX], folder, json.dumps(given))
    if text is None:
        return f"the checks took more than {_WAIT:g} s"
    try:
        reported = json.loads(text)
    except ValueError:
        return "the checks ended early"
    if not isinstance(reported, list) or not all(isinstance(one, dict) for one in reported):
        return "the checks ended early"
    if len(reported) == 1 and "raised" in reported[0] and len(calls) > 1:
        return str(reported[0].get("text"))[:_OUTPUT]
    return tuple(reported) if len(reported) == len(calls) else "the checks ended early"


def run_command(files: Mapping[str, str], command: str) -> str:
    """What a command of the project prints: the checks that contributors run.

    Args:
        files: all files: text by path.
        command: as `python NAME.py`, the file being one of the project.
    """
    found = re.fullmatch(r"python ([\w-]+\.py)", " ".join(command.split()))
    if found is None or found[1] not in files:
        return f"{command[:MOST_PATH]}: no such command"
    problem = find_invalid(files)
    return problem if problem is not None else _run_script(tuple(sorted(files.items())), found[1])


@lru_cache(maxsize=512)
def _run_script(files: tuple[tuple[str, str], ...], script: str) -> str:
    with _Folder(dict(files)) as folder:
        given = {"folder": str(folder), "script": script}
        text = _execute([_SANDBOX], folder, json.dumps(given))
        if text is None:
            return f"{script} took more than {_WAIT:g} s"
    lines = text.replace(str(folder), ".")[-_OUTPUT:].splitlines()
    return "\n".join(re.sub(r" in \d+\.\d+s$", "", line) for line in lines)


class _Folder:
    """A new folder with files, which is removed afterwards.

    Args:
        files: text by path; valid, see `find_invalid`.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files

    def __enter__(self) -> Path:
        self._path = Path(os.path.realpath(tempfile.mkdtemp(prefix="drift-repository-")))
        for path, text in self._files.items():
            place = self._path / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(text.encode())
        return self._path

    def __exit__(self, *problem: object) -> None:
        shutil.rmtree(self._path, ignore_errors=True)


def _execute(program: list[str], folder: Path, given: str) -> str | None:
    """What a program writes to standard output, at most `_MOST_REPORT` bytes; `None` if it takes too long."""
    command = [sys.executable, "-I", "-S", "-X", "utf8", *program]
    process = subprocess.Popen(  # nosec B603
        command,
        cwd=folder,
        env={},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return _talk(process, given)
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # what it has started too
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None and not stream.closed:
                stream.close()


def _talk(process: subprocess.Popen[bytes], given: str) -> str | None:
    stdin, stdout = process.stdin, process.stdout
    if stdin is None or stdout is None:
        return ""
    try:
        stdin.write(given.encode())
        stdin.close()
    except BrokenPipeError:
        return ""
    found, end = bytearray(), time.monotonic() + _WAIT
    while len(found) <= _MOST_REPORT:
        left = end - time.monotonic()
        if left <= 0 or not select.select([stdout], [], [], left)[0]:
            return None
        part = os.read(stdout.fileno(), 65536)
        if not part:
            break
        found += part
    return found[:_MOST_REPORT].decode("utf-8", "replace")
