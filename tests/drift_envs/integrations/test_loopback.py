"""Listening sockets at the loopback address."""

from __future__ import annotations

import re
import socket

import pytest

from drift_envs.errors import ArgumentError
from drift_envs.integrations.loopback import LOOPBACK, listen

pytestmark = pytest.mark.integration


def test_a_client_of_this_machine_connects():
    with listen() as listener, socket.create_connection(listener.getsockname(), timeout=5) as client:
        served, address = listener.accept()
        served.close()
        assert (address[0], client.getpeername()) == (LOOPBACK, listener.getsockname())


def test_a_port_that_is_taken_is_refused():
    with listen() as first:
        port = first.getsockname()[1]
        with pytest.raises(ArgumentError, match=re.escape(f"`port` should be free. Received {port}: ")):
            listen(port)
    with listen(port) as again:  # closed, it can be taken at once
        assert again.getsockname()[1] == port


def test_what_is_no_port_is_refused():
    with pytest.raises(ArgumentError, match=re.escape("in the interval [0, 65535]. Received 65536")):
        listen(65536)
