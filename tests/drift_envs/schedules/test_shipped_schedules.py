"""Invariant 3: every shipped drift matters, and leaves the task solvable; controls do what they are for."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources
from itertools import chain, pairwise

import pytest

from drift_envs.cli.scheduled import open_schedule
from drift_envs.envs.facts.oracle import FactsOracle
from drift_envs.envs.facts.world import FACTS_KNOBS
from drift_envs.envs.frozen_lake.dynamics import share_of_open_paths
from drift_envs.envs.frozen_lake.knobs import FROZEN_LAKE_KNOBS
from drift_envs.envs.frozen_lake.oracle import LakeOracle, carried_value, lake_responses, solve_lake
from drift_envs.envs.house.knobs import HOUSE_KNOBS
from drift_envs.envs.house.oracle import HouseOracle
from drift_envs.envs.mountain_car.env import MOUNTAIN_CAR_CONTINUOUS_KNOBS, MOUNTAIN_CAR_KNOBS
from drift_envs.envs.mountain_car.oracle import CarOracle
from drift_envs.envs.repository.conventions import REPOSITORY_KNOBS
from drift_envs.envs.repository.oracle import RepositoryOracle
from drift_envs.envs.tools.interface import TOOLS_KNOBS
from drift_envs.envs.tools.oracle import DeskOracle
from drift_envs.envs.webshop.env import WEBSHOP_KNOBS
from drift_envs.envs.webshop.oracle import ShopOracle
from drift_envs.oracle import ChangeEffect, PlannedKnobs
from drift_envs.schedule import NEVER, Schedule, Timeline, load_schedule, shipped_schedules
from tests.core_ids import CORE_IDS, DAILY
from website.shipped import DRIFTS, figures, read_table

TABLES = {
    "facts": ("DriftFacts-v0", FACTS_KNOBS, FactsOracle),
    "frozen_lake": ("DriftFrozenLake-v0", FROZEN_LAKE_KNOBS, LakeOracle),
    "house": ("DriftHouse-v0", HOUSE_KNOBS, HouseOracle),
    "mountain_car": ("DriftMountainCar-v0", MOUNTAIN_CAR_KNOBS, CarOracle),
    "mountain_car_continuous": ("DriftMountainCarContinuous-v0", MOUNTAIN_CAR_CONTINUOUS_KNOBS, CarOracle),
    "repository": ("DriftRepository-v0", REPOSITORY_KNOBS, RepositoryOracle),
    "tools": ("DriftTools-v0", TOOLS_KNOBS, DeskOracle),
    "webshop": ("DriftWebShop-v0", WEBSHOP_KNOBS, ShopOracle),
}
NAMES = [name for name in shipped_schedules() if name.split("/")[0] in TABLES]
ROWS = read_table()
"""Those of the page of all schedules, which say what their first drifts do."""
VERIFY = [name for name in NAMES if "/verify" in name]
"""Points of the map "when must an agent verify"."""
STILL = {name for name in VERIFY if ":none-" in name}
CONTROLS = {
    *STILL,
    "facts/confuse",
    "facts/hearsay",
    "facts/null",
    "frozen_lake/null",
    "frozen_lake/harmless",
    "frozen_lake/shortcut",
    "frozen_lake/explicit:partial",
    "frozen_lake/explicit:off-path",
    "house/null",
    "house/seen",
    "house/unseen",
    "house/harmless",
    "mountain_car/null",
    "mountain_car/explicit",
    "mountain_car_continuous/null",
    "mountain_car_continuous/explicit",
    "repository/harmless",
    "repository/null",
    "repository/null:flaky",
    "tools/errors",
    "tools/harmless",
    "tools/null",
    "webshop/eras",
    "webshop/injection",
    "webshop/null",
    "webshop/task-shift:mixed",
    "webshop/task-shift",
}
# What is left of the best sequences of actions, not of the best policies: in 999 steps a policy that
# knows only the low flag finds its way up from wherever that one would have ended the episode.
OPEN_LOOP = {"mountain_car_continuous/goal"}
DRAWN_TIMES = {
    "facts/rush",
    "facts/rush:family",
    "frozen_lake/implicit:choice",
    "frozen_lake/explicit:compound",
    "frozen_lake/explicit:jittered",
    "frozen_lake/explicit:off-path",
    "frozen_lake/explicit:partial",
    "frozen_lake/explicit:returning",
    "frozen_lake/explicit:storms",
    "mountain_car/reversed:jittered",
    "mountain_car/tangle",
    "tools/names:random",
    "webshop/explicit:jittered",
    *(set(VERIFY) - STILL),
}
"""Schedules whose drifts come at times drawn from the seed."""
OTHER_RHYTHMS = {
    "facts/ramp",
    "facts/ramp:family",
    "facts/ramp:silent",
    "facts/weekly",
    "house/wander",
    "repository/recurring",
    "house/weekly",
    "frozen_lake/explicit:gradual",
    "frozen_lake/thaw:walk",
    "tools/rush",
    "tools/weekend",
    *DRAWN_TIMES,
}
"""Schedules whose phases are not twenty episodes long."""
LEAST_LOSS = 0.05
ROUNDS = {"frozen_lake/slippery:long": 100}
"""Episodes of a phase, where they are not twenty."""
UNCHANGED = (
    *STILL,
    "facts/confuse",
    "facts/hearsay",
    "repository/null:flaky",
    "/null",
    "/seen",
    "/unseen",
    "/eras",
    "/task-shift",
    "/task-shift:mixed",
)
"""Controls in which all responses stay the same."""
FAMILY_SEEDS = range(4)
MOST_PHASES = 6
"""How many phases of a schedule are played; those of schedules with more return to earlier values."""


def plan(name: str) -> Schedule:
    schedule = load_schedule(name)
    assert schedule is not None
    return schedule


FAMILIES = [name for name in NAMES if "draw" in plan(name).base.get("map", ())]


def rounds(name: str) -> int:
    return ROUNDS.get(name, 20)


def horizon(name: str) -> int:
    """A tick in the last phase of a shipped schedule."""
    return 1000 if plan(name).clock == "step" else 5 * rounds(name)


def has_tasks(name: str) -> bool:
    """Whether the seed draws tasks, which an oracle then needs."""
    return TABLES[name.split("/")[0]][2] in (DeskOracle, FactsOracle, HouseOracle, RepositoryOracle, ShopOracle)


def oracles(name: str, seed: int = 0):
    """The oracle of every instance, with its timeline: one, or several seeds of a family."""
    env_id, table, kind = TABLES[name.split("/")[0]]
    if has_tasks(name):
        scheduled = open_schedule(name, seed)
        yield scheduled.timeline, scheduled.oracle
        return
    for seed in FAMILY_SEEDS if name in FAMILIES else (0,):
        timeline = Timeline(plan(name), table, seed)
        yield timeline, kind(PlannedKnobs(timeline, table), CORE_IDS[env_id].limit)


def effects(name: str, seed: int = 0, most: int = MOST_PHASES):
    """What each drift of the first phases does, phase by phase, at full weight: a list for each instance."""
    for timeline, oracle in oracles(name, seed):
        if name in DAILY:
            found = [oracle.effect(0, tick) for tick in (20, 40, 60)]
            carried = sum(effect.carried for effect in found) / len(found)
            yield [("weeks", found[-1]._replace(carried=carried))]
            continue
        phases = timeline.phases(horizon(name))[:most]
        assert len(phases) > 1
        yield [
            (after.id, oracle.effect(timeline.first_tick(before.id), timeline.first_tick(after.id)))
            for before, after in pairwise(phases)
        ]


@pytest.mark.parametrize("name", NAMES)
def test_the_file_says_what_it_is_and_fits_its_environment(name: str) -> None:
    schedule = plan(name)
    assert schedule.name == name
    assert load_schedule(schedule.to_dict()) == schedule
    env_id, table, _ = TABLES[name.split("/")[0]]
    assert schedule.env == env_id
    assert load_schedule(name, table=table) == schedule, "its knobs fit the environment"
    assert schedule.description.endswith(".")
    assert schedule.visibility in ("explicit", "implicit")
    assert schedule.seed is None, "a shipped schedule leaves its drifts to the environment's seed"
    assert schedule.control == (name in CONTROLS)
    if name in ROWS:
        kind = "control" if schedule.control else schedule.visibility
        assert (ROWS[name][1], ROWS[name][-1]) == (kind, schedule.description), "run `python -m website.shipped NAME`"
    text = (resources.files("drift_schedules") / f"{name.partition(':')[0]}.yaml").read_text("utf-8")
    assert text.startswith("# "), "the file begins with a comment that says what drifts and why it matters"


QUICK = {name for name in NAMES if ":" not in name and not name.startswith("mountain_car_continuous/")}
"""Those of the short form: a variant differs from its file by a line, the continuous car by its engine."""


def check_drifts_matter(name: str, found: Iterable[tuple[str, ChangeEffect]]) -> None:
    """Every drift matters, unless the schedule is a control, and leaves the task solvable."""
    for phase, effect in found:
        assert min(effect.before, effect.after) >= 0.7, f"{phase}: {effect}"
        if name in CONTROLS:
            assert effect.loss == 0.0, f"{phase}: {effect}"
            assert (effect.magnitude == 0.0) == name.endswith(UNCHANGED), f"{phase}: {effect}"
            continue
        if name in OPEN_LOOP:
            assert effect.replayed is not None
            loss = 1 - effect.replayed / effect.after
        else:
            loss = effect.loss
        assert loss >= LEAST_LOSS, f"{phase}: {effect}"
        assert effect.magnitude > 0, f"{phase}: {effect}"


@pytest.mark.integration
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in NAMES]
)
def test_the_first_drifts_matter_and_leave_the_task_solvable(name: str) -> None:
    first = next(effects(name, most=DRIFTS + 1))
    if name in ROWS and name not in DAILY:
        drifts, told = zip(*first, strict=True)
        assert ROWS[name][2:5] == [", ".join(drifts), *figures(told)], "run `python -m website.shipped NAME`"
    check_drifts_matter(name, first)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_drift_of_every_instance_matters(name: str) -> None:
    check_drifts_matter(name, chain(*effects(name)))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if has_tasks(name)])
def test_every_drift_matters_with_other_tasks_too(name: str) -> None:
    check_drifts_matter(name, chain(*effects(name, seed=1)))


SHORT = ("flapping", "bait")
"""What drifts for an episode at a time."""


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith(SHORT)])
def test_short_phases_last_an_episode(name: str) -> None:
    (timeline, _), *_ = oracles(name)
    source, *phases = timeline.phases(horizon(name))
    assert source.stop == 20
    lengths = [phase.stop - phase.start for phase in phases[:4]]
    assert lengths == ([1, 1, 1, 1] if name.endswith("flapping") else [1, 19, 1, 19])


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in NAMES
        if plan(name).clock == "episode" and name not in OTHER_RHYTHMS and not name.endswith(SHORT)
    ],
)
def test_phases_have_their_rounds(name: str) -> None:
    (timeline, _), *_ = oracles(name)
    phases = timeline.phases(horizon(name))
    assert [phase.start for phase in phases] == list(range(0, rounds(name) * len(phases), rounds(name)))
    assert phases[-1].stop in (NEVER, rounds(name) * len(phases))


@pytest.mark.parametrize("name", ["frozen_lake/explicit", "frozen_lake/slippery"])
def test_the_last_map_breaks_the_first_one_too(name: str) -> None:
    (_, oracle), *_ = oracles(name)
    effect = oracle.effect(0, 40)
    assert effect.carried <= 0.5 * effect.after


def test_the_implicit_lake_is_that_of_the_paper() -> None:
    (_, oracle), *_ = oracles("frozen_lake/implicit")
    before, after = oracle.setting(0), oracle.setting(20)
    assert before.map == after.map
    assert [(r, c) for r in range(6) for c in range(6) if before.map[r][c] == "G"] == [(3, 5), (5, 5)]
    assert dict(before.goal_rewards) == {"3,5": 1.0, "5,5": 0.5}
    assert dict(after.goal_rewards) == {"3,5": 0.5, "5,5": 1.0}
    # The crossing of the paper's prompts: right to (3, 3), down to (4, 2), plain ice both.
    assert [before.map[r][c] for r, c in ((3, 2), (3, 3), (4, 2))] == ["F", "F", "F"]


def test_families_differ_from_seed_to_seed() -> None:
    for name in FAMILIES:
        maps = {oracle.setting(0).map for _, oracle in oracles(name)}
        assert len(maps) == len(FAMILY_SEEDS)


def test_nothing_changes_near_the_paths_of_the_harmless_lake() -> None:
    (_, oracle), *_ = oracles("frozen_lake/harmless")
    settings = [oracle.setting(tick) for tick in (0, 20, 40)]
    plan_before = solve_lake(settings[0], 100)
    on_path, front = {0}, [0]
    while front:
        state = front.pop()
        for action in range(4):
            if plan_before.best[100, state, action]:
                after = int(settings[0].model.next_state[state, action, 1])
                if after not in on_path and settings[0].map[after // 6][after % 6] != "G":
                    on_path.add(after)
                    front.append(after)
    assert len(on_path) > 10
    for state in sorted(on_path):
        answers = [lake_responses(setting)[divmod(state, 6)] for setting in settings]
        assert answers[0] == answers[1] == answers[2]


def test_the_shortcut_is_shorter_and_the_old_way_as_good() -> None:
    (_, oracle), *_ = oracles("frozen_lake/shortcut")
    old, new = oracle.setting(0), oracle.setting(20)
    assert (solve_lake(old, 100).steps[100, 0], solve_lake(new, 100).steps[100, 0]) == (20, 10)
    assert carried_value(old, new, 100) == 1.0


def test_thaw_and_fatigue_come_bit_by_bit() -> None:
    (timeline, oracle), *_ = oracles("frozen_lake/thaw")
    slips = [oracle.setting(tick).slip for tick in range(20, 42)]
    assert slips[0] == 0.0
    assert slips[-2:] == [0.3, 0.3]
    assert all(0 < b - a < 0.02 for a, b in pairwise(slips[:-1]))
    assert timeline.first_tick("thaw") == 40
    # No single episode's change costs more than a little.
    assert all(oracle.effect(tick, tick + 1).loss < LEAST_LOSS for tick in range(20, 40))


@pytest.mark.parametrize("name", sorted(DRAWN_TIMES))
def test_times_are_drawn_from_the_seed(name: str) -> None:
    table = TABLES[name.split("/")[0]][1]
    starts = {tuple(phase.start for phase in Timeline(plan(name), table, seed).phases(90)) for seed in range(8)}
    assert len(starts) >= 5


def test_partial_drifts_leave_ways_open_and_off_path_ones_all_of_them() -> None:
    shares = {}
    for name in ("partial", "off-path"):
        for timeline, oracle in oracles(f"frozen_lake/explicit:{name}"):
            maps = [oracle.setting(phase.start).map for phase in timeline.phases(60)]
            shares.setdefault(name, []).extend(share_of_open_paths(old, new) for old, new in pairwise(maps))
    assert all(0.5 <= share <= 0.95 for share in shares["partial"])
    assert set(shares["off-path"]) == {1.0}
