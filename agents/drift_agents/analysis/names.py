"""What parts are called in tables, curves and legends."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from drift_agents.registry.part_file import part_files
from drift_agents.registry.tables import STORES

MEMORY_NAMES = {
    "none": "No memory",
    "vanilla": "Vanilla",
    "full_transcript": "Full transcript",
    "memory_bank": "MemoryBank",
    "voyager": "Voyager",
    "generative_agents": "Generative Agents",
    "beliefmem": "BeliefMem",
    "managed": "Managed",
    "adamem": "AdaMEM",
    "synapse": "Synapse",
    "reasoning_bank": "ReasoningBank",
    "consensus": "Consensus",
}
VERIFIER_NAMES = {
    "glove": "GLOVE",
    "glove_active": "GLOVE, active test",
    "glove_passive": "GLOVE, passive test",
    "glove_spread": "GLOVE, doubt spreads",
}
REFERENCE_NAMES = {
    "oracle_realign": "oracle realign",
    "oracle_reset": "oracle reset",
    "oracle_truth": "oracle truth",
}
CLAIRVOYANT = "clairvoyant"
ALONE = {CLAIRVOYANT: "Clairvoyant"}
"""Players without memory and verifier, by policy."""


def display_name(label: str, names: Mapping[str, str]) -> str:
    """A part's label with the display name of the part in the place of its name.

    Example:
        >>> display_name("glove(budget=2)", VERIFIER_NAMES), display_name("mine", VERIFIER_NAMES)
        ('GLOVE (budget=2)', 'mine')
    """
    name, mark, options = label.partition("(")
    return f"{names.get(name, name)}{mark and ' ('}{options}"


_STORE = re.compile(
    r"store\((?:(?P<options>.*), )?(?:store=(?:.+\.py:)?)?(?P<name>\w+)"
    r"(?:@(?P<digest>\w{16})\w{48}|\((?P<own>.*)\))?(?:, (?P<more>.*))?\)"
)
_DIGEST = re.compile(r"sha256=(\w{16})")


def name_service(label: str) -> str:
    """The label of a memory service of one's own as that of a part of its name; other labels as they are.

    Example:
        >>> name_service("store(MyMemory, k=3)"), name_service("store(chroma)"), name_service("vanilla(k=3)")
        ('MyMemory(k=3)', 'store(chroma)', 'vanilla(k=3)')
    """
    found = _STORE.fullmatch(label)
    if found is None or found["name"] in STORES.names():
        return label
    digest = None if found["digest"] is None else f"sha256={found['digest']}"
    options = ", ".join(filter(None, (digest, found["own"], found["options"], found["more"])))
    return f"{found['name']}({options})" if options else found["name"]


def shorten_labels(labels: Iterable[str], experiment: Any) -> dict[str, str]:
    """Labels as readers see them: memory services by their own name, and parts of files without the file's hash.

    Labels that only the hash tells apart have the file's path in its place.

    Args:
        experiment: that of the run as plain data, which names files with their hashes; of others the hash stays.

    Example:
        >>> new, old = "0123456789abcdef", "fedcba9876543210"
        >>> labels = [f"Mine(sha256={new})", f"Mine(sha256={old})", f"Other(sha256={new})"]
        >>> shown = shorten_labels(labels, [f"new.py:Mine@{4 * new}", f"old.py:Mine@{4 * old}"])
        >>> list(shown.values())
        ['Mine(new.py)', 'Mine(old.py)', 'Other']
    """
    files = {file.sha256[:16]: file.path for file in part_files(experiment).values()}
    named = {label: name_service(label) for label in labels}
    short = {label: re.sub(rf"{_DIGEST.pattern}(, )?", "", name).replace("()", "") for label, name in named.items()}
    times = Counter(short.values())
    return {
        label: short[label]
        if times[short[label]] == 1
        else _DIGEST.sub(lambda digest: files.get(digest[1], digest[0]), name)
        for label, name in named.items()
    }
