"""`check_memory`: what is counted, what bad services cause, and the command."""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from drift_agents.analysis.check_memory import MemoryCheck, check_memory
from drift_agents.analysis.memory_table import (
    REFERENCES,
    WRAPPERS,
    Asking,
    FactIndex,
    check_wrapped,
    find_service,
    write_timelines,
)
from drift_agents.cli.app import main
from drift_agents.envs.facts.planner import read_claim
from drift_agents.errors import ArgumentError, MissingDependencyError, UnknownNameError
from drift_agents.stores.services import AskFirst, CommonWords, NewestFirst, Replace

from drift_envs.envs.facts.world import FACTS_OF_A_KIND, KINDS, make_model


def check(make: Any, **options: Any) -> MemoryCheck:
    return check_memory(make, "mine", **{"worlds": 2, "days": 30, **options})


def test_references_are_ordered_as_they_have_to_be() -> None:
    found = {name: check(make) for name, make in REFERENCES.items()}
    stale = {name: one.rate("stale_first") for name, one in found.items()}
    assert stale["asking each time"] == stale["index by fact"] == 0.0
    assert 0.0 < stale["newest first"] < stale["oldest first"]
    assert found["everything in one text"].rate("mixed") == 1.0
    assert all(one.rows["unchanged"].rates["present"][0] == 1.0 for one in found.values())
    assert found["index by fact"].rows["silent"].rates["stale_first"][0] == 1.0
    assert found["asking each time"].rows["silent"].rates["present"][0] == 1.0


class Editable(CommonWords):
    """It can be edited, and notes what it is told."""

    days: list[int]

    def __init__(self) -> None:
        super().__init__(newest=False)
        self.days = []

    def add(self, text: str, metadata: Any = None) -> int:  # type: ignore[override]
        assert metadata == {"day": self.days[-1]}
        super().add(text)
        return len(self.texts) - 1

    def clock(self, day: int) -> None:
        self.days.append(day)


class Updated(Editable):
    def update(self, entry: int, text: str) -> None:
        self.texts[entry] = text


class Deleted(Editable):
    def delete(self, entry: int) -> None:
        self.texts[entry] = ""


@pytest.mark.parametrize("kind", [Updated, Deleted])
def test_a_caller_that_edits_leaves_nothing_stale_but_what_nobody_said(kind: type[Editable]) -> None:
    plain, edited = check(kind), check(kind, edits=True)
    for row in ("change", "retract", "return", "rename"):
        assert edited.rows[row].rates["stale_first"][0] == 0.0
        assert edited.rows[row].rates["present"][0] == 1.0
        assert plain.rows[row].rates["stale_first"][0] > 0.0
    assert edited.rows["silent"].rates["stale_first"][0] == 1.0


def test_the_table_has_the_gain_of_wrappers_and_of_editing() -> None:
    wrapped = check_wrapped(Updated, "mine", worlds=2, days=20)
    assert [one.name for one in wrapped] == [*(f"mine + {name}" for name in WRAPPERS), "mine + update"]
    assert all(one.error is None for one in wrapped)
    asked = wrapped[list(WRAPPERS).index("ask after 7 days")]
    assert asked.rate("stale_first") < check(Updated, worlds=2, days=20).rate("stale_first")


def test_equal_seeds_give_equal_questions() -> None:
    assert check(CommonWords).answered == check(CommonWords).answered
    assert check(CommonWords).answered != check(CommonWords, seed=1).answered


def test_newest_first_helps_a_store_and_finds_as_much() -> None:
    plain, wrapped = check(find_service("in_process")), check(lambda: NewestFirst(find_service("in_process")()))
    for kind in ("change", "return"):
        assert wrapped.rows[kind].rates["stale_first"][0] < plain.rows[kind].rates["stale_first"][0]
    assert wrapped.rate("present") == plain.rate("present")


def test_replace_forgets_the_stale_statement_and_what_comes_again_is_back() -> None:
    memory = Replace(CommonWords(newest=False))
    for text in ("Ana's office is bolitu.", "Ana's office is nofeze.", "Ana's office is bolitu."):
        memory.add(text)
    assert set(memory.search("What is Ana's office?", 5)) == {"Ana's office is bolitu."}


def test_what_is_old_is_asked_for_once() -> None:
    asked: list[str] = []
    memory = AskFirst(CommonWords(), lambda query: asked.append(query) or "Ana's office is nofeze.", age=2)
    for text in ("Ana's office is bolitu.", "It rained.", "The lift is slow.", "There is cake."):
        memory.add(text)
    for _ in range(2):
        assert memory.search("What is Ana's office?", 1) == ["Ana's office is nofeze."]
    assert len(asked) == 1


