"""A project from episode to episode: what was merged, what the documents say, and the commits in between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from drift_envs.envs.repository.conventions import EXPLICIT, Conventions
from drift_envs.envs.repository.issues import Issue, draw_issue, list_changes, merge_issue
from drift_envs.envs.repository.project import Project, start_project

AUTHORS = ("Ines Marsh", "Tom Adler", "Yuki Brandt", "Noor Keller", "Paul Ostrow")

_MESSAGES = {
    "helper": "Rename the function that enters results",
    "layout": "Move the package",
    "fragment": "Move the changelog fragments",
    "register": "Rename the register",
    "check_command": "Rename the script of the checks",
    "setting": "Rename the section of the settings",
    "old_helper": "Clean up the function that enters results",
}
_DOCUMENTS = "Bring the documents up to date"
_RELEASE = "Collect the changelog"


class ProjectCommit(NamedTuple):
    """What the maintainers have committed.

    Args:
        author: its author.
        message: its message.
        files: what it writes: text by path, `None` for a file that it deletes.
    """

    author: str
    message: str
    files: dict[str, str | None]


@dataclass(frozen=True)
class Moment:
    """Where a lifetime stands; plain data that can be stored, compared and shared.

    Args:
        project: the project, as a contributor finds it.
        issue: the present issue; `None` before the first episode.
        history: the conventions of all episodes so far, the present ones last.
        begun: the same when the episode began, if conventions have changed since: knobs change before a reset, and
            what is merged then has the style of the episode that it belongs to.
    """

    project: Project
    issue: Issue | None
    history: tuple[Conventions, ...]
    begun: Moment | None = None


class ProjectLifetime:
    """The life of a project. Before each episode the maintainers merge the right change of the last one.

    Args:
        number: the number of the project.

    Example:
        >>> lifetime = ProjectLifetime(7)
        >>> lifetime.begin(0, Conventions()).kind, lifetime.begin(1, Conventions(layout=1)).kind
        ('add', 'change')
        >>> [commit.message for commit in lifetime.commits]
        ['Add the repair levy (#6)', 'Move the package']
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.moment: Moment | None = None
        self._before: Project | None = None
        self._steps: tuple[tuple[str, Project], ...] = ()

    @property
    def project(self) -> Project:
        """The project, as a contributor finds it."""
        return self._moment.project

    @property
    def commits(self) -> tuple[ProjectCommit, ...]:
        """What was committed between the last two episodes; none before the first one, which starts with all files."""
        return () if self._before is None else tuple(_write_commits(self._before, self._steps))

    @property
    def issue(self) -> Issue | None:
        """The present issue."""
        return self._moment.issue

    @property
    def history(self) -> tuple[Conventions, ...]:
        """The conventions of all episodes so far."""
        return self._moment.history

    @property
    def _moment(self) -> Moment:
        if self.moment is None:
            self.moment = Moment(start_project(self.number, Conventions()), None, ())
        return self.moment

    def begin(self, number: int, conventions: Conventions, docs_lag: int = 0, held_out: bool = False) -> Issue:
        """Begin an episode: merge the issue of the last one, change what has changed, and open an issue.

        Args:
            number: of the issue.
            conventions: those in force.
            docs_lag: the number of episodes by which the documents lag behind.
            held_out: whether the issue has the wording that is held out.

        Returns:
            The issue.
        """
        if self.moment is None:
            history: tuple[Conventions, ...] = (conventions,)
            project = start_project(self.number, conventions)
            self._before, self._steps = None, ()
        else:
            before = self.moment.begun or self.moment
            history = (*before.history, conventions)
            documented = history[max(len(history) - 1 - docs_lag, 0)]
            self._before = before.project
            self._steps = tuple(_develop(self._before, before.issue, conventions, documented))
            project = self._steps[-1][1]
        issue = draw_issue(project, number, held_out)
        self.moment = Moment(project, issue, history)
        return issue

    def change(self, conventions: Conventions) -> None:
        """Change the conventions in the middle of an episode; the issue stays, the documents follow at the next one.

        Args:
            conventions: those in force.
        """
        moment = self._moment
        project = replace(moment.project, conventions=conventions)
        issue = moment.issue
        if issue is not None:
            issue = issue._replace(rule=replace(issue.rule, style=conventions.style))
        self.moment = Moment(project, issue, (*moment.history[:-1], conventions), moment.begun or moment)


def _develop(
    project: Project, issue: Issue | None, conventions: Conventions, documented: Conventions
) -> Iterator[tuple[str, Project]]:
    """What happens between two episodes: messages, each with the project afterwards."""
    if issue is not None:
        project = merge_issue(project, issue)
        yield f"{issue.title} (#{issue.id})", project
    project = project.tidy()
    yield _RELEASE, project
    for name in (*EXPLICIT, "old_helper"):
        value = getattr(conventions, name)
        now = replace(project.conventions, **{name: value})
        said = getattr(documented, name)
        follows = replace(project.documented, **{name: value}) if said == value else project.documented
        project = replace(project, conventions=now, documented=follows)
        yield _MESSAGES[name], project
    project = replace(project, conventions=conventions, documented=documented)
    yield _DOCUMENTS, project


def _write_commits(project: Project, steps: Iterable[tuple[str, Project]]) -> Iterator[ProjectCommit]:
    """The commits of steps that change files."""
    for place, (message, after) in enumerate(steps):
        if after != project:
            changes = dict(list_changes(project.files(), after.files()))
            if changes:
                author = AUTHORS[(after.number + 3 * len(after.log) + place) % len(AUTHORS)]
                yield ProjectCommit(author, message, changes)
        project = after
