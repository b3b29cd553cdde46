"""The map of verification: its schedules are what the generator makes, for any point."""

from __future__ import annotations

from importlib.resources import files

import pytest
from drift_agents.errors import ArgumentError
from hypothesis import given
from hypothesis import strategies as st

from drift_envs.schedule import load_schedule
from drift_envs.schedule.model import Schedule
from studies.verify_map.schedules import PLACES, make_schedule, print_schedule, to_yaml


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