class Bad:
    """A service whose `search` is replaced."""

    result: Any = ()

    def add(self, text: str) -> None: ...

    def search(self, query: str, k: int) -> Any:
        return self.result


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ("text", "`search` should return a list of texts. Received str"),
        (None, "`search` should return a list of texts. Received NoneType"),
        ({"results": []}, "`search` should return a list of texts. Received dict"),
        ([None], "`search` should return texts. Received one of type NoneType"),
        (["x"] * 1_000_000, "`search` should return at most 1000 texts. Received 1000000"),
        (["x" * 10_000_000], "`search` should return at most 1000000 letters. Received 10000000"),
    ],
)
def test_what_is_no_list_of_texts_is_told_in_one_line(result: Any, message: str) -> None:
    assert check(type("Mine", (Bad,), {"result": result})).error == f"mine: {message}"


@pytest.fixture
def hang() -> Iterator[Callable[[], object]]:
    """Returns at the end of the test."""
    over = threading.Event()
    yield over.wait
    over.set()


def test_iterables_are_read_and_what_has_to_be_awaited_is_refused(hang: Callable[[], object]) -> None:
    def ones(self: Any, query: str, k: int) -> Any:
        yield from ["one"] * k

    def endless(self: Any, query: str, k: int) -> Any:
        yield from itertools.repeat("one")

    def hangs(self: Any, query: str, k: int) -> Any:
        yield hang()

    async def later(self: Any, *given: Any) -> Any:
        return []

    short = {"worlds": 1, "days": 4}
    assert check(type("Mine", (Bad,), {"search": ones}), **short).error is None
    error = check(type("Mine", (Bad,), {"search": endless}), **short).error
    assert error == "mine: `search` should return at most 1000 texts. Received more"
    error = check(type("Mine", (Bad,), {"search": hangs}), limit=0.05, **short).error
    assert error == "mine: `search` should return within 0.05 s, and does not"
    for method in ("add", "search", "clock"):
        error = check(type("Mine", (Bad,), {method: later}), **short).error
        assert error == f"mine: `{method}` should not be async: wrap it in a method that runs it to its end"


def test_a_service_that_raises_or_hangs_is_told_and_left_behind(hang: Callable[[], object]) -> None:
    def fail(self: Any, text: str) -> None:
        raise ZeroDivisionError("no\nway")

    assert check(type("Mine", (Bad,), {"add": fail})).error == "mine: `add` raises ZeroDivisionError: no way"
    slow = type("Mine", (Bad,), {"add": lambda self, text: hang()})
    assert check(slow, limit=0.05).error == "mine: `add` should return within 0.05 s, and does not"
    assert check(lambda: 1 / 0).error == "mine: `make` raises ZeroDivisionError: division by zero"


