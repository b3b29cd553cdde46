from __future__ import annotations

import pytest
from drift_agents.errors import ArgumentError, UnknownNameError
from drift_agents.matching.base import Matching, make_matching
from drift_agents.registry import MATCHINGS


@pytest.mark.parametrize("name", MATCHINGS.names())
def test_every_rule_has_its_name_and_keeps_the_protocol(name):
    rule = make_matching(name)
    assert isinstance(rule, Matching)
    assert rule.name == name
    assert make_matching(name) is not rule


def test_unknown_names_and_options_are_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'grid'"):
        make_matching("gird")
    with pytest.raises(ArgumentError, match="does not take these options"):
        make_matching("grid", cell=0.1)
