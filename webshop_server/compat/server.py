"""The original's `SimServer` and `SimBrowser`: the pages of an environment, served without a socket."""

from __future__ import annotations

import itertools
import json
import random
import string
import warnings
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any

from webshop_server.compat import utils
from webshop_server.compat.goal import MODEL, count_nouns, describe_score, load_tagger
from webshop_server.compat.listings import Listings, describe_goal, open_inventory
from webshop_server.errors import ArgumentError, check_choice, check_integer, refuse
from webshop_server.goals import Goal, draw_uniform, resolve_price
from webshop_server.page_model import find_label
from webshop_server.renderer import render_html
from webshop_server.settings import Settings
from webshop_server.shop import Session, Shop
from webshop_server.urls import PageKind, PageUrl, normalize_query

BASE_URL = "http://127.0.0.1:3000"
_KEPT_SESSIONS = 1000


class SimServer:
    """Catalogue, goals and sessions; environments can share one.

    Args:
        base_url: the beginning of URLs.
        file_path: a catalogue of this package; or the original's `items_shuffle.json`, which is imported once, with
            `items_ins_v2` and `items_human_ins` of the same folder; `None` for that of `install`, or a generated one.
        filter_goals: keeps the goals for which `filter_goals(index, goal)` is true.
        limit_goals: the number of goals to draw, by their weights; -1 for all.
        num_products: the first listings of the file, or the number of generated ones.
        human_goals: the instructions that people wrote, instead of synthetic ones. A generated catalogue has none;
            there a warning says that the synthetic ones are used.
        show_attrs: whether pages have a button `Attributes`.
        nouns: `rule`, or `spacy` to take nouns from its model as the original does.
        seed: seeds price limits, drawn goals and names.
        attr_path: the original's `items_ins_v2`, where it is not beside `file_path`; verl-agent's copy names it.

    Raises:
        ArgumentError: an argument breaks a rule.
        CatalogueError: the catalogue cannot be used.
    """

    def __init__(
        self,
        base_url: str = BASE_URL,
        file_path: str | Path | None = None,
        filter_goals: Callable[[int, dict[str, Any]], object] | None = None,
        limit_goals: int = -1,
        num_products: int | None = None,
        human_goals: object = None,
        show_attrs: bool = False,
        nouns: str = "rule",
        seed: int = 0,
        attr_path: str | Path | None = None,
    ) -> None:
        if Path(str(base_url)).suffix in (".json", ".sqlite"):
            raise refuse("base_url", "an address; the catalogue is `file_path`", str(base_url), ArgumentError)
        rule = load_tagger(MODEL) if check_choice("nouns", nouns, ("rule", "spacy")) == "spacy" else count_nouns
        file_path = utils.DEFAULT_FILE_PATH if file_path is None else file_path
        inventory = open_inventory(file_path, attr_path, num_products, seed)
        kind = "human" if human_goals else "synthetic"
        if human_goals and file_path is None:
            kind = "synthetic"
            warnings.warn("a generated catalogue has no goals that people wrote: synthetic ones are used", stacklevel=3)
        self.shop = Shop(
            inventory, Settings(show_attributes=bool(show_attrs)), goal_kind=kind, nouns=rule, has_last_page=False
        )
        self.base_url = base_url
        self.show_attrs = bool(show_attrs)
        self.user_sessions: dict[str, dict[str, Any]] = {}
        self.assigned_instruction_text: str | None = None
        """Shown in the place of the goals' instructions, from the next page on."""

        self._sessions: OrderedDict[str, Session] = OrderedDict()  # the last ones
        self.seed = seed
        self._names = random.Random(f"compat-names-{seed}")
        self._numbers: list[int] | None = None  # the goals in use, if not all
        self._draws = itertools.count()
        numbers: list[int] = list(range(len(self.shop.goals)))
        if filter_goals is not None:
            numbers = [number for number in numbers if filter_goals(number, self._describe(number))]
        if filter_goals is not None or limit_goals != -1:
            limit = check_integer("limit_goals", limit_goals, -1)
            self._numbers = self._sample(numbers, limit) if -1 < limit < len(numbers) else numbers
        if self._numbers is not None and not self._numbers:
            raise refuse("filter_goals", "a function that keeps a goal", filter_goals, ArgumentError)

    @cached_property
    def goals(self) -> list[dict[str, Any]]:
        """All goals in use, with the original's keys."""
        return [self._describe(number) for number in self._numbers or range(len(self.shop.goals))]

    @cached_property
    def weights(self) -> list[float]:
        """The weight of each goal."""
        return [self.shop.goals.weight(number) for number in self._numbers or range(len(self.shop.goals))]

    @property
    def cum_weights(self) -> list[float]:
        """The sums of the weights, from 0."""
        return [0.0, *itertools.accumulate(self.weights)]

    @property
    def all_products(self) -> list[dict[str, Any]]:
        """The listings, with the original's keys."""
        return list(self.product_item_dict.values())

    @cached_property
    def product_item_dict(self) -> Mapping[str, dict[str, Any]]:
        """The listings by asin, with the original's keys."""
        return Listings(self.shop)

    @cached_property
    def product_prices(self) -> dict[str, float]:
        """The price of each listing, in dollars."""
        inventory = self.shop.inventory
        return {product.asin: resolve_price(product, inventory.seed) for product in inventory.catalogue}

    def draw_name(self) -> str:
        """Return the name of a new session, which no environment that shares the server has drawn before."""
        return "".join(self._names.choices(string.ascii_lowercase, k=10))

    def start(self, name: str, number: int | None) -> Session:
        """Start a session anew; a name keeps its goal.

        Args:
            name: the session.
            number: the goal of a new name; `None` draws one by the weights.

        Raises:
            ArgumentError: no goal has this number.
        """
        if name not in self.user_sessions:
            count = len(self.shop.goals) if self._numbers is None else len(self._numbers)
            if number is None:
                number = self._pick(draw_uniform(self.seed, "compat", next(self._draws)))
            check_integer("session", number, 0, count - 1)
            self.user_sessions[name] = {"number": number if self._numbers is None else self._numbers[number]}
        session = self.shop.start(self._assign(self.shop.goals[self.user_sessions[name]["number"]]), name)
        state = {
            "goal": describe_goal(session.goal, self.shop.goal_kind),
            "done": False,
            "asin": None,
            "asins": set(),
            "options": {},
            "keywords": None,
            "page": None,
            "actions": Counter(),
        }
        self.user_sessions[name].update(state)
        self._sessions[name] = session
        self._sessions.move_to_end(name)
        if len(self._sessions) > _KEPT_SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def receive(
        self, session_id: str, current_url: str | None, session_int: int | None = None, **action: Any
    ) -> tuple[str, str, dict[str, Any]]:
        """Take an action in a session.

        Args:
            session_id: the session.
            current_url: accepted as in the original; the session's own page counts.
            session_int: the goal of a new session.
            **action: `keywords` (a text or list of words), or `clickable_name`; without an action, or for an unknown
                session, the session starts anew.

        Returns:
            The document, its URL, and `reward` and `done` of the action.
        """
        session = self._sessions.get(session_id)
        if session is None or not action:
            session = self.start(session_id, read_number(session_int))
        status = {"reward": 0.0, "done": False}
        if "keywords" in action:
            words = action["keywords"]
            session = self.search(session, words if isinstance(words, str) else " ".join(map(str, words)))
        elif "clickable_name" in action:
            status = self.click(session, str(action["clickable_name"]))
        return render_html(session.page, "original.html"), self.build_url(session), status

    def search(self, session: Session, words: str) -> Session:
        """Search, on any page; after a purchase the session goes on anew with its goal.

        Returns:
            The session, which is another one after a purchase.
        """
        keywords = normalize_query(words)
        if keywords:
            if session.is_done:
                session = self.start(session.session_id, None)
            self._visit(session, PageUrl(PageKind.RESULTS, keywords), "search")
        return session

    def click(self, session: Session, label: str) -> dict[str, Any]:
        """Click a label; an unknown one changes nothing.

        Returns:
            `reward` and `done`.
        """
        targets = list_clickables(session)
        name = find_label(label, targets)
        if name == "search" or name not in targets:
            return {"reward": 0.0, "done": False}
        self._visit(session, targets[name], name)
        return {"reward": session.reward, "done": session.is_done}

    def _assign(self, goal: Goal) -> Goal:
        text = self.assigned_instruction_text
        return goal if text is None or text == goal.text else replace(goal, text=str(text))

    def _visit(self, session: Session, url: PageUrl, label: str) -> None:
        before = session.page.url
        entry = self.user_sessions[session.session_id]
        session.goal = self._assign(session.goal)
        entry["goal"]["instruction_text"] = session.goal.text
        page = session.visit(url)
        entry.update(
            keywords=page.url.keywords.split(" "),
            page=page.url.page_number,
            asin=page.url.asin or None,
            options=dict(page.url.options),
        )
        counted = _name_action(before, page.url, label)
        if counted:
            entry["actions"][counted] += 1
        if counted == "asin":
            entry["asins"].add(page.url.asin)
        if session.score is not None:
            entry.update(done=True, reward=session.reward, verbose_info=describe_score(session.score))

    def build_url(self, session: Session) -> str:
        """Return the URL of a session's page as the original writes it."""
        url = session.page.url
        name, words, options = session.session_id, url.keywords.replace(" ", "+"), dict(url.options)
        if url.kind is PageKind.START:
            return f"{self.base_url}/{name}"
        if url.kind is PageKind.RESULTS:
            return f"{self.base_url}/search_results/{name}/{words}/{url.page_number}"
        if url.kind is PageKind.ITEM:
            return f"{self.base_url}/item_page/{name}/{url.asin}/{words}/{url.page_number}/{json.dumps(options)}"
        if url.kind is PageKind.SUB:
            place = f"{url.asin}/{words}/{url.page_number}/{url.sub_page}"
            return f"{self.base_url}/item_sub_page/{name}/{place}/{options}"
        return f"{self.base_url}/done/{name}/{url.asin}/{options}"

    def _describe(self, number: int) -> dict[str, Any]:
        return describe_goal(self.shop.goals[number], self.shop.goal_kind)

    def _pick(self, draw: float) -> int:
        if self._numbers is None:
            return self.shop.goals.pick(draw)
        sums = list(itertools.accumulate(self.weights))
        return next((place for place, total in enumerate(sums) if draw * sums[-1] < total), len(sums) - 1)

    def _sample(self, numbers: list[int], count: int) -> list[int]:
        generator = random.Random(f"compat-goals-{self.seed}")
        left = {number: self.shop.goals.weight(number) for number in numbers}
        chosen: list[int] = []
        while len(chosen) < count:
            (number,) = generator.choices(list(left), list(left.values()))
            chosen.append(number)
            del left[number]
        return chosen


