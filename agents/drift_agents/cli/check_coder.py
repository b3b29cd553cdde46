"""The command that checks coding agents: `drift-agents check-coder`."""

from __future__ import annotations

import os
import shlex
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from drift_agents.cli.root import Json, app, make_console, print_json, refuse, verbosity_of
from webshop_server.command_line import FAILED

REFERENCES = ("look", "trust", "newest", "verify", "rerun", "cite")

_agent = partial(typer.Option, rich_help_panel="The agent")
_played = partial(typer.Option, rich_help_panel="What is played")


@app.command(
    "check-coder",
    short_help="Check whether a coding agent's memory survives a change of the repository.",
    epilog='Example: drift-agents check-coder --out runs/claude -- claude -p "{task}"',
    context_settings={"allow_interspersed_args": False},
)
def _check_coder(
    context: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND...",
            help="The agent's command, run in a clone; {task}, {task_file}, {log}, {log_file} and {usage_file} are "
            "replaced.",
        ),
    ] = None,
    reference: Annotated[str, _played(metavar="A,B", help=f"Reference agents, or all: {', '.join(REFERENCES)}.")] = "",
    schedule: Annotated[str, _played(metavar="NAME|FILE", help="What drifts.")] = "repository/explicit:family",
    episodes: Annotated[int, _played(min=1, max=1000, metavar="N", help="Issues of each repository.")] = 40,
    seeds: Annotated[int, _played(min=1, max=1000, metavar="N", help="Repositories; intervals from two on.")] = 1,
    attempts: Annotated[int, _played(min=1, max=9, metavar="N", help="Submissions of an issue.")] = 3,
    control: Annotated[
        bool, _played("--control", help="Play once more with memory set back before each issue.")
    ] = False,
    name: Annotated[str, _agent(metavar="NAME", help="In tables (default: that of the program).")] = "",
    keep: Annotated[
        str | None,
        _agent(metavar="A,B", help="What stays of the work tree (default: CLAUDE.md, AGENTS.md and the like)."),
    ] = None,
    seed_memory: Annotated[
        Path | None, _agent(metavar="FOLDER", help="Files that stand in the first work tree.")
    ] = None,
    memory_command: Annotated[
        str, _agent(metavar="CMD", help="Prints what a memory service holds; run after each issue.")
    ] = "",
    home: Annotated[str, _agent(metavar="run|mine", help="HOME and the like: folders of the run, or yours.")] = "run",
    env: Annotated[
        list[str] | None, _agent(metavar="NAME", help="A variable of the environment that the agent gets; not stored.")
    ] = None,
    shell: Annotated[bool, _agent("--shell", help="COMMAND is one text for a shell; quote the placeholders.")] = False,
    wrap: Annotated[
        str, _agent(metavar="WORDS", help='Words before the command, as "docker run ..."; see the page.')
    ] = "",
    time_limit: Annotated[float, _agent(min=0.1, metavar="S", help="Seconds of a command.")] = 900.0,
    most_bytes: Annotated[int, _agent(min=2**20, metavar="N", help="Bytes that the agent may have on disk.")] = 2**30,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the run.")] = Path("runs/check-coder"),
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in the folder.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete the run in the folder and start again.")] = False,
    fail_below: Annotated[
        list[str] | None,
        typer.Option(metavar="RATE=SHARE", help="Exit with 1 if success, score or first_try of the agent is lower."),
    ] = None,
    json: Json = False,
) -> None:
    """Give a coding agent the issues of a repository whose conventions change, and see what its memory is worth.

    The agent runs with your rights: read docs/check_coder.md first.
    """
    if resume and fresh:
        raise refuse("--resume", "should not be given with `--fresh`", "both")
    if home not in ("run", "mine"):
        raise refuse("--home", "should be run or mine", home)
    if not command and not reference:
        raise refuse("COMMAND", "should be given after `--`, or `--reference`", "neither")
    if shell and len(command or ()) != 1:
        raise refuse("--shell", "should stand with a command of one word, in quotes", command)
    from drift_agents.analysis.coder_table import LIMITS, describe_coders, measure, read_coders, tabulate_coders
    from drift_agents.analysis.table import print_table
    from drift_agents.cli.run import ProgressBars
    from drift_agents.errors import UnknownNameError
    from drift_agents.experiment.coder.place import (
        KEEP,
        PLACEHOLDERS,
        WRAP_PLACEHOLDERS,
        CodingAgent,
        check_placeholders,
        find_program,
        make_reference,
    )
    from drift_agents.experiment.coder.runner import CoderProgress, CoderRun, run_coders

    for variable in env or ():
        if variable not in os.environ:
            raise refuse("--env", "should name a variable that is set", variable)
    limits = _read_limits(fail_below or [], LIMITS)
    kept = KEEP if keep is None else tuple(one.strip() for one in keep.split(",") if one.strip())
    names = REFERENCES if reference == "all" else tuple(one.strip() for one in reference.split(",") if one.strip())
    for one in names:
        if one not in REFERENCES:
            raise UnknownNameError("reference agent", one, REFERENCES)
    agents = [make_reference(one) for one in names]
    if command:
        check_placeholders(command, PLACEHOLDERS)
        if not any("{task" in word for word in command):
            typer.echo("the command has neither {task} nor {task_file}: the agent is not told its issue", err=True)
        try:
            wrapped = tuple(shlex.split(wrap))
        except ValueError as error:
            raise refuse("--wrap", f"should be words of a command ({error})", wrap) from error
        check_placeholders(wrapped, WRAP_PLACEHOLDERS)
        words = tuple(command) if shell and not wrapped else find_program(command, wrapped)
        own = CodingAgent(
            name or _name_of(command), words, shell, wrapped, memory_command, tuple(env or ()), home == "mine", kept
        )
        agents.insert(0, own)
    run = CoderRun(
        tuple(agents), schedule, tuple(range(seeds)), episodes, attempts, time_limit, most_bytes, control, seed_memory
    )
    started: set[str] = set()
    with ProgressBars(None, verbosity_of(context)) as bars:

        def advance(agent: str) -> None:
            if agent not in started:  # what is refused before an episode is one line without bars
                started.add(agent)
                bars.begin(agent, seeds * episodes)
            bars.advance(agent, 1)

        try:
            run_coders(run, out, resume=resume, fresh=fresh, progress=CoderProgress(bars.note, advance))
        except KeyboardInterrupt:
            bars.note(f"what is finished stands in {out}: the same words with --resume go on")
            raise
    coders = read_coders(out)
    below = [
        f"{agents[0].name}: `{rate}` should be at least {least:g}. Received {found:.3g}"
        for rate, least in limits.items()
        if (found := measure(coders[agents[0].name], rate).mean / 100) < least
    ]
    if json:
        print_json({**describe_coders(coders), "failed": below})
    else:
        console = make_console()
        for table in tabulate_coders(coders):
            print_table(console, table)
        print(f"next: drift-agents report {out} --html; drift-agents inspect {out}")
    for line in below:
        typer.echo(line, err=True)
    if below:
        raise typer.Exit(FAILED)


def _name_of(command: list[str]) -> str:
    """What the agent is called: its program, or the file that an interpreter runs."""
    words = command[0].split() if len(command) == 1 else command
    file = next((word for word in words if word.endswith((".py", ".js", ".sh"))), words[0])
    return Path(file.strip("'\"")).stem


def _read_limits(given: list[str], known: tuple[str, ...]) -> dict[str, float]:
    limits: dict[str, float] = {}
    for text in given:
        rate, _, share = text.partition("=")
        if rate in limits:
            raise refuse("--fail-below", f"should be given once for {rate}", text)
        try:
            limits[rate] = float(share)
        except ValueError:
            limits[rate] = -1.0
        if rate not in known or not 0 <= limits[rate] <= 1:
            raise refuse("--fail-below", f"should be {', '.join(known)} with a share, as success=0.8", text)
    return limits
