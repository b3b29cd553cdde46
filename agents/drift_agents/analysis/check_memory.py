"""Does a memory service still believe what is no longer true? Measured without a language model.

The world is that of `DriftFacts-v0`: values are words that nothing else contains, so that they are found in whatever
text comes back. Chance decides nothing: equal seeds give equal questions.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from drift_agents.analysis.withdrawn import Withdrawals
from drift_agents.envs.facts.planner import mentions_end
from drift_agents.errors import ArgumentError, PartError
from drift_agents.registry.part_file import describe_failure, is_interruption
from drift_agents.stores.base import check_call, check_service, read_texts, takes
from drift_envs.checks import check_choice, check_count, check_integer, check_interval
from drift_envs.envs.facts.world import (
    FACTS_OF_A_KIND,
    FATES,
    KINDS,
    NOTHING,
    WORDINGS,
    FactsModel,
    make_model,
)
from drift_envs.metrics import classify_statement
from drift_envs.tasks.invented_words import read_words

UNCHANGED = "unchanged"
UNSAID = "silent"
"""The kind that no service can know; it has a row, and does not count in the sum."""
CHANGED = "changed"
"""The row of all other kinds together."""
ROWS = (UNCHANGED, *KINDS, CHANGED)
RATES = ("present", "stale_first", "both", "mixed", "nothing")

_FACTS = 2
"""Facts of each kind in a world."""
_RESAMPLES = 1000


class Answered(NamedTuple):
    """A question and what came back.

    Args:
        world: the number of the world.
        day: of the question.
        kind: of the change that the fact has had, or `unchanged`.
        question: the question.
        value: the present value.
        stale: the other values that were said of this fact, or of a person with a similar name.
        said: what was said about the fact so far, with the day.
        texts: the first `k` texts that came back.
        says: of each of them `present`, `stale`, `mixed` (it names the present value and a stale one) or `None`.
    """

    world: int
    day: int
    kind: str
    question: str
    value: str
    stale: frozenset[str]
    said: tuple[tuple[int, str], ...]
    texts: tuple[str, ...]
    says: tuple[str | None, ...] = ()

    @property
    def rates(self) -> tuple[bool, bool, bool, bool, bool]:
        """Whether texts say the present value, a stale one first, both, one text says both, and none says either."""
        shows, shows_stale = "present" in self.says, "stale" in self.says
        first = next((one for one in self.says if one in ("present", "stale")), None)
        return shows, first == "stale", shows and shows_stale, "mixed" in self.says, not any(self.says)


class KindResult(NamedTuple):
    """A row: shares of questions, each with its interval over worlds.

    Args:
        kind: of change.
        n: the number of questions.
        rates: by name of `RATES`, the mean, and the lower and upper edge of its 95 % interval.
    """

    kind: str
    n: int
    rates: Mapping[str, tuple[float, float, float]]


class MemoryCheck(NamedTuple):
    """The result of a service.

    Args:
        name: of the service.
        rows: by kind of change; kinds without a question are left out.
        add_ms: the mean time of a call of `add`.
        search_ms: that of `search`.
        entries: the mean number of entries at the end, if the service has a length.
        answered: the questions.
        error: why the check ended early, if it did.
    """

    name: str
    rows: Mapping[str, KindResult]
    add_ms: float
    search_ms: float
    entries: float | None
    answered: tuple[Answered, ...]
    error: str | None = None

    def __repr__(self) -> str:
        """Without single questions: a test that fails shows it whole."""
        rates = {name: self.rate(name) for name in RATES}
        return f"MemoryCheck(name={self.name!r}, rates={rates}, error={self.error!r})"

    def rate(self, name: str) -> float | None:
        """A rate over all changes that were said; `None` if no question was answered.

        Args:
            name: one of `RATES`.

        Raises:
            ArgumentError: if it is another.
        """
        check_choice("name", name, RATES)
        return self.rows[CHANGED].rates[name][0] if CHANGED in self.rows else None

    def as_data(self) -> dict[str, Any]:
        """The result as plain data, without single questions."""
        rows = {
            kind: {"n": row.n}
            | {name: dict(zip(("mean", "low", "high"), row.rates[name], strict=True)) for name in RATES}
            for kind, row in self.rows.items()
        }
        times = {"add_ms": self.add_ms, "search_ms": self.search_ms, "entries": self.entries}
        return {"name": self.name, "rows": rows, **times, "error": self.error}


def check_memory(
    make: Callable[[], Any],
    name: str = "service",
    *,
    worlds: int = 30,
    days: int = 40,
    k: int = 5,
    limit: float = 30.0,
    seed: int = 0,
    edits: bool = False,
) -> MemoryCheck:
    """Check a memory service: an object with `add(text)` and `search(query, k)`, as `read_texts` reads it.

    `add` may take `metadata`, a dictionary with `day`; a method `clock(day)`, if there is one, is called each day.
    With `edits`, `update(id, text)` is called where a statement corrects one that was added before, or else
    `delete(id)` before `add`; the id is what `add` returned.

    Args:
        make: makes an empty service; called once for each world, in a thread of its own.
        name: of the service, for messages.
        worlds: how many worlds; each has two facts of every kind.
        days: of each world, on each of which two questions are asked.
        k: how many texts a search returns.
        limit: seconds after which a call counts as hanging.
        seed: of the worlds and of the days of changes.
        edits: whether the caller knows which text a statement corrects, and calls `update` or `delete`.

    Returns:
        The result; if a call fails, that of the worlds before it, with the error.

    Raises:
        ArgumentError: if an argument is not positive, or `make` cannot be called.

    Example:
        >>> from drift_agents.stores.base import InProcessStore
        >>> found = check_memory(InProcessStore, worlds=2, days=20)
        >>> found.error, found.rows["unchanged"].rates["present"][0], found.rate("stale_first") > 0.2
        (None, 1.0, True)
    """
    check_count("worlds", worlds), check_count("days", days), check_count("k", k)
    check_interval("limit", limit, "(0, 86400]")
    check_integer("seed", seed, 0)
    if not callable(make):
        raise ArgumentError(f"`make` should be a class or a function. Received one of type {type(make).__name__}")
    earlier: set[str] = set()
    answered: list[Answered] = []
    times: dict[str, list[float]] = {"add": [], "search": []}
    lengths: list[float] = []
    error = None
    for world in range(1, worlds + 1):
        calls = _Calls(name, limit, times)
        try:
            service = calls.call("make", make)
            check_service(service, clock=("day",), delete=("id",), update=("id", "text"))
            of_world = list(_play(calls, service, world, days, k, seed, edits, earlier))
            if hasattr(service, "__len__"):
                lengths.append(float(calls.call("len", partial(len, service))))
        except PartError as failed:
            error = str(failed)
            break
        finally:
            calls.end()
        answered += of_world
        earlier.update(text for one in of_world for _, text in one.said)
    answered = _classify(answered)
    rows = {kind: row for kind in ROWS if (row := _summarise(kind, answered)) is not None}
    add_ms, search_ms = (1000 * float(np.mean(times[call])) if times[call] else 0.0 for call in ("add", "search"))
    entries = float(np.mean(lengths)) if lengths else None
    return MemoryCheck(name, rows, add_ms, search_ms, entries, tuple(answered), error)


def _play(
    calls: _Calls, service: Any, world: int, days: int, k: int, seed: int, edits: bool, earlier: set[str]
) -> Iterator[Answered]:
    """The questions of a world; `earlier` has statements of other worlds.

    Raises:
        PartError: if a call fails, or the service still holds what was said in another world.
    """
    rng = np.random.default_rng([0xC4EC, seed, world])
    numbers = tuple(kind * FACTS_OF_A_KIND + place for kind in range(len(FATES)) for place in range(_FACTS))
    takes_metadata = takes(getattr(service, "add", None), "metadata")
    ids: dict[int, Any] = {}
    counts, since = dict.fromkeys(KINDS, 0), None
    said: dict[int, list[tuple[int, str]]] = {number: [] for number in numbers}
    for day in range(days):
        for kind in KINDS:
            # A kind's six facts take turns; the changes of the four that nobody talks about pass at once.
            if day >= days // 4 and rng.random() < 0.1:
                step = counts[kind] % FACTS_OF_A_KIND
                counts[kind] += 1 if step + 1 < _FACTS else 1 + FACTS_OF_A_KIND - _FACTS
        model = make_model(world, counts)
        if hasattr(service, "clock"):
            calls.call("clock", partial(service.clock, day))
        news = [(number, text) for number in numbers for text in model.news(day, since, (number,))[:-1]]
        talk = model.news(day, model.counts, ())[-1]
        order = sorted(range(len(news)), key=lambda place: (int(rng.integers(1000)) if since is None else 0, place))
        for number, text in [*(news[place] for place in order), (None, talk)]:
            if number is not None:
                said[number].append((day, text))
            more = {"metadata": {"day": day}} if takes_metadata else {}
            if edits and number is not None and (number not in ids or _corrects(text, model, number)):
                ids[number] = _correct(calls, service, text, more, ids.get(number))
            else:
                calls.call("add", partial(_add, service, text, more))
        since = model.counts
        if hasattr(service, "truth"):
            service.truth = {
                model.question(number, wording): model.tell(number, model.value(number))
                for number in numbers
                for wording in range(WORDINGS)
            }
        for number in rng.choice(numbers, 2, replace=False):
            one = _ask(calls, service, model, int(number), day, k, said[int(number)])
            kept = earlier.intersection(one.texts).difference(text for said_of in said.values() for _, text in said_of)
            if kept:
                raise PartError(
                    f"{calls.name}: `make` should return an empty service for each world; in world {world} `search` "
                    f"returned {min(kept)!r}, which was said in an earlier one"
                )
            yield one


def _add(service: Any, text: str, more: Mapping[str, Any]) -> Any:
    return service.add(text, **more)


def _correct(calls: _Calls, service: Any, text: str, more: Mapping[str, Any], old: Any) -> Any:
    """Put a text in the place of an older one, if there is one; returns the id of its entry."""
    if old is not None and hasattr(service, "update"):
        calls.call("update", partial(service.update, old, text))
        return old
    if old is not None and hasattr(service, "delete"):
        calls.call("delete", partial(service.delete, old))
    return calls.call("add", partial(_add, service, text, more))


def _corrects(text: str, model: FactsModel, number: int) -> bool:
    """Whether a statement says what is true now of a fact."""
    value = model.value(number)
    return value in read_words(text) or (value == NOTHING and mentions_end(text))


def _ask(
    calls: _Calls, service: Any, model: FactsModel, number: int, day: int, k: int, said: Sequence[tuple[int, str]]
) -> Answered:
    question = model.question(number, (number + day) % WORDINGS)
    # Read in the same thread: a generator can hang too.
    texts = calls.call("search", lambda: read_texts(service.search(question, k)))[:k]
    value = model.value(number)
    stale = frozenset(one for _, text in said for one in read_words(text)) - {value}
    kind = FATES[number // FACTS_OF_A_KIND] if model.version(number) else UNCHANGED
    return Answered(model.world, day, kind, question, value, stale, tuple(said), texts)


def _classify(answered: Sequence[Answered]) -> list[Answered]:
    """The same questions with what each text says."""
    held = [(one.question, one.texts) for one in answered if one.kind != "retract"]
    withdrawn = [(one.question, one.texts) for one in answered if one.value == NOTHING]
    withdrawals = Withdrawals(held, withdrawn, (text for one in answered for _, text in one.said))

    def classify(one: Answered, text: str) -> str | None:
        if one.value == NOTHING:
            return withdrawals.classify(text, one.question, one.stale)
        return classify_statement(text, (one.value,), one.stale)

    return [one._replace(says=tuple(classify(one, text) for text in one.texts)) for one in answered]


class _Calls:
    """Calls of a service in a thread of its own, timed and limited: a hanging one is left behind.

    Args:
        name: of the service, for messages.
        limit: of a call, in seconds.
        times: where the seconds of calls are added, by name.
    """

    def __init__(self, name: str, limit: float, times: dict[str, list[float]]) -> None:
        self.name, self._limit, self._times = name, limit, times
        self._work: queue.SimpleQueue[tuple[str, Callable[[], Any]] | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while (task := self._work.get()) is not None:
            name, work = task
            try:
                self._done.put((check_call(name, work()), None))
            except BaseException as error:  # noqa: BLE001 - foreign code; raised in the caller's thread
                self._done.put((None, error))

    def call(self, name: str, work: Callable[[], Any]) -> Any:
        """Make a call.

        Raises:
            PartError: if it raises, or does not return in time.
        """
        start = time.perf_counter()
        self._work.put((name, work))
        try:
            result, error = self._done.get(timeout=self._limit)
        except queue.Empty:
            raise PartError(f"{self.name}: `{name}` should return within {self._limit:g} s, and does not") from None
        if error is not None:
            if is_interruption(error):
                raise error
            described = str(error) if isinstance(error, PartError) else f"`{name}` raises {describe_failure(error)}"
            raise PartError(f"{self.name}: {described}") from error
        self._times.setdefault(name, []).append(time.perf_counter() - start)
        return result

    def end(self) -> None:
        """End the thread after the call that it is in."""
        self._work.put(None)


def _summarise(kind: str, answered: Sequence[Answered]) -> KindResult | None:
    """The row of a kind, with intervals by a bootstrap over worlds."""
    left_out = (UNCHANGED, UNSAID) if kind == CHANGED else ()
    asked = [one for one in answered if one.kind == kind or (kind == CHANGED and one.kind not in left_out)]
    if not asked:
        return None
    worlds, places = np.unique([one.world for one in asked], return_inverse=True)
    n = np.bincount(places)
    draws = np.random.default_rng(0).integers(len(worlds), size=(_RESAMPLES, len(worlds)))
    rates = {}
    for index, name in enumerate(RATES):
        hits = np.bincount(places, weights=[one.rates[index] for one in asked])
        low, high = np.quantile(hits[draws].sum(1) / n[draws].sum(1), (0.025, 0.975))
        rates[name] = (float(hits.sum() / n.sum()), float(low), float(high))
    return KindResult(kind, len(asked), rates)
