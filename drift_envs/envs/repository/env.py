"""A repository whose conventions drift: the environment and its picture."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from drift_envs.checks import check_flag
from drift_envs.envs.repository.conventions import MOST_PROJECTS, REPOSITORY_KNOBS, Conventions
from drift_envs.envs.repository.episode import (
    EFFECTS,
    MOST_ACTION,
    NOTHING_KNOWN,
    TOOLS,
    Known,
    RepositoryEpisode,
    describe_tools,
    make_schemas,
)
from drift_envs.envs.repository.issues import ISSUES_OF_A_PROJECT, KINDS, Issue, kind_of
from drift_envs.envs.repository.lifetime import Moment, ProjectLifetime
from drift_envs.envs.repository.project import Project
from drift_envs.errors import ArgumentError
from drift_envs.knobs import KnobTable
from drift_envs.registration import IDS, EnvParts
from drift_envs.show.drawing import draw_text, load_pygame, open_font, wrap_text
from drift_envs.tasks.recurring_tasks import CommandEnv, NumberedTasks, TaskSequence, take_turns
from drift_envs.tasks.tool_calls import CHARACTERS

MAX_LENGTH = 400_000
"""No observation is longer: everything that can be written and submitted, and one answer."""


def _list_issues(project: int) -> range:
    return range(ISSUES_OF_A_PROJECT)


ISSUES = NumberedTasks("project", _list_issues, "issue")

_TASK = (
    "{issue}\n\nYou contribute to `{package}`. CONTRIBUTING.md says how; where it is silent or behind, look at the "
    "files and at the changes that were merged last. The issue is #{number}. A submission that continuous integration "
    "refuses can be changed and submitted again, {attempts} times in all; each change costs a third, submitting the "
    "same again {price:.3g}. The highest score is 1.\n\nTools, called by JSON as {example}:\n{tools}"
)


class Repository(CommandEnv[int, RepositoryEpisode]):
    """A small Python project under conventions, and an issue an episode.

    An action is a call as JSON, `{"tool": "read_file", "arguments": {"path": "README.md"}}`. The tools are
    `list_files`, `read_file`, `search`, `write_file`, `run_checks` and `submit`. A submission is checked by running the
    code in a process of its own. One that is refused returns the log of continuous integration, and can be changed and
    submitted again, three times in all. Whether the issue is solved or not, the maintainers merge the right change
    before the next episode.

    The observation is the last answer as JSON, at first the issue; with `observation_mode="state"` it is a JSON
    object: `project`, `number` (of the issue in the log), `issue`, `written` (text by path, `null` for a file that was
    deleted), `submitted` (the same at the last submission, or `null`), `corrections`, `reruns`, `log` (of continuous
    integration) and `answer` (the last one).

    The reward is the score, when the episode ends: 1 less a third for each changed submission and `rerun_price` for
    each unchanged one, if the last submission solves the issue, whatever a flaky refusal said; else 0.

    Knobs, with defaults and bounds: `drift-envs list --env DriftRepository-v0`.

    | info | meaning |
    |---|---|
    | `task` | the issue, the rules and the tools in words |
    | `actions` | calls to choose from, with words that were read in this lifetime; any other call is taken as well |
    | `score` | the score, 0.0 before the end |
    | `tools` | the tools with the JSON Schemas of their arguments |

    `project` takes effect at a reset; the other knobs act at once, on documents at the next reset.
    `reset(options={"goal_index": i})` selects the issue: `i` is 10,000 times the number of the project (0 to 1,000,000,
    each drawn from its number) plus the position of the issue in it; other numbers are refused. `moment` says where
    the life of the project stands, so that another instance has the same.

    Args:
        render_mode: `human`, `rgb_array`, `ansi` or `None`.
        observation_mode: `answer` or `state`.
        pool: the number of recurring issues; `None` draws from all issues of the project.
        order: `shuffled` (each issue once in every round of the pool) or `fixed`.
        held_out: whether issues have the wordings that are held out for tests.

    Raises:
        ArgumentError: an argument breaks a rule.

    Example:
        >>> repository = Repository(pool=6)
        >>> repository.project = 7
        >>> text, info = repository.reset(seed=0)
        >>> info["actions"][0], len(info["tools"])
        ('{"tool": "list_files", "arguments": {}}', 6)
        >>> answer, reward, *_ = repository.step('{"tool": "submit", "arguments": {}}')
        >>> answer[:41], reward
        ('{"accepted": false, "log": "checks failed', 0.0)
    """

    knobs: ClassVar[KnobTable] = REPOSITORY_KNOBS
    parts: ClassVar[EnvParts | None] = IDS["DriftRepository-v0"]
    window_title = "Repository"
    place_knob = "project"
    most_places = MOST_PROJECTS
    observation_modes = ("answer", "state")
    _docs_lag: int
    _flaky: float
    _rerun_price: float

    def __init__(
        self,
        render_mode: str | None = None,
        *,
        observation_mode: str = "answer",
        pool: int | None = None,
        order: str = "shuffled",
        held_out: bool = False,
    ) -> None:
        self.held_out = check_flag("held_out", held_out)
        tasks = TaskSequence(pool, order, draw_issues, ISSUES.numbers)
        super().__init__(render_mode, observation_mode, tasks, (MAX_LENGTH, MOST_ACTION), CHARACTERS)
        self._lifetime: ProjectLifetime | None = None
        self._known = NOTHING_KNOWN
        self._given: tuple[Moment, Known] | None = None
        self._moments: dict[int, tuple[Project, Issue]] = {}

    @property
    def task(self) -> Issue:
        """The present issue. For evaluators."""
        return self.episode.issue

    @property
    def request(self) -> str:
        """The present issue in words."""
        return self.episode.issue.text

    @property
    def policy_page(self) -> str:
        """What CONTRIBUTING.md says."""
        return self.episode.project.files()["CONTRIBUTING.md"]

    @property
    def lifetime(self) -> ProjectLifetime:
        """The project from episode to episode. For evaluators."""
        if self._lifetime is None:
            self._lifetime = ProjectLifetime(self.place)
        return self._lifetime

    def list_tools(self) -> list[tuple[Mapping[str, Any], str]]:
        """The tools with the JSON Schemas of their arguments, and their effects: `read`, `write` or `end`."""
        return [(tool, EFFECTS.get(tool["name"], "read")) for tool in TOOLS]

    def find_moment(self, project: int, number: int) -> tuple[Project, Issue] | None:
        """The project and the issue of a number in the log, if they were played here. For evaluators.

        Args:
            project: the number of the project.
            number: that of the issue in the log.
        """
        found = self._moments.get(number)
        return found if found is not None and found[0].number == project else None

    def task_options(self) -> dict[str, Any] | None:
        """The reset options with which another instance has the same issue in the same project."""
        moment = self.lifetime.moment
        if self.goal_index is None or moment is None:
            return None
        return {"goal_index": self.goal_index, "moment": (moment, self.episode.known)}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode; the maintainers have merged the right change of the last one.

        Args:
            seed: seeds the environment's generator, draws a new pool of issues and, unless the knob `project` says
                which, a new project, whose life begins.
            options: `goal_index` is the number of the issue; `moment`, from `task_options`, says where the life of the
                project stands.

        Returns:
            What is seen first, and `info`.

        Raises:
            ArgumentError: no issue has this number, or there is no such option.
        """
        options = dict(options or {})
        given = options.pop("moment", None)
        if given is not None and not (isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], Moment)):
            raise ArgumentError(f"`moment` should be that of `task_options`. Received {given!r}"[:300])
        kept = self._lifetime, self._known, self._moments
        if self._current is not None:
            self._known = self._current.known
        if seed is not None and not self._keeps_tasks:
            self._lifetime, self._known, self._moments = None, NOTHING_KNOWN, {}
        self._given = given
        try:
            return super().reset(seed=seed, options=options)
        except ArgumentError:
            self._lifetime, self._known, self._moments = kept
            raise
        finally:
            self._given = None

    def _find_task(self, number: int) -> tuple[int, int]:
        return ISSUES.find(number)

    def _begin(self, place: int, task: int) -> RepositoryEpisode:
        conventions = self._conventions()
        if self._lifetime is None or self._lifetime.number != place:
            self._lifetime, self._known, self._moments = ProjectLifetime(place), NOTHING_KNOWN, {}
        life = self._lifetime
        if self._given is not None:
            life.moment, self._known = self._given
            life.change(conventions)
        else:
            life.begin(task, conventions, self._docs_lag, self.held_out)
        return self._make_episode(life)

    def _make_episode(self, life: ProjectLifetime) -> RepositoryEpisode:
        project, issue = life.project, life.issue
        if issue is None:
            raise ArgumentError("`moment` should have an issue. Received None")
        self._moments[issue.id] = project, issue
        return RepositoryEpisode(project, issue, self._rerun_price, self._known)

    def _conventions(self) -> Conventions:
        return Conventions.of({name: getattr(self, f"_{name}") for name in self.knobs})

    def _update(self, episode: RepositoryEpisode) -> None:
        conventions = self._conventions()
        episode.rerun_price = self._rerun_price
        if conventions != episode.project.conventions and self._lifetime is not None:
            self._lifetime.change(conventions)
            episode.project = self._lifetime.project
            episode.issue = self._lifetime.issue or episode.issue
            self._moments[episode.issue.id] = episode.project, episode.issue

    def _execute(self, episode: RepositoryEpisode, command: str) -> None:
        if self._flaky and is_submission(command) and self.np_random.random() < self._flaky:
            episode.lose(command)
        else:
            episode.act(command)

    def _make_info(self) -> dict[str, Any]:
        episode = self.episode
        issue = episode.issue
        task = _TASK.format(
            issue=issue.text,
            package=episode.project.package,
            number=issue.id,
            attempts=3,
            price=episode.rerun_price,
            example='{"tool": "read_file", "arguments": {"path": "README.md"}}',
            tools=describe_tools(),
        )
        actions = [] if episode.is_over else episode.list_calls()
        return {"task": task, "actions": actions, "score": episode.score, "tools": make_schemas()}

    def save_state(self) -> dict[str, Any]:
        """The state of the episode and of the project's life, without knobs and random generators."""
        moment = None if self._lifetime is None else self._lifetime.moment
        return {**super().save_state(), "moment": moment}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore a state.

        Args:
            state: from `save_state`.
        """
        moment: Moment | None = state["moment"]
        if moment is not None:
            self._lifetime = ProjectLifetime(moment.project.number)
            self._given = (moment, self._known)
        super().load_state(state)
        self._given = None

    def _draw_page(self) -> np.ndarray:
        return draw_repository_picture(self.episode)


def is_submission(command: str) -> bool:
    """Whether a call submits."""
    try:
        call = json.loads(command)
    except (ValueError, RecursionError):
        return False
    return isinstance(call, dict) and call.get("tool") == "submit"


@lru_cache(maxsize=512)
def draw_issues(project: int, count: int, seed: int, without: tuple[int, ...] = ()) -> tuple[int, ...]:
    """Draw issues of a project, whose kinds take turns.

    Args:
        project: the number of the project.
        count: how many.
        seed: of the stream.
        without: the numbers of issues that are excluded.

    Raises:
        ArgumentError: the project has too few.
    """
    kinds = [kind_of(number) for number in range(ISSUES_OF_A_PROJECT)]
    order = take_turns(kinds, KINDS, np.random.default_rng(seed))
    left = [number for one in order if (number := ISSUES.number(project, one)) not in without]
    if len(left) < count:
        raise ArgumentError(f"`pool` should be at most {len(left)}, the issues of a project. Received {count}")
    return tuple(left[:count])


WIDTH, HEIGHT = 960, 720
_PAPER, _INK, _FAINT, _ISSUE = (250, 248, 244), (40, 40, 46), (120, 120, 128), (28, 94, 140)
_EDGE, _LEADING = 12, 17


def draw_repository_picture(episode: RepositoryEpisode) -> NDArray[np.uint8]:
    """Draw the issue, what was written, and the last log. It shows no more than the agent knows.

    Args:
        episode: the episode.

    Returns:
        uint8, shape `(HEIGHT, WIDTH, 3)`.

    Raises:
        MissingDependencyError: if pygame is not installed.
    """
    pygame = load_pygame()
    surface = pygame.Surface((WIDTH, HEIGHT))
    surface.fill(_PAPER)
    title = f"Issue #{episode.issue.id}: {episode.issue.text}"
    top = _EDGE
    for line in wrap_text(open_font(15), title, WIDTH - 2 * _EDGE):
        draw_text(surface, line, (_EDGE, top), 15, _ISSUE, WIDTH - 2 * _EDGE, is_bold=True)
        top += 22
    lines = []
    for path, text in episode.written.items():
        lines += [f"--- {path}{' (deleted)' if text is None else ''}", *(text or "").splitlines(), ""]
    log = episode.log.splitlines() or [f"{episode.left} submissions left"]
    room = (HEIGHT - top - 2 * _EDGE) // _LEADING - len(log) - 1
    for line in lines[:room]:
        draw_text(surface, line, (_EDGE, top), 13, _INK, WIDTH - 2 * _EDGE)
        top += _LEADING
    top = HEIGHT - _EDGE - _LEADING * len(log)
    for line in log:
        draw_text(surface, line, (_EDGE, top), 13, _FAINT, WIDTH - 2 * _EDGE)
        top += _LEADING
    picture: NDArray[np.uint8] = np.transpose(pygame.surfarray.array3d(surface), (1, 0, 2))
    return picture
