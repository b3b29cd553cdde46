"""The command that plays: `drift-agents run`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from drift_agents.cli.root import ImportOption, app, make_console, read_summaries, refuse, verbosity_of

_played = partial(typer.Option, rich_help_panel="What is played")
_how = partial(typer.Option, rich_help_panel="How it is played")


class _HelpWithHeadings(TyperCommand):
    """A command whose help shows options under the headings that they name; Typer alone needs rich for that."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                other = "Arguments" if parameter.param_type_name == "argument" else "Options"
                sections.setdefault(getattr(parameter, "rich_help_panel", None) or other, []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def _parse_names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise typer.BadParameter(f"should be names separated by commas. Received {text!r}")
    return names


_names = partial(_played, metavar="A,B", parser=_parse_names)


def _parse_trackers(text: str) -> tuple[str, ...]:
    from drift_envs.integrations.trackers import TRACKERS

    names = _parse_names(text)
    if not set(names) <= set(TRACKERS):
        raise typer.BadParameter(f"should be among {', '.join(TRACKERS)}. Received {text!r}")
    return names


def _complete_experiments(incomplete: str) -> list[str]:
    return [name for name in read_summaries() if name.startswith(incomplete)]


@app.command(
    "run",
    cls=_HelpWithHeadings,
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
    seeds: Annotated[
        int | None,
        _played(
            min=1,
            max=1_000_000,
            metavar="N",
            help="Play the file's first N seeds; --set seeds=[3,4] plays others.",
        ),
    ] = None,
    rounds: Annotated[
        int | None, _played(min=1, max=1_000_000, metavar="N", help="Play the first N episodes of every phase.")
    ] = None,
    schedules: Annotated[
        object,
        _names(help="Of the file's schedules these alone; a name without its suffix stands for all of its variants."),
    ] = None,
    imports: ImportOption = None,
    memory: Annotated[
        object,
        _names(
            help="Memories, in every block of the file; mine.py:MyMemory for a class or function of your own, or a "
            "memory service with `add` and `search`."
        ),
    ] = None,
    verifier: Annotated[object, _names(help="Verifiers, likewise; mine.py:MyRule for your own.")] = None,
    policy: Annotated[object, _names(metavar="P,Q", help="Policies.")] = None,
    model: Annotated[object, _names(metavar="M,N", help="Language models, with `--policy llm`.")] = None,
    base_url: Annotated[
        str | None,
        _played(
            metavar="URL",
            help="Server of the models, as in http://127.0.0.1:8000/v1 (default: OPENAI_BASE_URL, or OpenAI's).",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        _played(
            "--set",
            metavar="KEY=VALUE",
            help="Any other value of the file, as policy.temperature=.5, recall.k=3, controller=adamem, "
            "references=[] or models.budget_tokens=100000; may be given several times.",
        ),
    ] = None,
    out: Annotated[Path | None, _how(metavar="DIR", help="Folder of the run (default: runs/NAME).")] = None,
    jobs: Annotated[
        int | None,
        _how(
            min=1,
            max=4096,
            metavar="N",
            help="Cells played at the same time (default: the number of cores; with language models, 8).",
        ),
    ] = None,
    ray: Annotated[
        str | None,
        _how(
            metavar="ADDRESS",
            help="Play cells on workers of Ray (extra `ray`): a running cluster, as 10.0.0.1:6379, or `local`: that of "
            "RAY_ADDRESS, or one that is started on this machine.",
        ),
    ] = None,
    trace: Annotated[
        Literal["all", "failures", "none"] | None,
        _how(help="Episodes whose steps are kept, for `inspect` (default: the file's value, or none)."),
    ] = None,
    log_to: Annotated[
        object,
        _how(
            metavar="A,B",
            parser=_parse_trackers,
            help="Log to tensorboard, wandb, mlflow (an extra each) in the run's folder `tracking`.",
        ),
    ] = None,
    replay: Annotated[
        Path | None, _how(metavar="FILE", help="Send no request: all replies come from this record.")
    ] = None,
    resume: Annotated[bool, _how("--resume", help="Continue the run in the folder.")] = False,
    fresh: Annotated[bool, _how("--fresh", help="Delete the run in the folder and start again.")] = False,
    dry_run: Annotated[
        bool,
        _how(
            "--dry-run",
            help="Print what the run would cost, and write nothing: minutes, or of language models decisions, tokens, "
            "price and hours, where the planner decides; a model's decisions may differ.",
        ),
    ] = False,
) -> None:
    """Run an experiment and print its report.

    Every finished cell is on disk; --resume continues an interrupted run. Other options replace values of the file.
    """
    if resume and fresh:
        raise refuse("--resume", "should not be given with `--fresh`", "both")
    from drift_agents.cli.run import RunOptions, read_experiment, run
    from drift_agents.experiment.players import needs_model

    overrides: dict[str, object] = {}
    if seeds is not None:
        overrides["seeds"] = seeds
    if rounds is not None:
        overrides |= {"rounds": rounds, "episodes": None}
    if isinstance(schedules, tuple):
        overrides["schedules"] = schedules
    axes = {"memory": memory, "verifier": verifier, "policy": policy}
    played = read_experiment(
        experiment,
        overrides=overrides,
        axes={axis: names for axis, names in axes.items() if isinstance(names, tuple)},
        models=model if isinstance(model, tuple) else (),
        base_url=base_url,
        settings=set_ or (),
    )
    for option, value in (("--model", model), ("--base-url", base_url), ("--replay", replay)):
        if value is not None and not needs_model(played):
            given = ",".join(value) if isinstance(value, tuple) else str(value)
            raise refuse(option, "should stand with `--policy llm`: no policy of this run has a model", given)
    if dry_run:
        from drift_agents.cli.dry_run import print_cost

        print_cost(played, jobs, make_console(), verbosity_of(context))
        return
    options = RunOptions(
        out=out,
        jobs=jobs,
        ray=ray,
        trace=trace,
        trackers=log_to if isinstance(log_to, tuple) else (),
        resume=resume,
        fresh=fresh,
        replay=replay,
        words=context.obj,
        verbosity=verbosity_of(context),
    )
    run(played, options, make_console())
