"""Instructions, pages and recollections, as the shop's planner reads them."""

from __future__ import annotations

from typing import Any

import pytest
from drift_agents.envs.webshop.instructions import parse_instruction, stems
from drift_agents.envs.webshop.knowledge import summarise_records
from drift_agents.envs.webshop.states import OptionGroup, find_options, read_item, read_results, read_shop_state
from drift_agents.prompt.view import CONFLICTS


def test_an_instruction_is_taken_apart() -> None:
    instruction = parse_instruction(
        "Find me fleece lined men's hoodies with wash cold with color: blue, and size: xl, "
        "and price lower than 50.00 dollars"
    )
    assert instruction.words == stems("fleece lined men's hoodies wash cold")
    assert instruction.choices == stems("blue size xl")
    assert (instruction.limit, instruction.color_class) == (50.0, "")


def test_a_class_of_colours_is_no_word_to_look_for() -> None:
    instruction = parse_instruction(
        "Find me zip closure backpacks with padded straps in a warm color, and price lower than 60.00 dollars"
    )
    assert instruction.color_class == "warm"
    assert not instruction.words & stems("warm color price dollars 60")
    assert instruction.choices == frozenset()


def test_options_by_name_come_first() -> None:
    instruction = parse_instruction("Find me a red shirt with color: blue, and size: x")
    groups = [
        OptionGroup("color", (("red", "click[red]"), ("blue", "click[blue]"))),
        OptionGroup("size", (("xl", "click[xl]"), ("x", "click[x]"))),
    ]
    assert find_options(instruction, groups) == {"color": ("blue", "click[blue]"), "size": ("x", "click[x]")}


def test_options_without_a_name_by_their_words() -> None:
    instruction = parse_instruction("i need a 120 ml hair mask with argan oil, lightly scented")
    groups = [
        OptionGroup("size", (("60ml", "click[60ml]"), ("120ml", "click[120ml]"))),
        OptionGroup(
            "kind", (("argan", "click[argan]"), ("argan oil", "click[argan oil]"), ("coconut", "click[coconut]"))
        ),
        OptionGroup("pack", (("two", "click[two]"),)),
    ]
    chosen = find_options(instruction, groups)
    assert {name: value for name, (value, _) in chosen.items()} == {"size": "120ml", "kind": "argan oil"}


def test_an_item_page_is_taken_apart(shop: Any) -> None:
    groups = {"color": ["red", "blue"], "size": ["s"]}
    state, actions = shop.item("B01", "A mug", "$9.0", groups, buy="Add to Bag")
    item = read_item(read_shop_state(state), actions)
    assert (item.title, item.price, item.back) == ("A mug", "$9.0", "click[< prev]")
    assert {group.name: [value for value, _ in group.values] for group in item.groups} == groups
    assert item.buys == ("click[add to bag]",)
    assert set(item.sub_pages) == {"description", "features", "reviews"}


def test_a_value_that_shares_its_label_is_told_by_its_group(shop: Any) -> None:
    state, actions = shop.item("B01", "A mug", "$9.0", {"lid": ["red"], "color": ["red", "blue"]})
    actions = tuple(dict.fromkeys([*actions, "click[color: red]"]))
    item = read_item(read_shop_state(state), actions)
    assert item.groups[1] == OptionGroup("color", (("red", "click[color: red]"), ("blue", "click[blue]")))


def test_results_are_taken_apart(shop: Any) -> None:
    listings = [("B01", "A mug", "$9.0"), ("B02", "A cup", "$1.0 to $2.0")]
    page = read_results(read_shop_state(shop.results(listings, total=12)[0]).lines)
    assert [tuple(one) for one in page.listings] == listings
    assert not page.is_last
    assert read_results(read_shop_state(shop.results(listings, page=2, total=12)[0]).lines).is_last
    assert read_results(("No products match these words.",)).listings == ()


@pytest.mark.parametrize("conflict", CONFLICTS)
def test_conflicts_are_settled_by_the_rule(shop: Any, conflict: str) -> None:
    state, actions = shop.ad()
    seen = [
        shop.recall(state, actions[0], shop.confirm()[0], n=3, last=5),
        shop.recall(state, actions[0], shop.ad(depth=1)[0], n=1, last=9),
    ]
    belief = summarise_records(read_shop_state(state), seen, conflict).buttons[actions[0]]
    value, last = {"majority": (1.0, 5), "newest": (0.0, 9), "frequency": (0.75, 9), "max": (1.0, 9)}[conflict]
    assert (belief.value, belief.last) == (value, last)


def test_notes_are_about_this_task_and_purchases_about_all(shop: Any) -> None:
    other = "Find me cups with color: red"
    item, actions = shop.item("B02", "A cup", "$9.0", {"color": ["red"]}, {"color": "red"}, task=other)
    results, _ = shop.results([("B02", "A cup", "$9.0")], task=other)
    recalled = [
        shop.recall(results, "click[b02]", item),
        shop.recall(item, actions[-1], shop.done("B02", {"color": "red"}, 0.8)),
    ]
    notes = summarise_records(read_shop_state(shop.start()), recalled, "majority")
    assert (notes.offers, notes.visited, notes.results, notes.articles) == ({}, frozenset(), {}, {})
    ((purchase, belief),) = notes.purchases.items()
    assert (purchase.instruction, purchase.asin, purchase.options) == (other, "B02", (("color", "red"),))
    assert belief.value == 0.8
    own = summarise_records(read_shop_state(shop.start(other)), recalled, "majority")
    assert own.visited == {"B02"}
    assert list(own.results) == [("mugs", "1")]


def test_an_order_behind_an_advertisement_is_a_purchase_too(shop: Any) -> None:
    state, actions = shop.confirm("B03")
    notes = summarise_records(
        read_shop_state(state), [shop.recall(state, actions[-1], shop.done("B03", {}, 1.0))], "majority"
    )
    ((purchase, _),) = notes.purchases.items()
    assert (purchase.asin, purchase.price) == ("B03", "")
