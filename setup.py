"""The packages of three folders, of which `find:` in `setup.cfg` can search only one; and the version of a build.

A build from a checkout whose commit has no tag of a release says which commit it is, as in `0.1.0+g1a2b3c4d`. A source
distribution keeps that in its `setup.cfg`.
"""

import subprocess
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).resolve().parent


def _git(*words: str) -> str:
    """What git prints, empty if it fails or is not installed."""
    try:
        done = subprocess.run(["git", *words], cwd=HERE, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def find_tag() -> str:
    """The addition to the version; empty for a release and outside of a checkout."""
    commit = _git("rev-parse", "--short=8", "HEAD") if (HERE / ".git").exists() else ""
    if not commit or _git("describe", "--exact-match", "--match", "v*", "HEAD"):
        return ""
    return f"+g{commit}{'.changed' if _git('status', '--porcelain', '--untracked-files=no') else ''}"


if __name__ == "__main__":
    ours = find_packages(include=["drift_envs*", "webshop_server*"])
    tag = find_tag()
    options = {"egg_info": {"tag_build": tag}} if tag else {}
    setup(packages=["drift_schedules", *ours, *find_packages("agents")], options=options)
