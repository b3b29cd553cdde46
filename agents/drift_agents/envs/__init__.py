"""What agents know of each environment: a folder for each, of which none imports another.

* `frozen_lake`, `mountain_car`, `minigrid`, `miniwob`, `webshop`, `house`, `tools`, `tau2` - each holds its
  `AgentEnvironment`

A folder has `matching.py` (when states and outcomes are the same), `planner.py` with its parts, `facts.py` and
`templates/` (states, tasks and prompts in words), each as far as the environment needs its own. Classic control and
MuJoCo have no folder: they get what every environment gets.
"""
