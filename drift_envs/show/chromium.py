"""The Chromium process of the environments that show pages: it connects to this machine only.

* `Chromium` - one browser with a fresh profile, and its driver
* `find_chromium` - the paths of Chromium and its driver
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import weakref
from pathlib import Path

from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.chrome.webdriver import WebDriver
from urllib3.exceptions import HTTPError

from drift_envs.errors import MissingDependencyError, StateError, first_line

FLAGS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-proxy-server",
    # No other host is resolved, neither for pages nor for the browser itself.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
"""The flags: no connections to other machines, no background activity."""

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_DRIVERS = ("chromedriver", "chromium.chromedriver")
_PATIENCE = 20


def find_chromium() -> tuple[str, str]:
    """Return the paths of Chromium and its driver.

    Raises:
        MissingDependencyError: one of them is not installed.
    """
    found = [next((path for path in map(shutil.which, names) if path), None) for names in (_BROWSERS, _DRIVERS)]
    browser, driver = found
    if browser is None or driver is None:
        missing = "Chromium" if browser is None else "Chromium's driver"
        raise MissingDependencyError(
            f"{missing} is not installed, which environments with a browser need; on Debian and Ubuntu: "
            "apt-get install chromium chromium-driver"
        )
    return browser, driver


class Chromium:
    """One browser with a fresh profile, and its driver; started on first use.

    It ends when this object is garbage collected, at the latest when the program ends.

    Args:
        window: whether its window is shown.
        pictures: whether it loads pictures.
        size: width and height of the window, in pixels.
        scrollbars: whether pages that scroll show it.

    Raises:
        MissingDependencyError: Chromium or its driver is not installed.
    """

    def __init__(
        self,
        *,
        window: bool = False,
        pictures: bool = True,
        size: tuple[int, int] = (1280, 1000),
        scrollbars: bool = False,
    ) -> None:
        self._scrollbars = scrollbars
        self._size = size
        self._window = window
        self._pictures = pictures
        self._paths = find_chromium()
        self._driver: WebDriver | None = None
        self._quit: weakref.finalize[..., Chromium] | None = None

    @property
    def driver(self) -> WebDriver:
        """The browser.

        Raises:
            StateError: it does not start.
        """
        if self._driver is None:
            profile = tempfile.mkdtemp(prefix="webshop-chromium-")
            try:
                self._driver = self._start(profile)
            except (WebDriverException, HTTPError, OSError) as error:
                shutil.rmtree(profile, ignore_errors=True)
                raise StateError(f"Chromium does not start: {first_line(error)}") from error
            self._quit = weakref.finalize(self, _quit, self._driver, profile)
        return self._driver

    def is_alive(self) -> bool:
        """Whether the browser responds."""
        if self._driver is None:
            return False
        try:
            return bool(self._driver.execute_script("return true"))
        except (WebDriverException, HTTPError, ConnectionError):
            return False

    def close(self) -> None:
        """Quit the browser; the next use starts another one."""
        self._driver = None
        if self._quit is not None:
            self._quit()

    def _start(self, profile: str) -> WebDriver:
        browser, driver = self._paths
        options = Options()
        options.binary_location = browser
        options.page_load_strategy = "eager"  # do not wait for pictures
        for flag in FLAGS:
            options.add_argument(flag)
        if not self._scrollbars:
            options.add_argument("--hide-scrollbars")
        options.add_argument(f"--window-size={self._size[0]},{self._size[1]}")
        options.add_argument(f"--user-data-dir={profile}")
        if not self._pictures:
            options.add_argument("--blink-settings=imagesEnabled=false")
        if not self._window:
            options.add_argument("--headless=new")
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            options.add_argument("--no-sandbox")  # Chromium refuses to run as root with it
        # With both paths given, Selenium's manager has nothing to find; the variables keep it offline in any case.
        environment = {**os.environ, "SE_OFFLINE": "true", "SE_AVOID_STATS": "true"}
        # A process group: a crashed driver leaves its browser running, which is killed by the group.
        service = Service(driver, env=environment, popen_kw={"start_new_session": os.name == "posix"})
        found = WebDriver(options, service)
        found.set_page_load_timeout(_PATIENCE)
        return found


def _quit(driver: WebDriver, profile: str) -> None:
    process = driver.service.process
    try:
        driver.quit()
    except (WebDriverException, HTTPError, OSError):
        driver.service.stop()  # driver or browser have crashed
    if os.name == "posix" and process is not None:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # no process is left
            os.killpg(process.pid, signal.SIGKILL)
    shutil.rmtree(Path(profile), ignore_errors=True)
