"""One episode: the turns of a task, the calls so far, and the score.

* `BfclEpisode` - executes calls, and writes observations
* `play_reference` - the score of a task's published calls, written for one interface and sent to another
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from drift_envs.envs.bfcl.engines import Engines, replay_reference
from drift_envs.envs.bfcl.interface import BfclInterface, is_error
from drift_envs.envs.bfcl.package import FINISH, BfclTask, EngineCall, load_tasks
from drift_envs.tool_calls import Refusal


class BfclEpisode:
    """The state of an episode.

    Args:
        interface: the tools; replaced from outside when knobs change.
        task: the task.
    """

    def __init__(self, interface: BfclInterface, task: BfclTask) -> None:
        self.interface, self.task = interface, task
        self.engines = Engines(task)
        self.turn = 0
        """How many turns were ended."""
        self.calls: tuple[str, ...] = ()
        """The calls that were answered without an error, as text."""
        self.answer: dict[str, Any] = {}
        self._is_right = True
        """Whether every turn so far has ended in the state that the published calls reach."""

    @property
    def is_over(self) -> bool:
        """Whether all turns were ended."""
        return self.turn == len(self.task.requests)

    @property
    def score(self) -> float:
        """1.0 at the end if every turn has ended in the right state, else 0.0."""
        return float(self.is_over and self._is_right)

    @property
    def request(self) -> str:
        """What the user said last."""
        return self.task.requests[min(self.turn, len(self.task.requests) - 1)]

    @property
    def task_text(self) -> str:
        """What the user said last, and the tools."""
        finish = self.interface.write(EngineCall(FINISH.name, {}))
        return f"{self.request}\n\nTools, called by JSON as {finish}:\n{self.interface.summarize(self.task)}"

    def act(self, text: str) -> str:
        """Execute a call.

        Args:
            text: the call as JSON.

        Returns:
            The answer as JSON.
        """
        try:
            if self.is_over:
                raise Refusal("conflict", "all requests were ended")
            call = self.interface.parse(text, self.task)
            answer = self._end_turn() if call.tool == FINISH.name else self.engines.execute(call)
        except Refusal as refusal:
            self.answer = self.interface.show_refusal(refusal)
            return self.write_answer()
        self.answer = self.interface.show_answer(answer)
        if not is_error(answer):
            self.calls = (*self.calls, json.dumps(json.loads(text)))
        return self.write_answer()

    def _end_turn(self) -> dict[str, Any]:
        """End the turn; one for which no call was published is not checked, as in BFCL."""
        if self.task.reference[self.turn]:
            self._is_right &= self.engines.read_state() == replay_reference(self.task.number)[self.turn + 1]
        self.turn += 1
        return {"ok": True} if self.is_over else {"request": self.request}

    def write_answer(self) -> str:
        """The last answer as JSON; before the first call, the request."""
        return json.dumps(self.answer or ({"answer": None} if self.engines.history else {"request": self.request}))

    def write_state(self) -> str:
        """The state as JSON."""
        requests = json.dumps(list(self.task.requests[: self.turn + 1]))
        return f'{{"requests": {requests}, "calls": [{", ".join(self.calls)}], "answer": {json.dumps(self.answer)}}}'

    def save(self) -> dict[str, Any]:
        """The state as plain data."""
        return {
            "turn": self.turn,
            "history": self.engines.history,
            "calls": self.calls,
            "answer": self.answer,
            "is_right": self._is_right,
        }

    def load(self, saved: Mapping[str, Any]) -> None:
        """Restore a state.

        Args:
            saved: from `save`.
        """
        self.engines = Engines(self.task, saved["history"])
        self.turn, self.calls = saved["turn"], saved["calls"]
        self.answer, self._is_right = saved["answer"], saved["is_right"]


def play_reference(number: int, written: BfclInterface, sent: BfclInterface) -> float:
    """The score of a task's published calls, written for one interface and sent to another.

    Args:
        number: the number of the task.
        written: the interface for which the calls are written.
        sent: the interface that executes them.
    """
    task = load_tasks()[number]
    episode = BfclEpisode(sent, task)
    for turn in task.reference:
        for call in turn:
            episode.act(written.write(call))
        episode.act(written.write(EngineCall(FINISH.name, {})))
    return episode.score
