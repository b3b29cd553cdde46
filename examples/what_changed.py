"""A rule-based agent explores two phases of a lake, states what changed, and the statement is scored.

    python examples/what_changed.py
    python examples/what_changed.py --schedule frozen_lake/implicit --before source --after reversal

The agent sees what any agent sees: the JSON states of the text form. In each phase it takes the action that it has
tried least often on its tile, but none that led into a hole, and notes the letter and the gold of every tile. Then it
states the knobs whose values differ on tiles that it has seen in both phases, in the form of `drift-envs diff --json`;
`?` is a tile that it has not seen.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import gymnasium as gym

import drift_envs  # noqa: F401 - registers the environments
from drift_envs.metrics import StatementScore, compare_phases, score_statement

Tile = tuple[int, int]


class Explorer:
    """Explores one phase, and remembers the tiles.

    Attributes:
        letters: of the tiles that were seen.
        gold: that was collected on goals.
    """

    def __init__(self) -> None:
        self.letters: dict[Tile, str] = {}
        self.gold: dict[Tile, float] = {}
        self._tried: Counter[tuple[Tile, str]] = Counter()
        self._falls: set[tuple[Tile, str]] = set()

    def play(self, env: gym.Env[Any, Any], observation: str, actions: Sequence[str]) -> None:
        """Play an episode from its first observation on."""
        done = False
        while not done:
            tile = self._note(observation)
            action = min(actions, key=lambda each: ((tile, each) in self._falls, self._tried[tile, each]))
            self._tried[tile, action] += 1
            observation, _, terminated, truncated, _ = env.step(int(action))
            done = terminated or truncated
        if self.letters[self._note(observation)] == "H":
            self._falls.add((tile, action))

    def _note(self, observation: str) -> Tile:
        state = json.loads(observation)
        row, column = state["cur_pos"]
        self.letters[row, column] = state["tile_type"]
        if state["tile_type"] == "G":
            self.gold[row, column] = state["gold_collected"]
        return row, column


def draw(letters: dict[Tile, str], size: Tile) -> list[str]:
    """The tiles as rows of a map."""
    return ["".join(letters.get((row, column), "?") for column in range(size[1])) for row in range(size[0])]


def state_changes(before: Explorer, after: Explorer) -> dict[str, Any]:
    """What differs on tiles that were seen in both phases, as a statement."""
    seen = [*before.letters, *after.letters]
    size = 1 + max(row for row, _ in seen), 1 + max(column for _, column in seen)
    changes: list[dict[str, Any]] = []
    if any(before.letters[tile] != after.letters[tile] for tile in before.letters.keys() & after.letters.keys()):
        # a tile that was not seen again is taken to be as it was
        changes.append({"knob": "map", "new": draw({**before.letters, **after.letters}, size)})
    goals = before.gold.keys() & after.gold.keys()
    if any(before.gold[tile] != after.gold[tile] for tile in goals):
        paid = {f"{row},{column}": gold for (row, column), gold in sorted({**before.gold, **after.gold}.items())}
        changes.append({"knob": "goal_rewards", "new": paid})
    return {"changes": changes}


def main(arguments: Sequence[str] | None = None) -> StatementScore:
    """Explore both phases, print the statement and its score."""
    parser = argparse.ArgumentParser(description="A rule-based agent states what changed.")
    parser.add_argument("--schedule", default="frozen_lake/tides")
    parser.add_argument("--before", default="source", help="id of a phase")
    parser.add_argument("--after", default="flood", help="id of the other phase")
    parser.add_argument("--episodes", type=int, default=60, help="in each phase")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)

    env = gym.make("DriftFrozenLake-v0", schedule=given.schedule, text=True)
    env.reset(seed=given.seed)
    explorers = []
    for phase in (given.before, given.after):
        explorers.append(Explorer())
        for _ in range(given.episodes):  # time stands still in the phase
            observation, info = env.reset(options={"drift_phase": phase, "drift_clock": "hold"})
            explorers[-1].play(env, observation, info["actions"])
    statement = state_changes(*explorers)
    # from here on the evaluator: what the agent cannot see
    truth = compare_phases(env.get_wrapper_attr("timeline"), given.before, given.after)
    env.close()
    score = score_statement(truth, statement)
    print(json.dumps(statement, indent=2))
    print(f"differs: {', '.join(one.words for one in truth)}")
    print(f"precision {score.precision}, recall {score.recall}, exact {score.exact}, agreement {score.agreement}")
    return score


if __name__ == "__main__":
    main()
