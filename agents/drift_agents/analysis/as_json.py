"""Reports and leaderboards as data, for `--json`.

The fields are documented in `docs/command_line.md`. Figures are in percent, as in the tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from drift_agents.analysis.evidence import AXES, read_evidence
from drift_agents.analysis.leaderboard import name_of
from drift_agents.analysis.ranking import BOARD, Standing, Standings, rank_agents
from drift_agents.analysis.runs import Runs, ScheduleRuns, estimate, parts_of, read_run, sum_of
from drift_agents.analysis.tables import write_headline
from drift_envs.metrics import Estimate

COUNTS = ("steps", "probe_steps", "probe_resets", "model_calls", "tokens_in", "tokens_out")
"""Fields of `episodes.jsonl` that are summed over an instance, training included."""


def describe_run(folder: Path) -> dict[str, Any]:
    """The figures of a finished run.

    Raises:
        ExperimentError: if the folder holds no finished run.
    """
    manifest, rows = read_run(folder)
    parts = parts_of(manifest, rows)
    return {
        "name": manifest["name"],
        "versions": manifest["versions"],
        "headline": write_headline(parts),
        "schedules": [
            {
                "name": part.schedule,
                **{key: manifest["schedules"].get(part.schedule, {}).get(key) for key in ("env", "hash", "visibility")},
                "control": bool(manifest["schedules"].get(part.schedule, {}).get("control")),
                "measure": part.measure.field,
                "phases": list(part.phases),
                "agents": [_describe_runs(part, runs) for runs in part.players.runs.values()],
            }
            for part in parts
        ],
    }


def _describe_runs(part: ScheduleRuns, runs: Runs) -> dict[str, Any]:
    player = runs.player
    return {
        "name": part.players.full_name(player),
        **player._asdict(),
        "reference": part.players.is_reference(player),
        "supervision": part.players.supervision(player),
        "seeds": list(runs.seeds),
        "phases": [{"id": phase, **_score(part, runs.phase(phase))} for phase in part.phases],
        "after": _score(part, part.after(runs)),
        "per_seed": {field: runs.whole.per_instance(sum_of(field)) for field in COUNTS},
    }


def _score(part: ScheduleRuns, runs: Runs) -> dict[str, Any]:
    return _interval(estimate(runs.per_instance(part.measure.of), one_run=runs.is_one_run))


def _interval(value: Estimate) -> dict[str, Any]:
    """A mean with its 95 % interval, which is `None` with one instance."""
    has_interval = value.n > 1
    return {
        "mean": value.mean,
        "low": value.low if has_interval else None,
        "high": value.high if has_interval else None,
        "n": value.n,
    }


def describe_board(sources: Sequence[Path], charge: int = 0) -> dict[str, Any]:
    """The agents of several runs, ranked; the references after them.

    Args:
        sources: folders of finished runs, Parquet files, and folders of Parquet files.
        charge: interactions that a failed episode is charged.

    Raises:
        EvidenceError: if the lines cannot be read together, or there is nothing to compare.
    """
    evidence = read_evidence(sources)
    standings = rank_agents(evidence, charge)
    return {
        "board": BOARD,
        "charge": charge,
        "measure": standings.measure,
        "schedules": [{"name": name, "hash": evidence.schedules[name]["hash"]} for name in standings.schedules],
        "instances": standings.instances,
        "left_out": dict(standings.left_out),
        "agents": [_describe_standing(one, standings) for one in (*standings.ranked, *standings.references)],
        "same_episodes": [[name_of(one) for one in (key, *others)] for key, others in standings.same.items()],
    }


def _describe_standing(standing: Standing, standings: Standings) -> dict[str, Any]:
    return {
        "name": name_of(standing.key),
        **dict(zip(AXES, standing.key, strict=True)),
        "reference": standing.reference,
        "supervision": standing.supervision,
        "rank": None if standing.reference else standings.rank(standing),
        "ranks": None if standing.reference else list(standing.ranks),
        "score": _interval(standing.score),
        "success": dict(standing.success),
        "gain": None if standing.gain is None else _interval(standing.gain),
        "probes": standing.probes,
        "chain": standing.chain,
    }
