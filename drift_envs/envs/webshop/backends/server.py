"""The shop's server in a thread of this process, for backends that talk to it.

* `LocalShop` - a server on a free port of this machine, and its operator
"""

from __future__ import annotations

import logging
import secrets
import socket
import threading
import weakref
from typing import Any
from urllib.parse import quote

from waitress import create_server, wasyncore

from webshop_server.app import Config, create_app
from webshop_server.client import Client
from webshop_server.parser import FormRequest
from webshop_server.settings import Settings
from webshop_server.shop import Shop

_PATIENCE = 5.0
"""Seconds to wait for the server's thread when it ends."""


class LocalShop:
    """A server on a free port of this machine, and its operator.

    It ends when nobody holds this object any more, at the latest with the program.

    Args:
        shop: inventory, kind of goals and settings.
    """

    def __init__(self, shop: Shop) -> None:
        token = secrets.token_urlsafe(24)
        config = Config(shop.inventory, shop.settings, goal_kind=shop.goal_kind, admin_token=token)
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # a busy shop is no news, line by line
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.bind(("127.0.0.1", 0))
        self._map: dict[int, Any] = {}
        self._server = create_server(create_app(config), map=self._map, sockets=[listener], threads=2)
        self.base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._server.run, name="webshop", daemon=True)
        self._thread.start()
        self.client = RecordingClient(self.base_url, token)
        self._end = weakref.finalize(self, _end, self.client, self._server, self._map, self._thread)

    def start(self, goal: int) -> str:
        """Let a shopper in.

        Args:
            goal: the number of what they are to buy.

        Returns:
            The session's name.
        """
        return str(self.client.admin("POST", "/sessions", {"goal": goal})["session"])

    def remove(self, session_id: str) -> None:
        """Let a shopper go.

        Args:
            session_id: the session's name.
        """
        self.client.admin("DELETE", f"/sessions/{quote(session_id, safe='')}")

    def configure(self, settings: Settings) -> None:
        """Change the operator's settings, from the next page on.

        Args:
            settings: the new ones.
        """
        self.client.configure(**settings.to_dict())

    def close(self) -> None:
        """End the server and its thread."""
        self._end()


def _end(client: Client, server: Any, sockets: dict[int, Any], thread: threading.Thread) -> None:
    client.close()
    server.task_dispatcher.shutdown()  # first what is still being answered: it wakes up the server's thread at its end
    # Sockets belong to the server's thread: it closes them itself, and ends when none is left.
    server.trigger.pull_trigger(lambda: wasyncore.close_all(sockets))
    thread.join(_PATIENCE)


class RecordingClient(Client):
    """A client that keeps the last document."""

    document = ""

    def fetch(self, press: FormRequest) -> tuple[str, str]:
        """Follow a link or send a form, and keep the document that came.

        Args:
            press: what is sent.
        """
        path, self.document = super().fetch(press)
        return path, self.document
