"""The files of a submission: what a zip file may hold, and what it may not do."""

from __future__ import annotations

import re
import stat
import zipfile
from pathlib import Path

import hypothesis.strategies as st
import pytest
from drift_agents.errors import SubmissionError
from drift_agents.submission import bundle
from drift_agents.submission.bundle import NAMES, STATEMENT, open_submission, write_zip
from drift_agents.submission.validate import check_submission
from hypothesis import HealthCheck, given, settings

pytestmark = pytest.mark.integration


def unpacked(path: Path) -> dict[str, bytes]:
    with open_submission(path) as folder:
        return {found.name: found.read_bytes() for found in folder.iterdir()}


def test_a_zip_file_is_the_folder(prepared: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "one.zip", tmp_path / "other.zip"
    write_zip(prepared, one)
    write_zip(prepared, other)
    assert one.read_bytes() == other.read_bytes()
    assert unpacked(one) == unpacked(prepared)
    with open_submission(one) as folder:
        assert check_submission(folder).findings == []


@given(name=st.one_of(st.sampled_from(["../run.json", "/run.json", "a/run.json", "run.json/", "RUN.JSON"]), st.text()))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_other_name_is_unpacked(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr(zipfile.ZipInfo(name or "empty"), b"x")
    with zipfile.ZipFile(path) as packed:
        known = packed.namelist()[0] in NAMES
    before = sorted(tmp_path.parent.glob("*/*"))
    if known:
        assert list(unpacked(path).values()) == [b"x"]
    else:
        with pytest.raises(SubmissionError, match="should hold only"):
            unpacked(path)
    assert sorted(tmp_path.parent.glob("*/*")) == before


@given(content=st.binary(max_size=200))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_no_zip_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.zip").write_bytes(content)
    with pytest.raises(SubmissionError, match="is neither a folder nor a zip file"):
        unpacked(tmp_path / "x.zip")


@given(place=st.integers(0, 10**6), value=st.integers(0, 255))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_changed_byte_of_a_zip_file_raises_no_other_error(
    prepared: Path, tmp_path: Path, place: int, value: int
) -> None:
    path = tmp_path / "x.zip"
    write_zip(prepared, path)
    data = bytearray(path.read_bytes())
    data[place % len(data)] = value
    path.write_bytes(data)
    try:
        found = unpacked(path)
    except SubmissionError:
        return
    assert set(found) <= set(NAMES)


def test_a_bomb_stops_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "MOST_BYTES", 10_000_000)
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("episodes.jsonl", bytes(30_000_000))
    assert path.stat().st_size < 100_000
    with pytest.raises(SubmissionError, match="at most 10,000,000 bytes"):
        unpacked(path)


def test_a_file_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("run.json", b"1")
        with pytest.warns(UserWarning, match="Duplicate name"):
            packed.writestr("run.json", b"2")
    with pytest.raises(SubmissionError, match="every file once"):
        unpacked(path)


def test_a_link_in_a_zip_file_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    entry = zipfile.ZipInfo("run.json")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr(entry, b"/etc/passwd")
    with open_submission(path) as folder:
        assert not (folder / "run.json").is_symlink()
        assert (folder / "run.json").read_bytes() == b"/etc/passwd"


def test_a_link_in_a_folder_is_refused(submission: Path, tmp_path: Path) -> None:
    (submission / "episodes.jsonl").rename(tmp_path / "elsewhere.jsonl")
    (submission / "episodes.jsonl").symlink_to(tmp_path / "elsewhere.jsonl")
    assert any("no link" in finding for finding in check_submission(submission).findings)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(SubmissionError, match="there is no such folder or file"), open_submission(tmp_path / "no.zip"):
        pass
    assert check_submission(tmp_path).findings == [f"{STATEMENT}: cannot be read: No such file or directory"]
    (tmp_path / STATEMENT).write_text('{"format": 1}')
    found = "\n".join(check_submission(tmp_path).findings)
    assert re.search(r"(?s)format: Input should be 2.*platform: Field required", found)
