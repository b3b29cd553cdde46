"""All parts by name: one table of built-in parts, the entry points of other packages, and Python files of one's own.

The base module of each kind holds its typed `make_...` function, as in `drift_agents.memory.base.make_memory`. What
`ENVIRONMENTS` names are declarations (`drift_agents.environment.AgentEnvironment`): they are loaded, not made.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from inspect import Parameter, signature
from typing import Any, NamedTuple

from drift_agents.errors import ArgumentError, DriftAgentsError, PartError, UnknownNameError
from drift_agents.part_file import PartFile, describe_error, is_interruption
from drift_agents.types import SUPERVISION
from drift_envs.lazy import load_object


class Part(NamedTuple):
    """A built-in part.

    Args:
        target: `module:attribute`.
        about: the first line of its docstring, so that a list of parts imports none of them.
    """

    target: str
    about: str


@lru_cache(maxsize=64)
def _find_entry_points(
    find: Callable[..., Iterable[EntryPoint]], group: str, path: tuple[str, ...]
) -> tuple[EntryPoint, ...]:
    """The entry points of a group, sorted: a search through all installed packages, done once for each `sys.path`.

    Raises:
        PartError: if a package's list of entry points has another form; the standard library does not say whose.
    """
    try:
        found = list(find(group=group))
    except Exception as error:
        raise PartError(f"the entry points of an installed package cannot be read: {describe_error(error)}") from error
    return tuple(sorted(found, key=lambda point: (point.name, point.value)))


def _describe_point(kind: str, point: EntryPoint) -> str:
    """The part that an entry point declares, with the name of the package."""
    package = point.module.partition(".")[0] if point.dist is None else point.dist.name
    return f"the {kind} {point.name!r} of the package {package}"


def _load_entry_point(kind: str, point: EntryPoint) -> Any:
    """What an entry point names.

    Raises:
        PartError: if its module raises or exits, lacks the attribute, or the attribute makes no part.
    """
    try:
        part = point.load()
    except BaseException as error:
        if is_interruption(error):
            raise
        raise PartError(f"{_describe_point(kind, point)} raises at import: {describe_error(error)}") from error
    if kind == "environment":  # a declaration
        if not hasattr(part, "ids"):
            raise PartError(f"{_describe_point(kind, point)} should be an `AgentEnvironment`. Received {part!r}")
        return part
    try:
        signature(part)
    except Exception as error:
        raise PartError(f"{_describe_point(kind, point)} should be a class or a function. Received {part!r}") from error
    return part


def show_name(name: str) -> str:
    """The name of a part for a message, without the hash of a file."""
    file = PartFile.read(name)
    return name if file is None else file._replace(sha256="").text


def check_protocol(kind: str, name: str, part: Any, protocol: Any, hint: str = "") -> None:
    """Check that a part has all that its protocol names; `supervision` among it should be one of `SUPERVISION`.

    Args:
        kind: the kind, in the singular, for the error message.
        name: the part's name, for the error message.
        hint: the end of the message where something is missing.

    Raises:
        PartError: if it lacks an attribute or a method, or its `supervision` is another text.
    """
    name = show_name(name)
    if not isinstance(part, protocol):
        members = {key for key in (*vars(protocol), *protocol.__annotations__) if not key.startswith("_")}
        missing = ", ".join(sorted(key for key in members if not hasattr(part, key)))
        raise PartError(f"the {kind} {name!r} should have what `{protocol.__name__}` has. Missing: {missing}{hint}")
    if "supervision" in protocol.__annotations__ and part.supervision not in SUPERVISION:
        raise PartError(
            f"`supervision` of the {kind} {name!r} should be one of {', '.join(SUPERVISION)}. "
            f"Received {part.supervision!r}"
        )


_NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


def option_names(factory: Callable[..., Any]) -> tuple[tuple[str, ...], bool]:
    """The names of a part's options, and whether it accepts others beside them.

    A part whose options are named elsewhere lists them in `option_names`, as the planner lists the environments.

    Args:
        factory: the class or function that makes the part.
    """
    listed = getattr(factory, "option_names", None)
    if listed is not None:
        return tuple(listed()), False
    parameters = signature(factory).parameters.values()
    is_open = any(one.kind is Parameter.VAR_KEYWORD for one in parameters)
    return tuple(one.name for one in parameters if one.kind in _NAMED), is_open


def _describe_setting(kind: str, option: str) -> str:
    """How an option is given on the command line, where it can be, and in a file."""
    axis = "memory" if kind == "store" else kind
    is_axis = axis in ("memory", "verifier", "controller", "team", "policy")
    return f"{f'--set {axis}.{option}=VALUE, or ' if is_axis else ''}{{NAME: {{{option}: VALUE}}}} in a file"


def make_part(kind: str, name: str, factory: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """Call what makes a part.

    Args:
        kind: the kind, in the singular, for the error message.
        name: the part's name, for the error message.
        factory: the class or function that makes the part.

    Raises:
        ArgumentError: if it does not take one of the options, or refuses its value.
    """
    known, is_open = option_names(factory)
    unknown = [] if is_open else [key for key in options if key not in known]
    if unknown:
        near = difflib.get_close_matches(unknown[0], known, n=1)
        hint = f", did you mean {near[0]!r}?" if near else "."
        raise ArgumentError(
            f"the {kind} {name!r} does not take the option {unknown[0]!r}{hint} "
            f"Known: {', '.join(known) or 'none'}. Received {dict(options)!r}"
        )
    parameters = signature(factory).parameters.values()
    needed = [one.name for one in parameters if one.default is Parameter.empty and one.kind in _NAMED]
    if missing := [key for key in needed if key not in options]:
        raise ArgumentError(
            f"the {kind} {name!r} needs the option {missing[0]!r}: {_describe_setting(kind, missing[0])}. "
            f"Received {dict(options) or 'no options'}"
        )
    return factory(**options)


def read_named(part: str, given: Any, forms: str = "a name") -> tuple[str, Mapping[str, Any]]:
    """A part as the option of another part: its name and its options.

    Args:
        part: the option's name, for the error message.
        given: a name, or a mapping of one name to its options.
        forms: what else the option takes, for the error message.

    Raises:
        ArgumentError: if it is neither.

    Example:
        >>> read_named("store", "chroma"), read_named("store", {"chroma": {"path": "here"}})
        (('chroma', {}), ('chroma', {'path': 'here'}))
        >>> read_named("store", {"chroma": "here"})
        Traceback (most recent call last):
        drift_envs.errors.ArgumentError: `store` should be a name, or one name with its options. Received \
{'chroma': 'here'}
    """
    pairs = {given: None} if isinstance(given, str) else given
    if isinstance(pairs, Mapping) and len(pairs) == 1:
        ((name, options),) = pairs.items()
        options = {} if options is None else options
        if isinstance(name, str) and isinstance(options, Mapping) and all(isinstance(key, str) for key in options):
            return name, options
    raise ArgumentError(f"`{part}` should be {forms}, or one name with its options. Received {given!r}")


class Registry:
    """The names of one kind of part.

    Args:
        kind: the kind, in the singular, as in `memory`.
        group: the entry-point group through which other packages add theirs.
        built_in: the parts of this package, by name.

    Example:
        >>> EMBEDDINGS.names()[:2]
        ('hashed', 'minilm')
        >>> EMBEDDINGS.make("hashed", dimensions=64)
        Traceback (most recent call last):
        drift_envs.errors.ArgumentError: the embedding 'hashed' does not take the option 'dimensions', did you mean \
