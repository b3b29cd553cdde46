"""A finished run in Python: its frame, and what notebooks show of runs and episodes."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from drift_agents import load_run
from drift_agents.analysis.run import Run
from drift_agents.experiment.loader import parse_experiment
from drift_agents.experiment.runner import run_experiment
from drift_agents.types import AgentClock, Episode, Experience, Outcome, StepTrace, Verdict

EVIL = '<script>alert("x")</script> & <b>'
COLOURS = re.compile(r"color|background|#[0-9a-f]{3,6}\b|<style", re.IGNORECASE)


class Balanced(HTMLParser):
    """Collects tags that are not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)
        if tag not in ("br", "wbr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check(html: str) -> set[str]:
    """The tags of balanced HTML without colours of its own, which would be unreadable on a light or a dark page."""
    parser = Balanced()
    parser.feed(html)
    assert not parser.open
    assert not COLOURS.search(html)
    assert "script" not in parser.tags
    return parser.tags


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    data = {"name": "small", "about": EVIL, "schedules": ["frozen_lake/implicit"], "seeds": 2, "rounds": 2}
    agents = {"memory": ["none", "vanilla"], "verifier": ["none", "glove"], "policy": "planner"}
    folder = tmp_path_factory.mktemp("runs") / "small"
    run_experiment(parse_experiment({**data, "agents": agents}), folder, jobs=1)
    return load_run(folder)


def test_the_frame_is_the_log(run: Run) -> None:
    frame = run.frame()
    assert len(frame) == len(run.rows) == 3 * 2 * 2 * 2
    assert list(frame.columns) == list(run.rows[0])
    for name in frame.columns:
        for value, row in zip(frame[name], run.rows, strict=True):
            assert value == row[name] or row[name] is None or isinstance(row[name], float)
    means = frame[frame["stage"] == "test"].groupby(["memory", "verifier", "phase"], sort=False)["score"].mean()
    here = [row["score"] for row in run.rows if (row["verifier"], row["phase"]) == ("glove", "reversal")]
    assert means["vanilla", "glove", "reversal"] == pytest.approx(sum(here) / len(here))
    assert frame["regret"].dtype == float


def test_a_run_is_shown_as_its_report(run: Run) -> None:
    html = run._repr_html_()
    assert {"table", "details", "li"} <= check(html)
    assert "frozen_lake/implicit" in html
    assert "small" in repr(run)
    assert len(repr(run)) < 300, "rows are not printed"


def test_an_episode_is_shown_with_its_steps() -> None:
    def step(number: int, surprise: bool) -> StepTrace:
        seen = Experience(EVIL, EVIL, Outcome(EVIL, 0.5, False), 0.5, AgentClock(0, number))
        return StepTrace(seen, "prompt", "reply", (), Verdict(surprise=surprise, realigned=surprise))

    short = Episode(EVIL, 0.5, 2, True, trace=(step(0, False), step(1, True)))
    html = short._repr_html_()
    check(html)
    assert html.count("<tr>") == 3
    assert html.count("surprise, realigned") == 1
    assert "<script" not in html
    assert "more" not in html
    long = Episode("walk", 1.0, 130, False, trace=tuple(step(number, False) for number in range(130)))
    assert long._repr_html_().count("<tr>") == 101
    assert "and 30 more" in long._repr_html_()
    check(Episode("walk", 1.0, 130, False)._repr_html_())
