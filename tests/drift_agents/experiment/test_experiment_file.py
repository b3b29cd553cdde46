"""The experiment file: what it may say, and how it is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from drift_agents.errors import ArgumentError, ExperimentError, UnknownNameError
from drift_agents.experiment.config import PartSpec
from drift_agents.experiment.loader import load_experiment, parse_experiment, shipped_experiments
from drift_agents.experiment.plan import plan_cells
from drift_agents.registry.parts import Registry
from drift_agents.registry.tables import CONTROLLERS, MEMORIES, VERIFIERS

GOOD = """\
name: mine
schedules: [frozen_lake/explicit, frozen_lake/tides]
agents:
  memory: [none, {vanilla: {k: 3}}, vanilla]
  verifier: [none, {glove: {epsilon: 0.4}}]
  policy: planner
references: clairvoyant
seeds: [7, 3]
rounds: 5
environments:
  frozen_lake/tides: {episodes: 50, policy: {planner: {conflict: frequency}}}
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_is_read_as_it_is_written(tmp_path: Path) -> None:
    experiment = load_experiment(write(tmp_path, GOOD))
    assert experiment.seeds == (7, 3)
    assert experiment.references == ("clairvoyant",)
    assert experiment.agents[0].memory[1] == PartSpec(name="vanilla", options={"k": 3})
    assert experiment.settings_of("frozen_lake/explicit").rounds == 5
    tides = experiment.settings_of("frozen_lake/tides")
    assert (tides.rounds, tides.episodes) == (None, 50)
    assert tides.policy == {"planner": {"conflict": "frequency"}}


def test_plain_data_and_back(tmp_path: Path) -> None:
    experiment = load_experiment(write(tmp_path, GOOD))
    again = parse_experiment(experiment.to_dict())
    assert again == experiment
    assert again.config_hash() == experiment.config_hash()


