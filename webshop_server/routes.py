"""The URLs that the server answers.

A path is parsed to a `PageUrl`, which the session visits. Where the session shows a page with another URL,
the response is a redirect to it.

| request | meaning |
|---|---|
| `GET /admin/settings` | the settings of all sessions |
| `PATCH /admin/settings` | change settings of all sessions, as a JSON object |
| `POST /admin/sessions` | start a session: `{"goal": 7}`; `"name"` selects its name, which should be new |
| `GET /admin/sessions/ID` | a session's goal, page, purchase and score |
| `PATCH /admin/sessions/ID/settings` | change settings of one session |
| `DELETE /admin/sessions/ID` | delete a session |

Every request below `/admin` carries `Authorization: Bearer TOKEN`. Changes take effect with the next page.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterable
from typing import Any

from flask import Blueprint, Response, abort, current_app, jsonify, redirect, request
from werkzeug.wrappers import Response as BaseResponse

from webshop_server.errors import ArgumentError, SessionError, SettingsError, ShopError, refuse
from webshop_server.page_model import MAX_ACTION
from webshop_server.renderer import PHOTO_TYPES, PhotoSource, draw_picture, render_html, render_message
from webshop_server.sessions import RESERVED, SessionLog, SessionStore, check_name
from webshop_server.shop import Session
from webshop_server.urls import (
    PageKind,
    PageUrl,
    normalize_query,
    parse_options,
    parse_segments,
    parse_session_goal,
)

shop_routes = Blueprint("shop", __name__)
admin_routes = Blueprint("admin", __name__, url_prefix="/admin")

BOTH = ("GET", "POST")
PAGES = f"/<any({', '.join(kind.value for kind in (*PageKind,)[1:-1])}):kind>/<session_id>/<path:rest>"
"""The addresses of pages that do not buy."""

PICTURE_SECONDS = 3600
"""How long a browser may cache a picture, in seconds."""


MAX_DEPTH = 16
"""The maximum number of levels in a JSON body; settings have three."""


def get_store() -> SessionStore:
    """Return the sessions of the current application."""
    store: SessionStore = current_app.extensions["webshop"]
    return store


def visit(session_id: str, url: PageUrl) -> BaseResponse:
    """Move a session to a page, press the button of a form (`POST` with its label), and respond with the page."""
    button = request.form.get("button", "")[:MAX_ACTION] if request.method == "POST" else ""
    if url.kind is PageKind.AD:  # where the button decides which page follows
        url, button = url._replace(button=button), ""
    with get_store().use(session_id) as session:
        page = session.page if button and session.page.url == url else session.visit(url)  # as it was shown
        if button and not session.is_done:
            page = session.click(button)
        if page.url != url._replace(button=""):
            return redirect(page.path, 303)
        return respond(session)


def search(session_id: str) -> BaseResponse:
    """Search for the words of a form (`POST`), and respond with the search page if there are none."""
    keywords = normalize_query(request.form.get("search_query", ""))
    if request.method == "POST" and keywords:
        with get_store().use(session_id) as session:
            return redirect(session.visit(PageUrl(PageKind.RESULTS, keywords)).path, 303)
    return visit(session_id, PageUrl(PageKind.START))


def respond(session: Session) -> Response:
    """Respond with a session's page, and log it."""
    log: SessionLog | None = current_app.extensions["webshop_log"]
    if log is not None:
        log.write(session, request.host_url.rstrip("/") + session.page.path)
    return Response(render_html(session.page, current_app.config["WEBSHOP_TEMPLATE"]), mimetype="text/html")


def respond_with(status: int, title: str, text: object) -> Response:
    """Respond with a message as a page.

    Args:
        status: the HTTP status.
        title: the message in a few words.
        text: the reason.
    """
    return Response(render_message(title, str(text)), status=status, mimetype="text/html")


@shop_routes.get("/")
def start_session() -> BaseResponse:
    """Start a session with a random name; `/?goal=7` selects the goal."""
    goal = request.args.get("goal", "")
    if goal and not (goal.isascii() and goal.isdigit() and len(goal) < 12):
        raise refuse("goal", "a whole number", goal[:40], ArgumentError)
    name = get_store().create(goal=int(goal) if goal else None, client=request.remote_addr or "")
    return redirect(f"/{name}", 303)


@shop_routes.route("/<session_id>", methods=BOTH)
def show_start(session_id: str) -> BaseResponse:
    """Show the search page, or search (`POST`).

    A name such as `fixed_7` selects goal 7, as in the original: its first `POST` starts the session, and a `GET`
    before shows the page alone. Every other name belongs to a session that exists.
    """
    if session_id in RESERVED:
        raise SessionError(f"there is no session {session_id!r}")
    store = get_store()
    goal = parse_session_goal(session_id)
    if goal is not None and session_id not in store:
        if request.method == "GET":
            page = store.shop.start(goal, check_name(session_id)).page
            return Response(render_html(page), mimetype="text/html")
        store.create(name=session_id, goal=goal, client=request.remote_addr or "")
    return search(session_id)


