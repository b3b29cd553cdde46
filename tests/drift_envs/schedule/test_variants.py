"""Variants: what a file declares and what a suffix chooses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift_envs.cli.app import main
from drift_envs.errors import ScheduleError, UnknownScheduleError
from drift_envs.schedule import load_schedule, shipped_schedules
from drift_envs.schedule import yaml as files
from drift_envs.schedule.yaml import Document, Mark, choose_variant, split_suffix, variants_of

LAKE = """version: 1
name: my/lake
env: DriftFrozenLake-v0
base: {slip: 0.1}
drifts:
  - {at: 20, set: {slip: 0.5}}
variants:
  icy:
    base: {slip: 0.3}
  late:
    description: Later.
    clock: step
    drifts:
      - {at: 90, set: {slip: 0.5}}
"""
NAMES = st.from_regex(r"[a-z0-9_]{1,8}/[a-z0-9_-]{1,8}", fullmatch=True)
SUFFIXES = st.from_regex(r"[a-z0-9]{1,6}(-[a-z0-9]{1,6}){0,2}", fullmatch=True)


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("lake.yaml").write_text(LAKE, encoding="utf-8")
    return "lake.yaml"


def test_keys_of_a_variant_replace_those_of_the_file(lake: str) -> None:
    whole, icy, late = load_schedule(lake), load_schedule("lake.yaml:icy"), load_schedule("lake.yaml:late")
    assert variants_of(lake) == ("icy", "late")
    assert [schedule.name for schedule in (whole, icy, late)] == ["my/lake", "my/lake:icy", "my/lake:late"]
    assert [schedule.base["slip"] for schedule in (whole, icy, late)] == [0.1, 0.3, 0.1]
    assert [schedule.drifts[0].at for schedule in (whole, icy, late)] == [20, 20, 90]
    assert late.clock == "step"
    assert load_schedule(icy.to_dict()) == icy
    assert gym.make("DriftFrozenLake-v0", schedule="lake.yaml:icy").get_wrapper_attr("schedule").name == icy.name


def test_a_short_name_takes_a_suffix_too() -> None:
    env = gym.make("DriftFrozenLake-v0", schedule="implicit:family")
    assert env.get_wrapper_attr("schedule").name == "frozen_lake/implicit:family"


@pytest.mark.parametrize("target", ["lake.yaml:late", "frozen_lake/slippery:long"])
def test_a_variant_can_be_extended(lake: str, target: str) -> None:
    Path("mine.yaml").write_text(f"extends: {target}\nbase: {{slip: 0.4}}\n", encoding="utf-8")
    mine, other = load_schedule("mine.yaml"), load_schedule(target)
    assert (mine.name, mine.drifts) == ("mine", other.drifts)
    assert variants_of("mine.yaml") == ()
    with pytest.raises(UnknownScheduleError, match=r"`mine\.yaml` has no variant 'late'\. There are none"):
        load_schedule("mine.yaml:late")


def test_the_variants_of_a_file_lie_on_what_it_extends(lake: str) -> None:
    text = "extends: lake.yaml:late\nname: mine\nvariants:\n  wet: {base: {slip: 0.9}}\n"
    Path("mine.yaml").write_text(text, encoding="utf-8")
    wet = load_schedule("mine.yaml:wet")
    assert (wet.name, wet.base["slip"], wet.drifts[0].at, wet.clock) == ("mine:wet", 0.9, 90, "step")


def test_what_a_file_extends_must_be_there(lake: str) -> None:
    for target in ("lake.yaml:late:more", "lake.yaml:nope", "frozen_lake/explicit:nope"):
        Path("mine.yaml").write_text(f"version: 1\nextends: {target}\n", encoding="utf-8")
        with pytest.raises(ScheduleError, match=r"^mine\.yaml:2: extends: ") as caught:
            load_schedule("mine.yaml")
        assert not isinstance(caught.value, UnknownScheduleError), "the file is wrong, not the name that was given"
    Path("mine.yaml").write_text("extends: mine.yaml:wet\nvariants:\n  wet: {}\n", encoding="utf-8")
    with pytest.raises(ScheduleError, match=r"goes round in a circle, back to mine\.yaml"):
        load_schedule("mine.yaml")


@pytest.mark.parametrize(
    ("section", "told"),
    [
        (
            "  icy: {base: {slip: 3}}",
            "lake.yaml:8: variants.icy.base.slip: `slip` should be in the interval [0.0, 1.0]",
        ),
        ("  icy: {clok: step}", "lake.yaml:8: variants.icy.clok: is no key that belongs here. Did you mean `clock`?"),
        (
            "  icy:\n    drifts:\n      - {at: -1, set: {slip: 1}}",
            "lake.yaml:10: variants.icy.drifts[0].at: should be at",
        ),
        ("  icy: {name: x}", "lake.yaml:8: variants.icy.name: a variant cannot replace `name`"),
        ("  icy: {extends: frozen_lake/thaw}", "lake.yaml:8: variants.icy.extends: a variant cannot replace `extends`"),
        ("  icy: {variants: {}}", "lake.yaml:8: variants.icy.variants: a variant cannot replace `variants`"),
        ("  icy: 7", "lake.yaml:8: variants.icy: should be a mapping of replaced keys. Received 7"),
        ("  icy: {}\n  Icy: {}", "lake.yaml:7: variants: a suffix should consist of small letters and digits"),
        ("  icy: {}\n  icy: {}", "lake.yaml:9: icy: stands twice"),
    ],
)
def test_what_is_wrong_with_a_variant_is_told_with_line_and_key(lake: str, section: str, told: str) -> None:
    Path(lake).write_text(f"{LAKE.partition('  icy')[0]}{section}\n", encoding="utf-8")
    with pytest.raises(ScheduleError) as caught:
        gym.make("DriftFrozenLake-v0", schedule="lake.yaml:icy")
    assert [str(problem) for problem in caught.value.problems if str(problem).startswith(told)]


@pytest.mark.parametrize("section", [7, [], {"icy": 7}, {3: {}}, {"Icy": {}}, {"icy": {"name": "x"}}, {"": {}}])
def test_a_dictionary_may_have_variants_of_the_right_form(section: Any) -> None:
    data = {"version": 1, "base": {"slip": 0.1}}
    assert load_schedule({**data, "variants": {"icy": {"base": {}}}}) == load_schedule(data)
    with pytest.raises(ScheduleError, match=r"^<dict>: variants"):
        load_schedule({**data, "variants": section})


@given(NAMES | st.from_regex(r"[A-Za-z:/]{0,8}[a-z]\.ya?ml", fullmatch=True), SUFFIXES)
def test_a_suffix_is_split_off_and_nothing_else_is(name: str, suffix: str) -> None:
    assert split_suffix(name) == (name, None)
    assert split_suffix(f"{name}:{suffix}") == (name, suffix)


@given(st.sampled_from([name for name in shipped_schedules() if ":" not in name]), st.text(max_size=12))
def test_an_unknown_suffix_names_the_nearest_one(name: str, suffix: str) -> None:
    known = variants_of(name)
    if suffix in known or f"{name}:{suffix}".endswith((".yaml", ".yml")):
        return
    with pytest.raises(UnknownScheduleError) as caught:
        load_schedule(f"{name}:{suffix}")
    text = str(caught.value)
    if ":" in suffix:
        assert "there is no shipped schedule" in text
    elif known:
        assert any(f"`{name}:{one}`" in text for one in known)
    else:
        assert text.endswith("There are none")


@given(st.dictionaries(SUFFIXES, st.fixed_dictionaries({}, optional={"base": st.just({}), "clock": st.just("step")})))
def test_every_declared_suffix_can_be_chosen_and_no_other(section: dict[str, dict[str, Any]]) -> None:
    data = {"version": 1, "name": "a", "base": {"slip": 0.1}, "clock": "episode"}
    document = Document({**data, "variants": section}, Mark("a.yaml", None))
    assert choose_variant(document, None).data == data
    for suffix, own in section.items():
        chosen = choose_variant(document, suffix)
        assert chosen.data == {**data, **own, "name": f"a:{suffix}"}
        assert set(chosen.prefixes) == set(own)
        assert not chosen.problems
    with pytest.raises(KeyError):
        choose_variant(document, "not-declared-here")


def test_a_file_is_read_once_for_all_its_variants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Otherwise the time of `validate` grows by the square."""
    file = tmp_path / "many.yaml"
    lines = ["version: 1", "env: DriftFrozenLake-v0", "drifts: [{at: 5, set: {slip: 0.5}}]", "variants:"]
    file.write_text("\n".join([*lines, *(f"  v{n}: {{base: {{slip: 0.{n + 1:02d}}}}}" for n in range(30))]))
    sizes: list[int] = []
    read_text = files._read_text

    def count(*arguments: Any) -> str:
        text = read_text(*arguments)
        sizes.append(len(text))
        return text

    monkeypatch.setattr(files, "_read_text", count)
    assert main(["validate", str(file)]) == 0
    assert capsys.readouterr().out.splitlines()[::30] == [f"{file}: ok, 2 phases", f"{file}:v29: ok, 2 phases"]
    assert sizes == [file.stat().st_size]
