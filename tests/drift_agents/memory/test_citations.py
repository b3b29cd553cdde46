"""Derived items and their evidence: what falls, what it pulls down, held against a naive model."""

from __future__ import annotations

import re

import hypothesis.strategies as st
import pytest
from drift_agents.errors import ArgumentError
from drift_agents.memory.citations import CASCADES, Citations, check_cascade, valid_suffix
from hypothesis import given


@pytest.mark.parametrize(
    ("cascade", "steps"),
    [
        ("any", [((1,), (10,))]),
        ("majority", [((1,), ()), ((2,), ()), ((3,), (10,))]),
        ("cut", [((1, 2), ()), ((4, 3), (10,))]),
    ],
)
def test_an_item_is_removed_with_most_of_its_evidence_or_with_any(
    cascade: str, steps: list[tuple[tuple[int, ...], tuple[int, ...]]]
) -> None:
    citations = Citations(cascade)
    citations.add(10, [1, 2, 3, 4])
    for gone, fell in steps:
        assert citations.remove(gone) == fell
    assert 10 not in citations
    assert not list(citations)


def test_removals_cascade() -> None:
    citations = Citations("majority")
    citations.add(10, [1])
    citations.add(11, [10, 2, 3])
    citations.add(12, [10, 11, 2])
    assert citations.citing(10) == (11, 12)
    assert citations.remove([1]) == (10,)
    assert citations.remove([3]) == (11, 12), "12 lost 10 before, and now 11"


def test_given_numbers_are_not_returned_but_cascade() -> None:
    citations = Citations()
    citations.add(10, [1])
    citations.add(11, [10])
    assert citations.remove([10, 1]) == (11,)
    assert list(citations) == []


def test_evidence_cited_or_removed_twice_counts_once() -> None:
    citations = Citations()
    citations.add(10, [1, 1, 2])
    assert citations.evidence(10) == (1, 2)
    assert citations.remove([1, 1]) == citations.remove([1]) == ()
    assert citations.remove([2]) == (10,)


def test_adding_an_item_again_replaces_its_evidence() -> None:
    citations = Citations()
    citations.add(10, [1, 2])
    citations.remove([1])
    citations.add(10, [3, 4])
    assert citations.citing(2) == ()
    assert citations.remove([2, 3]) == ()
    assert citations.remove([4]) == (10,)


items = st.dictionaries(st.integers(10, 19), st.sets(st.integers(0, 19), min_size=1, max_size=5), max_size=10)


@pytest.mark.parametrize("cascade", CASCADES)
@given(items=items, removals=st.lists(st.sets(st.integers(0, 19), max_size=3), max_size=6))
def test_it_agrees_with_a_recount(cascade: str, items: dict[int, set[int]], removals: list[set[int]]) -> None:
    held = {item: cited - {item} for item, cited in items.items() if cited - {item}}
    citations = Citations(cascade)
    for item, cited in held.items():
        citations.add(item, sorted(cited))
    gone: set[int] = set()
    for removal in removals:
        gone |= removal
        expected = set()
        while True:
            fell = {
                item
                for item, cited in held.items()
                if item not in gone and (lost := len(cited & gone)) and (cascade == "any" or 2 * lost > len(cited))
            }
            if not fell:
                break
            expected |= fell
            gone |= fell
        assert set(citations.remove(sorted(removal))) == expected
        assert set(citations) == {item for item in held if item not in gone}
        for number in range(20):
            assert number in gone or set(citations.citing(number)) == {i for i in citations if number in held[i]}


def test_a_trajectory_keeps_the_steps_after_the_last_removed_one() -> None:
    assert valid_suffix([1, 2, 3, 4], {1, 3, 4}) == (3, 4)
    assert valid_suffix([1, 2], {1, 2}) == (1, 2)
    assert valid_suffix([1, 2], {1}) == ()


def test_wrong_values_are_refused() -> None:
    with pytest.raises(
        ArgumentError, match=re.escape("`cascade` should be one of any, majority, cut. Received 'most'")
    ):
        Citations("most")
    assert check_cascade("cut") == "cut"
    for evidence in ([], [10], [10, 10]):
        with pytest.raises(ArgumentError, match="`evidence` of item 10 should cite something else than itself"):
            Citations().add(10, evidence)
