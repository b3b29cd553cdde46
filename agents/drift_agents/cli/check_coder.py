"""The command that checks coding agents: `drift-agents check-coder`."""

from __future__ import annotations

import os
import shlex
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from drift_agents.cli.root import Json, app, make_console, print_json, read_limits, refuse, verbosity_of
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
    home: Annotated[Literal["run", "mine"], _agent(help="HOME and the like: folders of the run, or yours.")] = "run",
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
    own = {"--name": name, "--keep": keep, "--memory-command": memory_command, "--env": env, "--wrap": wrap}
    own["--home"] = home if home == "mine" else None
    for option, value in own.items():
        if value and not command:
            raise refuse(option, "should stand with a command: a reference agent has its own", value)
    if shell and len(command or ()) != 1:
        raise refuse("--shell", "should stand with a command of one word, in quotes", command)
    from drift_agents.analysis.coder_table import LIMITS, describe_coders, measure, read_coders, tabulate_coders
    from drift_agents.analysis.table import print_table
    from drift_agents.cli.run import ProgressBars
    from drift_agents.errors import UnknownNameError
    from drift_agents.experiment.coder.agents import KEEP, CoderRun, CodingAgent, find_program, make_reference
    from drift_agents.experiment.coder.runner import run_coders

    for variable in env or ():
        if variable not in os.environ:
            raise refuse("--env", "should name a variable that is set", variable)
    limits = read_limits("--fail-below", fail_below or [], LIMITS)
    agents = []
    if command:
        try:
            wrapped = tuple(shlex.split(wrap))
        except ValueError as error:
            raise refuse("--wrap", f"should be words of a command ({error})", wrap) from error
        words = tuple(command) if shell and not wrapped else find_program(command, wrapped)
        kept = KEEP if keep is None else _split(keep)
        about = (shell, wrapped, memory_command, tuple(env or ()), home == "mine", kept)
        agents.append(CodingAgent(name or _name_of(command), words, *about))
    for one in REFERENCES if reference == "all" else _split(reference):
        if one not in REFERENCES:
            raise UnknownNameError("reference agent", one, REFERENCES)
        agents.append(make_reference(one))
    if not agents:
        raise refuse("COMMAND", "should be given after `--`, or `--reference`", "neither")
    first = None if seed_memory is None else seed_memory.resolve()  # itself it can be a link
    run = CoderRun(
        tuple(agents), schedule, tuple(range(seeds)), episodes, attempts, time_limit, most_bytes, control, first
    )
    started: set[str] = set()
    with ProgressBars(None, verbosity_of(context)) as bars:

        def advance(agent: str) -> None:
            if agent not in started:  # what is refused before an episode is one line without bars
                started.add(agent)
                bars.begin(agent, seeds * episodes)
            bars.advance(agent, 1)

        try:
            run_coders(run, out, resume=resume, fresh=fresh, note=bars.note, advance=advance)
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


def _split(text: str) -> tuple[str, ...]:
    return tuple(one.strip() for one in text.split(",") if one.strip())


def _name_of(command: list[str]) -> str:
    """What the agent is called: its program, or the file that an interpreter runs."""
    words = command[0].split() if len(command) == 1 else command
    file = next((word for word in words if word.endswith((".py", ".js", ".sh"))), words[0])
    return Path(file.strip("'\"")).stem
