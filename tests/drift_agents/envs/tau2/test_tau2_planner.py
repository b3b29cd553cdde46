"""The planner of tau2-bench's desks, from prompts written by hand: the package is not needed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from drift_agents.envs.tau2.planner import Leaving, Tau2Planner
from drift_agents.errors import ArgumentError
from drift_agents.prompt.view import Outcome, PromptView, Recollection

TASK = """Request: Cancel AB12CD.
get_user_details(user_id: string) - Get the details of a user.
get_reservation_details(reservation_id: string) - Get the details of a reservation.
book_reservation(reservation_id: string, amount: number) - Book a reservation.
cancel_reservation(reservation_id: string) - Cancel the whole reservation.
finish(message?: string) - End the request."""


def call(tool: str, **arguments: Any) -> str:
    return json.dumps({"tool": tool, "arguments": arguments})


CANCEL, READ, END = (
    call("cancel_reservation", reservation_id="AB12CD"),
    call("get_reservation_details", reservation_id="AB12CD"),
    call("finish"),
)
NAMED = {"error": "policy", "message": f"look_up: read the reservation first; first call {READ}"}


def state(answer: dict[str, Any] | None = None, made: tuple[str, ...] = ()) -> str:
    shown = {"domain": "airline", "request": "Cancel AB12CD.", "records": {}, "made": list(map(json.loads, made))}
    return json.dumps({**shown, "answer": answer or {}})


def answered(action: str, answer: dict[str, Any], last: int = 5) -> Recollection:
    return Recollection(state(), action, Outcome(state(answer), 0.0, False), 1.0, last)


def decide(
    *here: Recollection,
    now: dict[str, Any] | None = None,
    actions: tuple[str, ...] = (CANCEL, READ, END),
    seed: int = 0,
) -> str:
    met = Recollection(state({}, (CANCEL,)), END, Outcome(state({}, (CANCEL,)), 1.0, True), 1.0, 1)
    view = PromptView(TASK, state(now), actions, here=here, elsewhere=(met,))
    return Tau2Planner().decide(view, np.random.default_rng(seed)).text


@pytest.mark.parametrize("answer", [NAMED, {"error": 403}, {"error": "failed"}], ids=["words", "numbers", "terse"])
def test_a_write_that_is_known_to_be_refused_is_preceded_by_a_read(answer: dict[str, Any]) -> None:
    """Not only where it was refused just now; without one it would end the request undone."""
    assert decide() == CANCEL
    assert decide(now=answer) != END
    assert decide(answered(CANCEL, answer)) == READ


def test_what_is_refused_for_another_reason_is_not_made_again() -> None:
    assert decide(answered(CANCEL, {"error": "Reservation not found"})) == END
    assert decide(answered(CANCEL, {"error": "x"}, last=2), answered(CANCEL, {"status": "cancelled"})) == CANCEL


def test_an_answer_of_which_memory_holds_no_call_makes_it_try_every_way_that_is_left() -> None:
    """A memory that does not write shows not what was refused just now."""
    book = {"reservation_id": "AB12CD"}
    dollars, cents = (call("book_reservation", **book, amount=amount) for amount in (50, 5000))
    insured = call("book_reservation", **book, amount=5000, insurance="no")
    known = answered(dollars, {"error": "amount should come to a whole number of dollars"})
    met = Recollection(state({}, (dollars,)), END, Outcome(state({}, (dollars,)), 1.0, True), 1.0, 1)
    for here, left in (((), {dollars, cents, insured}), ((known,), {cents, insured})):
        view = PromptView(
            TASK, state({"error": "not paid"}), (dollars, cents, insured, END), here=here, elsewhere=(met,)
        )
        assert {Tau2Planner().decide(view, np.random.default_rng(seed)).text for seed in range(20)} == left


def test_leaving_ends_at_once_by_whatever_name() -> None:
    thanks = call("close", message="Done.")
    task = TASK.replace("finish(message?: string) - End", "close(message?: string) - Finish")
    generator = np.random.default_rng(0)
    view = PromptView(task, state(), (CANCEL, READ, thanks, call("close")))
    assert Leaving().decide(view, generator).text == call("close")
    with pytest.raises(ArgumentError, match="`view` should offer a call that ends a request"):
        Leaving().decide(PromptView(TASK, state(), (CANCEL, READ)), generator)
