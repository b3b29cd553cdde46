"""The oracle of BFCL's tools: the published calls, carried through every drift."""

from __future__ import annotations

from typing import Any

from drift_envs.envs.bfcl.package import FINISH
from drift_envs.oracle.published import PublishedOracle
from drift_envs.tasks.package_tools import PackageCall


class BfclOracle(PublishedOracle):
    """The oracle of BFCL's tools, see `PublishedOracle`."""

    def action(self, state: Any, tick: int, left: int | None = None) -> str:
        """The published call after those that were executed; `finish` at the end of a turn, or off this way.

        Args:
            state: the JSON text.
            tick: the tick.
            left: not used, since the published calls are the only way that is known.
        """
        episode = self._restore(state, tick)
        made, reference = episode.history, episode.task.reference
        planned = [call for turn in reference[: episode.turn + 1] for call in turn]
        is_on_way = [call.tool for call in made] == [call.tool for call in planned[: len(made)]]
        call = planned[len(made)] if is_on_way and len(made) < len(planned) else PackageCall(FINISH.name, {})
        return str(episode.interface.write(call))


make_oracle = BfclOracle