'dimension'? Known: dimension. Received {'dimensions': 64}
    """

    def __init__(self, kind: str, group: str, built_in: Mapping[str, Part]) -> None:
        self.kind, self.group, self._built_in = kind, group, dict(built_in)

    def _others(self) -> dict[str, EntryPoint]:
        found = _find_entry_points(entry_points, self.group, tuple(sys.path))
        return {point.name: point for point in found if point.name not in self._built_in}

    def names(self) -> tuple[str, ...]:
        """All names: the built-in ones first, then those of other packages in alphabetical order."""
        return (*self._built_in, *self._others())

    def has(self, name: str) -> bool:
        """Whether there is a part of that name, or the name is that of a file's part."""
        return name in self.names() or PartFile.read(name) is not None

    def entry_point(self, name: str) -> EntryPoint | None:
        """The entry point of another package's part; `None` for a built-in one, and for an unknown name."""
        return self._others().get(name)

    def summaries(self) -> dict[str, str]:
        """One line about every part, by name.

        Of other packages' parts it is `about` or the first line of the docstring; of one that cannot be used, the
        package and the error.
        """
        about = {name: part.about for name, part in self._built_in.items()}
        for name in self._others():
            try:
                part = self.load(name)
                text = str(getattr(part, "about", None) or part.__doc__ or "").strip()
            except PartError as error:
                text = f"cannot be used: {error}"
            except Exception as error:  # noqa: BLE001 - foreign code
                text = f"has no line about it: {describe_error(error)}"
            about[name] = text.splitlines()[0] if text else ""
        return about

    def load(self, name: str) -> Any:
        """The class or function that makes the part of that name.

        Raises:
            UnknownNameError: if there is none.
            PartError: if it is a part of a file or of another package, and cannot be used.
        """
        file = PartFile.read(name)
        if file is not None and file.sha256:
            return file.load()
        if name in self._built_in:
            return load_object(self._built_in[name].target)
        others = self._others()
        if name in others:
            return _load_entry_point(self.kind, others[name])
        raise UnknownNameError(self.kind, name, self.names())

    def options(self, name: str) -> tuple[tuple[str, ...], bool]:
        """The names of a part's options, and whether it accepts others beside them.

        Raises:
            UnknownNameError: if there is no part of that name.

        Example:
            >>> MEMORIES.options("vanilla")
            (('k', 'order', 'matching'), False)
        """
        return option_names(self.load(name))

    def make(self, name: str, /, **options: Any) -> Any:
        """Make the part of that name.

        Args:
            name: one of `names()`.

        Raises:
            UnknownNameError: if there is no part of that name.
            ArgumentError: if it does not take one of the options, or refuses its value.
            MissingDependencyError: if it needs a package that is not installed.
            PartError: if it is a part of a file or of another package, and cannot be used.
        """
        factory = self.load(name)
        if name in self._built_in:
            return make_part(self.kind, name, factory, options)
        file = PartFile.read(name)
        try:
            return make_part(self.kind, name if file is None else file.attribute, factory, options)
        except BaseException as error:
            if is_interruption(error) or (file is None and isinstance(error, DriftAgentsError)):
                raise
            part = (
                _describe_point(self.kind, self._others()[name]) if file is None else f"{file.path}: {file.attribute!r}"
            )
            raise PartError(f"{part} cannot be made: {describe_error(error)}") from error


