"""Withdrawn values in the wordings of services that rewrite, and services that try to pass `check-memory`."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from drift_agents.analysis.check_memory import RATES, MemoryCheck, _classify, check_memory
from drift_agents.analysis.memory_table import FactIndex
from drift_agents.cli.app import main
from drift_agents.envs.facts.planner import read_about, read_claim

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
FILE = EXAMPLES / "memory_adversaries.py"
_SPEC = importlib.util.spec_from_file_location("memory_adversaries", FILE)
assert _SPEC is not None
adversaries = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(adversaries)  # type: ignore[union-attr]


class Rewriting(FactIndex):
    """An index by fact that rewrites what it returns.

    Args:
        holds: the form of a text about a fact that has a value.
        gone: the form of one about a withdrawn value, with the old one.
    """

    def __init__(self, gone: str, holds: str = "{who}'s {what} is {value}") -> None:
        super().__init__()
        self.forms = holds, gone
        self.values: dict[tuple[str, str], str] = {}
        self.day = 0

    def clock(self, day: int) -> None:
        self.day = day

    def add(self, text: str) -> None:
        super().add(text)
        claim = read_claim(text)
        if claim is not None and claim.value != "nothing" and not claim.is_hearsay and claim.day is None:
            self.values[claim.about] = claim.value

    def search(self, query: str, k: int) -> list[str]:
        about = read_about(query)
        if about is None or not (texts := super().search(query, k)):
            return []
        claim = read_claim(texts[0])
        assert claim is not None
        form = self.forms[claim.value == "nothing"]
        return [form.format(who=about[0], what=about[1], value=self.values.get(about, "zizizi"), day=self.day)]


def rates_of(gone: str, **more: str) -> dict[str, float]:
    check = check_memory(lambda: Rewriting(gone, **more), "mine", worlds=3)
    assert check.error is None
    assert check.rows["unchanged"].rates["present"][0] == 1.0
    withdrawn = [one.rates for one in check.answered if one.value == "nothing"]
    return {name: sum(column) / len(column) for name, column in zip(RATES, zip(*withdrawn, strict=True), strict=True)}


@pytest.mark.parametrize(
    "gone",
    [
        "{who}'s {what} is nothing (formerly {value})",
        "no {what} any more",
        '{{"{what}": null}}',
        '{{"person": "{who}", "{what}": null, "was": "{value}"}}',
        '{{"{who}": {{"{what}": []}}}}',
        "{who} has no {what}.",
        "{who} doesn't have {what} {value} these days",
        "{who} | {what} | -",
        "{who}'s {what}: none",
        "{who}'s {what}: N/A (day {day})",
        "{who} used to have {value} as {what}",
        "~~{who}'s {what} is {value}~~",
        "[deleted on day {day}] {who}'s {what} is {value}",
        "{who}'s {what} is {value}. Withdrawn on day {day}.",
        "{who}'s {what}: {value}; status: expired",
        "{who} gave {value} back, the {what} is up for grabs",
        "Anas Eintrag {what} {value} ist weg",
        "{who} ya dejó {value} ({what})",
        "{who}'s {what} has been cleared",
        "{who}'s {what} is unassigned",
        "{who} ({what}) stands vacant",
        "The former {what} of {who} was {value}",
        "{what}: unknown",
        "none",
    ],
)
def test_a_withdrawn_value_is_understood_in_the_wording_of_the_service(gone: str) -> None:
    rates = rates_of(gone)
    assert (rates["present"], rates["stale_first"], rates["mixed"]) == (1.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("form", "gone"),
    [
        ("{who}'s {what} is {value}", "{who}'s {what} is {value}"),
        ("no news: {who}'s {what} is {value}", "no news: {who}'s {what} is {value}"),
        ('{{"{who}": {{"{what}": "{value}", "deleted_at": null}}}}',) * 2,
        ("{who}'s {what} was last seen as {value} on day {day}",) * 2,
        ("{who}: {what} = {value}", "{who}'s {what} is {value}"),
    ],
)
def test_a_withdrawn_value_that_is_stated_as_ever_is_stale(form: str, gone: str) -> None:
    assert rates_of(gone, holds=form)["stale_first"] == 1.0


def test_one_text_that_states_a_value_and_its_end_is_mixed() -> None:
    rates = rates_of("{who}'s {what} is {value}. Forget {who}'s {what}: {value} does not hold any more.")
    assert (rates["mixed"], rates["present"], rates["stale_first"]) == (1.0, 0.0, 0.0)


@pytest.mark.parametrize("text", ["", "I do not know", "There is cake in the kitchen.", "Omar has no office"])
def test_what_is_about_nothing_says_nothing(text: str) -> None:
    class Constant(FactIndex):
        def search(self, query: str, k: int) -> list[str]:
            return [text]

    check = check_memory(Constant, "mine", worlds=2)
    assert check.rate("nothing") == 1.0


CHECKS: dict[str, MemoryCheck] = {}


def check_adversary(name: str) -> MemoryCheck:
    if name not in CHECKS:
        CHECKS[name] = check_memory(getattr(adversaries, name), name, worlds=4)
    return CHECKS[name]


@pytest.mark.parametrize("name", [one.__name__ for one in adversaries.ADVERSARIES])
def test_no_adversary_passes_the_three_bounds(name: str) -> None:
    check = check_adversary(name)
    passes = (
        check.error is None
        and check.rate("stale_first") <= 0.1
        and check.rate("mixed") <= 0.1
        and check.rate("present") >= 0.9
    )
    assert not passes


def test_each_adversary_gets_its_row() -> None:
    assert check_adversary("OneText").rate("mixed") == 1.0
    assert check_adversary("OneText").rows["unchanged"].rates["present"][0] == 1.0
    assert check_adversary("SideBySide").rate("mixed") > 0.7
    assert check_adversary("SideBySide").rate("present") < 0.2
    for name in ("Nothing", "Echo", "NoSuchThing"):
        assert check_adversary(name).rate("nothing") == 1.0
    assert check_adversary("TenThousand").error == (
        "TenThousand: `search` should return at most 1000 texts. Received 10000"
    )
    assert check_adversary("Newest").rate("present") < 0.3
    assert check_adversary("EveryText").rows == check_memory(FirstTexts, "first", worlds=4).rows
    assert check_adversary("MaybeNot").rows["retract"].rates["stale_first"][0] > 0.1


class FirstTexts(adversaries.EveryText):  # type: ignore[name-defined, misc]
    """What `EveryText` returns, cut to `k`."""

    def search(self, query: str, k: int) -> Any:
        return super().search(query, k)[:k]


def test_texts_after_the_first_k_do_not_count() -> None:
    """Also where the service returns the present value behind them."""

    class Late(FactIndex):
        def search(self, query: str, k: int) -> list[str]:
            return [*["It rained all morning."] * k, *super().search(query, k)]

    check = check_memory(Late, "late", worlds=2, k=3)
    assert check.rate("nothing") == 1.0
    assert {len(one.texts) for one in check.answered} == {3}


def test_glued_and_split_texts_differ_from_several_texts() -> None:
    """Several texts of which each names one value are `both`; one that names two is `mixed`, in any order."""

    kinds = {}
    for form in ("{0} (not {1})", "{1} (now {0})"):
        checked = check_memory(lambda: Rewriting("gone", "{who}'s {what}: {value}"), "one", worlds=1)
        one = next(one for one in checked.answered if one.kind == "change" and one.stale)
        text = form.format(one.value, min(one.stale))
        kinds[form] = _classify([one._replace(texts=(text,))])[0].rates
        apart = _classify([one._replace(texts=(min(one.stale), one.value))])[0].rates
        assert apart == (True, True, True, False, False)
    assert set(kinds.values()) == {(False, False, False, True, False)}


@pytest.mark.parametrize(
    ("service", "bound", "message"),
    [
        ("Nothing", ["--fail-below", "present=.9"], "Nothing: `present` should be at least 0.9. Received 0"),
        ("OneText", ["--fail-above", "mixed=.1"], "OneText: `mixed` should be at most 0.1. Received 1"),
        ("OneText", ["--fail-below", "present=0.5"], "OneText: `present` should be at least 0.5. Received 0"),
    ],
)
def test_bounds_name_the_rate(service: str, bound: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    short = ["--worlds", "2", "--days", "20", "--no-references", "--no-wrappers"]
    assert main(["check-memory", f"{FILE}:{service}", *short, *bound]) == 1
    assert message in capsys.readouterr().err


def test_wrong_bounds_are_refused_and_what_was_not_measured_holds_none(capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--fail-below=stale_first=.1", "--fail-below=present=nan", "--fail-above=present=.9"):
        assert main(["check-memory", "in_process", option]) == 2
    for option in ("--fail-below=present", "--fail-above=mixed"):
        assert main(["check-memory", "in_process", f"{option}=.9", f"{option}=.1"]) == 2
    shown = capsys.readouterr().err.replace("\n", " ")
    assert "stale_first or both or mixed or nothing" in shown
    assert "should be given once for present" in shown
    assert "should be given once for mixed" in shown
    short = ["--worlds", "1", "--days", "4", "--no-references", "--no-wrappers", "--json"]
    code = main(["check-memory", "in_process", *short, "--fail-below", "present=.1"])
    shown = json.loads(capsys.readouterr().out)
    assert (code == 1) == ("changed" not in shown["services"][0]["rows"])
