"""Analysis of runs: reads logs and plays nothing.

* `runs` - rows grouped by player and instance; one schedule with its players, measure and phases
* `table`, `tables`, `report` - a table in its formats; those of a run, and its sentences; Markdown and the terminal
* `html`, `inspect`, `plots` - the report as one HTML file, the page to step through episodes, figures
* `run` - a run in Python, and its figures as data
* `evidence`, `price`, `resampling` - the lines of runs as columns; success within budgets; intervals by a bootstrap
* `ranking`, `leaderboard` - agents ranked over all schedules; the page
* `check_memory`, `memory_table` - what a memory service still believes
"""

from drift_agents.errors import require_agents_extra

require_agents_extra()
