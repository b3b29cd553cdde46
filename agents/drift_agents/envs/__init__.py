"""What agents know of each environment: a folder for each, of which none imports another.

* `frozen_lake`, `mountain_car`, `minigrid`, `miniwob`, `webshop`, `house`, `tools`, `tau2` - each holds its
  `AgentEnvironment`

A folder has `planner.py`, `states.py` (how states are read, when they are the same, words) where that is long, and
`templates/` (prompts in words). Classic control and MuJoCo have no folder: they get what every environment gets.
"""
