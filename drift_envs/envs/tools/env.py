"""A service desk with knobs, and its picture: calls on the left, what was looked up on the right."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from drift_envs.checks import check_flag
from drift_envs.envs.tools.database import POLICY, write_page
from drift_envs.envs.tools.desk import CREDIT, DESK_KNOBS, Desk, make_desk
from drift_envs.envs.tools.episode import OTHERS, DeskEpisode, draw_requests, find_request, number_requests
from drift_envs.envs.tools.interface import MOST_SHOPS, TOOLS_KNOBS, make_interface
from drift_envs.envs.tools.requests import ServiceRequest
from drift_envs.knobs import KnobTable, Value
from drift_envs.registration import IDS, EnvParts
from drift_envs.show.drawing import cut_text, load_pygame, open_font, wrap_text
from drift_envs.tasks.recurring_tasks import CommandEnv, TaskSequence, freeze_conditions
from drift_envs.tasks.tool_calls import CHARACTERS, MOST_CHARACTERS
from drift_envs.wrappers.overlay import CHANGED, DrawnMarks

WIDTH, HEIGHT = 960, 720
MARKS_TOP = 640

_PAPER, _INK, _FAINT, _CALL, _PANEL = (250, 248, 244), (40, 40, 46), (120, 120, 128), (28, 94, 140), (255, 255, 255)
_GAP, _LINE, _TOP, _MIDDLE = 10, 18, 96, 480
_REQUEST = 14
"""The letters of the request, in pixels."""
_CHARACTERS = 58
"""The length of a line in a panel."""
_FIELDS = ("street", "city", "status", "declined", "reason", "refunds", "sent", "shipment", "exists", "date")


def draw_desk_picture(episode: DeskEpisode) -> NDArray[np.uint8]:
    """Draw the desk: the request, the calls, and the records that were looked up as they are now.

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
    for left in (_GAP, _MIDDLE):
        pygame.draw.rect(surface, _PANEL, (left, _TOP, _MIDDLE - 2 * _GAP, MARKS_TOP - _TOP - _GAP), border_radius=6)
    request = wrap_text(open_font(_REQUEST), f"Request: {episode.request.text}", WIDTH - 4 * _GAP)
    write_lines(surface, request, 10, _INK, size=_REQUEST, step=20)
    for left, title in ((2 * _GAP, "Calls"), (_MIDDLE + _GAP, "Records that were looked up; * written")):
        write_lines(surface, [title], _TOP - _LINE, _FAINT, left=left)
    room = (MARKS_TOP - _TOP - 2 * _GAP) // _LINE
    calls: list[str] = []
    for text in episode.calls:
        call = json.loads(text)
        words = f"{call['tool']}({', '.join(f'{name}={value}' for name, value in call['arguments'].items())})"
        calls += textwrap.wrap(words, _CHARACTERS, subsequent_indent="   ")
    answer = textwrap.wrap(f"answer: {json.dumps(episode.answer)}", _CHARACTERS)[:6]
    write_lines(surface, calls[-(room - len(answer) - 1) :], _TOP + _GAP, _CALL)
    below = MARKS_TOP - 2 * _GAP - _LINE * len(answer)
    pygame.draw.line(surface, _PAPER, (2 * _GAP, below - 6), (_MIDDLE - 2 * _GAP, below - 6), 2)
    write_lines(surface, answer, below, _INK)
    write_lines(surface, _record_lines(episode)[:room], _TOP + _GAP, _INK, left=_MIDDLE + _GAP)
    picture: NDArray[np.uint8] = np.transpose(pygame.surfarray.array3d(surface), (1, 0, 2))
    return picture


def write_lines(
    surface: Any,
    lines: list[str],
    top: int,
    ink: tuple[int, int, int],
    left: int = 2 * _GAP,
    size: int = 12,
    step: int = _LINE,
) -> None:
    """Write lines of text on a picture.

    Args:
        surface: a surface of pygame.
        lines: the lines.
        top: the upper edge of the first one.
        ink: their colour.
        left: their left edge.
        size: the size of the font.
        step: from one line to the next, in pixels.
    """
    font = open_font(size)
    for number, line in enumerate(lines):
        shown = cut_text(font, line, WIDTH - left - _GAP)
        surface.blit(font.render(shown, True, ink), (left, top + step * number))


