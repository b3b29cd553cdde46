"""The experiment file: which agents play which schedules, how often.

`drift_agents.experiment.loader` turns plain data into an `Experiment` and reports all errors.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from drift_agents.registry.part_file import PartFile
from drift_envs.checks import is_integer
from drift_envs.schedule.yaml import split_suffix

Reference = Literal["oracle_realign", "oracle_reset", "oracle_truth", "clairvoyant"]
"""What stands beside the agents in every table: `drift_agents.experiment.players`."""

Learning = Literal["online", "frozen"]
"""What the test does to memory: it goes on writing, or its own rule is off (`drift_agents.memory.views`)."""

Kept = Literal["all", "failures", "none"]
"""Which episodes are kept step by step, see `drift_agents.experiment.trace`."""

Options = dict[str, Any]

MODEL_OPTIONS = ("base_url", "form", "price")
"""Options of a policy that say where its language model is served and how requests are formed."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True)


class PartSpec(_Model):
    """One of what an agent is made of, as a memory: its name, and options if they differ from the defaults.

    In a file it is the name alone, or a mapping of the name to its options.

    Example:
        >>> PartSpec.model_validate({"glove": {"epsilon": 0.5}}).options
        {'epsilon': 0.5}
        >>> PartSpec.model_validate("none").name
        'none'
    """

    name: str = Field(min_length=1)
    options: Options = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _from_file(cls, data: Any) -> Any:
        if isinstance(data, str):
            return {"name": data}
        if isinstance(data, Mapping) and not isinstance(data.get("name"), str):
            if len(data) != 1:
                raise PydanticCustomError("part", "should be a name, or one name with its options")
            ((name, options),) = data.items()
            return {"name": name, "options": {} if options is None else options}
        if isinstance(data, Mapping) and not data.keys() <= {"name", "options"}:
            raise PydanticCustomError("part", "should be a name, or one name with its options, as {vanilla: {k: 3}}")
        return data

    def label(self, among: Iterable[PartSpec] = ()) -> str:
        """The label in logs and tables: the name, with the options that distinguish it from parts of the same name.

        The label of a part of a Python file begins with the first 16 digits of the file's hash.

        Args:
            among: the parts of the same axis.

        Example:
            >>> parts = [PartSpec(name="glove"), PartSpec(name="glove", options={"epsilon": 0.2, "budget": 3})]
            >>> [part.label(parts) for part in parts]
            ['glove', 'glove(budget=3, epsilon=0.2)']

            The name of a language model is always part of the label, and so is that of a store.

            >>> models = [PartSpec(name="llm", options={"model": name, "base_url": f"http://{name}"}) for name in "ab"]
            >>> [part.label(models) for part in models]
            ['llm(a)', 'llm(b)']
            >>> PartSpec(name="store", options={"store": {"mem0": {"path": "here"}}}).label()
            'store(mem0)'
        """
        file = PartFile.read(self.name)
        model = self.options.get("model")
        namesakes = [
            other.options for other in among if other.name == self.name and other.options.get("model") == model
        ]
        telling = [key for key in sorted(self.options) if any(o.get(key) != self.options[key] for o in namesakes)]
        options = [] if file is None else [f"sha256={file.sha256[:16]}"]
        options += [model] if isinstance(model, str) else []
        if self.name == "store" and "store" in self.options and "store" not in telling:
            options.append(_store_name(self.options["store"]))
        options += [f"{key}={_short(self.options[key])}" for key in telling]
        name = self.name if file is None else file.attribute
        return f"{name}({', '.join(options)})" if options else name


def _store_name(store: Any) -> str:
    """The name of a store, without its options and the folder of its file."""
    name = next(iter(store), "") if isinstance(store, Mapping) else str(store)
    file = PartFile.read(name)
    return name if file is None else file.attribute


def _short(value: Any) -> str:
    """An option's value in few characters; a part with options as `name(key=value)`."""
    if isinstance(value, Mapping) and len(value) == 1 and isinstance(next(iter(value.values())), Mapping):
        return PartSpec.model_validate(value).label([PartSpec(name=next(iter(value)))])
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, separators=(",", ":"))


def _as_list(data: Any) -> Any:
    return data if isinstance(data, (list, tuple)) else [data]


