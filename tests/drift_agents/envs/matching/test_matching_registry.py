from __future__ import annotations

import pytest
from drift_agents.envs.matching import Matching, make_matching, matching_names
from drift_agents.errors import ArgumentError, UnknownNameError


@pytest.mark.parametrize("name", matching_names())
def test_every_rule_has_its_name_and_keeps_the_protocol(name):
    rule = make_matching(name)
    assert isinstance(rule, Matching)
    assert rule.name == name
    assert make_matching(name) is not rule


def test_unknown_names_and_options_are_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'mountain_car'"):
        make_matching("mountain_cat")
    with pytest.raises(UnknownNameError, match="no matching is called 'frozen_lake'"):
        make_matching("frozen_lake")
    with pytest.raises(ArgumentError, match="the matching 'mountain_car' does not take the option"):
        make_matching("mountain_car", cell=0.1)
