"""Where the shop runs: in this process, behind a socket, or in a browser.

* `Backend`, `BackendReply`, `ShownPage`, `BrowserOptions` - what the environment needs of each
* `BACKENDS`, `make_backend` - the backends by name
"""

from drift_envs.envs.webshop.backends.base import (
    BACKENDS,
    Backend,
    BackendReply,
    BrowserOptions,
    ShownPage,
    make_backend,
)

__all__ = ["BACKENDS", "Backend", "BackendReply", "BrowserOptions", "ShownPage", "make_backend"]
