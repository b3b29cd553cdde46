"""A drifting lake as an environment of OpenEnv: `uvicorn server.app:app --port 8000` in the folder above."""

from drift_envs.integrations.openenv import make_app

app = make_app("DriftFrozenLake-v0", "frozen_lake/implicit", rounds=2)
