"""The planner for the frozen lake: a pure function of the rendered prompt and a generator for ties.

* `LakePlanner` - reads the prompt, joins what is recalled into a model of the world, plans
* `read_grid` - size, destinations, actions and highest score out of the task in words

Everything that it knows stands in the prompt, as it would for a language model: the task in words
and what memory recalls. `docs/planner.md` has the measured effect of every option.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from drift_agents.checks import check_flag, check_number
from drift_agents.errors import ArgumentError
from drift_agents.policy.base import Reply
from drift_agents.policy.lake.plan import Beliefs, BelievedOutcome, Cell, Grid, action_values
from drift_agents.prompt.conflict import check_conflict, settle
from drift_agents.prompt.view import Recollection, parse_prompt

SATISFIED = 0.9
"""The share of the highest score with which the aspiration rule is content."""
GAIN = 1.1
"""How many times better the plan without old disappointments must be to be followed."""
TIE = 1e-9
"""Values closer than this are equal."""


class LakePlanner:
    """Fits a model of the lake to the records of the prompt and follows the best plan.

    The same for every agent of a table, whatever its memory and verifier:

    * a move with records leads where they say; `conflict` says how several outcomes are weighed;
    * a move without records leads where it is meant to lead;
    * `generalise`: a remembered tile holds from every neighbour (the newest belief about it);
    * `risk`: a cell that is not known to be safe counts that many times less;
    * `aspiration`: when the best plan promises less than .9 of the highest score there is, gold
      below that is no reason to stop looking, and counts as nothing while a way to something
      better is believed in. When memory was found wrong (or, but with `frequency`, surprised) at
      some step, what was last seen before and says hole, or too little gold, also counts as
      unknown, if the plan becomes more than 10 % better by it. And when no way at all is believed
      in, what stands in the way is doubted, first what was seen least often, then the oldest, no
      more of it than opens a way;
    * equally good actions are chosen among at random.

    Args:
        risk: the chance that an unknown cell is safe, in (0, 1].
        generalise: whether a remembered tile holds from every neighbour.
        aspiration: whether old disappointments are doubted when no plan is good enough.
        conflict: `majority`, `newest`, `frequency` or `max` (`drift_agents.prompt.conflict`); for slippery
            ice take `frequency`, which plans with the frequencies as probabilities.
        prior: pseudo-counts on the intended move beside the counted outcomes; used by `frequency`
            alone, not negative.

    Raises:
        ArgumentError: if an option is out of its range.

    Example:
        >>> task = "A lake of 2 rows x 2 columns. There are a total of 1 destination(s): [1, 1]. "
        >>> task += "The highest score is 1. Actions: 0 left, 1 down, 2 right, 3 up."
        >>> from drift_agents.prompt.view import PromptView
        >>> from drift_agents.types import Outcome
        >>> start = '{"cur_pos": [0, 0], "tile_type": "S", "gold_collected": 0}'
        >>> hole = Outcome('{"cur_pos": [0, 1], "tile_type": "H", "gold_collected": 0}', 0.0, True)
        >>> view = PromptView(task, start, ("0", "1", "2", "3"), (Recollection(start, "2", hole, 1.0, 0),))
        >>> LakePlanner().decide(view.render(), np.random.default_rng(0)).text
        '1'
    """

    name = "lake"

    def __init__(
        self,
        *,
        risk: float = 0.75,
        generalise: bool = True,
        aspiration: bool = True,
        conflict: str = "majority",
        prior: float = 5.0,
    ) -> None:
        self.risk = check_number("risk", risk, "(0, 1]")
        self.prior = check_number("prior", prior, "[0, inf)")
        self.generalise = check_flag("generalise", generalise)
        self.aspiration = check_flag("aspiration", aspiration)
        self.conflict = check_conflict(conflict)

    def decide(self, prompt: str, rng: np.random.Generator) -> Reply:
        """Answer a prompt.

        Args:
            prompt: the rendered text.
            rng: for ties; drawn from only when there is one.

        Raises:
            ArgumentError: if the prompt lacks something that the planner needs.
        """
        view = parse_prompt(prompt)
        grid = read_grid(view.task, view.actions)
        cell = _read_cell(view.state)
        if not grid.has(cell):
            raise ArgumentError(f"the position {cell} lies outside a map of {grid.rows} x {grid.columns}")
        doubt_since = view.doubt_since
        if doubt_since is None and self.conflict != "frequency":
            # Where answers vary by chance, one never seen before is no sign that memory is stale.
            doubt_since = view.surprised_since
        values = self._choose_plan(grid, cell, (*view.here, *view.elsewhere), doubt_since)
        ties = np.flatnonzero(values >= values.max() - TIE)
        return Reply(grid.moves[ties[rng.integers(len(ties))]][0])

    def _choose_plan(
        self, grid: Grid, cell: Cell, recalled: tuple[Recollection, ...], doubt_since: int | None
    ) -> NDArray[np.float64]:
        """What every action is worth in this cell, the rule of aspiration included; shape (actions,)."""
        beliefs, enough = self._believe(grid, recalled), SATISFIED * grid.highest
        content = self._values(grid, beliefs)[cell]
        if not self.aspiration or content.max() >= enough:
            return content
        values = self._values(grid, _aspire(beliefs, enough))[cell]
        if doubt_since is not None:
            hopeful = tuple(item for item in recalled if item.last >= doubt_since or not _disappoints(item, enough))
            reopened = self._values(grid, _aspire(self._believe(grid, hopeful), enough))[cell]
            if reopened.max() > GAIN * values.max():
                values = reopened
        return values if values.max() > 0 else self._doubt_obstacles(grid, cell, recalled, enough)

    def _doubt_obstacles(
        self, grid: Grid, cell: Cell, recalled: tuple[Recollection, ...], enough: float
    ) -> NDArray[np.float64]:
        """The plan without as many obstacles as it takes for some way to be believed in; none if there is one.

        The task says that there is a way: where memory says that there is none, memory is wrong.
        """
        obstacles = [item for item in recalled if _disappoints(item, enough) or _is_astray(item, grid)]
        obstacles.sort(key=lambda item: (item.n, item.last, item.state, item.action, item.outcome))

        def without(number: int) -> NDArray[np.float64]:
            doubted = set(obstacles[:number])
            return self._values(grid, self._believe(grid, [item for item in recalled if item not in doubted]))[cell]

        fewest = bisect_left(range(len(obstacles)), True, key=lambda number: bool(without(number).max() > 0))
        return without(fewest)

    def _values(self, grid: Grid, beliefs: Beliefs) -> NDArray[np.float64]:
        prior = self.prior if self.conflict == "frequency" else 0.0
        return action_values(grid, beliefs, self.risk, prior, self.conflict == "max")

    def _believe(self, grid: Grid, recalled: Iterable[Recollection]) -> Beliefs:
        """What the records say about moves and tiles, once conflicts are settled."""
        sightings: dict[tuple[Cell, str], dict[BelievedOutcome, tuple[float, int]]] = {}
        read = _reader(grid)
        for item in recalled:
            reading = read(item)
            if reading is not None:
                seen = sightings.setdefault(reading[0], {})
                n, last = seen.get(reading[1], (0.0, -1))
                seen[reading[1]] = (n + item.support, max(last, item.last))
        moves: dict[tuple[Cell, str], tuple[tuple[BelievedOutcome, float], ...]] = {}
        tiles: dict[Cell, tuple[int, BelievedOutcome]] = {}
        safe = {cell for cell, _ in sightings}
        for key, seen in sightings.items():
            answers = settle([(answer, *times) for answer, times in seen.items()], self.conflict)
            if self.conflict == "frequency":
                answers = [(answer, seen[answer][0]) for answer, _ in answers]
            moves[key] = tuple(answers)
            for answer, _ in answers:
                if not answer.ended:
                    safe.add(answer.cell)
                known = tiles.get(answer.cell)
                belief = (seen[answer][1], answer)
                if known is None or belief > known:
                    tiles[answer.cell] = belief
        return Beliefs(
            frozenset(moves.items()),
            frozenset((cell, answer) for cell, (_, answer) in tiles.items()) if self.generalise else frozenset(),
            frozenset(safe),
        )


def _disappoints(item: Recollection, enough: float) -> bool:
    """Whether it says hole, or too little gold."""
    return item.outcome.ended and item.outcome.score < enough


def _is_astray(item: Recollection, grid: Grid) -> bool:
    """Whether the move led elsewhere than it was meant to."""
    reading = _reader(grid)(item)
    if reading is None:
        return False
    (cell, action), answer = reading
    move = dict(grid.moves)[action]
    return move is not None and answer.cell != grid.meant(cell, move)


def _aspire(beliefs: Beliefs, enough: float) -> Beliefs:
    """The same beliefs, but too little gold is as good as none."""

    def judge(answer: BelievedOutcome) -> BelievedOutcome:
        return answer._replace(score=0.0) if answer.score < enough else answer

    return beliefs._replace(
        moves=frozenset((key, tuple((judge(answer), n) for answer, n in answers)) for key, answers in beliefs.moves),
        tiles=frozenset((cell, judge(answer)) for cell, answer in beliefs.tiles),
    )


Reading = tuple[tuple[Cell, str], BelievedOutcome]


@lru_cache(maxsize=16)
def _reader(grid: Grid) -> Callable[[Recollection], Reading | None]:
    """What reads a recollection as a move and its answer, each one once.

    `None` stands for one that lies outside: the map was larger, or had other actions.
    """
    actions = {name for name, _ in grid.moves}

    @lru_cache(maxsize=65536)
    def read(item: Recollection) -> Reading | None:
        cell, target, outcome = _read_cell(item.state), _read_cell(item.outcome.state), item.outcome
        if not grid.has(cell) or not grid.has(target) or item.action not in actions:
            return None
        return (cell, item.action), BelievedOutcome(target, outcome.score if outcome.ended else 0.0, outcome.ended)

    return read


@lru_cache(maxsize=4096)
def _read_cell(state: str) -> Cell:
    try:
        row, column = json.loads(state)["cur_pos"]
        return int(row), int(column)
    except (ValueError, TypeError, KeyError) as error:
        raise ArgumentError(f"a state of the lake should have `cur_pos`: [row, column]. Received {state!r}") from error


DIRECTIONS: dict[str, Cell] = {"left": (0, -1), "down": (1, 0), "right": (0, 1), "up": (-1, 0)}
_SIZE = re.compile(r"(\d+) rows? x (\d+) columns?", re.IGNORECASE)
_CELL = r"[\[(](\d+), ?(\d+)[\])]"
_DESTINATIONS = re.compile(rf"destinations?(?:\(s\))?: ({_CELL}(?:, ?{_CELL})*)", re.IGNORECASE)
_PAIR = re.compile(_CELL)
_MEANING = re.compile(r"(\S+)(?: =)? (left|down|right|up)\b", re.IGNORECASE)
_HIGHEST = re.compile(r"highest score(?: there)?(?: is)?:? (\d+(?:\.\d+)?)", re.IGNORECASE)


@lru_cache(maxsize=256)
def read_grid(task: str, actions: tuple[str, ...]) -> Grid:
    """What the task in words says about the grid.

    Args:
        task: the task, with lines like those in the example of `LakePlanner`.
        actions: the admissible actions.

    Raises:
        ArgumentError: if the size, the destinations or the highest score are missing.
    """
    size = _find(_SIZE, task, "map size")
    places = _find(_DESTINATIONS, task, "destinations")
    highest = _find(_HIGHEST, task, "highest score there is")
    meanings = {name: DIRECTIONS[word.lower()] for name, word in _MEANING.findall(task)}
    return Grid(
        int(size[1]),
        int(size[2]),
        tuple((int(row), int(column)) for row, column in _PAIR.findall(places[1])),
        tuple((action, meanings.get(action)) for action in actions),
        float(highest[1]),
    )


def _find(pattern: re.Pattern[str], task: str, what: str) -> re.Match[str]:
    found = pattern.search(task)
    if found is None:
        raise ArgumentError(f"the task of a lake should name its {what}. Received {task!r}")
    return found
