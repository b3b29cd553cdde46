"""Plots as PNG and SVG.

* `style` - colours, dashes and markers, panels and files
* `curves` - the drift curve of a run
* `board` - what the agents of a board keep against what it costs
"""
