"""What the operator may see and change while the shop is open; needs a token.

* `admin_pages` - the blueprint, under `/admin`; it exists only where a token is given

| request | meaning |
|---|---|
| `GET /admin/settings` | the settings for all sessions |
| `PATCH /admin/settings` | change some of them, as a JSON object |
| `POST /admin/sessions` | a new session: `{"goal": 7}` |
| `GET /admin/sessions/ID` | its goal, page, purchase and score |
| `PATCH /admin/sessions/ID/settings` | change settings for this session alone |
| `DELETE /admin/sessions/ID` | let it go |

Every request carries `Authorization: Bearer TOKEN`. Changes take effect with the next page.
"""

from __future__ import annotations

import hmac
from typing import Any

from flask import Blueprint, Response, abort, current_app, jsonify, request

from webshop_server.errors import ArgumentError, SettingsError, ShopError
from webshop_server.routes import store

admin_pages = Blueprint("admin", __name__, url_prefix="/admin")


@admin_pages.before_request
def check_token() -> None:
    """Refuse whoever does not know the token."""
    given = request.headers.get("Authorization", "")
    wanted = f"Bearer {current_app.config['WEBSHOP_ADMIN_TOKEN']}"
    if not hmac.compare_digest(given.encode(), wanted.encode()):
        abort(Response("the token is missing or wrong\n", status=401, mimetype="text/plain"))


@admin_pages.errorhandler(ShopError)
def refuse(error: ShopError) -> tuple[Response, int]:
    """Answer with the reason, as JSON."""
    return jsonify(error=str(error)), 400 if isinstance(error, (SettingsError, ArgumentError)) else 404


def _changes() -> dict[str, Any]:
    data = request.get_json(silent=True)
    if not isinstance(data, dict):
        raise ArgumentError("the body should be a JSON object")
    return data


@admin_pages.get("/settings")
def show_settings() -> Response:
    """The settings for all sessions."""
    return jsonify(store().shop.settings.to_dict())


@admin_pages.patch("/settings")
def change_settings() -> Response:
    """Change some settings for all sessions."""
    return jsonify(store().shop.configure(**_changes()).to_dict())


@admin_pages.post("/sessions")
def create_session() -> Response:
    """Let a shopper in."""
    goal = _changes().get("goal")
    if goal is not None and (isinstance(goal, bool) or not isinstance(goal, int)):
        raise ArgumentError(f"`goal` should be a whole number. Received {str(goal)[:40]!r}")
    name = store().create(goal=goal)
    return jsonify(session=name, path=f"/{name}")


@admin_pages.get("/sessions/<session_id>")
def show_session(session_id: str) -> Response:
    """A session's goal, page, purchase and score."""
    with store().use(session_id) as session:
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


@admin_pages.patch("/sessions/<session_id>/settings")
def change_session(session_id: str) -> Response:
    """Change some settings for one session."""
    with store().use(session_id) as session:
        return jsonify(session.configure(**_changes()).to_dict())


@admin_pages.delete("/sessions/<session_id>")
def remove_session(session_id: str) -> Response:
    """Let a session go."""
    store().remove(session_id)
    return jsonify(removed=session_id)
