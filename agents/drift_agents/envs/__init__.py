"""What agents know of each environment: a folder for each, of which none imports another.

A folder holds its `AgentEnvironment`, `planner.py`, `states.py` (how states are read, when they are the same, words)
where that is long, and `templates/` (prompts in words). Classic control, MuJoCo and BFCL have no folder: they get what
every environment gets.
"""
