"""Experiments: many agents on many schedules, each cell played on its own and logged line by line.

This is the evaluators' side: it reads the environments' ground truth, which agents never receive. It never imports
`drift_agents.analysis`. The way of a cell:

The folder `experiments` holds the files that come with the package.
"""

from drift_agents.errors import require_agents_extra

require_agents_extra()
