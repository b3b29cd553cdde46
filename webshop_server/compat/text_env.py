"""The original's text environment, as a plain class.

* `WebAgentTextEnv` - its constructor, methods and four values of `step`
* `SimServer` - catalogue, goals and sessions, which environments can share

Methods, attributes and texts follow WebShop's `web_agent_site.envs.web_agent_text_env` (Yao et al., 2022).
"""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import re
import string
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from webshop_server.checks import check_choice, check_integer, refuse
from webshop_server.compat import utils
from webshop_server.compat.goal import MODEL, count_nouns, describe_score, load_tagger
from webshop_server.errors import ArgumentError
from webshop_server.generate import DEFAULT_PRODUCTS, get_cache_dir
from webshop_server.goals import Goal, draw_uniform, resolve_price
from webshop_server.importer import import_products
from webshop_server.inventory import Inventory
from webshop_server.jsonstream import stream_entries
from webshop_server.page_builder import format_price
from webshop_server.product import Product
from webshop_server.renderer import render_html
from webshop_server.settings import Settings
from webshop_server.shop import Session, Shop
from webshop_server.urls import PageKind, PageUrl, normalize_query

MODES = ("html", "text", "text_rich", "url")
BASE_URL = "http://127.0.0.1:3000"

_ACTION = re.compile(r"(.+)\[(.+)\]")


class SimServer:
    """Catalogue, goals and sessions; environments can share one.

    Args:
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
        rule = load_tagger(MODEL) if check_choice("nouns", nouns, ("rule", "spacy")) == "spacy" else count_nouns
        file_path = utils.DEFAULT_FILE_PATH if file_path is None else file_path
        inventory = _open(file_path, attr_path, num_products, seed)
        kind = "human" if human_goals else "synthetic"
        if human_goals and file_path is None:
            kind = "synthetic"
            warnings.warn("a generated catalogue has no goals that people wrote: synthetic ones are used", stacklevel=3)
        self.shop = Shop(
            inventory, Settings(show_attributes=bool(show_attrs)), goal_kind=kind, nouns=rule, has_last_page=False
        )
        self.user_sessions: dict[str, dict[str, Any]] = {}
        self.seed = seed
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

    @cached_property
    def product_item_dict(self) -> Mapping[str, dict[str, Any]]:
        """The listings by asin, with the original's keys."""
        return _Products(self.shop)

    @cached_property
    def product_prices(self) -> dict[str, float]:
        """The price of each listing, in dollars."""
        inventory = self.shop.inventory
        return {product.asin: resolve_price(product, inventory.seed) for product in inventory.catalogue}

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
        session = self.shop.start(self.user_sessions[name]["number"], name)
        state = {
            "goal": _describe(session.goal, self.shop.goal_kind),
            "done": False,
            "asin": None,
            "asins": set(),
            "options": {},
            "keywords": None,
            "page": None,
            "actions": Counter(),
        }
        self.user_sessions[name].update(state)
        return session

    def _describe(self, number: int) -> dict[str, Any]:
        return _describe(self.shop.goals[number], self.shop.goal_kind)

    def _pick(self, draw: float) -> int:
        if self._numbers is None:
            return self.shop.goals.pick(draw)
        sums = list(itertools.accumulate(self.weights))
        return next((place for place, total in enumerate(sums) if draw * sums[-1] < total), len(sums) - 1)

    def _sample(self, numbers: list[int], count: int) -> list[int]:
        generator = random.Random(f"compat-goals-{self.seed}")
        left = dict.fromkeys(numbers)
        chosen: list[int] = []
        while len(chosen) < count:
            names = list(left)
            weights = [self.shop.goals.weight(number) for number in names]
            (number,) = generator.choices(names, weights)
            chosen.append(number)
            del left[number]
        return chosen


