r"""What a message of a language model says: the one reader of policies, dialogues and the faces for other libraries.

* `content` - a message of any shape as text, its tool calls, and thoughts, which never act
* `wordings` - actions in lines and sentences
* `answers` - the data that a text holds, by a JSON Schema, and the action that a message names

An action is read from the first of these that a message has, and refused if they name two different ones there:

1. JSON, tags, calls, and the last line `Action: ...`
2. a line or a marked word that is the action alone, and sentences such as "The answer is ..."
3. the words of an action of several words
"""

from drift_envs.messages.answers import (
    ANSWER_TAG,
    ParsedAnswer,
    ends_with_answer,
    is_scalar,
    read_action,
    read_answer,
    read_named,
)
from drift_envs.messages.content import read_arguments, read_content, read_message, without_thoughts, write_call

__all__ = [
    "ANSWER_TAG",
    "ParsedAnswer",
    "ends_with_answer",
    "is_scalar",
    "read_action",
    "read_answer",
    "read_arguments",
    "read_content",
    "read_message",
    "read_named",
    "without_thoughts",
    "write_call",
]
