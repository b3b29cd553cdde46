"""Learners under drift: one file each in the manner of CleanRL, in JAX, and the board that compares them.

* `environments`, `common` - the drifting environments of the board; what the learners share
* `ppo` - PPO, and as data its treatments: `detectors`, `shrink_and_perturb`, `regenerative`, `continual_backprop`
* `recurrent_ppo`, `rl_squared`, `dqn`, `q_learning` - the other learners
* `rows`, `board`, `references`, `measures`, `report` - the board: its rows, playing it in parts, its measures, its page
* `evaluate`, `host`, `sb3` - the same lifetimes for a learner of your own, or one of Stable-Baselines3

The folder is not installed and no package imports it; `pip install ".[baselines]"` brings what it needs.
"""