class WebAgentTextEnv:
    """The original's text environment.

    Args:
        observation_mode: one of `MODES`.
        file_path: the catalogue, as in `SimServer`.
        server: a `SimServer` to share; the arguments of its own are not used then.
        session: accepted as in the original, whose first `reset` ignores it too.
        session_prefix: put before each session's name.
        num_prev_obs: the number of earlier observations in each state.
        num_prev_actions: the number of earlier actions in each state.
        get_image: not supported: the vectors of pictures are a download.
        **options: further arguments of `SimServer`.

    Raises:
        ArgumentError: an argument breaks a rule.
        CatalogueError: the catalogue cannot be used.

    Example:
        >>> env = WebAgentTextEnv(observation_mode="text", num_products=100)
        >>> observation, _ = env.reset(session=3)
        >>> observation.startswith("WebShop [SEP] Instruction: [SEP] ")
        True
        >>> env.get_available_actions()
        {'has_search_bar': True, 'clickables': ['search']}
        >>> observation, reward, done, info = env.step("search[shirt]")
        >>> observation.split(" [SEP] ")[2:4], reward, done, info
        (['Back to Search', 'Page 1 (Total results: 3)'], 0.0, False, None)
    """

    metadata: Mapping[str, Any] = {"render_modes": [], "render.modes": []}
    """Of old versions of gym, as are the next ones."""

    reward_range = (0.0, 1.0)
    action_space: Any = None
    observation_space: Any = None
    spec: Any = None

    def __init__(
        self,
        observation_mode: str = "html",
        file_path: str | Path | None = None,
        server: SimServer | None = None,
        *,
        session: object = None,
        session_prefix: str | None = None,
        num_prev_obs: int = 0,
        num_prev_actions: int = 0,
        get_image: object = 0,
        **options: Any,
    ) -> None:
        self.observation_mode = check_choice("observation_mode", observation_mode, MODES)
        if get_image:
            raise refuse("get_image", "0: the vectors of pictures are a download", get_image, ArgumentError)
        self.num_prev_obs = check_integer("num_prev_obs", num_prev_obs, 0)
        self.num_prev_actions = check_integer("num_prev_actions", num_prev_actions, 0)
        try:
            self.server = SimServer(file_path, **options) if server is None else server
        except TypeError as error:
            raise ArgumentError(f"`WebAgentTextEnv` should have other arguments: {error}") from error
        self.base_url = BASE_URL
        self.session: str | None = None if session is None else str(session)
        self.session_prefix = session_prefix
        self._names = random.Random(f"compat-names-{self.server.seed}")
        self.reset()

    @property
    def unwrapped(self) -> WebAgentTextEnv:
        """The environment itself, for wrappers of old versions of gym."""
        return self

    def reset(self, session: int | str | None = None, instruction_text: str | None = None) -> tuple[str, None]:
        """Start a session.

        Args:
            session: a goal's number, or a name; a name keeps its goal. By default a new name with a drawn goal.
            instruction_text: shown by `state` in the place of the goal's instruction.

        Returns:
            The observation, and `None`.

        Raises:
            ArgumentError: no goal has this number.
        """
        number = session if isinstance(session, int) and not isinstance(session, bool) else None
        name = "".join(self._names.choices(string.ascii_lowercase, k=10)) if session is None else str(session)
        self.session = (self.session_prefix or "") + name
        self._shown = self.server.start(self.session, number)
        self.instruction_text = self.get_instruction_text() if instruction_text is None else instruction_text
        self.prev_obs: list[str] = [self.observation]
        self.prev_actions: list[str] = []
        return self.observation, None

    def step(self, action: str) -> tuple[str, float, bool, None]:
        """Take an action; an invalid one changes nothing.

        Args:
            action: `search[words]`, valid on every page, or `click[label]`.

        Returns:
            The state (the observation, after earlier ones and earlier actions, as many as `num_prev_obs` and
            `num_prev_actions`), the reward, whether something has been bought by this action, and `None`.
        """
        found = _ACTION.match(action) if isinstance(action, str) else None
        name, argument = (found[1], found[2].lower()) if found else ("", "")
        reward, is_done = 0.0, False
        if name == "search" and normalize_query(argument):
            self._leave_end()
            self._visit(PageUrl(PageKind.RESULTS, normalize_query(argument)), "search")
        elif name == "click" and argument != "search" and argument in self.text_to_clickable:
            self._visit(self.text_to_clickable[argument], argument)
            reward, is_done = self._shown.reward, self._shown.is_done
        observation, parts = self.observation, [self.observation]
        self.prev_actions.append(action)
        for place in range(1, 1 + max(self.num_prev_obs, self.num_prev_actions)):
            if place <= min(len(self.prev_actions), self.num_prev_actions):
                parts.append(self.prev_actions[-place])
            if place <= min(len(self.prev_obs), self.num_prev_obs):
                parts.append(self.prev_obs[-place])
        self.prev_obs.append(observation)
        return " [SEP] ".join(reversed(parts)), reward, is_done, None

    @property
    def text_to_clickable(self) -> dict[str, PageUrl]:
        """The target of each label: buttons and listings, then options, as in the original."""
        options: dict[str, PageUrl] = {}
        others: dict[str, PageUrl] = {}
        for element in self._shown.page.elements:
            if element.label:
                target = element.target or self._shown.page.url
                (options if element.kind == "option" else others)[element.label] = target
        return {**others, **options}

    def get_available_actions(self) -> dict[str, Any]:
        """Return `has_search_bar` and `clickables`."""
        return {"has_search_bar": self._shown.page.has_search_bar, "clickables": list(self.text_to_clickable)}

    def get_instruction_text(self) -> str:
        """Return the instruction with the word before it, as the page shows it."""
        page = self._shown.page
        shown = [page.fit(element.text) for element in page.elements if element.name == "instruction"]
        return f"Instruction:{' ' if page.url.kind is PageKind.START else ''}{''.join(shown)}"

    @property
    def observation(self) -> str:
        """The page in the observation mode."""
        page = self._shown.page
        if self.observation_mode == "html":
            return render_html(page, "original.html")
        if self.observation_mode == "url":
            return self._build_url()
        return page.text if self.observation_mode == "text" else page.text_rich

    @property
    def state(self) -> dict[str, str]:
        """The URL, the document and the instruction."""
        document = render_html(self._shown.page, "original.html")
        return {"url": self._build_url(), "html": document, "instruction_text": self.instruction_text}

    def render(self, mode: str = "human") -> None:
        """Do nothing, as in the original."""

    def close(self) -> None:
        """Do nothing, as in the original."""

    def _leave_end(self) -> None:
        """After a purchase the original can still search; the session goes on with its goal."""
        if self._shown.is_done:
            self._shown = self.server.start(self._shown.session_id, None)

    def _visit(self, url: PageUrl, label: str) -> None:
        before = self._shown.page.url
        page = self._shown.visit(url)
        entry = self.server.user_sessions[self._shown.session_id]
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
        if self._shown.score is not None:
            parts = describe_score(self._shown.score)
            entry.update(done=True, reward=self._shown.reward, verbose_info=parts)

    def _build_url(self) -> str:
        """Return the page's URL as the original writes it."""
        url = self._shown.page.url
        name, words, options = self._shown.session_id, url.keywords.replace(" ", "+"), dict(url.options)
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


