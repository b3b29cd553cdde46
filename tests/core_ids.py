"""The ids that need no extra and whose oracle knows the optimum."""

from drift_envs.registration import IDS

CORE_IDS = {name: entry for name, entry in IDS.items() if entry.parts.extra is None and entry.parts.knows_optimum}
