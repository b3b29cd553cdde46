"""The URLs of `serve --compat`, for clients of the original's server.

They differ in three things, as clients expect: any name starts a session, whose goal is drawn or, for `fixed_7`, goal
7; `GET /done/...` buys; and the start page of a session that has bought starts it anew with the same goal.
"""

from __future__ import annotations

from flask import Blueprint, redirect, request
from werkzeug.wrappers import Response as BaseResponse

from webshop_server.errors import SessionError
from webshop_server.routes import (
    BOTH,
    PAGES,
    get_store,
    search,
    show_page,
    show_picture,
    visit,
)
from webshop_server.sessions import RESERVED
from webshop_server.urls import PageKind, PageUrl, parse_options

original_routes = Blueprint("original", __name__)

original_routes.add_url_rule(PAGES, view_func=show_page, methods=BOTH)
original_routes.add_url_rule("/image/<asin>.svg", view_func=show_picture)


@original_routes.get("/")
def open_shop() -> BaseResponse:
    """Open the session `abc`, as the original does."""
    return redirect("/abc", 303)


@original_routes.route("/<session_id>", methods=BOTH)
def show_original_start(session_id: str) -> BaseResponse:
    """Show the search page, or search (`POST`); an unknown name starts a session."""
    if session_id in RESERVED:
        raise SessionError(f"there is no session {session_id!r}")
    store, client = get_store(), request.remote_addr or ""
    store.create(name=session_id, client=client)
    with store.use(session_id) as session:
        bought_with = session.goal_index if session.is_done else None
    if bought_with is not None:
        store.remove(session_id)
        store.create(name=session_id, goal=bought_with, client=client)
    return search(session_id)


@original_routes.route("/done/<session_id>/<asin>/<options>", methods=BOTH)
def buy_as_original(session_id: str, asin: str, options: str) -> BaseResponse:
    """Buy, by any method."""
    return visit(session_id, PageUrl(PageKind.DONE, asin=asin, options=parse_options(options)))
