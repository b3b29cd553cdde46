"""From the folder of a finished run to a submission.

* `prepare_submission` - copies the files of a run and states their hashes
* `state_packages` - the other packages whose parts an experiment names
* `hash_modules` - one hash for all files of a package's modules
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from drift_agents.errors import SubmissionError
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.folder import EPISODES, FINISHED, MANIFEST, REPLIES, read_manifest
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.packages import find_packages
from drift_agents.submission.bundle import (
    STATEMENT,
    PackageStatement,
    Statement,
    describe_platform,
    hash_file,
    write_json,
    write_zip,
)
from drift_agents.submission.validate import Checked, check_submission


def prepare_submission(run: Path, out: Path, *, replies: Path | None = None, about: str = "") -> Checked:
    """Make a submission of a finished run, and check it as a stranger would.

    Args:
        run: the run's folder.
        out: the submission: a folder, or a zip file if the name ends in `.zip`; it must not exist.
        replies: recorded replies of language models, where the run has them elsewhere than in its folder.
        about: one sentence.

    Returns:
        What the check found; its folder is gone.

    Raises:
        SubmissionError: if the run is not finished, would not pass `validate`, or files cannot be written.
        ExperimentError: if the folder holds no run, or an agent's package is not installed.
    """
    experiment = parse_experiment(read_manifest(run)["experiment"], str(run / MANIFEST))
    for name in (EPISODES, FINISHED):
        if not (run / name).is_file():
            raise SubmissionError(f"{run}: the run is not finished, {name} is missing. Continue it with --resume")
    if out.exists():
        raise SubmissionError(f"{out}: exists already; choose another place with --out")
    sources = {name: run / name for name in (MANIFEST, EPISODES, FINISHED)}
    if replies is not None or (run / REPLIES).is_file():
        sources[REPLIES] = replies or run / REPLIES
    with TemporaryDirectory(prefix="drift-submission-") as scratch:
        folder = Path(scratch) / "submission"
        try:
            folder.mkdir()
            for name, source in sources.items():
                shutil.copyfile(source, folder / name)
        except OSError as error:
            raise SubmissionError(f"{error.filename}: cannot be copied: {error.strerror}") from error
        statement = Statement(
            about=about,
            packages=state_packages(experiment),
            platform=describe_platform(),
            files={name: hash_file(folder / name) for name in sources},
        )
        write_json(folder / STATEMENT, statement)
        checked = check_submission(folder)
        if checked.findings:
            raise SubmissionError("\n".join([f"{run}: would not pass `validate`:", *checked.findings]))
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            if out.suffix == ".zip":
                write_zip(folder, out)
            else:
                shutil.copytree(folder, out)
        except OSError as error:
            raise SubmissionError(f"{out}: cannot be written: {error.strerror}") from error
    return checked


def state_packages(experiment: Experiment) -> tuple[PackageStatement, ...]:
    """The other packages whose parts an experiment names, with the hash of their installed files.

    Args:
        experiment: a checked experiment.
    """
    return tuple(
        PackageStatement(
            name=package.name,
            version=package.version,
            parts=package.parts,
            sha256=hash_modules(package.modules),
        )
        for package in find_packages(experiment)
    )


def hash_modules(modules: Sequence[str]) -> str:
    """One SHA-256 for all files of some modules: their relative paths and contents, without compiled files.

    Args:
        modules: names of top-level modules.

    Raises:
        SubmissionError: if one of them is not installed or has no files.

    Example:
        >>> hash_modules(["drift_agents"]) == hash_modules(["drift_agents"])
        True
    """
    digest = hashlib.sha256()
    for module in sorted(modules):
        spec = find_spec(module)
        if spec is None or spec.origin is None:
            raise SubmissionError(f"{module}: should be an installed module with files")
        root = Path(spec.origin).parent
        files = root.rglob("*") if spec.submodule_search_locations else [Path(spec.origin)]
        for path in sorted(path for path in files if path.is_file() and "__pycache__" not in path.parts):
            name = f"{module}/{path.relative_to(root).as_posix()}"
            digest.update(f"{name}\0{hash_file(path)}\n".encode())
    return digest.hexdigest()
