"""The original's interfaces, for programs that were written for it.

* `WebAgentTextEnv`, `WebAgentSiteEnv` - its environments, without and with a browser
* `install` - makes the imports of `web_agent_site` find this package's modules
"""

from webshop_server.compat.install import install
from webshop_server.compat.site_env import WebAgentSiteEnv
from webshop_server.compat.text_env import WebAgentTextEnv

__all__ = ["WebAgentSiteEnv", "WebAgentTextEnv", "install"]
