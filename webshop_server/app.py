"""The shop as a Flask application.

* `Config` - the configuration
* `create_app` - the application factory
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from flask import Flask, Response, current_app, request
from werkzeug.exceptions import HTTPException

from webshop_server.catalogue import Catalogue
from webshop_server.command_line import HostRule
from webshop_server.compat.goal import count_nouns, load_tagger
from webshop_server.compat.routes import original_routes
from webshop_server.errors import ArgumentError, SessionError, ShopError
from webshop_server.goals import BROWSE
from webshop_server.inventory import Inventory
from webshop_server.picture import PhotoSource
from webshop_server.renderer import SECURITY_HEADERS, render_message
from webshop_server.reward import NounRule, extract_nouns
from webshop_server.routes import admin_routes, shop_routes, show_error, show_session_over
from webshop_server.sessions import SessionLog, SessionStore
from webshop_server.settings import Settings
from webshop_server.shared_sessions import SharedSessionStore
from webshop_server.shop import Shop

MAX_BODY = 64 * 1024
"""The maximum size of a request body, in bytes."""

MAX_URL = 16 * 1024
"""The maximum length of a URL, in characters."""

STYLE_SECONDS = 3600
"""How long a browser may cache the style sheet, in seconds; otherwise it requests it with every page."""


@dataclass(frozen=True)
class Config:
    """The configuration of an application.

    Args:
        catalogue: a catalogue file, or an inventory; by default the generated catalogue.
        settings: the initial settings.
        goal_kind: `synthetic`, `human` or `color_class`; a catalogue without any instruction is browsed without a goal.
        seed: seeds price limits and the goals of new sessions.
        admin_token: the token for `/admin`, at least 8 characters; without one `/admin` does not exist.
        state: the SQLite file of sessions and orders; without one they are kept in memory.
        log_dir: the directory of session logs; without one nothing is logged.
        max_sessions: the maximum number of sessions.
        max_client_sessions: the maximum number of sessions of one client address.
        idle_seconds: sessions that are idle for longer are deleted.
        image_dir: a directory of photos, named by asin or as in the addresses of the catalogue; others are drawn.
        remote_images: hosts from which browsers may load the photos of an imported catalogue; by default none, and
            pages load nothing from other hosts.
        allow_hosts: names of hosts under which the shop is addressed, beside `localhost`, this machine's name and all
            IP addresses; requests to other names are refused.
        compat: serve pages with the original's elements and ids, for clients of the original: any name starts a
            session, a `GET` request buys, and nouns are counted as the original counts them.
        spacy_model: a model of spaCy that selects the nouns in this mode; without one a rule does.
    """

    catalogue: str | os.PathLike[str] | Inventory | None = None
    settings: Settings = field(default_factory=Settings)
    goal_kind: str = "synthetic"
    seed: int = 0
    admin_token: str | None = field(default=None, repr=False)
    state: str | os.PathLike[str] | None = None
    log_dir: str | os.PathLike[str] | None = None
    max_sessions: int = 10_000
    max_client_sessions: int = 1000
    idle_seconds: float = 3600.0
    image_dir: str | os.PathLike[str] | None = None
    remote_images: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    compat: bool = False
    spacy_model: str | None = None


def create_app(config: Config | None = None) -> Flask:
    """Create the application.

    Args:
        config: the configuration.

    Raises:
        CatalogueError: the catalogue cannot be used.
        ArgumentError: a value of the configuration breaks its rule.
        StateFileError: the file of sessions cannot be used.

    Example:
        >>> from webshop_server.inventory import Inventory
        >>> client = create_app(Config(Inventory.default(products=100))).test_client()
        >>> "Instruction:" in client.get("/fixed_7").text
        True
    """
    config = config or Config()
    if config.admin_token is not None and len(config.admin_token) < 8:
        raise ArgumentError("`admin_token` should have at least 8 characters")
    inventory = _inventory(config)
    has_goals = any(len(table.numbers) for table in inventory.index.goals)
    shop = Shop(
        inventory, config.settings, goal_kind=config.goal_kind if has_goals else BROWSE, nouns=_noun_rule(config)
    )
    len(shop.goals)  # a catalogue without goals of this kind is refused here, not at the first request
    app = Flask("webshop_server")
    app.config.update(
        MAX_CONTENT_LENGTH=MAX_BODY,
        MAX_FORM_MEMORY_SIZE=MAX_BODY,
        SEND_FILE_MAX_AGE_DEFAULT=STYLE_SECONDS,
        WEBSHOP_ADMIN_TOKEN=config.admin_token,
        WEBSHOP_TEMPLATE="original.html" if config.compat else "page.html",
    )
    app.extensions["webshop_photos"] = PhotoSource(config.image_dir, config.remote_images)
    app.json.ensure_ascii = False  # type: ignore[attr-defined]
    app.extensions["webshop"] = _make_store(shop, config)
    app.extensions["webshop_hosts"] = HostRule(config.allow_hosts)
    app.extensions["webshop_log"] = SessionLog(config.log_dir) if config.log_dir is not None else None
    if config.admin_token is not None:
        app.register_blueprint(admin_routes)
    app.register_blueprint(original_routes if config.compat else shop_routes)
    app.register_error_handler(ArgumentError, show_error)
    app.register_error_handler(SessionError, show_session_over)
    app.register_error_handler(ShopError, _show_failure)
    app.register_error_handler(HTTPException, _show_http_error)
    app.before_request(_check_host)
    app.before_request(_check_url)
    app.before_request(_check_origin)
    app.after_request(_add_security_headers)
    return app


def _noun_rule(config: Config) -> NounRule:
    if not config.compat:
        return extract_nouns
    return load_tagger(config.spacy_model) if config.spacy_model is not None else count_nouns


def _make_store(shop: Shop, config: Config) -> SessionStore:
    limit, client_limit, idle, seed = (
        config.max_sessions,
        config.max_client_sessions,
        config.idle_seconds,
        config.seed,
    )
    if config.state is None:
        return SessionStore(shop, limit=limit, client_limit=client_limit, idle_seconds=idle, seed=seed)
    return SharedSessionStore(shop, config.state, limit=limit, client_limit=client_limit, idle_seconds=idle, seed=seed)


def _inventory(config: Config) -> Inventory:
    if isinstance(config.catalogue, Inventory):
        return config.catalogue
    if config.catalogue is None:
        return Inventory.open(Inventory.default().catalogue.path, config.seed)
    return Inventory(Catalogue(config.catalogue), config.seed)


def _check_host() -> Response | None:
    """Refuse requests to a name that is not the shop's, as pages of other sites send them after DNS rebinding."""
    rule: HostRule = current_app.extensions["webshop_hosts"]
    if rule.allows(request.headers.get("Host")):
        return None
    text = render_message("This request is refused", "The shop is not known under this name; see `--allow-host`.")
    return Response(text, status=421, mimetype="text/html")