def _name_action(before: PageUrl, after: PageUrl, label: str) -> str:
    """What the original counts an action as in `session["actions"]`; empty for the first page."""
    if after.kind is PageKind.RESULTS:
        return "search"
    if after.kind is PageKind.SUB:
        return after.sub_page
    if after.kind is PageKind.ITEM and label != "< prev":
        return "options" if before.kind is PageKind.ITEM else "asin"
    return "purchase" if after.kind is PageKind.DONE else ""


class _Products(Mapping[str, "dict[str, Any]"]):
    """The listings by asin, with the original's keys."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop

    def __getitem__(self, asin: str) -> dict[str, Any]:
        product = self._shop.inventory.catalogue.product(asin)
        if product is None:
            raise KeyError(asin)
        return _describe_product(product, self._shop.settings)

    def __iter__(self) -> Iterator[str]:
        return (product.asin for product in self._shop.inventory.catalogue)

    def __len__(self) -> int:
        return len(self._shop.inventory)


def _describe_product(product: Product, settings: Settings) -> dict[str, Any]:
    return {
        "asin": product.asin,
        "name": product.title,
        "Title": product.title,
        "Description": product.description,
        "BulletPoints": list(product.bullets),
        "Rating": product.rating or "N.A.",
        "Reviews": [review._asdict() for review in product.reviews],
        "Attributes": list(product.attributes),
        "Price": format_price(product, settings),
        "pricing": list(product.prices) or [resolve_price(product, 0)],
        "options": {option.name: list(option.values) for option in product.options},
        "customization_options": {option.name: list(option.values) for option in product.options},
        "category": product.category,
        "query": product.query,
        "product_category": product.product_category,
    }


def _describe(goal: Goal, kind: str) -> dict[str, Any]:
    """A goal with the original's keys: options by name for synthetic goals, else as a list."""
    options = [value for _, value in goal.options] if kind == "human" else dict(goal.options)
    return {**goal.to_dict(), "goal_options": options}


def _open(file_path: str | Path | None, attr_path: str | Path | None, num_products: int | None, seed: int) -> Inventory:
    if num_products is not None:
        check_integer("num_products", num_products, 1)
    if attr_path is not None and (file_path is None or Path(file_path).suffix != ".json"):
        raise refuse("attr_path", "None where `file_path` is no file of the original", str(attr_path), ArgumentError)
    if file_path is None:
        return Inventory.open(Inventory.default(num_products or DEFAULT_PRODUCTS).catalogue.path, seed)
    path = Path(file_path)
    if path.suffix == ".json":
        return Inventory.open(_import_once(path, attr_path, num_products), seed)
    inventory = Inventory.open(path, seed)
    if num_products not in (None, len(inventory)):
        raise refuse("num_products", f"{len(inventory)}, as many as the catalogue has", num_products, ArgumentError)
    return inventory


def _import_once(path: Path, attr_path: str | Path | None, num_products: int | None) -> Path:
    """Import the original's files into the cache, unless that has been done."""
    attributes = _beside(path, "items_ins_v2") if attr_path is None else Path(attr_path)
    files = [path, attributes, _beside(path, "items_human_ins")]
    try:
        states = [(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in files if file]
    except OSError as error:
        raise refuse("file_path", "a file that can be read", str(path), ArgumentError) from error
    key = hashlib.sha256(repr((states, num_products)).encode()).hexdigest()[:16]
    out = get_cache_dir() / f"imported-{key}.sqlite"
    if not out.exists():
        source = path
        if num_products is not None:
            source = out.with_suffix(".json")
            source.parent.mkdir(parents=True, exist_ok=True)
            entries = itertools.islice(stream_entries(path), num_products)
            source.write_text(json.dumps([entry.value for entry in entries if not entry.problem]), "utf-8")
        import_products(out, source, *files[1:])
        if source is not path:
            source.unlink()
    return out


def _beside(path: Path, name: str) -> Path | None:
    """The file of a name in the same folder, with the same ending, such as `_1000`."""
    ending = path.stem.removeprefix("items_shuffle")
    found = (path.with_name(f"{name}{end}.json") for end in (ending, ""))
    return next((file for file in found if file.exists()), None)
