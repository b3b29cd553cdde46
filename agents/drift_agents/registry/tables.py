"""The built-in parts by name, with the entry-point group through which other packages add theirs; a part is a row.

The base module of each kind holds its typed `make_...` function, as in `drift_agents.memory.base.make_memory`. What
`ENVIRONMENTS` names are declarations (`drift_agents.envs.base.AgentEnvironment`): they are loaded, not made.
"""

from __future__ import annotations

from drift_agents.registry.parts import Part, Registry

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
        "leaving": Part(
            "drift_agents.envs.tau2.planner:Leaving",
            "Ends every request of tau2-bench at once: the score that nothing earns.",
        ),
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
        "repository": Part(
            "drift_agents.envs.repository:REPOSITORY",
            "A repository whose conventions change: issues, solved by edits of its files.",
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
for _registry in REGISTRIES.values():
    _registry.siblings = tuple(one for one in REGISTRIES.values() if one is not _registry)