MEMORIES = Registry(
    "memory",
    "drift_envs.memories",
    {
        "none": Part("drift_agents.memory.base:NoMemory", 'Stores nothing (GLOVE, section 5.1: "No Memory").'),
        "vanilla": Part(
            "drift_agents.memory.vanilla:VanillaMemory",
            "Append every transition, retrieve the top-k of the same state (GLOVE, appendix B.1).",
        ),
        "full_transcript": Part(
            "drift_agents.memory.vanilla:FullTranscript",
            "The newest steps of all episodes as they were, an episode a text, in every prompt.",
        ),
        "memory_bank": Part(
            "drift_agents.memory.memory_bank:MemoryBank",
            "Records that are retrieved gain strength, others fade (Zhong et al. 2024, as in GLOVE's B.1).",
        ),
        "voyager": Part(
            "drift_agents.memory.voyager:Voyager",
            "Attempts that a critic judges a success weigh more, or become skills.",
        ),
        "generative_agents": Part(
            "drift_agents.memory.generative_agents:GenerativeAgents",
            "A memory stream, ranked by recency, importance and relevance, with reflection (Park et al. 2023).",
        ),
        "beliefmem": Part(
            "drift_agents.memory.beliefmem:BeliefMem",
            "Every conclusion that evidence supports, each with a probability (BeliefMem, section 3.3).",
        ),
        "consensus": Part(
            "drift_agents.memory.consensus:ConsensusMemory",
            "Items that a team approved, in a shared bank and in private ones.",
        ),
        "adamem": Part(
            "drift_agents.memory.trajectory:AdaMemMemory",
            "Every step of every success, retrieved by history and observation.",
        ),
        "synapse": Part(
            "drift_agents.memory.trajectory:Synapse",
            "Whole trajectories as exemplars, chosen once, when the episode begins.",
        ),
        "reasoning_bank": Part(
            "drift_agents.memory.reasoning_bank:ReasoningBank",
            "A few items of reasoning about every episode, retrieved once, when an episode begins.",
        ),
        "store": Part(
            "drift_agents.memory.store:StoreMemory",
            "Texts in a store of another package, with the transition store beside it.",
        ),
        "managed": Part(
            "drift_agents.memory.management:Managed",
            "A memory around a memory, with a policy of addition and one of deletion.",
        ),
    },
)

