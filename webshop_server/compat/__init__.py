"""The original's interfaces, for programs that were written for it: environments, and the names of its modules."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

from webshop_server.compat import engine, envs, goal, utils
from webshop_server.compat.envs import WebAgentSiteEnv, WebAgentTextEnv

__all__ = ["WebAgentSiteEnv", "WebAgentTextEnv", "install"]


def install(file_path: str | Path | None = None) -> None:
    """Make the original's imports find this package's modules.

    Afterwards `from web_agent_site.envs import WebAgentTextEnv`, `from web_agent_site.utils import *` and
    `from web_agent_site.engine.goal import get_reward` work unchanged.

    Args:
        file_path: the catalogue of environments that name none, as `file_path` of `WebAgentTextEnv`; by default it is
            generated.

    Example:
        >>> install()
        >>> from web_agent_site.envs import WebAgentTextEnv
        >>> from web_agent_site.engine.engine import parse_action
        >>> parse_action("search[red mug]")
        ('search', 'red mug')
    """
    utils.DEFAULT_FILE_PATH = None if file_path is None else str(file_path)
    found: dict[str, ModuleType] = {
        "utils": utils,
        "engine.engine": engine,
        "engine.goal": goal,
        "engine.normalize": goal,
        "envs.web_agent_text_env": envs,
        "envs.web_agent_site_env": envs,
    }
    for name in ("", ".engine", ".envs"):
        package = ModuleType(f"web_agent_site{name}")
        package.__path__ = []
        sys.modules[package.__name__] = package
    for name, module in found.items():
        sys.modules[f"web_agent_site.{name}"] = module
    for name in [name for name in sys.modules if name.startswith("web_agent_site.")]:
        package_name, _, last = name.rpartition(".")
        setattr(sys.modules[package_name], last, sys.modules[name])
    vars(sys.modules["web_agent_site.envs"]).update(WebAgentTextEnv=WebAgentTextEnv, WebAgentSiteEnv=WebAgentSiteEnv)
