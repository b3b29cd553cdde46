"""The oracle of tau2-bench's domains: the published actions, carried through every drift."""

from __future__ import annotations

from typing import Any

from drift_envs.envs.tau2.env import plan_reference
from drift_envs.oracle.published import PublishedOracle


class Tau2Oracle(PublishedOracle):
    """The oracle of tau2-bench's domains, see `PublishedOracle`."""

    def action(self, state: Any, tick: int, left: int | None = None) -> str:
        """The published action after those that were executed; `finish` at the end, or off this way.

        Args:
            state: the JSON text.
            tick: the tick.
            left: not used, since the published actions are the only way that is known.
        """
        episode = self._restore(state, tick)
        planned = plan_reference(episode.task.number, episode.interface)
        made = len(episode.done)
        is_on_way = list(episode.done) == planned[:made] and made < len(planned)
        return str(episode.interface.write(planned[made] if is_on_way else planned[-1]))


make_oracle = Tau2Oracle
