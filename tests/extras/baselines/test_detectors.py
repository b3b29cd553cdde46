"""The recursions of the detectors, against river."""

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="needs the extra `baselines`")
drift = pytest.importorskip("river.drift", reason="needs the extra `baselines`")
detectors = pytest.importorskip("baselines.detectors")

LENGTH = 250


def streams():
    """Scores with falls and rises, with noise and without."""
    rng = np.random.default_rng(0)
    levels = np.repeat([0.9, 0.2, 0.8, 0.75, 0.1], LENGTH // 5)
    return np.clip([levels + scale * rng.standard_normal(LENGTH) for scale in (0.0, 0.02, 0.1, 0.2)], 0, 1)


def scan(update, stream):
    """Where an update fires."""

    def move(state, value):
        state, *fires = update(state, value)
        return state, fires

    with jax.enable_x64(True):
        found = jax.lax.scan(move, detectors.make_detector(), jax.numpy.asarray(stream))[1]
    return [np.asarray(each) for each in found]


@pytest.fixture(autouse=True)
def _double(monkeypatch):
    """The detectors' states in double precision, as river has them."""
    with jax.enable_x64(True):
        start = jax.tree.map(
            lambda part: part.astype(float) if part.dtype == np.float32 else part, detectors.make_detector()
        )
        monkeypatch.setattr(detectors, "make_detector", lambda: start)
        yield


@pytest.mark.parametrize("stream", streams(), ids=("exact", "low noise", "noise", "much noise"))
@pytest.mark.parametrize("confidence", [0.002, 0.3])
def test_adwin_fires_where_rivers_does(stream, confidence):
    rivers = drift.ADWIN(delta=confidence, clock=1, max_buckets=LENGTH)
    expected = []
    for value in stream:
        rivers.update(float(value))
        expected.append(rivers.drift_detected)
    changed, fallen = scan(lambda state, value: detectors.adwin(state, value, confidence), stream)
    assert any(expected)
    np.testing.assert_array_equal(changed, expected)
    assert not (fallen & ~changed).any()


@pytest.mark.parametrize(("levels", "falls"), [((0.9, 0.1), True), ((0.1, 0.9), False)], ids=("fall", "rise"))
def test_only_a_fall_calls_for_a_restart(levels, falls):
    changed, fallen = scan(lambda state, value: detectors.adwin(state, value, 0.3), np.repeat(levels, 60))
    assert changed.any()
    assert fallen.any() == falls


@pytest.mark.parametrize("stream", streams(), ids=("exact", "low noise", "noise", "much noise"))
@pytest.mark.parametrize("threshold", [0.5, 2.0])
def test_page_hinkley_fires_where_rivers_does(stream, threshold):
    class Settings:
        tolerance, confidence = 0.05, 0.002

    Settings.threshold = threshold
    rivers = drift.PageHinkley(min_instances=5, delta=0.05, threshold=threshold, mode="down")
    expected = []
    for value in stream:
        rivers.update(float(value))
        expected.append(rivers.drift_detected)
    falls, _ = scan(lambda state, value: detectors.watch(state, value, Settings), stream)
    assert any(expected)
    np.testing.assert_array_equal(falls, expected)


def test_rounds_without_an_episode_change_nothing():
    class Settings:
        tolerance, threshold, confidence = 0.05, 1.0, 0.002

    state = detectors.make_detector()
    for value in (0.5, 0.7):
        state, *_ = detectors.watch(state, value, Settings)
    after, falls, fallen = detectors.watch(state, np.nan, Settings)
    assert not falls
    assert not fallen
    for one, other in zip(state, after, strict=True):
        np.testing.assert_array_equal(one, other)
