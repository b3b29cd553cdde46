"""Analysis of runs: reads logs and plays nothing.

* `runs`, `schedule_runs` - rows grouped by player and instance; one schedule with its players, measure and phases
* `table`, `tables` - a table in its output formats; the tables of the report
* `report`, `html` - the report of a run as Markdown and in a terminal, and as one HTML file
* `aggregates`, `ranking`, `leaderboard` - interquartile means, agents ranked over all schedules, and the page
* `drift_map`, `mechanism_test` - schedules by severity and visibility; what tables that are played by rules say
* `plots` - figures as PNG and SVG
* `inspect` - the page to step through the episodes of a run
* `finetuning_sets` - fine-tuning sets from the steps of a run
"""

from drift_agents.errors import require_agents_extra

require_agents_extra()
