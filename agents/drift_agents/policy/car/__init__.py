"""The planner of the mountain car: parsed evidence, a fitted model, values and a plan."""

from drift_agents.errors import require_agents_extra

require_agents_extra()
