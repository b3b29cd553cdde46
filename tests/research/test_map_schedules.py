"""The map of verification: its schedules are what the generator makes, its experiments play with chosen options."""

from __future__ import annotations

from importlib.resources import files

import pytest
from drift_agents.errors import ArgumentError
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.plan import plan_cells
from hypothesis import given
from hypothesis import strategies as st

from drift_envs.schedule import load_schedule
from drift_envs.schedule.model import Schedule
from drift_envs.schedule.yaml import parse_yaml
from research.verify_map.schedules import PLACES, make_schedule, print_schedule, to_yaml
from research.verify_map.tuning import (
    MAP,
    MEMORIES,
    TUNED,
    environments,
    experiment_path,
    map_experiments,
    read_candidates,
    tuning_experiments,
)


@pytest.mark.parametrize("name", PLACES)
def test_the_shipped_file_is_what_the_generator_makes(name: str) -> None:
    shipped = files("drift_schedules").joinpath(f"{name}.yaml").read_text("utf-8")
    assert shipped == to_yaml(name, PLACES[name])


@given(place=st.sampled_from(sorted(PLACES)), every=st.integers(4, 80) | st.none(), percent=st.integers(0, 50))
def test_any_point_is_a_schedule_with_that_rate_and_that_share(place: str, every: int | None, percent: int) -> None:
    made = make_schedule(place, every, percent)
    schedule = load_schedule({"version": 1, "name": "point", "env": PLACES[place].env, **made})
    assert isinstance(schedule, Schedule)
    assert schedule.base.get("transient", 0) == percent / 100
    if every is None:
        assert schedule.control
    elif PLACES[place].recurs:
        assert [drift.every for drift in schedule.drifts] == [every]
    else:
        assert [drift.at for drift in schedule.drifts] == list(range(every, 100, every))


@pytest.mark.parametrize(("every", "percent"), [(3, 0), (20, 51), (20, -1), (20.5, 0)])
def test_an_axis_out_of_range_is_refused(every: int, percent: int) -> None:
    with pytest.raises(ArgumentError, match=r"`(every|percent)` should be"):
        make_schedule("frozen_lake/verify-6x6", every, percent)


def test_a_printed_point_is_a_schedule_file(tmp_path) -> None:
    path = tmp_path / "point.yaml"
    path.write_text(print_schedule("house/verify-keys", 12, 5), "utf-8")
    assert load_schedule(path).drifts[0].every == 12


def test_the_shipped_experiments_play_with_what_was_chosen() -> None:
    candidates = read_candidates()
    tuned = parse_yaml(TUNED.read_text("utf-8"), "tuned.yaml").data
    for name, made in map_experiments(candidates, tuned).items():
        assert load_experiment(experiment_path(name)) == load_experiment(made)
    for chosen in tuned["environments"].values():
        for name, entry in candidates.entries().items():
            areas, options = chosen["rules"][name]["areas"], entry.candidates()
            if areas or len(options) > 1:  # a row with the constants of its paper leaves nothing to choose
                assert chosen["rules"][name]["options"] == options[areas.index(max(areas))]


def test_no_instance_of_the_map_was_played_to_choose_options() -> None:
    ((_, conflict),) = tuning_experiments(read_candidates(), None).items()
    ((_, options),) = tuning_experiments(read_candidates(), dict.fromkeys(environments(), "newest")).items()
    map_cells = [cell for name in (MAP, MEMORIES) for cell in plan_cells(load_experiment(experiment_path(name)))]
    held_out = {(cell.schedule, cell.seed) for cell in map_cells}
    for made in (conflict, options):
        cells = plan_cells(load_experiment(made))
        assert not held_out & {(cell.schedule, cell.seed) for cell in cells}
        assert not {seed for _, seed in held_out} & {cell.seed for cell in cells}
        for environment, places in environments().items():
            played = {(cell.schedule, cell.seed) for cell in cells if cell.schedule.partition(":")[0] in places}
            assert len(played) == 5, environment
