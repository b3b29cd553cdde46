"""The requests of the episodes, and their order.

* `RequestSequence` - a pool of recurring requests, with a random stream of its own
* `draw_requests` - requests that can be met under all conditions and that drifts affect
* `number_request`, `find_request` - a request of a shop as one number, and back
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from drift_envs.envs.tools.desk import DESK_KNOBS, make_desk
from drift_envs.envs.tools.requests import KINDS, ServiceRequest, list_requests
from drift_envs.envs.tools.search import replay_plans, solve_request
from drift_envs.errors import ArgumentError
from drift_envs.knobs import Value

ORDERS = ("shuffled", "fixed")

LEAST_LOSS = 0.05
"""The least loss of the plans that were cheapest before a drift, for a request that counts as affected."""

MOST_REQUESTS = 10_000
"""No shop has as many requests."""

_HELD_OUT = 5_000
"""The numbers of requests whose wordings are held out begin here."""

_TRIES = 16
"""How many requests are tried for each request of the pool."""

_OTHERS = 0x0713
"""The stream of requests outside the pool."""

Conditions = tuple[tuple[tuple[str, Value], ...], ...]


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
    return shop * MOST_REQUESTS + index + _HELD_OUT * held_out


def find_request(number: int) -> tuple[int, ServiceRequest]:
    """The shop and the request of a number.

    Args:
        number: from `number_request`.

    Raises:
        ArgumentError: if there is no such request.
    """
    shop, rest = divmod(number, MOST_REQUESTS)
    held_out, index = divmod(rest, _HELD_OUT)
    requests = list_requests(shop, bool(held_out))
    if index >= len(requests):
        raise ArgumentError(
            f"`goal_index` should be a request of shop {shop}, which has {len(requests)}. Received {index}"
        )
    return shop, requests[index]


def freeze_conditions(conditions: Sequence[Mapping[str, Value]]) -> Conditions:
    """Conditions in a form that can be hashed; only the knobs on which a desk depends.

    Args:
        conditions: knob values, in temporal order.
    """
    return tuple(tuple((name, one[name]) for name in DESK_KNOBS if one.get(name)) for one in conditions) or ((),)


def draw_requests(
    shop: int,
    count: int,
    conditions: Conditions,
    seed: int,
    without: Collection[int] = (),
    affected: bool = True,
    held_out: bool = False,
) -> tuple[int, ...]:
    """Draw requests of a shop that can be met under all conditions.

    Those that the most drifts affect come first: between two successive conditions, the plans that were cheapest before
    reach at most 95 % of the best score after. For a control, those that the fewest affect. Kinds take turns.

    Args:
        shop: the number of the shop.
        count: how many.
        conditions: knob values under which each can be met, in temporal order.
        seed: of the stream.
        without: the numbers of requests that are excluded.
        affected: whether drifts should affect the requests that come first.
        held_out: whether they have the wordings that are held out.

    Returns:
        The numbers of the requests.

    Raises:
        ArgumentError: if the shop has too few such requests.
    """
    rng = np.random.default_rng(seed)
    requests = list_requests(shop, held_out)
    queues = []
    for kind in rng.permutation(KINDS):
        queue = [index for index, request in enumerate(requests) if request.kind == kind]
        rng.shuffle(queue)
        queues.append(queue)
    order = [queue[step] for step in range(max(map(len, queues))) for queue in queues if step < len(queue)]
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


@lru_cache(maxsize=512)
def _pool(shop: int, count: int, conditions: Conditions, seed: int, affected: bool, held_out: bool) -> tuple[int, ...]:
    return draw_requests(shop, count, conditions, seed, (), affected, held_out)


class RequestSequence:
    """The sequence of requests, with a random stream of its own: the length of episodes does not change it.

    Args:
        size: the number of recurring requests; `None` draws from all requests of the shop.
        order: `shuffled` (repeated permutations of the pool) or `fixed`.
        conditions: knob values under which each request can be met, in temporal order.
        affected: whether requests come first that drifts affect, or those that none does.
        held_out: whether they have the wordings that are held out.
    """

    def __init__(
        self, size: int | None, order: str, conditions: Conditions, affected: bool = True, held_out: bool = False
    ) -> None:
        self._size, self._order, self._conditions = size, order, conditions
        self._affected, self._held_out = affected, held_out
        self._seed = 0
        self._queue: list[int] = []
        self._rng = np.random.default_rng(0)

    def seed(self, seed: int) -> None:
        """Start again.

        Args:
            seed: of pool and order.
        """
        self._seed = seed
        self._queue = []
        self._rng = np.random.default_rng([seed, 1])

    def pool(self, shop: int) -> tuple[int, ...] | None:
        """The numbers of the recurring requests of a shop, or `None` for all requests.

        Args:
            shop: the number of the shop.
        """
        if self._size is None:
            return None
        return _pool(shop, self._size, self._conditions, self._seed, self._affected, self._held_out)

    def next(self, shop: int) -> int:
        """The number of the next request.

        Args:
            shop: the number of the shop.
        """
        pool = self.pool(shop)
        if pool is None:
            count = len(list_requests(shop, self._held_out))
            return number_request(shop, int(self._rng.integers(count)), self._held_out)
        if not self._queue:
            places = range(len(pool))
            self._queue = (
                [int(one) for one in self._rng.permutation(places)] if self._order == "shuffled" else [*places]
            )
        return pool[self._queue.pop(0)]

    def others(self, shop: int, count: int) -> tuple[int, ...]:
        """Requests of this shop outside its pool, drawn by the same rules.

        Args:
            shop: the number of the shop.
            count: how many.
        """
        seed = int(np.random.SeedSequence([self._seed, _OTHERS]).generate_state(1)[0])
        return draw_requests(shop, count, self._conditions, seed, self.pool(shop) or (), self._affected, self._held_out)
