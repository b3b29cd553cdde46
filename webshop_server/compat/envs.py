"""The original's environments as plain classes: in texts, and in a browser on the pages of `serve --compat`.

Methods, attributes and texts follow WebShop's `web_agent_site.envs` (Yao et al., 2022). The one in a browser needs
Chromium and its driver, and a server: `python -m webshop_server serve --port 3000 --compat`.
"""

from __future__ import annotations

import re
import secrets
import shutil
import time
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from webshop_server.compat.engine import END_BUTTON, parse_action
from webshop_server.compat.server import BASE_URL, SimBrowser, SimServer, list_clickables, read_number
from webshop_server.errors import ArgumentError, ShopError, check_choice, check_integer, refuse
from webshop_server.page_model import find_label
from webshop_server.product import clean
from webshop_server.shop import Session
from webshop_server.urls import PageKind, PageUrl, normalize_query

__all__ = ["BASE_URL", "MODES", "SimBrowser", "SimServer", "WebAgentSiteEnv", "WebAgentTextEnv"]

MODES = ("html", "text", "text_rich", "url")
_ACTION = re.compile(r"(.+)\[(.+)\]")

_OPTIONS = (
    "filter_goals", "limit_goals", "num_products", "human_goals", "show_attrs", "nouns", "seed", "attr_path"
)  # fmt: skip
"""Of the arguments, those of `SimServer`."""

_SECONDS = 20.0

_TEXTS = """
const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const text = walker.currentNode.data.trim();
  if (text && !['SCRIPT', 'STYLE'].includes(walker.currentNode.parentNode.tagName)) found.push(text);
}
return found;
"""


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
        **options: further arguments of `SimServer`; others are ignored, as in the original.

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
        self.kwargs = options
        self.file_path = file_path
        self.base_url = BASE_URL
        if server is None:
            given = {name: options[name] for name in _OPTIONS if name in options}
            server = SimServer(self.base_url, file_path, **given)
        self.server = server
        self.browser = SimBrowser(server)
        self.session: str | None = None if session is None else str(session)
        self.session_prefix = session_prefix
        self.reset()

    @property
    def _shown(self) -> Session:
        return self.browser.opened

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
        number = read_number(session)
        name = self.server.draw_name() if session is None else str(session)
        self.session = (self.session_prefix or "") + name
        self.browser.get(f"{self.base_url}/{self.session}", self.session, number)
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
        status: dict[str, Any] = {"reward": 0.0, "done": False}
        if name == "search" and normalize_query(argument):
            status = self.browser.search(argument)
        elif name == "click" and find_label(argument, self.text_to_clickable) in self.text_to_clickable:
            status = self.browser.click(argument, self.text_to_clickable)
        observation, parts = self.observation, [self.observation]
        self.prev_actions.append(action)
        for place in range(1, 1 + max(self.num_prev_obs, self.num_prev_actions)):
            if place <= min(len(self.prev_actions), self.num_prev_actions):
                parts.append(self.prev_actions[-place])
            if place <= min(len(self.prev_obs), self.num_prev_obs):
                parts.append(self.prev_obs[-place])
        self.prev_obs.append(observation)
        return " [SEP] ".join(reversed(parts)), status["reward"], status["done"], None

    @property
    def text_to_clickable(self) -> dict[str, PageUrl]:
        """The target of each label: buttons and listings, then options, as in the original."""
        return list_clickables(self._shown)

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
            return str(self.browser.page_source)
        if self.observation_mode == "url":
            return self.server.build_url(self._shown)
        return page.text if self.observation_mode == "text" else page.text_rich

    @property
    def state(self) -> dict[str, str]:
        """The URL, the document and the instruction."""
        url, document = str(self.browser.current_url), str(self.browser.page_source)
        return {"url": url, "html": document, "instruction_text": self.instruction_text}

    def convert_html_to_text(self, html: str, simple: bool = False) -> str:
        """Return the visible texts of a document.

        Args:
            html: the document.
            simple: joined by ` [SEP] `; otherwise a line each, with marks around what can be clicked.
        """
        reader = _TextReader()
        reader.feed(html)
        reader.close()
        if simple:
            return " [SEP] ".join(text for text, _ in reader.texts)
        visited = self.server.user_sessions[self._shown.session_id]["asins"]
        lines: list[str] = []
        for text, kind in reader.texts:
            is_chosen = f'"{text}"' in self.state["url"] if kind == "label" else text in visited
            mark = "clicked button" if is_chosen and kind != "button" else "button"
            before = {"label": "  ", "product-link": "\n"}.get(kind, "")
            if kind == "label" and is_chosen:
                lines.insert(0, f"You have clicked {text}.")
            lines.append(f"{before}[{mark}] {text} [{mark}_]" if kind else text)
        return "".join(f"{line}\n" for line in lines)

    def render(self, mode: str = "human") -> None:
        """Do nothing, as in the original."""

    def close(self) -> None:
        """Do nothing, as in the original."""


