"""All errors of a schedule are reported at once, with file, line and key."""

import os
import re
import socket
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drift_envs.errors import ArgumentError, ScheduleError
from drift_envs.schedule import Schedule, load_schedule

GOOD = "version: 1\ndrifts:\n  - {at: 20, set: {slip: 0.5}}\n"


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes a file into an empty folder, which is the working directory."""
    monkeypatch.chdir(tmp_path)

    def write_file(text, name="a.yaml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return name

    return write_file


def lines_of(source, table=None):
    with pytest.raises(ScheduleError) as caught:
        load_schedule(source, table=table)
    assert str(caught.value) == "\n".join(map(str, caught.value.problems))
    return [str(problem) for problem in caught.value.problems]


def drift_problem(drift, table):
    """What is said about one drift, without the place."""
    return [line.removeprefix("<dict>: ") for line in lines_of({"version": 1, "drifts": [drift]}, table)]


def test_a_schedule_of_another_environment_is_named(table):
    (line,) = lines_of({"version": 1, "env": "DriftMountainCar-v0", "base": {"goal_position": 0.5}}, table)
    assert line.startswith(
        "<dict>: base.goal_position: is no knob of this environment (the schedule's `env` is 'DriftMountainCar-v0'). "
    )


def test_everything_is_told_at_once_in_the_order_of_the_file(write, table):
    text = """version: 1
nam: x
clock: stepp
base: {slip: 3, mop: 1, map: [SF, F]}
drifts:
  - at: -1
    for: 4
    every: 3
    over: .nan
    set: {slip: No}
    slip: 4
    slip: 5
  - 7
  - {at: 20, set: {map: [SF, FG]}, kind: incremental, curve: {stps: 3}}
  - {name: source, rate: 2, walk: {slip: 0}, scale: {label: 2}}
