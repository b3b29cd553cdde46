"""Pages of a small made-up shop, as text states."""

from __future__ import annotations

import json
from collections.abc import Callable
from urllib.parse import quote

import pytest
from drift_agents.prompt.view import Recollection
from drift_agents.types import Outcome

TASK = "Find me dishwasher safe mugs with color: red, and price lower than 20.00 dollars"


class Shop:
    """Makes states, actions and recollections."""

    task = TASK

    def state(self, url: str, lines: list[str], task: str | None = TASK) -> str:
        shown = ["Instruction:", task, *lines] if task else lines
        return json.dumps({"html": "\n".join(shown), "url": f"http://127.0.0.1:3000/{url}"})

    def start(self, task: str = TASK) -> str:
        html = "\n".join(["WebShop", "Instruction:", task, "Search"])
        return json.dumps({"html": html, "url": "http://127.0.0.1:3000/<session_id>"})

    def results(
        self, listings: list[tuple[str, str, str]], task: str = TASK, page: int = 1, total: int | None = None
    ) -> tuple[str, tuple[str, ...]]:
        total = len(listings) if total is None else total
        tools = ["Back to Search", f"Page {page} (Total results: {total})"]
        tools += ["< Prev"] * (page > 1) + ["Next >"] * (page * 10 < total)
        lines = [*tools, *(text for listing in listings for text in listing)]
        labels = [tools[0], *tools[2:], *(asin for asin, _, _ in listings)]
        return self.state(f"search_results/<session_id>/mugs/{page}", lines, task), self.clicks(labels)

    def item(
        self,
        asin: str,
        title: str,
        price: str,
        groups: dict[str, list[str]],
        chosen: dict[str, str] | None = None,
        task: str = TASK,
        buy: str = "Buy Now",
        page: int = 1,
    ) -> tuple[str, tuple[str, ...]]:
        options = quote(json.dumps(chosen or {}), safe="")
        shown = [text for name, values in groups.items() for text in (name, *values)]
        lines = ["Back to Search", "< Prev", *shown, title, f"Price: {price}", "Rating: 4.0", "Sold by: Jo"]
        lines += ["Description", "Features", "Reviews", buy]
        labels = ["Back to Search", "< Prev", *(value for values in groups.values() for value in values)]
        labels += ["Description", "Features", "Reviews", *([buy] if buy != "Currently unavailable" else [])]
        return self.state(f"item_page/<session_id>/{asin}/mugs/{page}/{options}", lines, task), self.clicks(labels)

    def features(self, asin: str, bullets: list[str], task: str = TASK) -> tuple[str, tuple[str, ...]]:
        url = f"item_sub_page/<session_id>/{asin}/mugs/1/Features/%7B%7D"
        return self.state(url, ["Back to Search", "< Prev", *bullets], task), self.clicks(["Back to Search", "< Prev"])

    def ad(
        self, depth: int = 0, asin: str = "B01", task: str = TASK, labels: str = "ABC"
    ) -> tuple[str, tuple[str, ...]]:
        lines = [f"Advertisement {depth + 1}", "Press a button to continue.", *labels]
        return self.state(f"ad/<session_id>/{asin}/%7B%7D/{depth}", lines, task), self.clicks(list(labels))

    def confirm(self, asin: str = "B01", task: str = TASK) -> tuple[str, tuple[str, ...]]:
        lines = ["Back to Search", "Confirm your order", "Total: $9.0", "Place Order"]
        return self.state(f"confirm/<session_id>/{asin}/%7B%7D", lines, task), self.clicks([lines[0], lines[-1]])

    def done(self, asin: str, chosen: dict[str, str], score: float) -> Outcome:
        options = quote(json.dumps(chosen), safe="")
        lines = ["Thank you for shopping with us!", "Your score (min 0.0, max 1.0)", f"{score}"]
        return Outcome(self.state(f"done/<session_id>/{asin}/{options}", lines, None), score, True)

    def clicks(self, labels: list[str]) -> tuple[str, ...]:
        return tuple(f"click[{label.lower()}]" for label in labels)

    def recall(self, state: str, action: str, after: str | Outcome, n: float = 1.0, last: int = 0) -> Recollection:
        outcome = after if isinstance(after, Outcome) else Outcome(after, 0.0, False)
        return Recollection(state, action, outcome, n, last)


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def decide() -> Callable[..., set[str]]:
    """What the planner may answer: all its answers over a few seeds."""
    import numpy as np
    from drift_agents.policy.shop.planner import ShopPlanner
    from drift_agents.prompt.view import PromptView

    def answers(
        state: str, actions: tuple[str, ...], *recalled: Recollection, task: str = TASK, conflict: str = "majority",
        doubt: int | None = None, surprise: int | None = None, looks: int = 4, seeds: int = 12,
    ) -> set[str]:  # fmt: skip
        view = PromptView(task, state, actions, (), recalled, (), 100, doubt, surprise)
        planner = ShopPlanner(conflict=conflict, looks=looks)
        return {planner.decide(view.render(), np.random.default_rng(seed)).text for seed in range(seeds)}

    return answers
