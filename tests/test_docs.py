"""Every document: its links lead somewhere, and what it shows works when it is pasted alone."""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import yaml
from drift_agents.experiment.config import Agents, Experiment
from drift_agents.experiment.loader import parse_experiment

from drift_envs import DriftWrapper, load_schedule
from drift_envs.envs.make import knob_table_of
from tests.core_ids import CORE_IDS
from tests.documents import read_code, run_code

ROOT = Path(__file__).resolve().parent.parent
OURS = {"drift_agents", "drift_envs", "research", "webshop_server"}
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ +(.+?)\s*$", without_code(page.read_text(encoding="utf-8")), re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        number = 1
        while slug in found:
            slug, number = f"{slug.removesuffix(f'-{number - 1}')}-{number}", number + 1
        found.add(slug)
    return found


def test_pages_named_in_code_exist() -> None:
    code = [
        path
        for folder in ("agents", "drift_envs", "research", "webshop_server")
        for path in (ROOT / folder).rglob("*.py")
    ]
    named = {found for path in code for found in re.findall(r"`(docs/[\w/]+\.md)`", path.read_text(encoding="utf-8"))}
    assert named
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    text = without_code(page.read_text(encoding="utf-8"))
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), f"a link to {target}"
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path), f"a link to {target}#{anchor}"


def examples(language: str) -> list[Any]:
    """The code blocks of a language in all pages, without the Python of recipes, which tests/test_recipes.py runs."""
    found = []
    for page in PAGES:
        if language == "python" and page.parent.name == "recipes":
            continue
        blocks = enumerate(read_code(page, language))
        found += [pytest.param(block, id=f"{name_of(page)}-{number}") for number, block in blocks]
    return found


@contextmanager
def skipped_without_an_extra() -> Iterator[None]:
    """Skip an example that needs a library of an extra; the tests of that extra run it."""
    try:
        yield
    except (ImportError, gym.error.DependencyNotInstalled) as error:
        if (getattr(error, "name", None) or "").split(".")[0] in OURS:
            raise
        pytest.skip(str(error))


@pytest.mark.integration
@pytest.mark.parametrize("code", examples("python"))
def test_examples_run_alone(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with skipped_without_an_extra():
        if code.startswith(">>>"):
            example = doctest.DocTestParser().get_doctest(code, {}, "example", None, None)
            assert doctest.DocTestRunner().run(example).failed == 0
        else:
            run_code(code)


def completed(part: dict[str, Any]) -> dict[str, Any]:
    """An experiment around a part of one: some of its keys, or some of those of its agents."""
    agents = {key: part[key] for key in Agents.model_fields if key in part}
    rest = {key: value for key, value in part.items() if key not in agents}
    return {
        "name": "part",
        "schedules": list(rest.get("environments", {})) or ["frozen_lake/explicit:family"],
        "agents": {"memory": "vanilla", "policy": "planner", **agents},
        "seeds": 1,
        **({} if "episodes" in rest else {"rounds": 5}),
        **rest,
    }


@pytest.mark.parametrize("text", examples("yaml"))
def test_files_are_valid(text: str, tmp_path: Path) -> None:
    data = yaml.safe_load(text)
    if "apiVersion" in data:
        return  # a cluster's file; that it is YAML is all that can be tested here
    if set(data) <= {*Experiment.model_fields, "train", *Agents.model_fields}:
        parse_experiment(completed(data))
        return
    assert data.get("version") == 1 or "extends" in data, "a schedule or an experiment file, as a whole"
    path = tmp_path / "example.yaml"
    path.write_text(text, encoding="utf-8")
    env_id = data.get("env", "DriftFrozenLake-v0")
    with skipped_without_an_extra():
        if env_id in CORE_IDS:
            load_schedule(path, table=knob_table_of(env_id))
        else:
            DriftWrapper(gym.make(env_id), path).reset(seed=0)
