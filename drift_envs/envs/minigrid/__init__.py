"""Minigrid's environments with knobs: doors, keys, objects, actions, rewards; needs the extra `minigrid`.

* `EMPTY`, `DOOR_KEY`, `MULTI_ROOM`, `LAVA_GAP`, `KEY_CORRIDOR`, `UNLOCK`, `GO_TO_LOCAL` - the declarations of
  `DriftMiniGrid-Empty-v0` and so on
"""

from drift_envs.parts import Controls, EnvParts

_HERE = "drift_envs.envs.minigrid"
_CONTROLS = Controls(
    {"left": 0, "right": 1, "up": 2, "a": 0, "d": 1, "w": 2, "p": 3, "o": 4, "space": 5},
    None,
    "left and right: turn; up: go; p: pick up; o: drop; space: open or close",
    ends_at_goal=False,
)


def _declare(name: str, limit: int, *arguments: str) -> EnvParts:
    return EnvParts(
        env=f"{_HERE}.env:{name}",
        knobs=f"{_HERE}.knobs:MINIGRID_KNOBS",
        limit=limit,
        arguments=dict.fromkeys(arguments),
        text=f"{_HERE}.text:GridDescriber",
        oracle=f"{_HERE}.oracle:make_oracle",
        controls=_CONTROLS,
        extra="minigrid",
    )


EMPTY = _declare("EmptyGrid", 256, "size")
DOOR_KEY = _declare("DoorKeyGrid", 640, "size")
MULTI_ROOM = _declare("MultiRoomGrid", 40, "rooms", "room_size")
LAVA_GAP = _declare("LavaGapGrid", 196, "size")
KEY_CORRIDOR = _declare("KeyCorridorGrid", 270, "room_size", "num_rows")
UNLOCK = _declare("UnlockGrid", 288)
GO_TO_LOCAL = _declare("GoToLocalGrid", 36, "room_size", "num_dists")
