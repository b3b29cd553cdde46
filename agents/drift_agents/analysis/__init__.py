"""Analysis of runs: reads logs and plays nothing.

* `runs`, `schedule_runs` - rows grouped by player and instance; one schedule with its players, measure and phases
* `table` - a table in its output formats
* `tables`, `headline`, `report`, `html` - the report of a run: tables, sentences, Markdown and terminal, one HTML file
* `run` - a run in Python
* `evidence` - the lines of runs as columns, and as Parquet files
* `price`, `resampling` - success over budgets of interactions; the paired bootstrap
* `ranking`, `leaderboard` - agents ranked over all schedules, and the page
* `plots` - figures as PNG and SVG
* `inspect` - the page to step through the episodes of a run
"""

from drift_agents.errors import require_agents_extra

require_agents_extra()
