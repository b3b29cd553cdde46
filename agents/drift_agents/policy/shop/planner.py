"""The planner for the web shop: a function of the rendered prompt and a generator for ties.

* `ShopPlanner` - reads the page and what is recalled, and buys what the instruction asks for

It knows how a shop works and what words mean, as a language model would, and nothing of this shop:
neither goals nor scores nor which button of an advertisement is the right one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from drift_agents.checks import check_integer
from drift_agents.errors import ArgumentError
from drift_agents.matching.page import AD, CONFIRM, DONE, ITEM, RESULTS, SUB_PAGE, ShopState, read_shop_state
from drift_agents.policy.base import Reply
from drift_agents.policy.shop.instruction import parse_instruction, prior_colors, read_price, stems
from drift_agents.policy.shop.listing import (
    Listing,
    ListingPage,
    OptionGroup,
    find_options,
    read_item,
    read_results,
)
from drift_agents.policy.shop.notes import (
    UNKNOWN,
    Article,
    DatedValue,
    Offer,
    RecalledPurchase,
    ShopNotes,
    take_notes,
)
from drift_agents.prompt.conflict import check_conflict
from drift_agents.prompt.view import PromptView, parse_prompt

SATISFIED = 0.9
"""A purchase that paid at least this is as good as it gets."""
HOPE = 0.1
"""How much a word counts that has not been found, where it has not been looked for everywhere."""
DOUBTFUL = 0.5
"""The same when nobody is going to look."""
TOO_DEAR = 0.3
"""What a price above the limit takes from a listing's worth."""
NO_COLOR = 0.5
"""What it takes when no colour can be had that may count as the class that is asked for."""
UNLIKELY = 0.3
"""What it takes from a listing that has not been visited when its title has at most a third of the words."""
NEXT_PAGE = 0.85
"""What the second page of results is worth as long as it has not been seen."""
PAGE_COST = 0.05
"""What is taken off for every page in between."""
_GONE = ("unavailable", "sold out", "out of stock")


class ShopPlanner:
    """Searches, compares, chooses and buys; records of the prompt override what words suggest.

    * Start: search for the instruction.
    * Results: open the listing that is worth most. A remembered purchase is worth what it paid. Where
      nothing was bought, the share of the instruction's words that are found in title, options and
      sub pages counts, and whether the price is within the limit.
    * Item: look at `Features` while words are missing, at `looks` listings at the most; go back when
      another listing is worth more; choose the options that the instruction names; buy.
    * A class of colours ("a warm color"): colours that paid before `SATISFIED` or more, under any task;
      then those of `prior_colors` that are untried, at random; then those that disappointed longest ago.
    * Advertisement: the button that is remembered to lead to the order; else one that is untried, at
      random; then the one that disappointed longest ago. What disappointed before memory was found
      wrong counts as untried.

    Who remembers nothing does not look twice: a policy has no other memory than the prompt's.

    Args:
        conflict: how several outcomes of one (state, action) are weighed (`drift_agents.prompt.conflict`).
        looks: how many articles are looked at closely for one task before something is bought, and
            again after each other purchase; not negative.

    Raises:
        ArgumentError: if an option is out of its range.

    Example:
        >>> ad = '{"html": "Press a button.", "url": "http://h/ad/<session_id>/B01/%7B%7D/0"}'
        >>> done = '{"html": "", "url": "http://h/confirm/<session_id>/B01/%7B%7D"}'
        >>> from drift_agents.prompt.view import Recollection
        >>> from drift_agents.types import Outcome
        >>> known = Recollection(ad, "click[b]", Outcome(done, 0.0, False), 1.0, 3)
        >>> view = PromptView("a mug", ad, ("click[a]", "click[b]"), (known,))
        >>> ShopPlanner().decide(view.render(), np.random.default_rng(0)).text
        'click[b]'
    """

    name = "shop"

    def __init__(self, *, conflict: str = "majority", looks: int = 4) -> None:
        self.conflict, self.looks = check_conflict(conflict), check_integer("looks", looks, 0)

    def decide(self, prompt: str, rng: np.random.Generator) -> Reply:
        """Answer a prompt.

        Args:
            prompt: the rendered text.
            rng: for ties; drawn from only when there is one.

        Raises:
            ArgumentError: if the present state is no page of a shop, or nothing can be done there.
        """
        view = parse_prompt(prompt)
        page = read_shop_state(view.state)
        if page is None or not view.actions:
            raise ArgumentError(f"the present state should be a page of a shop with actions. Received {view.state!r}")
        return Reply(_Visit(view, page, self.conflict, self.looks, rng).choose())


