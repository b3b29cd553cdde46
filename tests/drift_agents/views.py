"""What tests of views share: a view of the lake, a longer history for any view, and that a view is plain data."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import FrozenInstanceError, fields, replace

from drift_agents.prompt.view import PromptView, Recollection
from drift_agents.types import Outcome

LAKE_TASK = (
    "You walk over a frozen lake of 6 rows x 6 columns, from [0, 0]. Reach the destination with the highest score and "
    "avoid holes. There are a total of 2 destination(s): [3, 5], [5, 5]. The highest score is 1. "
    "Actions: 0 left, 1 down, 2 right, 3 up."
)


def on_ice(row: int, column: int, tile: str = "F", gold: float = 0) -> str:
    return json.dumps({"cur_pos": [row, column], "tile_type": tile, "gold_collected": gold})


LAKE_VIEW = PromptView(
    LAKE_TASK,
    on_ice(3, 2),
    ("0", "1", "2", "3"),
    (
        Recollection(on_ice(3, 2), "2", Outcome(on_ice(3, 3), 0.0, False), 2.0, 40),
        Recollection(on_ice(3, 2), "1", Outcome(on_ice(4, 2), 0.0, False), 1.0, 41, verified=True),
    ),
    (
        Recollection(on_ice(3, 3), "2", Outcome(on_ice(3, 5, "G", 0.5), 0.5, True), 1.0, 30),
        Recollection(on_ice(4, 2), "1", Outcome(on_ice(5, 5, "G", 1), 1.0, True), 1.0, 31),
    ),
    ("Keep away from the middle.",),
    step=50,
    doubt_since=45,
    environment="frozen_lake",
)


def with_history(view: PromptView) -> PromptView:
    """The view with an episode of one step, and values with steps where there are records."""
    here = tuple(
        item._replace(value_estimate=item.outcome.score or 1.0, steps_to_go=None if item.outcome.ended else 3)
        for item in view.here
    )
    here = tuple(item if item.outcome.ended else item._replace(visits=2) for item in here)
    moves = tuple(item._replace(last=view.step - 1) for item in view.elsewhere[:1])
    return replace(view, here=here, moves=moves, visits=((view.actions[0], 2),))


def assert_plain(value: object) -> None:
    """Texts, numbers, and tuples of them: no object that leads anywhere, nothing to call, nothing to write into."""
    if isinstance(value, PromptView):
        assert type(value) is PromptView
        with suppress(FrozenInstanceError):
            value.state = ""  # type: ignore[misc]
            raise AssertionError("a view can be written into")
        assert vars(value).keys() == {field.name for field in fields(value)}
        value = tuple(vars(value).values())
    if type(value) in (tuple, Recollection, Outcome):
        for part in value:  # type: ignore[attr-defined]
            assert_plain(part)
    else:
        assert value is None or type(value) in (str, int, float, bool), repr(value)
