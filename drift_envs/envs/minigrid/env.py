"""Seven of Minigrid's environments with knobs, and in words; needs the extra `minigrid`."""

from __future__ import annotations

import io
from collections.abc import Mapping
from contextlib import redirect_stdout
from typing import Any, ClassVar

from minigrid.core.world_object import Door
from minigrid.envs import DoorKeyEnv, EmptyEnv, KeyCorridorEnv, LavaGapEnv, MultiRoomEnv, UnlockEnv
from minigrid.envs.babyai import GoToLocal

from drift_envs.envs.minigrid.dynamics import GridTask
from drift_envs.envs.minigrid.grid import GridKnobs, name_thing
from drift_envs.knobs import Value
from drift_envs.registration import IDS, EnvParts
from drift_envs.wrappers.text import TEXT_CHARACTERS, write_number


class EmptyGrid(GridKnobs, EmptyEnv):
    """A room with a goal: Minigrid's `Empty-8x8`, see `GridKnobs`.

    Args:
        render_mode: `human`, `rgb_array` or `None`.
        size: columns and rows of the map.

    Example:
        >>> env = EmptyGrid()
        >>> env.set_knobs({"objects": {"1,6": "blue goal"}, "words": {"green": "blue"}})
        >>> _ = env.reset(seed=0)
        >>> [env.step(action)[1] > 0 for action in (1, 2, 2, 2, 2, 2)][-1]
        True
    """

    parts: ClassVar[EnvParts | None] = IDS["DriftMiniGrid-Empty-v0"]

    def __init__(self, render_mode: str | None = None, size: int = 8) -> None:
        EmptyEnv.__init__(self, size=size, render_mode=render_mode)


class DoorKeyGrid(GridKnobs, DoorKeyEnv):
    """A locked door, its key, and a goal behind it: Minigrid's `DoorKey-8x8`, see `GridKnobs`.

    Args:
        render_mode: `human`, `rgb_array` or `None`.
        size: columns and rows of the map.
    """

    parts: ClassVar[EnvParts | None] = IDS["DriftMiniGrid-DoorKey-v0"]

    def __init__(self, render_mode: str | None = None, size: int = 8) -> None:
        DoorKeyEnv.__init__(self, size=size, render_mode=render_mode)


class MultiRoomGrid(GridKnobs, MultiRoomEnv):
    """Two rooms with a door: Minigrid's `MultiRoom-N2-S4`, see `GridKnobs`.

    Args:
        render_mode: `human`, `rgb_array` or `None`.
        rooms: the number of rooms.
        room_size: the largest size of a room.
    """

    parts: ClassVar[EnvParts | None] = IDS["DriftMiniGrid-MultiRoom-v0"]

    def __init__(self, render_mode: str | None = None, rooms: int = 2, room_size: int = 4) -> None:
        MultiRoomEnv.__init__(
            self, minNumRooms=rooms, maxNumRooms=rooms, maxRoomSize=room_size, render_mode=render_mode
        )


class LavaGapGrid(GridKnobs, LavaGapEnv):
    """A strip of lava with a gap: Minigrid's `LavaGapS7`, see `GridKnobs`.

    Args:
        render_mode: `human`, `rgb_array` or `None`.
        size: columns and rows of the map.
    """

    parts: ClassVar[EnvParts | None] = IDS["DriftMiniGrid-LavaGap-v0"]

    def __init__(self, render_mode: str | None = None, size: int = 7) -> None:
        LavaGapEnv.__init__(self, size, render_mode=render_mode)


class KeyCorridorGrid(GridKnobs, KeyCorridorEnv):
    """A ball behind a locked door: Minigrid's `KeyCorridorS3R2`, see `GridKnobs`. The task names its colour.

    Args:
        render_mode: `human`, `rgb_array` or `None`.
        room_size: the size of a room.
        num_rows: rows of rooms.
    """

    parts: ClassVar[EnvParts | None] = IDS["DriftMiniGrid-KeyCorridor-v0"]

    def __init__(self, render_mode: str | None = None, room_size: int = 3, num_rows: int = 2) -> None:
        KeyCorridorEnv.__init__(self, room_size=room_size, num_rows=num_rows, render_mode=render_mode)

    def _judge(self, done: str, reward: float, terminated: bool) -> tuple[float, bool]:
        if done != "pickup":
            return reward, terminated
        return (self._reward(), True) if name_thing(self.carrying) == self._task().thing else (0, False)

    def _task(self) -> GridTask:
        return GridTask("take", thing=f"{self._words.get(self.obj.color, self.obj.color)} {self.obj.type}")


