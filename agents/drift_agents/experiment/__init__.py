"""Experiments: many agents on many schedules, each cell played on its own and logged line by line.

This is the evaluators' side: it reads the environments' ground truth, which agents never receive. It never imports
`drift_agents.analysis`. The way of a cell:

* `loader` reads and checks the file, whose model is `config`; `plan` makes its cells
* `runner` plays those that are missing, in `workers` or `clusters`
* `episode` makes the environment (`environments`) and the agent (`players`) of a cell, and plays its episodes
* `evaluator` compares what happened with the oracle; `logs` has the lines, `trace` the steps, `folder` the files
* `replay` plays cells of a finished run again; `finetuning` makes training sets of its steps
* `own_lines` puts the log of a loop of one's own beside them

The folder `experiments` holds the files that come with the package.
"""

from drift_agents.errors import require_agents_extra

require_agents_extra()
