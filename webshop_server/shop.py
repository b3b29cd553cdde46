"""A shop and its shoppers, without a web server: the state machine behind every backend.

* `Shop` - an inventory under an operator's settings
* `Session` - one shopper: where they are, what they chose, whether they bought
* `ActionResult` - what an action led to
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from webshop_server import page_builder as pages
from webshop_server.action import check_click, check_search, parse_action
from webshop_server.errors import ArgumentError, SessionError
from webshop_server.goals import Goal, GoalSet
from webshop_server.inventory import Inventory, is_target
from webshop_server.page_model import MAX_LENGTH, Page, PageSection
from webshop_server.product import Product
from webshop_server.reward import Score, score_purchase
from webshop_server.settings import Pairs, Settings, merged
from webshop_server.urls import SUB_PAGES, Location, PageKind

OVER = "the session is over: something has been bought"


class ActionResult(NamedTuple):
    """What an action led to.

    Args:
        page: the page that is shown now.
        reward: the score of a purchase that this action completed, else 0.0.
        is_done: whether the session is over.
        error: why the action did nothing, or `None`.
    """

    page: Page
    reward: float
    is_done: bool
    error: str | None


class Shop:
    """An inventory under an operator's settings.

    Many shops can share one inventory; each has settings of its own.

    Args:
        inventory: listings, index and goals.
        settings: what an operator may change; the defaults if not given.
        goal_kind: `synthetic`, `human` or `color_class`.
        max_length: how long a page's text may be, in characters.

    Example:
        >>> from webshop_server.inventory import Inventory
        >>> shop = Shop(Inventory.default(products=100))
        >>> session = shop.start(0)
        >>> outcome = session.act("search[" + session.goal.query + "]")
        >>> outcome.page.location.kind.value, outcome.is_done
        ('search_results', False)
    """

    def __init__(
        self,
        inventory: Inventory,
        settings: Settings | None = None,
        *,
        goal_kind: str = "synthetic",
        max_length: int = MAX_LENGTH,
    ) -> None:
        self.inventory = inventory
        self.settings = settings or Settings()
        self.goal_kind = goal_kind
        self.max_length = max_length

    @property
    def charset(self) -> frozenset[str]:
        """The characters that pages of this shop can show."""
        return self.inventory.charset

    @property
    def goals(self) -> GoalSet:
        """The tasks of this shop's kind."""
        return self.inventory.goals(self.goal_kind)

    def configure(self, **changes: Any) -> Settings:
        """Change settings for all sessions, from each one's next page on.

        Raises:
            SettingsError: a name is unknown or a value breaks its rule; nothing is changed then.
        """
        self.settings = self.settings.replace(**changes)
        return self.settings

    def start(self, goal: int | Goal = 0, session_id: str = "shopper") -> Session:
        """Let a shopper in.

        Args:
            goal: the goal's number, or a goal.
            session_id: the name that stands in addresses.

        Raises:
            ArgumentError: no goal has this number.
        """
        return Session(self, goal, session_id)

    def score(self, goal: Goal, product: Product, options: Pairs, settings: Settings) -> Score:
        """Give what a purchase would pay under the settings."""
        price = self.inventory.price(product, settings)
        return score_purchase(product, goal, price, options, settings.classes)


