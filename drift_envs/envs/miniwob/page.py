"""A task page in Chromium, as the drifting layer shows it.

* `TaskPage` - begins tasks, acts and reads; after a crash a new browser repeats the episode
* `PageReading`, `PageElement`, `PageTruth` - what it reads
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.webdriver import WebDriver
from urllib3.exceptions import HTTPError

from drift_envs.chromium import Chromium
from drift_envs.envs.miniwob.server import TaskServer
from drift_envs.envs.miniwob.tasks import TASKS
from drift_envs.errors import StateError

_POLLS, _PAUSE = 2000, 0.005
"""The number of polls for a page that is loaded, and the seconds between them."""

_DEAD = (WebDriverException, HTTPError, ConnectionError)
"""The errors of a driver whose browser has crashed."""

WINDOW = (780, 600)
"""The browser's window, that of the package; the task is in its left upper corner."""

SIZE = (160, 210)
"""Width and height of a task, in pixels."""

_LOADED = "return typeof driftLayer !== 'undefined' && driftLayer.isLoaded()"

T = TypeVar("T")


class PageElement(NamedTuple):
    """A visible part of a page.

    Args:
        kind: `text`, `button`, `link`, `folder`, `file`, `field` or `option`.
        name: its text, or the name of a field; of equal names the second one ends in ` (2)`, and so on.
        value: the content of a field.
        chosen: whether an option is chosen.
        fixed: whether a field can only be clicked.
    """

    kind: str
    name: str
    value: str = ""
    chosen: bool = False
    fixed: bool = False


class PageReading(NamedTuple):
    """What a page shows.

    Args:
        done: whether the episode has ended.
        reward: the page's own reward, from -1 to 1, without a discount for time.
        task: the instruction.
        elements: the visible parts, in reading order.
    """

    done: bool
    reward: float
    task: str
    elements: tuple[PageElement, ...]


class PageTruth(NamedTuple):
    """What no agent sees of a page.

    Args:
        acting: whether each element acts.
        task: the instruction as the page means it.
        shown: the instruction as the page shows it, in the same form.
    """

    acting: tuple[bool, ...]
    task: str
    shown: str


class TaskPage:
    """A task page in Chromium.

    Browser and server start at the first use and end with `close`.

    Args:
        task: one of `TASKS`.
        mode: the data mode of the pages, `train` or `test`.

    Raises:
        MissingDependencyError: Chromium, its driver or the package with the pages is missing.
    """

    def __init__(self, task: str, mode: str) -> None:
        self._task, self._mode = task, mode
        self._server = TaskServer()
        self._chromium = Chromium(size=WINDOW, scrollbars=True)

    @property
    def driver(self) -> WebDriver:
        """The browser."""
        return self._chromium.driver

    def is_alive(self) -> bool:
        """Whether the browser responds."""
        return self._chromium.is_alive()

    def restart(self) -> None:
        """Quit the browser; the next use starts another one."""
        self._chromium.close()

    def close(self) -> None:
        """Quit the browser and end the server."""
        self._chromium.close()
        self._server.close()

    def begin(self, number: int, settings: Mapping[str, Any]) -> PageReading:
        """Load the page anew and begin a task; equal numbers begin equal tasks.

        Args:
            number: seeds the page.
            settings: of the layer.

        Raises:
            StateError: the page does not load.
        """
        driver = self.driver
        # Dates and times of day are written alike on every machine.
        driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "UTC"})
        with contextlib.suppress(WebDriverException):  # set already
            driver.execute_cdp_cmd("Emulation.setLocaleOverride", {"locale": "en-US"})
        driver.get(f"{self._server.base_url}/miniwob/{self._task}.html")
        for _ in range(_POLLS):
            if driver.execute_script(_LOADED):
                break
            time.sleep(_PAUSE)
        else:
            raise StateError(f"the page was not ready after {_POLLS * _PAUSE:g} seconds: {driver.current_url}")
        return self._call("begin", number, self._mode, TASKS[self._task].controls, dict(settings))

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Change the settings of the layer.

        Args:
            settings: the new settings.
        """
        self.driver.execute_script("driftLayer.configure(arguments[0])", dict(settings))

    def look(self) -> PageReading:
        """Let timers run out, and read the page."""
        return self._call("look")

    def act(self, index: int, text: str | None) -> PageReading:
        """Click an element, or type into it; then read the page.

        Args:
            index: its place in the last reading.
            text: what is typed; `None` to click.
        """
        return self._call("act", index, text)

    def read_truth(self) -> PageTruth:
        """What no agent sees of the last reading. For evaluators."""
        acting, task, shown = self.driver.execute_script("return driftLayer.truth()")
        return PageTruth(tuple(acting), str(task), str(shown))

    def photograph(self, scale: float) -> str:
        """The task as a PNG image, in base 64.

        Args:
            scale: its pixels for each pixel of the task.
        """
        clip = {"x": 0, "y": 0, "width": SIZE[0], "height": SIZE[1], "scale": scale}
        return str(self.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "clip": clip})["data"])

    def _call(self, name: str, *arguments: Any) -> PageReading:
        found = self.driver.execute_script(f"return driftLayer.{name}(...arguments)", *arguments)
        return PageReading(bool(found["done"]), float(found["reward"]), found["task"], _name_all(found["elements"]))


def _name_all(entries: list[dict[str, Any]]) -> tuple[PageElement, ...]:
    """The elements with different names for all that can be clicked or filled."""
    counts: dict[str, int] = {}
    found = []
    for entry in entries:
        kind, name = entry["kind"], entry["name"]
        if kind != "text":
            counts[name] = counts.get(name, 0) + 1
            if counts[name] > 1:
                name = f"{name} ({counts[name]})"
        more = {key: entry[key] for key in ("value", "chosen", "fixed") if key in entry}
        found.append(PageElement(kind, name, **more))
    return tuple(found)


def keep_alive(page: TaskPage, do: Callable[[], T], repeat: Callable[[], object]) -> T:
    """Call a function; once more in a new browser after a crash.

    Args:
        page: the page that it uses.
        do: the function.
        repeat: brings the page of the new browser to where the old one was.

    Raises:
        StateError: the browser refuses, or the next one dies too.
    """
    try:
        return do()
    except _DEAD as error:
        if page.is_alive():
            raise StateError(f"the browser cannot do this: {str(error).strip().splitlines()[0]}") from error
    try:
        page.restart()
        repeat()
        return do()
    except _DEAD as error:
        raise StateError(f"the browser has died, and so has the next one: {str(error).splitlines()[0]}") from error
