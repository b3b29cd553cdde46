"""Results as small files, the pages made of them, and what goes to the legacy tab."""

from __future__ import annotations

import json
import math
import re
import shutil
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from drift_agents.analysis.ranking import make_standings
from drift_agents.analysis.runs import read_run
from drift_agents.cli.app import main
from drift_agents.errors import SubmissionError
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.logs import read_rows
from drift_agents.experiment.runner import run_experiment
from drift_agents.submission.board import gather_board
from drift_agents.submission.board_pages import to_html_page, to_markdown_page, write_board
from drift_agents.submission.prepare import prepare_submission
from drift_agents.submission.replay import replay_submission
from drift_agents.submission.results import (
    COLUMNS,
    is_current,
    make_result,
    read_results,
    write_result,
)
from drift_agents.submission.track import make_track
from drift_agents.submission.validate import check_submission

TRACK = """\
name: two
about: "a lake <b>and</b> a house"
schedules: [frozen_lake/implicit:family, house/explicit]
seeds: 2
rounds: 3
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of results with one track and two submissions, which share an agent."""
    folder = tmp_path_factory.mktemp("board")
    (folder / "track.yaml").write_text(TRACK)
    track = make_track(folder / "track.yaml")
    results = folder / "results" / "two"
    results.mkdir(parents=True)
    (results / "track.json").write_text(json.dumps(track.model_dump(mode="json", exclude_none=True)))
    for name, memory in (("ours", ["none", "vanilla"]), ("theirs", ["vanilla", "memory_bank"])):
        agents = {"memory": memory, "verifier": ["none", "glove"], "policy": "planner"}
        experiment = parse_experiment({**track.settings, "name": f"two-{name}", "agents": agents, "seeds": 2})
        run_experiment(experiment, folder / name)
        prepare_submission(folder / name, folder / f"{name}.submission", about="</script><script>alert(1)</script>")
        checked = check_submission(folder / f"{name}.submission")
        certificate = replay_submission(checked, 2) if name == "ours" else None
        write_result(results / f"{name}.json", make_result(checked, track.digest(), name, certificate))
    return folder


@pytest.fixture
def results(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole / "results", tmp_path / "results"))


def test_a_result_holds_the_figures_of_the_lines(whole: Path) -> None:
    (board,) = gather_board(whole / "results")
    ours = next(result for result in board.results if result.name == "ours")
    lines = {
        (row["schedule"], row["seed"], row["memory"], row["verifier"], row["policy"], row["episode"]): row
        for row in read_rows(whole / "ours" / "episodes.jsonl")
    }
    rows = list(ours.rows())
    assert len(rows) == len(lines) == ours.counts.episodes
    for row in rows:
        line = lines[row["schedule"], row["seed"], row["memory"], row["verifier"], row["policy"], row["episode"]]
        for name in COLUMNS:
            same = (
                row[name] == line[name]
                if isinstance(line[name], str)
                else math.isclose(row[name], line[name], abs_tol=1e-6)
            )
            assert same, (name, row[name], line[name])
    assert (whole / "results" / "two" / "ours.json").stat().st_size < 20_000
    assert ours.replayed is not None
    assert ours.replayed.cells == 2


def test_the_standings_are_those_of_the_leaderboard(whole: Path) -> None:
    """Of one submission alone, the board has the figures that the run's own leaderboard has."""
    only = whole / "only" / "two"
    only.mkdir(parents=True)
    for name in ("track.json", "ours.json"):
        shutil.copy(whole / "results" / "two" / name, only)
    (board,) = gather_board(only.parent)
    expected = make_standings(*read_run(whole / "ours"))
    found = board.views[0].standings
    assert found is not None
    for one, other in zip([*found.ranked, *found.references], [*expected.ranked, *expected.references], strict=True):
        assert (one.key, one.ranks, one.supervision) == (other.key, other.ranks, other.supervision)
        assert one.kept == pytest.approx(other.kept)
        assert one.ranked_by == pytest.approx(other.ranked_by)


def test_equal_agents_of_two_submissions_are_one_row(whole: Path) -> None:
    (board,) = gather_board(whole / "results")
    view = board.views[0]
    rows = {row.name: row for row in view.rows}
    assert rows["Vanilla"].entries == ("ours", "theirs")
    assert rows["Clairvoyant"].entries == ("ours", "theirs")
    assert rows["No memory"].entries == ("ours",)
    assert {(other.world, other.kind) for other in board.views} == {
        (world, kind)
        for world, kind in (
            ("all", "all"),
            ("all", "explicit"),
            ("all", "implicit"),
            ("lakes", "all"),
            ("lakes", "implicit"),
            ("house", "all"),
            ("house", "explicit"),
        )
    }


