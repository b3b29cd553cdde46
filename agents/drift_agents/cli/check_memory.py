"""The command that checks memory services: `drift-agents check-memory`."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from drift_agents.cli.root import Json, app, make_console, print_json, read_limits
from webshop_server.command_line import FAILED


@app.command(
    "check-memory",
    short_help="Check whether a memory service still believes what is no longer true.",
    epilog="Example: drift-agents check-memory mine.py:Mine --fail-above stale_first=0.1 --fail-below present=0.9",
)
def _check_memory(
    services: Annotated[
        list[str],
        typer.Argument(metavar="SERVICE...", help="A store (in_process, langgraph, chroma, mem0) or FILE.py:CLASS."),
    ],
    worlds: Annotated[int, typer.Option(help="Worlds, of two questions a day.", min=1)] = 30,
    days: Annotated[int, typer.Option(help="Days of each world.", min=4)] = 40,
    k: Annotated[int, typer.Option("-k", help="Texts that a search returns.", min=1)] = 5,
    embedding: Annotated[str, typer.Option(help="Embedding of stores: hashed or minilm.")] = "hashed",
    limit: Annotated[float, typer.Option(help="Seconds after which a call counts as hanging.", min=0.001)] = 30.0,
    references: Annotated[bool, typer.Option(help="Compare with references.")] = True,
    wrappers: Annotated[bool, typer.Option(help="Check each service in three wrappers too.")] = True,
    fail_above: Annotated[
        list[str] | None,
        typer.Option(metavar="RATE=SHARE", help="Exit with 1 if stale_first, both, mixed or nothing is higher."),
    ] = None,
    fail_below: Annotated[
        list[str] | None, typer.Option(metavar="RATE=SHARE", help="Exit with 1 if present is lower.")
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the worst questions too.")] = None,
    json: Json = False,
) -> None:
    """Tell statements over days to a service by `add(text)`, ask by `search(query, k)`, and count what comes first.

    No language model is used. The exit status is 1 if a service fails, or a rate breaks a --fail-above or --fail-below.
    """
    most = read_limits("--fail-above", fail_above or [], ("stale_first", "both", "mixed", "nothing"))
    least = read_limits("--fail-below", fail_below or [], ("present",))
    from drift_agents.analysis.check_memory import check_memory
    from drift_agents.analysis.memory_table import (
        REFERENCES,
        check_wrapped,
        find_service,
        tabulate_check,
        tabulate_references,
        write_timelines,
    )
    from drift_envs.errors import load_all

    names = [_short(name, services) for name in services]
    makers = load_all(partial(find_service, name, embedding) for name in services)
    makes = dict(zip(names, makers, strict=True))
    options: dict[str, Any] = {"worlds": worlds, "days": days, "k": k, "limit": limit}
    others = REFERENCES if references else {}
    with redirect_stdout(sys.stderr):  # what services print
        checks = [check_memory(make, name, **options) for name, make in makes.items()]
        wrapped = [
            one
            for check in (checks if wrappers else [])
            if check.error is None
            for one in check_wrapped(makes[check.name], check.name, **options)
        ]
        is_any = any(check.rows for check in checks)  # else there is nothing to compare
        compared = [check_memory(make, name, **options) for name, make in others.items()] if is_any else []
    broken = [
        f"{check.name}: `{name}` should be at {'most' if limits is most else 'least'} {bound:g}. Received {found:.3g}"
        for check in checks
        for limits in (most, least)
        for name, bound in limits.items()
        if (found := check.rate(name)) is not None and (found > bound if limits is most else found < bound)
    ]
    # A bound that nothing was measured for does not hold.
    broken += [
        f"{check.name}: no question about a changed fact: `--worlds` and `--days` should be larger"
        for check in checks
        if (most or least) and check.error is None and check.rate("present") is None
    ]
    failed = [check.error for check in checks if check.error is not None] + broken
    if html is not None:
        write_timelines(checks, html)
    if json:
        print_json(
            {
                "services": [check.as_data() for check in checks],
                "wrapped": [check.as_data() for check in wrapped],
                "references": [check.as_data() for check in compared],
                "failed": failed,
            }
        )
    else:
        console = make_console()
        for check in checks:
            if check.rows:
                console.print(tabulate_check(check))
        if wrapped or compared:
            console.print(tabulate_references([*checks, *wrapped, *compared]))
    for line in failed:
        typer.echo(line, err=True)
    if failed:
        raise typer.Exit(FAILED)


def _short(name: str, services: list[str]) -> str:
    """The shortest name that no other service has: of its class, with its file, or with the folder of that."""
    forms = [(one.rpartition(":")[2], one.rpartition("/")[2], one) for one in services]
    shown = zip(forms[services.index(name)], *forms, strict=True)
    return next((own for own, *all_services in shown if all_services.count(own) == 1), name)
