"""The content of a schedule as frozen pydantic models; the loader checks it against an environment."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from drift_envs.attributes.path import PATTERN, AttributePath
from drift_envs.checks import is_integer, is_number
from drift_envs.errors import KnobError
from drift_envs.knobs import FrozenMapping, KnobTable, freeze, thaw
from drift_envs.schedule.yaml import FIXED_KEYS, SECTION, SUFFIX_PATTERN, Finding

MAX_TICK = 10**15
"""The last tick there is: beyond it, ticks would no longer be exact as floating-point numbers."""

MIN_RATE = 1e-9
"""The rarest random event: rarer ones would not fit in front of `MAX_TICK`."""

MAX_DRIFTS = 1000
"""The most drifts of one schedule; each costs time at every tick."""

MOST_RAMPS = 100
"""How many occurrences of one drift may, on average, be on their ramp at once; each costs at every tick."""

OPERATIONS = ("set", "add", "scale", "swap", "choice", "walk")
"""What a drift can do to a knob, in the order of the documentation."""

SOURCE = "source"
"""The id of the phase before the first drift."""

BROKEN_RULE = "schedule_rule"
"""The type of the pydantic errors that stand for findings of `broken_rules`."""

_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
_SCHEDULE_NAME = r"^[A-Za-z0-9][A-Za-z0-9_./:-]*$"


def _check_path(text: str) -> str:
    try:
        AttributePath.parse(text)
    except KnobError as error:
        raise PydanticCustomError("attribute", "{rule}", {"rule": str(error).partition(". Received")[0]}) from None
    return text


Tick = Annotated[int, Field(strict=True, ge=0, le=MAX_TICK)]
Span = Annotated[int, Field(strict=True, ge=1, le=MAX_TICK)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Attribute = Annotated[str, Field(json_schema_extra={"pattern": PATTERN}), AfterValidator(_check_path)]
_FREEZE = AfterValidator(freeze)
Values = Annotated[dict[str, Any], _FREEZE]
Numbers = Annotated[dict[str, Number], _FREEZE]
Sigmas = Annotated[dict[str, Annotated[Number, Field(gt=0)]], _FREEZE]
Pairs = Annotated[dict[str, tuple[str, str]], _FREEZE]
Choices = Annotated[dict[str, Annotated[tuple[Any, ...], Field(min_length=2)]], _FREEZE]
Names = Annotated[tuple[Attribute, ...], Field(min_length=1)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Steps(_Model):
    """The curve of a ramp that rises in `steps` equal steps: w = floor(u * steps) / steps."""

    steps: Span = Field(description="how many equal steps the weight rises in")


CURVE_TAGS = ("[named]", "[steps]")
"""What pydantic inserts after `curve` into the places of errors."""


def _curve_tag(value: Any) -> str:
    return CURVE_TAGS[1] if isinstance(value, (dict, Steps)) else CURVE_TAGS[0]


Curve = Annotated[
    Annotated[Literal["linear", "sigmoid", "exponential"], Tag(CURVE_TAGS[0])] | Annotated[Steps, Tag(CURVE_TAGS[1])],
    Discriminator(_curve_tag),
]


class Drift(_Model):
    """One drift: WHEN it happens, HOW it comes and WHAT it does to which knobs.

    The YAML key `for` is the attribute `duration`, since `for` is a word of Python.

    Example:
        >>> Drift.model_validate({"name": "weekends", "every": 7, "for": 2, "set": {"slip": 0.8}}).duration
        2
    """

    name: str = Field(pattern=_NAME, description="the id of the phase that an occurrence starts; `drift-1` and so on")
    at: Tick | None = Field(
        default=None, description="the tick of the (first) occurrence; with `rate`, the first possible one"
    )
    every: Span | None = Field(
        default=None, description="the ticks between two occurrences; the first is at `at`, or at this"
    )
    rate: Annotated[float, Field(strict=True, ge=MIN_RATE, le=1, allow_inf_nan=False)] | None = Field(
        default=None, description="the probability that an occurrence starts at a tick"
    )
    jitter: Tick = Field(
        default=0, description="each occurrence starts up to so many ticks earlier or later, drawn from the seed"
    )
    duration: Span | None = Field(
        default=None, alias="for", description="an occurrence is undone after this many ticks"
    )
    kind: Literal["sudden", "incremental", "gradual"] = Field(
        default="sudden", description="sudden, interpolated (numbers only), or drawn at each tick from old and new"
    )
    over: Span | None = Field(default=None, description="the ticks that the weight of the new value takes from 0 to 1")
    curve: Curve = Field(default="linear", description="how the weight rises; it falls likewise before `for` ends")
    set: Values = Field(default_factory=FrozenMapping, description="knob: the new value")
    add: Numbers = Field(default_factory=FrozenMapping, description="knob: what is added")
    scale: Numbers = Field(default_factory=FrozenMapping, description="knob: the factor")
    swap: Pairs = Field(default_factory=FrozenMapping, description="knob: the two keys whose values change places")
    choice: Choices = Field(
        default_factory=FrozenMapping, description="knob: the values; each occurrence draws another than the last"
    )
    walk: Sigmas = Field(
        default_factory=FrozenMapping, description="knob: the standard deviation of the step of each occurrence"
    )

    @property
    def first(self) -> int:
        """The tick of the first occurrence, before `jitter` moves it; with `rate`, the first possible one."""
        return (self.at if self.at is not None else self.every) or 0

    @property
    def driven(self) -> tuple[str, ...]:
        """The knobs that it changes."""
        return tuple(name for operation in OPERATIONS for name in getattr(self, operation))

    @model_validator(mode="after")
    def _keep_rules(self) -> Drift:
        _refuse(_broken_in_drift(_written(self)))
        return self


class TaskPool(_Model):
    """How many different goals a shop schedule draws from, and in which order they come."""

    pool: Span = Field(default=5, description="how many different goals an agent meets")
    order: Literal["shuffled", "fixed", "clustered", "mixed"] = Field(
        default="shuffled",
        description="each goal once in every round of the pool, reshuffled, or in turn, or one group of like goals "
        "after the other, or the goals of these groups, shuffled",
    )
    clusters: Span = Field(
        default=3, description="how many equally large groups of like goals; for `clustered` and `mixed` alone"
    )
    repeats: Span = Field(
        default=1, description="how often each goal of a group comes before the next group does; for `clustered` alone"
    )
    goals: Literal["synthetic", "human", "color_class"] = Field(
        default="synthetic", description="made from a listing's options, written by people, or asking for warm colours"
    )
    held_out: Annotated[bool, Field(strict=True)] = Field(
        default=False,
        description="goals of the second generated catalogue, none of which has the instruction or the title of one "
        "of the default catalogue",
    )

    @model_validator(mode="after")
    def _fill_groups(self) -> TaskPool:
        if self.order in ("clustered", "mixed") and self.pool % self.clusters:
            rule = f"`pool` should be a multiple of `clusters` where `order` is {self.order}"
            raise PydanticCustomError("tasks", "{rule}", {"rule": rule})
        return self


class KnobSpec(_Model):
    """A knob that a schedule declares: an attribute of the environment, and what it may be."""

    attribute: Attribute | None = Field(
        default=None, description="the attribute of the environment, by path; the knob's name if absent"
    )
    setter: Attribute | None = Field(
        default=None, description="a method of the environment, by path, that is called with the value"
    )
    default: bool | int | float | str | None = Field(
        default=None, description="the value of a new environment, where a setter sets what no attribute shows"
    )
    kind: Literal["float", "integer", "boolean", "string", "array", "list", "factor"] | None = Field(
        default=None,
        description="what the value is, by default what the attribute is; a factor multiplies the attribute's original "
        "value, a number or an array",
    )
    bounds: tuple[Number, Number] | None = Field(
        default=None, description="the lowest and the highest value, both reachable"
    )
    doc: str = Field(default="", description="one line of meaning, with the unit")


class Derived(_Model):
    """An attribute derived from others: it is recomputed after a knob was set."""

    sum: Names | None = Field(default=None, description="the attributes that are added")
    product: Names | None = Field(default=None, description="the attributes that are multiplied")

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Derived:
        if (self.sum is None) == (self.product is None):
            raise PydanticCustomError("derived", "should have one of `sum` and `product`")
        return self


class Knobs(BaseModel):
    """The section `knobs`: each key is a knob, but for `derived`.

    Example:
        >>> knobs = Knobs.model_validate({"length": {"bounds": [0.1, 2]}, "derived": {"area": {"product": ["length"]}}})
        >>> sorted(knobs.specs)
        ['length']
    """

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, KnobSpec]

    derived: Annotated[dict[Attribute, Derived], _FREEZE] = Field(
        default_factory=FrozenMapping, description="attribute: what it is computed from"
    )

    @property
    def specs(self) -> dict[str, KnobSpec]:
        """The declared knobs by name, in the order of the file."""
        return dict(self.__pydantic_extra__)


class Schedule(_Model):
    """A whole schedule: what the knobs are at first, and the drifts that change them.

    Build one with `load_schedule`, which says everything that is wrong at once. Schedules of equal
    content are equal, hash equally and can be pickled.

    Example:
        >>> drifts = [{"at": 20, "set": {"slip": 0.5}}]
        >>> schedule = Schedule.model_validate({"version": 1, "name": "thaw", "drifts": drifts})
        >>> schedule.drifts[0].name
        'drift-1'
        >>> Schedule.model_validate(schedule.to_dict()) == schedule
        True
    """

    version: Literal[1] = Field(description="the version of the language")
    name: str = Field(pattern=_SCHEDULE_NAME, description="what logs and tables call it")
    description: str = Field(default="", description="one or two sentences for lists")
    env: str | None = Field(default=None, description="the id of the environment that it is written for")
    clock: Literal["episode", "step", "episode_step"] = Field(
        default="episode",
        description="what a tick counts: resets, steps over the life of the environment, or since the reset",
    )
    visibility: Literal["explicit", "implicit"] | None = Field(
        default=None, description="a label: explicit changes structure or dynamics, implicit reward or meaning"
    )
    control: bool = Field(
        default=False, strict=True, description="whether it is meant as a control and left out of rankings"
    )
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**63)] | None = Field(
        default=None, description="pins the random parts of the drifts for all instances"
    )
    knobs: Knobs | None = Field(default=None, description="knobs of an environment that declares none")
    tasks: TaskPool | None = Field(default=None, description="the goals of a shop schedule")
    base: Values = Field(default_factory=FrozenMapping, description="knob: its value in the phase `source`")
    drifts: Annotated[tuple[Drift, ...], Field(max_length=MAX_DRIFTS)] = Field(
        default=(), description="the drifts; later ones lie on top"
    )

    # A slot, not a field: equality, hashes, copies and pickles leave it out, so that a changed copy is checked again.
    __slots__ = ("_table",)

    @field_validator("version", mode="before")
    @classmethod
    def _read_version(cls, value: Any) -> Any:
        if type(value) is not int or value != 1:
            raise PydanticCustomError("version", "should be 1, the version of the language that this release reads")
        return value

    @model_validator(mode="before")
    @classmethod
    def _name_drifts(cls, data: Any) -> Any:
        return {**data, "drifts": named_drifts(data["drifts"])} if isinstance(data, dict) and "drifts" in data else data

    @model_validator(mode="after")
    def _keep_rules(self) -> Schedule:
        _refuse(_broken_in_schedule(_written(self)))
        return self

    @property
    def driven(self) -> tuple[str, ...]:
        """The knobs that it sets in its base or changes by a drift, each once.

        Example:
            >>> Schedule(version=1, name="a", base={"slip": 0.1}, drifts=({"at": 1, "add": {"slip": 1}},)).driven
            ('slip',)
        """
        return tuple(dict.fromkeys((*self.base, *(name for drift in self.drifts for name in drift.driven))))

    def mark_checked(self, table: KnobTable) -> Schedule:
        """Note that every value was checked for this table; `load_schedule` does this.

        Returns:
            The same schedule.
        """
        object.__setattr__(self, "_table", table)
        return self

    def fits(self, table: KnobTable) -> bool:
        """Whether the schedule was checked for an equal table; defaults of knobs that `base` sets do not matter."""
        checked: KnobTable | None = getattr(self, "_table", None)
        return checked is not None and (checked is table or checked.accepts_like(table, ignore_defaults=self.base))

    def to_dict(self) -> dict[str, Any]:
        """The schedule as plain data, without what stands at its default; `load_schedule` takes it back."""
        return {"version": self.version, **_written(self)}

    def _repr_html_(self) -> str:
        """A table for notebooks: the base, then when, how and what of every drift."""
        about = [self.env, f"clock: {self.clock}", self.visibility, "control" if self.control else None]
        rows = [("source", "", "", _show_values("", self.base))]
        for drift in self.drifts:
            what = "\n".join(text for kind in OPERATIONS if (text := _show_values(kind, getattr(drift, kind))))
            rows.append((drift.name, _show_when(drift), _show_how(drift), what))
        body = "".join(f"<tr>{''.join(f'{_CELL}{cell}</td>' for cell in map(_to_html, row))}</tr>" for row in rows)
        heads = "".join(f'<th style="text-align:left">{head}</th>' for head in ("phase", "when", "how", "what"))
        return (
            f"<p><b>{escape(self.name)}</b> {escape(' · '.join(filter(None, about)))}</p>"
            f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
        )

    def content_hash(self) -> str:
        """Sixteen hexadecimal digits of the SHA-256 of the content, equal across machines and releases.

        Example:
            >>> Schedule(version=1, name="null").content_hash()
            'dcef0786c2b51534'
        """
        text = json.dumps(_whole_as_int(self.to_dict()), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def named_drifts(drifts: Any) -> Any:
    """The drifts, each with a name: `drift-1` and so on where the file gives none.

    Args:
        drifts: the list of drifts as plain data; anything else comes back as it is.

    Example:
        >>> named_drifts([{"at": 20}, {"name": "thaw"}])
        [{'name': 'drift-1', 'at': 20}, {'name': 'thaw'}]
    """
    if not isinstance(drifts, (list, tuple)):
        return drifts
    return [
        {"name": f"drift-{number}", **drift} if isinstance(drift, Mapping) and "name" not in drift else drift
        for number, drift in enumerate(drifts, start=1)
    ]


def broken_rules(schedule: Mapping[str, Any]) -> Iterator[Finding]:
    """The rules between keys that a schedule breaks; values of the wrong type are left to the models.

    Args:
        schedule: the schedule as plain data, with the drifts named.

    Yields:
        Pairs of a path and the broken rule.

    Example:
        >>> list(broken_rules({"drifts": [{"name": "source", "at": 1, "set": {"slip": 1}}]}))
        [(('drifts', 0, 'name'), '`source` is the id of the phase before the first drift, choose another name')]
    """
    yield from _broken_in_schedule(schedule)
    drifts = schedule.get("drifts")
    for index, drift in enumerate(drifts if isinstance(drifts, list) else ()):
        for path, rule in _broken_in_drift(drift) if isinstance(drift, Mapping) else ():
            yield ("drifts", index, *path), rule


def _broken_in_schedule(schedule: Mapping[str, Any]) -> Iterator[Finding]:
    first: dict[str, int] = {}
    drifts, knobs = schedule.get("drifts"), schedule.get("knobs")
    for index, drift in enumerate(drifts if isinstance(drifts, list) else ()):
        name = drift.get("name") if isinstance(drift, Mapping) else None
        if not isinstance(name, str):
            continue
        path = ("drifts", index, "name")
        if name == SOURCE:
            yield path, f"`{SOURCE}` is the id of the phase before the first drift, choose another name"
        elif name in first:
            yield path, f"a name should stand for one drift only, drifts[{first[name]}] has it too. Received `{name}`"
        first.setdefault(name, index)
    for name, spec in knobs.items() if isinstance(knobs, Mapping) else ():
        if name == "derived" or not isinstance(spec, Mapping):
            continue
        bounds = spec.get("bounds")
        if bounds is None and spec.get("kind") in ("float", "integer", "factor"):
            yield ("knobs", name), "a number needs `bounds: [low, high]`: values beyond them are reflected"
        elif isinstance(bounds, list) and len(bounds) == 2 and all(map(is_number, bounds)) and bounds[0] >= bounds[1]:
            rule = f"the lower bound should be below the upper. Received [{bounds[0]}, {bounds[1]}]"
            yield ("knobs", name, "bounds"), rule


def _broken_in_drift(drift: Mapping[str, Any]) -> Iterator[Finding]:
    written = {key: value for key, value in drift.items() if value is not None}
    whole = {key: value for key, value in written.items() if is_integer(value)}
    yield from _when(written, whole)
    yield from _how(written, whole)
    yield from _what(written)


def _when(drift: Mapping[str, Any], whole: Mapping[str, int]) -> Iterator[Finding]:
    first, period, span, jitter = (whole.get(key) for key in ("at", "every", "for", "jitter"))
    if "every" in drift and "rate" in drift:
        yield ("rate",), "`every` and `rate` exclude each other: a drift recurs regularly or at random"
    elif not any(key in drift for key in ("at", "every", "rate")):
        yield (), "says nowhere when it happens: needs `at`, `every` or `rate`"
    if span is not None and period is not None and span >= period:
        yield ("for",), f"`for` should be less than `every` ({period}). Received {span}"
    if not jitter:
        return
    rule = None
    if "rate" in drift:
        rule = "`jitter` and `rate` exclude each other: random times have no place to move from"
    elif first is not None and jitter > first:
        rule = f"`jitter` should be at most `at` ({first}), so that no start lies before 0. Received {jitter}"
    elif period is not None and 2 * jitter + (span or 0) >= period:
        rule = f"twice `jitter` and `for` should be less than `every` ({period}), so that occurrences keep their order"
        rule += f". Received {jitter}"
    if rule is not None:
        yield ("jitter",), rule


def _how(drift: Mapping[str, Any], whole: Mapping[str, int]) -> Iterator[Finding]:
    kind, span, over, period = drift.get("kind", "sudden"), whole.get("for"), whole.get("over"), whole.get("every")
    if kind in ("incremental", "gradual") and "over" not in drift:
        yield ("kind",), f"`kind: {kind}` needs `over`: the number of ticks that the change takes"
    for key in ("over", "curve") if kind == "sudden" else ():
        if key in drift:
            yield (key,), f"`{key}` is for `kind: incremental` and `kind: gradual`; this drift is sudden"
    if over is None:
        return
    if span is not None and 2 * over > span:
        rule = f"`over` should be at most half of `for` ({span}), so that the ramp is up before it falls"
        yield ("over",), f"{rule}. Received {over}. A sudden way back is a second drift"
    if span is None:
        rate = drift.get("rate", 0)
        at_once = over / period if period else over * rate if is_number(rate) else 0
        if at_once > MOST_RAMPS:
            yield ("over",), f"at most {MOST_RAMPS} ramps of a drift should overlap on average. Received {at_once:g}"


def _what(drift: Mapping[str, Any]) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for operation in OPERATIONS:
        knobs = drift.get(operation)
        for knob, value in knobs.items() if isinstance(knobs, Mapping) else ():
            path = (operation, knob)
            if knob in seen:
                yield path, f"a knob should stand once in a drift, `{knob}` stands under `{seen[knob]}` too"
            seen.setdefault(knob, operation)
            if operation == "swap" and isinstance(value, list) and len(value) == 2 and value[0] == value[1]:
                yield path, f"the two keys should differ. Received {value[0]!r} twice"
            if operation == "swap" and drift.get("kind") == "incremental":
                yield path, "a swap can't be interpolated: use `kind: sudden` or `kind: gradual`"
    if not seen and not any(drift.get(operation) for operation in OPERATIONS):
        yield (), f"says nowhere what it changes: needs one of {', '.join(f'`{name}`' for name in OPERATIONS)}"


_CELL = '<td style="text-align:left;vertical-align:top;white-space:pre-wrap">'
"""A cell of a table in a notebook; its colours are those of the page."""


def _to_html(text: str) -> str:
    """A text of several lines, as a map, keeps its columns."""
    return f'<code style="white-space:pre">{escape(text)}</code>' if "\n" in text else escape(text)


def _show_when(drift: Drift) -> str:
    parts = [("at", drift.at), ("every", drift.every), ("rate", drift.rate), ("jitter", drift.jitter or None)]
    return ", ".join(f"{word} {value:g}" for word, value in [*parts, ("for", drift.duration)] if value is not None)


def _show_how(drift: Drift) -> str:
    if drift.over is None:
        return drift.kind
    curve = drift.curve if isinstance(drift.curve, str) else f"{drift.curve.steps} steps"
    return f"{drift.kind} over {drift.over}, {curve}"


def _show_values(kind: str, values: Mapping[str, Any]) -> str:
    lines = []
    for knob, value in values.items():
        plain = thaw(value)
        is_map = isinstance(plain, list) and len(plain) > 1 and all(isinstance(row, str) for row in plain)
        text = "\n" + "\n".join(plain) if is_map else json.dumps(plain, ensure_ascii=False)
        lines.append(f"{kind} {knob}: {text}".strip())
    return "\n".join(lines)


def schedule_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a schedule file, as editors and other programs read it.

    It describes each key on its own. Rules between keys, and the names of knobs, are checked by
    `load_schedule`.

    Example:
        >>> sorted(schedule_schema()["required"])
        ['version']
    """
    schema = Schedule.model_json_schema(by_alias=True)
    properties = schema["properties"]
    properties["extends"] = {
        "description": "another schedule, by shipped name or by path from this file; keys here replace its keys",
        "title": "Extends",
        "type": "string",
    }
    properties[SECTION] = {
        "description": "suffix: the keys that replace those of this file in the variant of that suffix",
        "title": "Variants",
        "type": "object",
        "propertyNames": {"pattern": SUFFIX_PATTERN},
        "additionalProperties": {"$ref": "#/$defs/Variant"},
    }
    schema["$defs"]["Variant"] = {
        "description": "The keys of a variant; each replaces that of the file as a whole.",
        "title": "Variant",
        "type": "object",
        "properties": {key: value for key, value in properties.items() if key not in FIXED_KEYS},
        "additionalProperties": False,
    }
    schema["$defs"]["Drift"]["required"] = []  # the loader names what the file does not
    schema["required"] = ["version"]
    for part in schema["$defs"].values():
        part["description"] = part["description"].split("\n\n")[0]
    about = {"title": "A schedule of drift-envs", "description": "What an environment's knobs are, and how they drift."}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, **about}


def _written(model: BaseModel) -> dict[str, Any]:
    plain: dict[str, Any] = thaw(model.model_dump(by_alias=True, exclude_defaults=True))
    return plain


def _refuse(findings: Iterable[Finding]) -> None:
    found = list(findings)
    if found:
        text = "; ".join(rule for _, rule in found)
        raise PydanticCustomError(BROKEN_RULE, "{rules}", {"rules": text})


def _whole_as_int(value: Any) -> Any:
    # 1 and 1.0 are equal, so schedules that differ in that alone must hash equally
    if isinstance(value, dict):
        return {key: _whole_as_int(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole_as_int(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