def other_episodes(path: Path) -> None:
    """Change an agent's steps, as an agent of the same labels in another package would."""
    data = json.loads(path.read_text())
    cell = next(cell for cell in data["cells"] if data["players"][cell["player"]]["memory"] == "vanilla")
    cell["columns"]["memory_size"] = 7
    path.write_text(json.dumps(data))


def test_other_episodes_under_the_same_labels_are_another_row(results: Path) -> None:
    other_episodes(results / "two" / "theirs.json")
    (board,) = gather_board(results)
    names = {name for row in board.views[0].rows for name in row.name.split(" = ")}
    assert {"Vanilla", "vanilla of theirs"} <= names


def test_an_agent_that_lacks_instances_is_not_ranked(results: Path) -> None:
    path = results / "two" / "theirs.json"
    data = json.loads(path.read_text())
    bank = [n for n, player in enumerate(data["players"]) if player["memory"] == "memory_bank"]
    data["cells"] = [
        cell for cell in data["cells"] if cell["player"] not in bank or cell["schedule"] != "house/explicit"
    ]
    path.write_text(json.dumps(data))
    (board,) = gather_board(results)
    whole, lakes = board.views[0], next(view for view in board.views if view.world == "lakes")
    assert whole.incomplete == ("MemoryBank", "MemoryBank + GLOVE")
    assert not [row for row in whole.rows if "MemoryBank" in row.name]
    assert lakes.incomplete == ()
    assert [row for row in lakes.rows if "MemoryBank" in row.name]
    assert "Not ranked, since they lack instances: MemoryBank, MemoryBank + GLOVE." in to_markdown_page([board])


def old_schedule(folder: Path, key: str, value: str, name: str = "house/explicit") -> None:
    """Give a schedule of the track, and of its results, another hash or environment, as an earlier version had it."""
    track = json.loads((folder / "track.json").read_text())
    track["schedules"][name][key] = value
    (folder / "track.json").write_text(json.dumps(track))
    from drift_agents.submission.track import read_track

    digest = read_track(folder / "track.json").digest()
    for path in folder.glob("*.json"):
        if path.name != "track.json":
            result = json.loads(path.read_text())
            result["track"] = digest
            result["schedules"][name][key] = value
            path.write_text(json.dumps(result))


@pytest.mark.parametrize(("key", "value"), [("hash", "0" * 16), ("env", "DriftHouse-v9")])
def test_what_is_not_shipped_any_more_goes_to_legacy(results: Path, key: str, value: str) -> None:
    old_schedule(results / "two", key, value)
    (board,) = gather_board(results)
    standings = board.views[0].standings
    assert standings is not None
    assert standings.schedules == ("frozen_lake/implicit:family",), "the rest still counts"
    assert {view.world for view in board.views} == {"all"}, "one world is left"
    ((name, content_hash, view),) = board.legacy
    assert name == "house/explicit"
    assert content_hash == board.results[0].schedules[name]["hash"]
    assert [row.name for row in view.rows], "with its own standings"
    text = to_markdown_page([board])
    assert f"### Legacy: house/explicit, {content_hash}" in text
    assert "Legacy (1)" in to_html_page([board])


def test_a_board_of_legacy_results_alone(results: Path) -> None:
    for name in ("house/explicit", "frozen_lake/implicit:family"):
        old_schedule(results / "two", "hash", "0" * 16, name)
    (board,) = gather_board(results)
    assert board.views[0].standings is None
    assert len(board.legacy) == 2
    assert "No agent is ranked" in to_markdown_page([board])
    assert "No agent is ranked" not in to_html_page([board]).split('data-tab="legacy"')[0].split("<body>")[0]


def test_a_schedule_without_a_change_is_current(whole: Path) -> None:
    (board,) = gather_board(whole / "results")
    about = board.results[0].schedules["house/explicit"]
    assert is_current("house/explicit", about)
    assert not is_current("house/gone", about)
    swept = {**about, "sweep": {"of": "house/explicit", "path": "base.house", "value": 9}}
    assert not is_current("house/explicit/house-9", swept), "another value has another hash"


