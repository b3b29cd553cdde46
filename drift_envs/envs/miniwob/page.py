"""A task page in Chromium, as the drifting layer shows it: served on this machine, read, and put into words."""

from __future__ import annotations

import contextlib
import json
import re
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.webdriver import WebDriver
from urllib3.exceptions import HTTPError

from drift_envs.errors import StateError, first_line, needs_extra
from drift_envs.show.chromium import Chromium

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_KINDS = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "png": "image/png",
    "gif": "image/gif",
    "svg": "image/svg+xml",
}
_LAYER = '<script src="/layer/layer.js"></script><link rel="stylesheet" href="/layer/layer.css">'
_THEMES = '<link rel="stylesheet" href="/layer/themes.css">'
_PATIENCE = 5.0
"""Seconds to wait for the server's thread when it ends."""


def find_pages() -> Traversable:
    """The folder of the pages in the installed package.

    Raises:
        MissingDependencyError: the package is not installed.
    """
    with needs_extra("miniwob", "miniwob"):
        return resources.files("miniwob") / "html"


class TaskServer:
    """A server on a free port of this machine.

    It ends when this object is garbage collected, at the latest when the program ends.

    Raises:
        MissingDependencyError: the package with the pages is not installed.
    """

    def __init__(self) -> None:
        folders = {
            "layer": resources.files("drift_envs.envs.miniwob") / "static",
            "": find_pages(),
            "themes": resources.files("webshop_server") / "static",
        }
        server = _Server(("127.0.0.1", 0), partial(_Handler, folders))
        server.daemon_threads = True
        self.base_url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        self._end = weakref.finalize(self, _end, server, thread)

    def close(self) -> None:
        """End the server and its thread."""
        self._end()


def _end(server: ThreadingHTTPServer, thread: threading.Thread) -> None:
    server.shutdown()
    server.server_close()
    thread.join(_PATIENCE)


class _Server(ThreadingHTTPServer):
    """A server whose browser may close a connection at any time."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report errors other than a closed connection."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Sends files of the folders; task pages with the layer."""

    protocol_version = "HTTP/1.1"

    def __init__(self, folders: dict[str, Traversable], *rest: Any) -> None:
        self._folders = folders
        super().__init__(*rest)

    def do_GET(self) -> None:
        """Send a file."""
        parts = [part for part in unquote(urlsplit(self.path).path).split("/") if part not in ("", ".", "..")]
        content = None if "\\" in self.path else self._read(parts)
        kind = _KINDS.get(parts[-1].rpartition(".")[2]) if parts else None
        if content is None or kind is None:
            self.send_error(404)
            return
        if kind.startswith("text/html"):
            # the layer comes before all scripts of the page, the themes after all of its styles
            content = content.replace(b"<head>", b"<head>" + _LAYER.encode(), 1)
            content = content.replace(b"</head>", _THEMES.encode() + b"</head>", 1)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "max-age=86400")
        self.end_headers()
        self.wfile.write(content)

    def _read(self, parts: list[str]) -> bytes | None:
        """The content of a file, `None` if there is none."""
        if parts[:2] == ["layer", "themes.css"]:
            found = self._folders["themes"] / "themes.css"
        elif parts[:1] == ["layer"]:
            found = self._folders["layer"].joinpath(*parts[1:])
        else:
            found = self._folders[""].joinpath(*parts)
        return found.read_bytes() if found.is_file() else None

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


class WebTask(NamedTuple):
    """A task page.

    Args:
        controls: the CSS selector of the controls that the knob `copies` copies.
        values: a pattern whose groups are the values that an instruction names.
        limit: the steps of an episode.
    """

    controls: str
    values: str
    limit: int = 10


