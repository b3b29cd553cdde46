"""The backends of the shop: in this process, over HTTP, or in a browser.

* `Backend`, `BackendReply`, `ShownPage`, `BrowserOptions` - their interface
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
