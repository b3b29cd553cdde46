"""A web shop with knobs: its pages as observations and actions, and how a schedule's shop is built."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from drift_envs.checks import LARGEST_COUNT, check_choice, check_flag, check_integer
from drift_envs.envs.poison import PoisonedEnv, poison_knob, poison_rule
from drift_envs.envs.webshop.backends import BACKENDS, Backend, BrowserOptions, make_backend
from drift_envs.envs.webshop.picture import draw_page, lay_out
from drift_envs.envs.webshop.tasks import GoalSequence, open_inventory
from drift_envs.errors import ArgumentError, KnobError, StateError
from drift_envs.knobs import FrozenMapping, Knob, KnobTable, Value, mapping_knob, thaw
from drift_envs.registration import IDS, EnvParts
from drift_envs.schedule.model import TaskPool
from drift_envs.show.drawing import load_pygame, read_png
from drift_envs.tasks.recurring_tasks import RecurringTasksEnv
from drift_envs.wrappers.drift import Source
from drift_envs.wrappers.options import WrapperOptions, load_with_conditions
from drift_envs.wrappers.overlay import CHANGED, DrawnMarks
from webshop_server.catalogue import KINDS
from webshop_server.errors import SettingsError, ShopError
from webshop_server.page_model import MAX_ACTION, MAX_LENGTH, AvailableActions, ShownPage, list_available_actions
from webshop_server.renderer import draw_picture, find_colored_choice
from webshop_server.settings import MAX_BUTTONS, ORDERS, THEMES, Settings
from webshop_server.shop import Session, Shop
from webshop_server.urls import MAX_QUERY, PageKind, parse_path

_DEFAULT = Settings()
_NAMES = frozenset(item.name for item in dataclasses.fields(Settings) if item.init)
_NAMED = re.compile(r"`(\w+)[^`]*` (.*)", re.DOTALL)


def to_settings(values: Mapping[str, Value]) -> Settings:
    """Return knob values as the shop's settings; equal values return the same object.

    Args:
        values: canonical values of some or all knobs; the others have their default.

    Raises:
        SettingsError: values contradict each other.

    Example:
        >>> to_settings({"ad_page": True, "ad_right_button": "C", "transient": 0.1}).ad_right_button
        'C'
    """
    return _settings(tuple((name, value) for name, value in values.items() if name in _NAMES))


@lru_cache(maxsize=256)
def _settings(values: tuple[tuple[str, Value], ...]) -> Settings:
    return _DEFAULT.replace(**dict(values))


def _checked(name: str, value: Any) -> Any:
    """Return a setting's value in the shop's canonical form.

    Raises:
        KnobError: the shop refuses it.
    """
    changes = {name: thaw(value)}
    if name == "ad_labels" and value:  # rules between settings are checked by the table
        changes |= {"ad_buttons": 2, "ad_right_button": value[0]}
    try:
        return getattr(_DEFAULT.replace(**changes), name)
    except SettingsError as error:
        raise KnobError(str(error)) from None


def _parse_labels(value: Mapping[str, Any]) -> FrozenMapping:
    return FrozenMapping(dict(_checked("button_labels", value)))


def _parse_classes(value: Mapping[str, Any]) -> FrozenMapping:
    """Return the colours of each class; classes that are not given keep their default."""
    return FrozenMapping(dict(_checked("color_classes", {**dict(_DEFAULT.color_classes), **value})))


def _rule(values: Mapping[str, Value]) -> Iterator[tuple[str, str]]:
    yield from poison_rule(values)
    try:
        to_settings(values)
    except SettingsError as error:
        found = _NAMED.fullmatch(str(error))
        yield (found[1], found[2]) if found else ("", str(error))


def _name_list(name: str, doc: str, default: tuple[str, ...] = ()) -> Knob:
    return Knob(name, default, None, doc, "rows", parse=partial(_checked, name))


_CLASSES = FrozenMapping(dict(_DEFAULT.color_classes))

WEBSHOP_KNOBS = KnobTable(
    (
        Knob("ad_page", False, None, "whether an advertisement comes between Buy Now and the order", "boolean"),
        Knob("ad_right_button", "A", None, "the label of the button that leads to the order", "string"),
        Knob("ad_buttons", 5, (2, MAX_BUTTONS), "how many buttons an advertisement has", "integer"),
        _name_list("ad_labels", "their labels in order", _DEFAULT.ad_labels),
        Knob("ad_depth", 3, (0, 1000), "further advertisements behind a wrong button", "integer"),
        Knob("ad_escape", False, None, "whether the right button leads out of those as well", "boolean"),
        Knob("color_classes", _CLASSES, None, "class of colours: the colours that count as such", "mapping",
             parse=_parse_classes),
        mapping_knob("button_labels", "button: its new label", _parse_labels),
        Knob("result_order", "relevance", ORDERS, "the order of the best 50 listings", "string"),
        _name_list("demoted", "targets that stand behind all other results"),
        Knob("price_factor", 1.0, (0.01, 100.0), "by how much prices are multiplied"),
        _name_list("price_targets", "targets that it applies to; none means all"),
        _name_list("sold_out", "targets that cannot be bought"),
        _name_list("injected", "targets whose title demands to be bought"),
        Knob("theme", THEMES[0], THEMES, "the era of the web after which documents look; texts stay", "string"),
        Knob("transient", 0.0, (0.0, 1.0), "probability that an action has no effect, in this step only"),
        poison_knob("sell a listing out"),
    ),
    rule=_rule,
)  # fmt: skip
"""Targets are asins, `seller:NAME`, `category:NAME`, or `offer:N` for the N-th of several equal offers."""


OBSERVATION_MODES = ("text", "text_rich", "html", "url+text")
"""The visible texts; the same with marks for buttons; the HTML; a JSON state of texts and URL."""

HOST = "http://127.0.0.1:3000"
"""The host of URLs in observations, as in the GLOVE paper, for all backends."""

LENGTHS = {"text": 1, "text_rich": 2, "html": 8, "url+text": 3}
"""The maximum length of an observation by mode, as a multiple of `max_length`."""


def format_state(page: ShownPage[object], max_length: int = MAX_LENGTH) -> str:
    """Return a page as a JSON state: its visible texts, one a line, and its URL (GLOVE, appendix B.3).

    Args:
        page: the page.
        max_length: the maximum length of its text, in characters.
    """
    state = {"html": "\n".join(page.parts)[:max_length], "url": HOST + hide_session(page.path)}
    return json.dumps(state, ensure_ascii=False)


def list_actions(page: ShownPage[object], words: str) -> list[str]:
    """Return the valid actions of a page: a search first if it has a search bar, then every click, in order.

    Args:
        page: the page.
        words: the query; of a longer one, what a search reads of it.
    """
    clicks = [f"click[{label}]" for label, target in page.clickables.items() if target is not None]
    return [f"search[{words[:MAX_QUERY]}]", *clicks] if page.has_search_bar else clicks


def fit(text: str, charset: Container[str]) -> str:
    """Replace the characters of a text outside a character set by `?`.

    Args:
        text: the text.
        charset: the character set.

    Example:
        >>> fit("tea €5", "tea 5")
        'tea ?5'
    """
    return "".join(char if char in charset else "?" for char in text)


def hide_session(path: str) -> str:
    """Replace the session in a path, so that equal pages have equal URLs.

    Args:
        path: the path of a URL of the shop.

    Example:
        >>> hide_session("/search_results/7f3a/red+shoes/1"), hide_session("/7f3a")
        ('/search_results/<session_id>/red+shoes/1', '/<session_id>')
    """
    parts = path.split("/")
    parts[1 if len(parts) == 2 else 2] = "<session_id>"
    return "/".join(parts)


_SEED_BELOW = 2**63
_LISTINGS = tuple(f"/{kind.value}/" for kind in (PageKind.ITEM, PageKind.SUB))
"""How the paths of a listing's own pages begin."""


