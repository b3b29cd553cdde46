"""A service desk with knobs.

* `ServiceDesk` - requests in words, tools as JSON, and a database that is compared in the end
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from drift_envs.checks import check_flag
from drift_envs.envs.tools.desk import DESK_KNOBS, Desk, make_desk
from drift_envs.envs.tools.episode import DeskEpisode
from drift_envs.envs.tools.interface import make_interface
from drift_envs.envs.tools.knobs import MOST_SHOPS, TOOLS_KNOBS
from drift_envs.envs.tools.page import write_page
from drift_envs.envs.tools.pool import OTHERS, draw_requests, find_request, number_requests
from drift_envs.envs.tools.requests import ServiceRequest
from drift_envs.envs.tools.rules import POLICY
from drift_envs.knobs import KnobTable, Value
from drift_envs.recurring_tasks import CommandEnv
from drift_envs.registration import IDS, EnvParts
from drift_envs.task_sequence import TaskSequence, freeze_conditions
from drift_envs.tool_calls import MOST_CHARACTERS
from drift_envs.tunable import KnobAttribute

CHARACTERS = string.ascii_letters + string.digits + string.punctuation + " "
"""Every character that an observation can have."""

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
    and its shop.

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
    shop = KnobAttribute()
    names = KnobAttribute()
    required = KnobAttribute()
    types = KnobAttribute()
    split = KnobAttribute()
    merged = KnobAttribute()
    gone = KnobAttribute()
    errors = KnobAttribute()
    page = KnobAttribute()
    policy = KnobAttribute()
    units = KnobAttribute()
    defaults = KnobAttribute()
    enum = KnobAttribute()
    order = KnobAttribute()
    stale = KnobAttribute()
    silent = KnobAttribute()
    transient = KnobAttribute()

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
        return write_page({**POLICY, **self.page})

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
        from drift_envs.envs.tools.picture import draw_desk_picture

        return draw_desk_picture(self.episode)