class _Visit:
    """One decision on one page."""

    def __init__(self, view: PromptView, page: ShopState, conflict: str, looks: int, rng: np.random.Generator) -> None:
        self.page, self.rng = page, rng
        self.actions = view.actions
        self.wish = parse_instruction(view.task)
        self.prior = prior_colors(self.wish.color_class)
        self.notes: ShopNotes = take_notes(page, (*view.here, *view.elsewhere), conflict)
        doubt = view.doubt_since
        if doubt is None and conflict != "frequency":
            # Where answers vary by chance, one never seen before is no sign that memory is stale.
            doubt = view.surprised_since
        self.doubt = -1 if doubt is None else doubt
        looked = sum(bool(article.inside) for article in self.notes.articles.values())
        bought = sum(purchase.instruction == page.instruction for purchase in self.notes.purchases)
        self._may_look = looked < looks * (1 + bought)

    def choose(self) -> str:
        """The action."""
        kind = self.page.kind
        if kind == AD:
            return self._press()
        if kind == RESULTS:
            return self._open()
        if kind == ITEM:
            return self._handle(read_item(self.page, self.actions))
        if kind == SUB_PAGE:
            return self.actions[min(1, len(self.actions) - 1)]  # back to the listing
        if kind == CONFIRM:
            return self.actions[-1]  # the order; before it stands the way back
        return self.actions[0]  # the search

    def _pick(self, among: Sequence[str]) -> str:
        return among[int(self.rng.integers(len(among)))] if len(among) > 1 else among[0]

    def _press(self) -> str:
        """The button that leads to the order, as far as anybody knows."""
        known, elsewhere = self.notes.buttons, self.notes.other_buttons
        best = max((known[action].value for action in self.actions if action in known), default=0.0)
        if best >= 0.5:
            return self._pick([a for a in self.actions if a in known and known[a].value == best])
        untried = [a for a in self.actions if a not in known or self._is_stale(known[a])]
        hinted = [a for a in untried if a in elsewhere and elsewhere[a].value >= 0.5]
        if hinted or untried:
            return self._pick(hinted or untried)
        return self._stalest({action: known[action] for action in self.actions})

    def _stalest(self, known: Mapping[str, DatedValue]) -> str:
        """What disappointed longest ago: where everything has, the world may have changed."""
        oldest = min(belief.last for belief in known.values())
        return self._pick([action for action, belief in known.items() if belief.last == oldest])

    def _open(self) -> str:
        """The listing that is worth most, or the way to the page of results where it stands."""
        listings = [one for one in read_results(self.page.lines).listings if one.action in self.actions]
        worths = [self._worth(listing) for listing in listings]
        best = max(worths, default=-1.0)
        number = self._page_number()
        for page, worth in self._other_pages(number):
            step = "click[< prev]" if page < number else "click[next >]"
            if worth > best and step in self.actions:
                return step
        if not listings:
            return self.actions[0]
        first = listings[worths.index(best)]
        # Equal offers of several sellers: none of them is better than the others.
        equal = [one for one, worth in zip(listings, worths, strict=True) if worth == best and one[1:] == first[1:]]
        return self._pick([listing.action for listing in equal])

    def _page_number(self) -> int:
        """Which page of results this is, or which one led here."""
        number = self.page.parts[-1] if self.page.kind == RESULTS else self.page.parts[2]
        return int(number) if number.isdecimal() else 1

    def _other_pages(self, number: int) -> list[tuple[int, float]]:
        """Pairs of page number and worth of the best listing there, of the pages of the same search, the best first.

        The first page that has not been seen has a worth too.
        """
        words = self.page.parts[0] if self.page.kind == RESULTS else self.page.parts[1]
        known = {int(n): page for (asked, n), page in self.notes.results.items() if asked == words and n.isdecimal()}
        if self.page.kind == RESULTS:
            known[number] = read_results(self.page.lines)
        worths = {
            n: max((self._worth(listing) for listing in page.listings), default=-1.0)
            for n, page in known.items()
            if n != number
        }
        last = max(known, default=0)
        if last and not known[last].is_last:
            worths[last + 1] = NEXT_PAGE - (last - 1) * PAGE_COST
        return sorted(worths.items(), key=lambda pair: (-pair[1], pair[0]))

    def _worth(self, listing: Listing) -> float:
        """What a listing is worth: above 1 where a purchase paid well, below 0 where it cannot be bought."""
        if self._is_gone(listing):
            return -1.0
        paid = self._own_purchases(listing)
        best = max((belief.value for purchase, belief in paid if not self._is_blamed_on_color(purchase)), default=0.0)
        if best >= SATISFIED:
            return 1 + best
        article = self.notes.articles.get(listing.title, UNKNOWN)
        worth = 1 - self._shortfall(listing, article) / self.wish.size
        price = read_price(listing.price)
        if price is not None and price > self.wish.limit:
            worth -= TOO_DEAR
        if article.options is None:
            worth -= 0 if self._is_likely(listing) else UNLIKELY
        elif self.prior and not self._has_hope(article.options):
            worth -= NO_COLOR
        blamed = [belief.value for purchase, belief in paid if not self._is_blamed_on_color(purchase)]
        return min([worth, *blamed])

    def _is_gone(self, listing: Listing) -> bool:
        """Whether a listing is believed to be sold out; not when memory has been found wrong since."""
        offer = self.notes.offers.get(listing.asin)
        if listing.asin == self.page.asin or offer is None or self._is_stale(offer):
            return False  # the present page has been looked at
        return any(word in offer.lines[-1].lower() for word in _GONE)

    def _is_likely(self, listing: Listing) -> bool:
        """Whether a title has enough of the words to go on with."""
        words = self.wish.words
        return 3 * len(words & stems(listing.title)) > len(words)

    def _own_purchases(self, listing: Listing) -> list[tuple[RecalledPurchase, DatedValue]]:
        """What was bought of a listing for this task at this price."""
        return [
            (purchase, belief)
            for purchase, belief in self.notes.purchases.items()
            if purchase.asin == listing.asin
            and purchase.instruction == self.page.instruction
            and purchase.price in ("", listing.price)
        ]

    def _shortfall(self, listing: Listing, article: Article) -> float:
        """How many words and choices a listing lacks; a word that may be hidden counts `HOPE`."""
        wish, lacking = self.wish, 0
        found = stems(listing.title)
        for texts in article.inside.values():
            found |= stems(" ".join(texts))
        if article.options is not None:
            found |= stems(" ".join(article.options))
            lacking = len(wish.choices - found)
        hope = 1.0 if "features" in article.inside else HOPE if self._may_look else DOUBTFUL
        return lacking + len(wish.words - found) * hope

    def _has_hope(self, options: Sequence[str]) -> bool:
        """Whether options have a colour that counts as the class that is asked for, as far as is known."""
        if self._right_colors:
            return any(value.lower() in self._right_colors for value in options)
        beliefs = [self._believe_color(value) for value in options if stems(value) & self.prior]
        return any(belief is None or self._is_stale(belief) for belief in beliefs)

    @cached_property
    def _right_colors(self) -> frozenset[str]:
        """The colours that are believed to count as the class that is asked for, in lower case."""
        bought = {value.lower() for purchase in self.notes.purchases for value in self._colors_of(purchase)}
        beliefs = {value: self._believe_color(value) for value in bought}
        return frozenset(value for value, belief in beliefs.items() if belief and belief.value >= SATISFIED)

    def _colors_of(self, purchase: RecalledPurchase) -> list[str]:
        """The colours among the choices of a purchase; none where another class was asked for, or no class."""
        if not self.prior or parse_instruction(purchase.instruction).color_class != self.wish.color_class:
            return []
        return [value for name, value in purchase.options if "color" in name.lower() or stems(value) & self.prior]

    def _is_stale(self, belief: DatedValue | Offer) -> bool:
        """Whether memory has been found wrong since."""
        return belief.last < self.doubt

    def _is_blamed_on_color(self, purchase: RecalledPurchase) -> bool:
        """Whether none of its choices is believed to be a right colour, where one of a class is asked for."""
        return bool(self.prior) and not any(value.lower() in self._right_colors for value in self._colors_of(purchase))

    def _handle(self, item: ListingPage) -> str:
        """Look closer, go back, choose, or buy."""
        if not item.buys:
            return item.back
        here = Listing(self.page.asin, item.title, item.price)
        worth = self._worth(here)
        if worth <= 1 and self.page.asin in self.notes.visited:
            if self._best_other(here) > worth:
                return item.back
            if self._should_look(here, item):
                return item.sub_pages["features"]
        chosen = dict(self.page.options)
        for group, (value, action) in self._find_choices(item.groups).items():
            if chosen.get(group, "").lower() != value.lower():
                return action
        return self._buy(item)

    def _best_other(self, here: Listing) -> float:
        """What the best of the other listings is worth, as far as is known."""
        number = self._page_number()
        back = self.notes.results.get(self.page.parts[1:3])
        worths = [self._worth(other) for other in (back.listings if back else ()) if other.asin != here.asin]
        return max([*worths, *(worth for _, worth in self._other_pages(number))], default=-1.0)

    def _should_look(self, here: Listing, item: ListingPage) -> bool:
        """Whether words are missing that may stand on the listing's page of features."""
        article = self.notes.articles.get(here.title, UNKNOWN)
        if "features" not in item.sub_pages or "features" in article.inside or not self._may_look:
            return False
        return not self.wish.words <= stems(" ".join((here.title, *(article.options or ()))))

    def _buy(self, item: ListingPage) -> str:
        """The button that buys: the one that memory knows, the one of that name, or one that is untried."""
        leads = self.notes.leads
        for action in item.buys:
            if leads.get(action) in (DONE, AD, CONFIRM):
                return action
        if "click[buy now]" in item.buys:
            return "click[buy now]"
        return self._pick([action for action in item.buys if action not in leads] or list(item.buys))

    def _find_choices(self, groups: tuple[OptionGroup, ...]) -> dict[str, tuple[str, str]]:
        """Group -> the value to choose and its action."""
        choices = find_options(self.wish, groups)
        colored = [group for group in groups if any(stems(value) & self.prior for value, _ in group.values)]
        if colored:
            group = max(colored, key=lambda one: sum(bool(stems(value) & self.prior) for value, _ in one.values))
            choices[group.name] = self._choose_color(group)
        return choices

    def _choose_color(self, group: OptionGroup) -> tuple[str, str]:
        """A value of a group that counts, or may count, as the class of colours that is asked for."""
        values = {action: value for value, action in group.values}
        known = {action: belief for action, value in values.items() if (belief := self._believe_color(value))}
        good = {action: belief for action, belief in known.items() if belief.value >= SATISFIED}
        untried = [action for action in values if action not in known or self._is_stale(known[action])]
        likely = [action for action in untried if stems(values[action]) & self.prior]
        chosen = dict(self.page.options).get(group.name, "").lower()
        if good:
            action = max(good, key=lambda action: good[action].last)
        elif already := [action for action in likely or untried if values[action].lower() == chosen]:
            action = already[0]  # drawn a step ago
        else:
            action = self._pick(likely or untried) if untried else self._stalest(known)
        return values[action], action

    def _believe_color(self, value: str) -> DatedValue | None:
        """What a colour paid that was bought where this class was asked for.

        A colour that paid well under this very task still does, unless memory has been found wrong
        since; otherwise what was seen last counts, under whatever task.
        """
        own: DatedValue | None = None
        newest: DatedValue | None = None
        for purchase, belief in self.notes.purchases.items():
            if any(color.lower() == value.lower() for color in self._colors_of(purchase)):
                if newest is None or belief.last > newest.last:
                    newest = belief
                if purchase.instruction == self.page.instruction and (own is None or belief.last > own.last):
                    own = belief
        if own is not None and own.value >= SATISFIED and not self._is_stale(own):
            return own
        return newest
