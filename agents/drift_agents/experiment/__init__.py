"""Experiments: many agents on many schedules, written down line by line, and reports about them.

This is the evaluators' side: it may ask the environments for the truth, which agents never see.

* `config`, `checking`, `files` - the experiment file: its model, what may be wrong, where it lies
* `sweep` - a schedule with another value in one place
* `plan` - the cells of an experiment, and the episodes of each
* `worlds` - what each environment needs on the agent's side
* `watch`, `truth` - what an evaluator notes, and what it knows about an episode and about a memory
* `noticing` - whether and when a drift was noticed
* `references` - oracle realign, oracle reset and clairvoyant
* `play` - one cell, episode by episode
* `log`, `folder` - the lines of a run, and the files that hold them
* `run` - all cells, in parallel, with resume
* `figures`, `paper` - what lines say in numbers, and what the paper says
* `tables`, `sheets`, `report` - the same in tables
"""
