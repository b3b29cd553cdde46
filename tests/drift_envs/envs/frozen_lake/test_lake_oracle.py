"""The oracle of the lake against brute force and small maps."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

from drift_envs.envs.frozen_lake.dynamics import distances, tiles
from drift_envs.envs.frozen_lake.knobs import FROZEN_LAKE_KNOBS, draw_map
from drift_envs.envs.frozen_lake.oracle import (
    LakeOracle,
    LakeSetting,
    carried_value,
    lake_magnitude,
    lake_responses,
    solve_lake,
)
from drift_envs.errors import ArgumentError
from drift_envs.knobs import FrozenMapping
from drift_envs.oracle import PlannedKnobs
from drift_envs.schedule import Schedule, Timeline


def make_lake_oracle(base: dict, *drifts: dict, limit: int = 100) -> LakeOracle:
    schedule = Schedule(version=1, name="test", base=base, drifts=list(drifts))
    return LakeOracle(PlannedKnobs(Timeline(schedule, FROZEN_LAKE_KNOBS, 0), FROZEN_LAKE_KNOBS), limit)


def state_text(row: int, column: int, tile: str = "F", gold: float = 0) -> str:
    return json.dumps({"cur_pos": [row, column], "tile_type": tile, "gold_collected": gold})


def expected_score(setting: LakeSetting, policy: tuple[int, ...], limit: int) -> float:
    """The score of one stationary policy, by pushing the distribution of states forward."""
    model = setting.model
    share = np.zeros(len(policy))
    share[0] = 1.0
    score = 0.0
    for _ in range(limit):
        after = np.zeros_like(share)
        for state, action in enumerate(policy):
            for k in range(model.next_state.shape[2]):
                flow = share[state] * model.probability[state, action, k]
                score += flow * model.reward[state, action, k]
                if not model.terminated[state, action, k]:
                    after[model.next_state[state, action, k]] += flow
        share = after
    return score


@pytest.mark.parametrize("slip", [0.0, 0.2, 0.7])
def test_the_value_is_the_maximum_over_all_policies(slip: float) -> None:
    setting = LakeSetting(("SH", "FG"), slip=slip, goal_rewards=FrozenMapping({"1,1": 2.0}))
    # A plan that depends on the steps left is at least as good, and hardly better with a long limit.
    best = max(expected_score(setting, policy, 100) for policy in itertools.product(range(4), repeat=4))
    value = solve_lake(setting, 100).value
    assert best - 1e-12 <= value <= best + 1e-3


def test_optimal_actions_without_slip_are_the_shortest_paths() -> None:
    for seed in range(10):
        lake = draw_map({"size": 5, "holes": 6}, None, np.random.default_rng(seed))
        plan = solve_lake(LakeSetting(lake), 50)
        goal = tiles(lake).index("G")
        back = distances(lake, [goal])  # a goal has no successors, so distances are computed from every tile instead
        assert back[goal] == 0
        for state, letter in enumerate(tiles(lake)):
            to_goal = distances(lake, [state])[goal]
            if letter in "GH" or to_goal < 0:
                continue
            row, column = divmod(state, 5)
            expected = []
            for dr, dc in ((0, -1), (1, 0), (0, 1), (-1, 0)):
                r, c = min(max(row + dr, 0), 4), min(max(column + dc, 0), 4)
                onward = 0 if lake[r][c] == "G" else distances(lake, [r * 5 + c])[goal]
                expected.append(lake[r][c] != "H" and onward == to_goal - 1)
            assert plan.best[50, state].tolist() == expected
            assert plan.steps[50, state] == to_goal


def test_carried_value_is_the_maximum_over_all_old_optimal_policies() -> None:
    old, new, limit = LakeSetting(("SFF", "FHF", "FFG"), slip=0.2), LakeSetting(("SFF", "FFH", "FFG"), slip=0.2), 30
    plan, model = solve_lake(old, limit), new.model
    # Brute force over the same choices, state by state and step by step, by recursion without arrays.
    memory: dict[tuple[int, int], float] = {}

    def value(state: int, left: int) -> float:
        if left == 0:
            return 0.0
        if (state, left) not in memory:
            memory[state, left] = max(
                sum(
                    model.probability[state, a, k]
                    * (
                        model.reward[state, a, k]
                        + (0 if model.terminated[state, a, k] else value(int(model.next_state[state, a, k]), left - 1))
                    )
                    for k in range(3)
                )
                for a in range(4)
                if plan.best[left, state, a]
            )
        return memory[state, left]

    carried = carried_value(old, new, limit)
    assert carried == pytest.approx(value(0, limit))
    assert 0 < carried < solve_lake(new, limit).value


def test_a_detour_is_not_optimal() -> None:
    # Both paths lead to the goal; the short one is blocked, and the long one was not optimal.
    old, new = LakeSetting(("SFG", "FFF")), LakeSetting(("SHG", "FFF"))
    assert carried_value(old, new, 100) == 0.0
    assert solve_lake(new, 100).value == 1.0


def test_all_actions_are_optimal_where_the_value_is_zero() -> None:
    plan = solve_lake(LakeSetting(("SGH", "HHF")), 10)
    assert plan.best[10, 5].all(), "the corner behind the holes"
    assert plan.best[10, 0].tolist() == [False, False, True, False]
    # So the carried policies include those that succeed once the hole is gone.
    assert carried_value(LakeSetting(("HGH", "SHF")), LakeSetting(("HGF", "SFF")), 10) == 1.0


def test_magnitude_counts_pairs_of_tile_and_action() -> None:
    old = LakeSetting(("SFFG",))
    assert lake_magnitude(old, old) == 0.0
    # A hole on (0, 1): the pair that led there from the left, the one from the right, and the four of the tile.
    assert lake_magnitude(old, LakeSetting(("SHFG",))) == 6 / 12
    assert lake_magnitude(old, LakeSetting(("SFFG",), goal_rewards=FrozenMapping({"0,3": 0.5}))) == 1 / 12


def test_magnitude_of_maps_of_different_size() -> None:
    # (0, 0) right is the same on both; up and down stay, left stays; the second tile becomes the goal.
    assert lake_magnitude(LakeSetting(("SFG",)), LakeSetting(("SG",))) == 5 / 8


def test_probabilities_of_responses_sum_to_one() -> None:
    for rows in lake_responses(LakeSetting(("SFF", "FHF", "FFG"), slip=0.4, transient=0.2)).values():
        for row in rows:
            assert sum(row.values()) == pytest.approx(1.0)


BASE = {"map": ["SFF", "FHF", "FFG"], "goal_rewards": {"2,2": 0.5}}
DRIFT = {"name": "d", "at": 5, "set": {"map": ["SHF", "FFF", "FFG"]}}


class TestResponses:
    def test_changed_depends_on_state_and_action(self) -> None:
        oracle = make_lake_oracle(BASE, DRIFT)
        assert oracle.changed(state_text(0, 0, "S"), "2", 0, 5)  # right: ice before, a hole now
        assert not oracle.changed(state_text(0, 0, "S"), "1", 0, 5)
        assert oracle.changed(0, 2, 4, 5)
        assert not oracle.changed(0, 2, 0, 4)
        assert not oracle.changed(0, 2, 5, 9)

    def test_changed_includes_rewards_and_slip(self) -> None:
        oracle = make_lake_oracle(
            BASE, {"at": 2, "set": {"goal_rewards": {"2,2": 1.0}}}, {"at": 4, "set": {"slip": 0.1}}
        )
        beside = state_text(2, 1)
        assert oracle.changed(beside, 2, 0, 2)
        assert not oracle.changed(beside, 0, 0, 2)
        assert oracle.changed(beside, 0, 2, 4)

    def test_response_adds_the_reward_to_the_score(self) -> None:
        oracle = make_lake_oracle(BASE)
        (response,) = oracle.response(state_text(2, 1), 2, 0)
        assert response == (state_text(2, 2, "G", 0.5), 0.5, True, 1.0)
        (response,) = oracle.response(7, 0, 0)
        assert response == (state_text(2, 0), 0.0, False, 1.0)

    def test_response_of_a_slippery_lake(self) -> None:
        oracle = make_lake_oracle({**BASE, "slip": 0.2})
        responses = oracle.response(state_text(0, 0, "S"), 1, 0)
        assert [(json.loads(a.state)["cur_pos"], a.probability) for a in responses] == [
            ([1, 0], 0.8),
            ([0, 0], 0.1),
            ([0, 1], 0.1),
        ]

    def test_false_responses_do_not_hold(self) -> None:
        oracle = make_lake_oracle({**BASE, "transient": 0.2})
        probabilities = {a.state: a.probability for a in oracle.response(state_text(0, 0, "S"), 2, 0)}
        assert probabilities == {state_text(0, 1): 0.8, state_text(1, 0): 0.2}
        assert oracle.holds(state_text(0, 0, "S"), 2, state_text(0, 1), False, 0)
        assert not oracle.holds(state_text(0, 0, "S"), 2, state_text(1, 0), False, 0)

    def test_holds_compares_tile_gold_and_end(self) -> None:
        oracle = make_lake_oracle(BASE, DRIFT)
        start = state_text(0, 0, "S")
        assert oracle.holds(start, "2", state_text(0, 1, "F"), False, 0)
        assert not oracle.holds(start, "2", state_text(0, 1, "F"), False, 5)
        assert oracle.holds(start, "2", state_text(0, 1, "H"), True, 5)
        assert not oracle.holds(start, "2", state_text(0, 1, "H"), False, 5)
        assert oracle.holds(state_text(2, 1), "2", state_text(2, 2, "G", 0.5), True, 0)
        assert not oracle.holds(state_text(2, 1), "2", state_text(2, 2, "G", 1.0), True, 0)

    def test_there_is_no_response_outside_the_map(self) -> None:
        oracle = make_lake_oracle(BASE, {"at": 1, "set": {"map": ["SG"], "goal_rewards": {}}})
        assert oracle.response(state_text(2, 1), 2, 1) == ()
        assert oracle.changed(state_text(2, 1), 2, 0, 1)
        assert not oracle.holds(state_text(2, 1), 2, state_text(2, 2, "G", 0.5), True, 1)

    def test_action_depends_on_the_steps_left(self) -> None:
        # The near goal has a low reward, the far one a high one; with three steps left only the near one is in reach.
        oracle = make_lake_oracle({"map": ["GFFSFFFFFG"], "goal_rewards": {"0,0": 0.5}})
        assert oracle.action(3, 0) == 2
        assert oracle.action(3, 0, left=3) == 0

    @pytest.mark.integration
    def test_the_oracles_policy_reaches_its_value(self) -> None:
        lake = draw_map({"size": 6, "holes": 9, "slip": 0.2, "optimum": 0.7}, None, np.random.default_rng(3))
        oracle = make_lake_oracle({"map": list(lake), "slip": 0.2})
        setting = oracle.setting(0)
        model, generator, won = setting.model, np.random.default_rng(0), 0
        episodes = 1500
        for _ in range(episodes):
            state = 0
            for step in range(100):
                action = oracle.action(state, 0, left=100 - step)
                k = generator.choice(3, p=model.probability[state, action])
                won += model.reward[state, action, k]
                if model.terminated[state, action, k]:
                    break
                state = int(model.next_state[state, action, k])
        value = oracle.value(0)
        assert won / episodes == pytest.approx(value, abs=4 * np.sqrt(value * (1 - value) / episodes))

    @pytest.mark.parametrize(
        "state", ["nonsense", "{}", '{"cur_pos": [1], "tile_type": "F", "gold_collected": 0}', 1.5]
    )
    def test_an_invalid_state_is_refused(self, state: object) -> None:
        with pytest.raises(ArgumentError, match="`state` should be"):
            make_lake_oracle(BASE).response(state, 0, 0)

    @pytest.mark.parametrize("action", ["up", 4, -1, None])
    def test_an_invalid_action_is_refused(self, action: object) -> None:
        with pytest.raises(ArgumentError, match="`action` should be one of 0, 1, 2, 3"):
            make_lake_oracle(BASE).response(0, action, 0)

    def test_an_action_outside_the_map_is_refused(self) -> None:
        with pytest.raises(ArgumentError, match="should lie on the 3 x 3 map"):
            make_lake_oracle(BASE).action(state_text(4, 4), 0)
