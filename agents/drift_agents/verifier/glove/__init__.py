"""GLOVE, its statistics, and the sequential tests that share its trigger."""

from drift_agents.errors import require_agents_extra

require_agents_extra()
