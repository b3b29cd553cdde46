"""The command `python -m research`: exit status, errors and help."""

from __future__ import annotations

import pytest

from research.__main__ import main
from research.studies import STUDIES


@pytest.mark.parametrize("command", [[], ["study"], ["experience"], ["map-tuned"]], ids=lambda words: " ".join(words))
def test_every_help_has_an_example(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "--help"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "Example: python -m research" in printed


def test_the_help_of_study_names_all_studies(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "--help"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert all(name in printed for name in STUDIES)


@pytest.mark.parametrize(
    ("arguments", "status", "expected"),
    [
        ([], 2, "Missing command"),
        (["map-tuned"], 2, "Missing argument"),
        (["map-tuned", "absent", "absent"], 2, "absent: does not exist"),
        (["map-schedules", "--every", "1"], 2, "should be a whole number, at least 4"),
        (["study", "belief"], 2, "no study is called 'belief'"),
        (["study", "belief-corpus", "--seeds", "31"], 2, "should be in the interval [1, 30]"),
        (["experience", "delet"], 2, "did you mean 'deletion'?"),
    ],
)
def test_errors_are_one_line_without_a_traceback(
    arguments: list[str], status: int, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == status
    printed = capsys.readouterr()
    assert expected in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""
