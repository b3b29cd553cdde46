"""The knobs of the facts.

* `FACTS_KNOBS` - the table
* `EXPLICIT`, `IMPLICIT`, `KINDS` - the kinds of change: a knob each, which counts the changes so far
"""

from __future__ import annotations

from drift_envs.knobs import Knob, KnobTable

MOST_CHANGES = 1000
"""Each kind of change can occur so often."""

MOST_WORLDS = 1_000_000

EXPLICIT = {
    "change": "changes so far in which a new value is said",
    "retract": "changes so far in which a value no longer holds; every second one names a new value",
    "return": "changes so far to and from an earlier value, all said",
    "late": "changes so far that are said, each before news of the old value that arrives late, with its date",
    "rename": "changes so far of an attribute's name together with its value, all said",
}
IMPLICIT = {
    "silent": "changes so far of values that nobody says",
    "hearsay": "false statements so far, each with its speaker",
    "confuse": "statements so far about another person with a similar name",
}
KINDS = (*EXPLICIT, *IMPLICIT)

FACTS_KNOBS = KnobTable(
    (
        Knob("world", 0, (0, MOST_WORLDS), "number of the world; 0 draws one from the seed", "integer"),
        *(Knob(name, 0, (0, MOST_CHANGES), doc, "integer") for name, doc in {**EXPLICIT, **IMPLICIT}.items()),
        Knob("price", 0.1, (0.0, 1.0), "cost of `ask`"),
        Knob("transient", 0.0, (0.0, 1.0), "probability that an answer to `ask` is false"),
    )
)
