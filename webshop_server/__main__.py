"""The shop on the command line: `python -m webshop_server serve | generate | import`.

* `main` - the command; returns its exit status
"""

from __future__ import annotations

import argparse
import logging
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from webshop_server.app import Config, create_app
from webshop_server.catalogue import KINDS
from webshop_server.errors import ArgumentError, ShopError
from webshop_server.generate import DEFAULT_PRODUCTS, generate

OK, FAILED, WRONG_USAGE = 0, 1, 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m webshop_server",
        description="A local WebShop.",
        epilog="example: python -m webshop_server serve --port 3000",
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    serve = commands.add_parser(
        "serve",
        help="open the shop",
        description="Open the shop to browsers.",
        epilog="example: python -m webshop_server serve --port 0 --admin-token-file token.txt",
    )
    serve.add_argument("--catalogue", help="a catalogue file (default: a generated one, made on first use)")
    serve.add_argument("--host", default="127.0.0.1", help="where to listen (default: %(default)s, this machine alone)")
    serve.add_argument("--port", type=int, default=3000, help="0 takes a free one (default: %(default)s)")
    serve.add_argument("--threads", type=int, default=8, help="requests answered at once (default: %(default)s)")
    serve.add_argument("--goals", choices=KINDS, default="synthetic", help="kind of goals (default: %(default)s)")
    serve.add_argument("--seed", type=int, default=0, help="decides price limits and goals (default: %(default)s)")
    serve.add_argument("--admin-token-file", help="a file whose first line opens /admin (or WEBSHOP_ADMIN_TOKEN)")
    serve.add_argument("--log", metavar="DIR", help="write session logs there")

    make = commands.add_parser(
        "generate",
        help="make a catalogue from a seed",
        description="Make a catalogue from a seed.",
        epilog="example: python -m webshop_server generate --products 2000 --seed 0 --out shop.sqlite",
    )
    make.add_argument("--products", type=int, default=DEFAULT_PRODUCTS, help="how many listings (default: %(default)s)")
    make.add_argument("--seed", type=int, default=0, help="decides everything (default: %(default)s)")
    make.add_argument("--out", required=True, help="the file to make")

    load = commands.add_parser(
        "import",
        help="make a catalogue from the original's files",
        description="Make a catalogue from the original's files; an interrupted import goes on where it stopped.",
        epilog="example: python -m webshop_server import --products items_shuffle.json --attributes items_ins_v2.json "
        "--human items_human_ins.json --out shop.sqlite",
    )
    load.add_argument("--products", required=True, help="items_shuffle.json")
    load.add_argument("--attributes", help="items_ins_v2.json")
    load.add_argument("--human", help="items_human_ins.json")
    load.add_argument("--reviews", help="reviews.json")
    load.add_argument("--out", required=True, help="the file to make")
    load.add_argument("--fresh", action="store_true", help="begin anew instead of going on")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: the words after the program's name.

    Returns:
        0; 1 where the work failed; 2 where the usage is wrong.

    Example:
        >>> main(["generate", "--products", "0", "--out", "shop.sqlite"])
        2
    """
    try:
        given = _parser().parse_args(arguments)
    except SystemExit as error:
        return int(error.code or 0)
    try:
        return {"serve": _serve, "generate": _generate, "import": _import}[given.command](given)
    except ShopError as error:
        if given.debug:
            raise
        print(f"error: {error}", file=sys.stderr)
        return WRONG_USAGE if isinstance(error, ArgumentError) else FAILED
    except KeyboardInterrupt:
        return FAILED


def _generate(given: argparse.Namespace) -> int:
    catalogue = generate(given.out, given.products, given.seed)
    print(f"{catalogue.path}: {len(catalogue)} products")
    return OK


def _import(given: argparse.Namespace) -> int:
    from webshop_server.importer import import_products  # not needed by the other commands

    report = import_products(
        given.out, given.products, given.attributes, given.human, given.reviews, resume=not given.fresh, progress=True
    )
    print(f"{report.path}: {report.products} products, {report.skipped} records skipped")
    for problem in report.problems:
        print(problem, file=sys.stderr)
    return OK


def _serve(given: argparse.Namespace) -> int:
    from waitress import create_server

    if not 0 <= given.port <= 65535:
        raise ArgumentError(f"`port` should be in the interval [0, 65535]. Received {given.port}")
    if not 1 <= given.threads <= 256:
        raise ArgumentError(f"`threads` should be in the interval [1, 256]. Received {given.threads}")
    token = os.environ.get("WEBSHOP_ADMIN_TOKEN") or None
    if given.admin_token_file:
        token = _first_line(given.admin_token_file)
    app = create_app(
        Config(given.catalogue, goal_kind=given.goals, seed=given.seed, admin_token=token, log_dir=given.log)
    )
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # a busy shop is no news, line by line
    listener = _listen(given.host, given.port)
    server = create_server(app, sockets=[listener], threads=given.threads)
    host, port = listener.getsockname()[:2]
    print(f"http://{f'[{host}]' if ':' in host else host}:{port}/", flush=True)
    try:
        server.run()
    finally:
        server.close()
    return OK


def _listen(host: str, port: int) -> socket.socket:
    listener = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        if listener is not None:
            listener.close()
        raise ShopError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
    return listener


def _first_line(path: str) -> str:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"`--admin-token-file` should be a text file that can be read: {error}") from error
    return text.strip().split("\n")[0].strip()


if __name__ == "__main__":
    sys.exit(main())
