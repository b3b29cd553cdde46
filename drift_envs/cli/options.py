"""Arguments and options that several commands of `drift-envs` share."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from drift_envs.errors import UnknownChoiceError

LARGEST = 1_000_000
"""The largest count, where no other limit is stated."""

MOST_PHASES = 1000


def _complete_ids(incomplete: str) -> list[str]:
    from drift_envs.registration import IDS

    return [name for name in IDS if name.startswith(incomplete)]


def _complete_schedules(incomplete: str) -> list[str]:
    from drift_envs.schedule import shipped_schedules

    return [name for name in shipped_schedules() if name.startswith(incomplete)]


def _parse_id(text: str) -> str:
    from drift_envs.envs.make import check_id

    try:
        check_id(text)
    except UnknownChoiceError as error:
        raise typer.BadParameter(str(error)) from None
    return text


def id_option(text: str) -> Any:
    """An option that takes an id of this package."""
    return typer.Option(metavar="ID", parser=_parse_id, autocompletion=_complete_ids, help=text)


def count_option(text: str, most: int = LARGEST) -> Any:
    """An option that takes a whole number from 1 to a limit."""
    return typer.Option(min=1, max=most, metavar="N", help=text)


def _schedule_option(text: str) -> Any:
    return typer.Option("--schedule", metavar="NAME", autocompletion=_complete_schedules, help=text)


def schedules_argument(metavar: str, text: str) -> Any:
    """An argument that takes shipped schedules or files."""
    return typer.Argument(metavar=metavar, autocompletion=_complete_schedules, help=text)


Id = Annotated[
    str,
    typer.Argument(metavar="ID", parser=_parse_id, autocompletion=_complete_ids, help="Id, as in DriftFrozenLake-v0."),
]
GymnasiumId = Annotated[
    str,
    typer.Argument(
        metavar="ID|NAME",
        autocompletion=_complete_ids,
        help="Id, as in DriftFrozenLake-v0, with --schedule that of any environment of Gymnasium; or a shipped "
        "schedule, or path of a file, for the environment that it names.",
    ),
]
Name = Annotated[str, schedules_argument("NAME", "Shipped schedule, or path of a file.")]
NameOrId = Annotated[
    str | None,
    schedules_argument("[NAME|ID]", "Shipped schedule, path of a file, or id, of which it is the default schedule."),
]
ScheduleOption = Annotated[
    str | None, _schedule_option("Shipped schedule, or path of a file (default: that of the id).")
]
ShownScheduleOption = Annotated[
    str | None, _schedule_option("Shipped schedule, or path of a file, for the environment ID.")
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, max=2**63 - 1, metavar="N", help="Seed of the instance.")]
EnvOption = Annotated[
    str | None, typer.Option("--env", metavar="ID", help="Environment, for a schedule that names none.")
]


def import_all(names: list[str] | None) -> list[str]:
    """Import modules, and let those of folders be imported; they are searched after all others."""
    from drift_envs.envs.make import folder_of

    for name in names or ():
        if Path(name).is_dir():
            sys.path.append(str(Path(name).resolve()))
            continue
        try:
            import_module(name)
        except Exception as error:  # whatever a module raises when it is imported
            text = f"{type(error).__name__}: {error}"
            place = folder_of(name, ".") if isinstance(error, ModuleNotFoundError) else None
            option = f"; it stands in a folder: `--import {place}`" if place else ""
            raise typer.BadParameter(
                f"should be a folder, or a module that can be imported. Received {name!r} ({text}){option}",
                param_hint="--import",
            ) from error
    return names or []


ImportOption = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        metavar="MODULE|DIR",
        callback=import_all,
        help="Import the module that `env: MODULE:ID` names, or find it in a folder. This runs its code.",
    ),
]
