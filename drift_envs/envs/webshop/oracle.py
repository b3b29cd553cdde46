"""The shop's oracle, which reads the goals and the settings.

* `ShopOracle` - exact responses, the best known actions and values at any tick
* `make_oracle` - the same for a drifting environment, as its declaration names it
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from drift_envs.checks import check_integer
from drift_envs.envs.webshop.knobs import to_settings
from drift_envs.envs.webshop.text import format_state
from drift_envs.errors import ArgumentError
from drift_envs.oracle.base import ChangeEffect, KnobSource, Response, completion_probability, order_responses
from webshop_server.errors import ShopError
from webshop_server.goals import Goal
from webshop_server.oracle import OptimalPurchase, best_purchase, best_purchases, solve
from webshop_server.page_builder import RESULTS_PER_PAGE
from webshop_server.settings import Settings
from webshop_server.shop import Session, Shop
from webshop_server.urls import PageKind, PageUrl, normalize_query, parse_path

SAMPLE = 20
"""The number of goals that are evaluated if the environment draws from the whole catalogue."""

KEPT = 8192
"""The number of cached responses; the cache is cleared when it is full."""


class _Reply(NamedTuple):
    state: str
    reward: float
    ended: bool


class ShopOracle:
    """The oracle of a drifting shop.

    A state is the JSON text of an observation (`html`, `url`); the instruction in it identifies the goal. An
    action is `search[words]` or `click[label]`. Responses are exact: the shop itself executes the action
    under the settings of the tick. Values are means of `webshop_server.oracle.best_purchase` over the
    recurring goals; 1.0, which shipped schedules guarantee, is the maximum. Listings that were visited too often
    (`poison_after`) count as on sale: a best purchase visits each listing once.

    Args:
        source: the knobs at any tick.
        shop: inventory and kind of goals.
        pool: returns the numbers of the recurring goals, or `None` for all goals.
        limit: the maximum number of steps of an episode.

    Raises:
        ArgumentError: `limit` is not positive.

    Example:
        >>> import gymnasium as gym
        >>> import drift_envs
        >>> env = gym.make("DriftWebShop-v0", schedule="webshop/explicit", text=True)
        >>> state, info = env.reset(seed=0)
        >>> oracle = env.get_wrapper_attr("oracle")
        >>> done = False
        >>> while not done:
        ...     state, reward, done, _, info = env.step(oracle.action(state, 0))
        >>> reward, oracle.value(0), oracle.effect(0, 20).loss
        (1.0, 1.0, 1.0)
    """

    def __init__(
        self, source: KnobSource, shop: Shop, pool: Callable[[], Sequence[int] | None], limit: int = 30
    ) -> None:
        self._source = source
        self._shop = shop
        self._pool = pool
        self._limit = check_integer("limit", limit, 1)
        self._known: dict[tuple[Goal, Settings], OptimalPurchase | None] = {}
        self._by_text: dict[str, Goal] = {}
        self._replies: dict[tuple[Any, Any, Settings], _Reply] = {}

    def settings(self, tick: int) -> Settings:
        """The settings at a tick."""
        return to_settings(self._source.knobs_at(tick))

    def changed(self, state: Any, action: Any, t0: int, t1: int) -> bool:
        """Whether the response to this action differs between the two ticks.

        Args:
            state: the JSON text.
            action: the action.
            t0: one tick.
            t1: the other tick.
        """
        before, after = self._source.knobs_at(t0), self._source.knobs_at(t1)
        if before == after:
            return False
        if before["transient"] != after["transient"]:
            return True
        return self._respond(state, action, to_settings(before)) != self._respond(state, action, to_settings(after))

    def response(self, state: Any, action: Any, tick: int) -> tuple[Response, ...]:
        """All possible responses, most probable first.

        Args:
            state: the JSON text.
            action: the action.
            tick: the tick.
        """
        knobs = self._source.knobs_at(tick)
        reply, lost = self._respond(state, action, to_settings(knobs)), knobs["transient"]
        return order_responses(Response(*reply, 1.0 - lost), Response(state, 0.0, False, lost))

    def holds(self, state: Any, action: Any, outcome: str, ended: bool, tick: int, score: float | None = None) -> bool:
        """Whether this is the true response; lost actions (`transient`) are not.

        Args:
            state: the JSON text.
            action: the action.
            outcome: the next state as JSON text.
            ended: whether the episode was over.
            tick: the tick.
            score: not used.
        """
        reply = self._respond(state, action, self.settings(tick))
        return (reply.state, reply.ended) == (outcome, ended)

    def action(self, state: Any, tick: int, left: int | None = None) -> str:
        """The best known action.

        Args:
            state: the JSON text of any page but the last one.
            tick: the tick.
            left: the remaining steps; not used.
        """
        session = self._session_at(state, self.settings(tick))
        purchase = self._best(session.goal, session.settings)
        click = _next_click(session, purchase)
        return click if purchase is None or click else f"search[{purchase.words}]"

    def value(self, tick: int) -> float:
        """The expected score of the best known policy within the step limit.

        Args:
            tick: the tick.
        """
        lost = self._source.knobs_at(tick)["transient"]
        settings = self.settings(tick)
        return _mean(self._goal_value(goal, settings, lost) for goal in self._goals())

    def effect(self, t0: int, t1: int) -> ChangeEffect:
        """What the change from tick `t0` to tick `t1` does.

        The optimal policies at `t0` are replayed at `t1` as sequences of actions, since pages that exist at
        `t1` only have no best action at `t0`. The magnitude is the share of clicks with another response, on
        the pages of an optimal sequence.

        Args:
            t0: a tick before the drift.
            t1: a tick after it.
        """
        old, new = self.settings(t0), self.settings(t1)
        carried, differing, compared = [], 0, 0
        for goal in self._goals():
            plans = [self._plan(goal, old, purchase) for purchase in best_purchases(self._shop, goal, old)]
            carried.append(max((self._replay(goal, new, plan) for plan in plans), default=0.0))
            for plan in plans[:1]:
                one, other = self._compare(goal, old, new, plan)
                differing, compared = differing + one, compared + other
        before, after = self.value(t0), self.value(t1)
        lost = self._source.knobs_at(t1)["transient"]
        same = old == new and lost == self._source.knobs_at(t0)["transient"]
        score = before if same else _mean(carried)
        return ChangeEffect(differing / compared if compared else 0.0, before, score, after, score)

    def _goals(self) -> list[Goal]:
        pool = self._pool()
        goals = self._shop.goals
        return [goals[number] for number in (range(min(SAMPLE, len(goals))) if pool is None else pool)]

    def _goal_value(self, goal: Goal, settings: Settings, lost: float) -> float:
        purchase = self._best(goal, settings)
        if purchase is None:
            return 0.0
        if lost == 0.0:
            return purchase.score.reward
        steps = len(self._plan(goal, settings, purchase))
        return purchase.score.reward * completion_probability(steps, self._limit, lost)

    def _best(self, goal: Goal, settings: Settings) -> OptimalPurchase | None:
        key = (goal, settings)
        if key not in self._known:
            self._known[key] = best_purchase(self._shop, goal, settings)
        return self._known[key]

    def _session(self, goal: Goal, settings: Settings) -> Session:
        shop = self._shop
        return Shop(shop.inventory, settings, goal_kind=shop.goal_kind, max_length=shop.max_length).start(goal)

    def _plan(self, goal: Goal, settings: Settings, purchase: OptimalPurchase) -> list[str]:
        return solve(self._session(goal, settings), purchase)

    def _replay(self, goal: Goal, settings: Settings, plan: Iterable[str]) -> float:
        session = self._session(goal, settings)
        for action in plan:
            session.act(action)
        return session.reward

    def _compare(self, goal: Goal, old: Settings, new: Settings, plan: Iterable[str]) -> tuple[int, int]:
        """The number of clicks with another response on the pages of a sequence, and the number of clicks."""
        session = self._session(goal, old)
        differing = compared = 0
        for action in plan:
            here = session.page
            actions = [f"click[{label}]" for label, target in here.clickables.items() if target is not None]
            for one in [action, *actions] if here.has_search_bar else actions:
                compared += 1
                differing += self._respond_at(goal, here.url, one, old) != self._respond_at(goal, here.url, one, new)
            session.act(action)
        return differing, compared

    def _respond_at(self, goal: Goal, url: PageUrl, action: str, settings: Settings) -> _Reply:
        session = self._session(goal, settings)
        session.jump_to(url)
        return self._execute(session, action)

    def _respond(self, state: Any, action: Any, settings: Settings) -> _Reply:
        key = (state, action, settings)
        if key not in self._replies:
            if len(self._replies) >= KEPT:
                self._replies.clear()
            self._replies[key] = self._execute(self._session_at(state, settings), action)
        return self._replies[key]

    def _execute(self, session: Session, action: Any) -> _Reply:
        _, reward, ended, _ = session.act(action)
        return _Reply(format_state(session.page, self._shop.max_length), reward, ended)

    def _session_at(self, state: Any, settings: Settings) -> Session:
        """A session at the page of a state."""
        text, url = _read_state(state)
        session = self._session(self._goal_of(text), settings)
        try:
            session.jump_to(url)
        except ShopError as error:
            raise ArgumentError(f"`state` should be a page that can be reached. {error}") from None
        return session

    def _goal_of(self, text: str) -> Goal:
        """The goal of an instruction."""
        if text not in self._by_text:
            for goals in (self._goals(), self._shop.goals):  # recurring goals first: the others take long
                if text not in self._by_text:
                    for goal in goals:
                        self._by_text.setdefault(_fit(goal.text, self._shop), goal)
        if text not in self._by_text:
            raise ArgumentError(f"`state` should show an instruction of this shop. Received {text!r}")
        return self._by_text[text]


def _next_click(session: Session, purchase: OptimalPurchase | None) -> str:
    """The next click of a purchase; "" if the next action is a search."""
    page, url, settings = session.page, session.page.url, session.settings

    def click(name: str) -> str:
        return f"click[{settings.label(name).lower()}]"

    if url.kind is PageKind.START:
        return ""
    if url.kind is PageKind.AD:  # an advertisement has no other exit
        return f"click[{settings.ad_right_button.lower()}]"
    if purchase is None:
        return click("Back to Search")
    if url.kind is PageKind.RESULTS and url.keywords == normalize_query(purchase.words):
        number = purchase.place // RESULTS_PER_PAGE + 1
        if url.page_number == number:
            return f"click[{purchase.asin.lower()}]"
        return click("Next >" if url.page_number < number else "< Prev")
    if url.asin == purchase.asin:
        if url.kind is PageKind.SUB:
            return click("< Prev")
        chosen = dict(url.options)
        missing = [pair for pair in purchase.options if chosen.get(pair[0]) != pair[1]]
        if url.kind is PageKind.ITEM:
            for element in page.elements:
                if element.kind == "option" and (element.name, element.text) in missing:
                    return f"click[{element.label}]"
            return click("Buy Now")
        if not missing:
            return click("Place Order")
    return click("Back to Search")


def _read_state(state: Any) -> tuple[str, PageUrl]:
    """The instruction and URL of a state."""
    try:
        fields = json.loads(state)
        lines, address = str(fields["html"]).split("\n"), str(fields["url"])
        text = lines[lines.index("Instruction:") + 1]
        return text, parse_path(urlsplit(address).path)
    except (TypeError, KeyError, ValueError, IndexError) as error:
        raise ArgumentError(
            "`state` should be a JSON text with `html` and `url` of a page that shows an instruction. "
            f"Received {str(state)[:200]!r}"
        ) from error


def _fit(text: str, shop: Shop) -> str:
    charset = shop.charset
    return "".join(char if char in charset else "?" for char in text)


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found) if found else 0.0


def make_oracle(source: KnobSource, begin: Callable[[], Any], limit: int) -> ShopOracle:
    """The oracle of a drifting environment.

    Args:
        source: the knobs at any tick.
        begin: returns the innermost environment after its first reset.
        limit: the step limit of an episode.
    """
    return ShopOracle(source, begin().shop, lambda: begin().task_pool, limit)
