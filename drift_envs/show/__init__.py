"""What people look at: pictures of environments, the overlay, plots, a browser."""

from drift_envs.utils.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, {}, modules=("plots",))