SEED_STOP = 2**53
"""Seeds are below it: JSON readers with binary64 numbers keep them exactly."""

MOST_SEEDS = 1_000_000
"""The most seeds of an experiment."""


def _as_seeds(data: Any) -> Any:
    if is_integer(data):
        if not 1 <= data <= MOST_SEEDS:
            raise PydanticCustomError(
                "seeds", "should be at least 1" if data < 1 else f"should be at most {MOST_SEEDS}"
            )
        return list(range(data))
    if isinstance(data, Mapping):
        first, count = data.get("first"), data.get("count")
        if set(data) != {"first", "count"} or type(first) is not int or type(count) is not int or count < 1:
            raise PydanticCustomError("seeds", "should be `{first: f, count: n}` with whole numbers, n at least 1")
        if count > MOST_SEEDS:
            raise PydanticCustomError("seeds", f"should be at most {MOST_SEEDS} seeds")
        if first < 0 or first + count > SEED_STOP:
            raise PydanticCustomError("seeds", f"should be seeds from 0 to {SEED_STOP - 1}")
        return list(range(first, first + count))
    if not isinstance(data, (list, tuple)):
        raise PydanticCustomError("seeds", "should be a number of seeds, a list of them or `{first: f, count: n}`")
    return data


WHOLE = "whole"
"""The type of errors whose message says what was received."""


def _once(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(set(values)) < len(values):
        double = next(value for place, value in enumerate(values) if value in values[:place])
        raise PydanticCustomError(WHOLE, f"every entry should be there once. Received {double!r} twice")
    return values


def _without_rounds(episodes: int | None, info: ValidationInfo) -> int | None:
    if episodes is not None and info.data.get("rounds") is not None:
        raise PydanticCustomError(WHOLE, "`rounds` and `episodes` exclude each other. Received both")
    return episodes


Parts = Annotated[tuple[PartSpec, ...], BeforeValidator(_as_list), Field(min_length=1)]
Seed = Annotated[int, Field(strict=True, ge=0, lt=SEED_STOP)]
Seeds = Annotated[
    tuple[Seed, ...], BeforeValidator(_as_seeds), Field(min_length=1, max_length=MOST_SEEDS), AfterValidator(_once)
]
Count = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]
Episodes = Annotated[Count | None, AfterValidator(_without_rounds)]


DIRECT, SOLO = PartSpec(name="direct"), PartSpec(name="solo")
"""The controller and the team that add nothing."""


class Agents(_Model):
    """Memories, verifiers, controllers, teams and policies; every combination is played.

    The memory `none` is played once, with the verifier `none`: there is nothing in it to verify,
    and any other verifier gives the same run.

    Args:
        memory: the memories.
        verifier: the verifiers.
        controller: how one decision is made.
        team: one agent, or several that share a memory.
        policy: what answers a prompt.
    """

    memory: Parts
    verifier: Parts = (PartSpec(name="none"),)
    controller: Parts = (DIRECT,)
    team: Parts = (SOLO,)
    policy: Parts


def _as_part(data: Any) -> Any:
    return data if data is None or isinstance(data, PartSpec) else PartSpec.model_validate(data)


class TrainingSettings(_Model):
    """What is played before the test, to fill memory: always in the schedule's source phase.

    Args:
        episodes: how many tasks; 0 for none.
        where: `other`: tasks that the test does not have (other goals of the shop, other maps where a
            schedule draws them, other starts, other tasks of the house); `elsewhere`: tasks of other houses;
            `same`: those of the test.
        epochs: how often the same tasks are played.
        policy: who plays them, if it is not the agent's own policy.
    """

    episodes: Annotated[int, Field(strict=True, ge=0, le=1_000_000)]
    where: Literal["other", "elsewhere", "same"] = "other"
    epochs: Count = 1
    policy: Annotated[PartSpec | None, BeforeValidator(_as_part)] = None


class SweptValue(NamedTuple):
    """One value that a sweep gives a schedule.

    Args:
        path: where it stands in the schedule, as in `base.slip` or `drifts.*.set.force`.
        value: the value.
    """

    path: str
    value: Any

    @property
    def label(self) -> str:
        """The last word of the path with the value, as names of schedules end with it.

        Example:
            >>> SweptValue("base.slip", 0.2).label, SweptValue("drifts.*.set.map.draw.move", 4).label
            ('slip-0.2', 'move-4')
        """
        return f"{self.path.rpartition('.')[2]}-{_short(self.value)}"


