import pytest


@pytest.fixture(autouse=True)
def _double():
    """All arrays in double precision, within each test of this folder alone."""
    jax = pytest.importorskip("jax", reason="needs the extra `jax`")
    with jax.enable_x64(True):
        yield


class Numbers:
    """A generator that returns given uniform numbers, in turn."""

    def __init__(self):
        self.queue = []

    def random(self):
        return float(self.queue.pop(0))

    def uniform(self, low, high):
        return low + (high - low) * self.random()


@pytest.fixture
def numbers():
    return Numbers()