TASKS = {
    "click-button": WebTask("#area button", r'the "([^"]+)" button'),
    "click-dialog": WebTask(".ui-dialog-titlebar button", r'the "([^"]+)"'),
    "click-tab": WebTask("#area ul > li", r"(Tab #\d)"),
    "enter-text": WebTask("#subbtn", r'"([^"]*)"'),
    "login-user": WebTask("#subbtn", r'"([^"]*)"'),
    "choose-list": WebTask("#area button", r"Select (.*) from the list"),
    "navigate-tree": WebTask(".file, .folder", r'named "([^"]+)"', 20),
    "search-engine": WebTask("#search", r'enter "([^"]+)"|the (\w+) search'),
    "book-flight": WebTask("#search", r"the (\w+) one-way|from: (.*?)(?= to:)|to: (.*?)(?= on )|on (\S*)\.$", 30),
    "use-autocomplete": WebTask("#subbtn", r'"([^"]*)"'),
}
"""The tasks, by the name of their page in MiniWoB++."""


def read_values(task: str, instruction: str) -> tuple[str, ...]:
    """The values that an instruction names.

    Args:
        task: one of `TASKS`.
        instruction: the instruction as the page shows it.

    Example:
        >>> read_values("login-user", 'Enter the username "tula" and the password "8F" into the text fields.')
        ('tula', '8F')
    """
    found = re.finditer(TASKS[task].values, instruction)
    return tuple(value for match in found for value in match.groups() if value)


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
            raise StateError(f"the browser cannot do this: {first_line(error)}") from error
    try:
        page.restart()
        repeat()
        return do()
    except _DEAD as error:
        raise StateError(f"the browser has died, and so has the next one: {first_line(error)}") from error


MAX_LENGTH = 16_384
"""Characters of a state."""

_ACTION = re.compile(r"(click|type)\[(.*)\]", re.DOTALL)


def find_action(reading: PageReading, action: str) -> tuple[tuple[int, str | None] | None, str | None]:
    """What an action in words does on a page.

    Args:
        reading: the page.
        action: the action.

    Returns:
        The place of the element and the text to type (`None` to click), or `None` and the reason why not.

    Example:
        >>> from drift_envs.envs.miniwob.page import PageElement
        >>> parts = PageElement("field", "Name"), PageElement("button", "Login")
        >>> page = PageReading(False, 0.0, "Press Login.", parts)
        >>> find_action(page, "click[Login]"), find_action(page, "type[Name = Tula]")
        (((1, None), None), ((0, 'Tula'), None))
        >>> find_action(page, "click[Logout]")
        (None, "there is no 'Logout' to click on this page")
    """
    match = _ACTION.fullmatch(action.strip())
    if match is None:
        return None, "an action should have the form click[name] or type[field = text]"
    verb, argument = match.groups()
    if verb == "click":
        name, text = argument, None
    else:
        name, equals, text = argument.partition(" = ")
        if not equals:
            return None, "an action should have the form type[field = text]"
    for index, part in enumerate(reading.elements):
        if part.name == name.strip() and (part.kind != "text" if verb == "click" else can_type(part)):
            return (index, text), None
    return None, f"there is no {name.strip()!r} to {verb} on this page" if verb == "click" else (
        f"there is no field {name.strip()!r} on this page"
    )


def can_type(part: PageElement) -> bool:
    """Whether text can be typed into an element."""
    return part.kind == "field" and not part.fixed


def list_actions(task: str, reading: PageReading) -> list[str]:
    """The admissible actions of a page: clicks, and the values of the instruction typed into each field.

    Args:
        task: one of `TASKS`.
        reading: the page.
    """
    values = read_values(task, reading.task)
    found = []
    for part in reading.elements:
        if can_type(part):
            found += [f"type[{part.name} = {value}]" for value in dict.fromkeys(values)]
        if part.kind != "text":
            found.append(f"click[{part.name}]")
    return found


def write_state(task: str, reading: PageReading) -> str:
    """A page as JSON, without the last elements if there are too many.

    Args:
        task: one of `TASKS`.
        reading: the page.
    """
    elements: list[dict[str, Any]] = []
    for part in reading.elements:
        entry: dict[str, Any] = {part.kind: part.name}
        if part.kind == "field":
            entry["value"] = part.value
        if part.kind == "option":
            entry["chosen"] = part.chosen
        elements.append(entry)
    state = {"page": task, "task": reading.task, "values": list(read_values(task, reading.task)), "elements": elements}
    text = json.dumps(state)
    while len(text) > MAX_LENGTH:
        del elements[-max(1, len(elements) // 8) :]
        text = json.dumps(state)
    return text
