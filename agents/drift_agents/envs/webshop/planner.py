"""The planner for the web shop: what it searches, compares, chooses and buys.

Its prior knowledge is how shops work and what words mean, as a language model has it, and nothing about
this shop: neither goals nor scores nor the right button of an advertisement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from drift_agents.envs.webshop.instructions import parse_instruction, prior_colors, read_price, stems
from drift_agents.envs.webshop.knowledge import (
    UNKNOWN,
    Article,
    DatedValue,
    Offer,
    RecalledPurchase,
    ShopKnowledge,
    summarise_records,
)
from drift_agents.envs.webshop.states import (
    AD,
    CONFIRM,
    DONE,
    ITEM,
    RESULTS,
    SUB_PAGE,
    Listing,
    ListingPage,
    OptionGroup,
    ShopState,
    find_options,
    read_item,
    read_results,
    read_shop_state,
)
from drift_agents.errors import ArgumentError
from drift_agents.policy.base import Reply, pick
from drift_agents.prompt.view import (
    PromptView,
    check_conflict,
)
from drift_envs.checks import check_count

SATISFIED = 0.9
"""The score from which on a purchase is repeated without a search for a better one."""
UNREAD_WORD = 0.1
"""The weight of a word that has not been found, while the page of features is unread and may be read."""
MISSING_WORD = 0.5
"""The same when that page will not be read."""
OVER_LIMIT = 0.3
"""The reduction of a listing's value by a price above the limit."""
NO_MATCHING_COLOR = 0.5
"""The reduction when no option may be a colour of the requested class."""
FEW_WORDS = 0.3
"""The reduction for an unvisited listing whose title has at most a third of the words."""
NEXT_PAGE = 0.85
"""The value of the second page of results while it is unseen."""
PAGE_COST = 0.05
"""The reduction for each page in between."""
_SOLD_OUT = ("unavailable", "sold out", "out of stock")


class WebShopPlanner:
    """Searches, compares, chooses and buys; records of the prompt override what words suggest.

    * Start: search for the instruction.
    * Results: open the listing with the highest value. A recorded purchase has its score as value. Without
      one, the value is the share of the instruction's words found in title, options and sub pages, less a
      reduction if the price is above the limit.
    * Item: read `Features` while words are missing, for at most `looks` products; go back when another
      listing has a higher value; choose the options that the instruction names; buy.
    * A class of colours ("a warm color"): colours that scored `SATISFIED` or more, under any task; then
      untried ones of `prior_colors`, at random; then the ones with the oldest low score.
    * Advertisement: the button that is recorded to lead to the order; else an untried one, at random;
      then the one with the oldest failure. Failures before memory was contradicted count as untried.

    Without records a page is not read twice: a policy has no memory beside the prompt's.

    Args:
        conflict: how several outcomes of one (state, action) are weighed (`drift_agents.prompt.view`).
        looks: for how many products `Features` is read in one task before the first purchase, and again
            after each purchase; not negative.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> ad = '{"html": "Press a button.", "url": "http://h/ad/<session_id>/B01/%7B%7D/0"}'
        >>> done = '{"html": "", "url": "http://h/confirm/<session_id>/B01/%7B%7D"}'
        >>> from drift_agents.prompt.view import Recollection
        >>> from drift_agents.types import Outcome
        >>> known = Recollection(ad, "click[b]", Outcome(done, 0.0, False), 1.0, 3)
        >>> view = PromptView("a mug", ad, ("click[a]", "click[b]"), (known,))
        >>> WebShopPlanner().decide(view, np.random.default_rng(0)).text
        'click[b]'
    """

    name = "webshop"

    def __init__(self, *, conflict: str = "majority", looks: int = 4) -> None:
        self.conflict, self.looks = check_conflict(conflict), check_count("looks", looks, 0)

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        """Choose an action.

        Args:
            view: what the policy decides by.
            rng: for ties; drawn from only when there is one.

        Raises:
            ArgumentError: if the present state is no page of a shop, or there is no admissible action.
        """
        page = read_shop_state(view.state)
        if page is None or not view.actions:
            raise ArgumentError(f"the present state should be a page of a shop with actions. Received {view.state!r}")
        return Reply(_ShopDecision(view, page, self.conflict, self.looks, rng).choose())


