"""Pictures of what a run showed, as PNG and SVG.

* `draw` - all pictures of a run
* `style` - colours, dashes and marks that can be told apart without colour
* `curves` - adaptation, regret and memory over the episodes
* `bars` - the paper's tables beside ours; budget and success over what a sweep turns
* `visits` - where an agent went on the lake before and after a drift
"""