class Session:
    """One shopper.

    A session can be copied and pickled at any moment; the copies share the shop's inventory alone.

    Args:
        shop: where they are.
        goal: the goal's number, or a goal.
        session_id: the name that stands in addresses.

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
        self.changes: Pairs = ()
        self.score: Score | None = None
        self.bought: Location | None = None
        self._visited: dict[str, None] = {}
        self._order: Location | None = None  # what is being bought while advertisements stand in the way
        self._depth = 0  # how deep in advertisements; kept here, since an address could be typed
        self._passed = False  # whether the right button has been pressed for this order
        self._merged: tuple[Settings, Settings] | None = None
        self.page: Page = self._show(Location(PageKind.START), pages.start_page(self.goal.text, self.settings))

    @property
    def settings(self) -> Settings:
        """The operator's settings for this session: the shop's, with the session's own on top."""
        if not self.changes:
            return self.shop.settings
        if self._merged is None or self._merged[0] is not self.shop.settings:
            self._merged = (self.shop.settings, merged(self.shop.settings, self.changes))
        return self._merged[1]

    def configure(self, **changes: Any) -> Settings:
        """Change settings for this session alone, from its next page on.

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
    def available_actions(self) -> dict[str, Any]:
        """What can be done on this page, in the original's form."""
        return {"has_search_bar": self.page.has_search_bar, "clickables": list(self.page.clickables)}

    def act(self, action: str) -> ActionResult:
        """Do `search[words]` or `click[label]`; what cannot be done changes nothing.

        Args:
            action: the action, in any case.
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

    def search(self, words: str) -> Page:
        """Search from the page with the search bar.

        Raises:
            ArgumentError: this page has no search bar, or there are no words.
            SessionError: the session is over.
        """
        self._refuse_done()
        return self.visit(Location(PageKind.RESULTS, check_search(self.page, words)))

    def click(self, label: str) -> Page:
        """Click what has this label.

        Args:
            label: the label, in any case.

        Raises:
            ArgumentError: nothing on this page has it.
            SessionError: the session is over.
        """
        self._refuse_done()
        return self.visit(check_click(self.page, label))

    def visit(self, location: Location) -> Page:
        """Go to a page; after a purchase every way leads to the last page.

        Args:
            location: where to. Asking for `PageKind.DONE` is a purchase.

        Raises:
            ArgumentError: there is no such listing, option or page, or it cannot be bought; the
                session stays where it is.
        """
        if self.is_done:
            return self.page
        self.page = _VISITS[location.kind](self, location)
        return self.page

    def stand_at(self, location: Location) -> Page:
        """Stand at a page as if the way there had been gone: for those who ask what a page would answer.

        Args:
            location: any page but the last one.

        Raises:
            ArgumentError: there is no such listing, option or page, or it is the last one.
        """
        if location.kind is PageKind.DONE:
            raise ArgumentError("nobody can stand at the end of a session without having bought something")
        is_order = location.kind in (PageKind.AD, PageKind.CONFIRM)
        self._order = Location(PageKind.DONE, asin=location.asin, options=location.options) if is_order else None
        self._passed = location.kind is PageKind.CONFIRM
        self._depth = location.depth if location.kind is PageKind.AD else 0
        self.score = self.bought = None
        self.page = _VISITS[location.kind](self, location._replace(button=""))
        return self.page

    def _refuse_done(self) -> None:
        if self.is_done:
            raise SessionError(OVER)

    def _show(self, location: Location, sections: tuple[PageSection, ...]) -> Page:
        return Page(location, self.session_id, sections, self.shop.charset, self.shop.max_length)

    def _product(self, location: Location) -> Product:
        product = self.shop.inventory.catalogue.product(location.asin)
        if product is None:
            raise ArgumentError(f"there is no product {location.asin[:40]!r}")
        offered = {option.name: option.values for option in product.options}
        for name, value in location.options:
            if value not in offered.get(name, ()):
                raise ArgumentError(f"product {product.asin} has no option {name[:40]!r} with value {value[:40]!r}")
        return product

    def _start(self, location: Location) -> Page:
        self._order, self._passed = None, False
        return self._show(Location(PageKind.START), pages.start_page(self.goal.text, self.settings))

    def _results(self, location: Location) -> Page:
        products = self.shop.inventory.results(location.keywords, self.settings)
        last = max(1, -(-len(products) // pages.PAGE_SIZE))
        here = Location(PageKind.RESULTS, location.keywords, min(max(location.page, 1), last))
        return self._show(here, pages.results_page(self.goal.text, self.settings, here, products, self._visited))

    def _item(self, location: Location) -> Page:
        product = self._product(location)
        self._visited[product.asin] = None
        here = Location(PageKind.ITEM, location.keywords, location.page, product.asin, location.options)
        return self._show(here, pages.item_page(self.goal.text, self.settings, here, product))

    def _sub(self, location: Location) -> Page:
        product = self._product(location)
        known = location.sub_page in SUB_PAGES
        if not known or (location.sub_page == "Attributes" and not self.settings.show_attributes):
            raise ArgumentError(f"product {product.asin} has no page {location.sub_page[:40]!r}")
        here = location._replace(asin=product.asin)
        return self._show(here, pages.sub_page(self.goal.text, self.settings, here, product))

    def _buy(self, location: Location) -> Page:
        product = self._product(location)
        if is_target(product, self.settings.sold_out):
            raise ArgumentError(f"product {product.asin} is sold out")
        order = Location(PageKind.DONE, asin=product.asin, options=location.options)
        passed = self._passed and order == self._order
        if self.settings.ad_page and not passed:
            self._order, self._passed, self._depth = order, False, 0
            return self._ad(order._replace(kind=PageKind.AD))
        self.bought = order
        self.score = self.shop.score(self.goal, product, order.options, self.settings)
        return self._show(order, pages.done_page(self.score))

    def _ad(self, location: Location) -> Page:
        """Show an advertisement, or go where one of its buttons leads."""
        order = location._replace(kind=PageKind.DONE, depth=0, button="")
        if order != self._order:  # the address of an order that is not under way
            return self._item(order)
        settings = self.settings
        if location.button:
            is_right = location.button == settings.ad_right_button and (self._depth == 0 or settings.ad_escape)
            if is_right or not settings.ad_page:
                self._passed = True
                return self._confirm(order)
            self._depth += 1
            if self._depth > settings.ad_depth:
                return self._start(location)
        here = order._replace(kind=PageKind.AD, depth=self._depth)
        return self._show(here, pages.ad_page(self.goal.text, settings, here))

    def _confirm(self, location: Location) -> Page:
        product = self._product(location)
        here = location._replace(kind=PageKind.CONFIRM)
        if not self._passed or location._replace(kind=PageKind.DONE) != self._order:
            return self._item(location)
        price = self.shop.inventory.price(product, self.settings)
        return self._show(here, pages.confirm_page(self.goal.text, self.settings, here, product, price))


_VISITS: dict[PageKind, Callable[[Session, Location], Page]] = {
    PageKind.START: Session._start,
    PageKind.RESULTS: Session._results,
    PageKind.ITEM: Session._item,
    PageKind.SUB: Session._sub,
    PageKind.AD: Session._ad,
    PageKind.CONFIRM: Session._confirm,
    PageKind.DONE: Session._buy,
}
