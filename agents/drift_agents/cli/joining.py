"""The commands by which others join: `drift-agents submit`, `drift-agents track` and `drift-agents board`.

* `submissions` - make, check and repeat a submission
* `tracks` - the same instances for all agents, open or hidden until they are revealed
* `boards` - results as small files, and the page made of them
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from webshop_server.command_line import FAILED, make_app, refuse, verbosity_of

if TYPE_CHECKING:
    from drift_agents.submission.track import Track
    from drift_agents.submission.validate import Checked

submissions = make_app(
    "Make, check and repeat a submission: a run that others can verify.",
    "drift-agents submit prepare runs/demo --out demo.zip",
    completion=False,
)
tracks = make_app(
    "Tracks: the same instances for all agents, open or hidden until they are revealed.",
    "drift-agents track run lakes/track.json agent.yaml --out runs/mine",
    completion=False,
)
boards = make_app(
    "Results as small files, and the page made of them.",
    "drift-agents board page results/board --out board.md",
    completion=False,
)

SubmissionPath = Annotated[Path, typer.Argument(metavar="FILE|DIR", help="A submission: a zip file or a folder.")]
TrackPath = Annotated[Path, typer.Argument(metavar="TRACK", help="File of a track (JSON).")]
AgentPath = Annotated[Path, typer.Argument(metavar="AGENT", help="File of an agent (YAML), or an entry (JSON).")]
Salt = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The organiser's salt, for a hidden track that is not revealed.")
]


@submissions.command(
    "prepare",
    short_help="Make a submission of a finished run.",
    epilog="Example: drift-agents submit prepare runs/mine --out mine.zip",
)
def _prepare(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of the run.")],
    out: Annotated[
        Path | None, typer.Option(metavar="PATH", help="A folder, or a zip file (default: RUN.zip, beside RUN).")
    ] = None,
    replies: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Recorded replies (default: replies.sqlite of the run).")
    ] = None,
    about: Annotated[str, typer.Option(metavar="TEXT", help="One sentence for the board.")] = "",
) -> None:
    """Copy the lines, the description and the recorded replies of a run, with their hashes and packages.

    Replies hold prompts and the address of the server, no key. The result is checked as by `validate`.
    """
    from drift_agents.submission.prepare import prepare_submission

    target = run.with_name(f"{run.name}.zip") if out is None else out
    checked = prepare_submission(run, target, replies=replies, about=about)
    print(f"wrote {target}: {len(checked.cells):,} cells, {len(checked.rows):,} episodes, digest {checked.digest}")
    for package in checked.statement.packages if checked.statement else ():
        print(f"  package {package.name} {package.version}: {', '.join(package.parts)}")


@submissions.command(
    "validate",
    short_help="Check a submission without playing.",
    epilog="Example: drift-agents submit validate mine.zip --track lakes/track.json",
)
def _validate(
    path: SubmissionPath,
    track: Annotated[
        Path | None, typer.Option(metavar="TRACK", help="Also check that it was played on this track (JSON).")
    ] = None,
    salt: Salt = None,
) -> None:
    """Check files, hashes, the run's description and lines; no code of an agent is imported.

    With a track its commitment, seeds, schedules and lengths are checked too. The exit status is 1 if anything is
    wrong.
    """
    from drift_agents.submission.bundle import open_submission
    from drift_agents.submission.track import read_track

    if salt is not None and track is None:
        raise refuse("--salt", "should stand with `--track`", str(salt))
    played = None if track is None else read_track(track)
    with open_submission(path) as folder:
        checked = _check(folder, played, salt)
    if checked.findings:
        print(f"{path}: not valid")
        for finding in checked.findings:
            print(f"  {finding}")
        raise typer.Exit(FAILED)
    print(f"{path}: valid. {len(checked.cells):,} cells, {len(checked.rows):,} episodes, digest {checked.digest}")
    if played is not None:
        source = "derived from the salt that was committed to" if played.is_hidden else f"from {played.first_seed} on"
        print(f"  played on the {played.instances} instances of {played.name}, seeds {source}")
    print("Lines that were forged consistently are found by `replay` alone.")


def _check(folder: Path, track: Track | None, salt: Path | None) -> Checked:
    """A submission, with what is not as its track has it among the findings."""
    from drift_agents.submission.track import check_track, read_salt
    from drift_agents.submission.validate import check_submission

    checked = check_submission(folder)
    if track is not None and not checked.findings:
        checked.findings += check_track(checked, track, None if salt is None else read_salt(salt))
    return checked


@submissions.command(
    "replay",
    short_help="Play a sample of a submission's cells again.",
    epilog="Example: drift-agents submit replay mine.zip --cells 10 --certificate mine.certificate.json",
)
def _replay(
    path: SubmissionPath,
    cells: Annotated[int, typer.Option(min=1, max=1_000_000, metavar="N", help="Cells that are played.")] = 5,
    nonce: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Repeat the sample of a certificate (default: a new one).")
    ] = None,
    certificate: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a certificate (JSON).")] = None,
) -> None:
    """Play a random sample of cells, with the recorded replies, and compare all lines byte by byte.

    The agent's package has to be installed. It plays in a process of its own, with as few rights as the system allows;
    use a container for strangers' code all the same. No request is sent to a language model. The exit status is 1 if a
    line is different.
    """
    from drift_agents.submission.bundle import open_submission, write_json
    from drift_agents.submission.replay import replay_submission
    from drift_agents.submission.validate import check_submission

    with open_submission(path) as folder:
        checked = check_submission(folder)
        result = replay_submission(checked, cells, nonce)
    outcome = "different" if result.differences else "reproduced"
    print(f"{path}: {outcome}. {len(result.cells)} of {result.of} cells, {result.lines} lines compared")
    for difference in result.differences:
        print(f"  {difference}")
    if result.versions != checked.manifest["versions"]:
        print(f"  versions there: {checked.manifest['versions']}\n  versions here:  {result.versions}")
    if checked.statement is not None and result.packages != checked.statement.packages:
        print("  the agent's packages here have other versions or files than those that played")
    if certificate is not None:
        write_json(certificate, result)
        print(f"wrote {certificate}")
    if result.differences:
        raise typer.Exit(FAILED)


@tracks.command(
    "new",
    short_help="Make a track of an experiment file without agents.",
    epilog="Example: drift-agents track new lakes.yaml --out lakes.json --salt lakes.salt",
)
def _new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An experiment file without `agents`.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The track (JSON), which is published.")],
    salt: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Hide the instances; write the secret to this new file.")
    ] = None,
) -> None:
    """Make a track: schedules, lengths, and seeds or, with --salt, the commitment to secret ones."""
    from drift_agents.submission.bundle import write_json
    from drift_agents.submission.track import make_track, new_salt

    make_track(file)  # a mistake in the file should leave no salt behind
    if out.exists():
        raise refuse("--out", "should be a new file", str(out))
    track = make_track(file, None if salt is None else new_salt(salt))
    write_json(out, track)
    print(f"wrote {out}: {len(track.schedules)} schedules, {track.instances} instances each, digest {track.digest()}")
    if salt is not None:
        print(f"  commitment {track.commitment}: publish it; keep {salt} secret until the track is revealed")


@tracks.command(
    "enter",
    short_help="Make an entry: an agent with its packages.",
    epilog="Example: drift-agents track enter lakes.json agent.yaml --out mine.json",
)
def _enter(
    track: TrackPath,
    agent: AgentPath,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The entry (JSON), for the organiser.")],
) -> None:
    """Write what an organiser needs to play an agent: its parts, and its packages with versions and hashes.

    Every part is made once on every schedule. Try the agent with `track run --practice` first.
    """
    from drift_agents.experiment.manifest import describe
    from drift_agents.experiment.plan import plan_cells
    from drift_agents.submission.bundle import write_json
    from drift_agents.submission.track import combine, read_agent, read_track

    entered = read_track(track)
    entry = read_agent(agent, entered)
    experiment = combine(entered, entry, (0,))
    describe(experiment, plan_cells(experiment))
    write_json(out, entry)
    packages = ", ".join(f"{package.name} {package.version}" for package in entry.packages)
    print(f"wrote {out}: {entry.name} enters {entered.name} with {packages or 'parts of drift-envs alone'}")


@tracks.command(
    "run",
    short_help="Play an agent on a track.",
    epilog="Example: drift-agents track run lakes.json mine.json --salt lakes.salt --out runs/mine",
)
def _run(
    context: typer.Context,
    track: TrackPath,
    agent: AgentPath,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the run.")],
    salt: Salt = None,
    practice: Annotated[
        bool, typer.Option("--practice", help="Play the seeds from 0 instead of a hidden track's instances.")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(min=1, max=4096, metavar="N", help="Cells at the same time (default: all cores).")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in the folder.")] = False,
) -> None:
    """Play an agent, with the references of the track, into the folder of a run.

    For an entry, the installed packages must be those that it states, file by file. Agents play in processes of their
    own, which get no seed, schedule or file of the run. Run strangers' code in a container all the same.
    """
    from drift_agents.cli.run import ProgressBars
    from drift_agents.experiment.pipe.process import measure_isolation
    from drift_agents.experiment.runner import run_experiment
    from drift_agents.submission.track import check_entry, combine, read_agent, read_track

    played = read_track(track)
    if practice and (salt is not None or not played.is_hidden):
        raise refuse("--practice", "should stand with a hidden track, without `--salt`", str(track))
    entry = read_agent(agent, played)
    seeds = tuple(range(played.instances)) if practice else _seeds(played, salt)
    experiment = combine(played, entry, seeds)
    check_entry(entry, experiment)
    held = [layer for layer, holds in measure_isolation()._asdict().items() if holds]
    print(f"agents play in processes of their own; layers of the sandbox: {', '.join(held) or 'none'}")
    with ProgressBars(verbosity=verbosity_of(context)) as bars:
        run_experiment(experiment, out, jobs=jobs, resume=resume, progress=bars)
    print(f"wrote {out}: {experiment.name}, {len(seeds)} instances{' for practice' if practice else ''}")
    print(f"next: drift-agents submit prepare {out}")


def _seeds(track: Track, salt: Path | None) -> tuple[int, ...]:
    from drift_agents.submission.track import read_salt, seeds_of

    return seeds_of(track, None if salt is None else read_salt(salt))


@tracks.command(
    "reveal",
    short_help="Publish the salt of a hidden track.",
    epilog="Example: drift-agents track reveal lakes.json --salt lakes.salt --out lakes.revealed.json",
)
def _reveal(
    track: TrackPath,
    salt: Annotated[Path, typer.Option(metavar="FILE", help="The organiser's salt.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The track with its salt (JSON).")],
) -> None:
    """Write the track with its salt, after checking that it is the one that was committed to.

    From then on the instances are known: the next round needs a new track.
    """
    from drift_agents.submission.bundle import write_json
    from drift_agents.submission.track import check_salt, read_salt, read_track

    hidden, secret = read_track(track), read_salt(salt)
    check_salt(hidden, secret, str(salt))
    revealed = hidden.model_copy(update={"salt": secret.hex()})
    write_json(out, revealed)
    print(f"wrote {out}: anyone can check submissions with `drift-agents submit validate --track`")


@boards.command(
    "add",
    short_help="Add a submission's figures to the results.",
    epilog="Example: drift-agents board add mine.zip --track lakes/track.json --certificate mine.json --name mine",
)
def _add(
    path: SubmissionPath,
    track: Annotated[Path, typer.Option(metavar="TRACK", help="The track's file; the result is written beside it.")],
    name: Annotated[str, typer.Option(metavar="NAME", help="The name on the board.")],
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Certificate of `submit replay`; without one there is no rank.")
    ] = None,
    salt: Salt = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a result of that name.")] = False,
) -> None:
    """Check a submission and its certificate, and write the figures of its episodes, without prompts and seeds.

    It has a rank if its track was hidden and not revealed, and a sample of it was played again.
    """
    from drift_agents.submission.bundle import open_submission, parse_model, read_json
    from drift_agents.submission.replay import Certificate
    from drift_agents.submission.results import make_result, write_result
    from drift_agents.submission.track import read_track

    played = read_track(track)
    target = track.parent / f"{name}.json"
    if target == track or (target.exists() and not force):
        raise refuse("--name", "should be new on the board", name)
    given = None if certificate is None else parse_model(Certificate, read_json(certificate), certificate)
    with open_submission(path) as folder:
        result = make_result(_check(folder, played, salt), played, name, given)
    write_result(target, result)
    print(f"wrote {target} ({target.stat().st_size:,} bytes), {result.status or 'ranked'}")


@boards.command(
    "page",
    short_help="Make the page of the board.",
    epilog="Example: drift-agents board page results/board --out board.md",
)
def _page(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The results: a folder for each track.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page (Markdown).")],
) -> None:
    """Rank the agents of all results by track. Equal results give equal bytes."""
    from drift_agents.submission.board import write_board

    for board in write_board(folder, out):
        print(f"{board.track.name}: {len(board.results)} submissions, {len(board.rows)} rows")
    print(f"wrote {out}")
