"""The team EDV: who does what, what is written where, and who plays."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from drift_agents.errors import ArgumentError, UnknownNameError
from drift_agents.memory.consensus import ConsensusMemory
from drift_agents.memory.vanilla import VanillaMemory
from drift_agents.policy.base import RandomPolicy
from drift_agents.registry.tables import TEAMS
from drift_agents.team.base import Member, Team, make_team
from drift_agents.team.edv import EDV, PARADIGMS, draw_errors
from drift_agents.types import AgentClock, Episode, Experience, Outcome

from tests.drift_agents.llm.scripted import ScriptedModel
from tests.drift_agents.memory.contents import contents

NAMES = ("a", "b", "c")
WAYS = {
    "a": [("s", "r", Outcome("g", 1.0, True))],
    "b": [("s", "d", Outcome("h", 0.0, True))],
    "c": [("s", "l", Outcome("p", 0.5, True))],
}


def pool(errs: float = 0.0, **models: Any) -> list[Member]:
    return [Member(name, RandomPolicy(), models.get(name), errs) for name in NAMES]


class Bench:
    """Plays what is written down instead of an environment, into a memory."""

    def __init__(self, team: EDV, memory: ConsensusMemory | None = None, seed: int = 0) -> None:
        self.team = team
        self.memory = ConsensusMemory() if memory is None else memory
        self.played: list[str] = []
        self.steps = 0
        team.bind(self.memory, np.random.default_rng(seed))

    def rollout(self, name: str) -> Episode:
        self.played.append(name)
        for state, action, outcome in WAYS[name]:
            now = AgentClock(len(self.played), self.steps)
            self.memory.observe(Experience(state, action, outcome, 0.0, now), now)
            self.steps += 1
        episode = Episode("Cross.", WAYS[name][-1][2].score, len(WAYS[name]), True)
        self.memory.end_episode(episode, AgentClock(len(self.played), self.steps))
        return episode

    def train(self) -> list[Episode]:
        return self.team.train("Cross.", self.rollout)

    def owners(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for item in self.memory.items():
            found.setdefault(item.title, set()).add(item.owner)
        return found


@pytest.mark.parametrize("name", TEAMS.names())
def test_every_team_keeps_the_protocol(name: str) -> None:
    team = make_team(name, pool())
    assert isinstance(team, Team)
    assert team.name == name
    assert team.solver("Any task.") in NAMES
    with pytest.raises(ArgumentError, match="does not take the option"):
        make_team(name, pool(), colour="red")
    with pytest.raises(ArgumentError, match="names of their own"):
        make_team(name, [])


def test_an_unknown_team_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'edv'"):
        make_team("edw", pool())


def test_roles_rotate_over_tasks_and_stay_where_they_should() -> None:
    bench = Bench(EDV(pool()))
    groups = [bench.team.draw_group() for _ in range(40)]
    assert {group.distiller.name for group in groups} == set(NAMES)
    assert all(group.distiller not in group.executors for group in groups)
    assert all(group.voters == group.executors for group in groups)
    fixed = EDV(pool(), rotate=False)
    assert {fixed.draw_group() for _ in range(5)} == {fixed.draw_group()}


@pytest.mark.parametrize(
    ("paradigm", "executors", "is_inside", "voters"),
    [
        ("basic", 1, True, "none"),
        ("self-verify", 1, True, "self"),
        ("independent", 1, True, "outside"),
        ("self-distil", 2, True, "executors"),
        ("third-party", 2, False, "distiller"),
        ("full", 2, False, "executors"),
    ],
)
def test_the_rows_of_table_4(paradigm: str, executors: int, is_inside: bool, voters: str) -> None:
    group = EDV(pool(), paradigm=paradigm).draw_group()
    assert len(group.executors) == executors
    assert (group.distiller in group.executors) == is_inside
    who = {
        "none": (),
        "self": group.executors,
        "executors": group.executors,
        "distiller": (group.distiller,),
        "outside": group.voters,
    }[voters]
    assert group.voters == who
    if voters == "outside":
        assert not set(group.voters) & {*group.executors, group.distiller}


@pytest.mark.parametrize(
    ("options", "seen"),
    [
        ({"distil": "executor"}, ["a", "b"]),
        ({"distil": "executor", "seen": "own"}, ["a"]),
        ({"distil": "third", "seen": "own"}, ["a", "b"]),
    ],
)
def test_an_executor_that_distils_sees_the_whole_group_or_itself(options: dict[str, str], seen: list[str]) -> None:
    team = EDV(pool(), rotate=False, verify="none", trajectories=4, **options)
    bench = Bench(team)
    bench.train()
    titles = {"a": "Way to score 1 in 1 steps", "b": 'Avoid "d"'}
    assert set(bench.owners()) == {titles[name] for name in seen}


def test_what_all_approve_is_shared_and_what_one_approves_is_private() -> None:
    """The way to .5 is of no use to who has reached 1.0 itself."""
    a, b, c = pool()
    team = EDV([a, c, b], rotate=False)
    bench = Bench(team)
    bench.train()
    assert bench.owners() == {
        "Way to score 1 in 1 steps": {""},
        "Way to score 0.5 in 1 steps": {"c"},
        'Avoid "l"': {""},
    }
    assert team.tally["proposed"] == 3
    assert (team.tally["unanimous"], team.tally["partial"]) == (2, 1)
    bench.train()
    assert len(bench.memory.items()) == 3, "what is held already is not written again"
    assert team.tally["dropped"] == 3
    bench.memory.address("a", "Cross.")
    assert len(list(bench.memory.held("a"))) == 2


ITEM = '{"items": [{"title": "T", "description": "D", "content": "C", "evidence": ["1.1"]}]}'


@pytest.mark.parametrize(
    ("votes", "banks", "owners"),
    [
        (("[1]", "[1]"), "both", {""}),
        (("[1]", "[]"), "both", {"a"}),
        (("[]", "[1]"), "both", {"b"}),
        (("[]", "[]"), "both", set()),
        (("[1]", "[]"), "shared", {""}),
        (("[1]", "[1]"), "private", {"a", "b"}),
    ],
)
def test_votes_decide_about_the_bank(votes: tuple[str, str], banks: str, owners: set[str]) -> None:
    """With scripted models: the default is to reject."""
    models = {name: ScriptedModel([f'{{"accepted": {accepted}}}']) for name, accepted in zip("ab", votes, strict=True)}
    bench = Bench(EDV(pool(**models, c=ScriptedModel([ITEM])), rotate=False, banks=banks))
    bench.train()
    assert bench.owners().get("T", set()) == owners


class Tempered(ScriptedModel):
    """A model with a temperature of its own, as members have it."""

    def __init__(self, temperature: float | None) -> None:
        super().__init__([ITEM, '{"accepted": [1]}'])
        self.parameters = {} if temperature is None else {"temperature": temperature}


@pytest.mark.parametrize(
    ("own", "vote", "sent"),
    [
        (1.0, 0.0, {"temperature": 0.0}),
        (1.0, None, {}),
        (None, 0.0, {}),  # some models refuse every temperature
    ],
)
def test_models_vote_at_another_temperature_than_they_distil(own: float | None, vote: float | None, sent: Any) -> None:
    """The paper's schedule of execute, distil and verify is (1, 1, 0) (C.1)."""
    model = Tempered(own)
    team = EDV(pool(a=model), executors=1, trajectories=1, distil="executor", rotate=False, vote_temperature=vote)
    Bench(team).train()
    assert [request.parameters for request in model.requests] == [{}, sent]


