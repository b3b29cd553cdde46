"""The planner for classic control and MuJoCo: a function of the rendered prompt and a generator.

* `ControlPlanner` - fits a smooth model to the records of the prompt and searches for the best plan
"""

from __future__ import annotations

import json

import numpy as np
from numpy.typing import NDArray

from drift_agents.checks import check_integer
from drift_agents.errors import ArgumentError
from drift_agents.matching.smooth import FieldState, read_field_state
from drift_agents.policy.base import Reply
from drift_agents.policy.control.aims import ControlAim, Prospect, find_aim
from drift_agents.policy.control.gaits import find_runner
from drift_agents.policy.control.model import ControlModel, ControlRecords, Floats, fit_model, read_control_records
from drift_agents.prompt.conflict import check_conflict
from drift_agents.prompt.view import parse_prompt

LEAST = 8
"""With fewer records than that, actions are drawn at random."""

HELD = 6
"""A drawn plan keeps an action for one to so many steps."""


class ControlPlanner:
    """Fits a smooth model to the records of the prompt and searches for the best plan.

    The changes of the numbers are fitted by ridge regression (`control.model`), with the effect of each action taken
    from the records nearest to the present state. The plans that are compared hold one action, hold one and then
    another one, or are drawn; the first action of the best one is taken (model predictive control). What a plan is
    worth is declared for each world (`control.aims`). Actions without records are tried first.

    A runner (Hopper, HalfCheetah) has too many numbers for that: it plays a gait that is known beforehand
    (`control.gaits`), and the records decide whether forward or backward pays and whether actuators are reversed.
    Without records, and in other worlds, actions are drawn at random.

    Args:
        conflict: the rule for several responses to one action near the present state: `majority`, `newest`,
            `frequency`, or `max` (the one that paid most).
        neighbours: the number of nearest records of each action; positive.
        plans: the number of drawn plans; positive.

    Raises:
        ArgumentError: if an argument is outside its range.

    Example:
        >>> from drift_agents.prompt.view import PromptView
        >>> view = PromptView("Swing.", '{"angle": 3.0, "angular_velocity": 0.0, "score": 0.0}', ("2.0",))
        >>> ControlPlanner().decide(view.render(), np.random.default_rng(0)).text
        '2.0'
    """

    name = "control"

    def __init__(self, *, conflict: str = "majority", neighbours: int = 5, plans: int = 60) -> None:
        self.conflict, self.neighbours = check_conflict(conflict), check_integer("neighbours", neighbours)
        self.plans = check_integer("plans", plans)

    def decide(self, prompt: str, rng: np.random.Generator) -> Reply:
        """Answer a prompt.

        Args:
            prompt: the rendered text.
            rng: for ties, and the plans that are drawn.

        Raises:
            ArgumentError: if the prompt has no state of these worlds, or no action.
        """
        view = parse_prompt(prompt)
        if not view.actions:
            raise ArgumentError(f"the prompt names no admissible action: {prompt[:80]!r}")
        here, count = read_field_state(view.state), len(view.actions)
        items = (*view.here, *view.elsewhere)
        runner = find_runner(here.names)
        if runner is not None and len(items) >= LEAST:
            evidence = read_control_records(items, view.actions, [])
            action = runner.choose(evidence, here, _read_torques(view.actions), self.conflict)
            return Reply(view.actions[action])
        world, aim = here.world, find_aim(here.names)
        tried = {item.action for item in items}
        untried = [action for action in view.actions if action not in tried]
        if world is None or aim is None or len(items) < LEAST or untried:
            choices = untried or view.actions
            return Reply(choices[int(rng.integers(len(choices)))])
        turning = [here.names.index(angle) for angle in world.angles]
        widths = np.array([world.widths[name] for name in here.names])
        evidence = read_control_records(items, view.actions, turning)
        model = fit_model(evidence, here, count, widths, turning, self.conflict, self.neighbours)
        plans = _make_plans(count, aim.steps, self.plans, rng)
        values = _values(model, evidence, here, plans, aim, _read_torques(view.actions))
        return Reply(view.actions[int(plans[int(np.argmax(values)), 0])])


def _read_torques(actions: tuple[str, ...]) -> Floats:
    """The numbers that actions are made of; shape `(actions, numbers)`."""
    return np.array([np.ravel(json.loads(action)) for action in actions], float)


def _make_plans(count: int, steps: int, drawn: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Plans, in random order so that ties are broken at random; shape `(plans, steps)`."""
    switches = (1, 2, 4, 8, 16)
    fixed = [[first] * steps for first in range(count)]
    pairs = [(first, second) for first in range(count) for second in range(count) if first != second]
    fixed += [
        [first] * switch + [second] * (steps - switch)
        for first, second in pairs
        for switch in switches
        if switch < steps and (count <= 3 or switch in (2, 8))
    ]
    lengths = rng.integers(1, HELD + 1, size=(drawn, steps))
    chosen = rng.integers(count, size=(drawn, steps))
    places = np.minimum(np.cumsum(lengths, axis=1), steps)
    piece = (np.arange(steps)[None, None, :] >= places[:, :, None]).sum(axis=1)
    random = np.take_along_axis(chosen, np.minimum(piece, steps - 1), axis=1)
    plans = np.concatenate([np.array(fixed, np.intp), random.astype(np.intp)])
    return plans[rng.permutation(len(plans))]


def _values(
    model: ControlModel,
    evidence: ControlRecords,
    here: FieldState,
    plans: NDArray[np.intp],
    aim: ControlAim,
    torques: Floats,
) -> Floats:
    """The worth of each plan by the model."""
    states = np.repeat(np.array([here.numbers]), len(plans), axis=0)
    pay = float(model.step(states, plans[:, 0])[1].mean())
    worth = aim.make(Prospect(evidence, torques, pay))
    # No number grows beyond twice of what was seen: features are products, and a wrong model would diverge.
    bound = 2 * np.maximum(np.abs(evidence.states).max(axis=0), np.abs(np.array(here.numbers))) + 1e-6
    alive = np.ones(len(plans))
    total = np.full(len(plans), -np.inf) if aim.is_goal else np.zeros(len(plans))
    for step in range(aim.steps):
        states, _ = model.step(states, plans[:, step])
        np.minimum(states, bound, out=states)
        np.maximum(states, -bound, out=states)
        now = worth(states, plans[:, step])
        for column, limit in aim.limits:
            alive *= np.abs(states[:, column]) <= limit
        if aim.is_goal:
            # The sooner the better: a height that is reached later is worth a little less.
            total = np.maximum(total, now - 0.01 * step)
        else:
            total += alive * now
    return total