@shop_routes.route(PAGES, methods=BOTH)
def show_page(kind: str, session_id: str, rest: str) -> BaseResponse:
    """Show results, a listing, one of its sub pages, an advertisement or an order before it is placed."""
    return visit(session_id, parse_segments(kind, rest.split("/")))


@shop_routes.route("/done/<session_id>/<asin>/<options>", methods=BOTH)
def buy(session_id: str, asin: str, options: str) -> BaseResponse:
    """Buy (`POST`), or show a completed purchase (`GET`)."""
    url = PageUrl(PageKind.DONE, asin=asin, options=parse_options(options))
    if request.method == "POST":
        return visit(session_id, url)
    with get_store().use(session_id) as session:
        if session.is_done and session.page.url == url:
            return respond(session)
    return visit(session_id, url._replace(kind=PageKind.ITEM))


@shop_routes.get("/image/<asin>.svg")
def show_picture(asin: str) -> BaseResponse:
    """Send the photo of a listing where the operator provides it, else a drawing; `?color=red` selects its colour."""
    product = get_store().shop.inventory.catalogue.product(asin)
    if product is None:
        raise ArgumentError(f"there is no product {asin[:40]!r}")
    photos: PhotoSource = current_app.extensions["webshop_photos"]
    file, address = photos.find_file(product), photos.find_address(product)
    if file is not None:
        try:
            response = Response(file.read_bytes(), mimetype=PHOTO_TYPES[file.suffix])
        except OSError as error:
            raise ShopError(f"the photo `{file}` cannot be read: {error.strerror}") from error
    elif address:
        return redirect(address)
    else:
        picture = draw_picture(product, request.args.get("color", "")[:64])
        response = Response(picture, mimetype="image/svg+xml")
    response.headers["Cache-Control"] = f"private, max-age={PICTURE_SECONDS}"
    return response


@admin_routes.before_request
def check_token() -> None:
    """Refuse a request without the token."""
    given = request.headers.get("Authorization", "")
    wanted = f"Bearer {current_app.config['WEBSHOP_ADMIN_TOKEN']}"
    if not hmac.compare_digest(given.encode(), wanted.encode()):
        abort(Response("the token is missing or wrong\n", status=401, mimetype="text/plain"))


@admin_routes.errorhandler(ShopError)
def send_error(error: ShopError) -> tuple[Response, int]:
    """Respond with the reason, as JSON."""
    return jsonify(error=str(error)), 400 if isinstance(error, (SettingsError, ArgumentError)) else 404


def read_body() -> dict[str, Any]:
    """Return the JSON object in the body."""
    try:
        data = request.get_json(silent=True)
    except RecursionError:
        data = None
    if not isinstance(data, dict):
        raise ArgumentError("the body should be a JSON object")
    if _is_deeper(data, MAX_DEPTH):
        raise ArgumentError(f"the body should have at most {MAX_DEPTH} levels of objects and lists")
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # pages and answers could not show it
        raise ArgumentError("the body should have no lone surrogates") from None
    return data


def _is_deeper(value: object, most: int) -> bool:
    """Whether objects and lists contain each other in more than this number of levels."""
    level = [value]
    for _ in range(most):
        level = [item for one in level for item in _items(one)]
    return any(isinstance(one, (dict, list)) for one in level)


def _items(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


@admin_routes.get("/settings")
def show_settings() -> Response:
    """Send the settings of all sessions."""
    return jsonify(get_store().read_settings().to_dict())


@admin_routes.patch("/settings")
def change_settings() -> Response:
    """Change settings of all sessions."""
    return jsonify(get_store().configure(**read_body()).to_dict())


@admin_routes.post("/sessions")
def create_session() -> Response:
    """Start a session."""
    body = read_body()
    if unknown := body.keys() - {"goal", "name"}:
        raise ArgumentError(f"the body should have no keys but goal and name. Received {min(unknown)[:80]!r}")
    name = body.get("name")
    if name is not None and not isinstance(name, str):
        raise refuse("name", "a text", name, ArgumentError)
    name = get_store().create(goal=body.get("goal"), name=name, is_new=True)
    return jsonify(session=name, path=f"/{name}")


@admin_routes.get("/sessions/<session_id>")
def show_session(session_id: str) -> Response:
    """Send a session's goal, page, purchase and score."""
    with get_store().use(session_id) as session:
        return jsonify(
            session=session_id,
            goal_index=session.goal_index,
            goal=session.goal.to_dict(),
            path=session.page.path,
            done=session.is_done,
            reward=session.reward,
            reward_info=session.score.to_dict() if session.score else None,
            bought={"asin": session.bought.asin, "options": dict(session.bought.options)} if session.bought else None,
            settings=session.settings.to_dict(),
        )


@admin_routes.patch("/sessions/<session_id>/settings")
def change_session(session_id: str) -> Response:
    """Change settings of one session."""
    with get_store().use(session_id) as session:
        return jsonify(session.configure(**read_body()).to_dict())


@admin_routes.delete("/sessions/<session_id>")
def remove_session(session_id: str) -> Response:
    """Delete a session."""
    get_store().remove(session_id)
    return jsonify(removed=session_id)
