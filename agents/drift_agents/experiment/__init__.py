"""Experiments: many agents on many schedules, written down line by line, and reports about them.

This is the evaluators' side: it may ask the environments for the truth, which agents never see.

* `config` - the experiment file
* `files` - reading YAML with lines, and the experiments that come with the package
* `plan` - which episodes of a schedule are played, and the cells of an experiment
* `worlds` - what each environment needs on the agent's side
* `truth` - what an evaluator knows about an episode and about a memory
* `references` - oracle realign, oracle reset and clairvoyant
* `play` - one cell, episode by episode
* `log` - lines of a run, and the files that hold them
* `run` - all cells, in parallel, with resume
* `figures`, `tables`, `report` - what a run says, from its lines alone
"""
