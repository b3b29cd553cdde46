"""Goals: order, numbers, limits, weights, splits."""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webshop_server import goals as module
from webshop_server.catalogue import CatalogueWriter
from webshop_server.errors import ArgumentError
from webshop_server.goals import NO_LIMIT, GoalSet, Permutation, draw_price_limit, draw_uniform, resolve_price
from webshop_server.index import open_index
from webshop_server.product import Instruction, Option, Product


def make_lamp(asin="A1", **changes):
    base = Product(
        asin,
        "Lamp",
        prices=(12.0,),
        query="lamps",
        attributes=("bright",),
        options=(Option("size", ("s", "m", "l")), Option("color", ("red", "blue"))),
        synthetic=Instruction("Find me a lamp.", ("bright",)),
    )
    return base._replace(**changes)


@pytest.fixture
def write(tmp_path):
    def make(*products):
        with CatalogueWriter(tmp_path / "a.sqlite") as writer:
            writer.add(products)
            return open_index(writer.finish("x"))

    return make


def test_one_goal_for_each_combination_in_the_originals_order(write):
    goals = GoalSet(write(make_lamp()))
    order = list(range(6))
    random.Random(233).shuffle(order)
    combinations = [(color, size) for color in ("red", "blue") for size in ("s", "m", "l")]  # names in order
    assert [tuple(value for _, value in goal.options) for goal in goals] == [combinations[i] for i in order]
    assert goals[0].text.startswith("Find me a lamp with color: ")
    assert re.search(r", and price lower than \d0\.00 dollars$", goals[0].text)


def test_limits_and_prices_depend_only_on_the_seed(inventory):
    first, again, other = (GoalSet(inventory.index, seed=seed) for seed in (0, 0, 1))
    assert [g.price_upper for g in first] == [g.price_upper for g in again]
    assert [g.price_upper for g in first] != [g.price_upper for g in other]
    random.seed(5)
    state = random.getstate()
    list(GoalSet(inventory.index)[:50])
    assert random.getstate() == state  # the global generator is never touched


def test_the_limit_is_the_larger_of_two_of_the_next_four_tens():
    drawn = Counter(draw_price_limit(12.0, seed) for seed in range(3000))
    # of the six pairs out of 20, 30, 40, 50: one has 30 as its larger, two have 40, three have 50
    assert set(drawn) == {30.0, 40.0, 50.0}
    assert drawn[30.0] / 3000 == pytest.approx(1 / 6, abs=0.03)
    assert drawn[50.0] / 3000 == pytest.approx(1 / 2, abs=0.03)
    assert draw_price_limit(975.0, 0) == 990.0
    assert draw_price_limit(985.0, 0) == NO_LIMIT
    assert {draw_price_limit(10.0, seed) for seed in range(200)} == {30.0, 40.0, 50.0}  # 10 is not above 10


def test_a_price_out_of_a_range():
    ranged = make_lamp(prices=(10.0, 20.0))
    drawn = [resolve_price(ranged, seed) for seed in range(300)]
    assert 10 <= min(drawn) < 11
    assert 19 < max(drawn) <= 20
    assert resolve_price(make_lamp(prices=()), 0) == 100.0
    assert 0 <= draw_uniform(1, "\ud800") < 1


def test_weights_are_mean_inverse_frequencies(write):
    goals = GoalSet(
        write(
            make_lamp("A1", options=()),
            make_lamp("A2", options=(), attributes=("bright", "rare"), synthetic=Instruction("x", ("bright", "rare"))),
        )
    )
    weights = {goal.asin: goals.weight(i) for i, goal in enumerate(goals)}
    assert weights == {"A1": 1 / 2, "A2": (1 / 2 + 1) / 2}
    picked = Counter(goals[goals.pick(i / 1000)].asin for i in range(1000))
    assert picked["A2"] == pytest.approx(600, abs=2)


def test_human_goals(write):
    index = write(
        make_lamp("A1", human=(Instruction("i need a lamp.", ("bright",), ("red",)), Instruction("skipped", ()))),
        make_lamp("A2"),
    )
    goals = GoalSet(index, "human")
    assert len(goals) == 1
    assert goals[0].options == (("", "red"),)
    assert goals.weight(0) == 1.0
    assert goals[0].text.startswith("i need a lamp, and price lower than ")
    assert goals.pick(0.999) == 0


def test_an_instruction_without_words_leaves_no_blanks():
    goal = module.make_goal(make_lamp("A1"), Instruction("", ("bright",)), (("color", "red"),))
    assert goal.text.startswith("with color: red")
    dear = make_lamp("A1")._replace(prices=(999.0,))
    assert module.make_goal(dear, Instruction("find a lamp .", ("bright",))).text == "find a lamp"


def test_numbers_that_no_goal_has(inventory):
    goals = GoalSet(inventory.index)
    for index in (-1, len(goals), 1.5, "3", True, None):
        with pytest.raises(ArgumentError, match=rf"should be a whole number in the interval \[0, {len(goals) - 1}\]"):
            goals[index]
    assert goals[1:3] == [goals[1], goals[2]]


def test_splits(inventory):
    goals = GoalSet(inventory.index)
    assert goals.split("test") == range(500)
    assert goals.split("eval") == range(500, 1500)
    assert goals.split("train") == range(1500, len(goals))
    with pytest.raises(ArgumentError, match="one of test, eval, train"):
        goals.split("dev")


def test_a_kind_without_goals(inventory):
    with pytest.raises(ArgumentError, match=r"should have human instructions\. It has none"):
        GoalSet(inventory.index, "human")
    with pytest.raises(ArgumentError, match="`kind` should be one of synthetic, human, color_class"):
        GoalSet(inventory.index, "x'; DROP TABLE")


def test_a_listing_with_endless_combinations(write):
    many = tuple(Option(f"o{i}", tuple(str(j) for j in range(100))) for i in range(12))
    goals = GoalSet(write(make_lamp(options=many)))
    assert len(goals) == 10_000
    assert len(goals[9_999].options) == 12


@given(st.integers(1, 3000), st.integers(0, 10))
def test_a_permutation_has_every_number_once(size, seed):
    order = Permutation(size, seed)
    numbers = [order[i] for i in range(size)]
    assert sorted(numbers) == list(range(size))
    assert all(order.index(number) == i for i, number in enumerate(numbers))


def test_many_goals_are_drawn_over_all_listings_by_their_weights(write, monkeypatch):
    index = write(
        *(make_lamp(f"A{i}") for i in range(20)),
        make_lamp("R", attributes=("rare",), synthetic=Instruction("x", ("rare",))),
        make_lamp("Z", options=()),
    )
    shuffled = GoalSet(index)
    monkeypatch.setattr(module, "MAX_SHUFFLED", 10)
    goals = GoalSet(index)
    assert len(goals) == len(shuffled) == 21 * 6 + 1
    assert set(goals) == set(shuffled)
    assert [goal.asin for goal in goals] != [goal.asin for goal in shuffled]
    drawn = [[s[s.pick(i / 5000)].asin for i in range(5000)] for s in (goals, shuffled)]
    assert Counter(drawn[0]) == pytest.approx(Counter(drawn[1]), abs=5)
    assert Counter(drawn[0])["R"] == pytest.approx(2500, abs=5)
    assert len({goals.pick(i / 5000) for i in range(5000)}) == len(goals)
    assert goals.pick(0.0) in range(len(goals))
    assert goals.pick(1 - 2**-53) in range(len(goals))