def test_the_hash_tells_experiments_apart(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    experiment = load_experiment(path)
    assert load_experiment(path, {"about": "other words"}).config_hash() == experiment.config_hash()
    assert load_experiment(path, {"rounds": 6}).config_hash() != experiment.config_hash()
    assert load_experiment(path, {"seeds": [3, 7]}).config_hash() != experiment.config_hash()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("seeds:", "sheds:", "mine.yaml:8: sheds: no key is called 'sheds', did you mean 'seeds'?"),
        ("{vanilla: {k: 3}}", "vanila", "mine.yaml:4: agents.memory[1]: no memory is called 'vanila', did you mean"),
        ("planner\nref", "plannr\nref", "mine.yaml:6: agents.policy: no policy is called 'plannr', did you mean"),
        (
            "{k: 3}",
            "{kk: 3}",
            "mine.yaml:4: agents.memory[1].vanilla.kk: no option of the memory 'vanilla' is called 'kk'",
        ),
        ("epsilon:", "epsilom:", "agents.verifier[1].glove.epsilom: no option of the verifier 'glove' is called"),
        (
            "{conflict: f",
            "{conflct: f",
            "mine.yaml:11: environments.frozen_lake/tides.policy.planner.conflct: no option of",
        ),
        ("{k: 3}", "3", "mine.yaml:4: agents.memory[1].vanilla: should be a mapping. Received 3"),
        ("memory: [none,", "memory: [vanilla,", "agents.memory[2]: every entry should be there once"),
        ("[7, 3]", "0", "mine.yaml:8: seeds: should be at least 1. Received 0"),
        ("[7, 3]", "[7, 7]", "mine.yaml:8: seeds: every entry should be there once. Received 7 twice"),
        ("[7, 3]", "[7, -3]", "mine.yaml:8: seeds[1]: should be at least 0. Received -3"),
        ("rounds: 5", "rounds: 0", "mine.yaml:9: rounds: should be at least 1. Received 0"),
        ("rounds: 5", "rounds: 5\nepisodes: 6", "mine.yaml:10: episodes: `rounds` and `episodes` exclude each other"),
        ("rounds: 5\n", "", "schedules[0]: 'frozen_lake/explicit' has neither `rounds` nor `episodes`"),
        ("clairvoyant", "clairvoyante", "mine.yaml:7: references: should be 'oracle_realign'"),
        ("lake/tides: {", "lake/tide: {", "no schedule of this experiment is called 'frozen_lake/tide', did you mean"),
        ("{planner: {c", "{random: {c", "environments.frozen_lake/tides.policy.random: no policy of this experiment"),
        (
            "policy: {planner: {c",
            'memory: {"vanilla(k=4)": {k: 1}}, policy: {planner: {c',
            "no memory of this experiment is called 'vanilla(k=4)', did you mean 'vanilla(k=3)'?",
        ),
        ("{episodes: 50,", "{episodes: 50, rounds: 2,", "`rounds` and `episodes` exclude each other"),
        ("episodes: 50", "epsiodes: 50", "mine.yaml:11: environments.frozen_lake/tides.epsiodes: no key is called"),
        (
            "{episodes: 50",
            "{matching: gird, episodes: 50",
            "environments.frozen_lake/tides.matching: no matching is called",
        ),
        ("name: mine", "name: a/b", "mine.yaml:1: name: should consist of letters, digits"),
        ("name: mine", "name: mine\nname: yours", "mine.yaml:2: name: stands twice, first on line 1"),
        ("name: mine", "name: [mine", "mine.yaml:"),
        ("{vanilla: {k: 3}}", "{name: vanilla, k: 3}", "should be a name, or one name with its options, as {vanilla: "),
        ("[7, 3]", "'3'", "mine.yaml:8: seeds: should be a number of seeds, a list of them or `{first: f, count: n}`."),
        ("clairvoyant", "[clairvoyant, clairvoyant]", "references: every entry should be there once. Received 'cla"),
        ("policy: planner", "polcy: planner", "agents.policy: is missing"),
    ],
)
def test_a_mistake_is_told_with_file_line_and_key(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in GOOD
    with pytest.raises(ExperimentError, match=re.escape(expected)):
        load_experiment(write(tmp_path, GOOD.replace(old, new, 1)))


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    text = GOOD.replace("seeds: [7, 3]", "seeds: x").replace("rounds: 5", "rounds: -1").replace("name: mine", "nam: a")
    with pytest.raises(ExperimentError) as caught:
        load_experiment(write(tmp_path, text))
    assert len(str(caught.value).splitlines()) == 4  # seeds, rounds, the unknown key and the missing one


def test_options_are_told_beside_mistakes_of_structure(tmp_path: Path) -> None:
    text = (
        GOOD.replace("seeds: [7, 3]", "seeds: x")
        .replace("epsilon", "epsilom")
        .replace("policy: planner", "policy: plan")
    )
    with pytest.raises(ExperimentError) as caught:
        load_experiment(write(tmp_path, text))
    assert [re.sub(r".*yaml:\d+: ", "", line).split(":")[0] for line in str(caught.value).splitlines()] == [
        "seeds",
        "agents.verifier[1].glove.epsilom",
        "agents.policy",
    ]


@pytest.mark.parametrize(("value", "kind"), [([], "list"), ("text", "str"), (None, "NoneType")])
def test_an_experiment_is_a_mapping(value: Any, kind: str) -> None:
    with pytest.raises(ExperimentError, match=f"should be a mapping. Received {kind}"):
        parse_experiment(value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="can't be read: No such file"):
        load_experiment(tmp_path / "absent.yaml")
    with pytest.raises(ExperimentError, match="is no file, but a folder"):
        load_experiment(tmp_path)
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"name: caf\xe9\n")
    with pytest.raises(ExperimentError, match="should be UTF-8, byte 10 is not"):
        load_experiment(latin)
    large = tmp_path / "large.yaml"
    large.write_text("#" * 1_000_001)
    with pytest.raises(ExperimentError, match="at most 1000000 bytes"):
        load_experiment(large)


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'glove-quick'"):
        load_experiment("glove-quik")


@pytest.mark.parametrize("name", shipped_experiments())
def test_shipped_experiments_load_and_say_what_they_are(name: str) -> None:
    experiment = load_experiment(name)
    assert experiment.name == name
    assert experiment.about


