"""Files that are written whole or not at all.

* `prepare_file` - refuses a file that cannot be written, before the work
* `write_whole` - a file gets its name when it is complete
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from drift_envs.errors import ArgumentError, StateError
from drift_envs.utils.error_messages import describe_os_error


def prepare_file(path: Path, endings: Sequence[str] = (), option: str = "--out") -> None:
    """Make the folders of a file that are missing, and refuse what cannot be written, before the work.

    Args:
        path: the file; one that is there stays as it is.
        endings: those that are allowed; none for any.
        option: the option that names it.

    Raises:
        ArgumentError: if its ending is another, its name is too long, it is a folder, or it must not be written.
    """
    if endings and path.suffix.lower() not in endings:
        raise ArgumentError(f"`{option}` should end in one of {', '.join(endings)}. Received {str(path)!r}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not path.exists()
        path.open("ab").close()
        if is_new:
            path.resolve().unlink()  # of a link that leads to no file yet, the link stays
    except OSError as error:
        raise ArgumentError(
            f"`{option}` should be a file that can be written: {describe_os_error(error)}. Received {str(path)!r}"
        ) from error


@contextmanager
def write_whole(path: Path) -> Iterator[Path]:
    """The name under which a file is written; it gets its own name when it is complete.

    Args:
        path: the file. A link is followed; a device or a pipe is written as it is.

    Raises:
        StateError: if it cannot be written; what was there before stays, and nothing incomplete.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():
        part = target
    else:
        part = target.with_name(f".{target.stem}.{os.getpid()}{target.suffix}")
    try:
        yield part
        if part != target:
            os.replace(part, target)
    except OSError as error:
        raise StateError(f"{path}: cannot be written: {describe_os_error(error)}") from error
    finally:
        if part != target:
            part.unlink(missing_ok=True)
