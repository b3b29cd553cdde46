"""Where the shop runs: in this process, behind a socket, or in a browser.

* `Backend`, `Answer`, `Shown` - what the environment needs of each
* `BACKENDS`, `make_backend` - the backends by name
"""

from drift_envs.envs.webshop_backends.base import BACKENDS, Answer, Backend, Shown, make_backend

__all__ = ["BACKENDS", "Answer", "Backend", "Shown", "make_backend"]
