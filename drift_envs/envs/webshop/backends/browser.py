"""The shop in Chromium, driven by Selenium.

* `Browser` - one shopper with a mouse
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any, TypeVar

from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.webdriver import WebDriver
from urllib3.exceptions import HTTPError

from drift_envs.envs.webshop.backends.base import BackendReply, BrowserOptions
from drift_envs.envs.webshop.backends.chromium import Chromium
from drift_envs.envs.webshop.backends.http import Remote
from drift_envs.errors import StateError
from webshop_server.action import check_click, check_search, parse_action
from webshop_server.errors import ArgumentError, SessionError
from webshop_server.parser import HtmlPage, read_html
from webshop_server.shop import OVER, Shop

_POLLS, _PAUSE = 1000, 0.005
"""How often, and how many seconds apart, a page is asked whether it is ready."""

_DEAD = (WebDriverException, HTTPError, ConnectionError)
"""What a driver says whose browser has died."""

# The mark is gone when another document has come; `#ready` is the last element of every page, so that
# nothing is missing but pictures.
_LOOK = """
if (window.left || !document.getElementById("ready")) return null;
return [document.documentElement.outerHTML, location.pathname, document.body.className];
"""
_FIND = """
window.left = true;
for (const part of document.querySelectorAll("#page a, #page button")) {
  const label = part.dataset.label || part.textContent.trim().toLowerCase();
  if (label === arguments[0]) return part;
}
return null;
"""
_SEARCH = """
window.left = true;
const bar = document.getElementById("search_input");
bar.value = arguments[0];
bar.form.submit();
"""
_CLICK = _FIND.replace("return part;", "{ part.click(); return true; }")

T = TypeVar("T")


class Browser(Remote):
    """One shopper with a mouse: headless Chromium in front of a server in this process.

    One browser serves all episodes. One that has died is replaced, and goes on where the session
    stands.

    Args:
        shop: inventory, kind of goals and lengths.
        looks: how the browser shows it; scripted clicks are faster than native ones.
    """

    name = "browser"

    def __init__(self, shop: Shop, looks: BrowserOptions) -> None:
        self._chromium = Chromium(window=looks.window, pictures=looks.pictures)  # first, since it may be missing
        super().__init__(shop)
        self._native = looks.native_clicks
        self._session_id: str | None = None
        self._page: HtmlPage | None = None
        self._document = ""

    @property
    def page(self) -> HtmlPage:
        """The page that is shown now.

        Raises:
            StateError: if nobody has been let in yet.
        """
        if self._page is None:
            raise StateError("a page was asked for before `reset`; call `reset` first")
        return self._page

    @property
    def driver(self) -> WebDriver:
        """The browser."""
        return self._chromium.driver

    def start(self, goal: int) -> None:
        """Let a new shopper in.

        Args:
            goal: the number of what they are to buy.
        """
        if self._session_id is not None:
            self.server.remove(self._session_id)
        self._session_id = self.server.start(goal)
        self._page = None
        self._alive(lambda: self._visit(f"/{self._session_id}"))

    def act(self, action: str) -> BackendReply:
        """Do `search[words]` or `click[label]`; what cannot be done changes nothing.

        Args:
            action: the action, in any case.

        Raises:
            StateError: if page or browser do not answer.
        """
        before = self.page
        if before.reward is not None:
            return BackendReply(0.0, True, OVER)
        try:
            name, argument = parse_action(action)
            if name == "search":
                words = check_search(before, argument)
                do: Callable[[], Any] = lambda: self.driver.execute_script(_SEARCH, words)  # noqa: E731
            else:
                check_click(before, argument)
                do = lambda: self._click(argument.lower())  # noqa: E731
        except (ArgumentError, SessionError) as error:
            return BackendReply(0.0, False, str(error))
        error_text = self._alive(lambda: self._do(do))
        reward = self.page.reward
        return BackendReply(reward or 0.0, reward is not None, error_text)

    def html(self) -> str:
        """The document of the page, as the browser has it."""
        return self._document

    def screenshot(self) -> bytes | None:
        """The page as a PNG picture."""
        return self._alive(self._photograph)

    def close(self) -> None:
        """Quit the browser and end the server."""
        self._chromium.close()
        super().close()

    def _alive(self, do: Callable[[], T]) -> T:
        """Do something in the browser; once more in a new one if it has died."""
        try:
            return do()
        except _DEAD as error:
            if self._chromium.is_alive():
                raise StateError(f"the browser cannot do this: {_first_line(error)}") from error
        before = self._page
        try:
            self._chromium.close()
            if before is not None:
                self._visit(before.path)
                if self.page.parts != before.parts:  # it was done before the browser died
                    return None  # type: ignore[return-value]
            return do()
        except _DEAD as error:
            raise StateError(f"the browser has died, and so has the next one: {_first_line(error)}") from error

    def _photograph(self) -> bytes:
        for _ in range(_POLLS):  # until the pictures are there
            if self.driver.execute_script('return document.readyState === "complete"'):
                break
            time.sleep(_PAUSE)
        return self.driver.get_screenshot_as_png()

    def _visit(self, path: str) -> None:
        self.driver.get(self.server.base_url + path)
        self._look()

    def _do(self, do: Callable[[], Any]) -> str | None:
        """Do something that leads to another page; gives the server's reason if it refused."""
        do()
        kind = self._look()
        if "page-message" not in kind:
            return None
        reason = self.page.parts[1] if len(self.page.parts) > 1 else "the server refused"
        self.driver.back()
        self._look()
        return reason

    def _click(self, label: str) -> None:
        if not self._native:
            self.driver.execute_script(_CLICK, label)
            return
        part = self.driver.execute_script(_FIND, label)
        part.click()

    def _look(self) -> str:
        """Wait until the page is there, and read it; gives the class of its body."""
        for _ in range(_POLLS):
            seen = None
            with contextlib.suppress(WebDriverException):  # asked in the middle of a change of pages
                seen = self.driver.execute_script(_LOOK)
            if seen is not None:
                self._document, path, kind = seen
                self._page = read_html(self._document, path, max_length=self.max_length)
                return str(kind)
            time.sleep(_PAUSE)
        raise StateError(f"the page was not ready after {_POLLS * _PAUSE:g} seconds: {self.driver.current_url}")


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0]