class Page(HTMLParser):
    """What a page refers to, and its inline code."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.attributes: list[str] = []
        self.code: dict[str, list[str]] = {"script": [], "style": []}
        self.policy = ""
        self._inside: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.attributes += list(given)
        self.addresses += [str(given[name]) for name in ("src", "href", "action") if name in given]
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = str(given["content"])
        self._inside = tag if tag in self.code and given.get("type") != "application/json" else None

    def handle_data(self, data: str) -> None:
        if self._inside is not None:
            self.code[self._inside].append(data)

    def handle_endtag(self, tag: str) -> None:
        self._inside = None


def test_the_page_is_one_file_without_requests(results: Path) -> None:
    (results / "two" / "severity.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (board,) = gather_board(results)
    page = Page(to_html_page([board]))
    assert all(address.startswith(("data:", "#")) for address in page.addresses), page.addresses
    assert "unsafe" not in page.policy
    for kind, code in page.code.items():
        (only,) = code
        assert f"{kind}-src 'sha256-{b64encode(sha256(only.encode()).digest()).decode()}'" in page.policy
    assert "default-src 'none'" in page.policy
    assert not [name for name in page.attributes if name.startswith("on") or name == "style"]
    assert b64encode(b"<svg xmlns='http://www.w3.org/2000/svg'/>").decode() in to_html_page([board])


def test_texts_of_participants_stay_texts(whole: Path) -> None:
    boards = gather_board(whole / "results")
    assert "<script>alert" not in to_html_page(boards)
    assert "&lt;script&gt;alert(1)" in to_html_page(boards)
    assert "<b>and</b>" not in to_html_page(boards)
    assert "<b>and</b>" not in to_markdown_page(boards)


def test_equal_results_give_equal_bytes(whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in (1, 2):
        words = ["--out", str(tmp_path / f"{number}.md"), "--html", str(tmp_path / f"{number}" / "board.html")]
        assert main(["board", "page", str(whole / "results"), *words]) == 0
    assert (tmp_path / "1.md").read_bytes() == (tmp_path / "2.md").read_bytes()
    assert (tmp_path / "1" / "board.html").read_bytes() == (tmp_path / "2" / "board.html").read_bytes()
    assert "two: 2 submissions" in capsys.readouterr().out
    text = (tmp_path / "1.md").read_text()
    assert re.search(r"\| Clairvoyant +\| +- \|", text)
    assert "[page with filters](board.html)" in text
    assert "\n\n\n" not in text


def test_a_damaged_result_is_refused(results: Path, whole: Path) -> None:
    path = results / "two" / "ours.json"
    data: dict[str, Any] = json.loads(path.read_text())
    digest = data["track"]
    for alter, message in (
        ({"cells": [{**data["cells"][0], "player": 99}]}, "the cells are damaged"),
        ({"cells": [{**data["cells"][0], "columns": {}}]}, "the cells are damaged"),
        ({"track": "0" * 64}, "is a result of another track"),
        ({"name": "theirs"}, "theirs is there twice"),
        ({"more": 1}, "Extra inputs are not permitted"),
    ):
        path.write_text(json.dumps({**data, **alter}))
        with pytest.raises(SubmissionError, match=message):
            read_results(results / "two", digest)
    path.write_text("{")
    with pytest.raises(SubmissionError, match="is not JSON"):
        read_results(results / "two", digest)
    with pytest.raises(SubmissionError, match=r"should hold a folder with track\.json"):
        write_board(whole / "ours", results / "x.md")


def test_a_certificate_of_another_submission_is_refused(whole: Path) -> None:
    ours, theirs = (check_submission(whole / f"{name}.submission") for name in ("ours", "theirs"))
    certificate = replay_submission(ours, 1)
    with pytest.raises(SubmissionError, match="should be of this submission"):
        make_result(theirs, "0" * 64, "x", certificate)
    with pytest.raises(SubmissionError, match="should say 'reproduced'"):
        make_result(ours, "0" * 64, "x", certificate.model_copy(update={"outcome": "different"}))


def test_a_name_is_taken_once(results: Path, whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["board", "add", str(whole / "ours.submission"), "--track", str(results / "two" / "track.json")]
    assert main([*words, "--name", "ours"]) == 2
    assert "should be new on the board" in capsys.readouterr().err
    assert main([*words, "--name", "track", "--force"]) == 1
    assert main([*words, "--name", "../ours"]) == 1
    assert "`name` should have letters" in capsys.readouterr().err
    assert main([*words, "--name", "ours", "--force"]) == 0
    assert (
        main(["board", "add", str(whole / "gone"), "--track", str(results / "two" / "track.json"), "--name", "x"]) == 1
    )
