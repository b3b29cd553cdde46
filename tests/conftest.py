"""Settings of the whole suite, and the marker `integration`."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

# Frames are drawn without a screen. Set before anything imports pygame.
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")

# A shell that starts the tests in the background lets them ignore Ctrl-C, and what they start too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Collecting garbage among nine thousand tests, which stay until the end, took a tenth of the suite's time.
gc.disable()

# Equal runs on every machine: no random start, no deadline that a busy machine would miss.
hypothesis.settings.register_profile("suite", derandomize=True, deadline=None, max_examples=30)
hypothesis.settings.register_profile("check", derandomize=True, deadline=None, max_examples=15)
hypothesis.settings.register_profile("fuzz", deadline=None, max_examples=3000)
hypothesis.settings.load_profile("suite")

OUTSIDE = {"browser", "chat", "chromium", "server"}
"""Fixtures that start a browser or a server, or that tests start one with."""
OUTSIDE_EXAMPLES = {
    "drift_envs.integrations.loopback.listen",
    "drift_envs.vector.watched.WatchedAsyncVectorEnv",
}
"""Docstrings whose example does."""
EXTRAS = Path(__file__).with_name("extras")
STARTS = {"os.fork", "os.posix_spawn", "socket.bind", "subprocess.Popen"}
"""What Python's audit calls it when a process starts, or a server takes a port."""
FONT_SEARCH = "fc-list"
"""Matplotlib starts this program once on a new machine, in whichever test draws first."""
_confined = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of these fixtures, and those of extras; others are marked where they are written."""
    for item in items:
        uses = OUTSIDE & set(getattr(item, "fixturenames", ()))
        # A process for each submission:
        runs_code = any(one in item.name for one in ("DriftRepository", "repository/", "drift_envs.envs.repository"))
        if uses or runs_code or item.name in OUTSIDE_EXAMPLES or EXTRAS in item.path.parents:
            item.add_marker(pytest.mark.integration)


def pytest_collection_finish() -> None:
    """What was collected is garbage at no time; what tests make is looked through again."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """A test without the marker, which `make check` runs, starts nothing."""
    global _confined
    _confined = not (item.get_closest_marker("integration") or item.get_closest_marker("slow"))
    try:
        return (yield)
    finally:
        _confined = False


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if _confined and event in STARTS and arguments[:1] != (FONT_SEARCH,):
        raise RuntimeError(f"{event}: a test that starts a process or a server needs the marker `integration`")


sys.addaudithook(_refuse)