class _TextReader(HTMLParser):
    """Collects the visible texts of a document, with what can be clicked of them."""

    _HIDDEN = ("style", "script", "head", "title", "meta")

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[tuple[str, str]] = []
        self._open: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag not in ("br", "hr", "img", "input", "link", "meta"):
            kind = tag if tag in ("button", "label") else ""
            self._open.append((tag, "product-link" if dict(attributes).get("class") == "product-link" else kind))

    def handle_endtag(self, tag: str) -> None:
        if any(name == tag for name, _ in self._open):
            while self._open.pop()[0] != tag:
                pass

    def handle_data(self, data: str) -> None:
        name, kind = self._open[-1] if self._open else ("", "")
        if data.strip() and name not in self._HIDDEN:
            self.texts.append((data.strip(), kind))


class WebAgentSiteEnv:
    """The original's environment in a browser.

    Args:
        observation_mode: `html`, or `text` (the visible texts).
        session: the name of every session, such as `fixed_7` for goal 7; by default a new name each time.
        render: whether the browser's window is shown.
        pause: seconds to wait after each action.
        base_url: the address of the server.
        **ignored: other arguments, which the original ignores too.

    Raises:
        ArgumentError: an argument breaks a rule.
        ShopError: Chromium is not installed, or the server does not answer.
    """

    action_space: Any = None
    observation_space: Any = None

    def __init__(
        self,
        observation_mode: str = "html",
        *,
        session: str | None = None,
        render: object = False,
        pause: float = 0.0,
        base_url: str = BASE_URL,
        **ignored: object,
    ) -> None:
        self.observation_mode = check_choice("observation_mode", observation_mode, ("html", "text"))
        self.browser = _start_browser(bool(render))
        self.text_to_clickable: dict[str, Any] = {}
        self.assigned_session = session
        self.session: str | None = None
        self.base_url = base_url
        self._pause = pause
        try:
            self.reset()
        except BaseException:
            self.close()
            raise

    def reset(self) -> tuple[str, None]:
        """Open the first page of a session.

        Returns:
            The observation, and `None`.

        Raises:
            ShopError: the server does not answer.
        """
        from selenium.common.exceptions import WebDriverException

        # not from the global generator: programs with one seed would share their sessions on a server
        self.session = self.assigned_session or secrets.token_hex(8)
        try:
            self.browser.get(f"{self.base_url}/{self.session}")
            self.instruction_text = self.get_instruction_text()
        except WebDriverException as error:
            rule = "the address of a server, started with `python -m webshop_server serve --port 3000 --compat`"
            raise refuse("base_url", rule, self.base_url, ArgumentError) from error
        self.get_available_actions()
        return self.observation, None

    def step(self, action: str) -> tuple[str, float, bool, None]:
        """Take an action; an invalid one changes nothing.

        Args:
            action: `search[words]`, `click[label]`, or `end`.

        Returns:
            The observation, the reward, whether something was bought or `end` was called, and `None`.
        """
        self.get_available_actions()
        name, argument = parse_action(action)
        reward, is_done = 0.0, name == "end"
        if name == "search" and argument:
            for bar in self._find("id", "search_input"):
                bar.clear()
                bar.send_keys(argument)
                self._leave(bar.submit)
        elif name == "click" and argument and (label := self._find_label(argument)):
            self._leave(self.text_to_clickable[label].click)
            reward, is_done = self.get_reward(), argument == END_BUTTON
        time.sleep(self._pause)
        return self.observation, reward, is_done, None

    def get_available_actions(self) -> dict[str, Any]:
        """Return `has_search_bar` and `clickables`, with the labels as the page shows them."""
        links = [*self._find("class name", "btn"), *self._find("class name", "product-link")]
        self.text_to_clickable = {link.text: link for link in links}
        for choice in self._find("css selector", "input[type='radio']"):
            label = self._find("css selector", f"label[for='{choice.get_attribute('id')}']")
            self.text_to_clickable[str(choice.get_attribute("value"))] = label[0] if label else choice
        return {
            "has_search_bar": bool(self._find("id", "search_input")),
            "clickables": list(self.text_to_clickable),
        }

    def get_reward(self) -> float:
        """The score that the page shows, 0 before a purchase."""
        found = self._find("css selector", "#reward pre")
        return float(found[0].text) if found else 0.0

    def get_instruction_text(self) -> str:
        """The instruction as the page shows it."""
        return str(self.browser.find_element("css selector", "#instruction-text h4").text)

    @property
    def state(self) -> dict[str, str]:
        """The URL, the document and the instruction."""
        browser = self.browser
        return {"url": browser.current_url, "html": browser.page_source, "instruction_text": self.instruction_text}

    @property
    def observation(self) -> str:
        """The document, or its visible texts."""
        if self.observation_mode == "html":
            return str(self.browser.page_source)
        return " [SEP] ".join(self.browser.execute_script(_TEXTS))

    def render(self, mode: str = "human") -> None:
        """Do nothing: the window shows itself."""

    def close(self) -> None:
        """End the browser."""
        self.browser.quit()

    def _find_label(self, label: str) -> str | None:
        """Return the page's label; the original's has two blanks where it replaces a slash."""
        return next((known for known in (label, clean(label)) if known in self.text_to_clickable), None)

    def _find(self, by: str, value: str) -> list[Any]:
        return list(self.browser.find_elements(by, value))

    def _leave(self, act: Any) -> None:
        """Act, and wait for the next page."""
        from selenium.common.exceptions import StaleElementReferenceException, WebDriverException
        from selenium.webdriver.support.wait import WebDriverWait

        before = self.browser.find_element("css selector", "body")
        act()

        def has_left(_: Any) -> bool:
            try:
                before.is_enabled()
            except StaleElementReferenceException:
                return True
            except WebDriverException as error:  # Chromium says so while the page is being replaced
                if "does not belong to the document" in str(error):
                    return True
                raise
            return False

        WebDriverWait(self.browser, _SECONDS, poll_frequency=0.02).until(has_left)
        WebDriverWait(self.browser, _SECONDS, poll_frequency=0.02).until(
            lambda browser: browser.execute_script("return document.readyState") == "complete"
        )


def _start_browser(shows: bool) -> Any:
    """Start Chromium.

    Raises:
        ShopError: Chromium or its driver is not installed.
    """
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    driver = shutil.which("chromedriver")
    browser = next(
        (path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None
    )
    if driver is None or browser is None:
        raise ShopError("Chromium or its driver is not installed; on Debian: apt-get install chromium chromium-driver")
    options = ChromeOptions()
    options.binary_location = browser
    for flag in ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", *(() if shows else ("--headless=new",))):
        options.add_argument(flag)
    return Chrome(options=options, service=Service(driver))
