"""Plots as PNG and SVG.

* `style` - colours, dashes and markers, panels and files
* `curves` - the drift curve of a run
* `map` - who wins at each point of a map, and success over budgets
"""