STORES = Registry(
    "store",
    "drift_envs.stores",
    {
        "in_process": Part(
            "drift_agents.stores.base:InProcessStore",
            "Texts in RAM, found by the cosine of their embeddings.",
        ),
        "langgraph": Part(
            "drift_agents.stores.langgraph:LangGraphStore",
            "LangGraph's `InMemoryStore`: texts that are found by the cosine of their embeddings.",
        ),
        "langgraph_sqlite": Part(
            "drift_agents.stores.langgraph:LangGraphSqliteStore",
            "LangGraph's `SqliteStore` with the index of `sqlite-vec`: texts in one SQLite file.",
        ),
        "chroma": Part(
            "drift_agents.stores.chroma:ChromaStore",
            "A collection of Chroma with the cosine distance, searched by its HNSW index.",
        ),
        "mem0": Part(
            "drift_agents.stores.mem0:Mem0Store",
            "mem0 with `infer=False`: texts are stored as they are, without a language model.",
        ),
    },
)

POLICIES = Registry(
    "policy",
    "drift_envs.policies",
    {
        "planner": Part(
            "drift_agents.policy.planner:Planner",
            "Hands the view to the planner of its environment.",
        ),
        "energy_pumping": Part(
            "drift_agents.envs.mountain_car.planner:EnergyPumping",
            "Accelerates in the direction of the velocity, so that each swing is higher than the one before.",
        ),
        "llm": Part(
            "drift_agents.policy.llm:LanguageModelPolicy",
            "Renders the view as messages to a language model, and parses the action from its reply.",
        ),
        "learned_reader": Part(
            "drift_agents.policy.learned_reader.reader:LearnedReader",
            "A small trained network that reads the messages to a language model, in the format `brief`.",
        ),
        "random": Part("drift_agents.policy.base:RandomPolicy", "One admissible action at random."),
    },
)

ENVIRONMENTS = Registry(
    "environment",
    "drift_envs.environments",
    {
        "frozen_lake": Part(
            "drift_agents.envs.frozen_lake:FROZEN_LAKE", "The frozen lake: tiles, holes and destinations."
        ),
        "mountain_car": Part(
            "drift_agents.envs.mountain_car:MOUNTAIN_CAR", "Both mountain cars: position and velocity in a valley."
        ),
        "minigrid": Part("drift_agents.envs.minigrid:MINIGRID", "Minigrid's rooms, of which a part is in view."),
        "miniwob": Part("drift_agents.envs.miniwob:MINIWOB", "The task pages of MiniWoB++, as their controls."),
        "house": Part("drift_agents.envs.house:HOUSE", "The text house: errands with things and furniture."),
        "tools": Part(
            "drift_agents.envs.tools:TOOLS", "The service desk: requests of customers, met by calls of tools."
        ),
        "tau2": Part(
            "drift_agents.envs.tau2:TAU2",
            "tau2-bench's airline and retail desks: requests of users, met by calls of tools.",
        ),
        "facts": Part(
            "drift_agents.envs.facts:FACTS", "Facts about people that change: what is heard, and a question."
        ),
        "webshop": Part("drift_agents.envs.webshop:WEBSHOP", "The web shop: pages with the instruction on them."),
    },
)
"""What agents know of environments."""

