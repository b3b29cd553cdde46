"""Success over budgets of interactions."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from drift_agents.analysis.price import AREA, BUDGETS, CHARGES, UNLIMITED, describe_cells, price_cells
from hypothesis import given, settings

from tests.drift_agents.analysis.lines_by_hand import Episode, evidence, key

LAKE = "frozen_lake/explicit"
BEST: list[Episode] = [("source", 1.0, 10, 0)] * 2 + [("drift", 1.0, 10, 0)] * 4
OURS: list[Episode] = [("source", 0.0, 90, 90)] * 2 + [("drift", score, 10, 10) for score in (1.0, 1.0, 0.0, 1.0)]


def test_a_curve_by_hand() -> None:
    """The budget is 40, what happened before the drift is free, and the fourth episode ends at 80, or 90 charged."""
    lines = evidence({"clairvoyant": {LAKE: {7: BEST}}, "glove": {LAKE: {7: OURS}}})
    assert list(lines.keys) == [key("clairvoyant"), key("glove")]
    prices = price_cells(lines).iloc[1]
    assert prices[0].tolist() == [50, 50, 50, 75, 75, 75, pytest.approx(65.625)]
    assert prices[10].tolist() == [50, 50, 50, 50, 75, 75, pytest.approx((50 + 62.5) / 2)]
    assert prices[50].tolist() == [50, 50, 50, 50, 50, 75, 50]
    assert describe_cells(lines)["probes"].tolist() == [0, 50]


def test_success_does_not_exceed_all_episodes() -> None:
    """Where the clock counts steps, a slow agent plays more of its episodes after the drift than the clairvoyant."""
    slow = [("source", 1.0, 20, 0), *[("drift", 1.0, 10, 0)] * 5]
    lines = evidence({"clairvoyant": {LAKE: {7: BEST}}, "none": {LAKE: {7: slow}}})
    assert price_cells(lines).iloc[1][0].tolist() == [80, 100, 100, 100, 100, 100, pytest.approx(98.75)]


def test_scores_count_where_the_drift_is_implicit() -> None:
    half = [(phase, score / 2, steps, probes) for phase, score, steps, probes in OURS]
    lines = evidence({"clairvoyant": {LAKE: {7: BEST}}, "none": {LAKE: {7: half}}}, visibility="implicit")
    assert price_cells(lines).iloc[1][0, UNLIMITED] == 37.5
    lines = evidence({"clairvoyant": {LAKE: {7: BEST}}, "none": {LAKE: {7: half}}})
    assert price_cells(lines).iloc[1][0, UNLIMITED] == 0


def test_without_the_clairvoyant_there_is_no_budget() -> None:
    lines = evidence({"clairvoyant": {LAKE: {6: BEST}}, "glove": {LAKE: {6: OURS, 7: OURS}}})
    prices = price_cells(lines).iloc[-1]
    assert prices[0, UNLIMITED] == 75
    assert np.isnan(prices.drop(labels=UNLIMITED, level=1).to_numpy()).all()


def test_a_chain_needs_every_phase() -> None:
    """Within a tenth of the clairvoyant over the last five episodes of each phase after the first."""
    best = [(phase, 1.0, 10, 0) for phase in ("source", "a", "b") for _ in range(10)]
    late = [(phase, float(n >= 5), 10, 0) for phase in ("source", "a", "b") for n in range(10)]
    lost = [*late[:-1], ("b", 0.0, 10, 0)]
    lines = evidence({"clairvoyant": {LAKE: {0: best, 1: best}}, "none": {LAKE: {0: late, 1: lost}}})
    assert describe_cells(lines)["chain"].tolist() == [100, 100, 100, 0]
    assert describe_cells(evidence({"none": {LAKE: {0: late}}}))["chain"].isna().all()


EPISODES = st.lists(
    st.tuples(
        st.sampled_from(["source", "drift"]), st.sampled_from([0.0, 0.5, 1.0]), st.integers(1, 9), st.integers(0, 9)
    ),
    min_size=1,
    max_size=12,
)


@pytest.mark.integration
@settings(max_examples=40)
@given(st.lists(EPISODES, min_size=1, max_size=4), st.lists(EPISODES, min_size=1, max_size=4))
def test_a_curve_is_what_playing_up_to_the_budget_gives(best: list[list[Episode]], ours: list[list[Episode]]) -> None:
    def after(episodes: list[Episode]) -> list[Episode]:
        first = next((n for n, one in enumerate(episodes) if one[0] != episodes[0][0]), 0)
        return episodes[first:]

    pairs = list(zip(best, ours, strict=False))
    played = {
        "clairvoyant": {LAKE: {seed: theirs for seed, (theirs, _) in enumerate(pairs)}},
        "glove": {LAKE: {seed: own for seed, (_, own) in enumerate(pairs)}},
    }
    prices = price_cells(evidence(played))
    for seed, (theirs, own) in enumerate(pairs):
        for charge in CHARGES:

            def cost(episode: Episode, charge: int = charge) -> int:
                return episode[2] + episode[3] + charge * (episode[1] < 1)

            found = []
            for budget in (*BUDGETS, np.inf):
                left = budget * sum(map(cost, after(theirs)))
                done = 0
                for episode in after(own):
                    left -= cost(episode)
                    done += left >= 0 and episode[1] >= 1
                found.append(100 * done / max(len(after(theirs)), len(after(own))))
            curve = prices.iloc[len(pairs) + seed][charge]
            assert curve.tolist()[:-1] == pytest.approx(found)
            between = np.linspace(BUDGETS[0], BUDGETS[-1], 801)  # the mean height of the curve
            assert curve[AREA] == pytest.approx(np.interp(between, BUDGETS, found[:-1]).mean(), abs=0.2)
