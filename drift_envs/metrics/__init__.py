"""Metrics of agents in drifting environments: pure functions over arrays and rows of logs.

* `percent`, `area_under_curve`, `first_and_last`, `prequential` - scores of one phase
* `dynamic_regret`, `variation_budget`, `forgetting`, `forward_transfer`, `truth_rate` - against references
* `recovery`, `Recovery`, `summarise_recoveries`, `Recoveries`, `retention`, `recovery_deficit` - recovery
* `detect`, `Detection`, `Realignment` - detection delays and false alarms
* `score_detector`, `DetectorSummary`, `score_alarms`, `DetectorScore`, `find_alarms` - drift detectors on streams
* `DriftDetector`, `Stream`, `Cusum` - their interface, what they watch, and one of them
* `compare_phases`, `KnobDifference`, `score_statement`, `StatementScore` - what differs between two phases
* `classify_statement`, `count_statements`, `split_statements`, `StatementCounts` - what texts say about it
* `cost_by_kind`, `CostKind`, `collected_score`, `break_even`, `recovery_ratio` - cost and benefit of probing
* `Estimate`, `bootstrap`, `paired_difference`, `proportion` - means with intervals
* `interquartile_mean`, `ScoreSummary`, `summarise` - statistics of scores

Scores lie in [0, 1], one for each episode in the order of play. No function uses the global random
generator; bootstraps take a seed. SciPy is imported when the first interval is computed.
"""

from drift_envs.metrics.adaptation import (
    CostKind,
    Recoveries,
    Recovery,
    break_even,
    collected_score,
    cost_by_kind,
    recovery,
    recovery_deficit,
    recovery_ratio,
    retention,
    summarise_recoveries,
)
from drift_envs.metrics.detection import (
    Cusum,
    Detection,
    DetectorScore,
    DetectorSummary,
    DriftDetector,
    Realignment,
    Stream,
    detect,
    find_alarms,
    score_alarms,
    score_detector,
)
from drift_envs.metrics.differences import KnobDifference, StatementScore, compare_phases, score_statement
from drift_envs.metrics.statements import (
    StatementCounts,
    classify_statement,
    count_statements,
    split_statements,
)
from drift_envs.metrics.statistics import (
    Estimate,
    ScoreSummary,
    area_under_curve,
    bootstrap,
    dynamic_regret,
    first_and_last,
    forgetting,
    forward_transfer,
    interquartile_mean,
    paired_difference,
    percent,
    prequential,
    proportion,
    summarise,
    truth_rate,
    variation_budget,
)

__all__ = [
    "CostKind",
    "Cusum",
    "Detection",
    "DetectorScore",
    "DetectorSummary",
    "DriftDetector",
    "Estimate",
    "KnobDifference",
    "Realignment",
    "Recoveries",
    "Recovery",
    "ScoreSummary",
    "StatementCounts",
    "StatementScore",
    "Stream",
    "area_under_curve",
    "bootstrap",
    "break_even",
    "classify_statement",
    "collected_score",
    "compare_phases",
    "cost_by_kind",
    "count_statements",
    "detect",
    "dynamic_regret",
    "find_alarms",
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
    "score_alarms",
    "score_detector",
    "score_statement",
    "split_statements",
    "summarise",
    "summarise_recoveries",
    "truth_rate",
    "variation_budget",
]
