"""What texts say about something that changes, in any wording."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift_envs.metrics import StatementCounts, classify_statement, count_statements, split_statements


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("Use money.cents", "present"),
        ("Use `Money.Cents(...)` here", "present"),
        ("use money.cents_of", "never"),
        ("use money.to_cents; it rounds", "stale"),
        ("money.cents (formerly money.to_cents)", "mixed"),
        ("money.to_cents (not money.cents)", "mixed"),
        ("money.cents rather than ledger.round", "mixed"),
        ("ledger.round, no: money.to_cents", "stale"),
        ("ledger.round", "never"),
        ("amoney.cents or money.centsx", None),
        ('{"helper": null}', None),
        ("", None),
    ],
)
def test_a_statement_is_of_one_kind(statement: str, kind: str | None) -> None:
    values = ["money.cents"], ["money.to_cents"], ["ledger.round", "money.cents_of"]
    assert classify_statement(statement, *values) == kind


def test_values_may_begin_and_end_with_other_signs_than_letters() -> None:
    assert classify_statement("put it into docs/news/fee.md", ["docs/news/"], ["docs/"]) == "present"
    assert classify_statement("put it into docs/fee.md", ["docs/news/"], ["docs/"]) == "stale"
    assert classify_statement("anything", [""], []) is None


def test_a_former_value_that_is_present_again_is_present() -> None:
    assert classify_statement("bolitu", ["bolitu"], ["bolitu", "nofeze"], ["bolitu"]) == "present"


def test_a_value_that_was_withdrawn_leaves_stale_statements_alone() -> None:
    assert count_statements(["it is bolitu", "it is nofeze", "x"], [], ["bolitu"]) == StatementCounts(stale=1)


@given(st.lists(st.sampled_from(["a new one", "an old one", "new, not old", "a false one", "else"])))
def test_counts_do_not_depend_on_the_order(statements: list[str]) -> None:
    counts = count_statements(statements, ["new"], ["old"], ["false"])
    assert counts == count_statements(sorted(statements), ["new"], ["old"], ["false"])
    assert sum(counts) == len(statements) - statements.count("else")


@given(st.text())
def test_splitting_loses_no_word(document: str) -> None:
    assert " ".join(split_statements(document)).split() == document.split()


def test_a_document_has_a_statement_a_line_unless_the_line_goes_on() -> None:
    document = """# Conventions

| helper | money.cents |
| error | InvalidEntry |

1. fragments go to news/
   (they were in changes/ before)
2) rounding: half up
helper: a
error: b
This paragraph is wrapped, since it has more letters than a line holds,
and it goes on here.
The next sentence stands in a line of its own.
"""
    assert split_statements(document) == [
        "# Conventions",
        "| helper | money.cents |",
        "| error | InvalidEntry |",
        "1. fragments go to news/ (they were in changes/ before)",
        "2) rounding: half up",
        "helper: a",
        "error: b",
        "This paragraph is wrapped, since it has more letters than a line holds, and it goes on here.",
        "The next sentence stands in a line of its own.",
    ]