class SimBrowser:
    """Opens the pages of a `SimServer`."""

    def __init__(self, server: SimServer) -> None:
        self.server = server
        self.session: Session | None = None
        self.session_id: str | None = None

    @property
    def current_url(self) -> str | None:
        """The URL of the page."""
        return None if self.session is None else self.server.build_url(self.session)

    @property
    def page_source(self) -> str | None:
        """The document of the page."""
        return None if self.session is None else render_html(self.session.page, "original.html")

    def get(self, url: str, session_id: str | None = None, session_int: int | None = None) -> None:
        """Open the first page of a session.

        Args:
            url: its URL, whose last part names the session.
            session_id: its name instead.
            session_int: its goal, if it is new.
        """
        self.session_id = url.rsplit("/", 1)[-1] if session_id is None else session_id
        self.session = self.server.start(self.session_id, session_int)

    def click(self, clickable_name: str, text_to_clickable: object = None) -> dict[str, Any]:
        """Click a label; returns `reward` and `done`.

        Args:
            clickable_name: the label.
            text_to_clickable: accepted as in the original; the page's own labels count.
        """
        return self.server.click(self.opened, clickable_name)

    def search(self, keywords: str | list[str]) -> dict[str, Any]:
        """Search; returns `reward` and `done`.

        Args:
            keywords: a text, or its words.
        """
        words = keywords if isinstance(keywords, str) else " ".join(keywords)
        self.session = self.server.search(self.opened, words)
        return {"reward": 0.0, "done": False}

    @property
    def opened(self) -> Session:
        """The session whose page is shown."""
        if self.session is None:
            raise ArgumentError("`get` should open a page first")
        return self.session


def list_clickables(session: Session) -> dict[str, PageUrl]:
    """Return the target of each label of a page: buttons and listings, then options, as in the original."""
    options: dict[str, PageUrl] = {}
    others: dict[str, PageUrl] = {}
    for element in session.page.elements:
        if element.label:
            target = element.target or session.page.url
            (options if element.kind == "option" else others)[element.label] = target
    return {**others, **options}


def read_number(session: object) -> int | None:
    """Return a goal's number, also one of NumPy; `None` for a name."""
    return int(session) if isinstance(session, Integral) and not isinstance(session, bool) else None


def _name_action(before: PageUrl, after: PageUrl, label: str) -> str:
    """What the original counts an action as in `session["actions"]`; empty for the first page."""
    if after.kind is PageKind.RESULTS:
        return "search"
    if after.kind is PageKind.SUB:
        return after.sub_page
    if after.kind is PageKind.ITEM and label != "< prev":
        return "options" if before.kind is PageKind.ITEM else "asin"
    return "purchase" if after.kind is PageKind.DONE else ""
