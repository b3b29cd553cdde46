"""Modules whose import needs an extra, and programs, are left out of the doctests; tests of their own run them."""

collect_ignore = [
    "agents/drift_agents/envs/repository/coders",
    "drift_envs/integrations/browsergym.py",
    "drift_envs/envs/alfworld/engine.py",
    "drift_envs/envs/classic_control/lunar_lander.py",
    "drift_envs/envs/frozen_lake/functional.py",
    "drift_envs/envs/mountain_car/functional.py",
    "drift_envs/envs/minigrid/env.py",
    "drift_envs/envs/minigrid/grid.py",
    "drift_envs/envs/miniwob/package_form.py",
    "drift_envs/envs/mujoco/env.py",
    "drift_envs/functional",
    "drift_envs/integrations/inspect.py",
    "drift_envs/integrations/mcp.py",
    "drift_envs/integrations/mcp_tools.py",
    "drift_envs/integrations/mcp.py",
    "drift_envs/integrations/openenv.py",
    "drift_envs/integrations/sb3.py",
    "drift_envs/integrations/sb3_checkpoints.py",
    "drift_envs/integrations/verifiers.py",
]
