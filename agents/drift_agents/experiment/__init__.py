"""Experiments: many agents on many schedules, each cell played on its own and logged line by line.

This is the evaluators' side: it reads the environments' ground truth, which agents never receive. It never imports
`drift_agents.analysis`.

* `config`, `loader` - the experiment file: its model; reading and validation
* `plan` - the cells of an experiment, and the episodes of each
* `environments`, `evaluation_wrapper` - the environment of a cell, and the evaluator's bookkeeping around it
* `members`, `players` - the members of teams; the policy, memory, agent or team of a cell
* `memory_dependencies`, `references` - correct executions for memories that need them; the privileged references
* `training` - episodes before the test
* `evaluator` - regret, truth of memory, item audit and drift detection
* `episode` - the rows of a cell
* `trace` - the steps of a cell: keeping and reading them
* `logs`, `folder` - the lines of a run, and the files that hold them
* `finetuning_sets` - fine-tuning sets from the steps of a run
* `memory_records` - what memories hold at the end of a run
* `manifest` - what a run plays, as its folder states it
* `runner`, `replay` - all cells, with resume; cells of a finished run again
* `workers`, `clusters` - where cells are played: processes and threads; clusters

The folder `experiments` holds the files that come with the package.
"""

from drift_agents.errors import require_agents_extra

require_agents_extra()
