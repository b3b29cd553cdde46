"""Seven of Minigrid's environments with knobs; needs the extra `minigrid`.

* `EmptyGrid`, `DoorKeyGrid`, `MultiRoomGrid`, `LavaGapGrid` - reach the goal
* `KeyCorridorGrid` - take the ball behind the locked door; `UnlockGrid` - open the door
* `GoToLocalGrid` - BabyAI's level `GoToLocal`: go to the thing that the task names
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from contextlib import redirect_stdout
from typing import Any, ClassVar

from minigrid.envs import DoorKeyEnv, EmptyEnv, KeyCorridorEnv, LavaGapEnv, MultiRoomEnv, UnlockEnv
from minigrid.envs.babyai import GoToLocal

from drift_envs.envs.minigrid.base import GridKnobs
from drift_envs.envs.minigrid.model import GridTask
from drift_envs.envs.minigrid.things import name_thing
from drift_envs.knobs import Value
from drift_envs.registration import IDS, EnvParts


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

    goal_kind = "take"

    parts: ClassVar[EnvParts | None] = IDS["DriftMiniGrid-KeyCorridor-v0"]

    def __init__(self, render_mode: str | None = None, room_size: int = 3, num_rows: int = 2) -> None:
        KeyCorridorEnv.__init__(self, room_size=room_size, num_rows=num_rows, render_mode=render_mode)

    def step(self, action: Any) -> Any:
        """Carry out an action; the ball of the colour that the task refers to pays."""
        observation, reward, terminated, truncated, info = super().step(action)
        if self._words:
            is_paid = self.carrying is not None and name_thing(self.carrying) == self._task().thing
            reward, terminated = (self._reward(), True) if is_paid else (0, False)
        return observation, reward, terminated, truncated, info

    def _task(self) -> GridTask:
        return GridTask("take", thing=f"{self._words.get(self.obj.color, self.obj.color)} {self.obj.type}")


class UnlockGrid(GridKnobs, UnlockEnv):
    """A locked door and its key: Minigrid's `Unlock`, see `GridKnobs`.

    Args:
        render_mode: `human`, `rgb_array` or `None`.
    """

    goal_kind = "open"

    parts: ClassVar[EnvParts | None] = IDS["DriftMiniGrid-Unlock-v0"]

    def __init__(self, render_mode: str | None = None) -> None:
        UnlockEnv.__init__(self, render_mode=render_mode)

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

    goal_kind = "face"

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
