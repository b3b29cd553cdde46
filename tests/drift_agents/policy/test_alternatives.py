"""Short forms of lists of actions."""

from __future__ import annotations

from drift_agents.policy.brief import BAR, fold_alternatives, unfold_alternatives
from hypothesis import given
from hypothesis import strategies as st

WORDS = st.sampled_from(["go", "to", "take", "bed", "shelf", "0", "1", "2", "3", "10", "a-b"])
TEXTS = st.one_of(
    st.lists(WORDS, min_size=1, max_size=4).map(" ".join),
    st.lists(WORDS, min_size=1, max_size=3).map(lambda words: f"click[{' '.join(words)}]"),
)


@given(st.lists(TEXTS, min_size=1, max_size=12))
def test_the_short_form_reads_back(texts: list[str]) -> None:
    short = fold_alternatives(texts)
    assert unfold_alternatives(short) == texts
    assert len(short) <= len(BAR.join(texts))


@given(st.lists(st.text("{|}]-[ 12ax", min_size=1, max_size=8), min_size=1, max_size=6))
def test_no_list_reads_back_as_another_one(texts: list[str]) -> None:
    short = fold_alternatives(texts)
    assert short == BAR.join(texts) or unfold_alternatives(short) == texts
