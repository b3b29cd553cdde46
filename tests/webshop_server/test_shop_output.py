"""What command lines write: no control characters of others, and the reason of an early end."""

from __future__ import annotations

import io
import sys
import warnings

import pytest
import typer

from webshop_server.command_line import DONE, FAILED, INTERRUPTED, make_app, make_console, run_app

HOSTILE = "a\x1b]0;title\x07b\x1b[2J\x9bc\rd\x08\u202ee\tf\n"


def run(work):
    app = make_app("A test.", "x")
    app.command("work")(work)
    app.command("other")(lambda: None)
    return run_app(app, "x", ["work"], lambda error: None)


def is_plain(text):
    return all(one in "\t\n" or (ord(one) >= 32 and not 127 <= ord(one) < 160) for one in text) and "\u202e" not in text


def test_control_characters_are_written_as_python_writes_them(capsys):
    def work():
        print(HOSTILE)
        sys.stdout.writelines([HOSTILE])
        typer.echo(HOSTILE)
        print(HOSTILE, file=sys.stderr)
        make_console(width=200).print(HOSTILE)

    before = sys.stdout, sys.stderr
    assert run(work) == DONE
    assert (sys.stdout, sys.stderr) == before
    shown = capsys.readouterr()
    for text in (shown.out, shown.err):
        assert is_plain(text)
        assert r"a\x1b]0;title\x07b\x1b[2J\x9bc" in text


def test_colours_of_tables_remain_on_a_terminal(capsys):
    def work():
        make_console(width=80, force_terminal=True, color_system="standard").print("[red]name[/red] \x1b[2J")

    assert run(work) == DONE
    shown = capsys.readouterr().out
    assert "\x1b[31mname\x1b[0m" in shown
    assert "\x1b[2J" not in shown


def test_a_progress_bar_moves_on_a_terminal_and_hostile_lines_stay_plain(capsys):
    from rich.progress import Progress

    def work():
        with Progress(console=make_console(stderr=True, force_terminal=True, width=60)) as bars:
            bars.advance(bars.add_task("bar", total=2))
            bars.console.print(HOSTILE, markup=False, highlight=False)

    assert run(work) == DONE
    shown = capsys.readouterr().err
    assert "\x1b[2K" in shown
    assert r"\x1b[2K" not in shown
    assert "\x1b[2J" not in shown
    assert r"\x1b[2J" in shown


@pytest.mark.parametrize(("error", "status"), [(EOFError("No data left in file"), FAILED), (KeyboardInterrupt(), 130)])
def test_the_end_of_a_file_is_no_interruption(capsys, error, status):
    def work():
        raise error

    assert run(work) == status
    shown = capsys.readouterr().err
    assert ("interrupted" in shown) == (status == INTERRUPTED)
    if status == FAILED:
        assert shown.lstrip() == "x: a file or a connection ended too early: No data left in file\n"


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [("ascii", "f :+@ -> \\xd8 \\u4e16"), ("latin-1", "f :+@ -> \xd8 \\u4e16"), ("utf-8", "f ▂▅█ -→ Ø 世")],
)
def test_a_terminal_without_unicode_gets_what_is_nearest(monkeypatch, encoding, shown):
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict"))
    raw = sys.stdout, sys.stderr

    def work():
        print("f ▂▅█ -→ Ø 世")
        make_console(width=80).print("f ▂▅█ -→ Ø 世")
        print("f ▂▅█ -→ Ø 世", file=sys.stderr)

    assert run(work) == DONE
    for stream, count in zip(raw, (2, 1), strict=True):
        stream.flush()
        assert stream.buffer.getvalue().decode(encoding) == f"{shown}\n" * count
        assert stream.errors == "strict"


def test_an_equal_warning_is_told_once_without_colours(capsys):
    def work():
        for number in range(24):
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                warnings.warn(f"\x1b[33mWARN: loud {number % 2}\x1b[0m", stacklevel=1)

    assert run(work) == DONE
    assert capsys.readouterr().err.splitlines() == ["x: warning: WARN: loud 0", "x: warning: WARN: loud 1"]
