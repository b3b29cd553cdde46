"""What the tests of coding agents share."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture
def takes_interrupts() -> Iterator[None]:
    """A process that a shell starts in the background ignores Ctrl-C, and so would what a test starts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
