"""The drifting shop as a task of BrowserGym, for its agents and those of AgentLab.

Importing this module registers the id.
"""

from __future__ import annotations

import os
from typing import Any

import gymnasium as gym

from drift_envs.checks import check_integer
from drift_envs.envs.webshop.served import ServerBackend
from drift_envs.errors import ArgumentError, needs_extra
from drift_envs.registration import IDS
from drift_envs.show.chromium import FLAGS, find_chromium
from drift_envs.wrappers.drift import Source
from webshop_server.settings import Settings

with needs_extra("browsergym-core", "browsergym"):
    import browsergym.core as core
    from browsergym.core.registration import register_task
    from browsergym.core.task import AbstractBrowserTask

SHOP = "DriftWebShop-v0"
MOST_EPISODES = 100_000
_SETTINGS = frozenset(Settings().to_dict())


class DriftShopTask(AbstractBrowserTask):  # type: ignore[misc]
    """A lifetime of errands in one episode of BrowserGym.

    Each page shows the instruction of its errand. A purchase pays its score, then the next errand begins: the page
    is the new start page, and the chat has its instruction. So the episodes of the schedule's clock pass within one
    episode of BrowserGym, which ends after the last errand; an agent keeps what it remembers meanwhile. An errand
    without a purchase ends after as many actions as an episode of `DriftWebShop-v0` has steps, and pays nothing.

    `info["task_info"]` has `episode` (errands that have ended), `episodes` and `score` (of the last one).

    Args:
        seed: draws the goals and starts the schedule.
        schedule: a schedule of the shop whose clock is `episode`; `None` for no drift.
        episodes: how many errands the lifetime has.
        **arguments: further arguments of `DriftWebShop-v0`, such as `pool` or `catalogue`.

    Raises:
        ArgumentError: an argument breaks a rule, or the schedule drives what only actions of the environment have.
        MissingDependencyError: Chromium is not installed.
    """

    def __init__(
        self,
        seed: int | None,
        schedule: Source = IDS[SHOP].schedule,
        episodes: int = 60,
        **arguments: Any,
    ) -> None:
        super().__init__(seed)
        self.viewport, self.slow_mo, self.timeout = {"width": 1280, "height": 900}, 0, 10_000
        self._episodes = check_integer("episodes", episodes, 1, MOST_EPISODES)
        self._seed = 0 if seed is None else seed
        self._env = gym.make(SHOP, schedule=schedule, backend="http", text=True, **arguments)
        self._check()
        self._ended, self._steps, self._score = 0, 0, 0.0
        core._set_global_playwright(DebianPlaywright.of(core._get_global_playwright()))

    @classmethod
    def get_task_id(cls) -> str:
        """The id without `browsergym/`."""
        return "drift_webshop"

    def setup(self, page: Any) -> tuple[str, dict[str, Any]]:
        """Start the schedule and open the first errand.

        Args:
            page: Playwright's page.

        Returns:
            The goal and the task's `info`.
        """
        instruction = self._begin(page, self._seed)
        goal = (
            f"You do {self._episodes} errands in a web shop, one after the other. Each page shows the instruction of "
            f"its errand: find a fitting product, choose its options, and buy it. The first one: {instruction}"
        )
        return goal, self._info()

    def validate(self, page: Any, chat_messages: list[Any]) -> tuple[float, bool, str, dict[str, Any]]:
        """Pay a purchase, and open the next errand after it.

        Args:
            page: Playwright's page.
            chat_messages: not used.

        Returns:
            The score of a purchase, else 0.0; whether the lifetime is over; the next instruction or ""; `info`.
        """
        self._steps += 1
        score = self._server.read_score(self._session)
        if score is None and self._steps < IDS[SHOP].limit:
            return 0.0, False, "", self._info()
        self._score = score or 0.0
        self._ended += 1
        if self._ended == self._episodes:
            return self._score, True, "", self._info()
        instruction = self._begin(page, None)
        message = f"Errand {self._ended + 1} of {self._episodes}: {instruction}"
        return self._score, False, message, self._info()

    def teardown(self) -> None:
        """End the server."""
        self._env.close()

    @property
    def env(self) -> gym.Env[Any, Any]:
        """The drifting environment behind the pages. For evaluators."""
        return self._env

    def _begin(self, page: Any, seed: int | None) -> str:
        """Begin the next episode of the schedule, open it, and return its instruction."""
        _, info = self._env.reset(seed=seed)
        self._steps = 0
        page.goto(f"{self._server.base_url}/{self._session}")
        return str(info["task"])

    def _info(self) -> dict[str, Any]:
        return {"episode": self._ended, "episodes": self._episodes, "score": self._score}

    @property
    def _backend(self) -> Any:
        shop: Any = self._env.unwrapped
        return shop.backend

    @property
    def _server(self) -> Any:
        backend: ServerBackend = self._backend
        return backend.server

    @property
    def _session(self) -> str:
        return str(self._backend.session.session_id)

    def _check(self) -> None:
        """Refuse what would not reach the pages."""
        schedule = self._env.get_wrapper_attr("schedule")
        if schedule is None:
            return
        if schedule.clock != "episode":
            raise ArgumentError(f"`schedule` should have the clock `episode`. Received {schedule.clock!r}")
        foreign = sorted(set(schedule.driven) - _SETTINGS)
        if foreign:
            raise ArgumentError(
                f"`schedule` should set knobs that pages show. Received {schedule.name!r}, which sets "
                f"{', '.join(foreign)}"
            )


class DebianPlaywright:
    """Playwright with the Chromium of this machine.

    BrowserGym starts two browsers, one for the pages and one for its chat, and the second takes no options: so the
    path of the browser is added where both start. The browsers reach no other host.

    Args:
        playwright: Playwright.
    """

    def __init__(self, playwright: Any) -> None:
        self._playwright = playwright
        self._path = find_chromium()[0]

    @classmethod
    def of(cls, playwright: Any) -> Any:
        """Playwright as it is if its own browser is installed, else with the Chromium of this machine.

        Raises:
            MissingDependencyError: neither is installed.
        """
        if isinstance(playwright, cls) or os.path.exists(playwright.chromium.executable_path):
            return playwright
        return cls(playwright)

    @property
    def chromium(self) -> DebianPlaywright:
        """What launches a browser."""
        return self

    def launch(self, **options: Any) -> Any:
        """Launch a browser.

        Args:
            **options: of Playwright's `launch`.
        """
        arguments = [*(options.pop("args", None) or ()), *FLAGS]
        return self._playwright.chromium.launch(**{"executable_path": self._path, **options, "args": arguments})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._playwright, name)


register_task(DriftShopTask.get_task_id(), DriftShopTask)
