"""YAML 1.2 scalars, line marks and bounds."""

import re
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drift_envs.schedule.yaml import MAX_NODES, YamlError, parse_yaml, read_scalar


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("6e-4", 6e-4),
        ("1.", 1.0),
        (".5", 0.5),
        ("+1", 1),
        ("-0x1F", "-0x1F"),
        ("0x1F", 31),
        ("0o17", 15),
        ("0123", 123),
        ("1_000", "1_000"),
        ("0b11", "0b11"),
        ("190:20:30", "190:20:30"),
        ("2020-01-01", "2020-01-01"),
        ("No", "No"),
        ("yes", "yes"),
        ("on", "on"),
        ("y", "y"),
        ("true", True),
        ("FALSE", False),
        ("tRUE", "tRUE"),
        ("~", None),
        ("Null", None),
        ("", None),
        ("3,5", "3,5"),
        ("=", "="),
        (".inf", float("inf")),
        ("-.INF", float("-inf")),
        ("1e", "1e"),
        ("e5", "e5"),
    ],
)
def test_scalars_follow_the_core_schema_of_yaml_12(text, value):
    read = read_scalar(text)
    assert read == value
    assert type(read) is type(value)


def test_quoted_scalars_and_keys_stay_text():
    document = parse_yaml("'1': \"2\"\n3: '~'\nyes: |\n  7\nNo: ! 9\n", "f")
    assert document.data == {"1": "2", "3": "~", "yes": "7\n", "No": "9"}


def test_every_key_and_item_has_its_line():
    mark = parse_yaml("a: 1\nb:\n  - x\n  -\n    c: 2\n    d: {e: 3,\n      f: 4}\n", "f").mark
    lines = {("a",): 1, ("b",): 2, ("b", 0): 3, ("b", 1): 5, ("b", 1, "c"): 5, ("b", 1, "d", "f"): 7}
    assert {path: mark.find(path).line for path in lines} == lines
    assert mark.find(["b", 1, "missing"]).line == 5


def test_aliases_share_and_keep_the_lines_of_what_they_stand_for():
    document = parse_yaml("a: &map [SF,\n  FG]\nb: *map\n", "f")
    assert document.data == {"a": ["SF", "FG"], "b": ["SF", "FG"]}
    assert document.mark.find(["b"]).line == 3
    assert document.mark.find(["b", 1]).line == 2


BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "line", "rule"),
    [
        ("a: [1, 2", None, "is not YAML"),
        ("a: 1\n b: 2", 2, "is not YAML"),
        ("a: \x00", None, "is not YAML"),
        ('a: "\\UFFFFFFFF"', None, "is not YAML"),
        ("a: 1\n---\nb: 2", 2, "should be one document"),
        ("\na: !!python/object/apply:os.system [ls]", 2, "tags are not allowed"),
        ("a: !!str 1", 1, "tags are not allowed"),
        ("a: *b", 1, "there is no anchor `&b`"),
        ("a: &b [1, *b]", 1, "stands inside of what it stands for"),
        ("? [a, b]\n: 1", 1, "a key should be a word"),
        ("a: &k [1]\n*k : 2", 2, "a key should be a word"),
        ("[" * 100, 1, "nested deeper than"),
        ("- " * 100_000, 1, "nested deeper than"),
        (BOMB, 5, f"holds more than {MAX_NODES} values"),
        ("a: " + "9" * 5000, 1, "a number may have"),
    ],
    ids=lambda value: value[:12] if isinstance(value, str) else None,
)
def test_what_schedules_do_not_allow_is_refused_with_its_line(text, line, rule):
    with pytest.raises(YamlError, match=re.escape(rule)) as caught:
        parse_yaml(text, "f")
    if line is not None:
        assert caught.value.line == line


def test_every_value_counts(monkeypatch):
    monkeypatch.setattr("drift_envs.schedule.yaml.MAX_NODES", 50)
    assert parse_yaml("- 1\n" * 49, "f").data == [1] * 49
    with pytest.raises(YamlError, match="holds more than 50 values") as caught:
        parse_yaml("- 1\n" * 51, "f")
    assert caught.value.line == 50


@settings(max_examples=10 * settings().max_examples)
@given(text=st.text(alphabet=st.sampled_from(list("ab: -[]{},&*!|>'\"#%\n\t?\\0é\x85\ufeff")), max_size=40))
def test_any_text_is_read_or_refused(text):
    content = None
    with suppress(YamlError):  # any other error fails the test
        content = parse_yaml(text, "f").data
    assert content is None or isinstance(content, (bool, int, float, str, list, dict))


@pytest.mark.parametrize(
    ("text", "line", "hint"),
    [
        ("a: 1\nlist:\n\t- 2\n", 3, "Indent with blanks instead of tabs"),
        ("version: 1\nname:lake\n", 3, "Put a blank behind the colon of `name:`"),
        (
            "knobs: {g: {attribute: model.opt.gravity[2]}}\n",
            1,
            'Quote a path or text with brackets: "model.opt.gravity[2]"',
        ),
        ("g: {b: [1, 2], attribute: parts['a'][0].mass, c: 1}\n", 1, "with brackets: \"parts['a'][0].mass\""),
        ('a: 1\ng: {attribute: body["torso"]}\n', 2, "with brackets: 'body[\"torso\"]'"),
        ("name:lake\nenv: X\n", 2, "Put a blank behind the colon of `name:`"),
        ("base:\n  map: 1\n  slip:0.5\n  more: 2\n", 4, "Put a blank behind the colon of `slip:`"),
        ("drifts:\n  - at: 1\n    set: 2\n   name: x\n", 4, "are indented alike"),
        ("a: 1\n  b: 2\n", 2, "are indented alike"),
    ],
)
def test_what_is_meant_where_a_text_is_not_yaml(text: str, line: int, hint: str) -> None:
    with pytest.raises(YamlError, match=re.escape(hint)) as caught:
        parse_yaml(text, "a.yaml")
    assert caught.value.line == line
