"""The files of a submission: a folder, or a zip file of one.

* `Statement`, `PackageStatement` - the content of `submission.json`: hashes of all other files, packages, platform
* `NAMES` - the files of a submission; there is no other one
* `open_submission` - the folder of a submission; a zip file is unpacked into a temporary one
* `write_zip` - a folder as a zip file, equal bytes for equal files
* `hash_file`, `read_json`, `write_json`, `parse_model` - files of submissions, tracks, entries and results
"""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from drift_agents.errors import SubmissionError
from drift_agents.experiment.folder import EPISODES, FINISHED, MANIFEST, REPLIES, write_text

STATEMENT = "submission.json"
NAMES = (STATEMENT, MANIFEST, EPISODES, FINISHED, REPLIES)
"""The files of a submission; recorded replies are there if language models played."""

MOST_BYTES = 2**31
"""The most bytes of a submission, unpacked."""
MOST_JSON = 2**26
"""The most bytes of a JSON file, which is read as a whole."""

_BLOCK = 2**20
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time of a zip file: equal files give equal bytes

Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=80)]
"""Names of tracks, agents and results, which are names of files."""


class StrictModel(BaseModel):
    """The content of a file, which holds these keys and no others."""

    model_config = ConfigDict(frozen=True, extra="forbid")


Parsed = TypeVar("Parsed", bound=BaseModel)


class PackageStatement(StrictModel):
    """A package whose parts played.

    Args:
        name: as it is installed by.
        version: the installed version.
        parts: the parts, as in `memory: newest`.
        sha256: over the files of its modules, see `drift_agents.submission.prepare.hash_modules`.
    """

    name: str = Field(min_length=1, max_length=200)
    version: str = Field(min_length=1, max_length=100)
    parts: tuple[str, ...]
    sha256: Hash


class Statement(StrictModel):
    """The content of `submission.json`; its hash is the digest of the submission.

    Args:
        format: the number of the format.
        about: one sentence by the participant.
        packages: other packages whose parts played.
        platform: where the submission was prepared.
        files: the SHA-256 of every other file.
    """

    format: Literal[2] = 2
    about: str = Field(default="", max_length=500)
    packages: tuple[PackageStatement, ...] = ()
    platform: dict[str, str]
    files: dict[str, Hash]


def describe_platform() -> dict[str, str]:
    """Operating system, processor and interpreter of this process, without the name of the machine."""
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }


@contextmanager
def open_submission(path: Path) -> Iterator[Path]:
    """The folder of a submission.

    Args:
        path: the folder, or a zip file, which is unpacked into a temporary folder.

    Raises:
        SubmissionError: if there is none, or the zip file holds anything but the files of a submission.
    """
    if path.is_dir():
        yield path
        return
    with TemporaryDirectory(prefix="drift-submission-") as scratch:
        folder = Path(scratch)
        _unpack(path, folder)
        yield folder


def _unpack(path: Path, folder: Path) -> None:
    """Unpack a zip file: the known names alone, each once, and no more bytes than are allowed.

    The sizes that the file states are not used: bytes are counted while they are unpacked. All other names, so those
    with a folder too, are refused, and contents are written to new files, so that links have no effect.
    """
    try:
        with zipfile.ZipFile(path) as packed:
            names = [entry.filename for entry in packed.infolist()]
            for name in names:
                if name not in NAMES:
                    raise SubmissionError(f"{path}: should hold only {', '.join(NAMES)}. Received {name[:100]!r}")
                if names.count(name) > 1:
                    raise SubmissionError(f"{path}: should hold every file once. Received {name!r} twice")
            left = MOST_BYTES
            for entry in packed.infolist():
                if entry.flag_bits & 1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise SubmissionError(f"{path}: {entry.filename}: should be stored or deflated, not encrypted")
                with packed.open(entry) as source, open(folder / entry.filename, "xb") as target:
                    while block := source.read(_BLOCK):
                        left -= len(block)
                        if left < 0:
                            raise SubmissionError(f"{path}: should unpack to at most {MOST_BYTES:,} bytes")
                        target.write(block)
    except FileNotFoundError as error:
        raise SubmissionError(f"{path}: there is no such folder or file") from error
    except SubmissionError:
        raise
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as error:
        raise SubmissionError(f"{path}: is neither a folder nor a zip file that can be unpacked: {error}") from error


def write_zip(folder: Path, path: Path) -> None:
    """Write the files of a submission as a zip file; equal files give equal bytes.

    Args:
        folder: the submission.
        path: the zip file.

    Raises:
        OSError: if it cannot be written.
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in (name for name in NAMES if (folder / name).is_file()):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            entry.create_system = 3  # the same on every system
            with open(folder / name, "rb") as source, packed.open(entry, "w", force_zip64=True) as target:
                shutil.copyfileobj(source, target)


def hash_file(path: Path) -> str:
    """The SHA-256 of a file, read in blocks.

    Raises:
        SubmissionError: if it cannot be read, or is a link or a folder.
    """
    digest = hashlib.sha256()
    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise SubmissionError(f"{path}: should be a file, no link and no folder")
        with open(path, "rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    except OSError as error:
        raise SubmissionError(f"{path}: cannot be read: {error.strerror}") from error
    return digest.hexdigest()


def read_json(path: Path) -> Any:
    """The content of a JSON file of bounded size.

    Raises:
        SubmissionError: if it cannot be read, is too large, or is not JSON.
    """
    try:
        if path.stat().st_size > MOST_JSON:
            raise SubmissionError(f"{path}: should have at most {MOST_JSON:,} bytes")
        return json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise SubmissionError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise SubmissionError(f"{path}: is not JSON: {error}") from error


def write_json(path: Path, model: BaseModel) -> None:
    """Write a model as JSON; values that are not given are left out.

    Raises:
        ExperimentError: if the file cannot be written.
    """
    write_text(path, model.model_dump_json(indent=2, exclude_none=True) + "\n", make_folder=True)


def parse_model(model: type[Parsed], data: Any, where: Path) -> Parsed:
    """Plain data as a pydantic model.

    Args:
        model: the model.
        data: what the file holds.
        where: the file, for messages.

    Raises:
        SubmissionError: with everything that is wrong, one finding a line.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        lines = [
            f"{where}: {'.'.join(map(str, found['loc'])) or 'content'}: {found['msg']}. "
            f"Received {str(found['input'])[:80]!r}"
            for found in error.errors()
        ]
        raise SubmissionError("\n".join(lines)) from error
