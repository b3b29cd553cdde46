"""What a rule-based message policy does where messages show no score.

* `CommonSense` - what is sensible in any environment; environments of which more is known have a subclass
* `choose_untried` - actions with the highest score, then untried ones
* `sense_of` - the common sense of the environment of messages
"""

from __future__ import annotations

from drift_agents.environment import recognise_messages
from drift_agents.policy.message_reader.text import MessageText

OLD_FAILURE, NEW_FAILURE = -0.25, -0.5
"""Values of an action that brought no score, before and after memory was contradicted; 0 for an untried one."""
ENOUGH = 0.999
"""A score from which on no better one is looked for."""


class CommonSense:
    """What is sensible in any environment: to repeat what pays, else to try what is untried.

    Example:
        >>> CommonSense().choose(MessageText("", ("wait", "open")))
        ['wait', 'open']
    """

    follows_scores = True
    """Whether an action is taken because of the score that the messages show for it."""

    def choose(self, read: MessageText) -> list[str]:
        """The actions that make sense, equally good ones in the order of the messages.

        Args:
            read: the parsed messages.
        """
        return choose_untried(read)


def sense_of(read: MessageText) -> CommonSense:
    """The common sense of the environment of messages.

    Args:
        read: the parsed messages.
    """
    sense: CommonSense = recognise_messages(read.text).share("sense")
    return sense


def choose_untried(read: MessageText) -> list[str]:
    """Actions with the highest score, then untried ones, then those that brought none; repeated ones last.

    Of actions that brought none, those last seen before memory was contradicted come first: that may have changed.

    Args:
        read: the parsed messages.
    """
    scores: dict[str, float] = {}
    fresh = {known.action for known in read.known if not read.is_stale(known)}
    for known in read.known:
        brought = known.score or (NEW_FAILURE if known.action in fresh else OLD_FAILURE)
        scores[known.action] = max(scores.get(known.action, -1.0), brought)
    values = {action: scores.get(action, 0.0) - read.times(action) for action in read.actions}
    return [action for action, value in values.items() if value == max(values.values())]