def test_without_a_vote_all_is_kept_and_with_the_distillers_own_it_decides_alone() -> None:
    bench = Bench(EDV(pool(c=ScriptedModel([ITEM])), rotate=False, paradigm="no-vote"))
    bench.train()
    assert bench.owners() == {"T": {""}}
    bench = Bench(EDV(pool(c=ScriptedModel([ITEM, '{"accepted": []}'])), rotate=False, paradigm="third-party"))
    bench.train()
    assert bench.owners() == {}


def test_an_executor_that_distils_reads_its_own_trajectories_alone() -> None:
    model = ScriptedModel([ITEM])
    bench = Bench(EDV(pool(a=model), rotate=False, distil="executor", verify="none"))
    bench.train()
    (item,) = bench.memory.items()
    record = next(record for record in bench.memory.records() if record.id == item.evidence[0])
    assert record.action == "r", "line 1.1 of what it read is its own first step"


def test_the_ability_matrix_chooses_who_plays() -> None:
    bench = Bench(EDV(pool()))
    for _ in range(6):
        bench.train()
    assert bench.team.solver("Cross.") == "a"
    assert EDV(pool(), paradigm="basic").solver("Cross.") == "a", "the first of the pool"
    assert bench.team.ability.rows()[0]["kind"] == "cross."


def wrong_rates(paradigm: str, errs: float, correlation: float = 0.0, tasks: int = 150) -> dict[str, float]:
    """Which share of what was distilled wrong was kept, and what went into the shared bank."""
    bench = Bench(EDV(pool(errs), paradigm=paradigm, correlation=correlation, trajectories=4), seed=3)
    for _ in range(tasks):
        bench.train()
    tally = bench.team.tally
    return {
        "kept": tally["wrong_kept"] / tally["wrong_proposed"],
        "unanimous": tally["unanimous"] / tally["proposed"],
    }


