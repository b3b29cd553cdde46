"""One episode at the desk: the state with what was shown and called so far, as JSON.

* `DeskEpisode` - executes calls, and writes observations
* `restore_episode` - an episode at the state that a JSON text shows, for the oracle
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from drift_envs.envs.tools.database import NO_RECORD
from drift_envs.envs.tools.desk import Desk
from drift_envs.envs.tools.interface import ToolInterface
from drift_envs.envs.tools.requests import ServiceRequest, find_goal, score
from drift_envs.envs.tools.state import DeskState, ids_in
from drift_envs.errors import ArgumentError
from drift_envs.knobs import thaw
from drift_envs.tool_calls import Refusal


class DeskEpisode:
    """The state of an episode, with what was shown and called so far.

    Args:
        desk: the desk; replaced from outside when knobs change.
        request: the request.

    Example:
        >>> from drift_envs.envs.tools.desk import make_desk
        >>> from drift_envs.envs.tools.requests import list_requests
        >>> episode = DeskEpisode(make_desk(7, {}), list_requests(7)[0])
        >>> episode.act('{"tool": "finish"}'), episode.is_over, episode.score
        ('{"ok": true}', True, 0.0)
    """

    def __init__(self, desk: Desk, request: ServiceRequest) -> None:
        self.desk, self.request = desk, request
        self.state = DeskState()
        self.records: dict[str, dict[str, Any]] = {}
        """What reads have shown, by id, as they have shown it."""
        self.calls: tuple[str, ...] = ()
        """The calls that were answered without an error, as text."""
        self.answer: dict[str, Any] = {}
        self.score = 0.0
        self._described: tuple[ToolInterface, list[dict[str, Any]]] | None = None

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools with the JSON Schemas of their arguments; objects of this episode alone."""
        interface = self.desk.interface
        if self._described is None or self._described[0] is not interface:
            self._described = interface, thaw(interface.description)
        return self._described[1]

    @property
    def is_over(self) -> bool:
        """Whether the request was ended."""
        return bool(self.state.ended)

    @property
    def task_text(self) -> str:
        """The request, the policy page and the tools in words."""
        desk = self.desk
        return (
            f"{self.request.text}\n\n{desk.page}\n\n"
            f"Tools, called by JSON as {desk.interface.write('finish', {})}:\n{desk.interface.summary}"
        )

    def act(self, text: str) -> str:
        """Execute a call.

        Args:
            text: the call as JSON.

        Returns:
            The answer as JSON.
        """
        self.state, answer = self.desk.call(self.state, text)
        self.answer = answer.content
        if answer.call:
            self.calls = (*self.calls, answer.call)
            for key, fields in answer.records.items():
                self.records[key] = {**self.records.get(key, {}), **fields}
        if self.state.ended:
            goal = find_goal(self.request, self.desk.rules)
            self.score = score(self.desk.database, self.request, goal, self.state)
        return self.write_answer()

    def lose(self) -> str:
        """Answer falsely, as if there were no such record; nothing is executed."""
        self.answer = self.desk.refuse(Refusal(*NO_RECORD)).content
        return self.write_answer()

    def write_answer(self) -> str:
        """The last answer as JSON; before the first call, the request."""
        return json.dumps(self.answer or ({"answer": None} if self.calls else {"request": self.request.text}))

    def write_state(self) -> str:
        """The state as JSON."""
        shop, request = self.desk.database.number, json.dumps(self.request.text)
        return (
            f'{{"shop": {shop}, "request": {request}, "records": {json.dumps(self.records)}, '
            f'"calls": [{", ".join(self.calls)}], "answer": {json.dumps(self.answer)}}}'
        )

    def save(self) -> dict[str, Any]:
        """The state as plain data."""
        return {
            "state": tuple(self.state),
            "records": dict(self.records),
            "calls": self.calls,
            "answer": self.answer,
            "score": self.score,
        }

    def load(self, saved: Mapping[str, Any]) -> None:
        """Restore a state.

        Args:
            saved: from `save`.
        """
        self.state = DeskState(*saved["state"])
        self.records, self.calls = dict(saved["records"]), saved["calls"]
        self.answer, self.score = saved["answer"], saved["score"]


def restore_episode(desk: Desk, request: ServiceRequest, text: str, others: Iterable[Desk] = ()) -> DeskEpisode:
    """An episode at the state that a JSON text shows.

    Its calls count as executed by this desk, or, where this one would refuse them, by the first of the others that
    would not.

    Args:
        desk: the desk.
        request: the request.
        text: the JSON text.
        others: the same shop with other knob values.

    Raises:
        ArgumentError: if it is no state of this environment.
    """
    episode = DeskEpisode(desk, request)
    try:
        shown = json.loads(text)
        episode.records = dict(shown["records"])
        episode.calls = tuple(json.dumps(call) for call in shown["calls"])
        episode.answer = dict(shown["answer"])
        seen = frozenset(_read_id(one) for one in ids_in([*episode.records.values()]))
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise ArgumentError(f"`state` should be a state of the desk as JSON. Received {str(text)[:200]!r}") from error
    for call in episode.calls:
        for one in (desk, *others):
            after = _replay(one, episode.state, call)
            if after is not None:
                episode.state = after
                break
    episode.state = episode.state._replace(seen=seen)
    return episode


def _read_id(value: Any) -> int:
    """The number of an id in any form."""
    return int(str(value).rpartition("-")[2])


def _replay(desk: Desk, state: DeskState, text: str) -> DeskState | None:
    """The state after a call whose records count as looked up; `None` if it is refused."""
    try:
        call = desk.interface.parse(text)
        return None if call is None else desk.execute(state, call, is_replay=True)[0]
    except Refusal:
        return None
