"""The original's `web_agent_site.envs.web_agent_site_env`: a browser on the pages of `serve --compat`.

* `WebAgentSiteEnv` - its constructor, methods and four values of `step`

It needs Chromium and its driver, and a server: `python -m webshop_server serve --port 3000 --compat`.
"""

from __future__ import annotations

import random
import shutil
import string
import time
from typing import Any

from webshop_server.checks import check_choice, refuse
from webshop_server.compat.engine import END_BUTTON, parse_action
from webshop_server.errors import ArgumentError, ShopError
from webshop_server.product import clean

BASE_URL = "http://127.0.0.1:3000"
_SECONDS = 20.0
_TEXTS = """
const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const text = walker.currentNode.data.trim();
  if (text && !['SCRIPT', 'STYLE'].includes(walker.currentNode.parentNode.tagName)) found.push(text);
}
return found;
"""


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

        self.session = self.assigned_session or "".join(random.choices(string.ascii_lowercase, k=5))
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
        from selenium.webdriver.support.expected_conditions import staleness_of
        from selenium.webdriver.support.wait import WebDriverWait

        before = self.browser.find_element("css selector", "body")
        act()
        WebDriverWait(self.browser, _SECONDS, poll_frequency=0.02).until(staleness_of(before))
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
