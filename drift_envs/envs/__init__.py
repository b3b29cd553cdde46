"""Environments that declare what can be set, and have no notion of drift.

* `Facts` - facts about people that change: statements over days, and a question a day
* `FrozenLake` - Gymnasium's frozen lake: map, slip, goal rewards, transient responses
* `MountainCar` - Gymnasium's mountain car: force, gravity, goal position, transient responses
* `MountainCarContinuous` - Gymnasium's continuous mountain car: power, gravity, goal position, transient responses
* `House` - a text house: places, names, locks, keys, appliances, words, tidiness, lost commands
* `ServiceDesk` - a service desk: tools, their names, schemas and meanings, a policy page, a database
* `WebShop` - a web shop: advertisements, meanings of colour words, labels, order, prices, stock, lost actions
"""

from typing import TYPE_CHECKING

from drift_envs.utils.lazy import lazy_names

if TYPE_CHECKING:
    from drift_envs.envs.facts.env import Facts
    from drift_envs.envs.facts.world import FACTS_KNOBS
    from drift_envs.envs.frozen_lake.env import FrozenLake
    from drift_envs.envs.frozen_lake.knobs import FROZEN_LAKE_KNOBS
    from drift_envs.envs.house.env import House
    from drift_envs.envs.house.knobs import HOUSE_KNOBS
    from drift_envs.envs.mountain_car.env import (
        MOUNTAIN_CAR_CONTINUOUS_KNOBS,
        MOUNTAIN_CAR_KNOBS,
        MountainCar,
        MountainCarContinuous,
    )
    from drift_envs.envs.tools.env import ServiceDesk
    from drift_envs.envs.tools.interface import TOOLS_KNOBS
    from drift_envs.envs.webshop.env import WEBSHOP_KNOBS, WebShop
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "facts.env": ["Facts"],
            "facts.world": ["FACTS_KNOBS"],
            "frozen_lake.env": ["FrozenLake"],
            "frozen_lake.knobs": ["FROZEN_LAKE_KNOBS"],
            "house.env": ["House"],
            "house.knobs": ["HOUSE_KNOBS"],
            "mountain_car.env": [
                "MOUNTAIN_CAR_CONTINUOUS_KNOBS",
                "MOUNTAIN_CAR_KNOBS",
                "MountainCar",
                "MountainCarContinuous",
            ],
            "tools.env": ["ServiceDesk"],
            "tools.interface": ["TOOLS_KNOBS"],
            "webshop.env": ["WEBSHOP_KNOBS", "WebShop"],
        },
    )

__all__ = [
    "FACTS_KNOBS",
    "FROZEN_LAKE_KNOBS",
    "HOUSE_KNOBS",
    "MOUNTAIN_CAR_CONTINUOUS_KNOBS",
    "MOUNTAIN_CAR_KNOBS",
    "TOOLS_KNOBS",
    "WEBSHOP_KNOBS",
    "Facts",
    "FrozenLake",
    "House",
    "MountainCar",
    "MountainCarContinuous",
    "ServiceDesk",
    "WebShop",
]
