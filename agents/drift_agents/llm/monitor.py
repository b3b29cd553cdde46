"""Stops a run whose language model does not answer in a usable form.

* `AnswerMonitor` - counts answers that are invalid or cut off
"""

from __future__ import annotations

import threading

from drift_agents.errors import UnusableAnswersError

LEAST = 50
"""Answers before a run is stopped."""
MOST_INVALID = 0.2
"""Share of answers that may be invalid."""


class AnswerMonitor:
    """Counts answers that are invalid or cut off, and raises an error when they are too many.

    An answer counts as invalid after all re-asks. A run in which more than a fifth is invalid measures the form of
    the answers, and not what a memory contributes.

    Args:
        least: answers before an error is raised.
        most: the share of answers that may be invalid.

    Example:
        >>> monitor = AnswerMonitor(least=1)
        >>> monitor.count(is_valid=True)
        >>> monitor.count(is_valid=False)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        drift_agents.errors.UnusableAnswersError: 1 of 2 answers are invalid: use a server that restricts answers ...
    """

    def __init__(self, least: int = LEAST, most: float = MOST_INVALID) -> None:
        self.least, self.most = least, most
        self.answers = self.invalid = self.cut = 0
        self._lock = threading.Lock()

    def count(self, is_valid: bool, is_cut: bool = False) -> None:
        """Count an answer.

        Args:
            is_valid: whether it has the requested form.
            is_cut: whether it was cut off while the model was thinking.

        Raises:
            UnusableAnswersError: if too many answers are invalid.
        """
        with self._lock:
            self.answers += 1
            self.invalid += not is_valid
            self.cut += is_cut and not is_valid
            if self.answers < self.least or self.invalid <= self.most * self.answers:
                return
            raise UnusableAnswersError(self._describe())

    def _describe(self) -> str:
        found = f"{self.invalid} of {self.answers} answers are invalid"
        if 2 * self.cut >= self.invalid:
            found += (
                f", {self.cut} of them cut off while thinking: raise --max-tokens, or limit the thoughts, as with "
                "--parameter reasoning_effort=low"
            )
        else:
            found += ": use a server that restricts answers to a schema, or a larger model"
        return f"{found}. --keep-going continues all the same"