VERIFIERS = Registry(
    "verifier",
    "drift_envs.verifiers",
    {
        "none": Part("drift_agents.verifier.base:NoVerifier", "Writes every experience and never probes."),
        "glove": Part("drift_agents.verifier.glove:Glove", "GLOVE, the global verifier (paper, algorithm 1)."),
        "glove_spread": Part(
            "drift_agents.verifier.glove:GloveSpread",
            "GLOVE with `spread`: after a confirmed drift, old records are probed before they are used. Ours.",
        ),
        "glove_passive": Part(
            "drift_agents.verifier.glove:GlovePassive",
            "A change-point test on the records of each pair, without probes. Ours.",
        ),
        "glove_active": Part(
            "drift_agents.verifier.glove:GloveActive",
            "GLOVE's trigger, then probes one by one until a ratio test has decided. Ours.",
        ),
        "overwrite": Part(
            "drift_agents.verifier.controls:Overwrite",
            "The newest outcome of each (state, action) replaces records that differ; no probes.",
        ),
        "forget": Part(
            "drift_agents.verifier.controls:Forget",
            "GLOVE's detection without probes: removes the old records, writes the surprising experiences.",
        ),
        "majority": Part(
            "drift_agents.verifier.controls:Majority",
            "Memory holds one record of each (state, action): the most frequent outcome of the newest responses.",
        ),
        "announce_only": Part(
            "drift_agents.verifier.controls:AnnounceOnly",
            "GLOVE's detection without probes and without realignment: prompts say since when memory is in doubt.",
        ),
        "window": Part(
            "drift_agents.verifier.controls:SlidingWindow",
            "Keeps the records of the newest interactions only, whether they are still true or not.",
        ),
        "adwin": Part(
            "drift_agents.verifier.controls:Adwin",
            "Removes all records when ADWIN detects a fall of the episodes' scores (Bifet and Gavalda 2007).",
        ),
        "page_hinkley": Part(
            "drift_agents.verifier.controls:PageHinkley",
            "Removes all records when a Page-Hinkley test detects a fall of the scores (Page 1954; Gama et al. 2014).",
        ),
    },
)

PROBERS = Registry(
    "prober",
    "drift_envs.probers",
    {
        "replay": Part(
            "drift_agents.verifier.prober:ReplayProber",
            "Replays the actions that led to a state in a twin of the environment, and repeats the action there.",
        ),
        "replay_live": Part(
            "drift_agents.verifier.prober:ReplayLiveProber",
            "Replays the actions that led to a state in the agent's own environment, between two episodes.",
        ),
        "snapshot": Part(
            "drift_agents.verifier.prober:SnapshotProber",
            "Restores the saved state of the agent's environment: privileged, an ablation of `ReplayProber`.",
        ),
    },
)

CONTROLLERS = Registry(
    "controller",
    "drift_envs.controllers",
    {
        "direct": Part("drift_agents.controller.base:Direct", "Retrieves once, makes one view, calls the policy once."),
        "adamem": Part(
            "drift_agents.controller.adamem:AdaMem",
            "Strategies made at test time, as often as the effort requires (AdaMEM, algorithm 1).",
        ),
    },
)

TEAMS = Registry(
    "team",
    "drift_envs.teams",
    {
        "solo": Part("drift_agents.team.base:Solo", "One member plays all episodes; the base of the other teams."),
        "edv": Part("drift_agents.team.edv:EDV", "Execute, distil, verify (EDV, section 4, figure 3)."),
        "judge": Part(
            "drift_agents.team.judge:Judge",
            'Each member proposes an action at each step, and a judge chooses one (EDV\'s baseline "Judge").',
        ),
        "router": Part(
            "drift_agents.team.router:Router", 'The ability matrix alone (EDV, section 5.1, the baseline "Router").'
        ),
    },
)

EMBEDDINGS = Registry(
    "embedding",
    "drift_envs.embeddings",
    {
        "hashed": Part(
            "drift_agents.embedding.base:HashedEmbedding",
            "Words, pairs of neighbouring words and runs of three letters, hashed into a vector of length one.",
        ),
        "minilm": Part(
            "drift_agents.embedding.minilm:MiniLMEmbedding",
            "Vectors of all-MiniLM-L6-v2, a sentence encoder of 22 million parameters.",
        ),
    },
)

REGISTRIES = {
    registry.kind: registry
    for registry in (
        MEMORIES,
        STORES,
        POLICIES,
        ENVIRONMENTS,
        VERIFIERS,
        PROBERS,
        CONTROLLERS,
        TEAMS,
        EMBEDDINGS,
    )
}
"""All registries, by kind."""
