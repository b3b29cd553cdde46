"""Requests in words: every wording of the shipped shops is understood, also those that are held out."""

import pytest
from drift_agents.envs.tools.desk import read_wish

from drift_envs.envs.tools.database import draw_database
from drift_envs.envs.tools.requests import list_requests


@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize("shop", [3, 7])
def test_kind_customer_orders_and_day_are_read(shop: int, held_out: bool) -> None:
    records = draw_database(shop).records
    for request in list_requests(shop, held_out):
        wish = read_wish(request.text)
        assert wish is not None, request.text
        assert (wish.kind, wish.email) == (request.kind, records[request.customer]["email"]), request.text
        for words, order in ((wish.order, request.order), (wish.second, request.second)):
            assert (words is None) == (not order), request.text
            if words is not None and words.day is not None:
                assert words.day == records[order]["date"], request.text
            elif words is not None:
                assert records[request.customer]["orders"][0] == order, "the latest one"
        assert wish.day == request.day, request.text


@pytest.mark.parametrize("text", ["", "Cancel it.", "I am Bo, bo@example.org. Sing me a song."])
def test_other_texts_are_none(text: str) -> None:
    assert read_wish(text) is None
