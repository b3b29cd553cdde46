"""A scripted solver for each task page of MiniWoB++: the reference, which knows the knobs. For evaluators.

* `PageSolver` - the next action of an environment
* `read_words` - what an instruction means
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from drift_envs.envs.miniwob.env import MiniWoB
from drift_envs.envs.miniwob.page import PageElement
from drift_envs.errors import ArgumentError, StateError

_DATE = re.compile(r"(January|February|March|April|May|June|July|August|September|October|November|December) (\d{4})")
_DURATION = re.compile(r"(\d+)h (\d+)m")
_PRICE = re.compile(r"\$(\d+)$")
_RESULTS, _PAGES = 3, 3
"""Results on a page of the search engine, and its pages."""


class PageSolver:
    """The next action of an environment in words.

    It reads the page and what no agent sees: the knobs, and the instruction as the page means it.

    Args:
        env: an environment around `MiniWoB` with text.
        task: the instruction that it carries out; by default what the page means. Given the instruction as it is
            shown, it takes every word literally.

    Raises:
        ArgumentError: the environment is another one, or has no text.
    """

    def __init__(self, env: Any, task: str | None = None) -> None:
        base = env.unwrapped
        if not isinstance(base, MiniWoB) or base.observation_mode != "state":
            raise ArgumentError(f"`env` should be a task page made with `text=True`. Received {env}")
        self._env, self._task = base, task

    def action(self) -> str:
        """The next action.

        Raises:
            StateError: the page shows nothing that solves the task.
        """
        env = self._env
        truth = env.read_truth()
        task = truth.task if self._task is None else self._task
        parts = [part for part, acts in zip(env.reading.elements, truth.acting, strict=True) if acts]
        names = [part.name for part in parts]
        if env.interstitial and env.interstitial_right in names and set(env.interstitial_buttons) <= set(names):
            return f"click[{env.interstitial_right}]"
        steps = _SOLVERS[env.task_name](_PageView(parts, task, dict(env.labels), _read_clicks(env)))
        found = next(steps, None)
        if found is None:
            raise StateError(f"the page of {env.task_name} shows nothing that solves {task!r}: {names}")
        return found


def _read_clicks(env: MiniWoB) -> list[str]:
    """The names that were clicked in this episode."""
    actions = [str(action) for _, action in env.save_state()["history"][1:]]
    return [action[len("click[") : -1] for action in actions if action.startswith("click[")]


def read_words(shown: str, words: Mapping[str, str]) -> str:
    """An instruction as the page means it.

    Args:
        shown: the instruction as the page shows it.
        words: the knob: word of an instruction: the word that it means.

    Example:
        >>> read_words("Book the cheapest flight.", {"cheapest": "shortest", "shortest": "cheapest"})
        'Book the shortest flight.'
    """
    if not words:
        return shown
    pattern = "|".join(re.escape(word) for word in sorted(words, key=lambda word: (-len(word), word)))
    return re.sub(rf"(?<!\w)(?:{pattern})(?!\w)", lambda match: words[match[0]], shown)


class _PageView:
    """The acting elements of a page, with their texts before `labels`.

    Args:
        parts: the elements.
        task: the instruction that is carried out.
        labels: the knob.
        clicks: the names that were clicked in this episode.
    """

    def __init__(self, parts: list[PageElement], task: str, labels: dict[str, str], clicks: list[str]) -> None:
        self.parts, self.task, self.clicks = parts, task, clicks
        self._labels = labels
        self.quoted: list[str] = re.findall(r'"([^"]*)"', task)

    def click(self, text: str) -> Iterator[str]:
        """A click on the first element of that text."""
        shown = self._labels.get(text, text)
        for part in self.parts:
            if part.kind != "text" and re.sub(r" \(\d+\)$", "", part.name) in (text, shown):
                yield f"click[{part.name}]"
                return

    def fields(self) -> list[PageElement]:
        """The fields, in reading order."""
        return [part for part in self.parts if part.kind == "field"]

    def fill(self, field: PageElement, text: str) -> Iterator[str]:
        """Typing a text into a field that does not have it; of a password only the length is seen."""
        if field.value not in (text, "*" * len(text)):
            yield f"type[{field.name} = {text}]"

    def named(self, name: str) -> PageElement:
        """The field of a name, before `labels`."""
        shown = self._labels.get(name, name)
        return next(field for field in self.fields() if field.name in (name, shown))


def _click_quoted(page: _PageView) -> Iterator[str]:
    yield from page.click(page.quoted[0])


def _close_dialog(page: _PageView) -> Iterator[str]:
    yield from page.click("Close")


def _click_tab(page: _PageView) -> Iterator[str]:
    yield from page.click(page.task.removeprefix("Click on ").removesuffix("."))


def _enter_text(page: _PageView) -> Iterator[str]:
    yield from page.fill(page.fields()[0], page.quoted[0])
    yield from page.click("Submit")


def _log_in(page: _PageView) -> Iterator[str]:
    values = dict(re.findall(r'(\w+) "([^"]*)"', page.task))
    yield from page.fill(page.named("Username"), values["username"])
    yield from page.fill(page.named("Password"), values["password"])
    yield from page.click("Login")


def _choose(page: _PageView) -> Iterator[str]:
    wanted = page.task.removeprefix("Select ").partition(" from the list")[0]
    if not any(part.chosen and part.name == wanted for part in page.parts):
        yield from page.click(wanted)
    yield from page.click("Submit")


def _navigate(page: _PageView) -> Iterator[str]:
    yield from page.click(page.quoted[0])
    for part in page.parts:  # whatever is not a folder has another name, and would end the episode
        if part.kind == "folder" and page.clicks.count(part.name) % 2 == 0:  # a second click closes it
            yield f"click[{part.name}]"


def _search(page: _PageView) -> Iterator[str]:
    yield from page.fill(page.fields()[0], page.quoted[0])
    links = [part.name for part in page.parts if part.kind == "link"]
    if not links:
        yield from page.click("Search")
        return
    wanted = int(re.findall(r"the (\d+)\w\w search", page.task)[0]) - 1
    pages = [name for name in links if name.isdecimal() or name in "<>"]
    here = 0
    for name in page.clicks:
        here = {">": min(here + 1, _PAGES - 1), "<": max(here - 1, 0)}.get(name, here)
        here = int(name) - 1 if name in pages and name.isdecimal() else here
    if wanted // _RESULTS != here:
        yield f"click[{'>' if wanted // _RESULTS > here else '<'}]"
        return
    yield f"click[{[name for name in links if name not in pages][wanted % _RESULTS]}]"


def _book(page: _PageView) -> Iterator[str]:
    found = re.fullmatch(r"Book the (\w+) one-way flight from: (.*) to: (.*) on (\S+)\.", page.task)
    if found is None:
        return
    kind, origin, destination, day = found.groups()
    offers = _read_offers(page.parts)
    if offers:
        yield min(offers, key=lambda offer: offer[kind == "cheapest"])[2]
        return
    origin_field, destination_field, date_field = page.fields()
    for field, place in ((origin_field, origin), (destination_field, destination)):
        if place in field.value and field.value != place:
            continue
        fitting = [part.name for part in page.parts if part.kind == "link" and place in part.name]
        if field.value == place and fitting:
            yield f"click[{fitting[0]}]"
        yield f"type[{field.name} = {place}]"
    if date_field.value != day:
        yield from _pick_day(page, date_field, day)
    yield from page.click("Search")


def _pick_day(page: _PageView, field: PageElement, day: str) -> Iterator[str]:
    """Open the calendar, turn to the month, and click the day."""
    wanted = datetime.strptime(day, "%m/%d/%Y")
    shown = " ".join(part.name for part in page.parts if part.kind == "text")
    month = _DATE.search(shown)
    if month is None:
        yield f"click[{field.name}]"
    elif month.groups() == (wanted.strftime("%B"), str(wanted.year)):
        yield f"click[{wanted.day}]"
    else:
        yield from page.click("Next")


def _read_offers(parts: list[PageElement]) -> list[tuple[int, int, str]]:
    """Duration in minutes, price and the click of each offer."""
    offers, minutes = [], 0
    for part in parts:
        length, price = _DURATION.fullmatch(part.name), _PRICE.search(re.sub(r" \(\d+\)$", "", part.name))
        if length is not None:
            minutes = 60 * int(length[1]) + int(length[2])
        elif part.kind == "button" and price is not None:
            offers.append((minutes, int(price[1]), f"click[{part.name}]"))
    return offers


def _complete(page: _PageView) -> Iterator[str]:
    start, *ends = page.quoted
    field = page.fields()[0]
    if field.value.startswith(start) and field.value != start and field.value.endswith(ends[0] if ends else ""):
        yield from page.click("Submit")
    for part in page.parts:
        if part.kind == "link" and part.name.startswith(start) and part.name.endswith(ends[0] if ends else ""):
            yield f"click[{part.name}]"
    if field.value == start:  # the start is an item itself
        yield from page.click("Submit")
    yield f"type[{field.name} = {start}]"


_SOLVERS: dict[str, Callable[[_PageView], Iterator[str]]] = {
    "click-button": _click_quoted,
    "click-dialog": _close_dialog,
    "click-tab": _click_tab,
    "enter-text": _enter_text,
    "login-user": _log_in,
    "choose-list": _choose,
    "navigate-tree": _navigate,
    "search-engine": _search,
    "book-flight": _book,
    "use-autocomplete": _complete,
}
