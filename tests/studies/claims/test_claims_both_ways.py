"""Every claim on lines by hand: it holds, at its bound where it has one, and one figure beyond it refutes it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.plan import plan_cells

from drift_envs.metrics import Estimate, proportion
from studies.claims.decisions import decide, judge
from studies.claims.detection import _enough
from studies.claims.evidence import HELD, INCONCLUSIVE, REFUTED, Check, ClaimRun, count_unplayed, surely_above
from studies.claims.findings import PARTS
from studies.claims.registry import CLAIMS

SHOP, LAKES, CAR = "webshop/explicit", "frozen_lake/explicit-family", "mountain_car/reversed"
IMPLICIT_SHOP, IMPLICIT_LAKES, LYING = "webshop/implicit", "frozen_lake/implicit-family", "frozen_lake/transient"
IMPLICIT = (IMPLICIT_SHOP, "frozen_lake/implicit", IMPLICIT_LAKES)
NULL, SLIPPERY, LONG = "frozen_lake/null", "frozen_lake/slippery-family", "frozen_lake/slippery-long"
MEMORIES = ("vanilla", "memory_bank", "voyager", "generative_agents")
LIVE = "vanilla/glove(prober=replay_live)"


def after(*courses: Any) -> dict[str, Any]:
    """A perfect source, and what comes after it."""
    return {"source": 20, **{f"drift-{number}": course for number, course in enumerate(courses, 1)}}


def ahead_of_plain(make: Any, broken: str) -> list[Any]:
    log = make("glove-explicit", 10)
    for schedule in (LAKES, SHOP):
        for memory in MEMORIES[:3]:
            odd = (schedule, memory) == (SHOP, "voyager")
            log.play(schedule, f"{memory}/none", after(0, {"tie": 20, "behind": 20}.get(broken, 0) if odd else 0))
            log.play(schedule, f"{memory}/glove", after(20, 10 if odd and broken == "behind" else 20))
    return [log]


def near_oracles(make: Any, broken: str) -> list[Any]:
    log = make("glove-explicit", 2)
    for schedule in (LAKES, SHOP):
        for memory in MEMORIES:
            odd = (schedule, memory) == (LAKES, "generative_agents")
            glove, reset, realign = {"reset": (18, 20, 20), "realign": (17, 17, 20)}.get(
                broken if odd else "", (19, 20, 20)
            )
            for verifier, last in (("glove", glove), ("oracle_reset", reset), ("oracle_realign", realign)):
                log.play(schedule, f"{memory}/{verifier}", after(19, last))
    return [log]


def near_reset_on_cars(make: Any, broken: str) -> list[Any]:
    log = make("glove-explicit", 2)
    for memory in MEMORIES:
        log.play(CAR, f"{memory}/oracle_reset", after(20))
        log.play(CAR, f"{memory}/glove", after(17 if broken and memory == "voyager" else 18))
    return [log]


def back_after_reversal(make: Any, broken: str) -> list[Any]:
    log = make("glove-implicit", 2)
    for memory in MEMORIES:
        odd = broken if memory == "voyager" else ""
        log.play(
            IMPLICIT_LAKES,
            f"{memory}/glove",
            after([0.0] * 15 + [0.9, 1.0, 0.94 if odd == "lake" else 0.95, 0.95, 0.95]),
        )
        log.play(IMPLICIT_SHOP, f"{memory}/oracle_reset", after(1.0))
        log.play(IMPLICIT_SHOP, f"{memory}/glove", after(0.94 if odd == "shop" else 0.95))
    return [log]


def same_as_overwrite(make: Any, broken: str) -> list[Any]:
    logs = [make("glove-explicit", 2), make("glove-implicit", 2)]
    for log, places in zip(logs, ((SHOP, "frozen_lake/explicit", LAKES), IMPLICIT), strict=True):
        log.play_all(places, [f"{m}/{v}" for m in MEMORIES for v in ("glove", "overwrite")], after(7))
    odd = logs[1].rows[-1]
    odd.update({"steps": {"steps": 11}, "score": {"score": 0.5}}.get(broken, {}))
    if broken == "missing":
        logs[1].rows.pop()
    if broken == "none":
        odd.update(probe_steps=4, realignments=1)
    # Cars are not claimed to be equal.
    for log in logs:
        log.play(CAR, "vanilla/glove", after(7))
    return logs


def ahead_of_overwrite(make: Any, broken: str) -> list[Any]:
    log = make("transient-noise", 10)
    for value in (0.0, 0.05, 0.1, 0.2):
        odd = broken and value == 0.05
        log.play(LAKES, "vanilla/overwrite", after(10, 15 if odd else 10) if value else after(20, 20), value=value)
        log.play(LAKES, "vanilla/glove", after(20, 15 if odd else 20), value=value)
    return [log]


def ahead_of_blind_probes(make: Any, broken: str) -> list[Any]:
    log = make("transient-noise", 10)
    for schedule in (LAKES, SHOP, CAR):
        for value in (0.0, 0.05, 0.1, 0.2):
            for verifier in ("glove", "random_probe", "base+extra"):
                odd = broken and (schedule, value, verifier) == (CAR, 0.2, broken)
                log.play(schedule, f"vanilla/{verifier}", after(20 if odd or verifier == "glove" else 5), value=value)
    return [log]


def few_alarms_when_calm(make: Any, broken: str) -> list[Any]:
    log = make("false-alarms", 2)
    for value in (0.1, 0.2, 0.4, 0.667):
        for verifier in ("glove_active", "glove_passive"):
            most = 4 if (verifier, value) == (broken, 0.4) else 3
            log.play(NULL, f"vanilla/{verifier}", after(), alarms(most), value=value)
    return [log]


def alarms(count: int) -> Callable[[int, str, int], Mapping[str, Any]]:
    """So many false ones in an instance of 10,000 interactions."""
    return lambda seed, phase, number: {"steps": 500, "false_realignments": int(phase == "source" and number <= count)}


def noticing(delays: Mapping[int, int | None]) -> Callable[[int, str, int], Mapping[str, Any]]:
    """The delays of the instances, the same after each drift; `None` for one that did not notice."""

    def fields(seed: int, phase: str, number: int) -> Mapping[str, Any]:
        noticed = phase != "source" and number == 1 and delays.get(seed) is not None
        return {"detected": phase, "detection_delay": delays[seed]} if noticed else {}

    return fields


def every_drift_noticed(make: Any, broken: str) -> list[Any]:
    log = make("false-alarms", 3)
    for verifier in ("glove_active", "glove_passive"):
        odd = broken if verifier == "glove_passive" else ""
        delays = {1000: 5, 1001: 61 if odd == "late" else 60, 1002: None if odd == "missed" else 90}
        log.play(SLIPPERY, f"vanilla/{verifier}", after(5), noticing(delays))
    return [log]


def most_drifts_noticed(make: Any, broken: str) -> list[Any]:
    log = make("false-alarms", 10)
    for verifier in ("glove_active", "glove_passive"):
        odd = broken if verifier == "glove_active" else ""
        delays: dict[int, int | None] = dict.fromkeys(log.seeds, 60)
        delays |= {1000: None} | ({1001: None} if odd == "missed" else {})
        delays |= dict.fromkeys(range(1006, 1010), 61) if odd == "late" else {}
        log.play(LONG, f"vanilla/{verifier}", after(5), noticing(delays))
    return [log]


def few_alarms_when_careful(make: Any, broken: str) -> list[Any]:
    log = make("false-alarms", 2)
    log.play(LONG, "vanilla/glove_active(delta=0.01)", after(), alarms(4 if broken else 3))
    log.play(LONG, "vanilla/glove_active", after(), alarms(20))  # another claim's
    return [log]


def probes_are_few(make: Any, broken: str) -> list[Any]:
    logs = [make("glove-explicit", 2), make("glove-implicit", 2)]
    places = (SHOP, "frozen_lake/explicit", LAKES, "mountain_car/explicit", CAR), IMPLICIT
    for log, schedules in zip(logs, places, strict=True):
        for schedule in schedules:
            for memory in MEMORIES:
                odd = broken if (schedule, memory) == (IMPLICIT_SHOP, "memory_bank") else ""
                calm, rough = {"whole": (3, 8), "source": (4, 6)}.get(odd, (3, 7))
                shares = {"source": calm, "drift-1": rough}
                fields = lambda seed, phase, number, s=shares: {"steps": 100 - s[phase], "probe_steps": s[phase]}  # noqa: E731
                log.play(schedule, f"{memory}/glove", after(20), fields)
    return logs


def gain_is_not_the_rules(make: Any, broken: str) -> list[Any]:
    log = make("planner-rules", 10)
    policies = {"planner": (20, 0), 'planner(lake={"aspiration":false})': (16, 4), 'planner(lake={"risk":1})': (15, 12)}
    policies |= {'planner(lake={"generalise":false})': (20, 0)}
    policies |= {'planner(lake={"aspiration":false,"generalise":false,"risk":1})': (16, 4)}
    for schedule in (LAKES, IMPLICIT_LAKES, LYING):
        for policy, (glove, plain) in policies.items():
            if broken == "gain" and schedule == LYING and policy == 'planner(lake={"aspiration":false})':
                glove, plain = 20, 0
            if broken == "near" and schedule == LAKES and policy == 'planner(lake={"risk":1})':
                plain = 13
            log.play(schedule, f"vanilla/glove/{policy}", after(glove))
            log.play(schedule, f"vanilla/none/{policy}", after(plain))
    return [log]


def depends_less(make: Any, broken: str) -> list[Any]:
    log = make("aggregation", 2)
    recalls = [f"vanilla(k={k}, order={order})" for k in (1, 5) for order in ("oldest", "newest")]
    for schedule in (LAKES, IMPLICIT_LAKES):
        for memory in (*recalls, "vanilla(k=50, order=oldest)"):
            for rule in ("majority", "frequency", "newest", "max"):
                # Rounds lost by the worst and the second worst setting: a range of 1 round of 20 against one of 4.
                glove, plain = {recalls[0]: (1, 4), recalls[1]: (1, 2)}.get(memory, (0, 0))
                plain = min(plain, 3) if broken and schedule == LAKES else plain
                for verifier, lost in (("glove", glove), ("none", plain)):
                    log.play(schedule, f"{memory}/{verifier}/planner(conflict={rule})", after(20 - lost))
    return [log]


def far_below_at_every_size(make: Any, broken: str) -> list[Any]:
    log = make("drift-size", 2)
    for value in (2, 3, 4, 6):
        log.play(LAKES, "vanilla/glove", after(20, 19), value=value)
        log.play(LAKES, "vanilla/none", after(10, 10 if broken and value == 2 else 9), value=value)
    return [log]


def conflicts_end(make: Any, broken: str) -> list[Any]:
    log = make("adaptation", 2)
    for memory in ("vanilla", "memory_bank"):
        odd = broken if memory == "memory_bank" else ""
        # Rounds with conflicts of the first and the second instance.
        spells = {"back": ({3, 5}, set()), "many": ({1, 2}, {4})}.get(odd, ({1}, {4}))
        fields = lambda seed, phase, number, s=spells: {"surprises": 2 * (number in s[seed - 1000])}  # noqa: E731
        log.play(SHOP, f"{memory}/glove", after(20), fields)
        last = 19 if odd == "stops" else 20
        fields = lambda seed, phase, number, s=last: {"surprises": int(number <= s or seed == 1000)}  # noqa: E731
        log.play(SHOP, f"{memory}/none", after(0), fields)
    return [log]


def probes_and_their_price(make: Any, broken: str) -> list[Any]:
    log = make("probe-price", 2)
    probing = lambda seed, phase, number: {"probe_steps": 3}  # noqa: E731
    for schedule in (LAKES, SHOP, LYING):
        liar = schedule == LYING
        log.play(schedule, "vanilla/overwrite", after(10))
        log.play(schedule, "vanilla/none", after(0))
        log.play(schedule, "vanilla/oracle_reset", after(20))
        log.play(schedule, "vanilla/glove", after(15 if liar else 10), probing)
        small = (10 if broken == "transient" else 11) if liar else 9
        spread = 12 if liar or (broken == "true" and schedule == LAKES) else 10
        for verifier, reached in (("glove(budget=3)", small), ("glove(budget=10)", small), ("glove_spread", spread)):
            log.play(schedule, f"vanilla/{verifier}", after(reached), probing)
        log.play(schedule, "vanilla/base+extra", after(20))  # it makes no probe
        log.play(schedule, "vanilla/random_probe", after(2), probing)
    return [log]


def ahead_within_episodes(make: Any, broken: str) -> list[Any]:
    log = make("clocks", 10)
    log.play("frozen_lake/mid-episode", "vanilla/none", after(5, 5))
    log.play("frozen_lake/mid-episode", "vanilla/glove", after(5, 5))
    log.play("frozen_lake/mid-episode", LIVE, after(20, {"tie": 5, "behind": 1}.get(broken, 20)))
    return [log]


def grows_with_reading(make: Any, broken: str) -> list[Any]:
    log = make("backbones", 2)
    gains = {"planner": 18, "reader(misread=0.0, records=20)": 15, "reader(misread=0.0, records=5)": 8}
    gains |= {"reader(misread=0.05, records=200)": 12, "reader(misread=0.2, records=200)": 6, "random": 0}
    for schedule in (SHOP, LAKES, IMPLICIT_SHOP, IMPLICIT_LAKES):
        for memory in ("vanilla", "memory_bank"):
            for policy, gain in gains.items():
                odd = (schedule, memory) == (IMPLICIT_SHOP, "memory_bank")
                own = {"tie": ("reader(misread=0.05, records=200)", 18), "random": ("random", 1)}.get(
                    broken if odd else "", ("", 0)
                )
                log.play(schedule, f"{memory}/none/{policy}", after(2))
                log.play(schedule, f"{memory}/glove/{policy}", after(2 + (own[1] if policy == own[0] else gain)))
    return [log]


def families(number: int) -> Callable[[Any, str], list[Any]]:
    """All agents of the experiment, in the order that the claims of families expect, but for one in one place."""
    after_drift = {"glove": 18, "overwrite": 17, "periodic_wipe(every=10)": 10, "none": 4}
    odd = {  # the place, the memory and what its verifier reaches instead
        20: ("frozen_lake/gradual-family", "memory_bank", {"glove": 4}),
        21: (LAKES, "vanilla", {"glove": 17}),
        22: ("frozen_lake/storms-family", "vanilla", {"overwrite": 18, "glove": 18}),
        23: ("frozen_lake/returning-family", "beliefmem", {"periodic_wipe(every=10)": 20}),
        24: ("frozen_lake/compound-family", "beliefmem", {"none": 11}),
        25: ("frozen_lake/partial-family", "vanilla", {"glove": 13}),
        26: ("mountain_car/tangle", "vanilla", {"glove": 4}),
    }
    order = {22: {"overwrite": 19}, 25: {"none": 18}}.get(number, {})

    def build(make: Any, broken: str) -> list[Any]:
        log = make("families", 6)
        log.seeds = range(2000, 2006)
        places = [(f"frozen_lake/{name}-family", None) for name in FAMILIES]
        places += [("mountain_car/tangle", None), *((LAKES, level) for level in (0.05, 0.1, 0.2))]
        for schedule, level in places:
            for memory in ("vanilla", "memory_bank", "beliefmem"):
                reached = {**after_drift, **order, **({"none": 18} if memory == "beliefmem" else {})}
                place, odd_memory, changed = odd[number]
                if broken and (schedule, memory) == (place, odd_memory) and level in (None, 0.1):
                    reached |= changed
                for verifier, score in reached.items():
                    course = {"source": [1.0] * 20, "drift-1": [score / 20] * 20}
                    regret = {"source": 0.0, "drift-1": 1 - score / 20}
                    log.play(
                        schedule, f"{memory}/{verifier}", course, lambda s, p, n, of=regret: {"regret": of[p]}, level
                    )
            log.play(schedule, "none/none/clairvoyant", after(20), value=level)
        return [log]

    return build


FAMILIES = ("jittered", "storms", "gradual", "choice", "returning", "compound", "partial", "off-path")

BUILD: dict[int, tuple[Callable[[Any, str], list[Any]], dict[str, int]]] = {
    # Number: what is played, and what breaks it -> how many checks fail then.
    1: (ahead_of_plain, {"tie": 1, "behind": 1}),
    2: (near_oracles, {"reset": 1, "realign": 1}),
    3: (near_reset_on_cars, {"one": 1}),
    4: (back_after_reversal, {"lake": 1, "shop": 1}),
    5: (same_as_overwrite, {"steps": 1, "score": 1, "missing": 1}),
    6: (ahead_of_overwrite, {"one": 1}),
    7: (ahead_of_blind_probes, {"random_probe": 1, "base+extra": 1}),
    8: (few_alarms_when_calm, {"glove_active": 1, "glove_passive": 1}),
    9: (every_drift_noticed, {"missed": 1, "late": 1}),
    10: (probes_are_few, {"whole": 1, "source": 1}),
    11: (gain_is_not_the_rules, {"gain": 1, "near": 1}),
    12: (depends_less, {"one": 1}),
    13: (far_below_at_every_size, {"one": 1}),
    14: (conflicts_end, {"back": 1, "many": 1, "stops": 1}),
    15: (probes_and_their_price, {"true": 1, "transient": 2}),
    16: (ahead_within_episodes, {"tie": 1, "behind": 1}),
    17: (grows_with_reading, {"tie": 1, "random": 1}),
    18: (most_drifts_noticed, {"missed": 1, "late": 1}),
    19: (few_alarms_when_careful, {"one": 1}),
    **{number: (families(number), {"one": 1}) for number in range(20, 27)},
}


def verdict_of(number: int, logs: list[Any]) -> Any:
    return decide(CLAIMS[number], [judge(ClaimRun(log.manifest, log.rows))[number] for log in logs])


UNDECIDED = {9, 18, (9, "late"), (14, "many"), (18, "missed"), (18, "late")}
"""What the few instances by hand leave open: an interval of three is wide, and the bound lies in it."""


@pytest.mark.parametrize("number", BUILD)
def test_it_holds(number: int, make_log: Any) -> None:
    verdict = verdict_of(number, BUILD[number][0](make_log, ""))
    assert all(check.holds for check in verdict.checks)
    assert (verdict.word, verdict.missing) == (INCONCLUSIVE if number in UNDECIDED else HELD, ())


@pytest.mark.parametrize(
    ("number", "broken", "failing"),
    [(number, broken, count) for number, (_, ways) in BUILD.items() for broken, count in ways.items()],
)
def test_one_figure_refutes_it(number: int, broken: str, failing: int, make_log: Any) -> None:
    verdict = verdict_of(number, BUILD[number][0](make_log, broken))
    assert verdict.word == (INCONCLUSIVE if (number, broken) in UNDECIDED else REFUTED)
    assert sum(not check.holds for check in verdict.checks) == failing


def test_a_difference_is_not_claimed_without_the_corrected_test(make_log: Any) -> None:
    # Six pairs that all point one way have a chance of 1 in 32, but four comparisons were made: of the twelve,
    # those of the three memories are the same episodes.
    found = verdict_of(1, ahead_of_plain(lambda name, instances: make_log(name, 6), ""))
    assert len(found.failed) == 12
    assert all("*, p = 0.125" in check.found for check in found.failed)
    # Eight pairs have one of 1 in 128, which is enough; the normal distribution in its place needs one more.
    assert {check.deciding_n for check in found.failed} == {9}


def test_what_else_differs_does_not_count_as_other_episodes(make_log: Any) -> None:
    assert verdict_of(5, same_as_overwrite(make_log, "none")).word == HELD


def test_there_is_a_test_for_every_claim() -> None:
    assert BUILD.keys() == CLAIMS.keys()


def check(room: float, low: float, high: float, strict: bool = False) -> Check:
    return Check("a", "b", "c", "d", room > 0, room, (low, high), 10, strict)


def test_a_part_of_an_experiment_is_no_easier_to_pass_than_the_whole(make_log: Any) -> None:
    part = load_experiment(PARTS / "clocks.yaml")
    players = [
        {"schedule": cell.place, **dict(zip(("memory", "verifier", "policy"), cell.labels, strict=True))}
        for cell in plan_cells(part)
    ]
    # Two verifiers against two baselines after two drifts on one schedule, and one baseline of two on the other.
    assert count_unplayed({"name": "clocks", "players": players}) == 8 + 4
    (log,) = ahead_within_episodes(make_log, "")
    words = [judge(ClaimRun(log.manifest, log.rows, unplayed))[16].checks[0].word for unplayed in (0, 30)]
    assert words == [HELD, INCONCLUSIVE]


def test_a_single_instance_decides_nothing() -> None:
    one = check(2, 1, 3)._replace(n=1)
    assert (one.word, one.deciding_n) == (INCONCLUSIVE, None)


def test_an_insignificant_difference_needs_the_instances_that_its_test_needs() -> None:
    # The interval is above 0. A p-value of .05 is at 1.96 deviations; 20 comparisons need one of .0025, at 3.02.
    part: Any = SimpleNamespace(schedule="lake")
    found = surely_above(part, "a - b", Estimate(16.0, 4.0, 28.0, 30), 0.05, 0.8, 20)
    assert (found.word, found.deciding_n) == (INCONCLUSIVE, math.ceil(30 * (3.0233 / 1.96) ** 2))
    assert surely_above(part, "a - b", Estimate(16.0, 4.0, 28.0, 30), 0.0001, 0.002, 20).word == HELD
    assert surely_above(part, "a - b", Estimate(-16.0, -28.0, -4.0, 30), 0.05, 0.8, 20).word == REFUTED


def test_a_share_of_all_needs_the_instances_that_wilson_needs() -> None:
    assert _enough(1.0, 0.9) == 35
    assert _enough(0.9, 0.9) is None
    assert proportion(34, 34).low < 0.9 < proportion(35, 35).low


def test_both_ends_of_the_interval_decide() -> None:
    assert check(2, 0, 4).word == HELD
    assert check(2, 0, 4, strict=True).word == INCONCLUSIVE  # equal is not above
    assert check(2, -1, 5).word == INCONCLUSIVE
    assert check(-2, -5, 0).word == INCONCLUSIVE
    assert check(-2, -5, 0, strict=True).word == REFUTED
    assert check(-2, -5, -1).word == REFUTED
    assert Check("a", "b", "c", "none", True, -0.0).word == HELD
    assert Check("a", "b", "c", "none", False, -1.0).word == REFUTED


def test_the_number_that_decides_narrows_the_interval_to_the_bound() -> None:
    assert check(2, -2, 6).deciding_n == 40  # half as wide with four times as many
    assert check(-2, -8, 4).deciding_n == 90
    assert check(2, 0, 4).deciding_n is None
    assert check(0, -1, 1).deciding_n is None
    assert check(1, -math.inf, 2).deciding_n is None
