"""The commands of `drift-envs` with their options; the work of each is imported when the command runs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drift_envs.cli.options import (
    MOST_PHASES,
    EnvOption,
    GymnasiumId,
    Id,
    ImportOption,
    Name,
    NameOrId,
    ScheduleOption,
    SeedOption,
    ShownScheduleOption,
    count_option,
    id_option,
    schedules_argument,
)
from drift_envs.errors import DriftEnvsError, UnknownChoiceError, UnknownScheduleError
from drift_envs.utils.command_line import (
    FAILED,
    WRONG_USAGE,
    AllowHost,
    Json,
    Verbosity,
    make_app,
    make_console,
    print_json,
    refuse,
    run_app,
    verbosity_of,
)
from drift_envs.utils.files import prepare_file

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 110
"""Columns of tables where the output is not a terminal and `COLUMNS` is not set."""


def _version() -> str:
    from importlib.metadata import version

    return f"drift-envs {version('drift-envs')}"


app = make_app(
    "Environments that drift on a schedule: list and check schedules, play, record.",
    "drift-envs show frozen_lake/explicit",
    version=_version,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: the words after `drift-envs`; by default those of this process.

    Returns:
        The exit status: 0, 1 (the work failed), 2 (wrong usage) or 130 (interrupted).

    Example:
        >>> main(["validate", "frozen_lake/null"])
        frozen_lake/null: ok, 3 phases
        0
    """
    return run_app(app, "drift-envs", arguments, _status_of, _words_of)


def _status_of(error: Exception) -> int | None:
    if isinstance(error, (UnknownScheduleError, UnknownChoiceError)):
        return WRONG_USAGE
    if isinstance(error, (DriftEnvsError, OSError)):
        return FAILED
    from drift_envs.envs.make import describe_error

    return None if describe_error(error) is None else FAILED


def _words_of(error: Exception) -> str:
    """An error in one line; one of another package's environment names the package."""
    if isinstance(error, DriftEnvsError):
        return str(error)
    from drift_envs.envs.make import describe_error

    return describe_error(error) or str(error)


