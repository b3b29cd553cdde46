"""Where a server's key comes from: the environment or a file, read when it is needed and never shown.

* `KeySource` - the place; it does not hold the key
* `NO_KEY` - what is sent where there is none
"""

from __future__ import annotations

import os
from pathlib import Path

from drift_agents.errors import ModelAccessError

NO_KEY = "none"
"""What is sent where there is none: servers of one's own take anything, the client wants something."""


class KeySource:
    """Where a server's key comes from.

    Args:
        variable: the name of an environment variable.
        file: a file that holds the key and nothing else, instead.

    Example:
        >>> KeySource("A_VARIABLE_THAT_IS_NOT_SET").read() is None
        True
    """

    def __init__(self, variable: str = "OPENAI_API_KEY", file: str | os.PathLike[str] | None = None) -> None:
        self.variable, self.file = variable, None if file is None else Path(file)

    def describe(self) -> str:
        """Where it is, for messages."""
        return f"the environment variable {self.variable}" if self.file is None else f"the file {self.file}"

    def read(self) -> str | None:
        """The key, `None` if there is none.

        Raises:
            ModelAccessError: if the file cannot be read, or does not hold one word.
        """
        if self.file is None:
            return os.environ.get(self.variable, "").strip() or None
        try:
            words = self.file.read_text("utf-8").split()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "is not UTF-8"
            raise ModelAccessError(f"{self.file}: the key cannot be read: {reason}") from error
        if len(words) != 1:
            raise ModelAccessError(f"{self.file}: should hold a key and nothing else. Received {len(words)} words")
        return words[0]
