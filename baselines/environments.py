"""The drifting environments of the board, and their lifetimes.

* `BoardEnv` - an environment, what a network sees of it, and what drifts
* `ENVIRONMENTS` - a function for each name that makes it: two kinds of lakes, CartPole, MountainCar
* `Regime`, `REGIMES` - how many phases a lifetime has, how long they are, and which of them return
* `Course`, `make_course` - the lifetimes of several seeds in a regime as one batch

A lifetime is eight copies ("lanes") of one drifting environment, which a learner steps together. Its time is counted in
rounds of `BoardEnv.ticks` steps. Drifts are sudden and start with a round. Everything that drifts is drawn from the
seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from drift_envs.envs.frozen_lake.dynamics import Map, breaks_shortest_paths
from drift_envs.envs.frozen_lake.functional import FunctionalLake
from drift_envs.envs.frozen_lake.knobs import draw_map
from drift_envs.envs.mountain_car.functional import FunctionalCar
from drift_envs.errors import ArgumentError, KnobError, needs_extra
from drift_envs.functional import drift

LANES = 8
"""Copies of the environment in a lifetime."""
VALUES, LISTED = 40, 44
"""Phases that are drawn for a lifetime, and drifts that each schedule lists: with equal shapes all regimes of an
environment run without compiling again. Drifts that a regime does not need are listed after the end of the lifetime."""

Knobs = dict[str, Any]
"""The knob values of a phase."""


@dataclass(frozen=True)
class BoardEnv:
    """An environment of the board.

    Args:
        name: its name.
        functional: the environment as pure functions.
        compile: from schedules to the parameters of a batch.
        ticks: steps of a round in each lane.
        limit: steps of an episode.
        actions: the number of actions.
        inputs: from observations to what a network gets, shape `(..., size)`.
        size: the numbers that a network gets.
        score: from the return of an episode to its score: 0 for the worst, 1 for the optimum of the phase.
        draw: from a generator, the number of phases and whether phases of both sides of the drift are wanted, to the
            knob values of the phases. Each phase hurts every policy that was optimal in the one before.
        facts: the knob values of a phase as numbers, for learners that are given them.
        facts_size: how many numbers these are, with the number of the phase.
        plan: an optimal policy for knob values, as an array; for the references.
        follow: the actions of such a policy for observations.
        reward_scale: rewards times this are what learners get.
        tabular: whether observations are indices.
        pays_each_step: whether each step pays the same, so that only the length of an episode tells policies apart.
    """

    name: str
    functional: Any
    compile: Callable[[list[dict[str, Any]]], Any]
    ticks: int
    limit: int
    actions: int
    inputs: Callable[[Any], Any]
    size: int
    score: Callable[[Any], Any]
    draw: Callable[[np.random.Generator, int, bool], list[Knobs]]
    facts: Callable[[Knobs], np.ndarray]
    facts_size: int
    plan: Callable[[Knobs], np.ndarray]
    follow: Callable[[Any, Any], Any]
    reward_scale: float = 1.0
    tabular: bool = False
    pays_each_step: bool = False


def schedule_of(phases: list[Knobs], ticks: list[int]) -> dict[str, Any]:
    """A schedule with a sudden drift at the start of each phase but the first.

    Args:
        phases: the knob values of each phase.
        ticks: the tick at which each phase starts; the first is 0.
    """
    changing = [name for name, value in phases[0].items() if any(knobs[name] != value for knobs in phases)]
    names = changing or list(phases[0])  # phases of one side can be equal
    drifts = [
        {"name": f"phase-{index}", "at": tick, "set": {name: knobs[name] for name in names}}
        for index, (knobs, tick) in enumerate(zip(phases, ticks, strict=True))
    ]
    return {"version": 1, "name": "board", "clock": "step", "base": phases[0], "drifts": drifts[1:]}


# --- lakes

LAKE_LIMIT = 16
CORNERS = ("0,0", "0,4", "4,0", "4,4")
CORNER_MAP = ("GFFFG", "FFFFF", "FFSFF", "FFFFF", "GFFFG")
BROKEN = {"move": 2, "break_shortest_paths": True}
"""Every shortest path of the map before leads into a hole."""
PROPOSALS = 200
"""Maps that are drawn for a phase before all phases are drawn again."""


def _lake(name: str, tiles: int, draw: Any) -> BoardEnv:
    functional = FunctionalLake()
    return BoardEnv(
        name=name,
        functional=functional,
        compile=lambda schedules: functional.params_of(schedules, max_steps=LAKE_LIMIT),
        ticks=32,
        limit=LAKE_LIMIT,
        actions=4,
        inputs=lambda tile: jax.nn.one_hot(tile, tiles),
        size=tiles,
        score=lambda returned: returned,
        draw=draw,
        facts=_lake_facts,
        facts_size=tiles + 1,
        plan=_lake_plan,
        follow=lambda plan, tile: plan[tile],
        tabular=True,
    )


def _draw_corners(rng: np.random.Generator, number: int, both: bool) -> list[Knobs]:
    """Another corner pays in each phase; of one side: only the upper two ever pay."""
    found, last = [], -1
    for _ in range(number):
        last = int(rng.choice([corner for corner in range(4 if both else 2) if corner != last]))
        found.append({"goal_rewards": {corner: float(index == last) for index, corner in enumerate(CORNERS)}})
    return [{"map": CORNER_MAP, **knobs} for knobs in found]


def _draw_holes(rng: np.random.Generator, number: int, both: bool) -> list[Knobs]:
    """Holes move into every path that was shortest; of one side: the tile right of the start is always a hole."""
    lakes: list[Map] = []
    while len(lakes) < number:
        following = _next_lake(rng, lakes, both)
        lakes = [*lakes, following] if following else []
    return [{"map": list(lake)} for lake in lakes]


def _next_lake(rng: np.random.Generator, lakes: list[Map], both: bool) -> Map | None:
    """The map after those before; `None` if none was found, for instance since a map has no way to be broken."""
    for _ in range(PROPOSALS):
        try:
            new = draw_map(BROKEN, lakes[-1], rng) if lakes else draw_map({"size": 4, "holes": 4}, None, rng)
        except KnobError:
            return None
        alternates = len(lakes) != 1 or breaks_shortest_paths(new, lakes[0])  # the first two phases take turns
        if alternates and (both or new[0][1] == "H"):
            return new
    return None


def _lake_facts(knobs: Knobs) -> np.ndarray:
    """For each tile what entering it pays, and -1 for holes."""
    paid = np.zeros((len(knobs["map"]), len(knobs["map"][0])))
    for row, letters in enumerate(knobs["map"]):
        for column, letter in enumerate(letters):
            pays = knobs.get("goal_rewards", {}).get(f"{row},{column}", 1.0)
            paid[row, column] = {"G": pays, "H": -1.0}.get(letter, 0.0)
    return paid.reshape(-1)


def _lake_plan(knobs: Knobs) -> np.ndarray:
    """For each tile the move along a shortest path to a tile that pays, by breadth-first search from there."""
    letters = knobs["map"]
    side = len(letters)
    paid = _lake_facts(knobs).reshape(side, side)
    moves = {0: (0, -1), 1: (1, 0), 2: (0, 1), 3: (-1, 0)}
    best = np.zeros(side * side, int)
    front = [tuple(place) for place in np.argwhere(paid > 0)]
    seen = set(front)
    while front:
        row, column = front.pop(0)
        for action, (down, right) in moves.items():
            before = (row - down, column - right)
            inside = 0 <= before[0] < side and 0 <= before[1] < side
            if inside and before not in seen and letters[before[0]][before[1]] in "SF":
                best[before[0] * side + before[1]] = action
                seen.add(before)
                front.append(before)
    return best


def corners() -> BoardEnv:
    """A goal in each corner, of which one pays; no observation shows which."""
    return _lake("corners", 25, _draw_corners)


def holes() -> BoardEnv:
    """Four rows and columns with four holes, which move into every path that was shortest."""
    return _lake("holes", 16, _draw_holes)


# --- control

POLE_LIMIT = 200
FORCE = 10.0
CAR_LIMIT, CAR_FORCE, CAR_BEST = 200, 0.002, -60.0


def _draw_signs(knob: str, force: float) -> Callable[[np.random.Generator, int, bool], list[Knobs]]:
    """The controls are reversed in every second phase; of one side: never."""

    def draw(rng: np.random.Generator, number: int, both: bool) -> list[Knobs]:
        first = rng.choice([-1.0, 1.0]) if both else 1.0
        return [{knob: force * (first * (-1) ** phase if both else 1.0)} for phase in range(number)]

    return draw


def _hold_pole(sign: Any, seen: Any) -> Any:
    """A linear controller that holds the pole and the cart."""
    push = seen @ np.array([0.1, 0.3, 1.0, 0.5], np.float32) > 0
    return (push == (sign > 0)).astype(jnp.int32)


def cart_pole() -> BoardEnv:
    """CartPole of gymnax with episodes of 200 steps; the sign of the force drifts."""
    with needs_extra("gymnax", "baselines"):
        import gymnax
    own = gymnax.make("CartPole-v1")[0]
    functional = drift(own, None, ["force_mag"])
    params = own.default_params.replace(max_steps_in_episode=POLE_LIMIT)
    scale = np.array([2.4, 2.0, 0.2, 2.0], np.float32)
    return BoardEnv(
        name="cart_pole",
        functional=functional,
        compile=lambda schedules: functional.params_of(schedules, env_params=params),
        ticks=64,
        limit=POLE_LIMIT,
        actions=2,
        inputs=lambda observation: observation / scale,
        size=4,
        score=lambda returned: returned / POLE_LIMIT,
        draw=_draw_signs("force_mag", FORCE),
        facts=lambda knobs: np.array([knobs["force_mag"] / FORCE]),
        facts_size=2,
        reward_scale=0.1,
        pays_each_step=True,
        plan=lambda knobs: np.sign(knobs["force_mag"]),
        follow=_hold_pole,
    )


def _swing(sign: Any, seen: Any) -> Any:
    """Push in the direction of the velocity."""
    return jnp.where((seen[:, 1] >= 0) == (sign > 0), 2, 0)


def mountain_car() -> BoardEnv:
    """The mountain car with an engine of twice the usual force and episodes of 200 steps; its sign drifts."""
    functional = FunctionalCar()
    low, high = np.array([-0.5, 0.0], np.float32), np.array([0.6, 0.05], np.float32)
    return BoardEnv(
        name="mountain_car",
        functional=functional,
        compile=lambda schedules: functional.params_of(schedules, max_steps=CAR_LIMIT),
        ticks=64,
        limit=CAR_LIMIT,
        actions=3,
        inputs=lambda observation: (observation - low) / high,
        size=2,
        score=lambda returned: jnp.clip((returned + CAR_LIMIT) / (CAR_BEST + CAR_LIMIT), 0.0, 1.0),
        draw=_draw_signs("force", CAR_FORCE),
        facts=lambda knobs: np.array([knobs["force"] / CAR_FORCE]),
        facts_size=2,
        reward_scale=0.1,
        pays_each_step=True,
        plan=lambda knobs: np.sign(knobs["force"]),
        follow=_swing,
    )


ENVIRONMENTS: dict[str, Callable[[], BoardEnv]] = {
    "corners": corners,
    "holes": holes,
    "cart_pole": cart_pole,
    "mountain_car": mountain_car,
}


def make_env(name: str) -> BoardEnv:
    """An environment by its name.

    Raises:
        ArgumentError: if there is none of that name.
    """
    if name not in ENVIRONMENTS:
        raise ArgumentError(f"`environment` should be one of {', '.join(ENVIRONMENTS)}. Received {name!r}")
    return ENVIRONMENTS[name]()


# --- regimes


@dataclass(frozen=True)
class Regime:
    """How the phases of a lifetime follow each other.

    Args:
        name: its name.
        order: the number of the drawn phase that is played, for each phase of the lifetime.
        rounds: the rounds of each phase.
        bin: rounds that are averaged for the recorded scores.
    """

    name: str
    order: tuple[int, ...]
    rounds: tuple[int, ...]
    bin: int

    @property
    def starts(self) -> np.ndarray:
        """The round at which each phase starts."""
        return np.cumsum((0, *self.rounds[:-1]))

    @property
    def length(self) -> int:
        """The rounds of a lifetime."""
        return sum(self.rounds)

    @property
    def phases(self) -> np.ndarray:
        """The phase of each round."""
        return np.repeat(np.arange(len(self.rounds)), self.rounds)


REGIMES = {
    regime.name: regime
    for regime in (
        Regime("none", (0,), (300,), 2),
        Regime("late", (0, 1), (200, 100), 2),
        Regime("recurring", (0, 1) * 3, (50,) * 6, 2),
        Regime("rush", tuple(range(30)), (10,) * 30, 1),
        Regime("forty", tuple(range(40)), (50,) * 40, 5),
    )
}
"""No drift, one late drift, A-B-A-B-A-B, a drift every ten rounds, and forty phases."""


class Course(NamedTuple):
    """Lifetimes as one batch; N lifetimes of R rounds.

    Args:
        params: the environments' parameters.
        told: whether a drift starts with the round, `(N, R)`; for learners that are told and for evaluators.
        facts: the number of the phase and its knob values in each round, `(N, R, F)`; likewise.
        keys: a key for each lifetime, `(N,)`.
    """

    params: Any
    told: Any
    facts: Any
    keys: Any


def draw_phases(env: BoardEnv, seed: int) -> list[Knobs]:
    """The phases of the lifetime of a seed; a regime plays the first ones of them."""
    return env.draw(np.random.default_rng([seed, 0xB0A2D]), VALUES, True)


def make_course(env: BoardEnv, regime: Regime, seeds: list[int]) -> Course:
    """The lifetimes of several seeds.

    Args:
        env: the environment.
        regime: the regime.
        seeds: one for each lifetime.
    """
    drawn = [draw_phases(env, seed) for seed in seeds]
    later = [number for number in range(VALUES) if number not in regime.order]
    unused = (later + [0] * LISTED)[: LISTED - len(regime.order)]
    starts = [int(start) * env.ticks for start in regime.starts]
    after = [regime.length * env.ticks + 1 + number for number in range(len(unused))]
    order = (*regime.order, *unused)
    schedules = [schedule_of([phases[number] for number in order], starts + after) for phases in drawn]
    facts = [
        [np.append(env.facts(phases[number]), place / len(regime.order)) for place, number in enumerate(regime.order)]
        for phases in drawn
    ]
    told = np.zeros(regime.length, bool)
    told[regime.starts[1:]] = True
    return Course(
        params=env.compile(schedules),
        told=jnp.asarray(np.broadcast_to(told, (len(seeds), regime.length))),
        facts=jnp.asarray(np.array(facts)[:, regime.phases], jnp.float32),
        keys=jax.vmap(jax.random.key)(jnp.asarray(seeds)),
    )
