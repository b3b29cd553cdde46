"""The page as a file: self-contained, harmless, refused where there is nothing to show."""

from __future__ import annotations

import gzip
import json
import re
import threading
import urllib.request
from contextlib import nullcontext
from pathlib import Path
from shutil import copytree
from urllib.error import HTTPError

import pytest
from drift_agents.analysis.inspect.page import gather, make_server, page_parts, script_json, write_page
from drift_agents.cli.app import main
from drift_agents.errors import ExperimentError
from drift_agents.experiment.folder import EPISODES, PAGE, TRACES
from drift_agents.experiment.logs import read_rows

pytestmark = pytest.mark.integration  # a run is played


def test_the_index_has_every_episode(traced_run: Path) -> None:
    contents = gather(traced_run)
    cells = contents.index["cells"]
    rows = read_rows(traced_run / EPISODES)
    assert sum(len(cell["score"]) for cell in cells) == len(rows)
    at = 0
    for cell in cells:
        for place, score in enumerate(cell["score"]):
            row = rows[at]
            assert (cell["schedule"], cell["verifier"], cell["seed"]) == (row["schedule"], row["verifier"], row["seed"])
            assert cell["phases"][cell["phase"][place]] == row["phase"]
            assert (cell["episode"][place], score) == (row["episode"], pytest.approx(row["score"], abs=1e-3))
            at += 1
    assert sorted(cell["chunk"] for cell in cells) == list(range(len(contents.chunks)))
    assert {cell["reference"] for cell in cells if cell["policy"] == "clairvoyant"} == {"clairvoyant"}


def test_it_needs_nothing_else(traced_run: Path, tmp_path: Path) -> None:
    text = write_page(traced_run, tmp_path / "page.html").read_text("utf-8")
    code = re.sub(r'<script type="(text/plain|application/json)".*?</script>', "", text, flags=re.DOTALL)
    assert re.findall(r"\b(?:src|href)=\"([^\"]*)\"", code) == ["data:,"]
    addresses = set(re.findall(r"https?://[^'\"\s]+", code))
    assert addresses == {"http://www.w3.org/2000/svg"}, "a name, not an address that is fetched"
    assert "default-src 'none'" in code
    assert "connect-src 'none'" in code


def test_names_cannot_become_code(traced_run: Path, tmp_path: Path) -> None:
    contents = gather(traced_run)
    contents.index["name"] = "</title><script>alert(1)</script>"
    text = "".join(page_parts(contents))
    assert "<script>alert" not in text
    assert json.loads(script_json(contents.index)) == contents.index


def test_the_command_writes_it_into_the_run(
    traced_run: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["inspect", str(traced_run), "--out", str(tmp_path / "a.html")]) == 0
    assert re.fullmatch(rf"wrote {tmp_path}/a\.html \(\d\.\d MB\)\n", capsys.readouterr().out)
    assert main(["inspect", str(tmp_path)]) == 1
    assert "holds no run" in capsys.readouterr().err
    assert main(["inspect", str(traced_run), "--out", str(tmp_path / "a.html" / "b.html")]) == 1
    error = capsys.readouterr().err
    assert "cannot be written" in error
    assert "--out" not in error, "it was given"
    (tmp_path / "run").mkdir()
    for path in traced_run.iterdir():
        (tmp_path / "run" / path.name).symlink_to(path)
    (tmp_path / "run" / "inspect.html").unlink(missing_ok=True)
    (tmp_path / "run" / "inspect.html").mkdir()  # as a folder that is read-only, for any user
    assert main(["inspect", str(tmp_path / "run")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(
        f"cannot be written: Is a directory. Elsewhere: drift-agents inspect {tmp_path}/run --out FILE"
    )
    assert main(["inspect", str(traced_run), "--port", "1"]) == 2
    assert "`--port` should stand with `--serve`" in capsys.readouterr().err


def test_an_unfinished_run_is_refused(traced_run: Path, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes((traced_run / "run.json").read_bytes())
    with pytest.raises(ExperimentError, match="is not finished"):
        gather(tmp_path)


def test_steps_that_are_torn_are_named_before_a_page_is_written(traced_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    copytree(traced_run, folder)
    path = sorted((folder / TRACES).iterdir())[-1]
    lines = gzip.decompress(path.read_bytes()).splitlines()
    path.write_bytes(gzip.compress(b"\n".join([*lines[:2], lines[2][:-40]])))
    for show in (write_page, make_server):
        with pytest.raises(
            ExperimentError, match=re.escape(f"{path}:3: does not hold the steps of a cell: invalid JSON")
        ):
            show(folder)
    assert not (folder / PAGE).exists()


@pytest.mark.integration
def test_the_server_gives_the_page_and_the_steps_and_nothing_else(traced_run: Path) -> None:
    with make_server(traced_run, allow_hosts=["lab.example"]) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            assert server.url.startswith("http://127.0.0.1:")
            assert b"connect-src 'self'" in opener.open(server.url, timeout=5).read()
            chunks = gather(traced_run).chunks
            assert opener.open(f"{server.url}chunk/0", timeout=5).read() == chunks[0].read_bytes()
            for path in (f"chunk/{len(chunks)}", "chunk/../run.json", "run.json", "chunk/x"):
                with pytest.raises(HTTPError, match="404"):
                    opener.open(f"{server.url}{path}", timeout=5)
            for host, is_own in (("localhost", True), ("evil.example", False), ("lab.example", True)):
                request = urllib.request.Request(f"{server.url}chunk/0", headers={"Host": host})
                with nullcontext() if is_own else pytest.raises(HTTPError, match="421"):
                    opener.open(request, timeout=5)
        finally:
            server.shutdown()
            thread.join(10)
