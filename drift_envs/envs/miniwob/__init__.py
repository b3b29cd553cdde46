"""Task pages of MiniWoB++ in a browser, with knobs: labels, order, themes, colours; needs the extra `miniwob`.

* `CLICK_BUTTON`, `CLICK_DIALOG` and so on - the declarations of `DriftMiniWoBClickButton-v0` and so on
"""

from drift_envs.parts import EnvParts

_HERE = "drift_envs.envs.miniwob"


def _declare(task: str, limit: int) -> EnvParts:
    return EnvParts(
        env=f"{_HERE}.env:MiniWoB",
        knobs=f"{_HERE}.knobs:MINIWOB_KNOBS",
        limit=limit,
        arguments={
            "observation_mode": None,
            "data_mode": None,
            "action_preset": None,
            "pool": "tasks",
            "order": "tasks",
        },
        fixed={"task": task},
        build=f"{_HERE}.build:build",
        text_mode="state",
        oracle=f"{_HERE}.oracle:make_oracle",
        extra="miniwob",
    )


CLICK_BUTTON = _declare("click-button", 10)
CLICK_DIALOG = _declare("click-dialog", 10)
CLICK_TAB = _declare("click-tab", 10)
ENTER_TEXT = _declare("enter-text", 10)
LOGIN_USER = _declare("login-user", 10)
CHOOSE_LIST = _declare("choose-list", 10)
NAVIGATE_TREE = _declare("navigate-tree", 20)
SEARCH_ENGINE = _declare("search-engine", 10)
BOOK_FLIGHT = _declare("book-flight", 30)
USE_AUTOCOMPLETE = _declare("use-autocomplete", 10)
