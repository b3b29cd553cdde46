"""The shop on the command line: `python -m webshop_server serve | generate | import`."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Annotated, Literal

import typer

from webshop_server.command_line import (
    FAILED,
    WRONG_USAGE,
    AllowHost,
    Verbosity,
    make_app,
    refuse,
    run_app,
    verbosity_of,
)
from webshop_server.errors import ArgumentError, ShopError

PROGRAM = "python -m webshop_server"

Force = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]

app = make_app(
    "A local WebShop: serve it, generate a catalogue, import the original's.",
    f"{PROGRAM} serve --port 3000",
    completion=False,
    version=lambda: f"webshop_server of drift-envs {metadata.version('drift-envs')}",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: the words after the program's name; by default those of this process.

    Returns:
        The exit status: 0, 1 (the work failed), 2 (wrong usage) or 130 (interrupted).

    Example:
        >>> main(["generate", "--products", "0", "--out", "shop.sqlite"])
        2
    """
    return run_app(app, PROGRAM, arguments, _status_of)


def _status_of(error: Exception) -> int | None:
    if isinstance(error, ArgumentError):
        return WRONG_USAGE
    return FAILED if isinstance(error, ShopError) else None


@app.command(
    "serve",
    short_help="Serve the shop.",
    epilog=f"Example: {PROGRAM} serve --port 0 --admin-token-file token.txt",
)
def _serve(
    catalogue: Annotated[
        str | None, typer.Option(metavar="FILE", help="Catalogue (default: a generated one, made on first use).")
    ] = None,
    host: Annotated[
        str, typer.Option(metavar="HOST", help="Address to listen on; the default is this machine alone.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="0 takes a free one.")] = 3000,
    threads: Annotated[int, typer.Option(min=1, max=256, metavar="N", help="Requests answered at the same time.")] = 8,
    goals: Annotated[
        Literal["synthetic", "human", "color_class"], typer.Option(help="Kind of the goals.")
    ] = "synthetic",
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of price limits and goals.")] = 0,
    admin_token_file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="File with the token of /admin (default: WEBSHOP_ADMIN_TOKEN)."),
    ] = None,
    log: Annotated[str | None, typer.Option(metavar="DIR", help="Folder for session logs.")] = None,
    state: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="SQLite file of sessions and orders (default: kept in memory)."),
    ] = None,
    processes: Annotated[
        int, typer.Option(min=1, max=64, metavar="N", help="Server processes; more than one need --state.")
    ] = 1,
    max_sessions: Annotated[
        int, typer.Option(min=1, max=1_000_000, metavar="N", help="Maximum number of sessions.")
    ] = 10_000,
    compat: Annotated[
        bool,
        typer.Option("--compat", help="Pages for clients of the original: its elements, and GET requests that buy."),
    ] = False,
    spacy_model: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Model of spaCy that selects nouns, with --compat (default: a rule)."),
    ] = None,
    max_client_sessions: Annotated[
        int, typer.Option(min=1, max=1_000_000, metavar="N", help="Maximum number of sessions of one client address.")
    ] = 1000,
    images: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder of photos named by asin, as in B01.jpg; others are drawn.")
    ] = None,
    remote_images: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST", help="Host from which browsers may load photos of the catalogue (default: none)."),
    ] = None,
    allow_host: AllowHost = None,
) -> None:
    """Start the shop at a local address, which is printed."""
    from webshop_server.app import Config, create_app, serve
    from webshop_server.goals import BROWSE

    if processes > 1 and (state is None or not hasattr(os, "fork")):
        raise refuse("--processes", "should be 1 without `--state`, and on systems without fork", processes)
    token = os.environ.get("WEBSHOP_ADMIN_TOKEN") or None
    if admin_token_file:
        token = _read_first_line(admin_token_file)
    if spacy_model is not None and not compat:
        raise refuse("--spacy-model", "should stand with `--compat`", spacy_model)
    config = Config(
        catalogue,
        goal_kind=goals,
        seed=seed,
        admin_token=token,
        state=state,
        log_dir=log,
        max_sessions=max_sessions,
        max_client_sessions=max_client_sessions,
        image_dir=images,
        remote_images=tuple(remote_images or ()),
        allow_hosts=(host, *(allow_host or ())),
        compat=compat,
        spacy_model=spacy_model,
    )
    application = create_app(config)
    if application.extensions["webshop"].shop.goal_kind == BROWSE:
        print("the catalogue has no instructions: sessions have no goal, and purchases score 0", file=sys.stderr)
    listener = _listen(host, port)
    name, number = listener.getsockname()[:2]
    print(f"http://{f'[{name}]' if ':' in name else name}:{number}/", flush=True)
    serve(application, listener, threads=threads, processes=processes)


@app.command(
    "generate",
    short_help="Generate a catalogue.",
    epilog=f"Example: {PROGRAM} generate --products 2000 --seed 0 --out shop.sqlite",
)
def _generate(
    context: typer.Context,
    out: Annotated[str, typer.Option(metavar="FILE", help="The catalogue.")],
    products: Annotated[int | None, typer.Option(metavar="N", help="Number of products (default: 2000).")] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of all contents.")] = 0,
    force: Force = False,
) -> None:
    """Generate a catalogue from a seed, with its index; an interrupted call is continued."""
    from webshop_server.generate import DEFAULT_PRODUCTS, generate

    number = DEFAULT_PRODUCTS if products is None else products
    progress = verbosity_of(context) is not Verbosity.QUIET
    catalogue = generate(out, number, seed, overwrite=force, progress=progress)
    print(f"{catalogue.path}: {len(catalogue)} products")


@app.command(
    "import",
    short_help="Import the original's catalogue.",
    epilog=f"Example: {PROGRAM} import --products items_shuffle.json --attributes items_ins_v2.json "
    "--human items_human_ins.json --out shop.sqlite",
)
def _import(
    context: typer.Context,
    products: Annotated[str, typer.Option(metavar="FILE", help="items_shuffle.json")],
    out: Annotated[str, typer.Option(metavar="FILE", help="The catalogue.")],
    attributes: Annotated[str | None, typer.Option(metavar="FILE", help="items_ins_v2.json")] = None,
    human: Annotated[str | None, typer.Option(metavar="FILE", help="items_human_ins.json")] = None,
    reviews: Annotated[str | None, typer.Option(metavar="FILE", help="reviews.json")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete an interrupted import instead of continuing.")] = False,
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Import what a truncated file has; otherwise it is an error.")
    ] = False,
    force: Force = False,
) -> None:
    """Make a catalogue from the original's files, with its index; an interrupted import is continued."""
    from webshop_server.importer import import_products

    report = import_products(
        out,
        products,
        attributes,
        human,
        reviews,
        resume=not fresh,
        progress=verbosity_of(context) is not Verbosity.QUIET,
        lenient=lenient,
        overwrite=force,
    )
    print(report)
    for problem in report.problems:
        print(problem, file=sys.stderr)


def _listen(host: str, port: int) -> socket.socket:
    listener = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()
    except (OSError, UnicodeError) as error:  # `UnicodeError`: a part of the name is empty or too long
        if listener is not None:
            listener.close()
        raise ShopError(f"cannot listen on {host}:{port}: {getattr(error, 'strerror', None) or error}") from error
    return listener


def _read_first_line(path: str) -> str:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"`--admin-token-file` should be a text file that can be read: {error}") from error
    return text.strip().split("\n")[0].strip()


if __name__ == "__main__":
    sys.exit(main())