def _make_console() -> Console:
    """The console for tables, as wide as the terminal."""
    console = make_console(highlight=False, soft_wrap=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_WIDTH
    return console


def _command(name: str, summary: str, example: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a command, with a line for the list of commands and the arguments of an example."""
    return app.command(name, short_help=summary, epilog=f"Example: drift-envs {name} {example}")


@_command("list", "List environments and schedules.", "--schedules DriftFrozenLake-v0")
def _list(
    env: Annotated[str | None, id_option("Show its knobs.")] = None,
    schedules: Annotated[str | None, id_option("List its schedules.")] = None,
    json: Json = False,
) -> None:
    """List the environments, the knobs of one, or the schedules that come with the package for one."""
    if env is not None and schedules is not None:
        raise refuse("--env", "should not be given with `--schedules`", env)
    from drift_envs.cli import listing

    if env is not None:
        if json:
            print_json(listing.describe_environment(env))
        else:
            listing.print_environment(_make_console(), env)
    elif schedules is not None:
        if json:
            print_json(listing.describe_schedules(schedules))
        else:
            listing.print_schedules(_make_console(), schedules)
    elif json:
        print_json(listing.describe_list())
    else:
        listing.print_list(_make_console())


@_command("show", "Show the phases of a schedule.", "frozen_lake/explicit:family --seed 7")
def _show(
    name: NameOrId = None,
    schedule: ShownScheduleOption = None,
    seed: SeedOption = 0,
    phases: Annotated[
        int | None,
        count_option("Number of phases to show (default: 6, and the first one of each later drift).", MOST_PHASES),
    ] = None,
    env: EnvOption = None,
    imports: ImportOption = None,
    json: Json = False,
) -> None:
    """Show the phases of a schedule: knob values, changes of the transition table, loss of the former optimum."""
    from drift_envs.cli.scheduled import choose_schedule, open_schedule
    from drift_envs.cli.show import describe_phases, print_phases

    chosen, env_id = choose_schedule(name, schedule, env)
    scheduled = open_schedule(chosen, seed, env_id, may_import=bool(imports))
    if json:
        print_json(describe_phases(scheduled, phases))
    else:
        print_phases(_make_console(), scheduled, phases)


@_command("validate", "Check schedule files.", "my_schedule.yaml frozen_lake/tides")
def _validate(
    files: Annotated[list[str], schedules_argument("FILE...", "Files or shipped schedules.")],
    imports: ImportOption = None,
) -> int:
    """Check schedule files, knobs and variants included; every mistake is reported with file, line and key.

    The exit status is 1 if there is any. Without --import, no module that a file names is imported, and the knobs of
    its environment are not checked.
    """
    from drift_envs.cli.check import validate_schedules

    return 0 if validate_schedules(files, may_import=bool(imports)) else FAILED


@_command("new-schedule", "Write a schedule file to start from.", "DriftMountainCar-v0 --out mine.yaml")
def _new_schedule(
    env_id: Id,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="The file (default: print it).")] = None,
) -> None:
    """Write a valid schedule of an environment, with comments on its knobs and on other kinds of drift."""
    from drift_envs.cli.listing import write_draft

    write_draft(env_id, out)


@_command(
    "check", "Play both sides of every drift, and warn of knobs that change nothing.", "my_schedule.yaml --episodes 20"
)
def _check(
    name: Name,
    episodes: Annotated[int, count_option("Episodes on each side.")] = 5,
    steps: Annotated[int, count_option("Cut an episode after N steps.")] = 200,
    phases: Annotated[
        int,
        count_option("Phases to compare, beside one of each later drift.", MOST_PHASES),
    ] = 9,
    seed: SeedOption = 0,
    imports: ImportOption = None,
) -> None:
    """Play both sides of every drift with the same random actions, and print when each changed knob was first seen.

    Each side is played twice, so that an environment that is not reproducible is told as such. Where ticks are steps,
    each knob is changed within an episode too. A knob that nothing showed gets a warning: the environment may have read
    it once, at its construction, or random actions do not reach what it changes.
    """
    from drift_envs.cli.check import check_schedule

    check_schedule(_make_console(), name, seed, episodes, steps, phases)


@_command("plot", "Draw knobs over ticks.", "frozen_lake/thaw --out thaw.png")
def _plot(
    name: NameOrId = None,
    schedule: ShownScheduleOption = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A .png, .svg or .pdf file; needs the extra `plots`.")
    ] = None,
    ticks: Annotated[int | None, typer.Option(min=1, metavar="N", help="Ticks to draw (default: few phases).")] = None,
    seed: SeedOption = 0,
    env: EnvOption = None,
    imports: ImportOption = None,
) -> None:
    """Draw the knobs of a schedule over its ticks: as text, or with --out as a picture."""
    from drift_envs.cli.plot import plot_schedule
    from drift_envs.cli.scheduled import choose_schedule

    chosen, env_id = choose_schedule(name, schedule, env)
    plot_schedule(_make_console(), chosen, out, ticks, seed, env_id, may_import=bool(imports))


@_command(
    "severity",
    "Measure how severe and visible drifts are.",
    "frozen_lake/explicit:partial mountain_car/tangle --out severity.csv",
)
def _severity(
    names: Annotated[list[str], schedules_argument("NAME...", "Shipped schedules, or files.")],
    seed: SeedOption = 0,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="A CSV file with the figures.")] = None,
    imports: ImportOption = None,
    json: Json = False,
) -> None:
    """Measure drifts by the oracle: the share of the transition table that changes, and of optimal ways that meet it.

    Lakes are exact; elsewhere the best known policy plays five episodes of the phase before. The third figure is the
    share of the new optimum that the policies which were optimal before miss.
    """
    from drift_envs.cli.show import measure_schedules, print_severities, write_severities

    if out is not None:
        prepare_file(out)
    rows = measure_schedules(names, seed)
    if out is not None:
        write_severities(rows, out)
    if json:
        print_json({"seed": seed, "drifts": [row._asdict() for row in rows]})
    else:
        print_severities(_make_console(), rows)


@_command("schema", "Print the JSON Schema of schedules.", "> schedule.schema.json")
def _schema() -> None:
    """Print the JSON Schema of schedule files, with which editors complete and check them."""
    import json

    from drift_envs.schedule import schedule_schema

    print(json.dumps(schedule_schema(), indent=2))


@_command(
    "play", "Play in a window, or in the terminal.", "DriftMountainCar-v0 --schedule mountain_car/reversed --every 2"
)
def _play(
    env_id: GymnasiumId,
    schedule: ScheduleOption = None,
    episodes: Annotated[int | None, count_option("End after N episodes.")] = None,
    every: Annotated[
        int,
        count_option("Ticks from one episode to the next, to reach drifts sooner."),
    ] = 1,
    seed: SeedOption = 0,
    imports: ImportOption = None,
) -> None:
    """Play an environment with its drifts; q ends it.

    In a window, or in the terminal where actions are texts or nothing is drawn. Discrete actions of environments of
    other packages have keys by their number.
    """
    from drift_envs.cli.play import play_environment
    from drift_envs.cli.scheduled import choose_environment

    play_environment(*choose_environment(env_id, schedule), episodes, every, seed)


def _parse_episodes(text: str) -> int | range:
    """A number of episodes, or a range of them such as 18-22, or 0-60:10 for every tenth."""
    found = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", text, re.ASCII)
    first, last, step = [None if part is None else int(part) for part in (found.groups() if found else (None,) * 3)]
    if first and last is None:
        return first
    if first is None or last is None or step == 0:
        rule = "should be a positive number, a range such as 18-22, or 0-60:10 for every tenth of them"
        raise typer.BadParameter(f"{rule}. Received {text!r}")
    if first > last:
        raise typer.BadParameter(f"should have the earlier episode first: {last}-{first}. Received {text!r}")
    return range(first, last + 1, step or 1)


@_command("record", "Record a film or a picture.", "DriftFrozenLake-v0 --out lake.gif")
def _record(
    env_id: GymnasiumId,
    out: Annotated[Path, typer.Option(metavar="FILE", help="A .gif, .mp4 or .png file.")],
    schedule: ScheduleOption = None,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="oracle|initial|random|FILE",
            help="Policy: the best known one, that of the first phase for ever, random actions, or a file of a run's "
            "folder `traces`, which is replayed (default: oracle, or random where there is none).",
        ),
    ] = None,
    phases: Annotated[int, count_option("Number of phases to record.", MOST_PHASES)] = 3,
    episodes: Annotated[
        object,
        typer.Option(
            metavar="N|A-B[:K]",
            parser=_parse_episodes,
            show_default=False,
            help="N episodes of each phase (default: 1; of a file: all), or the episodes A to B, counted from 0, or "
            "every K-th of these: 0-60:10 shows a slow drift.",
        ),
    ] = None,
    steps: Annotated[int | None, count_option("End each episode after N steps.")] = None,
    fps: Annotated[
        int | None, typer.Option(min=1, max=240, metavar="N", help="Frames per second (default: the env's).")
    ] = None,
    seed: SeedOption = 0,
    imports: ImportOption = None,
) -> None:
    """Record an episode of each phase without a display.

    As a film (.gif, .mp4), or as one picture with frames of each phase in a row (.png).
    """
    from drift_envs.cli.record import RecordOptions, record
    from drift_envs.cli.scheduled import choose_environment

    env_id, schedule = choose_environment(env_id, schedule)
    if not (episodes is None or isinstance(episodes, (int, range))):
        raise refuse("--episodes", "should be a number or a range", episodes)
    record(RecordOptions(env_id, out, schedule, policy, phases, episodes, steps, fps, seed))


@_command(
    "diff",
    "Show what differs between two phases, or score a statement about it.",
    "frozen_lake/explicit source drift-1 --json",
)
def _diff(
    name: Name,
    before: Annotated[str, typer.Argument(metavar="PHASE", help="Id of a phase, as `show` prints it.")],
    after: Annotated[str, typer.Argument(metavar="PHASE", help="Id of the other phase.")],
    score: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Score the statement of this file, which has the form of --json."),
    ] = None,
    seed: SeedOption = 0,
    env: EnvOption = None,
    imports: ImportOption = None,
    json: Json = False,
) -> None:
    """Show what differs between two phases of a schedule: each knob in words, and maps side by side.

    With --score, compare a statement with it: `{"changes": [{"knob": "slip", "new": 0.6}]}`.
    """
    from drift_envs.cli.scheduled import open_schedule
    from drift_envs.cli.show import describe_difference, print_difference, print_score, read_statement
    from drift_envs.metrics import compare_phases, score_statement

    scheduled = open_schedule(name, seed, env, may_import=bool(imports))
    if score is not None:
        found = score_statement(compare_phases(scheduled.timeline, before, after), read_statement(score))
        if json:
            print_json(found._asdict())
        else:
            print_score(_make_console(), found)
    elif json:
        print_json(describe_difference(scheduled, before, after))
    else:
        print_difference(_make_console(), scheduled, before, after)


@_command(
    "dataset",
    "Record lifetimes with labels of their drifts.",
    "DriftFrozenLake-v0 --schedule frozen_lake/tides --episodes 200 --out lake",
)
def _dataset(
    context: typer.Context,
    env_id: GymnasiumId,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder; one that was begun is completed.")],
    schedule: ScheduleOption = None,
    policy: Annotated[
        str,
        typer.Option(
            metavar="random|optimal|initial|FILE|MODULE:NAME",
            help="Random actions, the optimum, the optimum of the first phase for ever, a file of a run's folder "
            "`traces`, or a function make(observation_space, action_space).",
        ),
    ] = "random",
    episodes: Annotated[int, count_option("Episodes of each lifetime.")] = 100,
    lifetimes: Annotated[int, count_option("Lifetimes, each with the next seed.", MOST_PHASES)] = 1,
    epsilon: Annotated[float, typer.Option(min=0, max=1, metavar="P", help="Share of random actions.")] = 0.0,
    minari: Annotated[bool, typer.Option("--minari", help="Write Minari's form too.")] = False,
    seed: SeedOption = 0,
    imports: ImportOption = None,
) -> None:
    """Record lifetimes as Parquet, with phase, tick, knobs and changes of every step; needs the extra `dataset`.

    An interrupted command is repeated to go on. With --minari, `minari.load_dataset` reads the folder too.
    """
    from drift_envs.cli.dataset import record_dataset
    from drift_envs.cli.scheduled import choose_environment
    from drift_envs.datasets import DatasetOptions

    env_id, schedule = choose_environment(env_id, schedule)
    options = DatasetOptions(env_id, schedule, policy, episodes, lifetimes, seed, epsilon)
    record_dataset(options, out, minari=minari, is_quiet=verbosity_of(context) is Verbosity.QUIET)


@_command("score-detector", "Score a drift detector on a data set.", "river.drift:ADWIN --data lake --stream returns")
def _score_detector(
    detector: Annotated[
        str, typer.Argument(metavar="MODULE:NAME", help="A class or function that returns a detector as river's.")
    ],
    data: Annotated[Path, typer.Option(metavar="DIR", help="Folder of `drift-envs dataset`.")],
    stream: Annotated[
        str, typer.Option(metavar="returns|rewards|errors", help="Returns, rewards, or errors of predictions.")
    ] = "returns",
    window: Annotated[
        int | None,
        count_option("Most steps from a drift to its detection (default: any number)."),
    ] = None,
    json: Json = False,
) -> None:
    """Play a detector with river's interface over the lifetimes of a data set, and score its alarms.

    The first alarm after each drift detects it; every other one is false.
    """
    from drift_envs.cli.dataset import describe_summary, print_summary, score

    summary = score(detector, data, stream, window)
    if json:
        print_json({"detector": detector, "stream": stream, "window": window, **describe_summary(summary)})
    else:
        print_summary(_make_console(), summary)


@_command(
    "openenv",
    "Serve an environment by OpenEnv's protocol.",
    "DriftFrozenLake-v0 --schedule frozen_lake/implicit --rounds 2 --port 8000",
)
def _openenv(
    env_id: GymnasiumId,
    schedule: ScheduleOption = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Play the first N episodes of every phase (default: 2).")
    ] = None,
    episodes: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Play N episodes instead, during which time goes on.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="Port (default: free).")] = 0,
    allow_host: AllowHost = None,
    imports: ImportOption = None,
) -> None:
    """Serve an environment on a loopback address to clients of OpenEnv; needs the extra `openenv`.

    An episode of OpenEnv is a lifetime; each session has one of its own.
    """
    from drift_envs.cli.scheduled import choose_environment, default_schedule
    from drift_envs.integrations.openenv import make_app, serve_openenv

    env_id, schedule = choose_environment(env_id, schedule)
    source = schedule or default_schedule(env_id)
    serve_openenv(make_app(env_id, source, rounds=rounds, episodes=episodes), port, allow_host or ())


@_command("mcp", "Offer an environment as tools of an MCP server.", "DriftWebShop-v0 --http --log episodes.jsonl")
def _mcp(
    env_id: GymnasiumId,
    schedule: ScheduleOption = None,
    tools: Annotated[
        bool, typer.Option("--tools", help="Offer the tools of DriftTools-v0, DriftTau2-v0 or DriftRepository-v0.")
    ] = False,
    http: Annotated[
        bool, typer.Option("--http", help="Serve streamable HTTP on a loopback address, with a token.")
    ] = False,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, metavar="N", help="Port of --http (default: free).")
    ] = None,
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Append a line for each episode, with phase and score.")
    ] = None,
    seed: SeedOption = 0,
    imports: ImportOption = None,
) -> None:
    """Offer an environment to an MCP client as the tools reset, act and observe; needs the extra `mcp`.

    With --tools, the client gets the tools of the desk instead. Standard input and output are the connection, unless
    --http is given. One session is one lifetime.
    """
    from drift_envs.cli.scheduled import choose_environment, default_schedule

    if port is not None and not http:
        raise refuse("--port", "should stand with `--http`", port)
    env_id, schedule = choose_environment(env_id, schedule)
    if tools and env_id not in ("DriftTools-v0", "DriftTau2-v0", "DriftRepository-v0"):
        known = "`DriftTools-v0`, `DriftTau2-v0` or `DriftRepository-v0`, which have tools"
        raise refuse("--tools", f"should stand with {known}", env_id)
    from drift_envs.integrations.mcp import LifetimeServer, make_server, serve_http, serve_stdio

    if log is not None:
        prepare_file(log, option="--log")
    source = schedule or default_schedule(env_id)
    server: LifetimeServer
    if tools:
        from drift_envs.integrations.mcp_tools import make_tool_server

        server = make_tool_server(env_id, source, seed, log)
    else:
        server = make_server(env_id, source, seed, log)
    if http:
        serve_http(server, port or 0)
    else:
        serve_stdio(server)
