"""The command that plays: `drift-agents run`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from drift_agents.cli.root import app, make_console
from drift_envs.command_line import refuse, verbosity_of


def _parse_names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise typer.BadParameter(f"should be names separated by commas. Received {text!r}")
    return names


def _parse_trackers(text: str) -> tuple[str, ...]:
    from drift_envs.integrations.trackers import TRACKERS

    names = _parse_names(text)
    if not set(names) <= set(TRACKERS):
        raise typer.BadParameter(f"should be among {', '.join(TRACKERS)}. Received {text!r}")
    return names


def _parse_price(text: str) -> tuple[float, ...]:
    try:
        prices = tuple(map(float, text.split(",")))
    except ValueError:
        prices = ()
    if len(prices) not in (2, 3):
        raise typer.BadParameter(f"should be two or three numbers, as in 0.15,0.60. Received {text!r}")
    return prices


def _parse_parameters(texts: Sequence[str]) -> dict[str, object]:
    """Fields of requests; a value that is JSON is parsed, any other one is a text."""
    parameters: dict[str, object] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise refuse("--parameter", "should be KEY=VALUE, as in reasoning_effort=low", text)
        try:
            parameters[key.strip()] = json.loads(value)
        except ValueError:
            parameters[key.strip()] = value
    return parameters


def _parse_positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise typer.BadParameter(f"should be a positive number. Received {text!r}")
    return value


def _complete_experiments(incomplete: str) -> list[str]:
    from drift_agents.cli.listing import read_summaries

    return [name for name in read_summaries() if name.startswith(incomplete)]


@app.command(
    "run",
    short_help="Run an experiment.",
    epilog="Example: drift-agents run glove-quick --seeds 3 --memory none,vanilla --out runs/try --jobs 2",
)
def _run(
    context: typer.Context,
    experiment: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE", autocompletion=_complete_experiments, help="Shipped experiment, or path of a file."
        ),
    ],
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder of the run (default: runs/NAME).")] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, metavar="N", help="Play the file's first N seeds.")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, metavar="N", help="Play the first N episodes of every phase.")
    ] = None,
    schedules: Annotated[
        object,
        typer.Option(
            metavar="A,B",
            parser=_parse_names,
            help="Of the file's schedules these alone; a name without its suffix stands for all of its variants.",
        ),
    ] = None,
    memory: Annotated[
        object,
        typer.Option(
            metavar="A,B",
            parser=_parse_names,
            help="Memories, in every block of the file; mine.py:MyMemory for a class or function of your own.",
        ),
    ] = None,
    verifier: Annotated[
        object,
        typer.Option(metavar="A,B", parser=_parse_names, help="Verifiers, likewise; mine.py:MyRule for your own."),
    ] = None,
    controller: Annotated[object, typer.Option(metavar="A,B", parser=_parse_names, help="Controllers.")] = None,
    team: Annotated[object, typer.Option(metavar="A,B", parser=_parse_names, help="Teams.")] = None,
    policy: Annotated[object, typer.Option(metavar="P,Q", parser=_parse_names, help="Policies.")] = None,
    no_references: Annotated[
        bool,
        typer.Option("--no-references", help="Leave out the file's references, whose lines are there already."),
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=4096,
            metavar="N",
            help="Cells played at the same time (default: the number of cores; with language models --concurrency).",
        ),
    ] = None,
    backend: Annotated[
        Literal["processes", "ray"],
        typer.Option(help="Where cells are played: processes of this machine, or workers of Ray (extra `ray`)."),
    ] = "processes",
    address: Annotated[
        str | None,
        typer.Option(
            metavar="A",
            help="A running cluster, as 10.0.0.1:6379 (default: RAY_ADDRESS, or one that is started on this machine).",
        ),
    ] = None,
    trace: Annotated[
        Literal["all", "failures", "none"] | None,
        typer.Option(help="Episodes whose steps are kept, for `inspect` (default: the file's value, or none)."),
    ] = None,
    log_to: Annotated[
        object,
        typer.Option(
            metavar="A,B",
            parser=_parse_trackers,
            help="Log to tensorboard, wandb, mlflow (an extra each) in the run's folder `tracking`.",
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in the folder.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete the run in the folder and start again.")] = False,
    model: Annotated[
        object,
        typer.Option(metavar="M,N", parser=_parse_names, help="Language models, with `--policy llm`."),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Server of the models, as in http://127.0.0.1:8000/v1 (default: OPENAI_BASE_URL, or OpenAI's).",
        ),
    ] = None,
    key_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File with the key (default: OPENAI_API_KEY).")
    ] = None,
    price: Annotated[
        object,
        typer.Option(
            metavar="IN,OUT[,CACHED]",
            parser=_parse_price,
            help="Price of a million tokens of prompts, of answers, and of prompts from the server's cache.",
        ),
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(min=0.0, max=2.0, metavar="X", help="Temperature of the models (default: 0).")
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(min=1, max=1_000_000, metavar="N", help="Tokens of an answer, thoughts included (default: 1024)."),
    ] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A further field of every request, as in reasoning_effort=low."),
    ] = None,
    answer: Annotated[
        Literal["auto", "json_schema", "json_object", "text", "tool"] | None,
        typer.Option(
            help="Form of the models' answers; `tool` calls a function (default: auto, the first of the next "
            "three that the server takes)."
        ),
    ] = None,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Do not stop when more than a fifth of the answers is invalid.")
    ] = False,
    budget_tokens: Annotated[
        int | None,
        typer.Option(min=1, max=10**15, metavar="N", help="Stop after N tokens, over all commands of the run."),
    ] = None,
    budget: Annotated[
        float | None, typer.Option(metavar="X", parser=_parse_positive, help="Stop at cost X, by --price.")
    ] = None,
    concurrency: Annotated[
        int, typer.Option(min=1, max=4096, metavar="N", help="Cells, and so requests, at the same time.")
    ] = 8,
    timeout: Annotated[
        float, typer.Option(metavar="S", parser=_parse_positive, help="Seconds until a request fails.")
    ] = 120.0,
    replies: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Record of replies (default: replies.sqlite of the run).")
    ] = None,
    replay: Annotated[bool, typer.Option("--replay", help="Send no request: all replies come from --replies.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print what the run would cost, and write nothing: minutes, or decisions, tokens, price and hours of "
            "language models.",
        ),
    ] = False,
) -> None:
    """Run an experiment and print its report.

    Every finished episode is on disk; --resume continues an interrupted run. The other options replace values of the
    file. Those from --model on are for language models.
    """
    if resume and fresh:
        raise refuse("--resume", "should not be given with `--fresh`", "both")
    if address is not None and backend == "processes":
        raise refuse("--address", "should stand with `--backend ray`", address)
    from drift_agents.cli.models import ModelOptions
    from drift_agents.cli.run import RunOptions, run

    axes = {"memory": memory, "verifier": verifier, "controller": controller, "team": team, "policy": policy}
    run(
        RunOptions(
            experiment=experiment,
            out=out,
            seeds=seeds,
            rounds=rounds,
            schedules=tuple(schedules) if isinstance(schedules, tuple) else (),
            axes={axis: tuple(names) for axis, names in axes.items() if isinstance(names, tuple)},
            jobs=jobs,
            backend=backend,
            address=address,
            trace=trace,
            trackers=log_to if isinstance(log_to, tuple) else (),
            resume=resume,
            fresh=fresh,
            words=context.obj,
            references=not no_references,
            dry_run=dry_run,
            verbosity=verbosity_of(context),
            models=ModelOptions(
                names=model if isinstance(model, tuple) else None,
                base_url=base_url,
                key_file=key_file,
                price=price if isinstance(price, tuple) else None,
                temperature=temperature,
                max_tokens=max_tokens,
                parameters=_parse_parameters(parameter or ()),
                answer=answer,
                keep_going=keep_going,
                budget_tokens=budget_tokens,
                budget=budget,
                concurrency=concurrency,
                timeout=timeout,
                replies=replies,
                replay=replay,
            ),
        ),
        make_console(),
    )
