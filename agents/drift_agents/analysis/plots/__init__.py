"""Plots of a run, as PNG and SVG.

* `draw` - all plots of a run
* `style` - colours, dashes and markers
* `curves` - adaptation, regret, memory and error propagation over the episodes
* `methods` - one bar or marker a method: the paper's figures beside ours, and the Pareto front
* `sweeps` - success and probe steps over a swept value
* `visits` - where an agent went on the lake, before and after a drift
"""