def test_who_made_an_error_confirms_it() -> None:
    assert wrong_rates("third-party", 0.3)["kept"] == 1.0
    assert wrong_rates("full", 0.3)["kept"] < 0.65, "two voters let 1 - .7 * .7 pass, into private banks mostly"


def test_voters_who_err_together_agree_more_often_on_what_is_wrong() -> None:
    """One minus (1 - e)^2 of what is wrong passes for independent errors, e for common ones."""
    assert wrong_rates("full", 0.3, 0.0)["kept"] == pytest.approx(0.51, abs=0.1)
    assert wrong_rates("full", 0.3, 1.0)["kept"] == pytest.approx(0.30, abs=0.1)


@pytest.mark.parametrize("correlation", [0.0, 0.25, 1.0])
def test_the_errors_of_two_voters_are_equal_with_the_stated_probability(correlation: float) -> None:
    rng, errs, count = np.random.default_rng(0), 0.3, 20_000
    common = rng.random(count)
    one, other = (draw_errors(common, errs, correlation, rng) for _ in range(2))
    assert len(one) / count == pytest.approx(errs, abs=0.02)
    differing = (1 - correlation) * 2 * errs * (1 - errs)
    assert len(one ^ other) / count == pytest.approx(differing, abs=0.02)


def test_wrong_candidates_are_put_before_the_vote_and_rejected_by_who_reads() -> None:
    bench = Bench(EDV(pool(), contaminate=0.3))
    for _ in range(10):
        bench.train()
    assert bench.team.tally["wrong_proposed"] > 3
    assert bench.team.tally["wrong_kept"] == 0
    assert not any(item.wrong for item in bench.memory.items())
    bench = Bench(EDV(pool(), contaminate=0.3, paradigm="no-vote"))
    for _ in range(10):
        bench.train()
    assert bench.team.tally["wrong_kept"] == bench.team.tally["wrong_proposed"] > 3


def test_equal_seeds_train_equal_memories() -> None:
    hashes = []
    for seed in (1, 1, 2):
        bench = Bench(EDV(pool(0.2)), seed=seed)
        for _ in range(5):
            bench.train()
        hashes.append(contents(bench.memory))
    assert hashes[0] == hashes[1] != hashes[2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"paradigm": "half"}, f"`paradigm` should be one of {', '.join(PARADIGMS)}. Received 'half'"),
        ({"executors": 0}, "`executors` should be a whole number, at least 1. Received 0"),
        ({"executors": 3}, "3 executors and one outside need 4 members. Received 3: a, b, c"),
        ({"distil": "unknown"}, "`distil` should be one of third, executor. Received 'unknown'"),
        ({"items": 6}, "`items` should be a whole number in the interval [1, 5]. Received 6"),
        ({"rotate": 1}, "`rotate` should be true or false. Received 1"),
        ({"correlation": 2}, "`correlation` should be in the interval [0, 1]. Received 2"),
        ({"contaminate": 1}, "`contaminate` should be in the interval [0, 1). Received 1"),
        ({"vote_temperature": 3}, "`vote_temperature` should be in the interval [0, 2], or None. Received 3"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        EDV(pool(), **options)


def test_a_memory_without_banks_is_refused() -> None:
    with pytest.raises(ArgumentError, match=re.escape("which the memory `consensus` has. Received 'vanilla'")):
        EDV(pool()).bind(VanillaMemory(), np.random.default_rng(0))
    with pytest.raises(ArgumentError, match="bound to a memory"):
        EDV(pool()).train("Cross.", Bench(EDV(pool())).rollout)


def test_members_whose_errors_cannot_be_meant_are_refused() -> None:
    with pytest.raises(ArgumentError, match=re.escape("`errs` of `a` should be in the interval [0, 1]. Received 2")):
        EDV(pool(2))


def test_the_test_is_distilled_only_where_that_is_asked_for() -> None:
    written = []
    for online in (False, True):
        bench = Bench(EDV(pool(), online=online, rotate=False))
        bench.team.end_episode("Cross.", "c", bench.rollout("c"))
        written.append(bench.owners())
    assert written[0] == {}
    assert written[1] == {"Way to score 0.5 in 1 steps": {""}}
    with pytest.raises(ArgumentError, match="`online` should be true or false"):
        EDV(pool(), online=1)  # type: ignore[arg-type]
