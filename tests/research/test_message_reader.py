"""Policies that read the messages of a language model: what they parse, and how they play."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drift_agents.analysis.report import write_report
from drift_agents.errors import ArgumentError
from drift_agents.experiment.loader import load_experiment, parse_experiment
from drift_agents.experiment.logs import read_rows
from drift_agents.experiment.runner import Progress, run_experiment
from drift_agents.llm.base import Message
from drift_agents.llm.service import Service
from drift_agents.policy.llm import LanguageModelPolicy
from drift_agents.policy.messages import FACTS_FORMATS
from drift_agents.prompt.lessons import Trajectory, render_trajectory
from drift_agents.prompt.view import PromptView, Recollection
from drift_agents.registry.tables import MEMORIES, VERIFIERS
from drift_agents.types import Outcome

from research.experiments.readers import (
    CAUTIOUS,
    EAGER,
    TEMPERS,
    ErringReader,
    ForgetfulReader,
    MessageModel,
    MessageReader,
    read_text,
)
from research.readers import find_experiment
from tests.research.parts import READER

TASK = (
    "You walk over a frozen lake of 6 rows x 6 columns, from [0, 0]. Reach the destination with the highest score and "
    "avoid holes. There are a total of 1 destination(s): [5, 5]. The highest score is 1. "
    "Actions: 0 left, 1 down, 2 right, 3 up."
)


def tile(row: int, column: int, kind: str = "F", score: str = "0") -> str:
    return f'{{"cur_pos": [{row}, {column}], "tile_type": "{kind}", "gold_collected": {score}}}'


def recall(action: str, after: str, ahead: float, steps: int | None, ended: bool = False) -> Recollection:
    outcome = Outcome(after, ahead if ended else 0.0, ended)
    return Recollection(tile(2, 2), action, outcome, 1.0, 7, False, ahead, 1.0, steps)


VIEW = PromptView(
    TASK,
    tile(2, 2),
    ("0", "1", "2", "3"),
    (
        recall("0", tile(2, 1), 1.0, 9),
        recall("1", tile(3, 2, "H"), 0.0, None, ended=True),
        recall("2", tile(2, 3), 1.0, 4),
    ),
    step=20,
    visits=(("0", 2),),
    environment="frozen_lake",
)


def text_of(view: PromptView, form: str) -> str:
    policy = LanguageModelPolicy(MessageModel(), format=form)
    return "\n".join(message.content for message in policy.messages(view))


@pytest.mark.parametrize(
    ("form", "scores", "steps"),
    [
        ("brief", {"0": 1.0, "1": 0.0, "2": 1.0}, {"0": 9, "1": 0, "2": 4}),
        ("ranked", {"0": 1.0, "1": 0.0, "2": 1.0}, {"0": 9, "1": 0, "2": 4}),
        ("raw", {"0": 0.0, "1": 0.0, "2": 0.0}, {"0": 0, "1": 0, "2": 0}),
        ("paper", {"0": 1.0, "1": 0.0, "2": 1.0}, {"0": 0, "1": 0, "2": 0}),
        ("react", {"0": 0.0, "1": 0.0, "2": 0.0}, {"0": 0, "1": 0, "2": 0}),
    ],
)
def test_outcomes_are_parsed_in_every_format(form: str, scores: dict[str, float], steps: dict[str, int]) -> None:
    read = read_text(text_of(VIEW, form), VIEW.actions)
    assert {known.action: known.score for known in read.known} == scores
    assert {known.action: known.steps for known in read.known} == steps
    assert [known.action for known in read.known if known.ended] == ["1"]
    assert read.times("0") == (2 if form in FACTS_FORMATS else 0)


def test_steps_to_go_decide_between_equal_scores() -> None:
    reader = MessageReader()
    assert reader.decide(VIEW, np.random.default_rng(0)).text == "2"


def test_without_steps_the_order_of_the_messages_decides() -> None:
    texts = [
        MessageReader(format="paper", ties=ties).decide(VIEW, np.random.default_rng(0)).text
        for ties in ("first", "last")
    ]
    assert texts == ["0", "2"]


def test_an_erring_reader_answers_with_another_action() -> None:
    policy = ErringReader(err=1.0)
    assert policy.decide(VIEW, np.random.default_rng(0)).text != "2"


def test_a_forgetful_reader_overlooks_outcomes() -> None:
    policy = ForgetfulReader(forget=0.5)
    texts = {policy.decide(VIEW, np.random.default_rng(seed)).text for seed in range(30)}
    assert len(texts) > 1


@pytest.mark.parametrize(
    ("made", "options"),
    [
        (MessageReader, {"ties": "best"}),
        (MessageReader, {"temper": "bold"}),
        (MessageReader, {"format": "haiku"}),
        (ForgetfulReader, {"forget": 1}),
        (ErringReader, {"err": 2}),
    ],
)
def test_invalid_options_are_refused(made: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        made(**options)


def test_other_messages_are_answered_by_untried_actions() -> None:
    schema = {"title": "action", "properties": {"action": {"enum": ["a", "b"]}}}
    assert MessageModel().complete([Message("user", "Any environment.")], schema).data == {"action": "a"}


def play(tmp_path: Path, schedule: str, **rest: Any) -> list[dict[str, Any]]:
    data = {"name": "read", "schedules": [schedule], "seeds": 1, "rounds": 1, "trace": "none", **rest}
    return read_rows(run_experiment(parse_experiment(data), tmp_path / "run"))


SCHEDULES = ("frozen_lake/explicit:family", "mountain_car/reversed", "webshop/explicit")
OWN_SETUPS = ("managed", "consensus", "store")
"""Memories that wrap another one, need a team, or a store of another package."""
CONTROLS = ("oracle_realign", "oracle_reset")


def board(schedule: str) -> list[dict[str, Any]]:
    """Every memory, and every verifier on one memory: what an experiment file of a board names."""
    memories = [name for name in MEMORIES.names() if name not in OWN_SETUPS]
    verifiers = [name for name in VERIFIERS.names() if name not in CONTROLS]
    team = {"memory": "consensus", "team": {"edv": {"members": "planners"}}, "policy": READER}
    adamem = {"memory": "adamem", "controller": {"adamem": {"effort": "low"}}, "policy": READER}
    return [
        {"memory": memories, "verifier": ["none", "glove"], "policy": READER},
        {"memory": "vanilla", "verifier": verifiers, "policy": READER},
        {"memory": {"managed": {"addition": "strict", "deletion": "combined"}}, "policy": READER},
        adamem,
        *([team] if schedule.startswith("frozen_lake") else []),
    ]


@pytest.mark.integration
@pytest.mark.parametrize(
    ("schedule", "seeds", "rounds"),
    [
        (SCHEDULES[0], 1, 1),
        *(pytest.param(schedule, 1, 1, marks=pytest.mark.slow) for schedule in SCHEDULES[1:]),
        *(pytest.param(schedule, 3, 5, marks=pytest.mark.slow) for schedule in SCHEDULES),
    ],
)
def test_readers_play_with_every_memory_and_verifier(tmp_path: Path, schedule: str, seeds: int, rounds: int) -> None:
    rounds = 1 if "car" in schedule else rounds
    agents, nearer = board(schedule), {}
    if seeds == 1 and "car" in schedule:
        agents, nearer = [{**agents[0], "verifier": "glove"}], {"sweep": {"base.goal_position": [-0.1]}}
    rows = play(tmp_path, schedule, agents=agents, seeds=seeds, rounds=rounds, **nearer)
    played = {(row["memory"].partition("(")[0], row["verifier"]) for row in rows}
    assert {memory for memory, _ in played} >= set(MEMORIES.names()) - set(OWN_SETUPS)
    assert not any(row["invalid_actions"] or row["model_calls"] for row in rows)


@pytest.mark.slow
def test_a_reader_wins_with_ranked_facts_and_moves_in_circles_with_the_papers(tmp_path: Path) -> None:
    """Two development instances, the first ten rounds of every phase."""
    policies = [{READER: {"format": form}} for form in ("ranked", "paper")]
    agents = {"memory": "vanilla", "verifier": "glove", "policy": policies}
    rows = play(tmp_path, "frozen_lake/explicit:family", agents=agents, seeds=2, rounds=10)
    ranked, paper = ([row for row in rows if form in row["policy"]] for form in ("ranked", "paper"))
    successes = [float(np.mean([row["success"] for row in rows])) for rows in (ranked, paper)]
    shares = [sum(row["loop_steps"] for row in rows) / sum(row["steps"] for row in rows) for rows in (ranked, paper)]
    assert successes[0] >= successes[1] + 0.2, successes
    assert shares[0] < 0.05 < 0.5 < shares[1], shares


def measure_tempers(tmp_path: Path, schedule: str, **rest: Any) -> dict[tuple[str, str], tuple[float, float]]:
    """The success rate after the drifts, and the share of steps in loops, of each temper and verifier."""
    policies = [{READER: {"temper": temper}} for temper in TEMPERS]
    agents = {"memory": "vanilla", "verifier": "glove", "policy": policies}
    rows = [row for row in play(tmp_path, schedule, agents=agents, **rest) if row["phase"] != "source"]
    rows.sort(key=lambda row: (row["policy"], row["verifier"]))
    found: dict[tuple[str, str], tuple[float, float]] = {}
    for (policy, verifier), group in groupby(rows, lambda row: (row["policy"], row["verifier"])):
        several = list(group)
        loops = sum(row["loop_steps"] for row in several) / sum(row["steps"] for row in several)
        found[policy.partition("temper=")[2].rstrip(")"), verifier] = (
            float(np.mean([row["success"] for row in several])),
            loops,
        )
    return found


@pytest.mark.integration
def test_no_temper_moves_in_circles_after_a_drift(tmp_path: Path) -> None:
    found = measure_tempers(tmp_path, "frozen_lake/explicit:family", seeds=2, rounds=10)
    assert {temper for temper, _ in found} == set(TEMPERS)
    assert all(loops <= 0.1 for _, loops in found.values()), found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schedule", "seeds"),
    [
        ("frozen_lake/explicit:family", {"first": 1000, "count": 10}),
        ("webshop/explicit", {"first": 1000, "count": 10}),
        ("house/explicit", {"first": 1000, "count": 10}),
        ("tools/implicit:family", {"first": 1002, "count": 4}),  # the planner was debugged on 1000 and 1001
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_temper_reaches_most_of_oracle_realign(tmp_path: Path, schedule: str, seeds: dict[str, int]) -> None:
    """Held-out instances: 80 % of what the same reader reaches when memory is repaired at once, and few loops."""
    found = measure_tempers(tmp_path, schedule, seeds=seeds, rounds=20, references=["oracle_realign"])
    for (temper, verifier), (success, loops) in found.items():
        print(f"{schedule} {temper} {verifier}: success {success:.3f}, loops {loops:.3f}")
    for temper in TEMPERS:
        success, loops = found[temper, "glove"]
        assert success >= 0.8 * found[temper, "oracle_realign"][0] > 0, (temper, found)
        assert loops <= 0.1, (temper, found)


@pytest.mark.slow
def test_readers_reach_the_aims_on_held_out_instances(tmp_path: Path) -> None:
    """At least 80 % in the source phase; GLOVE at least 85 % of oracle reset after every drift; all environments."""
    rows = read_rows(run_experiment(load_experiment(find_experiment("readers")), tmp_path / "run"))
    success: dict[tuple[str, ...], float] = {}
    rows.sort(key=lambda row: (row["schedule"], row["verifier"], row["phase"]))
    for key, group in groupby(rows, lambda row: (row["schedule"], row["verifier"], row["phase"])):
        success[key] = float(np.mean([row["success"] for row in group]))
    assert {verifier for _, verifier, _ in success} >= {"glove", "oracle_reset"}
    for (schedule, verifier, phase), rate in success.items():
        if phase == "source":
            assert rate >= 0.8, (schedule, verifier)
        elif verifier == "glove":
            assert rate >= 0.85 * success[schedule, "oracle_reset", phase], (schedule, phase)


def way(*places: tuple[int, int], actions: str, score: float = 1.0, last: int = 15) -> str:
    states = tuple(tile(*place) for place in places)
    return render_trajectory(Trajectory(states, tuple(actions), score, True, last))


def test_a_reader_follows_the_way_of_a_lesson_from_where_it_stands() -> None:
    told = f"A way that worked. {way((1, 2), (2, 2), (2, 1), (3, 1), actions='101')} Keep to it."
    view = replace(VIEW, here=(), lessons=("Be careful.", told), visits=())
    (known,) = read_text(text_of(view, "ranked"), view.actions).lessons
    assert (known.action, known.outcome, known.score, known.steps) == ("0", "[2, 1], tile F", 1.0, 1)
    policy = MessageReader()
    assert policy.decide(view, np.random.default_rng(0)).text == "0"
    elsewhere = replace(view, state=tile(4, 4))
    assert read_text(text_of(elsewhere, "ranked"), view.actions).lessons == ()


@pytest.mark.parametrize(
    "change", [{"doubt_since": 16}, {"here": (recall("0", tile(2, 1, "H"), 0.0, None, ended=True),)}]
)
def test_a_lesson_that_no_longer_holds_is_not_followed(change: dict[str, Any]) -> None:
    """It is older than what contradicted memory, or its step is known to have ended an episode."""
    view = replace(VIEW, here=(), lessons=(way((2, 2), (2, 1), (3, 1), actions="01"),), visits=())
    policy = MessageReader()
    assert policy.decide(view, np.random.default_rng(0)).text == "0"
    assert policy.decide(replace(view, **change), np.random.default_rng(0)).text != "0"


def test_visits_of_outcomes_are_read_and_break_a_circle() -> None:
    here = (
        recall("1", tile(3, 2), 0.0, None)._replace(visits=3),
        recall("2", tile(2, 3), 0.0, None),
    )
    view = replace(VIEW, here=here, visits=())
    read = read_text(text_of(view, "ranked"), view.actions)
    assert {known.action: known.visits for known in read.known} == {"1": 3, "2": 0}
    reader = MessageReader()
    assert reader.decide(view, np.random.default_rng(0)).text == "2"
    fresh = replace(view, here=(here[0]._replace(visits=0), here[1]))
    assert reader.decide(fresh, np.random.default_rng(0)).text == "1", "as good, and first"


def test_a_hole_of_before_the_contradiction_is_tried_where_nothing_else_is_left() -> None:
    hole = recall("2", tile(2, 3, "H"), 0.0, None, ended=True)
    around = [recall(action, tile(2, 2), 0.0, None) for action in "013"]
    view = replace(VIEW, here=(hole, *around), visits=(("0", 1), ("1", 1), ("3", 1)))
    reader = MessageReader()
    assert reader.decide(replace(view, doubt_since=8), np.random.default_rng(0)).text == "2"
    assert reader.decide(replace(view, doubt_since=7), np.random.default_rng(0)).text != "2"


def fell(state: str, action: str, row: int, column: int, last: int) -> Recollection:
    return Recollection(state, action, Outcome(tile(row, column, "H"), 0.0, True), 1.0, last)


WALL = tuple(fell(tile(row, 2), "2", row, 3, 5 + row) for row in range(6))
"""A column of holes between the present position and the destination, seen at the steps 5 to 10."""


@pytest.mark.parametrize("form", ["brief", "ranked"])
@pytest.mark.parametrize(
    ("holes", "since", "words"),
    [
        (WALL, None, "All known ways are shut: each "),
        (WALL, 7, "they may be gone: the holes [0, 3], [1, 3].\n"),
        (WALL[1:], 7, ""),
        ((*WALL, Recollection(tile(2, 2), "2", Outcome(tile(2, 3), 0.0, False), 1.0, 12)), 7, ""),
    ],
)
def test_the_messages_say_whether_all_known_ways_are_shut(
    holes: tuple[Recollection, ...], since: int | None, words: str, form: str
) -> None:
    view = replace(VIEW, here=(recall("0", tile(2, 1), 0.0, None),), elsewhere=holes, doubt_since=since)
    assert words in f"{text_of(view, form)}\n"
    assert ("they may be gone" in text_of(view, form)) == ("gone" in words)
    assert read_text(text_of(view, form), view.actions).is_shut == bool(words)


def test_elsewhere_all_ways_are_shut_where_every_action_was_tried_in_vain() -> None:
    seen = tuple(Recollection('{"at": 1}', a, Outcome('{"at": 1}', 0.0, False), 1.0, n) for n, a in enumerate("ab"))
    view = PromptView("Go on. The highest score is 2.", '{"at": 1}', ("a", "b"), seen, step=9, doubt_since=1)
    shut = "All known ways from here are shut: every action was tried, and none is known to lead to a score."
    assert f"{shut} Last seen before the contradiction, so it may have changed: a.\n" in text_of(view, "ranked")
    for other in (seen[:1], (seen[0], seen[1]._replace(value_estimate=0.5))):
        assert shut not in text_of(replace(view, here=other), "ranked")
    assert "The best known score from here, 0.5, is below what the task can pay, 2.\n" in text_of(
        replace(view, here=other), "ranked"
    )


def decide(view: PromptView, temper: str) -> str:
    return MessageReader(temper=temper).decide(view, np.random.default_rng(0)).text


def test_a_content_reader_takes_the_best_known_score() -> None:
    view = replace(VIEW, here=(recall("0", tile(2, 1), 0.5, 3),), visits=())
    assert [decide(view, temper) for temper in TEMPERS] == ["1", "0", "1"]


def test_a_cautious_reader_believes_in_a_hole_until_all_known_ways_are_shut() -> None:
    """Two tiles from the destination, behind a hole of before the contradiction; the other tiles are visited often."""
    hole = fell(tile(5, 3), "2", 5, 4, 7)
    around = [("0", tile(5, 2)), ("3", tile(4, 3))]
    known = tuple(Recollection(tile(5, 3), a, Outcome(to, 0.0, False), 1.0, 6, visits=3) for a, to in around)
    view = replace(VIEW, state=tile(5, 3), here=(hole, *known), visits=(), doubt_since=8)
    assert [decide(view, temper) for temper in (EAGER, CAUTIOUS)] == ["2", "0"]
    shut = replace(view, elsewhere=(fell(tile(3, 5), "1", 4, 5, 6),))
    assert [decide(shut, temper) for temper in (EAGER, CAUTIOUS)] == ["2", "2"]


@pytest.mark.parametrize(("last", "choice"), [(3, "3"), (9, "2")])
def test_of_two_outcomes_about_a_tile_the_newer_one_counts(last: int, choice: str) -> None:
    """Once as a hole, entered from another tile at step 7, and once as ice, entered from here."""
    around = (("2", tile(2, 3), last, 0), ("0", tile(2, 1), 6, 4), ("1", tile(3, 2), 6, 4), ("3", tile(1, 2), 6, 0))
    known = tuple(Recollection(tile(2, 2), a, Outcome(to, 0.0, False), 1.0, n, visits=v) for a, to, n, v in around)
    view = replace(VIEW, here=known, elsewhere=(fell(tile(1, 3), "1", 2, 3, 7),), visits=())
    assert decide(view, CAUTIOUS) == choice


def test_of_buttons_without_score_those_of_before_the_contradiction_come_first() -> None:
    """What failed since then comes last, also where an old record of it is shown beside the new one."""
    seen = [("open", 3), ("knock", 5), ("open", 9), ("wait", 8)]
    lines = [f"- action {action} led to the hall. Seen once, last at step {last}." for action, last in seen]
    text = "\n".join(
        ["What was last seen before step 7 may not hold any more.", "What is known in this state:", *lines]
    )
    schema = {"title": "action", "properties": {"action": {"enum": ["wait", "open", "knock"]}}}
    for ties in ("first", "last"):
        assert MessageModel(ties=ties).complete([Message("user", text)], schema).data == {"action": "knock"}


@pytest.mark.parametrize("form", FACTS_FORMATS)
def test_a_worked_example_changes_nothing_that_a_reader_parses(form: str) -> None:
    shown, plain = (
        "\n".join(
            message.content
            for message in LanguageModelPolicy(MessageModel(), format=form, examples=examples).messages(VIEW)
        )
        for examples in (True, False)
    )
    assert "Example." in shown
    assert "Example." not in plain
    assert read_text(shown, VIEW.actions)._replace(text="") == read_text(plain, VIEW.actions)._replace(text="")


class Tempers(Service):
    """Readers in the place of models, each by the name of its temper."""

    def model(self, name: str, base_url: str | None = None, form: str = "auto", price: object = None) -> MessageModel:
        return MessageModel(temper=name)


@pytest.mark.slow
def test_the_table_for_models_separates_the_rules(tmp_path: Path) -> None:
    """With each reader as the model GLOVE is ahead of no rule, and in the shop of forgetting, too."""
    data = load_experiment("llm-table").to_dict()
    for block in data["agents"]:
        block["policy"] = [{"name": "llm", "options": {"model": temper}} for temper in TEMPERS]
    rows = read_rows(run_experiment(load_experiment(data), tmp_path / "run", service=Tempers()))

    def success(temper: str, verifier: str, schedule: str) -> float:
        agent = (f"llm({temper})", verifier, schedule)
        after = [row for row in rows if row["phase"] != "source" and row["memory"] == "vanilla"]
        played = [row for row in after if (row["policy"], row["verifier"], row["schedule"]) == agent]
        return float(np.mean([row["success"] for row in played]))

    for temper in TEMPERS:
        shop = [success(temper, verifier, "webshop/explicit") for verifier in ("none", "forget", "glove")]
        assert shop == sorted(set(shop)), (temper, shop)
        lake = [success(temper, verifier, "frozen_lake/explicit:family") for verifier in ("none", "glove")]
        assert lake[0] < lake[1], (temper, lake)


class KeptNotes(Progress):
    """Keeps what a run notes."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(text)


@pytest.mark.integration
@pytest.mark.parametrize(("form", "warnings"), [("brief", 0), ("ranked", 0), ("paper", 1)])
def test_a_run_warns_of_agents_that_move_in_circles(tmp_path: Path, form: str, warnings: int) -> None:
    """One line whatever the number of cells; the report names the agents."""
    agents = {"memory": "vanilla", "verifier": ["glove", "overwrite"], "policy": {READER: {"format": form}}}
    data = {"name": "circles", "schedules": ["frozen_lake/explicit:family"], "agents": agents, "seeds": 2, "rounds": 3}
    notes = KeptNotes()
    run_experiment(parse_experiment(data), tmp_path / "run", progress=notes)
    told = [text for text in notes.texts if text.startswith("warning: ")]
    assert len(told) == warnings
    if told:
        assert "of its steps are in loops longer than 5 steps" in told[0]
    assert ("moved in circles" in write_report(tmp_path / "run").read_text("utf-8")) == bool(warnings)
