import pytest

for package in ("jax", "gymnax", "optax", "pyarrow"):
    pytest.importorskip(package, reason="needs the extra `baselines`")
