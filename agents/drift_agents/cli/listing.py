"""The command `drift-agents list`.

* `read_sections` - all names for experiment files, with one line about each
* `print_list` - the same as a table
* `read_summaries` - the shipped experiments, with the line `about` of each
"""

from __future__ import annotations

import re
from importlib import resources

from rich.console import Console
from rich.table import Table
from rich.text import Text

from drift_agents.registry import CONTROLLERS, ENVIRONMENTS, MEMORIES, POLICIES, TEAMS, VERIFIERS

ABOUT = re.compile(r"^about: *(.+)$", re.MULTILINE)
"""The line of an experiment file that `list` prints. Checking a whole file would take a hundred times as long."""

REFERENCES = {
    "oracle_truth": "An agent whose memory loses every false record at once, also those of false responses.",
    "oracle_realign": "An agent whose memory loses exactly the false records at the tick of the drift.",
    "oracle_reset": "An agent whose memory is emptied at the tick of the drift.",
    "clairvoyant": "The optimal policy of every tick.",
}


def read_sections() -> dict[str, dict[str, str]]:
    """All names for experiment files by kind, with one line about each.

    Example:
        >>> read_sections()["references"]["clairvoyant"]
        'The optimal policy of every tick.'
    """
    return {
        "experiments": read_summaries(),
        "memories": MEMORIES.summaries(),
        "verifiers": VERIFIERS.summaries(),
        "controllers": CONTROLLERS.summaries(),
        "teams": TEAMS.summaries(),
        "policies": POLICIES.summaries(),
        "environments": ENVIRONMENTS.summaries(),
        "references": REFERENCES,
    }


def print_list(console: Console) -> None:
    """Print the sections as a table."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for title, rows in read_sections().items():
        table.add_row(Text(title, style="bold underline"), "")
        for name, about in rows.items():
            table.add_row(Text(f"  {name}"), Text(about))
        table.add_row("", "")
    console.print(table)


def read_summaries() -> dict[str, str]:
    """The line `about` of every shipped experiment, by name.

    Example:
        >>> read_summaries()["false-alarms"]
        'slippery lakes without and with drift - alarms in 1,000 interactions, drifts found, delays'
    """
    folder = resources.files("drift_agents") / "experiment" / "experiments"
    found = {}
    for file in sorted(folder.iterdir(), key=lambda file: file.name.removesuffix(".yaml")):
        if file.name.endswith(".yaml"):
            match = ABOUT.search(file.read_text("utf-8"))
            found[file.name.removesuffix(".yaml")] = "" if match is None else match[1]
    return found
