"""The shop on the command line."""

from __future__ import annotations

import json
import re

import pytest

from tests.processes import serving
from webshop_server.__main__ import main
from webshop_server.catalogue import Catalogue
from webshop_server.client import Client
from webshop_server.command_line import DONE, FAILED, WRONG_USAGE


def test_generate(tmp_path, capsys):
    out = tmp_path / "shop.sqlite"
    assert main(["generate", "--products", "30", "--seed", "4", "--out", str(out)]) == DONE
    assert capsys.readouterr().out == f"{out}: 30 products\n"
    assert len(Catalogue(out)) == 30


def test_import(tmp_path, capsys):
    products = tmp_path / "p.json"
    products.write_text(json.dumps([{"asin": "B1", "name": "Lamp"}, 3]))
    assert main(["import", "--products", str(products), "--out", str(tmp_path / "s.sqlite")]) == DONE
    captured = capsys.readouterr()
    assert captured.out == f"{tmp_path / 's.sqlite'}: 1 products, 1 records skipped\n"
    assert re.search(r"p\.json: record 1, byte \d+: a record should be an object", captured.err)


def test_an_existing_file_is_replaced_only_by_force(tmp_path, capsys):
    out, products = tmp_path / "notes.txt", tmp_path / "p.json"
    products.write_text(json.dumps([{"asin": "B1", "name": "Lamp"}]))
    for command in (["generate", "--products", "30"], ["import", "--products", str(products)]):
        out.write_text("my notes")
        assert main([*command, "--out", str(out)]) == FAILED
        assert "notes.txt` exists; --force replaces it" in capsys.readouterr().err
        assert out.read_text() == "my notes"
        assert {path.name for path in tmp_path.iterdir()} <= {"notes.txt", "notes.txt.index", "p.json"}
        assert main([*command, "--out", str(out), "--force"]) == DONE
        assert len(Catalogue(out)) in (1, 30)
    capsys.readouterr()
    assert main(["import", "--products", str(products), "--out", str(products), "--force"]) == FAILED
    assert "should not be one of the files to import" in capsys.readouterr().err
    assert json.loads(products.read_text())


def test_a_truncated_file_is_imported_only_leniently(tmp_path, capsys):
    products, out = tmp_path / "p.json", tmp_path / "s.sqlite"
    text = json.dumps([{"asin": f"B{i}", "name": f"Lamp {i}] and more"} for i in range(50)])
    command = ["import", "--products", str(products), "--out", str(out)]
    for cut in (1, 5, 12, 20, 30, 400):
        products.write_text(text[:-cut])
        assert main([*command, "--fresh"]) == FAILED
        assert "--lenient imports what it has" in capsys.readouterr().err
        assert not out.exists()
    assert main([*command, "--lenient"]) == DONE
    assert 30 < len(Catalogue(out)) < 50
    products.write_text(text)
    sides = tmp_path / "a.json"
    sides.write_text('{"B1": {"attributes": ["bright"], "instruc')
    assert main([*command, "--force", "--attributes", str(sides)]) == FAILED
    assert "a.json` is truncated" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "status", "reason"),
    [
        ([], WRONG_USAGE, "Missing command"),
        (["sell"], WRONG_USAGE, "No such command 'sell'"),
        (["generate"], WRONG_USAGE, "Missing option '--out'"),
        (["generate", "--products", "x", "--out", "a"], WRONG_USAGE, "Invalid value for '--products'"),
        (
            ["generate", "--products", "0", "--out", "{tmp}/a"],
            WRONG_USAGE,
            "`products` should be a whole number",
        ),
        (["generate", "--products", "5", "--out", "{tmp}"], FAILED, "cannot be written"),
        (["import", "--products", "{tmp}/no.json", "--out", "{tmp}/a"], FAILED, "no.json` cannot be read"),
        (["serve", "--catalogue", "{tmp}/no.sqlite"], FAILED, "there is no catalogue at"),
        (["serve", "--port", "70000"], WRONG_USAGE, "Invalid value for '--port'"),
        (["serve", "--processes", "2", "--catalogue", "{shop}"], WRONG_USAGE, "should be 1 without `--state`"),
        (["serve", "--spacy-model", "en_core_web_sm"], WRONG_USAGE, "should stand with `--compat`"),
        (["serve", "--threads", "0"], WRONG_USAGE, "Invalid value for '--threads'"),
        (["serve", "--admin-token-file", "{tmp}/no"], WRONG_USAGE, "`--admin-token-file` should be a text file"),
        (["serve", "--catalogue", "{shop}", "--goals", "human"], WRONG_USAGE, "should have human instructions"),
        (
            ["serve", "--catalogue", "{shop}", "--host", "my..shop", "--port", "0"],
            FAILED,
            "cannot listen on my..shop:0",
        ),
        pytest.param(
            ["serve", "--catalogue", "{shop}", "--host", "203.0.113.1", "--port", "0"],
            FAILED,
            "cannot listen on",
            marks=pytest.mark.integration,
        ),
    ],
)
def test_mistakes(tmp_path, catalogue_path, capsys, arguments, status, reason):
    filled = [argument.format(tmp=tmp_path, shop=catalogue_path) for argument in arguments]
    assert main(filled) == status
    captured = capsys.readouterr()
    assert reason in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("command", [[], ["serve"], ["generate"], ["import"]])
def test_help_has_an_example(capsys, command):
    assert main([*command, "--help"]) == DONE
    assert "Example: python -m webshop_server" in capsys.readouterr().out.replace("\n", " ").replace("  ", " ")


@pytest.mark.integration
def test_serve_prints_its_address_and_answers(catalogue_path, tmp_path):
    token = tmp_path / "token"
    token.write_text("a-token-in-a-file\n")
    logs = tmp_path / "logs"
    with serving(catalogue_path, "--admin-token-file", str(token), "--log", str(logs)) as (_, address):
        client = Client(address, "a-token-in-a-file")
        session = client.start(2)
        assert session.act("search[shirt]").error is None
        assert client.configure(ad_page=True)["ad_page"] is True
        client.close()
        assert (logs / f"{session.session_id}.jsonl").exists()
