"""Where the shop runs: in this process, behind a socket, or in a browser.

* `Backend`, `Answer`, `Shown`, `Looks` - what the environment needs of each
* `BACKENDS`, `make_backend` - the backends by name
"""

from drift_envs.envs.webshop_backends.base import BACKENDS, Answer, Backend, Looks, Shown, make_backend

__all__ = ["BACKENDS", "Answer", "Backend", "Looks", "Shown", "make_backend"]
