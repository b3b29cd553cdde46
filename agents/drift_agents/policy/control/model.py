"""A model of a world whose state is a list of numbers, fitted to the records of a prompt.

* `ControlRecords`, `read_control_records` - records as arrays
* `ControlModel`, `fit_model` - the smooth part of the changes, and the effect of each action near the present state
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from drift_agents.matching.smooth import FieldState, difference, expand, fit_smooth, read_field_state
from drift_agents.prompt.conflict import settle
from drift_agents.prompt.view import Recollection

Floats = NDArray[np.float64]

SAME = 0.1
"""Effects that differ by less, in widths of cells, are one and the same when contradictions are settled."""


class ControlRecords(NamedTuple):
    """Records as arrays, one row each.

    Args:
        states: the states before; shape `(records, fields)`.
        actions: the numbers of the actions.
        changes: of all fields, and what the step added to the score; shape `(records, fields + 1)`.
        ended: whether the episode ended.
        support: the numbers of responses, as memory recalls them.
        last: when each was last seen.
    """

    states: Floats
    actions: NDArray[np.intp]
    changes: Floats
    ended: NDArray[np.bool_]
    support: Floats
    last: NDArray[np.intp]


@lru_cache(maxsize=1 << 15)
def _row(item: Recollection) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The numbers of a record: before and after, with both scores."""
    before, after = read_field_state(item.state), read_field_state(item.outcome.state)
    return (*before.numbers, before.score), (*after.numbers, after.score)


def read_control_records(items: Sequence[Recollection], actions: Sequence[str], turning: list[int]) -> ControlRecords:
    """The records of a prompt as arrays; those of other actions are skipped.

    Args:
        items: the records.
        actions: the admissible actions.
        turning: the columns that are angles.
    """
    numbers = {action: number for number, action in enumerate(actions)}
    kept = [item for item in items if item.action in numbers]
    rows = [_row(item) for item in kept]
    before, after = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    return ControlRecords(
        before[:, :-1],
        np.array([numbers[item.action] for item in kept], np.intp),
        difference(after, before, turning),
        np.array([item.outcome.ended for item in kept]),
        np.array([item.support for item in kept]),
        np.array([item.last for item in kept], np.intp),
    )


class ControlModel(NamedTuple):
    """How states change.

    Args:
        smooth: coefficients of the features of a state; shape `(features, fields + 1)`.
        effects: what each action adds near the present state; shape `(actions, fields + 1)`.
        turning: the columns that are angles.
    """

    smooth: Floats
    effects: Floats
    turning: list[int]

    def step(self, states: Floats, actions: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """The states after these actions, and what they add to the score.

        Args:
            states: shape `(cases, fields)`.
            actions: their numbers, shape `(cases,)`.
        """
        change = expand(states, self.turning) @ self.smooth + self.effects[actions]
        return states + change[:, :-1], change[:, -1]


def fit_model(
    evidence: ControlRecords,
    here: FieldState,
    count: int,
    widths: Floats,
    turning: list[int],
    conflict: str,
    neighbours: int,
) -> ControlModel:
    """Fit a model.

    The smooth part is fitted to all records together, with a constant for each action. Then the effect of each
    action is read from its `neighbours` records that are nearest to the present state, so that what has been put
    right nearby counts; contradicting ones are settled by the rule.

    Args:
        evidence: the records; each action has one at least.
        here: the present state.
        count: the number of actions.
        widths: of cells, by field.
        turning: the columns that are angles.
        conflict: the rule, see `drift_agents.prompt.conflict`.
        neighbours: the number of nearest records for each action.
    """
    features = expand(evidence.states, turning)
    own = np.eye(count)[evidence.actions]
    fitted = fit_smooth(np.concatenate([features, own], axis=1), evidence.changes, evidence.support)
    smooth = fitted[: features.shape[1]]
    rests = evidence.changes - features @ smooth
    away = difference(evidence.states, np.broadcast_to(np.array(here.numbers), evidence.states.shape), turning)
    distance = np.square(away / widths).sum(axis=1)
    effects = np.empty((count, rests.shape[1]))
    for action in range(count):
        rows = np.flatnonzero(evidence.actions == action)
        near = rows[np.argsort(distance[rows], kind="stable")[:neighbours]]
        effects[action] = _settle(rests[near], evidence.support[near], evidence.last[near], widths, conflict)
    return ControlModel(smooth, effects, turning)


def _settle(rests: Floats, support: Floats, last: NDArray[np.intp], widths: Floats, conflict: str) -> Floats:
    """The effect that some records show; those that are close to each other are one response."""
    groups: list[list[int]] = []
    for row in range(len(rests)):
        for group in groups:
            if (np.abs(rests[row] - rests[group[0]])[:-1] <= SAME * widths).all():
                group.append(row)
                break
        else:
            groups.append([row])
    sightings = [(tuple(group), float(support[group].sum()), int(last[group].max())) for group in groups]
    chosen = settle(sightings, conflict)
    if conflict == "max":
        chosen = [max(chosen, key=lambda one: float(rests[list(one[0]), -1].mean()))]
    total = np.zeros(rests.shape[1])
    for rows, share in chosen:
        total += share * np.average(rests[list(rows)], axis=0, weights=support[list(rows)])
    return total