class UnlockGrid(GridKnobs, UnlockEnv):
    """A locked door and its key: Minigrid's `Unlock`, see `GridKnobs`.

    Args:
        render_mode: `human`, `rgb_array` or `None`.
    """

    parts: ClassVar[EnvParts | None] = IDS["DriftMiniGrid-Unlock-v0"]

    def __init__(self, render_mode: str | None = None) -> None:
        UnlockEnv.__init__(self, render_mode=render_mode)

    def _gen_grid(self, width: int, height: int) -> None:
        super()._gen_grid(width, height)
        found = self.grid.get(*self.door.cur_pos)
        if isinstance(found, Door):  # `objects` may have put another one there
            self.door = found

    def _task(self) -> GridTask:
        column, row = self.door.cur_pos
        return GridTask("open", cells=frozenset({(int(column), int(row))}))


class GoToLocalGrid(GridKnobs, GoToLocal):
    """BabyAI's level `GoToLocalS6N4`: face the thing that the task names, see `GridKnobs`.

    Args:
        render_mode: `human`, `rgb_array` or `None`.
        room_size: columns and rows of the room.
        num_dists: the number of other things.
    """

    parts: ClassVar[EnvParts | None] = IDS["DriftMiniGrid-GoToLocal-v0"]

    def __init__(self, render_mode: str | None = None, room_size: int = 6, num_dists: int = 4) -> None:
        GoToLocal.__init__(self, room_size=room_size, num_dists=num_dists, render_mode=render_mode)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin an episode; the colour in the task refers to what `words` says."""
        found = super().reset(seed=seed, options=options)
        self._named = (self.instrs.desc.color, self.instrs.desc.type)
        self._refer()
        return found

    def _gen_grid(self, width: int, height: int) -> None:
        with redirect_stdout(io.StringIO()):  # Minigrid prints each map that it rejects
            super()._gen_grid(width, height)

    def set_knobs(self, values: Mapping[str, Value]) -> None:
        """Set these knobs to canonical values, all at once."""
        super().set_knobs(values)
        if "words" in values and self._named:
            self._refer()

    _named: tuple[str, ...] = ()
    """Colour and kind in the task."""

    def _refer(self) -> None:
        """Let the task refer to the things of the colour that pays now."""
        color, kind = self._named
        self.instrs.desc.color, self.instrs.desc.type = self._words.get(color, color), kind
        self.instrs.reset_verifier(self)

    def _task(self) -> GridTask:
        poses = self.instrs.desc.obj_poss
        return GridTask("face", cells=frozenset((int(column), int(row)) for column, row in poses))

    def save_state(self) -> dict[str, Any]:
        """The state of the episode, with what the task names."""
        return {**super().save_state(), "_named": self._named}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore the state of an episode.

        Args:
            state: from `save_state`.
        """
        super().load_state(state)
        if self._named:
            self._refer()


class GridDescriber:
    """The words for Minigrid's environments.

    The task is Minigrid's mission with a sentence on the actions. The score is 1 once the mission is accomplished:
    Minigrid's bonus for few steps would make each response depend on the number of steps before.

    Args:
        env: the environment.
    """

    max_length = 2048
    characters = TEXT_CHARACTERS + "#?~"

    def __init__(self, env: Any) -> None:
        self.env = env

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions that may have an effect, as text."""
        return tuple(map(str, self.env.admissible_actions()))

    def state(self, observation: Any, score: float) -> str:
        """What is seen, as JSON.

        Args:
            observation: not used: its cells have no place.
            score: not used.
        """
        text: str = self.env.describe_state()
        return text

    def task(self, best: float | None) -> str:
        """The mission, and what the actions do.

        Args:
            best: the highest score there is.
        """
        mission = self.env.mission
        return (
            f"You are in a building of rooms, and see what is ahead of you. Your mission: {mission}. "
            f"The highest score is {write_number(best or 0.0)}. Actions: 0 turn left, 1 turn right, 2 go forward, "
            "3 pick up what is ahead, 4 drop, 5 open, close or unlock what is ahead, 6 wait."
        )

    def score(self, before: float, reward: float, terminated: bool) -> float:
        """One when the mission is accomplished.

        Args:
            before: the score before the transition.
            reward: its reward.
            terminated: whether it ended the episode.
        """
        return 1.0 if terminated and reward > 0 else before

    def best_score(self, knobs: Mapping[str, Value]) -> float:
        """One, for the mission.

        Args:
            knobs: the environment's knobs.
        """
        return 1.0