def test_the_command_prints_writes_and_fails_above(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, page = tmp_path / "mine.py", tmp_path / "worst.html"
    file.write_text("class Mine:\n    def add(self, text): ...\n    def search(self, query, k): return 3\n")
    short = ["--worlds", "2", "--days", "20"]
    assert main(["check-memory", "in_process", *short, "--html", str(page)]) == 0
    assert "stale first" in capsys.readouterr().out
    assert "<h2>" in page.read_text("utf-8")
    assert main(["check-memory", "in_process", *short, "--no-references", "--fail-above", "stale_first=0.01"]) == 1
    assert "in_process: `stale_first` should be at most 0.01. Received" in capsys.readouterr().err
    assert main(["check-memory", f"{file}:Mine", "in_process", *short, "--no-references", "--json"]) == 1
    shown = json.loads(capsys.readouterr().out)
    assert shown["services"][1]["rows"]["unchanged"]["present"]["mean"] == 1.0
    assert re.search("`search` should return a list of texts. Received int", shown["failed"][0])
    assert main(["check-memory", "in_process", "--fail-above", "present=2"]) == 2
    assert main(["check-memory", "no_such"]) == 2


def test_missing_packages_are_reported_before_anything_is_checked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def miss(name: str, **options: object) -> object:
        raise MissingDependencyError.of([f"{name}-package"], [name])

    monkeypatch.setattr("drift_agents.analysis.memory_table.STORES.make", miss)
    monkeypatch.setattr("drift_agents.analysis.check_memory.check_memory", None)
    assert main(["check-memory", "chroma", "mem0"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    for word in ("chroma-package", "mem0-package", ".[chroma,mem0]"):
        assert word in line


def test_one_missing_package_of_several_stores_is_named_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def miss(name: str, **options: object) -> object:
        raise MissingDependencyError("`weights` is not installed")

    monkeypatch.setattr("drift_agents.analysis.memory_table.STORES.make", miss)
    assert main(["check-memory", "in_process", "chroma"]) == 1
    assert capsys.readouterr().err == "drift-agents: `weights` is not installed\n"


def test_a_long_name_is_whole_in_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of two classes of one name the file is named."""
    name = "a_memory_of_ours_with_a_long_name"
    files = [tmp_path / f"{name}.py", tmp_path / "other.py"]
    for file in files:
        file.write_text("from drift_agents.stores.services import CommonWords\n\n\nclass Mine(CommonWords): ...\n")
    services = [f"{files[0]}:CommonWords", *(f"{file}:Mine" for file in files)]
    assert main(["check-memory", *services, "--worlds", "1", "--days", "8", "--no-wrappers"]) == 0
    compared = capsys.readouterr().out.partition("Changed facts, compared")[2]
    assert f"CommonWords{name}.py:Mineother.py:Mine" in re.sub(r"[\d\s\[\],]+", "", compared)


def test_references_are_compared_with_services_that_were_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text("class Mine:\n    def __init__(self):\n        import no_such_package\n")
    assert main(["check-memory", f"{tmp_path / 'mine.py'}:Mine", "--json"]) == 1
    shown = json.loads(capsys.readouterr().out)
    assert shown["references"] == []
    assert "No module named 'no_such_package'" in shown["failed"][0]


def test_an_unknown_store_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="no_such"):
        find_service("no_such")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("held_out", [False, True])
def test_agents_read_every_wording(kind: str, held_out: bool) -> None:
    """The new value of each sentence, also in the wording that is held out."""
    number = KINDS.index(kind) * FACTS_OF_A_KIND
    old = make_model(3, {})
    for version in (1, 2):
        new = make_model(3, {kind: (version - 1) * FACTS_OF_A_KIND + 1})
        for day in range(3):
            said = new.news(day, old.counts, (number,), held_out)[:-1]
            claims = [read_claim(text) for text in said]
            assert all(claims)
            fact = new.facts[number]
            if kind == "silent":
                assert not said
            elif kind == "confuse":
                assert claims[0].about[0] != fact.who
            elif kind == "hearsay":
                assert claims[0].is_hearsay
                assert claims[0].value != new.value(number)
            else:
                assert claims[0].about == (fact.who, fact.what)
                assert claims[0].value == new.value(number)
            if kind == "late":
                assert claims[1].value == old.value(number)
                assert claims[1].day == max(day - 3, 0)
        old = new


def test_the_index_keeps_facts_apart() -> None:
    index = FactIndex()
    for text in ("Anna's office is bolitu.", "Ana's office is nofeze.", "Omar says that Ana's office is tedude."):
        index.add(text)
    assert index.search("Which one is Ana's workspace?", 5) == ["Ana's office is nofeze."]
    assert index.search("Which one is Ana's locker?", 5) == []
    assert not hasattr(Asking(), "__len__")


def test_service_that_keeps_another_worlds_statements_is_refused() -> None:
    shared = CommonWords()
    found = check_memory(lambda: shared, "mine", worlds=2)
    assert found.error is not None
    assert "`make` should return an empty service for each world; in world 2 `search` returned" in found.error
    assert {one.world for one in found.answered} == {1}


def test_arguments_are_refused_by_name() -> None:
    with pytest.raises(ArgumentError, match=re.escape("`make` should be a class or a function. Received one of")):
        check_memory(CommonWords(), worlds=1)
    with pytest.raises(ArgumentError, match=re.escape("`seed` should be")):
        check_memory(CommonWords, worlds=1, seed=-1)
    found = check_memory(CommonWords, worlds=1)
    with pytest.raises(ArgumentError, match="`name` should be one of present"):
        found.rate("stale")
    assert len(repr(found)) < 400
    assert "'stale_first': " in repr(found)


def test_page_of_the_worst_questions_begins_with_changes_that_were_said(tmp_path: Path) -> None:
    write_timelines([check(CommonWords)], tmp_path / "worst.html")
    kinds = re.findall(r"<h2>(\w+),", (tmp_path / "worst.html").read_text())
    assert kinds
    assert kinds == sorted(kinds, key=lambda kind: kind == "silent")
    assert kinds[0] != "silent"
