"""Modules whose import needs an extra are left out of the doctests; tests of their own run their examples."""

collect_ignore = [
    "drift_envs/browsergym.py",
    "drift_envs/envs/lunar_lander.py",
    "drift_envs/envs/minigrid/base.py",
    "drift_envs/envs/minigrid/env.py",
    "drift_envs/envs/minigrid/things.py",
    "drift_envs/envs/miniwob/package_form.py",
    "drift_envs/envs/mujoco.py",
    "drift_envs/functional",
    "drift_envs/inspect_ai.py",
    "drift_envs/mcp.py",
    "drift_envs/openenv.py",
    "drift_envs/sb3.py",
    "drift_envs/verifiers.py",
]
