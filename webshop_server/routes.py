"""The pages that shoppers see, under the original's addresses.

* `shopper_pages` - the blueprint

Every address becomes a `Location` that the session visits; an answer whose page has another address
is a redirection there, so that the address bar always tells the truth.
"""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, current_app, redirect, request

from webshop_server.errors import ArgumentError, SessionError
from webshop_server.images import picture
from webshop_server.renderer import render_html, render_message
from webshop_server.sessions import RESERVED, SessionLog, SessionStore
from webshop_server.shop import Session
from webshop_server.urls import Location, PageKind, normal_query, parse_keywords, parse_options, parse_page

shopper_pages = Blueprint("shopper", __name__)

BOTH = ("GET", "POST")
Answer = Response | Any


def store() -> SessionStore:
    """Give the sessions of the app that answers."""
    return current_app.extensions["webshop"]


def _log() -> SessionLog | None:
    return current_app.extensions["webshop_log"]


def visit(session_id: str, location: Location) -> Answer:
    """Let a session go to a page, and answer with it."""
    with store().use(session_id) as session:
        page = session.visit(location)
        if page.location != location._replace(button=""):
            return redirect(page.path, 303)
        return _answer(session)


def _answer(session: Session) -> Answer:
    log = _log()
    if log is not None:
        log.write(session, request.host_url.rstrip("/") + session.page.path)
    return Response(render_html(session.page), mimetype="text/html")


@shopper_pages.get("/")
def enter() -> Answer:
    """Let a new shopper in, under a random name; `/?goal=7` asks for a goal."""
    asked = request.args.get("goal", "")
    if asked and not (asked.isascii() and asked.isdigit() and len(asked) < 12):
        raise ArgumentError(f"`goal` should be a whole number. Received {asked[:40]!r}")
    return redirect("/" + store().create(goal=int(asked) if asked else None), 303)


@shopper_pages.route("/<session_id>", methods=BOTH)
def index(session_id: str) -> Answer:
    """The search page; a name that is new is let in, as in the original (`/fixed_7` gets goal 7)."""
    if session_id in RESERVED:
        raise SessionError(f"there is no session {session_id!r}")
    store().create(name=session_id)
    keywords = normal_query(request.form.get("search_query", ""))
    if request.method == "POST" and keywords:
        with store().use(session_id) as session:
            return redirect(session.visit(Location(PageKind.RESULTS, keywords)).path, 303)
    return visit(session_id, Location(PageKind.START))


@shopper_pages.route("/search_results/<session_id>/<keywords>/<page>", methods=BOTH)
def search_results(session_id: str, keywords: str, page: str) -> Answer:
    """Ten listings of a search."""
    return visit(session_id, Location(PageKind.RESULTS, parse_keywords(keywords), parse_page(page)))


@shopper_pages.route("/item_page/<session_id>/<asin>/<keywords>/<page>/<options>", methods=BOTH)
def item_page(session_id: str, asin: str, keywords: str, page: str, options: str) -> Answer:
    """A listing."""
    place = Location(PageKind.ITEM, parse_keywords(keywords), parse_page(page), asin, parse_options(options))
    return visit(session_id, place)


@shopper_pages.route("/item_sub_page/<session_id>/<asin>/<keywords>/<page>/<sub_page>/<options>", methods=BOTH)
def item_sub_page(session_id: str, asin: str, keywords: str, page: str, sub_page: str, options: str) -> Answer:
    """Description, features, reviews or attributes of a listing."""
    place = Location(PageKind.SUB, parse_keywords(keywords), parse_page(page), asin, parse_options(options), sub_page)
    return visit(session_id, place)


@shopper_pages.route("/ad/<session_id>/<asin>/<options>/<depth>", methods=BOTH)
def advertisement(session_id: str, asin: str, options: str, depth: str) -> Answer:
    """An advertisement, or where its button leads."""
    button = request.form.get("button", "")[:256] if request.method == "POST" else ""
    level = int(depth) if depth.isascii() and depth.isdigit() and len(depth) < 6 else 0
    place = Location(PageKind.AD, asin=asin, options=parse_options(options), depth=level, button=button)
    return visit(session_id, place)


@shopper_pages.route("/confirm/<session_id>/<asin>/<options>", methods=BOTH)
def confirm(session_id: str, asin: str, options: str) -> Answer:
    """The order, before it is placed."""
    return visit(session_id, Location(PageKind.CONFIRM, asin=asin, options=parse_options(options)))


@shopper_pages.route("/done/<session_id>/<asin>/<options>", methods=BOTH)
def done(session_id: str, asin: str, options: str) -> Answer:
    """The purchase. Only a posted form buys; reading the address shows what has been bought."""
    place = Location(PageKind.DONE, asin=asin, options=parse_options(options))
    if request.method == "POST":
        return visit(session_id, place)
    with store().use(session_id) as session:
        if session.is_done and session.page.location == place:
            return _answer(session)
    return visit(session_id, place._replace(kind=PageKind.ITEM))


@shopper_pages.get("/image/<asin>.svg")
def image(asin: str) -> Answer:
    """A drawn picture of a listing, in a colour."""
    product = store().shop.inventory.catalogue.product(asin)
    if product is None:
        raise ArgumentError(f"there is no product {asin[:40]!r}")
    drawn = picture(product.asin, product.category, request.args.get("color", "")[:64])
    answer = Response(drawn, mimetype="image/svg+xml")
    answer.headers["Cache-Control"] = "private, max-age=3600"
    return answer


def refuse(error: Exception) -> Answer:
    """Answer with a page that says what went wrong."""
    text = render_message("This page does not exist", str(error))
    return Response(text, status=404, mimetype="text/html")
