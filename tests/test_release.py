"""Metadata, and the files from which releases are made, agree with each other."""

from __future__ import annotations

import configparser
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import drift_agents
import pytest
import yaml

import drift_envs

ROOT = Path(__file__).resolve().parent.parent
CONFIG = configparser.ConfigParser()
CONFIG.read(ROOT / "setup.cfg")


def test_there_is_one_version():
    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {drift_agents.__version__, cff["version"]} == {drift_envs.__version__}
    assert cff["license"] == CONFIG["metadata"]["license"]
    assert [author["name"] for author in cff["authors"]] == [CONFIG["metadata"]["author"]]


@pytest.mark.parametrize("package", ["drift_envs", "agents/drift_agents", "webshop_server"])
def test_types_are_published(package):
    assert (ROOT / package / "py.typed").exists()
    assert "py.typed" in CONFIG["options.package_data"][Path(package).name]


@pytest.mark.integration
def test_the_source_distribution_has_everything_that_git_tracks(tmp_path):
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    source = tmp_path / "source"
    for name in tracked:
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    code = "from setuptools.build_meta import build_sdist; build_sdist('dist')"
    subprocess.run([sys.executable, "-c", code], cwd=source, capture_output=True, check=True)
    (archive,) = (source / "dist").glob("*.tar.gz")
    with tarfile.open(archive) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    missing = {name for name in tracked if (ROOT / name).is_file()} - names
    assert missing <= {".gitignore", ".dockerignore"}


def test_the_workflows_and_the_image_name_what_exists():
    release = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))
    assert release["jobs"]["publish"]["permissions"] == {"id-token": "write"}
    versions = {line.rpartition(":: ")[2] for line in CONFIG["metadata"]["classifiers"].splitlines() if ":: 3." in line}
    assert set(release["jobs"]["try"]["strategy"]["matrix"]["python"]) == versions
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    instructions = [line.split()[0] for line in image.splitlines() if re.match(r"[A-Z]+ ", line)]
    assert instructions[0] == "FROM"
    assert set(instructions) <= {"FROM", "WORKDIR", "COPY", "RUN", "USER", "EXPOSE", "CMD"}
    assert instructions.index("USER") < instructions.index("CMD")  # not as root
    for extra in re.search(r"\.\[([a-z,]+)\]", image).group(1).split(","):
        assert extra in CONFIG["options.extras_require"]
    assert (ROOT / ".ci" / "try-wheel").stat().st_mode & 0o111


def test_the_lock_file_has_what_ci_installs():
    """Every requirement of the extra `dev` and of the core has a version; `make lock` makes the file again."""
    lines = (ROOT / ".ci" / "requirements.lock").read_text(encoding="utf-8").splitlines()
    locked = [re.match(r"([a-z0-9.-]+)==\S+(?: ; .+)?$", line) for line in lines if not line.startswith("#")]
    assert all(locked)
    names = {found[1] for found in locked}
    extras = CONFIG["options.extras_require"]
    wanted = "\n".join((CONFIG["options"]["install_requires"], extras["dev"], extras["agents"], extras["test"]))
    for line in filter(None, wanted.splitlines()):
        if not line.startswith(("#", "drift-envs")):
            assert re.split(r"[\[<>=;! ]", line)[0].lower() in names, f"{line}: run `make lock`"
