"""What language models cost and how well they answered, in a table of the report.

* `llm_costs` - one row a player
"""

from __future__ import annotations

from drift_agents.analysis.runs import Runs, estimate, sum_of
from drift_agents.analysis.table import Table, show_count
from drift_agents.analysis.tables.scores import PlayerIndex


def llm_costs(naming: PlayerIndex) -> Table:
    """What each player's language models cost over the whole run, the mean of an instance.

    Args:
        naming: who stands in which row.

    Returns:
        The table; without rows where no language model was asked.
    """
    sheet = Table(
        "Language models over the whole run, mean of an instance",
        (
            "method",
            "calls",
            "tokens\nin",
            "tokens\nout",
            "cost",
            "seconds\na call",
            "re-asks",
            "invalid\nactions",
            "by\nrules",
            "records\nleft out",
        ),
    )
    for name, test, reference in naming.rows():
        run = test.whole
        if not any(row["model_calls"] for rows in run.rows for row in rows):
            continue

        def count(field: str, run: Runs = run) -> str:
            return show_count(estimate(run.per_instance(sum_of(field))))

        calls, milliseconds, cost = (
            sum(run.per_instance(sum_of(field))) for field in ("model_calls", "milliseconds", "cost")
        )
        sheet.add(
            name,
            count("model_calls"),
            count("tokens_in"),
            count("tokens_out"),
            f"{cost / len(run.rows):.4g}",
            f"{milliseconds / 1000 / calls:.2g}",
            count("reasks"),
            count("invalid_actions"),
            count("fallbacks"),
            count("dropped_records"),
            reference=reference,
        )
    return sheet