def _as_sweep(data: Any) -> Any:
    if isinstance(data, Mapping) and len(data) > 1:
        raise PydanticCustomError("sweep", "should name one place of the schedule")
    return data


Sweep = Annotated[
    dict[str, Annotated[tuple[Any, ...], BeforeValidator(_as_list), Field(min_length=1)]], BeforeValidator(_as_sweep)
]
"""One place of a schedule and the values that it is given, one after the other."""


class RecallOptions(_Model):
    """The part of memory that goes into a prompt; the defaults are those of `drift_agents.Recall`.

    Args:
        k: records per query.
        states: maximum number of other states to query.
        items: maximum number of recollections in a prompt.
        newest: whether other states are queried in reverse order, so that those met last are kept.
        outlook: shows the highest score reachable by the whole memory beside every record of the present
            state, where contradicting outcomes are weighed by this rule (`drift_agents.prompt.view`).
    """

    k: Count | None = None
    states: Annotated[int, Field(strict=True, ge=0, le=1_000_000)] | None = None
    items: Count | None = None
    newest: bool | None = None
    outlook: Literal["majority", "newest", "frequency", "max"] | None = None


class ScheduleSettings(_Model):
    """What is different on one schedule.

    Args:
        seeds: instead of the experiment's.
        rounds: instead of the experiment's.
        episodes: instead of the experiment's.
        sweep: instead of the experiment's; empty for none.
        training: in a file `train`; instead of the experiment's; `{episodes: 0}` for none.
        learning: instead of the experiment's.
        matching: instead of the environment's rule for what counts as the same.
        recall: instead of the environment's.
        memory: name or label -> options, laid over those of the memories of that name, or of the one with that label;
            a label's options win over a name's.
        verifier: likewise.
        controller: likewise.
        team: likewise.
        policy: likewise, as in `{planner: {conflict: frequency}}`.
    """

    seeds: Seeds | None = None
    rounds: Count | None = None
    episodes: Episodes = None
    sweep: Sweep | None = None
    training: TrainingSettings | None = Field(default=None, alias="train")
    learning: Learning | None = None
    matching: PartSpec | None = None
    recall: RecallOptions | None = None
    memory: dict[str, Options] = Field(default_factory=dict)
    verifier: dict[str, Options] = Field(default_factory=dict)
    controller: dict[str, Options] = Field(default_factory=dict)
    team: dict[str, Options] = Field(default_factory=dict)
    policy: dict[str, Options] = Field(default_factory=dict)


class ModelSettings(_Model):
    """How language models are requested; none of it changes what is played, so that hashes and lines leave it out.

    Args:
        budget: cost at which the run stops, by the prices of the policies.
        budget_tokens: tokens after which the run stops, over all commands of the run.
        concurrency: cells at the same time, each of which sends one request at a time.
        timeout: seconds until a request fails.
        key_file: a file with the key, in the place of the environment variable.
        replies: the file in which replies are recorded; by default that of the run's folder.
        keep_going: whether the run continues when more than a fifth of the answers is invalid.
    """

    budget: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    budget_tokens: Annotated[int, Field(strict=True, ge=1, le=10**15)] | None = None
    concurrency: Annotated[int, Field(strict=True, ge=1, le=4096)] = 8
    timeout: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 120.0
    key_file: str | None = None
    replies: str | None = None
    keep_going: bool = False


