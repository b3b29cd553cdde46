"""A lifetime of an environment as a dialogue with a language model."""

from __future__ import annotations

from typing import Any, NamedTuple

from drift_envs.errors import ArgumentError, StateError
from drift_envs.integrations.lifetime import TextLifetime
from drift_envs.messages import read_action

_SETTING = (
    "You act in an environment of text, one episode after another, and collect a score in each episode. Every message "
    "shows the present state and the admissible actions."
)
_CHANGE = "All episodes belong to one lifetime; what was true in earlier episodes may no longer be true."

INSTRUCTIONS = f"{_SETTING} Answer with a line `Action: ` followed by one action, spelled as it is shown. {_CHANGE}"
"""The first message of a dialogue, from the system."""

TOOL_INSTRUCTIONS = f"{_SETTING} Answer by calling the tool `act` with one action, spelled as it is shown. {_CHANGE}"
"""The same for a model that acts by calling a tool."""

PATIENCE = 3
"""Messages without a readable action, one after the other, that abandon the episode."""


class Turn(NamedTuple):
    """What a dialogue answers to an action.

    Args:
        message: the next message; without a state if the lifetime is over.
        reward: the score of the episode that ended with this turn, 0 if none did.
        is_over: whether the lifetime is over.
    """

    message: str
    reward: float
    is_over: bool


class Dialogue:
    r"""A lifetime as messages of a chat: states from the user, actions from the assistant.

    The transcript is all the memory that a language model needs; a harness may shorten it. An episode is abandoned
    after `PATIENCE` messages in a row without a readable action, so that every lifetime ends.

    Args:
        life: with `rounds` or `episodes`, so that it has an end.

    Attributes:
        episodes: the number of episodes that have ended.

    Raises:
        ArgumentError: the lifetime has no end.

    Example:
        >>> dialogue = Dialogue(TextLifetime("DriftFrozenLake-v0", rounds=1))
        >>> for line in dialogue.open().splitlines():
        ...     print(line[:72])
        Episode 1
        Task: You walk over a frozen lake of 6 rows x 6 columns, from [0, 0]. Re
        State: {"cur_pos": [0, 0], "tile_type": "S", "gold_collected": 0}
        Actions: 0 | 1 | 2 | 3
        >>> turn = dialogue.reply("The goal is below.\nAction: 1")
        >>> print(turn.message)
        State: {"cur_pos": [1, 0], "tile_type": "F", "gold_collected": 0}
        Actions: 0 | 1 | 2 | 3
    """

    def __init__(self, life: TextLifetime) -> None:
        if life.length is None:
            raise ArgumentError("`life` should have `rounds` or `episodes`, so that it ends. Received neither")
        self.episodes = 0
        self._life = life
        self._unread = 0

    def open(self) -> str:
        """Begin the first episode.

        Returns:
            The first message of the user; `INSTRUCTIONS` belongs before it.
        """
        return _show_episode(self._life.reset())

    def reply(self, message: Any) -> Turn:
        """Answer a message of the assistant.

        Args:
            message: with an action: a text, or a message with tool calls, see `drift_envs.messages.read_message`.

        Raises:
            StateError: the dialogue was not opened, or the lifetime is over.
        """
        if self._life.is_over:
            raise StateError("the lifetime is over; make another one")
        action, errors = read_action(message, self._life.observe()["actions"])
        try:
            if action is None:
                raise ArgumentError("; ".join(errors))
            result = self._life.act(action)
        except ArgumentError as error:
            self._unread += 1
            result = self._life.observe()
            if self._unread < PATIENCE:
                return Turn(f"No action was taken: {error}\n{_show_state(result)}", 0.0, False)
            self._life.abandon()
            return self._end(result, f"The episode is abandoned after {PATIENCE} messages without an action.")
        self._unread = 0
        if result["ended"]:
            return self._end(result, f"{_show_state(result, False)}\nThe episode has ended.")
        return Turn(_show_state(result), 0.0, False)

    def _end(self, result: dict[str, Any], text: str) -> Turn:
        """The turn with which an episode ends, and the next one begins."""
        self._unread = 0
        self.episodes += 1
        text = f"{text} Its score is {result['score']:g}."
        if self._life.is_over:
            return Turn(text, result["score"], True)
        return Turn(f"{text}\n\n{_show_episode(self._life.reset())}", result["score"], False)


def _show_episode(result: dict[str, Any]) -> str:
    return f"Episode {result['episode'] + 1}\nTask: {result['task']}\n{_show_state(result)}"


def _show_state(result: dict[str, Any], with_actions: bool = True) -> str:
    lines = [f"The action was refused: {result['error']}"] if "error" in result else []
    lines.append(f"State: {result['observation']}")
    if with_actions:
        lines.append(f"Actions: {' | '.join(result['actions'])}")
    return "\n".join(lines)
