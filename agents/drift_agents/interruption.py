"""Ctrl-C, SIGTERM and SIGHUP: a command ends once, in good order and in time."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Those that end a command; one that the process was started to ignore, as by `nohup`, stays ignored."""

STATUS = 130
"""The exit status of an interrupted command."""

PATIENCE = 0.5
"""Seconds for which threads with pending requests are awaited after an interruption."""

_LIMIT = 1.4  # seconds from a signal to the end of the process, whatever it is at
_SHOW_CURSOR = b"\x1b[?25h"


class _Handler:
    """Raises `KeyboardInterrupt` once; what follows, such as killing workers, is not interrupted again."""

    def __init__(self) -> None:
        self.holds = 0
        self.has_come = self._has_raised = False

    def __call__(self, *_: object) -> None:
        self.has_come = True
        self.raise_if_due()

    def raise_if_due(self) -> None:
        if self.has_come and not self.holds and not self._has_raised:
            self._has_raised = True
            raise KeyboardInterrupt


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Have the signals that end a process, or close its terminal, raise one `KeyboardInterrupt`."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = _Handler()
    heeded = [number for number in SIGNALS if signal.getsignal(number) not in (signal.SIG_IGN, None)]
    before = {number: signal.signal(number, handler) for number in heeded}
    try:
        yield
    finally:
        for number, other in before.items():
            signal.signal(number, other)


def run_program(main: Callable[[], int]) -> int:
    """Run what a process is for; after a signal the process ends soon in any case.

    It ends even where foreign code catches the exception, or a call in C does not return, and the interpreter does not
    free its memory first. Workers end with it.
    """
    interrupted: list[int] = []
    atexit.register(_end_at_once, interrupted)  # the first to be registered is the last to be called
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    os.register_at_fork(after_in_child=_forget)
    with stopped_by_signals():
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        threading.Thread(target=_watch, args=(reading, interrupted), name="signals", daemon=True).start()
        status = main()
    if status == STATUS:
        interrupted.append(status)
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
    else:
        signal.set_wakeup_fd(-1)
    return status


def _end_at_once(interrupted: list[int]) -> None:
    if interrupted:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(STATUS)


def _watch(reading: int, interrupted: list[int]) -> None:
    while os.read(reading, 1)[0] not in SIGNALS:
        pass
    threading.Event().wait(_LIMIT)
    with suppress(OSError):
        if not interrupted:  # where the command has ended it has printed this
            os.write(2, (_SHOW_CURSOR if os.isatty(2) else b"") + b"drift-agents: interrupted\n")
    os._exit(STATUS)


def _forget() -> None:
    """Let a forked process end by its signals alone, which are not those of the command."""
    signal.set_wakeup_fd(-1)
    for number in SIGNALS:
        if isinstance(signal.getsignal(number), _Handler):
            signal.signal(number, signal.SIG_DFL)


def _find_handler() -> _Handler | None:
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            if isinstance(handler := signal.getsignal(number), _Handler):
                return handler
    return None


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Raise the `KeyboardInterrupt` of a signal at the end of the context, or where it is `interruptible`."""
    handler = _find_handler()
    if handler is None:
        yield
        return
    handler.holds += 1
    try:
        yield
    finally:
        handler.holds -= 1
        if sys.exc_info()[0] is None:
            handler.raise_if_due()


@contextmanager
def interruptible() -> Iterator[None]:
    """Within `uninterrupted`, raise the `KeyboardInterrupt` of a signal at once, also of one that came before."""
    handler = _find_handler()
    if handler is None:
        yield
        return
    holds, handler.holds = handler.holds, 0
    try:
        handler.raise_if_due()
        yield
    finally:
        handler.holds = holds


def is_interrupted() -> bool:
    """Whether a signal has come that ends this command; `run_program` leaves it little time."""
    handler = _find_handler()
    return handler is not None and handler.has_come


@contextmanager
def one_process() -> Iterator[None]:
    """End a process that foreign code has forked and that comes back here; its parent goes on."""
    process = os.getpid()
    try:
        yield
    finally:
        if os.getpid() != process:
            os._exit(0)