class _ShopDecision:
    """One decision on one page."""

    def __init__(self, view: PromptView, page: ShopState, conflict: str, looks: int, rng: np.random.Generator) -> None:
        self.page, self.rng = page, rng
        self.actions = view.actions
        self.instruction = parse_instruction(view.task)
        self.prior = prior_colors(self.instruction.color_class)
        self.doubt = view.trusted_since
        self._recalled, self._conflict, self._looks = (*view.here, *view.elsewhere), conflict, looks

    @cached_property
    def knowledge(self) -> ShopKnowledge:
        """What recollections show; the search, sub pages and confirmations need none."""
        return summarise_records(self.page, self._recalled, self._conflict)

    @cached_property
    def _may_read_features(self) -> bool:
        read = sum(bool(article.inside) for article in self.knowledge.articles.values())
        bought = sum(purchase.instruction == self.page.instruction for purchase in self.knowledge.purchases)
        return read < self._looks * (1 + bought)

    def choose(self) -> str:
        kind = self.page.kind
        if kind == AD:
            return self._choose_ad_button()
        if kind == RESULTS:
            return self._choose_listing()
        if kind == ITEM:
            return self._act_on_listing(read_item(self.page, self.actions))
        if kind == SUB_PAGE:
            return self.actions[min(1, len(self.actions) - 1)]  # back to the listing
        if kind == CONFIRM:
            return self.actions[-1]  # the order; the action before it leads back
        return self.actions[0]  # the search

    def _choose_ad_button(self) -> str:
        """The button that leads to the order, according to records."""
        known, elsewhere = self.knowledge.buttons, self.knowledge.other_buttons
        best = max((known[action].value for action in self.actions if action in known), default=0.0)
        if best >= 0.5:
            return pick([a for a in self.actions if a in known and known[a].value == best], self.rng)
        untried = [a for a in self.actions if a not in known or self._is_stale(known[a])]
        hinted = [a for a in untried if a in elsewhere and elsewhere[a].value >= 0.5]
        if hinted or untried:
            return pick(hinted or untried, self.rng)
        return self._least_recent({action: known[action] for action in self.actions})

    def _least_recent(self, known: Mapping[str, DatedValue]) -> str:
        """The action with the oldest failure: where all have failed, the environment may have changed."""
        oldest = min(belief.last for belief in known.values())
        return pick([action for action, belief in known.items() if belief.last == oldest], self.rng)

    def _choose_listing(self) -> str:
        """The listing with the highest value, or a step towards its page of results."""
        listings = [one for one in read_results(self.page.lines).listings if one.action in self.actions]
        values = [self._value(listing) for listing in listings]
        best = max(values, default=-1.0)
        number = self._page_number()
        for page, value in self._other_pages(number):
            step = "click[< prev]" if page < number else "click[next >]"
            if value > best and step in self.actions:
                return step
        if not listings:
            return self.actions[0]
        first = listings[values.index(best)]
        # Several sellers with equal offers are a tie.
        equal = [one for one, value in zip(listings, values, strict=True) if value == best and one[1:] == first[1:]]
        return pick([listing.action for listing in equal], self.rng)

    def _page_number(self) -> int:
        """The number of this page of results, or of the one that led here."""
        number = self.page.parts[-1] if self.page.kind == RESULTS else self.page.parts[2]
        return int(number) if number.isdecimal() else 1

    def _other_pages(self, number: int) -> list[tuple[int, float]]:
        """Pairs of page number and highest value there, for the pages of the same search, the highest first.

        The first unseen page is included.
        """
        words = self.page.parts[0] if self.page.kind == RESULTS else self.page.parts[1]
        known = {
            int(n): page for (asked, n), page in self.knowledge.results.items() if asked == words and n.isdecimal()
        }
        if self.page.kind == RESULTS:
            known[number] = read_results(self.page.lines)
        values = {
            n: max((self._value(listing) for listing in page.listings), default=-1.0)
            for n, page in known.items()
            if n != number
        }
        last = max(known, default=0)
        if last and not known[last].is_last:
            values[last + 1] = NEXT_PAGE - (last - 1) * PAGE_COST
        return sorted(values.items(), key=lambda pair: (-pair[1], pair[0]))

    def _value(self, listing: Listing) -> float:
        """The value of a listing: above 1 if a purchase scored well, below 0 if it cannot be bought."""
        if self._is_sold_out(listing):
            return -1.0
        paid = [  # for this task at this price
            belief.value
            for purchase, belief in self.knowledge.purchases.items()
            if purchase.asin == listing.asin
            and purchase.instruction == self.page.instruction
            and purchase.price in ("", listing.price)
            and not self._has_wrong_color(purchase)
        ]
        best = max(paid, default=0.0)
        if best >= SATISFIED:
            return 1 + best
        article = self.knowledge.articles.get(listing.title, UNKNOWN)
        value = 1 - self._shortfall(listing, article) / self.instruction.size
        price = read_price(listing.price)
        if price is not None and price > self.instruction.limit:
            value -= OVER_LIMIT
        if article.options is None:
            words = self.instruction.words
            value -= FEW_WORDS if 3 * len(words & stems(listing.title)) <= len(words) else 0
        elif self.prior and not self._may_have_color(article.options):
            value -= NO_MATCHING_COLOR
        return min([value, *paid])

    def _is_sold_out(self, listing: Listing) -> bool:
        """Whether a listing is sold out according to records that are not stale."""
        offer = self.knowledge.offers.get(listing.asin)
        if listing.asin == self.page.asin or offer is None or self._is_stale(offer):
            return False  # the present page is shown
        return any(word in offer.lines[-1].lower() for word in _SOLD_OUT)

    def _shortfall(self, listing: Listing, article: Article) -> float:
        """The number of missing words and choices; a word that may be on an unread page counts `UNREAD_WORD`."""
        instruction, lacking = self.instruction, 0
        found = stems(listing.title)
        for texts in article.inside.values():
            found |= stems(" ".join(texts))
        if article.options is not None:
            found |= stems(" ".join(article.options))
            lacking = len(instruction.choices - found)
        weight = 1.0 if "features" in article.inside else UNREAD_WORD if self._may_read_features else MISSING_WORD
        return lacking + len(instruction.words - found) * weight

    def _may_have_color(self, options: Sequence[str]) -> bool:
        """Whether an option may be a colour of the requested class, according to records."""
        if self._right_colors:
            return any(value.lower() in self._right_colors for value in options)
        beliefs = [self._believe_color(value) for value in options if stems(value) & self.prior]
        return any(belief is None or self._is_stale(belief) for belief in beliefs)

    @cached_property
    def _right_colors(self) -> frozenset[str]:
        """The colours believed to be of the requested class, in lower case."""
        bought = {value.lower() for purchase in self.knowledge.purchases for value in self._colors_of(purchase)}
        beliefs = {value: self._believe_color(value) for value in bought}
        return frozenset(value for value, belief in beliefs.items() if belief and belief.value >= SATISFIED)

    def _colors_of(self, purchase: RecalledPurchase) -> list[str]:
        """The colours among the choices of a purchase; none if another class, or none, was requested."""
        if not self.prior or parse_instruction(purchase.instruction).color_class != self.instruction.color_class:
            return []
        return [value for name, value in purchase.options if "color" in name.lower() or stems(value) & self.prior]

    def _is_stale(self, belief: DatedValue | Offer) -> bool:
        """Whether it was last seen before memory was contradicted."""
        return belief.last < self.doubt

    def _has_wrong_color(self, purchase: RecalledPurchase) -> bool:
        """Whether a class of colours is requested and none of its choices is believed to be one."""
        return bool(self.prior) and not any(value.lower() in self._right_colors for value in self._colors_of(purchase))

    def _act_on_listing(self, item: ListingPage) -> str:
        """Read the features, go back, choose an option, or buy."""
        if not item.buys:
            return item.back
        here = Listing(self.page.asin, item.title, item.price)
        value = self._value(here)
        if value <= 1 and self.page.asin in self.knowledge.visited:
            if self._best_other(here) > value:
                return item.back
            if self._should_read_features(here, item):
                return item.sub_pages["features"]
        chosen = dict(self.page.options)
        for group, (choice, action) in self._find_choices(item.groups).items():
            if chosen.get(group, "").lower() != choice.lower():
                return action
        return self._buy(item)

    def _best_other(self, here: Listing) -> float:
        """The highest value of the other listings, according to records."""
        number = self._page_number()
        back = self.knowledge.results.get(self.page.parts[1:3])
        values = [self._value(other) for other in (back.listings if back else ()) if other.asin != here.asin]
        return max([*values, *(value for _, value in self._other_pages(number))], default=-1.0)

    def _should_read_features(self, here: Listing, item: ListingPage) -> bool:
        """Whether words are missing that may be on the listing's page of features."""
        article = self.knowledge.articles.get(here.title, UNKNOWN)
        if "features" not in item.sub_pages or "features" in article.inside or not self._may_read_features:
            return False
        return not self.instruction.words <= stems(" ".join((here.title, *(article.options or ()))))

    def _buy(self, item: ListingPage) -> str:
        """The button that buys: the recorded one, the one of that name, or an untried one."""
        leads = self.knowledge.leads
        for action in item.buys:
            if leads.get(action) in (DONE, AD, CONFIRM):
                return action
        if "click[buy now]" in item.buys:
            return "click[buy now]"
        return pick([action for action in item.buys if action not in leads] or list(item.buys), self.rng)

    def _find_choices(self, groups: tuple[OptionGroup, ...]) -> dict[str, tuple[str, str]]:
        """Group -> the value to choose and its action."""
        choices = find_options(self.instruction, groups)
        colored = [group for group in groups if any(stems(value) & self.prior for value, _ in group.values)]
        if colored:
            group = max(colored, key=lambda one: sum(bool(stems(value) & self.prior) for value, _ in one.values))
            choices[group.name] = self._choose_color(group)
        return choices

    def _choose_color(self, group: OptionGroup) -> tuple[str, str]:
        """A value of a group that is, or may be, a colour of the requested class."""
        values = {action: value for value, action in group.values}
        known = {action: belief for action, value in values.items() if (belief := self._believe_color(value))}
        good = {action: belief for action, belief in known.items() if belief.value >= SATISFIED}
        untried = [action for action in values if action not in known or self._is_stale(known[action])]
        likely = [action for action in untried if stems(values[action]) & self.prior]
        chosen = dict(self.page.options).get(group.name, "").lower()
        if good:
            action = max(good, key=lambda action: good[action].last)
        elif already := [action for action in likely or untried if values[action].lower() == chosen]:
            action = already[0]  # chosen in the step before
        else:
            action = pick(likely or untried, self.rng) if untried else self._least_recent(known)
        return values[action], action

    def _believe_color(self, value: str) -> DatedValue | None:
        """The score of purchases with this colour where this class was requested.

        A high score under the present task counts unless it is stale; otherwise the newest score counts,
        under any task.
        """
        own: DatedValue | None = None
        newest: DatedValue | None = None
        for purchase, belief in self.knowledge.purchases.items():
            if any(color.lower() == value.lower() for color in self._colors_of(purchase)):
                if newest is None or belief.last > newest.last:
                    newest = belief
                if purchase.instruction == self.page.instruction and (own is None or belief.last > own.last):
                    own = belief
        if own is not None and own.value >= SATISFIED and not self._is_stale(own):
            return own
        return newest
