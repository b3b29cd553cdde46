"""How long work reports its progress: by stages, on one bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from webshop_server.command_line import make_console

Report = Callable[[float], None]
"""Called with the share of a stage that is done, 0 to 1."""

Stage = Callable[[str], Report]
"""Begins a stage, by its name."""


def ignore_progress(share: float) -> None:
    """Report nothing."""


@contextmanager
def show_progress(*, is_shown: bool = True) -> Iterator[Stage]:
    """Show one bar; each stage begins it again under its name.

    Args:
        is_shown: whether it is shown at all.
    """
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=make_console(stderr=True), disable=not is_shown) as bar:
        task = bar.add_task("", total=1.0, start=False)

        def begin(name: str) -> Report:
            bar.reset(task, description=name, total=1.0)
            return lambda share: bar.update(task, completed=share)

        yield begin
