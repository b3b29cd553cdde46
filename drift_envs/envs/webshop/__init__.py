"""A web shop: advertisements, meanings of colour words, labels, order, prices, stock, lost actions.

* `WEBSHOP` - the declaration of `DriftWebShop-v0`
"""

from drift_envs.parts import EnvParts

_HERE = "drift_envs.envs.webshop"

WEBSHOP = EnvParts(
    env=f"{_HERE}.env:WebShop",
    knobs=f"{_HERE}.knobs:WEBSHOP_KNOBS",
    limit=30,
    arguments={
        "observation_mode": None,
        "backend": None,
        "catalogue": None,
        "goals": "tasks",
        "pool": "tasks",
        "order": "tasks",
        "clusters": "tasks",
        "repeats": "tasks",
        "held_out": "tasks",
        "max_length": None,
        "native_clicks": None,
    },
    build=f"{_HERE}.build:build",
    text_mode="url+text",
    oracle=f"{_HERE}.oracle:make_oracle",
    marks=f"{_HERE}.marks:ShopMarks",
)
