"""From the folder of a finished run to a submission.

* `prepare_submission` - copies the files of a run and states what they are
* `state_packages` - the other packages whose parts an experiment names
* `hash_modules` - one hash for all files of a package's modules
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from drift_agents.errors import SubmissionError
from drift_agents.experiment.config import Experiment
from drift_agents.experiment.folder import EPISODES, FINISHED, MANIFEST, REPLIES, read_manifest
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.packages import find_packages
from drift_agents.submission.bundle import (
    NAMES,
    STATEMENT,
    PackageStatement,
    Statement,
    describe_platform,
    state_file,
    write_json,
    write_zip,
)
from drift_agents.submission.line_values import count_lines
from drift_agents.submission.validate import check_submission

ZIP = ".zip"


def prepare_submission(run: Path, out: Path, *, replies: Path | None = None, about: str = "") -> Statement:
    """Make a submission of a finished run, and check it as a stranger would.

    Args:
        run: the run's folder.
        out: the submission: a folder, or a zip file if the name ends in `.zip`; it must not exist.
        replies: recorded replies of language models, where the run has them elsewhere than in its folder.
        about: one sentence.

    Returns:
        What `submission.json` states.

    Raises:
        SubmissionError: if the run is not finished, would not pass `validate`, or files cannot be written.
        ExperimentError: if the folder holds no run, or an agent's package is not installed.
    """
    manifest = read_manifest(run)
    for name in (EPISODES, FINISHED):
        if not (run / name).is_file():
            raise SubmissionError(f"{run}: the run is not finished, {name} is missing. Continue it with --resume")
    if out.exists():
        raise SubmissionError(f"{out}: exists already; choose another place with --out")
    experiment = parse_experiment(manifest["experiment"], str(run / MANIFEST))
    recorded = replies or run / REPLIES
    sources = {name: run / name for name in (MANIFEST, EPISODES, FINISHED)}
    if replies is not None or recorded.is_file():
        sources[REPLIES] = recorded
    with TemporaryDirectory(prefix="drift-submission-") as scratch:
        folder = Path(scratch) / "submission"
        try:
            folder.mkdir()
            for name, source in sources.items():
                shutil.copyfile(source, folder / name)
        except OSError as error:
            raise SubmissionError(f"{error.filename}: cannot be copied: {error.strerror}") from error
        statement = Statement(
            name=experiment.name,
            about=about,
            config_hash=manifest["config_hash"],
            versions=manifest["versions"],
            packages=state_packages(experiment),
            platform=describe_platform(),
            counts=count_lines(folder / EPISODES, cells=manifest["cells"]),
            files={name: state_file(folder / name) for name in NAMES if name in sources},
        )
        write_json(folder / STATEMENT, statement.model_dump(mode="json"))
        findings = check_submission(folder).findings
        if findings:
            raise SubmissionError("\n".join([f"{run}: would not pass `validate`:", *findings]))
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            if out.suffix == ZIP:
                write_zip(folder, out)
            else:
                shutil.copytree(folder, out)
        except OSError as error:
            raise SubmissionError(f"{out}: cannot be written: {error.strerror}") from error
    return statement


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
        origin = Path(spec.origin)
        root = origin.parent if spec.submodule_search_locations else origin
        for path in sorted(_files(root)):
            name = f"{module}/{path.relative_to(root.parent if root == path else root).as_posix()}"
            digest.update(f"{name}\0{state_file(path).sha256}\n".encode())
    return digest.hexdigest()


def _files(root: Path) -> Iterable[Path]:
    if root.is_file():
        return [root]
    return (path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
