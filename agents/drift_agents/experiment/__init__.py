"""Experiments: many agents on many schedules, written down line by line, and reports about them.

This is the evaluators' side: it may ask the environments for the truth, which agents never see.

* `config`, `checking`, `files` - the experiment file: its model, what may be wrong, where it lies
* `sweep` - a schedule with another value in one place
* `plan` - the cells of an experiment, and the episodes of each
* `worlds` - what each environment needs on the agent's side
* `watch`, `truth` - what an evaluator notes, and what it knows about an episode and about a memory
* `noticing` - whether and when a drift was noticed
* `references` - oracle realign, oracle reset and clairvoyant
* `stages`, `demonstrations` - construction before the test; correct executions for memories that begin with some
* `members`, `pools`, `teams`, `models` - who belongs to a team, who plays a cell, and their language models
* `play`, `extra` - the rows of a cell; the control that spends probe steps on ordinary episodes
* `auditing` - how many written items are true, and whether they are read
* `log`, `folder` - the lines of a run, and the files that hold them
* `trace`, `tracing`, `stepmft` - the file with the steps of a cell, keeping them, and fine-tuning sets made of them
* `run`, `workers` - all cells, with resume, in parallel

What reads lines and never plays has a folder of its own: `reporting` (tables and pages), `claims` (what the
study was to show, decided), `plots`, `inspect` (a page to step through episodes). `studies` holds questions
about memories that are no runs over episodes, and `experiments` the files that come with the package.
"""
