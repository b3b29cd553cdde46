"""What agents know of a repository whose conventions change: how files are read, a planner, and words.

The programs in `coders` are the reference agents of `drift-agents check-coder`; nothing here uses them.
"""

from drift_agents.envs.base import AgentEnvironment, own_templates

REPOSITORY = AgentEnvironment(
    name="repository",
    about="A repository whose conventions change: issues, solved by edits of its files.",
    ids=("DriftRepository-",),
    matching="drift_agents.envs.repository.states:RepositoryMatching",
    planner="drift_agents.envs.repository.planner:RepositoryPlanner",
    facts="drift_agents.envs.repository.states:RepositoryFacts",
    templates=own_templates(__name__),
)
