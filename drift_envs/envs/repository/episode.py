"""One issue: tools that read and write files, submissions, what they cost, and the edits to choose from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from drift_envs.envs.repository.checks import check, find_invalid, refuse_falsely, run_command
from drift_envs.envs.repository.conventions import NAMED, Conventions, list_words, permute
from drift_envs.envs.repository.issues import Issue, apply_change, right_change
from drift_envs.envs.repository.project import Project
from drift_envs.tasks.invented_words import read_words
from drift_envs.tasks.tool_calls import Refusal, fits, name_type, read_call, write_error

ATTEMPTS = 3
"""How often an issue can be submitted."""
CORRECTION = 1 / ATTEMPTS
"""What a changed submission after a refused one costs."""
MOST_ACTION = 20_000
MOST_TEXT = 10_000
"""The most characters that an answer shows of a file or of what a command prints."""
MOST_FOUND = 30
DOCUMENTS = ("CONTRIBUTING.md", "HISTORY.md", "README.md")
"""Files whose paths everybody knows."""

_STREAM = 0x4E93
_PATH = {"type": "string", "description": "path of a file in the project"}


def _tool(name: str, about: str, required: tuple[str, ...] = (), **properties: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"name": name, "description": about, "inputSchema": schema}


TOOLS = (
    _tool("list_files", "List the paths of all files."),
    _tool("read_file", "Read a file.", ("path",), path=_PATH),
    _tool(
        "search",
        "Find the lines of all files that contain a text.",
        ("text",),
        text={"type": "string", "description": "the text"},
    ),
    _tool(
        "write_file",
        "Write a file, or delete it if no text is given.",
        ("path",),
        path=_PATH,
        text={"type": "string", "description": "the new content"},
    ),
    _tool(
        "run_checks",
        "Run the checks of the project by their command.",
        ("command",),
        command={"type": "string", "description": "the command"},
    ),
    _tool("submit", "Submit the files; continuous integration accepts or refuses them."),
)
EFFECTS = {"write_file": "write", "submit": "end"}
"""What is no read."""
SUBMIT = '{"tool": "submit", "arguments": {}}'


def write_call(tool: str, **arguments: str) -> str:
    """A call as JSON.

    Example:
        >>> write_call("read_file", path="README.md")
        '{"tool": "read_file", "arguments": {"path": "README.md"}}'
    """
    return json.dumps({"tool": tool, "arguments": arguments})


class Known(NamedTuple):
    """What was read of the conventions in a lifetime.

    Args:
        versions: by convention, the values whose words were read, in the order of their first sight.
        latest: by convention, the value that was read last in a document or in a rule.
    """

    versions: Mapping[str, tuple[int, ...]]
    latest: Mapping[str, int]


NOTHING_KNOWN = Known({}, {})


def note_words(known: Known, project: Project, text: str, path: str = "") -> Known:
    """What is known after a text was read.

    Args:
        known: what was known before.
        project: the project.
        text: the text.
        path: that of the file, if it is one.
    """
    words, versions, latest = list_words(project.number), dict(known.versions), dict(known.latest)
    lists_all = path.endswith(("/errors.py", "/rounding.py"))
    for word in read_words(f"{path} {text}"):
        if word in words:
            name, version = words[word]
            if version not in versions.get(name, ()):
                versions[name] = (*versions.get(name, ()), version)
            if name not in ("error", "rounding") or not lists_all:
                latest[name] = version
    if "\ndef " in text and any(path.endswith(f"/{rule.area}/{rule.name}.py") for rule in project.rules):
        _, swaps_units, swaps_order = permute(project.number)
        latest["unit"] = int(("return" in text and "* 100)" in text) != swaps_units)
        latest["order"] = int(("(days, amount)" in text) != swaps_order)
    return Known(versions, latest)


class RepositoryEpisode:
    """The state of an episode.

    Args:
        project: the project, as a contributor finds it; replaced from outside when conventions change.
        issue: the issue.
        rerun_price: what an unchanged submission costs.
        known: what was read before.

    Example:
        >>> from drift_envs.envs.repository.conventions import Conventions
        >>> from drift_envs.envs.repository.issues import draw_issue
        >>> from drift_envs.envs.repository.project import start_project
        >>> project = start_project(7, Conventions())
        >>> episode = RepositoryEpisode(project, draw_issue(project, 3))
        >>> episode.act('{"tool": "search", "arguments": {"text": "def section"}}')
        '{"found": [{"path": "putugo/warehouse/settings.py", "line": 9, "text": "def section(name):"}]}'
        >>> json.loads(episode.act(SUBMIT))["log"].splitlines()[1]
        'no changelog fragment for #6 was found'
    """

    def __init__(self, project: Project, issue: Issue, rerun_price: float = 0.0, known: Known = NOTHING_KNOWN) -> None:
        self.project, self.issue, self.rerun_price, self.known = project, issue, rerun_price, known
        self.written: dict[str, str | None] = {}
        """What was written: text by path, `None` for a file that was deleted."""
        self.submitted: dict[str, str | None] | None = None
        """What was written at the last submission."""
        self.attempts, self.corrections, self.reruns = 0, 0, 0
        self.answer: dict[str, Any] = {}
        self.log = ""
        """The last log of continuous integration."""
        self.paths: tuple[str, ...] = DOCUMENTS
        """The paths that were listed."""
        self.is_over, self.success = False, False

    @property
    def score(self) -> float:
        """The score: 0.0 before the end, and if the last submission does not solve the issue."""
        if not (self.is_over and self.success):
            return 0.0
        return max(0.0, 1.0 - CORRECTION * self.corrections - self.rerun_price * self.reruns)

    @property
    def files(self) -> dict[str, str]:
        """All files, with what was written."""
        return apply_change(self.project.files(), self.written)

    def act(self, text: str) -> str:
        """Execute a call.

        Args:
            text: the call as JSON.

        Returns:
            The answer as JSON.
        """
        return self._execute(text, is_flaky=False)

    def lose(self, text: str = SUBMIT) -> str:
        """Execute a call, a submission with a flaky log: what is right is refused.

        Args:
            text: the call as JSON.
        """
        return self._execute(text, is_flaky=True)

    def _execute(self, text: str, is_flaky: bool) -> str:
        if self.is_over:
            return self.write_answer()
        try:
            name, given = read_call(text, MOST_ACTION)
            self._check_arguments(name, given)
            self.answer = self._submit(is_flaky) if name == "submit" else getattr(self, f"_{name}")(**given)
        except Refusal as refusal:
            self.answer = write_error(refusal, "words")
        return self.write_answer()

    def _check_arguments(self, name: str, given: Mapping[str, Any]) -> None:
        schema = next((tool["inputSchema"] for tool in TOOLS if tool["name"] == name), None)
        if schema is None:
            raise Refusal("unknown_tool", "there is no such tool")
        for one in schema["required"]:
            if one not in given:
                raise Refusal("missing_argument", f"`{one}` is missing")
        for one, value in given.items():
            if one not in schema["properties"]:
                raise Refusal("unexpected_argument", f"`{one}` is no argument of this tool"[:200])
            if not fits(schema["properties"][one], value):
                raise Refusal("invalid_value", f"`{one}` should be {name_type(schema['properties'][one])}")

    def _list_files(self) -> dict[str, Any]:
        self.paths = tuple(sorted(self.files))
        self._note("\n".join(self.paths))
        return {"files": list(self.paths)}

    def _read_file(self, path: str) -> dict[str, Any]:
        text = self.files.get(path)
        if text is None:
            raise Refusal("not_found", "there is no such file")
        shown = text[:MOST_TEXT]
        self._note(shown, path)
        return {"path": path, "text": shown, **({"cut": True} if shown != text else {})}

    def _search(self, text: str) -> dict[str, Any]:
        if not text.strip():
            raise Refusal("invalid_value", "`text` should not be empty")
        found = [
            {"path": path, "line": number, "text": line[:200]}
            for path, content in sorted(self.files.items())
            for number, line in enumerate(content.splitlines(), 1)
            if text in line
        ]
        for one in found[:MOST_FOUND]:
            self._note(str(one["text"]), str(one["path"]))
        return {"found": found[:MOST_FOUND], **({"cut": True} if len(found) > MOST_FOUND else {})}

    def _write_file(self, path: str, text: str | None = None) -> dict[str, Any]:
        before = self.project.files()
        if text is None and path not in self.files:
            raise Refusal("not_found", "there is no such file")
        written = {one: content for one, content in {**self.written, path: text}.items() if before.get(one) != content}
        problem = find_invalid(apply_change(before, written))
        if problem is not None:
            raise Refusal("invalid_value", problem)
        self.written = dict(sorted(written.items()))
        drafted = note_words(self.known, self.project, text or "", path).latest
        known = {name: one for name, one in drafted.items() if one in self.known.versions.get(name, (0, 1))}
        self.known = self.known._replace(latest={**self.known.latest, **known})
        return {"written" if text is not None else "deleted": path}

    def _run_checks(self, command: str) -> dict[str, Any]:
        output = run_command(self.files, command)
        self._note(output)
        return {"output": output}

    def _submit(self, is_flaky: bool) -> dict[str, Any]:
        if self.submitted is not None:
            if self.submitted == self.written:
                self.reruns += 1
            else:
                self.corrections += 1
        self.attempts += 1
        self.submitted = dict(self.written)
        result = check(self.files, self.project, self.issue)
        is_accepted = result.solved and not is_flaky
        self.log = result.log
        if result.solved and is_flaky:
            stream = [_STREAM, self.project.number, self.issue.id, self.attempts]
            self.log = refuse_falsely(self.project, self.issue, np.random.default_rng(stream))
        self._note(self.log)
        self.is_over = is_accepted or self.attempts >= ATTEMPTS
        self.success = result.solved
        return {"accepted": is_accepted, "log": self.log, "attempts_left": 0 if self.is_over else self.left}

    @property
    def left(self) -> int:
        """How often the issue can still be submitted."""
        return ATTEMPTS - self.attempts

    def _note(self, text: str, path: str = "") -> None:
        self.known = note_words(self.known, self.project, text, path)

    def write_answer(self) -> str:
        """The last answer as JSON; before the first call, the issue."""
        return json.dumps(self.answer or {"issue": self.issue.text})

    def write_state(self) -> str:
        """The state as JSON."""
        state = {
            "project": self.project.number,
            "number": self.issue.id,
            "issue": self.issue.text,
            "written": self.written,
            "submitted": self.submitted,
            "corrections": self.corrections,
            "reruns": self.reruns,
            "log": self.log,
            "answer": self.answer,
        }
        return json.dumps(state)

    def restore(self, shown: Mapping[str, Any]) -> None:
        """Bring the episode to a state.

        Args:
            shown: the state as plain data.

        Raises:
            TypeError: an entry has another type.
            KeyError: an entry is missing.
        """
        self.written, submitted = dict(shown["written"]), shown["submitted"]
        self.submitted = None if submitted is None else dict(submitted)
        self.corrections, self.reruns = int(shown["corrections"]), int(shown["reruns"])
        self.attempts = self.corrections + self.reruns + (self.submitted is not None)
        self.log, self.answer = str(shown["log"]), dict(shown["answer"])
        self.is_over = self.answer.get("attempts_left") == 0

    def save(self) -> dict[str, Any]:
        """The state as plain data."""
        return {name: value for name, value in vars(self).items() if name not in ("project", "issue", "rerun_price")}

    def load(self, saved: Mapping[str, Any]) -> None:
        """Restore a state.

        Args:
            saved: from `save`.
        """
        vars(self).update(saved)

    def list_calls(self) -> list[str]:
        """Calls to choose from: reads, the edits of this issue with words that were read, and a submission."""
        calls = [write_call("list_files"), *(write_call("read_file", path=path) for path in self.paths)]
        commands = (replace(Conventions(), check_command=one) for one in self.known.versions.get("check_command", ()))
        calls += [
            write_call("run_checks", command=replace(self.project, conventions=one).check_command) for one in commands
        ]
        return list(dict.fromkeys([*calls, *self._list_edits(), SUBMIT]))

    def _list_edits(self) -> Iterator[str]:
        """Each file of the change, under what was read last and under each other value of one convention."""
        if any(name not in self.known.latest for name in NAMED):
            return
        _, swaps_units, swaps_order = permute(self.project.number)
        values: dict[str, Any] = {"unit": int(swaps_units), "order": int(swaps_order), **self.known.latest}
        start = Conventions(**values)
        options: dict[str, tuple[int, ...]] = {"unit": (0, 1), "order": (0, 1), **self.known.versions}
        others = (Conventions(**{**values, name: one}) for name, known in options.items() for one in known)
        for conventions in dict.fromkeys((start, *others)):
            for path, text in self.plan_change(conventions).items():
                if text is not None:
                    yield write_call("write_file", path=path, text=text)
                elif path in self.files:
                    yield write_call("write_file", path=path)

    def plan_change(self, conventions: Conventions) -> dict[str, str | None]:
        """What solves the issue if these conventions hold, without the documents.

        Args:
            conventions: the conventions.
        """
        project = replace(self.project, conventions=conventions)
        issue = self.issue._replace(rule=replace(self.issue.rule, style=conventions.style))
        change = right_change(project, issue)
        return {path: text for path, text in change.items() if path not in DOCUMENTS}


def make_schemas() -> list[dict[str, Any]]:
    """The tools with the JSON Schemas of their arguments; objects of the caller alone."""
    copied: list[dict[str, Any]] = json.loads(json.dumps(TOOLS))
    return copied


def describe_tools() -> str:
    """The tools in words, a line each."""
    lines = []
    for tool in TOOLS:
        schema = tool["inputSchema"]
        arguments = (f"{name}{'' if name in schema['required'] else '?'}: text" for name in schema["properties"])
        lines.append(f"{tool['name']}({', '.join(arguments)}) - {tool['description']}")
    return "\n".join(lines)