def test_labels_tell_namesakes_apart() -> None:
    parts = [
        PartSpec.model_validate(p) for p in ("glove", {"glove": {"epsilon": 0.2}}, {"glove": {"budget": 3}}, "none")
    ]
    assert [part.label(parts) for part in parts] == ["glove", "glove(epsilon=0.2)", "glove(budget=3)", "none"]
    nested = [PartSpec.model_validate({"glove": {"prober": p}}) for p in ("snapshot", {"replay": {"attempts": 3}})]
    assert [p.label(nested) for p in nested] == ["glove(prober=snapshot)", "glove(prober=replay(attempts=3))"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"seeds": 2**63}, f"seeds: should be at most 1000000. Received {2**63}"),
        ({"seeds": 10**8}, "seeds: should be at most 1000000. Received 100000000"),
        ({"seeds": {"first": 0, "count": 10**8}}, "seeds: should be at most 1000000 seeds"),
        ({"seeds": {"first": 2**53 - 1, "count": 2}}, "seeds: should be seeds from 0 to 9007199254740991"),
        ({"rounds": 10**9}, "rounds: should be at most 1000000. Received 1000000000"),
        ({"train": {"episodes": 10**9}}, "should be at most 1000000. Received 1000000000"),
    ],
    ids=lambda value: str(value)[:40] if not isinstance(value, dict) else "-".join(value),
)
def test_counts_are_refused_by_a_stated_limit(change: dict[str, Any], expected: str) -> None:
    data = {
        "name": "big",
        "schedules": ["frozen_lake/explicit"],
        "agents": {"memory": "vanilla", "policy": "planner"},
        "seeds": 1,
        "rounds": 1,
    }
    with pytest.raises(ExperimentError, match=re.escape(expected)):
        parse_experiment({**data, **change})


def test_a_schedule_is_no_experiment(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("version: 1\nenv: DriftFrozenLake-v0\ndrifts:\n  - {at: 5, set: {slip: 0.5}}\n", encoding="utf-8")
    with pytest.raises(ExperimentError, match=r"mine\.yaml: is a schedule; an experiment names it under `schedules`$"):
        load_experiment(file)


def test_too_many_cells_are_refused_before_they_are_made() -> None:
    agents = {"memory": [{"vanilla": {"k": k}} for k in range(1, 101)], "policy": "planner"}
    data = {"name": "big", "schedules": ["frozen_lake/explicit"], "agents": agents, "seeds": 20_000, "rounds": 1}
    with pytest.raises(ExperimentError, match=r"should have at most 1000000 cells .* Received 2000000"):
        plan_cells(parse_experiment(data))


NOT_A_COUNT = ("embedding", "matching", "prober")


@pytest.mark.parametrize("registry", [MEMORIES, VERIFIERS, CONTROLLERS], ids=lambda registry: registry.kind)
def test_counts_of_parts_are_refused_by_a_stated_limit(registry: Registry) -> None:
    """Every option with an error for 0 whole things has one for 10^30 of them."""
    counts = 0
    for name in registry.names():
        for option in registry.options(name)[0]:
            if option in NOT_A_COUNT:
                continue
            try:
                registry.make(name, **{option: -1})
            except ArgumentError as error:
                if "whole number, at least 1" in str(error):
                    counts += 1
                    with pytest.raises(
                        ArgumentError, match=f"`{option}` should be a whole number in the interval .* Received 10"
                    ):
                        registry.make(name, **{option: 10**30})
            except TypeError:  # a part that needs other arguments too
                continue
    assert counts > 0


POINTS = {
    "name": "points",
    "schedules": ["frozen_lake/explicit:family", "frozen_lake/explicit", "house/locked", "house/keys"],
    "agents": {"memory": ["vanilla"], "policy": "planner"},
    "seeds": 2,
    "rounds": 3,
    "environments": {"frozen_lake/explicit": {"rounds": 5}, "house/locked": {"rounds": 7}, "house/keys": {"rounds": 9}},
}


def test_settings_without_a_suffix_hold_for_the_variants_that_have_none() -> None:
    experiment = load_experiment(POINTS)
    assert [experiment.settings_of(name).rounds for name in POINTS["schedules"]] == [5, 5, 7, 9]
    own = {**POINTS["environments"], "frozen_lake/explicit:family": {"rounds": 1}}
    assert load_experiment({**POINTS, "environments": own}).settings_of("frozen_lake/explicit:family").rounds == 1


@pytest.mark.parametrize(
    ("chosen", "played"),
    [
        (["frozen_lake/explicit"], ["frozen_lake/explicit:family", "frozen_lake/explicit"]),
        (["house/keys", "frozen_lake/explicit:family"], ["frozen_lake/explicit:family", "house/keys"]),
    ],
)
def test_chosen_schedules_keep_the_files_order_and_settings(chosen: list[str], played: list[str]) -> None:
    experiment = load_experiment(POINTS, {"schedules": chosen})
    assert list(experiment.schedules) == played
    assert [experiment.settings_of(name).rounds for name in played] == [
        load_experiment(POINTS).settings_of(name).rounds for name in played
    ]


def test_a_chosen_schedule_that_the_file_lacks_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="no schedule of this experiment is called 'house/basin'"):
        load_experiment(POINTS, {"schedules": ["house/basin"]})