def _record_lines(episode: DeskEpisode) -> list[str]:
    """The records that were looked up, with the fields that a write has changed."""
    database, changes = episode.desk.database, dict(episode.state.changes)
    lines = []
    for key in sorted(episode.state.seen | {key for key, _ in changes}):
        record = database.records[key]
        name = record.get("name") or record.get("label") or record.get("status") or record.get("date") or ""
        changed = [f"{field} {_write(episode, changes[key, field])}" for field in _FIELDS if (key, field) in changes]
        lines += textwrap.wrap(
            f"{episode.desk.interface.show_key(key)} {name}{'  *  ' if changed else ''}{', '.join(changed)}",
            _CHARACTERS,
            subsequent_indent="   ",
        )
    return lines


def _write(episode: DeskEpisode, value: Any) -> str:
    """A value that was written: refunds and parcels are pairs of an id and a number or a word."""
    if not isinstance(value, tuple):
        return str(value)
    show = episode.desk.interface.show_key
    return ", ".join(
        f"{one / 100:.2f} to {'store credit' if key == CREDIT else show(key)}"
        if isinstance(one, int)
        else f"{show(key)} {one}"
        for key, one in value
    )


MAX_LENGTH = 32_768
"""No observation is longer."""


class ServiceDesk(CommandEnv[ServiceRequest, DeskEpisode]):
    """A shop's service desk: a request in words, tools that read and write a database, a policy page.

    In the manner of tau2-bench's retail domain (Barres et al., 2025), written for this project. An action is a call
    as JSON, `{"tool": "refund", "arguments": {"payment_id": "P-4001", "amount": 24.0}}`. A call that a tool refuses
    changes nothing and returns the tool's error. Records have to be looked up before a call can name them. `finish`
    and `hand_over` end the episode; the score, which is the reward then, is 1.0 if the database is as the request
    and the policy demand, less 0.5 for every record of another customer that was changed.

    The observation is the last answer as JSON, at first the request; with `observation_mode="state"` it is a JSON
    object: `shop`, `request`, `records` (what was looked up, as it was shown), `calls` (those that were answered
    without an error) and `answer` (the last one).

    Knobs, with defaults and bounds: `drift-envs list --env DriftTools-v0`.

    | info | meaning |
    |---|---|
    | `task` | the request, the policy page, and the tools, a line each |
    | `actions` | the calls that what was looked up allows, to choose from; any other call is taken as well |
    | `score` | the score, 0.0 before the end |
    | `tools` | the tools with the JSON Schemas of their arguments |

    `shop` takes effect at a reset; the other knobs act at once. `reset(options={"goal_index": i})` selects the request
    and its shop: `i` is 10,000 times the number of the shop (0 to 1,000,000, each drawn from its number) plus the
    position of the request in it, from 5,000 on in the held-out wordings. Other numbers are refused.

    Args:
        render_mode: `human`, `rgb_array`, `ansi` or `None`.
        observation_mode: `answer` or `state`.
        held_out: whether requests have the wordings that are held out for tests.
        pool: the number of recurring requests; `None` draws from all requests of the shop.
        order: `shuffled` (each request once in every round of the pool) or `fixed`.
        conditions: knob values under each of which every request of the pool can be met.
        affected: whether requests come first that changes between two conditions affect, or those that none does.

    Raises:
        ArgumentError: an argument breaks a rule.

    Example:
        >>> desk = ServiceDesk(pool=3)
        >>> desk.shop = 7
        >>> text, info = desk.reset(seed=0)
        >>> len(info["tools"]), info["actions"][-1]
        (19, '{"tool": "finish", "arguments": {}}')
        >>> desk.step('{"tool": "refund", "arguments": {"payment_id": "P-4001", "amount": 5}}')[0]
        '{"error": "not_looked_up", "message": "look this record up first"}'
    """

    knobs: ClassVar[KnobTable] = TOOLS_KNOBS
    parts: ClassVar[EnvParts | None] = IDS["DriftTools-v0"]
    window_title = "Service desk"
    place_knob = "shop"
    most_places = MOST_SHOPS
    observation_modes = ("answer", "state")

    def __init__(
        self,
        render_mode: str | None = None,
        *,
        observation_mode: str = "answer",
        held_out: bool = False,
        pool: int | None = None,
        order: str = "shuffled",
        conditions: Sequence[Mapping[str, Value]] = (),
        affected: bool = True,
    ) -> None:
        draw = partial(
            draw_requests,
            conditions=freeze_conditions(conditions, DESK_KNOBS),
            affected=check_flag("affected", affected),
            held_out=check_flag("held_out", held_out),
        )
        requests = TaskSequence(pool, order, draw, partial(number_requests, held_out=held_out), OTHERS)
        super().__init__(render_mode, observation_mode, requests, (MAX_LENGTH, MOST_CHARACTERS), CHARACTERS)

    @property
    def task(self) -> ServiceRequest:
        """The request of the present episode. For evaluators.

        Raises:
            StateError: before the first `reset`.
        """
        return self.episode.request

    @property
    def request(self) -> str:
        """The request of the present episode in words."""
        return self.task.text

    @property
    def policy_page(self) -> str:
        """The policy page, as the next call finds it."""
        return write_page({**POLICY, **self.read_knobs()["page"]})

    def list_tools(self) -> list[tuple[Mapping[str, Any], str]]:
        """The tools with the JSON Schemas of their arguments, and their effects: `read`, `write` or `end`."""
        interface = make_interface(self.read_knobs())
        return [(tool, interface.effect_of(tool["name"])) for tool in interface.description]

    def _find_task(self, number: int) -> tuple[int, ServiceRequest]:
        return find_request(number)

    def _begin(self, place: int, task: ServiceRequest) -> DeskEpisode:
        return DeskEpisode(self._make_desk(place), task)

    def _update(self, episode: DeskEpisode) -> None:
        episode.desk = self._make_desk(episode.desk.database.number)

    def _make_desk(self, number: int) -> Desk:
        return make_desk(number, {name: getattr(self, f"_{name}") for name in DESK_KNOBS})

    def _make_info(self) -> dict[str, Any]:
        episode = self.episode
        desk = episode.desk
        actions = [] if episode.is_over else list(desk.list_calls(episode.state.seen, episode.request.stated))
        return {"task": episode.task_text, "actions": actions, "score": episode.score, "tools": episode.tools}

    def _write_page(self) -> str:
        """The last answer; before the first call, the request."""
        episode = self.episode
        return episode.write_answer() if episode.calls or episode.answer else episode.task_text

    def _draw_page(self) -> np.ndarray:
        return draw_desk_picture(self.episode)


_LONGEST = 110


class DeskMarks(DrawnMarks):
    """What a drift has changed: each knob that differs from its default or from the phase before, which is marked.

    Args:
        env: the desk.
    """

    def __init__(self, env: ServiceDesk) -> None:
        self.env = env

    def _draw_on(self, surface: Any, old: Mapping[str, Value] | None) -> None:
        now, defaults = self.env.read_knobs(), self.env.knobs.defaults()
        lines = []
        for name in (*DESK_KNOBS, "transient"):
            is_new = old is not None and old.get(name, now[name]) != now[name]
            if is_new or now[name] != defaults[name]:
                lines.append(f"{name}: {_shorten(now[name])}{'  <- new' if is_new else ''}")
        write_lines(surface, lines, MARKS_TOP, CHANGED)


def _shorten(value: Value) -> str:
    shown = ", ".join(f"{key} {one}" for key, one in value.items()) if isinstance(value, Mapping) else str(value)
    return (shown or "usual") if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."
