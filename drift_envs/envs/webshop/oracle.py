"""The shop's oracle, which reads the goals and the settings."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from drift_envs.envs.webshop.env import fit, format_state, to_settings
from drift_envs.errors import ArgumentError
from drift_envs.oracle.base import KnobSource, completion_probability
from drift_envs.oracle.recurring import Carried, RecurringTasksOracle, TrueResponse
from webshop_server.errors import ShopError
from webshop_server.goals import Goal, GoalSet
from webshop_server.oracle import OptimalPurchase, best_purchase, best_purchases, solve
from webshop_server.page_builder import RESULTS_PER_PAGE
from webshop_server.settings import Settings
from webshop_server.shop import Session, Shop
from webshop_server.urls import PageKind, PageUrl, normalize_query, parse_path

SAMPLE = 20
"""The number of goals that are evaluated if the environment draws from the whole catalogue."""

KEPT = 8192
"""The number of cached responses; the cache is cleared when it is full."""


class ShopOracle(RecurringTasksOracle[Settings, Goal]):
    """The oracle of a drifting shop.

    A state is the JSON text of an observation (`html`, `url`); the instruction in it identifies the goal. An
    action is `search[words]` or `click[label]`. The value of a goal is that of
    `webshop_server.oracle.best_purchase`; 1.0, which shipped schedules guarantee, is the maximum. Listings that were
    visited too often (`poison_after`) count as on sale: a best purchase visits each listing once.

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
        super().__init__(source, limit)
        self._shop = shop
        self._pool = pool
        self._known: dict[tuple[Goal, Settings], OptimalPurchase | None] = {}
        self._by_text: dict[str, Goal] = {}
        self._replies: dict[tuple[Any, Any, Settings], TrueResponse] = {}

    def setting(self, tick: int) -> Settings:
        """The settings at a tick."""
        return to_settings(self._source.knobs_at(tick))

    def action(self, state: Any, tick: int, left: int | None = None) -> str:
        """The best known action.

        Args:
            state: the JSON text of any page but the last one.
            tick: the tick.
            left: the remaining steps; not used.
        """
        session = self._session_at(state, self.setting(tick))
        purchase = self._best(session.goal, session.settings)
        click = _next_click(session, purchase)
        return click if purchase is None or click else f"search[{purchase.words}]"

    def _tasks(self, setting: Settings) -> list[Goal]:
        return self._recurring()

    def _recurring(self) -> list[Goal]:
        pool = self._pool()
        goals = self._shop.goals
        return [goals[number] for number in (range(min(SAMPLE, len(goals))) if pool is None else pool)]

    def _task_value(self, setting: Settings, task: Goal, lost: float) -> float:
        purchase = self._best(task, setting)
        if purchase is None:
            return 0.0
        if lost == 0.0:
            return purchase.score.reward
        steps = len(self._plan(task, setting, purchase))
        return purchase.score.reward * completion_probability(steps, self._limit, lost)

    def _carry(self, old: Settings, new: Settings, task: Goal) -> Carried:
        """Plans are sequences of actions, since pages that exist at the new settings only have no best action before.

        The magnitude counts clicks on the pages of the first sequence.
        """
        plans = [self._plan(task, old, purchase) for purchase in best_purchases(self._shop, task, old)]
        if not plans:
            return Carried(0.0, 0, 0, 0)
        score = max(self._replay(task, new, plan) for plan in plans)
        return Carried(score, len(plans[0]), *self._compare(task, old, new, plans[0]))

    def _lose(self, state: Any, tick: int) -> str:
        return str(state)

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

    def _respond_at(self, goal: Goal, url: PageUrl, action: str, settings: Settings) -> TrueResponse:
        session = self._session(goal, settings)
        session.jump_to(url)
        return self._execute(session, action)

    def _respond(self, state: Any, action: Any, tick: int) -> TrueResponse:
        settings = self.setting(tick)
        key = (state, action, settings)
        if key not in self._replies:
            if len(self._replies) >= KEPT:
                self._replies.clear()
            self._replies[key] = self._execute(self._session_at(state, settings), action)
        return self._replies[key]

    def _execute(self, session: Session, action: Any) -> TrueResponse:
        _, reward, ended, _ = session.act(action)
        return TrueResponse(format_state(session.page, self._shop.max_length), reward, ended)

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
        """The goal of an instruction; of several the first that recurs."""
        if text not in self._by_text:
            for goal in self._recurring():
                self._by_text.setdefault(fit(goal.text, self._shop.charset), goal)
        if text not in self._by_text:
            number = _number_instructions(self._shop.goals, self._shop.charset).get(text)
            if number is None:
                raise ArgumentError(f"`state` should show an instruction of this shop. Received {text!r}")
            self._by_text[text] = self._shop.goals[number]
        return self._by_text[text]


@lru_cache(maxsize=4)
def _number_instructions(goals: GoalSet, charset: str) -> Mapping[str, int]:
    """The number of the first goal of each instruction; all goals are made for it, two seconds for the default shop."""
    numbers: dict[str, int] = {}
    for number, goal in enumerate(goals):
        numbers.setdefault(fit(goal.text, charset), number)
    return numbers


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


def make_oracle(source: KnobSource, begin: Callable[[], Any], limit: int) -> ShopOracle:
    """The oracle of a drifting environment.

    Args:
        source: the knobs at any tick.
        begin: returns the innermost environment after its first reset.
        limit: the step limit of an episode.
    """
    return ShopOracle(source, begin().shop, lambda: begin().task_pool, limit)
