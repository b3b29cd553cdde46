"""The requests of the episodes.

* `draw_requests` - requests that can be met under all conditions and that drifts affect
* `number_request`, `number_requests`, `find_request` - requests of a shop as numbers, and back
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np

from drift_envs.envs.tools.desk import make_desk
from drift_envs.envs.tools.requests import KINDS, ServiceRequest, list_requests
from drift_envs.envs.tools.search import replay_plans, solve_request
from drift_envs.errors import ArgumentError
from drift_envs.task_sequence import MOST_TASKS, Conditions, take_turns

LEAST_LOSS = 0.05
"""The least loss of the plans that were cheapest before a drift, for a request that counts as affected."""

_HELD_OUT = 5_000
"""The numbers of requests whose wordings are held out begin here."""

_TRIES = 16
"""How many requests are tried for each request of the pool."""

OTHERS = 0x0713
"""The stream of requests outside the pool."""


def number_request(shop: int, index: int, held_out: bool = False) -> int:
    """A request of a shop as one number.

    Args:
        shop: the number of the shop.
        index: the position in `list_requests`.
        held_out: whether it has a wording that is held out.

    Example:
        >>> number_request(7, 12), find_request(number_request(7, 12))[0]
        (70012, 7)
    """
    return shop * MOST_TASKS + index + _HELD_OUT * held_out


def number_requests(shop: int, held_out: bool = False) -> range:
    """The numbers of all requests of a shop.

    Args:
        shop: the number of the shop.
        held_out: whether they have wordings that are held out.
    """
    first = number_request(shop, 0, held_out)
    return range(first, first + len(list_requests(shop, held_out)))


def find_request(number: int) -> tuple[int, ServiceRequest]:
    """The shop and the request of a number.

    Args:
        number: from `number_request`.

    Raises:
        ArgumentError: if there is no such request.
    """
    shop, rest = divmod(number, MOST_TASKS)
    held_out, index = divmod(rest, _HELD_OUT)
    requests = list_requests(shop, bool(held_out))
    if index >= len(requests):
        raise ArgumentError(
            f"`goal_index` should be a request of shop {shop}, which has {len(requests)}. Received {index}"
        )
    return shop, requests[index]


@lru_cache(maxsize=512)
def draw_requests(
    shop: int,
    count: int,
    seed: int,
    without: tuple[int, ...] = (),
    *,
    conditions: Conditions,
    affected: bool = True,
    held_out: bool = False,
) -> tuple[int, ...]:
    """Draw requests of a shop that can be met under all conditions.

    Those that the most drifts affect come first: between two successive conditions, the plans that were cheapest before
    reach at most 95 % of the best score after. For a control, those that the fewest affect. Kinds take turns.

    Args:
        shop: the number of the shop.
        count: how many.
        seed: of the stream.
        without: the numbers of requests that are excluded.
        conditions: knob values under which each can be met, in temporal order.
        affected: whether drifts should affect the requests that come first.
        held_out: whether they have the wordings that are held out.

    Returns:
        The numbers of the requests.

    Raises:
        ArgumentError: if the shop has too few such requests.
    """
    rng = np.random.default_rng(seed)
    requests = list_requests(shop, held_out)
    order = take_turns([request.kind for request in requests], KINDS, rng)
    desks = [make_desk(shop, dict(condition)) for condition in conditions]
    changes = [(old, new) for old, new in pairwise(desks) if old is not new]
    found: dict[int, int] = {}
    met = {find_request(number)[1]._replace(text="") for number in without}  # whatever its wording
    for tried, index in enumerate(order):
        if sum(one == len(changes) for one in found.values()) >= count or (tried >= _TRIES * count <= len(found)):
            break
        number, request = number_request(shop, index, held_out), requests[index]._replace(text="")
        if request in met or any(solve_request(desk, request).score < 1.0 for desk in desks):
            continue
        met.add(request)
        hits = sum(replay_plans(old, new, request) <= 1.0 - LEAST_LOSS for old, new in changes)
        found[number] = hits if affected else len(changes) - hits
    if len(found) < count:
        raise ArgumentError(
            f"shop {shop} should have {count} requests that can be met in every phase of the schedule. "
            f"Found {len(found)}"
        )
    return tuple(sorted(found, key=lambda number: -found[number])[:count])
