"""Plots as PNG and SVG.

* `style` - colours, dashes and markers, figures
* `curves` - the drift curve of a run
"""