tasks: {pol: 3}
seed: -1
"""
    assert lines_of(write(text), table) == [
        "a.yaml:2: nam: is no key that belongs here. Did you mean `name`?",
        "a.yaml:3: clock: should be 'episode', 'step' or 'episode_step'. Received 'stepp'. Did you mean 'step'?",
        "a.yaml:4: base.slip: `slip` should be in the interval [0.0, 1.0]. Received 3",
        "a.yaml:4: base.mop: is no knob of this environment. Did you mean `map`?",
        "a.yaml:4: base.map: rows must have equal length, row 2 has 1 of 2",
        "a.yaml:6: drifts[0].at: should be at least 0. Received -1",
        "a.yaml:7: drifts[0].for: `for` should be less than `every` (3). Received 4",
        "a.yaml:9: drifts[0].over: should be a finite number. Received nan",
        "a.yaml:10: drifts[0].set.slip: `slip` should be a number. Received 'No'",
        "a.yaml:12: slip: stands twice, first on line 11",
        "a.yaml:12: drifts[0].slip: is no key that belongs here. Known: `name`, `at`, `every`, `rate`, `jitter`, "
        "`for`, `kind`, `over`, `curve`, `set`, `add`, `scale`, `swap`, `choice`, `walk`",
        "a.yaml:13: drifts[1]: should be a mapping. Received 7",
        "a.yaml:14: drifts[2].curve.steps: is missing",
        "a.yaml:14: drifts[2].curve.stps: is no key that belongs here. Did you mean `steps`?",
        "a.yaml:14: drifts[2].kind: `kind: incremental` needs `over`: the number of ticks that the change takes",
        "a.yaml:14: drifts[2].set.map: `kind: incremental` is for numbers, `map` is of kind rows: "
        "use sudden or gradual",
        "a.yaml:15: drifts[3].rate: should be at most 1.0. Received 2",
        "a.yaml:15: drifts[3].walk.slip: should be more than 0.0. Received 0",
        "a.yaml:15: drifts[3].name: `source` is the id of the phase before the first drift, choose another name",
        "a.yaml:15: drifts[3].scale.label: `scale` is for numbers, `label` is of kind string",
        "a.yaml:16: tasks.pol: is no key that belongs here. Did you mean `pool`?",
        "a.yaml:17: seed: should be at least 0. Received -1",
    ]


@pytest.mark.parametrize(
    ("drift", "rule"),
    [
        ({"set": {"slip": 1}}, "drifts[0]: says nowhere when it happens: needs `at`, `every` or `rate`"),
        ({"at": 1}, "drifts[0]: says nowhere what it changes: needs one of `set`, `add`"),
        ({"at": 1, "set": {}}, "drifts[0]: says nowhere what it changes"),
        ({"every": 2, "rate": 0.5, "set": {"slip": 1}}, "drifts[0].rate: `every` and `rate` exclude each other"),
        (
            {"every": 2, "for": 2, "set": {"slip": 1}},
            "drifts[0].for: `for` should be less than `every` (2). Received 2",
        ),
        ({"rate": 0.1, "jitter": 2, "set": {"slip": 1}}, "drifts[0].jitter: `jitter` and `rate` exclude each other"),
        (
            {"at": 1, "jitter": 2, "set": {"slip": 1}},
            "drifts[0].jitter: `jitter` should be at most `at` (1), so that no start lies before 0. Received 2",
        ),
        (
            {"every": 9, "jitter": 3, "for": 3, "set": {"slip": 1}},
            "drifts[0].jitter: twice `jitter` and `for` should be less than `every` (9), so that occurrences keep "
            "their order. Received 3",
        ),
        ({"at": 1, "over": 2, "set": {"slip": 1}}, "drifts[0].over: `over` is for `kind: incremental`"),
        ({"at": 1, "curve": "linear", "set": {"slip": 1}}, "drifts[0].curve: `curve` is for `kind: incremental`"),
        ({"at": 1, "kind": "gradual", "set": {"slip": 1}}, "drifts[0].kind: `kind: gradual` needs `over`"),
        (
            {"at": 1, "kind": "gradual", "over": 3, "for": 5, "set": {"slip": 1}},
            "drifts[0].over: `over` should be at most half of `for` (5), so that the ramp is up before it falls. "
            "Received 3",
        ),
        (
            {"every": 1, "kind": "gradual", "over": 101, "set": {"slip": 1}},
            "drifts[0].over: at most 100 ramps of a drift should overlap on average. Received 101",
        ),
        (
            {"at": 1, "set": {"slip": 1}, "add": {"slip": 1}},
            "drifts[0].add.slip: a knob should stand once in a drift, `slip` stands under `set` too",
        ),
        ({"at": 1, "set": {"slippp": 1}}, "drifts[0].set.slippp: is no knob of this environment. Did you mean `slip`?"),
        ({"at": 1, "add": {"flag": 1}}, "drifts[0].add.flag: `add` is for numbers, `flag` is of kind boolean"),
        ({"at": 1, "walk": {"map": 1}}, "drifts[0].walk.map: `walk` is for numbers, `map` is of kind rows"),
        ({"at": 1, "swap": {"map": ["a", "b"]}}, "drifts[0].swap.map: `swap` is for mappings, `map` is of kind rows"),
        ({"at": 1, "swap": {"rewards": ["a", "a"]}}, "drifts[0].swap.rewards: the two keys should differ"),
        ({"at": 1, "swap": {"rewards": ["a"]}}, "drifts[0].swap.rewards: should be a list of two. Received ['a']"),
        ({"at": 1, "swap": {"rewards": ["a", "b", "c"]}}, "drifts[0].swap.rewards: should be a list of two"),
        ({"at": 1, "swap": {"rewards": ["a", "c"]}}, "drifts[0].swap.rewards: `rewards` has no key 'c' to swap"),
        ({"at": 1, "choice": {"label": ["A"]}}, "drifts[0].choice.label: should have at least 2 entries. Received 1"),
        (
            {"at": 1, "choice": {"slip": [1, 1.0]}},
            "drifts[0].choice.slip: the values should differ. Received 1.0 twice",
        ),
        ({"at": 1, "choice": {"label": ["A", "X"]}}, "drifts[0].choice.label: `label` should be one of 'A', 'B'"),
        (
            {"at": 1, "choice": {"map": [["S"], {"draw": {}}]}},
            "drifts[0].choice.map: `draw` has no place under `choice`",
        ),
        (
            {"at": 1, "set": {"label": False}},
            "drifts[0].set.label: `label` should be a string. Received False; put it in",
        ),
        ({"at": 1, "set": {"slip": {"draw": {}}}}, "drifts[0].set.slip: `slip` can't be drawn from the seed"),
        ({"at": 1, "set": {"map": {"draw": {"sise": 3}}}}, "drifts[0].set.map: `draw` knows no ['sise']"),
        ({"at": 1, "set": {"map": {"draw": 3}}}, "drifts[0].set.map: `draw` should be a mapping of arguments"),
        ({"at": 1, "set": {"count": 2.5}}, "drifts[0].set.count: `count` should be a whole number. Received 2.5"),
        ({"at": "1", "set": {"slip": 1}}, "drifts[0].at: should be a whole number. Received '1'"),
        ({"at": True, "set": {"slip": 1}}, "drifts[0].at: should be a whole number. Received true"),
        ({"at": 10**16, "set": {"slip": 1}}, "drifts[0].at: should be at most 1000000000000000"),
        ({"at": 1, "set": [1]}, "drifts[0].set: should be a mapping. Received [1]"),
        ({"at": 1, "add": {"slip": "1"}}, "drifts[0].add.slip: should be a number. Received '1'"),
        ({"at": 1, "set": {"slip": float("nan")}}, "drifts[0].set.slip: should be a finite number. Received nan"),
        ({"name": "a b", "at": 1, "set": {"slip": 1}}, "drifts[0].name: should consist of letters, digits"),
        ({"at": 1, "set": {"low": 6}}, "drifts[0].set.low: `low` should be at most `high`. Received 6 and 5 (while"),
    ],
    ids=lambda value: value[:48] if isinstance(value, str) else "",
)
def test_a_broken_rule_is_told_alone_and_by_name(drift, rule, table):
    lines = drift_problem(drift, table)
    assert len(lines) == 1
    assert lines[0].startswith(rule)


@pytest.mark.integration
def test_a_thousand_drifts_are_enough(table):
    drifts = [{"at": tick, "set": {"slip": 0.5}} for tick in range(1001)]
    assert lines_of({"version": 1, "drifts": drifts}, table) == [
        "<dict>: drifts: should have at most 1000 entries. Received 1001"
    ]
    assert len(load_schedule({"version": 1, "drifts": drifts[:300]}, table=table).drifts) == 300


def test_names_stand_once_and_default_to_their_position(table):
    drift = {"at": 1, "set": {"slip": 1}}
    assert lines_of({"version": 1, "drifts": [drift, {**drift, "name": "drift-1"}]}) == [
        "<dict>: drifts[1].name: a name should stand for one drift only, drifts[0] has it too. Received `drift-1`"
    ]
    schedule = load_schedule({"version": 1, "drifts": [drift, {**drift, "name": "b"}, drift]})
    assert [one.name for one in schedule.drifts] == ["drift-1", "b", "drift-3"]


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"", "a.yaml: is empty"),
        (b"# nothing\n", "a.yaml: is empty"),
        (b"- 1\n", "a.yaml:1: should be a mapping of keys to values"),
        (b"hello", "a.yaml:1: should be a mapping of keys to values"),
        (b"a: 1\nb: \xff\n", "a.yaml:2: should be UTF-8, byte 9 is not"),
        (b"version: 1\nx: [\n", "is not YAML"),
        (b"#" * 1_000_001, "a.yaml: should have at most 1000000 bytes. Received 1000001"),
        (b"name: x\n", "a.yaml:1: version: is missing: write `version: 1`"),
        (b"version: 1\ndrifts: [{at: '10', set: {slip: 0.1}}]\n", "Received '10'. In quotes it is a text: write 10"),
        (
            b"version: 1\ndrifts: [{at: 1e4, set: {slip: 0.1}}]\n",
            "should be a whole number. Received 10000.0: write 10000",
        ),
        (b"version: 2\n", "a.yaml:1: version: should be 1, the version of the language that this release reads"),
        (b"version: true\n", "a.yaml:1: version: should be 1"),
        (b"version: 1\nbase: " + b"[" * 23 + b"]" * 23, "a.yaml:2: base: should be a mapping"),
    ],
    ids=lambda value: value[:20].decode(errors="replace") if isinstance(value, bytes) else "",
)
def test_files_that_are_no_schedule(write, content, rule):
    lines = lines_of(write(content))
    assert any(rule in line for line in lines)
    assert all(line.startswith("a.yaml") for line in lines)


@pytest.mark.integration
def test_what_can_not_be_read_is_refused(write, tmp_path):
    assert lines_of("b.yaml") == ["b.yaml: can't be read: No such file or directory"]
    (tmp_path / "engine.yaml").touch()
    for wrong in ("engine.yml", "engin.yaml", "engin"):
        assert lines_of(wrong)[0].endswith("Did you mean `engine.yaml`?")
    (tmp_path / "c.yaml").mkdir()
    assert lines_of("c.yaml") == ["c.yaml: is no file, but a folder"]
    os.mkfifo(tmp_path / "d.yaml")
    assert lines_of("d.yaml") == ["d.yaml: is no file"]
    server = socket.socket(socket.AF_UNIX)
    server.bind("e.yaml")
    server.close()
    assert lines_of(tmp_path / "e.yaml")[0].endswith("e.yaml: is no file")
    assert "can't be read" in lines_of("x" * 5000 + ".yaml")[0]
    assert lines_of("a\0.yaml") == [r"a path can't hold a null character. Received 'a\x00.yaml'"]
    (tmp_path / "g.yaml").symlink_to("g.yaml")
    assert "g.yaml: can't be read" in lines_of("g.yaml")[0]
    if os.geteuid() != 0:
        os.chmod(tmp_path / write(GOOD, "f.yaml"), 0)
        assert lines_of("f.yaml") == ["f.yaml: can't be read: Permission denied"]


def test_names_paths_dictionaries_and_schedules_are_read_alike(write, table):
    path = write(GOOD, "my file.yaml")
    schedule = load_schedule(path, table=table)
    assert schedule.name == "my-file"
    for source in (path, schedule, schedule.to_dict()):
        again = load_schedule(source, table=table)
        assert again == schedule
        assert hash(again) == hash(schedule)
        assert again.content_hash() == schedule.content_hash()
    assert load_schedule(write(b"\xef\xbb\xbf" + GOOD.encode(), "bom.yml")).drifts == schedule.drifts
    assert load_schedule(None, table=table) is None


def test_an_unknown_name_suggests_the_nearest(write):
    for name in ("frozen_lake/explict", "frozenlake/explicit"):
        assert lines_of(name)[0].endswith("Did you mean `frozen_lake/explicit`?")
    known = "Known: `cart_pole/explicit`, `cart_pole/harmless`, `cart_pole/implicit`, `cart_pole/null`"
    for name in ("cart_pole", "cartpole", "cart_pole/cart_pole", "cart_pole/"):
        assert lines_of(name)[0].endswith(known)
    for name in (
        "",
        "x",
        "../frozen_lake/explicit",
        "frozen_lake/../frozen_lake/explicit",
        "/etc/passwd\0",
        "a" * 9999,
    ):
        assert "there is no shipped schedule" in lines_of(name)[0]


@pytest.mark.parametrize("source", [3, [], b"frozen_lake/explicit", object()])
def test_other_sources_are_refused(source):
    with pytest.raises(ArgumentError, match="`schedule` should be a name, a path, a dictionary, a Schedule or None"):
        load_schedule(source)


def test_dictionaries_may_hold_tuples_and_numpy_numbers_but_no_objects(table):
    data = {"version": 1, "base": {"map": ("SF", "FG"), "slip": np.float32(0.5), "count": np.int64(4)}}
    assert load_schedule(data, table=table).base == {"map": ("SF", "FG"), "slip": 0.5, "count": 4}
    circle = {}
    circle["base"] = circle
    assert any("nested deeper than" in line for line in lines_of({"version": 1, **circle}))
    assert lines_of({"version": 1, "base": {1.5: 2, "a": 10**5000, "b": object(), "c": float("-inf")}}) == [
        "<dict>: base: a key should be a string. Received 1.5",
        "<dict>: base.a: should be a whole number of at most 18 digits. Received a longer one",
        "<dict>: base.b: should be plain data. Received object",
        "<dict>: base.c: should be a finite number. Received -inf",
    ]


def test_extends_takes_the_rest_from_the_other_file(write):
    write("version: 1\nname: low\nclock: step\nbase: {slip: 0.5}\ndescription: the base\n", "deep/low.yaml")
    top = write("extends: deep/low.yaml\nbase: {flag: true}\n", "top.yaml")
    schedule = load_schedule(top)
    assert (schedule.name, schedule.clock, dict(schedule.base)) == ("top", "step", {"flag": True})
    shipped = load_schedule({"extends": "frozen_lake/explicit", "name": "mine", "clock": "step"})
    assert shipped.drifts == load_schedule("frozen_lake/explicit").drifts
    assert (shipped.name, shipped.clock) == ("mine", "step")


def test_problems_in_what_is_extended_name_its_file_and_line(write, table):
    write("version: 1\n\nbase: {slip: 7}\n", "low.yaml")
    top = write("extends: low.yaml\nclock: hour\n", "top.yaml")
    lines = lines_of(top, table)
    assert lines[0].startswith("top.yaml:2: clock: should be")
    assert lines[1].endswith("low.yaml:3: base.slip: `slip` should be in the interval [0.0, 1.0]. Received 7")


def test_extends_is_refused_in_a_circle_and_out_of_the_folder(write, tmp_path):
    write("extends: b.yaml\n", "a.yaml")
    write("extends: a.yaml\n", "b.yaml")
    assert "goes round in a circle" in lines_of("a.yaml")[0]
    write("extends: me.yaml\n", "me.yaml")
    assert re.fullmatch(r"me\.yaml:1: extends: goes round in a circle, back to .*me\.yaml", lines_of("me.yaml")[0])
    write(GOOD, "bare")
    for target in (
        "none.yaml",
        "frozen_lake/none",
        "bare",
        f"{tmp_path}/bare",
        "../a.yaml",
        "/etc/a.yaml",
        "x/../../a.yaml",
        "'\\\\a.yaml'",
        "7",
    ):
        write(f"version: 1\nextends: {target}\n", "c.yaml")
        assert lines_of("c.yaml")[0].startswith("c.yaml:2: extends: ")
    outside = tmp_path.parent / f"{tmp_path.name}-outside.yaml"
    outside.write_text(GOOD)
    (tmp_path / "link.yaml").symlink_to(outside)
    write("version: 1\nextends: link.yaml\n", "c.yaml")
    assert "leads out of it" in lines_of("c.yaml")[0]
    assert "a shipped name is needed" in lines_of({"version": 1, "extends": "a.yaml"})[0]
    for number in range(12):
        write(f"extends: n{number + 1}.yaml\n", f"n{number}.yaml")
    assert "a chain of `extends` may have 8 files" in lines_of("n0.yaml")[0]


@settings(max_examples=3 * settings().max_examples)
@given(text=st.one_of(st.text(max_size=60), st.binary(max_size=60)))
def test_any_file_is_read_or_refused(tmp_path_factory, table, text):
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    loaded = None
    with suppress(ScheduleError):  # any other error fails the test
        loaded = load_schedule(path, table=table)
    assert loaded is None or isinstance(loaded, Schedule)


KEYS = st.sampled_from(
    ["version", "name", "drifts", "base", "at", "every", "for", "kind", "over", "curve", "set", "slip"]
)
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(-3, 30), st.floats(), st.sampled_from(["gradual", "x", ""]))
DATA = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5))


@settings(max_examples=4 * settings().max_examples)
@given(data=st.dictionaries(KEYS, DATA, max_size=6))
def test_any_dictionary_is_read_or_refused(table, data):
    loaded = None
    with suppress(ScheduleError):
        loaded = load_schedule({**data, "version": 1}, table=table)
    if loaded is not None:
        assert isinstance(loaded, Schedule)
        assert load_schedule(loaded.to_dict(), table=table) == loaded


def test_an_unknown_key_hides_nothing(table):
    wrong = {"version": 1, "base": {"low": 5.0, "high": 1.0}}
    alone = lines_of(wrong, table)
    assert "should be at most `high`" in alone[0]
    assert lines_of({**wrong, "clok": "step"}, table) == [
        "<dict>: clok: is no key that belongs here. Did you mean `clock`?",
        *alone,
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"drifts": [{"every": [7, 9], "set": {"slip": 0.1}}]}, "write a drift for each, or `every`"),
        ({"drifts": [{"at": 1, "set": None, "slip": 0.5}]}, "Indent it further than `set`, so that it stands below it"),
        ({"drifts": {"at": 1, "set": {"slip": 0.5}}}, "Begin each drift with a dash, as in `- at: 20`"),
        ({"drifts": [{"at:5": None, "every": 3, "set": {"slip": 0.1}}]}, "Put a blank behind the colon: `at: 5`"),
        ({"name": "Größe", "drifts": []}, "letters are a to z and A to Z. Received 'Größe'"),
    ],
)
def test_messages_say_what_is_meant(content, message):
    with pytest.raises(ScheduleError, match=re.escape(message)):
        load_schedule({"version": 1, **content})


def test_a_knob_of_our_own_form_names_its_id():
    import gymnasium as gym

    from drift_envs import DriftWrapper

    for env_id, knobs, end in (
        ("MountainCarContinuous-v0", {"power": 0.1}, "`reward_sign`"),
        ("CartPole-v1", {"masspol": 0.1}, "Did you mean `masspole`?"),
        ("CliffWalking-v1", {"wind": 0.1}, "`reward_sign`"),
    ):
        with pytest.raises(ScheduleError) as caught:
            DriftWrapper(
                gym.make(env_id), {"version": 1, "name": "p", "env": env_id, "drifts": [{"at": 1, "set": knobs}]}
            )
        assert str(caught.value).endswith(end)
        assert ("Did you mean `env: DriftMountainCarContinuous-v0`?" in str(caught.value)) == ("power" in knobs)


def test_a_knob_without_a_blank_behind_its_colon():
    import gymnasium as gym

    drifts = [{"at": 1, "set": {"slip:0.5": None}}]
    with pytest.raises(ScheduleError, match=re.escape("Put a blank behind the colon: `slip: 0.5`")):
        gym.make("DriftFrozenLake-v0", schedule={"version": 1, "name": "s", "drifts": drifts})
