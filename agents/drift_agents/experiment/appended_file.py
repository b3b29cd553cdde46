"""A file to whose end whole lines are added.

* `AppendedFile` - hands each line to the system at once, and to the disk within half a second
"""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock, Timer

SYNC_SECONDS = 0.4
"""From the first line that is not on disk to the call that writes all of them; the call takes time too."""

_BLOCK = 65_536  # bytes


class AppendedFile:
    r"""A file to whose end whole lines are added.

    A line is the system's when `append` returns, so that a killed process loses none. It is on disk within half a
    second, or when the file is closed: waiting for the disk after every line took most of a short episode's time.

    Args:
        path: the file; it is made if it does not exist.

    Raises:
        OSError: if it cannot be opened.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     file = AppendedFile(Path(folder) / "lines")
        ...     file.append(b"one")
        ...     file.close()
        ...     file.path.read_bytes()
        b'one\n'
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = open(path, "a+b")  # noqa: SIM115 - closed by `close`
        self._lock = Lock()
        self._timer: Timer | None = None
        self._failure: OSError | None = None

    def append(self, line: bytes) -> None:
        """Add a line, given without its end.

        Raises:
            OSError: if it cannot be written, or lines before it could not be brought to the disk.
        """
        with self._lock:
            self._raise_failure()
            self.file.write(line + b"\n")
            self.file.flush()
            if self._timer is None:
                self._timer = Timer(SYNC_SECONDS, self._sync_late)
                self._timer.daemon = True
                self._timer.start()

    def cut_torn_line(self) -> None:
        """Cut off a last line without its end, which a killed process or a full disk left.

        Raises:
            OSError: if it cannot be cut off.
        """
        size = end = self.file.seek(0, os.SEEK_END)
        while end:
            begin = max(end - _BLOCK, 0)
            self.file.seek(begin)
            place = self.file.read(end - begin).rfind(b"\n")
            if place >= 0:
                end = begin + place + 1
                break
            end = begin
        if end < size:
            self.file.truncate(end)

    def close(self) -> None:
        """Bring what is left to the disk, and close the file.

        Raises:
            OSError: if it cannot be written.
        """
        with self._lock:
            if self.file.closed:
                return
            try:
                if self._timer is not None:
                    self._timer.cancel()
                    self._timer = None
                    os.fsync(self.file.fileno())
                self._raise_failure()
            finally:
                self.file.close()

    def _sync_late(self) -> None:
        with self._lock:
            if self._timer is None:  # closed in the meantime
                return
            self._timer = None
            try:
                os.fsync(self.file.fileno())
            except OSError as error:  # raised where the next line is added
                self._failure = error

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure
