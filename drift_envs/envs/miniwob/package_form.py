"""Observations and actions as the package `miniwob` has them."""

from __future__ import annotations

from typing import Any

from gymnasium import spaces
from miniwob.action import ActionSpaceConfig
from miniwob.observation import get_observation_space
from miniwob.selenium_instance import SeleniumInstance

from drift_envs.envs.miniwob.page import SIZE, TaskPage


class PackageForm:
    """A page in the form of the package.

    Args:
        task: one of `TASKS`.
        actions: a preset of the package's action space.
    """

    def __init__(self, task: str, actions: str) -> None:
        self._config = ActionSpaceConfig.get_preset(actions)
        self._config.screen_width, self._config.screen_height = SIZE
        self._instance = SeleniumInstance(index=0, subdomain=task, headless=True)
        self.action_space: spaces.Space[Any] = self._config.get_action_space()
        self.observation_space: spaces.Space[Any] = get_observation_space(*SIZE)

    def observe(self, page: TaskPage, *, is_first: bool, done: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        """The observation and `info` of the package.

        Args:
            page: the page.
            is_first: whether the task has just begun.
            done: whether it has ended, which gives an empty observation.
        """
        instance = self._connect(page)
        if done:
            observation = instance.get_empty_observation()
        else:
            observation, _ = instance.get_observation(use_cached_fields=not is_first)
        return observation, instance.get_metadata()

    def act(self, page: TaskPage, action: dict[str, Any]) -> None:
        """Execute an action of the package.

        Args:
            page: the page.
            action: an element of the action space.
        """
        self._connect(page).perform(action, self._config)

    def _connect(self, page: TaskPage) -> Any:
        """The package's instance with the browser of the page."""
        instance: Any = self._instance
        if getattr(instance, "driver", None) is not page.driver:
            instance.driver = page.driver
            size = "return [window.innerWidth, window.innerHeight]"
            instance.inner_width, instance.inner_height = page.driver.execute_script(size)
        return instance
