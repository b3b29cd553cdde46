"""The shop without a web server: the state machine behind every backend."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from webshop_server.errors import ArgumentError, SessionError
from webshop_server.goals import Goal, GoalSet
from webshop_server.inventory import Inventory, is_target
from webshop_server.page_builder import (
    MAX_PAGE,
    RESULTS_PER_PAGE,
    build_ad_page,
    build_confirm_page,
    build_done_page,
    build_item_page,
    build_results_page,
    build_start_page,
    build_sub_page,
)
from webshop_server.page_model import (
    MAX_LENGTH,
    SESSION_OVER,
    ActionResult,
    AvailableActions,
    PageModel,
    PageSection,
    check_click,
    check_search,
    list_available_actions,
    parse_action,
)
from webshop_server.product import Product
from webshop_server.reward import NounRule, Score, extract_nouns, score_purchase
from webshop_server.settings import Changes, Settings, merge_settings
from webshop_server.urls import SUB_PAGES, OptionPairs, PageKind, PageUrl


class Shop:
    """An inventory with settings.

    Shops can share one inventory; each has its own settings.

    Args:
        inventory: listings, index and goals.
        settings: the initial settings.
        goal_kind: `synthetic`, `human` or `color_class`.
        max_length: the maximum length of a page's text, in characters.
        nouns: returns the nouns of a title, for the score.
        has_last_page: whether results end with a page without `Next >`; in the original they do not.

    Example:
        >>> from webshop_server.inventory import Inventory
        >>> shop = Shop(Inventory.default(products=100))
        >>> session = shop.start(0)
        >>> outcome = session.act("search[" + session.goal.query + "]")
        >>> outcome.page.url.kind.value, outcome.is_done
        ('search_results', False)
    """

    def __init__(
        self,
        inventory: Inventory,
        settings: Settings | None = None,
        *,
        goal_kind: str = "synthetic",
        max_length: int = MAX_LENGTH,
        nouns: NounRule = extract_nouns,
        has_last_page: bool = True,
    ) -> None:
        self.inventory = inventory
        self.settings = settings or Settings()
        self.goal_kind = goal_kind
        self.max_length = max_length
        self.nouns = nouns
        self.has_last_page = has_last_page

    @property
    def charset(self) -> frozenset[str]:
        """The characters that pages can show."""
        return self.inventory.charset

    @property
    def goals(self) -> GoalSet:
        """The goals of kind `goal_kind`."""
        return self.inventory.goals(self.goal_kind)

    def configure(self, /, **changes: object) -> Settings:
        """Change settings of all sessions, from their next page on.

        Raises:
            SettingsError: a name is unknown or a value breaks its rule; nothing is changed then.
        """
        self.settings = self.settings.replace(**changes)
        return self.settings

    def start(self, goal: int | Goal = 0, session_id: str = "shopper") -> Session:
        """Start a session.

        Args:
            goal: the goal's number, or a goal.
            session_id: the session's name in URLs.

        Raises:
            ArgumentError: no goal has this number.
        """
        return Session(self, goal, session_id)

    def score(self, goal: Goal, product: Product, options: OptionPairs, settings: Settings) -> Score:
        """Return the score of a purchase under the settings."""
        price = self.inventory.price(product, settings)
        return score_purchase(product, goal, price, options, settings.classes, self.nouns)


class Session:
    """One episode in a shop.

    A session can be copied and pickled in any state; copies share only the shop's inventory.

    Args:
        shop: the shop.
        goal: the goal's number, or a goal.
        session_id: the session's name in URLs.

    Example:
        >>> from webshop_server.inventory import Inventory
        >>> session = Shop(Inventory.default(products=100)).start(3)
        >>> session.available_actions
        {'has_search_bar': True, 'clickables': ['search']}
        >>> session.act("click[buy now]").error
        "there is no button 'buy now' on this page"
    """

    def __init__(self, shop: Shop, goal: int | Goal = 0, session_id: str = "shopper") -> None:
        self.shop = shop
        self.session_id = session_id
        self.goal_index = None if isinstance(goal, Goal) else goal
        self.goal: Goal = goal if isinstance(goal, Goal) else shop.goals[goal]
        self.changes: Changes = ()
        self.score: Score | None = None
        self.bought: PageUrl | None = None
        self._visited: dict[str, None] = {}
        self._order: PageUrl | None = None  # the order behind the current advertisement or confirmation
        self._depth = 0  # advertisements passed; not read from the URL, which a user can type
        self._passed = False  # whether the right button was pressed for this order
        self._merged: tuple[Settings, Settings] | None = None
        self._listed: tuple[Settings, Goal] | None = None  # what the last results page was built with
        self.page: PageModel = self._start(PageUrl())

    @property
    def settings(self) -> Settings:
        """The shop's settings, overridden by the session's own."""
        if not self.changes:
            return self.shop.settings
        if self._merged is None or self._merged[0] is not self.shop.settings:
            self._merged = (self.shop.settings, merge_settings(self.shop.settings, self.changes))
        return self._merged[1]

    def configure(self, /, **changes: object) -> Settings:
        """Change settings of this session, from its next page on.

        Raises:
            SettingsError: a name is unknown or a value breaks its rule; nothing is changed then.
        """
        checked = self.shop.settings.replace(**{**dict(self.changes), **changes})
        self.changes = tuple((name, getattr(checked, name)) for name in {**dict(self.changes), **changes})
        self._merged = None
        return self.settings

    @property
    def is_done(self) -> bool:
        """Whether something has been bought."""
        return self.score is not None

    @property
    def reward(self) -> float:
        """The score of the purchase, 0.0 before it."""
        return self.score.reward if self.score else 0.0

    @property
    def available_actions(self) -> AvailableActions:
        """`has_search_bar` and `clickables` of the current page, as in the original."""
        return list_available_actions(self.page)

    def act(self, action: str) -> ActionResult:
        """Execute `search[words]` or `click[label]`; an invalid action changes nothing.

        Args:
            action: the action; case is ignored.
        """
        try:
            name, argument = parse_action(action)
            if name == "search":
                self.search(argument)
            else:
                self.click(argument)
        except (ArgumentError, SessionError) as error:
            return ActionResult(self.page, 0.0, self.is_done, str(error))
        return ActionResult(self.page, self.reward, self.is_done, None)

    def search(self, words: str) -> PageModel:
        """Search, on a page with a search bar.

        Raises:
            ArgumentError: the page has no search bar, or the query is empty.
            SessionError: the session is over.
        """
        self._refuse_done()
        return self.visit(PageUrl(PageKind.RESULTS, check_search(self.page, words)))

    def click(self, label: str) -> PageModel:
        """Click the element with a label.

        Args:
            label: the label; case is ignored.

        Raises:
            ArgumentError: no element of the page has it.
            SessionError: the session is over.
        """
        self._refuse_done()
        return self.visit(check_click(self.page, label))

    def visit(self, url: PageUrl) -> PageModel:
        """Move to a page; after the purchase the page does not change any more.

        Args:
            url: the page; `PageKind.DONE` is a purchase.

        Raises:
            ArgumentError: there is no such listing, option or page, or it cannot be bought; the
                session is unchanged.
        """
        if self.is_done:
            return self.page
        self.page = _HANDLERS[url.kind](self, url)
        return self.page

    def jump_to(self, url: PageUrl) -> PageModel:
        """Set the session to the state in which it shows a page, without the actions that lead there.

        Args:
            url: any page except the last one.

        Raises:
            ArgumentError: there is no such listing, option or page, or it is the last one.
        """
        if url.kind is PageKind.DONE:
            raise ArgumentError("`url` should not be the last page, which needs a purchase")
        is_order = url.kind in (PageKind.AD, PageKind.CONFIRM)
        self._order = PageUrl(PageKind.DONE, asin=url.asin, options=url.options) if is_order else None
        self._passed = url.kind is PageKind.CONFIRM
        self._depth = url.depth if url.kind is PageKind.AD else 0
        self.score = self.bought = None
        self.page = _HANDLERS[url.kind](self, url._replace(button=""))
        return self.page

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain data; `restore` makes an equal session of it.

        Example:
            >>> from webshop_server.inventory import Inventory
            >>> shop = Shop(Inventory.default(products=100))
            >>> session = shop.start(3)
            >>> page = session.search("shirt")
            >>> Session.restore(shop, session.to_dict(), "shopper").page == page
            True
        """
        return {
            "goal": self.goal_index,
            "settings": {name: self.settings.to_dict()[name] for name, _ in self.changes},
            "visited": list(self._visited),
            "order": self._order,
            "depth": self._depth,
            "passed": self._passed,
            "page": self.page.url,
            "bought": self.bought,
            "score": self.score.to_dict() if self.score else None,
        }

    @classmethod
    def restore(cls, shop: Shop, data: Mapping[str, Any], session_id: str) -> Session:
        """Make a session of the data that `to_dict` returned; its page is built with the current settings.

        Args:
            shop: the shop.
            data: the state, also after a conversion to JSON and back.
            session_id: the session's name in URLs.

        Raises:
            ArgumentError: no goal has the number.
        """
        session = cls(shop, data["goal"], session_id)
        session.configure(**data["settings"])
        session._visited = dict.fromkeys(data["visited"])
        session._order, session._depth, session._passed = _read_url(data["order"]), data["depth"], data["passed"]
        session.bought = _read_url(data["bought"])
        session.score = Score(**data["score"]) if data["score"] else None
        url = _read_url(data["page"]) or PageUrl()
        if session.score is not None:
            session.page = session._show(url, build_done_page(session.score))
        else:
            try:
                session.page = _HANDLERS[url.kind](session, url)
            except ArgumentError:  # settings have removed the page since
                session.page = session._start(PageUrl())
        return session

    def _refuse_done(self) -> None:
        if self.is_done:
            raise SessionError(SESSION_OVER)

    def _show(self, url: PageUrl, sections: tuple[PageSection, ...]) -> PageModel:
        return PageModel(url, self.session_id, sections, self.shop.charset, self.shop.max_length, self.settings.theme)

    def _product(self, url: PageUrl) -> Product:
        product = self.shop.inventory.catalogue.product(url.asin)
        if product is None:
            raise ArgumentError(f"there is no product {url.asin[:40]!r}")
        offered = {option.name: option.values for option in product.options}
        for name, value in url.options:
            if value not in offered.get(name, ()):
                raise ArgumentError(f"product {product.asin} has no option {name[:40]!r} with value {value[:40]!r}")
        return product

    def _start(self, url: PageUrl) -> PageModel:
        self._order, self._passed = None, False
        return self._show(PageUrl(PageKind.START), build_start_page(self.goal.text, self.settings))

    def _results(self, url: PageUrl) -> PageModel:
        listed = (self.settings, self.goal)
        if url == self.page.url and self._listed is not None and all(map(operator.is_, listed, self._listed)):
            return self.page  # a search over HTTP is answered by a redirect to the page that it has just built
        self._listed = listed
        products = self.shop.inventory.results(url.keywords, self.settings)
        last = max(1, -(-len(products) // RESULTS_PER_PAGE)) if self.shop.has_last_page else MAX_PAGE
        here = PageUrl(PageKind.RESULTS, url.keywords, min(max(url.page_number, 1), last))
        sections = build_results_page(
            self.goal.text, self.settings, here, products, self._visited, has_last_page=self.shop.has_last_page
        )
        return self._show(here, sections)

    def _item(self, url: PageUrl) -> PageModel:
        product = self._product(url)
        self._visited[product.asin] = None
        here = PageUrl(PageKind.ITEM, url.keywords, url.page_number, product.asin, url.options)
        return self._show(here, build_item_page(self.goal.text, self.settings, here, product))

    def _sub(self, url: PageUrl) -> PageModel:
        product = self._product(url)
        known = url.sub_page in SUB_PAGES
        if not known or (url.sub_page == "Attributes" and not self.settings.show_attributes):
            raise ArgumentError(f"product {product.asin} has no page {url.sub_page[:40]!r}")
        here = url._replace(asin=product.asin)
        return self._show(here, build_sub_page(self.goal.text, self.settings, here, product))

    def _buy(self, url: PageUrl) -> PageModel:
        product = self._product(url)
        if is_target(product, self.settings.sold_out):
            raise ArgumentError(f"product {product.asin} is sold out")
        order = PageUrl(PageKind.DONE, asin=product.asin, options=url.options)
        passed = self._passed and order == self._order
        if self.settings.ad_page and not passed:
            self._order, self._passed, self._depth = order, False, 0
            return self._ad(order._replace(kind=PageKind.AD))
        self.bought = order
        self.score = self.shop.score(self.goal, product, order.options, self.settings)
        return self._show(order, build_done_page(self.score))

    def _ad(self, url: PageUrl) -> PageModel:
        """Show an advertisement, or the page that the pressed button leads to."""
        order = url._replace(kind=PageKind.DONE, depth=0, button="")
        if order != self._order:  # the URL of another order
            return self._item(order)
        settings = self.settings
        if url.button:
            is_right = url.button == settings.ad_right_button and (self._depth == 0 or settings.ad_escape)
            if is_right or not settings.ad_page:
                self._passed = True
                return self._confirm(order)
            self._depth += 1
            if self._depth > settings.ad_depth:
                return self._start(url)
        here = order._replace(kind=PageKind.AD, depth=self._depth)
        return self._show(here, build_ad_page(self.goal.text, settings, here))

    def _confirm(self, url: PageUrl) -> PageModel:
        product = self._product(url)
        here = url._replace(kind=PageKind.CONFIRM)
        if not self._passed or url._replace(kind=PageKind.DONE) != self._order:
            return self._item(url)
        price = self.shop.inventory.price(product, self.settings)
        return self._show(here, build_confirm_page(self.goal.text, self.settings, here, product, price))


def _read_url(fields: Sequence[Any] | None) -> PageUrl | None:
    if fields is None:
        return None
    kind, keywords, number, asin, options, sub_page, depth, button = fields
    pairs = tuple((name, value) for name, value in options)
    return PageUrl(PageKind(kind), keywords, number, asin, pairs, sub_page, depth, button)


_HANDLERS: dict[PageKind, Callable[[Session, PageUrl], PageModel]] = {
    PageKind.START: Session._start,
    PageKind.RESULTS: Session._results,
    PageKind.ITEM: Session._item,
    PageKind.SUB: Session._sub,
    PageKind.AD: Session._ad,
    PageKind.CONFIRM: Session._confirm,
    PageKind.DONE: Session._buy,
}
