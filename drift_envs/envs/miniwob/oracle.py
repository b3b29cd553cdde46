"""The oracle of the task pages of MiniWoB++: a scripted solver that knows the knobs, on a page of its own."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from drift_envs.envs.miniwob import to_layer
from drift_envs.envs.miniwob.env import MiniWoB, PageRoute
from drift_envs.envs.miniwob.page import PageElement, write_state
from drift_envs.errors import ArgumentError, StateError
from drift_envs.knobs import FrozenMapping, Value
from drift_envs.oracle.base import KnobSource, completion_probability
from drift_envs.oracle.recurring import Carried, RecurringTasksOracle, TrueResponse

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
        actions = [str(action) for _, action in env.save_state()["history"][1:]]
        clicks = [action[len("click[") : -1] for action in actions if action.startswith("click[")]
        steps = _SOLVERS[env.task_name](_PageView(parts, task, dict(env.labels), clicks))
        found = next(steps, None)
        if found is None:
            raise StateError(f"the page of {env.task_name} shows nothing that solves {task!r}: {names}")
        return found


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
    pages = [name for name in links if name.isdecimal() or name in ("<", ">")]
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


SAMPLE = 4
"""The number of tasks that are evaluated if tasks do not recur."""

NO_ACTION = "click[]"
"""An action that changes nothing."""


class _Plan(NamedTuple):
    """What the solver does in a task.

    Args:
        actions: its actions.
        states: the state before each of them.
        score: what they end with.
    """

    actions: tuple[str, ...]
    states: tuple[str, ...]
    score: float


class PageOracle(RecurringTasksOracle[FrozenMapping, int]):
    """The oracle of a drifting task page.

    A state is the JSON text of an observation that the environment has shown, or that the solver meets; it stands for
    the way on which it was reached last. Responses are exact: a page of the oracle's own repeats that way, takes the
    settings of the tick, and carries out the action. Actions are those of `PageSolver`. The score is the page's own,
    1 for success; a solver that succeeds is optimal, since no score is higher and steps cost nothing.

    Args:
        source: the knobs at any tick.
        base: returns the environment whose episodes it repeats; it is called at first use.
        limit: the maximum number of steps of an episode.

    Raises:
        ArgumentError: `limit` is not positive.
    """

    compares_scores = True

    def __init__(self, source: KnobSource, base: Callable[[], MiniWoB], limit: int) -> None:
        super().__init__(source, limit)
        self._base = base
        self._own: MiniWoB | None = None
        self._replies: dict[tuple[str, str, str], TrueResponse] = {}
        self._actions: dict[tuple[str, str], str] = {}
        self._plans: dict[tuple[int, str], _Plan] = {}

    def setting(self, tick: int) -> FrozenMapping:
        """The knobs at a tick.

        Args:
            tick: the tick.
        """
        return FrozenMapping(self._source.knobs_at(tick))

    def action(self, state: Any, tick: int, left: int | None = None) -> str:
        """The solver's action; one that changes nothing where it has none.

        Args:
            state: the JSON text.
            tick: the tick.
            left: the remaining steps (default: the limit).
        """
        knobs = self.setting(tick)
        route = self._locate(state, knobs)
        place = _write_route(route), _key(knobs)
        if place not in self._actions:
            self._go(route)
            self._set_knobs(knobs)
            self._solve(self._limit if left is None else left)
        return self._actions.get(place, NO_ACTION)

    def _tasks(self, setting: FrozenMapping) -> Sequence[int]:
        return self._base().task_pool or range(SAMPLE)

    def _task_value(self, setting: FrozenMapping, task: int, lost: float) -> float:
        plan = self._plan(task, setting)
        return plan.score * completion_probability(len(plan.actions), self._limit, lost)

    def _score(self, carried: Carried, before: float, after: float) -> float:
        """The solver repeats lost actions, whether any was lost before or not."""
        return carried.score * completion_probability(carried.length, self._limit, after)

    def _carry(self, old: FrozenMapping, new: FrozenMapping, task: int) -> Carried:
        """The solver reads the instruction as the new page shows it, with the old words.

        What it would do on the old page is carried out on the new one. Its own actions are compared.
        """
        plan = self._plan(task, old)
        followed = plan.actions
        if old["words"] != new["words"]:
            self._begin(task, new)
            shown = read_words(self._env.read_truth().shown, dict(old["words"]))
            self._begin(task, old)
            followed = self._solve(self._limit, shown).actions
        score = self._replay(task, new, followed)
        is_other = old["transient"] != new["transient"]
        differing = sum(
            is_other or self._react(*pair, old) != self._react(*pair, new)
            for pair in zip(plan.states, plan.actions, strict=True)
        )
        return Carried(score, len(followed), differing, len(plan.actions))

    @property
    def _env(self) -> MiniWoB:
        """The oracle's own page."""
        if self._own is None:
            own = copy.deepcopy(self._base())
            own.hold(())
            own.render_mode, own.observation_mode = None, "state"
            self._own = own
        return self._own

    def _set_knobs(self, knobs: Mapping[str, Value]) -> None:
        self._env.set_knobs({name: knobs[name] for name in self._env.knobs if name != "transient"} | {"transient": 0.0})

    def _begin(self, number: int, knobs: Mapping[str, Value]) -> None:
        self._set_knobs(knobs)
        self._env.reset(seed=0, options={"goal_index": number})

    def _go(self, route: PageRoute) -> None:
        """Repeat a way, unless the page stands at its end."""
        env = self._env
        here = env.save_state()
        if here["goal_index"] is None or _write_route(PageRoute(here["goal_index"], here["history"])) != _write_route(
            route
        ):
            env.load_state({"goal_index": route.number, "history": route.history, "error": None})

    def _locate(self, state: Any, knobs: FrozenMapping) -> PageRoute:
        """The way to a state.

        Raises:
            ArgumentError: neither the environment nor the solver has met it.
        """
        found = self._base().find_route(str(state)) or self._env.find_route(str(state))
        if found is None:
            for number in self._tasks(knobs):
                self._plan(number, knobs)
            found = self._env.find_route(str(state))
        if found is None:
            raise ArgumentError(f"`state` should be one that this environment has shown. Received {str(state)[:200]!r}")
        return found

    def _respond(self, state: Any, action: Any, tick: int) -> TrueResponse:
        return self._react(state, action, self.setting(tick))

    def _lose(self, state: Any, tick: int) -> str:
        return str(state)

    def _react(self, state: Any, action: Any, knobs: FrozenMapping) -> TrueResponse:
        """The true response under knob values."""
        route = self._locate(state, knobs)
        place = _write_route(route), str(action), _key(knobs)
        if place not in self._replies:
            self._go(route)
            self._set_knobs(knobs)
            after, _, ended, _, info = self._env.step(str(action))
            self._replies[place] = TrueResponse(after, float(info["score"]), ended)
        return self._replies[place]

    def _plan(self, number: int, knobs: Mapping[str, Value]) -> _Plan:
        """What the solver does in a task, from its beginning."""
        place = number, _key(knobs)
        if place not in self._plans:
            self._begin(number, knobs)
            self._plans[place] = self._solve(self._limit)
        return self._plans[place]

    def _solve(self, left: int, task: str | None = None) -> _Plan:
        """Let the solver go on from where the page stands, with the settings that it is given."""
        env, score = self._env, 0.0
        env.refresh()
        actions: list[str] = []
        states: list[str] = []
        solver, settings, ended = PageSolver(env, task), _key(env.read_knobs()), env.reading.done
        while not ended and len(actions) < left:
            try:
                action = solver.action()
            except StateError:
                break  # nothing on the page solves the task
            if task is None:
                here = env.save_state()
                self._actions[_write_route(PageRoute(here["goal_index"], here["history"])), settings] = action
            states.append(write_state(env.task_name, env.reading))
            actions.append(action)
            _, _, ended, _, info = env.step(action)
            score = float(info["score"])
        return _Plan(tuple(actions), tuple(states), score)

    def _replay(self, number: int, knobs: Mapping[str, Value], actions: tuple[str, ...]) -> float:
        """The score of these actions."""
        self._begin(number, knobs)
        for action in actions:
            _, _, ended, _, info = self._env.step(action)
            if ended:
                return float(info["score"])
        return 0.0


def _key(knobs: Mapping[str, Value]) -> str:
    """The layer's settings as a text that is equal for equal settings."""
    return json.dumps(to_layer(knobs), sort_keys=True)


def _write_route(route: PageRoute) -> str:
    """A way as a text that is equal for equal ways."""
    return json.dumps(route, sort_keys=True)


make_oracle = PageOracle
