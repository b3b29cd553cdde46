"""BFCL's multi-turn tools with knobs.

* `BfclTools` - the requests of a task in turn, its tools as JSON, and engines whose state is compared in the end
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from drift_envs.envs.bfcl.episode import BfclEpisode
from drift_envs.envs.bfcl.interface import BfclInterface, make_interface
from drift_envs.envs.bfcl.knobs import BFCL_KNOBS
from drift_envs.envs.bfcl.package import EngineCall, load_tasks
from drift_envs.envs.bfcl.pool import is_played, make_sequence
from drift_envs.errors import ArgumentError
from drift_envs.knobs import KnobTable, Value
from drift_envs.package_tools import PackageToolsEnv
from drift_envs.registration import IDS, EnvParts
from drift_envs.tunable import KnobAttribute


class BfclTools(PackageToolsEnv[BfclEpisode]):
    """The multi-turn tasks of BFCL (Patil et al., 2025) in the engines of the package `bfcl-eval`, with drifting tools.

    A user states requests in turn; tools for files, trading, travel, a vehicle, tickets, messages, posts and sums meet
    them. An action is a call as JSON, `{"tool": "cd", "arguments": {"folder": "temp"}}`. `finish` ends a turn and
    answers with the next request; after the last turn the episode ends. The score, which is the reward then, is 1.0 if
    after every turn the engines are in the state that the published calls of the task reach (turns without published
    calls are not compared), else 0.0.

    The observation is the last answer as JSON, at first the request; with `observation_mode="state"` it is a JSON
    object: `requests` (so far), `calls` (those that were answered without an error) and `answer` (the last one).

    Knobs, with defaults and bounds: `drift-envs list --env DriftBfcl-v0`.

    | info | meaning |
    |---|---|
    | `task` | the last request, and the tools, a line each |
    | `actions` | the calls that need no argument, to choose from; any other call is taken as well |
    | `score` | the score, 0.0 before the end |
    | `tools` | the tools with the JSON Schemas of their arguments |

    `reset(options={"goal_index": i})` selects the task `multi_turn_base_i`.

    Args:
        render_mode: `ansi` or `None`.
        observation_mode: `answer` or `state`.
        pool: the number of recurring tasks; `None` draws from all tasks.
        order: `shuffled` (each task once in every round of the pool) or `fixed`.
        conditions: knob values under each of which the published calls, carried through the drift, are right.
        affected: whether tasks come first that changes between two conditions affect, or those that none does.

    Raises:
        ArgumentError: an argument breaks a rule.
        KnobError: a condition names a tool or an argument that there is not.
        MissingDependencyError: the package is not installed.
    """

    knobs: ClassVar[KnobTable] = BFCL_KNOBS
    parts: ClassVar[EnvParts | None] = IDS["DriftBfcl-v0"]
    _make_tasks = staticmethod(make_sequence)
    most_tasks = 1_000
    names = KnobAttribute()
    required = KnobAttribute()
    errors = KnobAttribute()
    units = KnobAttribute()
    defaults = KnobAttribute()

    def _make_interface(self, knobs: Mapping[str, Value], episode: BfclEpisode | None = None) -> BfclInterface:
        return make_interface(knobs)

    def _check_number(self, number: int) -> None:
        if number not in load_tasks() or not is_played(number):
            raise ArgumentError(f"`goal_index` should be the number of a task that can be scored. Received {number}")

    def translate(self, call: EngineCall) -> str:
        """The text of a call of the package under the present knobs. For evaluators.

        Args:
            call: the call, by the package's names and units.
        """
        return make_interface(self.read_knobs()).write(call)

    def _start(self, number: int) -> BfclEpisode:
        return BfclEpisode(make_interface(self.read_knobs()), load_tasks()[number])

    def _make_info(self) -> dict[str, Any]:
        episode = self.episode
        actions = [] if episode.is_over else episode.interface.list_calls(episode.task)
        return {
            "task": episode.task_text,
            "actions": actions,
            "score": episode.score,
            "tools": episode.interface.describe(episode.task),
        }
