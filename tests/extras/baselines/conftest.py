import importlib.util

import pytest

NEEDED = ("jax", "gymnax", "optax", "pandas", "pyarrow")
if missing := [package for package in NEEDED if importlib.util.find_spec(package) is None]:
    pytest.skip(f"needs the extra `baselines`: {', '.join(missing)}", allow_module_level=True)