class WebShop(RecurringTasksEnv, PoisonedEnv, gym.Env[str, str]):
    """A web shop: an instruction to buy a product, pages as text, actions `search[words]` and `click[label]`.

    The shop is `webshop_server`, a clone of WebShop (Yao et al., 2022), which has no notion of drift; the
    knobs are its settings.

    Knobs, with defaults and bounds: `drift-envs list --env DriftWebShop-v0`.

    A target is an asin, `seller:NAME`, `category:NAME`, or `offer:N` for the N-th of several equal offers.

    | info | meaning |
    |---|---|
    | `task` | the instruction |
    | `actions` | the valid clicks; on a page with a search bar, first a search for the task's words |
    | `score` | the score of the purchase, 0.0 before it |
    | `last_action_error` | the reason why the last action was invalid, or `None` |

    A visit of a listing (`poison_after`) is the arrival at its page from one that is not its own, in this instance or
    in a twin. The page that sells it out still has its button, which then has no effect. `reset` clears the counts, a
    twin's `reset` does not.

    The reward is the score of the purchase, from 0 to 1, which ends the episode. An invalid action changes
    nothing and has reward 0. `reset(options={"goal_index": i})` selects the goal.

    Args:
        render_mode: `human`, `rgb_array`, `ansi` or `None`.
        observation_mode: one of `OBSERVATION_MODES`.
        backend: `in_process`, `http` or `browser`.
        catalogue: a catalogue file; by default the generated one.
        goals: `synthetic`, `human` or `color_class`.
        pool: the number of recurring goals; `None` draws from all goals of the catalogue, by their weights.
        order: `shuffled`, `fixed`, `clustered` (one group of similar goals after the other) or `mixed` (the goals of
            these groups, shuffled).
        clusters: the number of groups; only for `clustered` and `mixed`.
        repeats: the number of times that each goal of a group occurs before the next group; only for `clustered`.
        held_out: whether to sell the generated catalogue of seed `HELD_OUT_SEED`, and to ask for no goal that shares
            its instruction or its listing's title with one of the default catalogue. Excludes `catalogue`.
        conditions: knob values under each of which every goal of the pool has a purchase with score 1.0.
        max_length: the maximum length of a page's text, in characters.
        native_clicks: whether the browser's clicks are mouse clicks, which a covered button does not receive;
            scripted clicks are faster.

    Raises:
        ArgumentError: an argument breaks a rule, or the catalogue cannot be used.

    Example:
        >>> shop = WebShop(pool=3)
        >>> page, info = shop.reset(seed=0)
        >>> page.split(" [SEP] ")[:2], info["last_action_error"]
        (['WebShop', 'Instruction:'], None)
        >>> page, reward, done, _, info = shop.step("search[wool blanket]")
        >>> page.split(" [SEP] ")[2:4]
        ['Back to Search', 'Page 1 (Total results: 39)']
        >>> shop.step("click[buy now]")[4]["last_action_error"]
        "there is no button 'buy now' on this page"
    """

    metadata = {  # noqa: RUF012 - as Gymnasium declares it
        "render_modes": ["human", "rgb_array", "ansi"],
        "render_fps": 2,
    }
    knobs: ClassVar[KnobTable] = WEBSHOP_KNOBS
    parts: ClassVar[EnvParts | None] = IDS["DriftWebShop-v0"]
    window_title = "WebShop"
    ad_right_button: str
    color_classes: Mapping[str, tuple[str, ...]]
    _transient: float

    def __init__(
        self,
        render_mode: str | None = None,
        *,
        observation_mode: str = "text",
        backend: str = "in_process",
        catalogue: str | os.PathLike[str] | None = None,
        goals: str = "synthetic",
        pool: int | None = None,
        order: str = "shuffled",
        clusters: int = 3,
        repeats: int = 1,
        held_out: bool = False,
        conditions: Sequence[Mapping[str, Value]] = (),
        max_length: int = MAX_LENGTH,
        native_clicks: bool = True,
    ) -> None:
        self._set_modes(render_mode, observation_mode, OBSERVATION_MODES)
        check_choice("backend", backend, BACKENDS)
        check_choice("goals", goals, KINDS)
        max_length = check_integer("max_length", max_length, 1000, LARGEST_COUNT)
        try:
            inventory = open_inventory(catalogue, held_out)
            self.shop = Shop(inventory, goal_kind=goals, max_length=max_length)
            inventory.goals(goals)  # a catalogue without goals of this kind is refused here
        except ShopError as error:
            raise ArgumentError(f"`catalogue`: {error}") from error
        self.backend_name = backend
        for name, value in WEBSHOP_KNOBS.defaults().items():
            setattr(self, f"_{name}", value)
        self._browser_options = BrowserOptions(
            render_mode == "human", render_mode in ("human", "rgb_array"), check_flag("native_clicks", native_clicks)
        )
        self._settings: Settings = to_settings(WEBSHOP_KNOBS.defaults())
        settings = [to_settings(values) for values in conditions]
        self._tasks = GoalSequence(self.shop, pool, order, settings, clusters, repeats, held_out)
        self._backend: Backend | None = None
        self._score = 0.0
        self._error: str | None = None
        charset = "".join(sorted(inventory.charset))
        self.observation_space = spaces.Text(max_length * LENGTHS[observation_mode], min_length=0, charset=charset)
        self.action_space = spaces.Text(MAX_ACTION, min_length=0, charset=charset)

    @property
    def backend(self) -> Backend:
        """The backend; created on first use."""
        if self._backend is None:
            self._backend = make_backend(self.backend_name, self.shop, self._browser_options)
            self._backend.configure(self._settings)
        return self._backend

    @property
    def page(self) -> ShownPage[object]:
        """The current page.

        Raises:
            StateError: before the first `reset`.
        """
        if self.goal_index is None:
            raise StateError("there is no page before `reset`; call `reset` first")
        return self.backend.page

    @property
    def task_pool(self) -> tuple[int, ...] | None:
        """The numbers of the recurring goals, or `None` for all goals of the catalogue. For evaluators."""
        self._seed_tasks(None)
        return self._tasks.pool

    def other_tasks(self, count: int) -> tuple[int, ...]:
        """The numbers of goals outside `task_pool`, drawn by the same rules from the same seed. For evaluators.

        Pass one to `reset` as the option `goal_index`.

        Args:
            count: the number of goals.

        Raises:
            ArgumentError: the catalogue has too few.
        """
        self._seed_tasks(None)
        return self._tasks.others(count)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: seeds the environment's generator, and draws a new pool of goals.
            options: `goal_index` is the number of the goal; by default the next one.

        Returns:
            The page with the search bar, and `info`.

        Raises:
            ArgumentError: no goal has this number, or there is no such option.
        """
        index = self._read_goal_index(options or {}, len(self.shop.goals) - 1)
        super().reset(seed=seed)
        self._seed_tasks(None if self._keeps_tasks else seed)
        self._keeps_tasks = False
        self.goal_index = self._tasks.next() if index is None else index
        self._clear_visits()
        if self._poison_after:
            self._sell_out()
        self.backend.start(self.goal_index)
        self._score, self._error = 0.0, None
        if self.render_mode == "human":
            self.render()
        return self._observe(), self._make_info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Search or click.

        Args:
            action: `search[words]` or `click[label]`, in any case.

        Returns:
            The page, the score of the purchase if this action completed it (else 0.0), whether the session
            is over, `False`, and `info`.

        Raises:
            ArgumentError: the action is not a string.
            StateError: before the first `reset`.
        """
        if not isinstance(action, str):
            raise ArgumentError(f"`action` should be a text. Received {type(action).__name__}")
        if self.goal_index is None:
            raise StateError("`step` was called before `reset`; call `reset` first")
        if self._transient and self.np_random.random() < self._transient:
            reward, is_done, self._error = 0.0, bool(self._done), None
        elif self._poison_after:
            reward, is_done = self._act_and_count(str(action))
        else:
            _, reward, is_done, self._error = self.backend.act(str(action))
        self._score += reward
        if self.render_mode == "human":
            self.render()
        return self._observe(), reward, is_done, False, self._make_info()

    def _act_and_count(self, action: str) -> tuple[float, bool]:
        """Execute an action where visits sell listings out."""
        self._sell_out()
        before = self._read_listing()
        _, reward, is_done, self._error = self.backend.act(action)
        after = self._read_listing()
        if after is not None and after != before:
            self.visits.note(after)
        return reward, is_done

    def _read_listing(self) -> str | None:
        """The asin of the listing whose page is shown; `None` on other pages."""
        path = self.page.path
        return parse_path(path).asin if path.startswith(_LISTINGS) else None

    def _sell_out(self) -> None:
        """Add the listings that were visited too often to the settings of the next page."""
        sold = tuple(asin for asin in self.visits.places(self._poison_after) if asin not in self._sold_out)
        settings = self._settings.replace(sold_out=(*self._sold_out, *sold)) if sold else self._settings
        self.backend.configure(settings)

    _sold_out: tuple[str, ...]
    _tasks: GoalSequence

    @property
    def _done(self) -> bool:
        return not self.page.clickables and not self.page.has_search_bar

    def get_available_actions(self) -> AvailableActions:
        """Return `has_search_bar` and `clickables` of the current page, as in the original.

        Raises:
            StateError: before the first `reset`.
        """
        return list_available_actions(self.page)

    @property
    def instruction(self) -> str:
        """The task in words.

        Raises:
            StateError: before the first `reset`.
        """
        if self.goal_index is None:
            raise StateError("there is no instruction before `reset`; call `reset` first")
        return fit(self.shop.goals[self.goal_index].text, self.shop.charset)

    def set_knobs(self, values: Mapping[str, Value]) -> None:
        """Set these knobs to canonical values, all at once.

        Args:
            values: canonical values, by knob.
        """
        poisoned = self._poison_after
        super().set_knobs(values)
        settings = to_settings(self.read_knobs())
        # where nothing sells out any more, the backend still has what did
        if settings != self._settings or (poisoned and not self._poison_after):
            self._settings = settings
            if self._backend is not None:
                self._backend.configure(settings)

    def save_state(self) -> dict[str, Any]:
        """Return the state of the episode, without knobs and random generators."""
        return {
            "backend": self.backend.save(),
            "goal_index": self.goal_index,
            "score": self._score,
            "error": self._error,
            "visits": self._save_visits(),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore a state of an episode.

        Args:
            state: the result of `save_state`.
        """
        self.backend.load(state["backend"])
        self.goal_index, self._score, self._error = state["goal_index"], state["score"], state["error"]
        self._load_visits(state["visits"])

    def save_running(self) -> dict[str, Any]:
        """The state of the episode for another process; a session in this process alone can be saved."""
        session = getattr(self.backend, "session", None)
        if not isinstance(session, Session):
            return self.save_state()  # refused by the backend
        return {**self.save_state(), "backend": {"session": session.to_dict(), "page": session.page}}

    def load_running(self, saved: Any) -> None:
        """Restore the state of an episode of another process.

        Args:
            saved: from `save_running`.
        """
        found, present = saved["backend"], self.backend.save()
        session = Session.restore(present.shop, found["session"], present.session_id)
        session.page = found["page"]  # of the settings with which it was built
        self.load_state({**saved, "backend": session})

    def render(self) -> Any:
        """Render the page: as text (`ansi`), as an array (`rgb_array`), or in a window (`human`)."""
        if self.render_mode == "human" and self.backend_name == "browser":
            return None  # its own window shows the page
        return super().render()

    def _write_page(self) -> str:
        return self.page.text_rich

    def _draw_page(self) -> np.ndarray:
        photo = self.backend.screenshot()
        if photo is not None:
            return read_png(photo)
        return draw_page(parse_path(self.page.path).kind, self.page.elements, self.draw_listings())

    def draw_listings(self) -> dict[str, str]:
        """Draw the listings of the current page as SVG, by the labels of their links.

        The page's own listing, in its chosen colour, has the label "".
        """
        catalogue = self.shop.inventory.catalogue
        url = parse_path(self.page.path)
        links = [element for element in self.page.elements if element.kind == "product"]
        shown = {link.label: link.text if link.target is None else link.target.asin for link in links}
        if url.kind in (PageKind.ITEM, PageKind.SUB, PageKind.CONFIRM):
            shown[""] = url.asin
        found = {label: catalogue.product(asin) for label, asin in shown.items()}
        choice = find_colored_choice(url.options)
        return {label: draw_picture(product, choice) for label, product in found.items() if product is not None}

    def close(self) -> None:
        """Close the backend and the window."""
        super().close()
        backend, self._backend = self._backend, None
        if backend is not None:
            backend.close()
            self.goal_index = None

    def _seed_tasks(self, seed: int | None) -> None:
        """Seed the order of goals with a separate stream, independent of other draws."""
        if seed is not None or not self._tasks.is_seeded:
            self._tasks.seed(int(self.np_random.integers(_SEED_BELOW)))

    def _observe(self) -> str:
        """The observation, in the observation mode."""
        page, mode = self.page, self.observation_mode
        if mode == "text":
            return page.text
        if mode == "text_rich":
            return page.text_rich
        if mode == "html":
            return self.backend.html()[: self.shop.max_length * LENGTHS[mode]]
        return format_state(page, self.shop.max_length)

    def _make_info(self) -> dict[str, Any]:
        """The `info` of the agent."""
        task = self.instruction
        return {
            "task": task,
            "actions": list_actions(self.page, task),
            "score": self._score,
            "last_action_error": None if self._error is None else fit(self._error, self.shop.charset),
        }


def build(parts: EnvParts, schedule: Source, options: WrapperOptions, arguments: dict[str, Any]) -> gym.Env[Any, Any]:
    """Build the shop. A browser's pages have no overlay unless it is asked for.

    Args:
        parts: the declaration of the environment.
        schedule: the schedule, or `None`.
        options: the shared options.
        arguments: those of `WebShop`.

    Raises:
        ArgumentError: if the schedule sets the same as an argument.
        ScheduleError: if the schedule cannot be used.
    """
    if options.overlay is None and arguments.get("backend") == "browser":
        options = options._replace(overlay=False)
    if schedule is None:
        return options.wrap(WebShop(options.base_mode(schedule), **arguments), None)
    checked, conditions = load_with_conditions(schedule, parts, arguments)
    tasks = (checked.tasks or TaskPool()).model_dump()
    own = {**tasks, **arguments, "conditions": conditions}
    return options.wrap(WebShop(options.base_mode(checked), **own), checked)


class ShopMarks(DrawnMarks):
    """Frames around what a drift is about: an advertisement's right button, and options of a class of colours.

    Args:
        env: the shop; pages of a browser stay as they are.
    """

    def __init__(self, env: WebShop) -> None:
        self.env = env

    def draw(self, picture: np.ndarray, old: Mapping[str, Value] | None) -> np.ndarray:
        """The picture with marks, but that of a browser as it is."""
        return picture if self.env.backend_name == "browser" else super().draw(picture, old)

    def _draw_on(self, surface: Any, old: Mapping[str, Value] | None) -> None:
        pygame = load_pygame()
        labels = self._labels()
        kind = parse_path(self.env.page.path).kind
        for placed in lay_out(kind, self.env.page.elements):
            if placed.element.label in labels:
                pygame.draw.rect(surface, CHANGED, pygame.Rect(placed.box).inflate(8, 8), 3, border_radius=8)

    def _labels(self) -> set[str]:
        """The labels that get a frame: the right button, or the colours that the task's class means now."""
        if self.env.page.path.startswith("/ad/"):
            return {str(self.env.ad_right_button).lower()}
        goal = None if self.env.goal_index is None else self.env.shop.goals[self.env.goal_index]
        if goal is None or not goal.color_class:
            return set()
        colors = set(self.env.color_classes.get(goal.color_class, ()))
        return {element.label for element in self.env.page.elements if element.kind == "option"} & colors
