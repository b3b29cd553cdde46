"""Metrics of agents in a world that drifts: pure functions over arrays and rows of logs.

* `percent`, `area_under_curve`, `first_and_last`, `prequential` - scores of one phase
* `recovery`, `Recovery`, `retention`, `recovery_deficit` - what a drift costs and how soon it is over
* `dynamic_regret`, `variation_budget`, `forgetting`, `forward_transfer`, `truth_rate` - against references
* `detect`, `Detection`, `Realignment` - delays and false alarms
* `Estimate`, `bootstrap`, `paired_difference`, `interquartile_mean`, `proportion` - statistics
* `ScoreSummary`, `summarise` - three views of the same scores
* `summarise_recoveries`, `Recoveries` - recovery times, some of which were never seen
* `cost_by_kind`, `CostKind`, `collected_score`, `break_even`, `recovery_ratio` - what probing costs and wins

Scores lie in [0, 1] and come episode by episode, in the order in which they were played. No function
draws from the global generator; bootstraps take a seed.
"""

from drift_envs.metrics.costs import CostKind, break_even, collected_score, cost_by_kind, recovery_ratio
from drift_envs.metrics.detection import Detection, Realignment, detect
from drift_envs.metrics.recovering import (
    Recoveries,
    Recovery,
    recovery,
    recovery_deficit,
    retention,
    summarise_recoveries,
)
from drift_envs.metrics.scores import (
    area_under_curve,
    dynamic_regret,
    first_and_last,
    forgetting,
    forward_transfer,
    percent,
    prequential,
    truth_rate,
    variation_budget,
)
from drift_envs.metrics.statistics import (
    Estimate,
    ScoreSummary,
    bootstrap,
    interquartile_mean,
    paired_difference,
    proportion,
    summarise,
)

__all__ = [
    "CostKind",
    "Detection",
    "Estimate",
    "Realignment",
    "Recoveries",
    "Recovery",
    "ScoreSummary",
    "area_under_curve",
    "bootstrap",
    "break_even",
    "collected_score",
    "cost_by_kind",
    "detect",
    "dynamic_regret",
    "first_and_last",
    "forgetting",
    "forward_transfer",
    "interquartile_mean",
    "paired_difference",
    "percent",
    "prequential",
    "proportion",
    "recovery",
    "recovery_deficit",
    "recovery_ratio",
    "retention",
    "summarise",
    "summarise_recoveries",
    "truth_rate",
    "variation_budget",
]
