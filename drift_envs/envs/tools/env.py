"""A service desk with knobs.

* `ServiceDesk` - requests in words, tools as JSON, and a database that is compared in the end
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from drift_envs.checks import check_choice, check_flag, check_integer
from drift_envs.envs.tools import TOOLS
from drift_envs.envs.tools.desk import DESK_KNOBS, Desk, make_desk
from drift_envs.envs.tools.episode import DeskEpisode
from drift_envs.envs.tools.knobs import MOST_SHOPS, TOOLS_KNOBS
from drift_envs.envs.tools.pool import MOST_REQUESTS, ORDERS, RequestSequence, find_request, freeze_conditions
from drift_envs.envs.tools.requests import ServiceRequest
from drift_envs.errors import ArgumentError, StateError
from drift_envs.knobs import KnobTable, Value
from drift_envs.parts import EnvParts
from drift_envs.tool_calls import MOST_CHARACTERS
from drift_envs.tunable import KnobAttribute, RecurringTasksEnv

OBSERVATION_MODES = ("answer", "state")
"""The last answer as a tool gives it, or the state with all that was shown so far."""

CHARACTERS = string.ascii_letters + string.digits + string.punctuation + " "
"""Every character that an observation can have."""

MAX_LENGTH = 32_768
"""No observation is longer."""


class ServiceDesk(RecurringTasksEnv, gym.Env[str, str]):
    """A shop's service desk: a request in words, tools that read and write a database, a policy page.

    In the manner of tau2-bench's retail domain (Barres et al., 2025), written for this project. An action is a call
    as JSON, `{"tool": "refund", "arguments": {"payment_id": "P-4001", "amount": 24.0}}`. A call that a tool refuses
    changes nothing and returns the tool's error. Records have to be looked up before a call can name them. `finish`
    and `hand_over` end the episode; the score, which is the reward then, is 1.0 if the database is as the request
    and the policy demand, less 0.5 for every record of another customer that was changed.

    The observation is the last answer as JSON, at first the request; with `observation_mode="state"` it is a JSON
    object: `shop`, `request`, `records` (what was looked up, as it was shown), `calls` (those that were answered
    without an error) and `answer` (the last one).

    | knob | default | bounds | meaning |
    |---|---|---|---|
    | `shop` | 0 | 0 to 1000000 | number of the database; 0 draws one from the seed |
    | `names` | {} | | tool, or tool.argument: its new name |
    | `required` | {} | `email`, `confirm` | tool: the argument that it comes to require |
    | `types` | {} | | `id`: `string` or `number`; `date`: `iso`, `day_first` or `month_first` |
    | `split`, `merged` | [] | | tools that are split into two; tools that take the place of two |
    | `gone` | {} | `named`, `mute` | tool with a new name: what its old name answers |
    | `errors` | words | `words`, `numbers`, `terse` | the form of errors |
    | `page` | {} | | rule of the policy: the value that the page states |
    | `policy` | {} | | rule of the policy: the value in force |
    | `units` | euros | `euros`, `cents`, `dollars` | what an amount that is given to a tool is counted in |
    | `defaults` | {} | | `refund`, `send_item`: what happens if the card or the speed is left out |
    | `enum` | {} | | reason code: what it means |
    | `order` | newest | `newest`, `oldest` | which orders come first in lists |
    | `stale` | 0 | 0 to 5 | how many calls reads lag behind |
    | `silent` | {} | 0 to 3 | tool: how many of its first writes report success and do nothing |
    | `transient` | 0.0 | 0 to 1 | probability that a call is lost and answered as if no record were there |

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

    metadata = {  # noqa: RUF012 - as Gymnasium declares it
        "render_modes": ["human", "rgb_array", "ansi"],
        "render_fps": 4,
    }
    knobs: ClassVar[KnobTable] = TOOLS_KNOBS
    parts: ClassVar[EnvParts | None] = TOOLS
    surfaces: ClassVar[tuple[str, ...]] = ("_window",)
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
    _shop: int
    _transient: float

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
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ArgumentError(f"`render_mode` should be human, rgb_array, ansi or None. Received {render_mode!r}")
        check_choice("observation_mode", observation_mode, OBSERVATION_MODES)
        check_choice("order", order, ORDERS)
        pool = check_integer("pool", pool, 1, MOST_REQUESTS, optional=True)
        check_flag("held_out", held_out)
        self.render_mode = render_mode
        self.observation_mode = observation_mode
        for name, value in TOOLS_KNOBS.defaults().items():
            setattr(self, f"_{name}", value)
        frozen = freeze_conditions(conditions)
        self._requests = RequestSequence(pool, order, frozen, check_flag("affected", affected), held_out)
        self._number = 0
        """The shop that the seed has drawn; 0 before."""
        self._current: DeskEpisode | None = None
        self._window: Any = None
        self.observation_space = spaces.Text(MAX_LENGTH, min_length=0, charset=CHARACTERS)
        self.action_space = spaces.Text(MOST_CHARACTERS, min_length=0, charset=CHARACTERS)

    @property
    def episode(self) -> DeskEpisode:
        """The present episode.

        Raises:
            StateError: before the first `reset`.
        """
        if self._current is None:
            raise StateError("there is no episode before `reset`; call `reset` first")
        return self._current

    @property
    def task_pool(self) -> tuple[int, ...] | None:
        """The numbers of the recurring requests, or `None` for all requests of the shop. For evaluators."""
        return self._requests.pool(self._number_now())

    @property
    def drawn_shop(self) -> int:
        """The shop that the seed has drawn, in which episodes take place while the knob `shop` is 0."""
        self._seed_requests(None)
        return self._number

    def pool_of(self, shop: int) -> tuple[int, ...] | None:
        """The numbers of the recurring requests of a shop, or `None` for all its requests. For evaluators.

        Args:
            shop: the number of the shop.
        """
        self._seed_requests(None)
        return self._requests.pool(shop)

    def other_tasks(self, count: int) -> tuple[int, ...]:
        """The numbers of requests of this shop outside `task_pool`, drawn by the same rules. For evaluators.

        Args:
            count: how many.

        Raises:
            ArgumentError: the shop has too few.
        """
        return self._requests.others(self._number_now(), count)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: seeds the environment's generator, and draws a new pool of requests and, unless the knob `shop` says
                which, a new shop.
            options: `goal_index` is the number of the request; by default the next one.

        Returns:
            What is seen first, and `info`.

        Raises:
            ArgumentError: no request has this number, or there is no such option.
        """
        index = self._read_goal_index(options or {}, (MOST_SHOPS + 1) * MOST_REQUESTS)
        if index is not None:
            find_request(index)  # refuses a number that no shop has
        super().reset(seed=seed)
        self._seed_requests(None if self._keeps_tasks else seed)
        self._keeps_tasks = False
        self.goal_index = self._requests.next(self._number_now()) if index is None else index
        number, request = find_request(self.goal_index)
        self._current = DeskEpisode(self._make_desk(number), request)
        if self.render_mode == "human":
            self.render()
        return self._observe(), self._make_info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Execute a call.

        Args:
            action: the call as JSON.

        Returns:
            The answer or the state, the score if this call has ended the episode (else 0.0), whether it has, `False`,
            and `info`.

        Raises:
            ArgumentError: the action is not a string.
            StateError: before the first `reset`.
        """
        if not isinstance(action, str):
            raise ArgumentError(f"`action` should be a text. Received {type(action).__name__}")
        episode = self._current
        if episode is None:
            raise StateError("`step` was called before `reset`; call `reset` first")
        is_over = episode.is_over
        if is_over or (self._transient and self.np_random.random() < self._transient):
            episode.lose()
        else:
            episode.act(action)
        if self.render_mode == "human":
            self.render()
        reward = 0.0 if is_over else episode.score
        return self._observe(), reward, episode.is_over, False, self._make_info()

    def _observe(self) -> str:
        return self.episode.write_answer() if self.observation_mode == "answer" else self.episode.write_state()

    def _make_info(self) -> dict[str, Any]:
        episode = self.episode
        desk = episode.desk
        actions = [] if episode.is_over else list(desk.list_calls(episode.state.seen, episode.request.stated))
        return {"task": episode.task_text, "actions": actions, "score": episode.score, "tools": episode.tools}

    def _number_now(self) -> int:
        return self._shop or self.drawn_shop

    def _seed_requests(self, seed: int | None) -> None:
        """Draw the shop and the order of requests, from a stream that is independent of other draws."""
        if seed is not None or not self._number:
            self._number = int(self.np_random.integers(1, MOST_SHOPS))
            self._requests.seed(int(self.np_random.integers(2**31)))

    def _make_desk(self, number: int) -> Desk:
        return make_desk(number, {name: getattr(self, f"_{name}") for name in DESK_KNOBS})

    def set_knobs(self, values: Mapping[str, Value]) -> None:
        """Set these knobs to canonical values, all at once.

        Args:
            values: canonical values, by knob.
        """
        super().set_knobs(values)
        if self._current is not None:
            self._current.desk = self._make_desk(self._current.desk.database.number)

    def save_state(self) -> dict[str, Any]:
        """The state of the episode, without knobs and random generators."""
        return {"goal_index": self.goal_index, "episode": None if self._current is None else self._current.save()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore the state of an episode.

        Args:
            state: from `save_state`.
        """
        self.goal_index = state["goal_index"]
        if state["episode"] is not None:
            number, request = find_request(state["goal_index"])
            self._current = DeskEpisode(self._make_desk(number), request)
            self._current.load(state["episode"])

    @property
    def task(self) -> ServiceRequest:
        """The request of the present episode. For evaluators.

        Raises:
            StateError: before the first `reset`.
        """
        return self.episode.request

    def render(self) -> Any:
        """Show request and last call (`ansi`), or the desk as an array (`rgb_array`) or in a window (`human`)."""
        if self.render_mode is None:
            gym.logger.warn("`render` was called without a `render_mode`; give one to `gym.make`")
            return None
        episode = self.episode
        if self.render_mode == "ansi":
            return episode.write_answer() if episode.calls or episode.answer else episode.task_text
        from drift_envs.drawing import PageWindow
        from drift_envs.envs.tools.picture import draw_desk_picture

        picture: np.ndarray = draw_desk_picture(episode)
        if self.render_mode == "rgb_array":
            return picture
        if self._window is None:
            self._window = PageWindow(self.metadata["render_fps"], "Service desk")
        self._window.show(picture)
        return None

    def close(self) -> None:
        """Close the window."""
        if self._window is not None:
            self._window.close()
            self._window = None
