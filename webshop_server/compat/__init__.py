"""The original's interfaces, for programs that were written for it.

* `WebAgentTextEnv` - its text environment
* `install` - makes `from web_agent_site.envs import WebAgentTextEnv` import this class
"""

from webshop_server.compat.text_env import WebAgentTextEnv, install

__all__ = ["WebAgentTextEnv", "install"]