def _check_url() -> Response | None:
    query = request.query_string
    if len(request.path) + 1 + len(query) > MAX_URL:
        text = render_message("This URL is too long", f"A URL has at most {MAX_URL} characters.")
        return Response(text, status=414, mimetype="text/html")
    try:
        query.decode()
    except UnicodeDecodeError:
        text = render_message("This URL cannot be read", "The part after `?` is not UTF-8.")
        return Response(text, status=400, mimetype="text/html")
    return None


def _check_origin() -> Response | None:
    """Refuse changes that a page of another site sends; programs other than browsers send no origin."""
    origin = request.headers.get("Origin")
    if request.method in ("GET", "HEAD", "OPTIONS") or origin is None:
        return None
    if origin.lower().partition("://")[2] == request.host.lower():  # a proxy may have changed the scheme
        return None
    text = render_message("This request is refused", "It was sent by a page of another site.")
    return Response(text, status=403, mimetype="text/html")


def _add_security_headers(response: Response) -> Response:
    if current_app.config["WEBSHOP_TEMPLATE"] == "original.html":
        # Choosing an option opens a page, by a script of the server's own.
        policy = f"script-src 'self'; {SECURITY_HEADERS['Content-Security-Policy']}"
        response.headers["Content-Security-Policy"] = policy
    hosts = current_app.extensions["webshop_photos"].hosts
    if hosts:
        policy = response.headers.get("Content-Security-Policy", SECURITY_HEADERS["Content-Security-Policy"])
        sources = " ".join(("img-src 'self'", *(f"https://{host}" for host in hosts)))
        response.headers["Content-Security-Policy"] = policy.replace("img-src 'self'", sources)
    for name, value in SECURITY_HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def _show_failure(error: Exception) -> Response:
    current_app.logger.error(str(error))
    text = render_message("The shop cannot answer", "Its files cannot be used. Please try again later.")
    return Response(text, status=503, mimetype="text/html")


def _show_http_error(error: HTTPException) -> Response:
    if error.response is not None:
        return error.response  # type: ignore[return-value]
    text = render_message(error.name, error.description or "")
    return Response(text, status=error.code or 500, mimetype="text/html")
