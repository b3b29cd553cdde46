"""The ten tasks.

* `WebTask` - a task page: what the drifting layer and the text form need
* `TASKS` - by the name of the page
* `read_values` - the values that an instruction names
"""

from __future__ import annotations

import re
from typing import NamedTuple


class WebTask(NamedTuple):
    """A task page.

    Args:
        controls: the CSS selector of the controls that the knob `copies` copies.
        values: a pattern whose groups are the values that an instruction names.
        limit: the steps of an episode.
    """

    controls: str
    values: str
    limit: int = 10


TASKS = {
    "click-button": WebTask("#area button", r'the "([^"]+)" button'),
    "click-dialog": WebTask(".ui-dialog-titlebar button", r'the "([^"]+)"'),
    "click-tab": WebTask("#area ul > li", r"(Tab #\d)"),
    "enter-text": WebTask("#subbtn", r'"([^"]*)"'),
    "login-user": WebTask("#subbtn", r'"([^"]*)"'),
    "choose-list": WebTask("#area button", r"Select (.*) from the list"),
    "navigate-tree": WebTask(".file, .folder", r'named "([^"]+)"', 20),
    "search-engine": WebTask("#search", r'enter "([^"]+)"|the (\w+) search'),
    "book-flight": WebTask("#search", r"the (\w+) one-way|from: (.*?)(?= to:)|to: (.*?)(?= on )|on (\S*)\.$", 30),
    "use-autocomplete": WebTask("#subbtn", r'"([^"]*)"'),
}
"""The tasks, by the name of their page in MiniWoB++."""


def read_values(task: str, instruction: str) -> tuple[str, ...]:
    """The values that an instruction names.

    Args:
        task: one of `TASKS`.
        instruction: the instruction as the page shows it.

    Example:
        >>> read_values("login-user", 'Enter the username "tula" and the password "8F" into the text fields.')
        ('tula', '8F')
    """
    found = re.finditer(TASKS[task].values, instruction)
    return tuple(value for match in found for value in match.groups() if value)
