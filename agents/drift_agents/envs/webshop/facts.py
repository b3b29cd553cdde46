"""The shop in words.

* `WebShopFacts` - pages by their kind, title, price and buttons
"""

from __future__ import annotations

from collections.abc import Mapping

from drift_agents.envs.webshop.listing import read_results, read_title
from drift_agents.envs.webshop.matching import AD, ITEM, RESULTS, START, SUB_PAGE, read_shop_state
from drift_agents.policy.facts import PlainFacts, describe_state
from drift_agents.prompt.view import Recollection

_TOOLS = ("Back to Search", "< Prev", "Next >")


class WebShopFacts(PlainFacts):
    """Pages by their kind, title, price and buttons.

    Example:
        >>> WebShopFacts().describe_state('{"html": "Thank you!", "url": "http://h/done/x7/B01/{}"}')
        'the page "Thank you!"'
    """

    cut_states = ('{"html": ', "a page")

    def highest_score(self, task: str) -> float:
        """1: all tasks score from 0 to 1."""
        return 1.0

    def describe_state(self, state: str) -> str:
        """What kind of page it is, with what distinguishes it; a text that is no page as it is."""
        page = read_shop_state(state)
        if page is None:
            return state
        title, price, _ = read_title(page.lines)
        if title:
            chosen = "".join(f", {name} {value}" for name, value in page.options)
            return f'the listing "{title}" ({price}{chosen})'
        if page.kind == START:
            return "the search page"
        if page.kind == RESULTS:
            listings = read_results(page.lines).listings
            first = f', the first of them "{listings[0].title}"' if listings else ""
            return f"page {page.parts[-1]} of the search results with {len(listings)} listings{first}"
        lines = [line for line in page.lines if line not in _TOOLS]
        if page.kind == AD:
            return f'"{lines[0]}" with the buttons {", ".join(line for line in lines[1:] if " " not in line)}'
        if page.kind == SUB_PAGE:
            return f'the page with "{"; ".join(lines)[:200]}"'
        return f'the page "{"; ".join(lines[:2])}"'

    def brief_outcome(self, item: Recollection) -> str:
        """The page; of a listing what was chosen on it, of search results their number alone."""
        page, before = read_shop_state(item.outcome.state), read_shop_state(item.state)
        if page is not None and page.kind == RESULTS:
            return f"page {page.parts[-1]} of the search results"
        if page is not None and before is not None and page.kind == before.kind == ITEM and page.options:
            return f"chosen: {', '.join(f'{name} {value}' for name, value in page.options)}"
        words = describe_state(self, item.outcome.state)
        return words.partition(" with the buttons ")[0] if page is not None and page.kind == AD else words

    def state_fields(self, state: str) -> Mapping[str, str]:
        """`page`, its lines without the instruction, and `chosen`, the chosen options."""
        page = read_shop_state(state)
        if page is None:
            return {"page": state, "chosen": "none"}
        chosen = ", ".join(f"{name}: {value}" for name, value in page.options)
        return {"page": "\n".join(page.lines), "chosen": chosen or "none"}
