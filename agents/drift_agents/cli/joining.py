"""The commands by which others join: `drift-agents submit`, `drift-agents track` and `drift-agents board`.

* `submissions` - make, check and repeat a submission
* `tracks` - the same instances for all agents, open or hidden until they are revealed
* `boards` - results as small files, and the pages made of them
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from webshop_server.command_line import FAILED, Debug, make_app, refuse

if TYPE_CHECKING:
    from drift_agents.submission.track import Track

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
    "Results as small files, and the pages made of them.",
    "drift-agents board page results/board --out docs/board.md --html docs/board.html",
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
    debug: Debug = False,
) -> None:
    """Copy the lines, the description and the recorded replies of a run, with their hashes, sums and packages.

    Replies hold prompts and the address of the server, no key. The result is checked as by `validate`.
    """
    from drift_agents.submission.bundle import open_submission
    from drift_agents.submission.prepare import prepare_submission
    from drift_agents.submission.validate import check_submission

    target = run.with_name(f"{run.name}.zip") if out is None else out
    statement = prepare_submission(run, target, replies=replies, about=about)
    counts = statement.counts
    print(f"wrote {target}: {counts.cells:,} cells, {counts.episodes:,} episodes")
    for package in statement.packages:
        print(f"  package {package.name} {package.version}: {', '.join(package.parts)}")
    with open_submission(target) as folder:
        print(f"  digest {check_submission(folder).digest}")


@submissions.command(
    "validate",
    short_help="Check a submission without playing.",
    epilog="Example: drift-agents submit validate mine.zip",
)
def _validate(path: SubmissionPath, debug: Debug = False) -> None:
    """Check files, hashes, experiment, lines, counts, costs and recorded replies; no code of an agent is imported.

    The exit status is 1 if anything is wrong.
    """
    from drift_agents.submission.bundle import open_submission
    from drift_agents.submission.validate import CHECKS, check_submission

    with open_submission(path) as folder:
        checked = check_submission(folder)
    if checked.findings or checked.statement is None:
        print(f"{path}: not valid")
        for finding in checked.findings:
            print(f"  {finding}")
        raise typer.Exit(FAILED)
    counts = checked.statement.counts
    print(f"{path}: valid. {counts.cells:,} cells, {counts.episodes:,} episodes, digest {checked.digest}")
    for check in CHECKS:
        print(f"  {check}")
    print("Lines that were forged consistently are found by `replay` alone.")


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
    debug: Debug = False,
) -> None:
    """Play a random sample of cells, with the recorded replies, and compare all lines byte by byte.

    The agent's package has to be installed, and its code runs with your rights: use a container for strangers'. No
    request is sent to a language model. The exit status is 1 if a line is different.
    """
    from drift_agents.submission.bundle import open_submission, write_json
    from drift_agents.submission.replay import REPRODUCED, replay_submission
    from drift_agents.submission.validate import check_submission

    with open_submission(path) as folder:
        result = replay_submission(check_submission(folder), cells, nonce)
    sample = result.replayed
    print(f"{path}: {result.outcome}. {len(sample.cells)} of {sample.of} cells, {sample.lines} lines compared")
    for difference in result.differences:
        print(f"  {difference}")
    if result.there.versions != result.here.versions:
        print(f"  versions there: {result.there.versions}\n  versions here:  {result.here.versions}")
    if result.there.packages != result.here.packages:
        print("  the agent's packages here have other versions or files than those that played")
    missed = ", ".join(f"{chance:.1%} if {share} of all cells are" for share, chance in sample.missed.items())
    print(f"  chance that a sample of this size misses altered cells: {missed}")
    if certificate is not None:
        write_json(certificate, result.model_dump(mode="json"))
        print(f"wrote {certificate}")
    if result.outcome != REPRODUCED:
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
    beacon: Annotated[
        str,
        typer.Option(metavar="TEXT", help="A public random value of the future on which seeds depend too, in words."),
    ] = "",
    debug: Debug = False,
) -> None:
    """Make a track: schedules, lengths, and seeds or, with --salt, the commitment to secret ones."""
    from drift_agents.submission.bundle import write_json
    from drift_agents.submission.track import find_fixed, make_track, new_salt

    if beacon and salt is None:
        raise refuse("--beacon", "should stand with `--salt`", beacon)
    make_track(file)  # a mistake in the file should leave no salt behind
    if out.exists():
        raise refuse("--out", "should be a new file", str(out))
    track = make_track(file, None if salt is None else new_salt(salt), beacon)
    fixed = find_fixed(track)
    write_json(out, track.model_dump(mode="json", exclude_none=True))
    print(f"wrote {out}: {len(track.schedules)} schedules, {track.instances} instances each, digest {track.digest()}")
    if salt is not None:
        print(f"  commitment {track.commitment}: publish it; keep {salt} secret until the track is revealed")
    if fixed:
        print(f"  the same for every seed but for random outcomes, so that a salt hides little: {', '.join(fixed)}")


@tracks.command(
    "enter",
    short_help="Make an entry: an agent with its packages.",
    epilog="Example: drift-agents track enter lakes.json agent.yaml --out mine.json",
)
def _enter(
    track: TrackPath,
    agent: AgentPath,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The entry (JSON), for the organiser.")],
    debug: Debug = False,
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
    write_json(out, entry.model_dump(mode="json"))
    packages = ", ".join(f"{package.name} {package.version}" for package in entry.packages)
    print(f"wrote {out}: {entry.name} enters {entered.name} with {packages or 'parts of drift-envs alone'}")


@tracks.command(
    "run",
    short_help="Play an agent on a track.",
    epilog="Example: drift-agents track run lakes.json mine.json --salt lakes.salt --out runs/mine",
)
def _run(
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
    debug: Debug = False,
) -> None:
    """Play an agent, with the references of the track, into the folder of a run.

    For an entry, the installed packages must be those that it states, file by file. Run strangers' code in a
    container, without the salt's folder and without a network: seeds reach the folder of the run, not the agent.
    """
    from drift_agents.cli.run import ProgressBars
    from drift_agents.experiment.runner import run_experiment
    from drift_agents.submission.track import check_entry, combine, read_agent, read_track

    played = read_track(track)
    if practice and (salt is not None or not played.is_hidden):
        raise refuse("--practice", "should stand with a hidden track, without `--salt`", str(track))
    entry = read_agent(agent, played)
    check_entry(entry, played)
    seeds = tuple(range(played.instances)) if practice else _seeds(played, salt)
    experiment = combine(played, entry, seeds)
    with ProgressBars() as bars:
        run_experiment(experiment, out, jobs=jobs, resume=resume, progress=bars)
    print(f"wrote {out}: {experiment.name}, {len(seeds)} instances{' for practice' if practice else ''}")
    print(f"next: drift-agents submit prepare {out}")


def _seeds(track: Track, salt: Path | None) -> tuple[int, ...]:
    from drift_agents.submission.track import read_salt, seeds_of

    return seeds_of(track, None if salt is None else read_salt(salt))


@tracks.command(
    "close",
    short_help="Add the value of a hidden track's beacon.",
    epilog="Example: drift-agents track close lakes.json --beacon 8f3a0c --out lakes.json",
)
def _close(
    track: TrackPath,
    beacon: Annotated[str, typer.Option(metavar="VALUE", help="The value, when it is known.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The track with the value (JSON).")],
    debug: Debug = False,
) -> None:
    """Add the public random value that the track named when it was made; entries should be closed before it is known.

    Seeds follow from the salt and this value, so that an organiser cannot choose them by drawing salts.
    """
    from drift_agents.errors import SubmissionError
    from drift_agents.submission.bundle import write_json
    from drift_agents.submission.track import read_track

    hidden = read_track(track)
    if not hidden.beacon_source or hidden.beacon is not None:
        raise SubmissionError(f"{track}: should be a hidden track that waits for the value of a beacon")
    closed = hidden.model_copy(update={"beacon": beacon})
    write_json(out, closed.model_dump(mode="json", exclude_none=True))
    print(f"wrote {out}: seeds depend on {hidden.beacon_source!r}, {beacon}")


@tracks.command(
    "reveal",
    short_help="Publish the salt of a hidden track.",
    epilog="Example: drift-agents track reveal lakes.json --salt lakes.salt --out lakes.revealed.json",
)
def _reveal(
    track: TrackPath,
    salt: Annotated[Path, typer.Option(metavar="FILE", help="The organiser's salt.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The track with its salt (JSON).")],
    debug: Debug = False,
) -> None:
    """Write the track with its salt, after checking that it is the one that was committed to.

    From then on the instances are known: the next round needs a new track.
    """
    from drift_agents.submission.bundle import write_json
    from drift_agents.submission.track import check_salt, read_salt, read_track

    hidden, secret = read_track(track), read_salt(salt)
    check_salt(hidden, secret, str(salt))
    revealed = hidden.model_copy(update={"salt": secret.hex()})
    write_json(out, revealed.model_dump(mode="json", exclude_none=True))
    print(f"wrote {out}: anyone can check it with `drift-agents track verify`")


@tracks.command(
    "verify",
    short_help="Check that a submission was played on a track.",
    epilog="Example: drift-agents track verify lakes.revealed.json mine.zip",
)
def _verify(track: TrackPath, path: SubmissionPath, salt: Salt = None, debug: Debug = False) -> None:
    """Check the commitment, the seeds and the schedules, and the submission as by `validate`."""
    from drift_agents.submission.bundle import open_submission
    from drift_agents.submission.track import check_track, read_salt, read_track
    from drift_agents.submission.validate import check_submission

    played = read_track(track)
    secret = None if salt is None else read_salt(salt)
    with open_submission(path) as folder:
        checked = check_submission(folder)
        findings = checked.findings or list(check_track(checked, played, secret))
    if findings:
        print(f"{path}: is not a valid submission to {played.name}")
        for finding in findings:
            print(f"  {finding}")
        raise typer.Exit(FAILED)
    which = "derived from the salt that was committed to" if played.is_hidden else f"from {played.first_seed} on"
    print(f"{path}: valid, played on the {played.instances} instances of {played.name}, seeds {which}")


@boards.command(
    "add",
    short_help="Add a submission's figures to the results.",
    epilog="Example: drift-agents board add mine.zip --track results/board/small/track.json --name mine",
)
def _add(
    path: SubmissionPath,
    track: Annotated[Path, typer.Option(metavar="TRACK", help="The track's file; the result is written beside it.")],
    name: Annotated[str, typer.Option(metavar="NAME", help="The name on the board.")],
    certificate: Annotated[Path | None, typer.Option(metavar="FILE", help="Certificate of `submit replay`.")] = None,
    salt: Salt = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a result of that name.")] = False,
    debug: Debug = False,
) -> None:
    """Check a submission against a track and write the figures of its episodes, without prompts and seeds."""
    from drift_agents.errors import SubmissionError
    from drift_agents.submission.bundle import open_submission
    from drift_agents.submission.replay import read_certificate
    from drift_agents.submission.results import make_result, write_result
    from drift_agents.submission.track import check_track, read_salt, read_track
    from drift_agents.submission.validate import check_submission

    played = read_track(track)
    target = track.parent / f"{name}.json"
    if target.exists() and not force:
        raise refuse("--name", "should be new on the board", name)
    secret = None if salt is None else read_salt(salt)
    with open_submission(path) as folder:
        checked = check_submission(folder)
        findings = checked.findings or list(check_track(checked, played, secret))
        if findings:
            raise SubmissionError("\n".join([f"{path}: is not a valid submission to {played.name}:", *findings]))
        given = None if certificate is None else read_certificate(certificate)
        write_result(target, make_result(checked, played.digest(), name, given))
    print(f"wrote {target} ({target.stat().st_size:,} bytes)")


@boards.command(
    "page",
    short_help="Make the pages of the board.",
    epilog="Example: drift-agents board page results/board --out docs/board.md --html docs/board.html",
)
def _page(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The results: a folder for each track.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The Markdown page.")],
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="The HTML page, with filters.")] = None,
    debug: Debug = False,
) -> None:
    """Rank the agents of all results by track. Equal results give equal bytes.

    Pictures in a track's folder (SVG, PNG) are shown on the HTML page.
    """
    from drift_agents.submission.board_pages import write_board

    for board in write_board(folder, out, html):
        rows = len(board.views[0].rows)
        print(
            f"{board.track.name}: {len(board.results)} submissions, {rows} rows, {len(board.legacy)} legacy schedules"
        )
    print(f"wrote {out}{'' if html is None else f' and {html}'}")