class Experiment(_Model):
    """A checked experiment.

    Args:
        name: its name; the default folder of its runs is called so.
        about: one sentence for lists.
        schedules: shipped names or paths of schedule files.
        agents: what is played: one block of axes, or several.
        references: what is played beside the agents.
        seeds: a number n (the seeds 0 to n - 1), `{first: f, count: n}` (f to f + n - 1) or the seeds
            themselves; each is an instance.
        rounds: the first so many episodes of every phase.
        episodes: the first so many episodes, for schedules whose phases have no fixed episodes. Probes in the
            environment itself take episodes of an agent's number, since they pass the schedule's time.
        sweep: a place in the schedules -> values: every schedule is played with each of them.
        training: in a file `train`; what is played before the test, to fill memory; nothing if not given.
        learning: what the test does to memory.
        trace: which episodes are kept step by step, unless the command says otherwise.
        environments: schedule -> what is different there; a name without its suffix holds for all variants of that
            schedule that have no settings of their own.
        models: how language models are requested; it is no part of `to_dict`.

    Example:
        >>> experiment = Experiment.model_validate(
        ...     {"name": "tiny", "schedules": ["frozen_lake/explicit"], "rounds": 2, "seeds": 3,
        ...      "agents": {"memory": ["none", "vanilla"], "policy": "random"}}
        ... )
        >>> experiment.seeds, [part.name for part in experiment.agents[0].memory]
        ((0, 1, 2), ['none', 'vanilla'])
    """

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    about: str = ""
    schedules: Annotated[tuple[str, ...], BeforeValidator(_as_list), Field(min_length=1), AfterValidator(_once)]
    agents: Annotated[tuple[Agents, ...], BeforeValidator(_as_list), Field(min_length=1)]
    references: Annotated[tuple[Reference, ...], BeforeValidator(_as_list), AfterValidator(_once)] = ()
    seeds: Seeds
    rounds: Count | None = None
    episodes: Episodes = None
    sweep: Sweep = Field(default_factory=dict)
    training: TrainingSettings | None = Field(default=None, alias="train")
    learning: Learning = "online"
    trace: Kept = "none"
    environments: dict[str, ScheduleSettings] = Field(default_factory=dict)
    models: ModelSettings = Field(default_factory=ModelSettings, exclude=True)

    def settings_of(self, schedule: str) -> ScheduleSettings:
        """What is different on that schedule, with the experiment's own length and stages filled in."""
        settings = self.environments.get(schedule) or self.environments.get(split_suffix(schedule)[0])
        settings = settings or ScheduleSettings()
        own: dict[str, Any] = {}
        if settings.rounds is None and settings.episodes is None:
            own |= {"rounds": self.rounds, "episodes": self.episodes}
        own |= {key: getattr(self, key) for key in ("training", "learning") if getattr(settings, key) is None}
        return settings.model_copy(update=own)

    def seeds_of(self, schedule: str) -> tuple[int, ...]:
        """The instances of that schedule."""
        own = self.settings_of(schedule).seeds
        return self.seeds if own is None else own

    def changes(self, schedule: str) -> tuple[SweptValue | None, ...]:
        """What a sweep makes of that schedule: one change after the other, or none at all."""
        own = self.settings_of(schedule).sweep
        sweep = self.sweep if own is None else own
        return tuple(SweptValue(path, value) for path, values in sweep.items() for value in values) or (None,)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: what a run's folder keeps."""
        data: dict[str, Any] = json.loads(self.model_dump_json(exclude_defaults=True, by_alias=True))
        return data

    def config_hash(self) -> str:
        """SHA-256 of the content in a canonical form, 16 hexadecimal digits; `about` and `trace` do not count."""
        return hash_content(self.to_dict())


_NOT_PLAYED = ("about", "trace")  # keys of an experiment that change no line


def without_prices(data: Any, in_policy: bool = False) -> Any:
    """An experiment as plain data, without `about`, `trace` and the prices of its policies' models.

    Args:
        data: an experiment, or a value in one.
        in_policy: whether the value belongs to a policy.

    Example:
        >>> without_prices({"about": "x", "policy": [{"name": "llm", "options": {"model": "a", "price": [1, 2]}}]})
        {'policy': [{'name': 'llm', 'options': {'model': 'a'}}]}
    """
    if isinstance(data, Mapping):
        left_out = ("price",) if in_policy else _NOT_PLAYED
        return {
            key: without_prices(value, in_policy or key == "policy")
            for key, value in data.items()
            if key not in left_out
        }
    return [without_prices(value, in_policy) for value in data] if isinstance(data, list) else data


def hash_content(experiment: Mapping[str, Any]) -> str:
    """The `config_hash` of an experiment as plain data."""
    data = {key: value for key, value in experiment.items() if key not in _NOT_PLAYED}
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
