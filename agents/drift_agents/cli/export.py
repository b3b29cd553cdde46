"""The command `drift-agents export-stepmft`.

* `add_export_commands` - it, with its options
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from drift_agents.analysis.finetuning_sets import export


def add_export_commands(commands: Any, common: argparse.ArgumentParser) -> None:
    """Add the command.

    Args:
        commands: the subparsers of the command line.
        common: options that every command has.
    """
    stepmft = commands.add_parser(
        "export-stepmft",
        parents=[common],
        help="write a fine-tuning set for making strategies",
        description="Write the strategies of a run as a fine-tuning set in chat format (AdaMEM's STEP-MFT): those of "
        "successful episodes that changed the action. The run was played with --trace all and the controller "
        "adamem, effort high.",
        epilog="example: drift-agents export-stepmft runs/inertia --out data.jsonl",
    )
    stepmft.add_argument("folder", type=Path, metavar="DIR", help="the run's folder")
    stepmft.add_argument("--out", type=Path, metavar="FILE", required=True, help="the file, a sample a line")
    stepmft.add_argument(
        "--outcome-only",
        action="store_true",
        help="the set to compare with: strategies of all successful episodes, drawn down to the same number",
    )
    stepmft.set_defaults(command=_export)


def _export(options: argparse.Namespace) -> None:
    kept, made = export(options.folder, options.out, options.outcome_only)
    print(f"wrote {options.out}: {kept} of {made} strategies")
