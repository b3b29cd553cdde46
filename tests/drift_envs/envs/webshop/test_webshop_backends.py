"""The three backends give equal pages, clickables, URLs and rewards."""

from __future__ import annotations

import contextlib
import copy
import gc
import os
import pickle
import re
import shutil
import signal
import socket
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import drift_envs
from drift_envs.envs.webshop.env import hide_session
from drift_envs.errors import MissingDependencyError, StateError
from drift_envs.show import chromium as chromium_module
from webshop_server.oracle import solve

# Every knob that changes pages changes, also while a page is shown.
RESTLESS = {
    "version": 1,
    "name": "restless",
    "clock": "step",
    "tasks": {"pool": 2},
    "base": {"ad_page": True, "ad_depth": 1},
    "drifts": [
        {"every": 49, "for": 20, "set": {"button_labels": {"Buy Now": "Order & pay", "< Prev": "Go back"}}},
        {"every": 31, "for": 15, "set": {"sold_out": ["offer:0"], "price_factor": 2.5, "price_targets": ["offer:0"]}},
        {"every": 27, "for": 10, "set": {"result_order": "price_up"}},
        {"every": 21, "for": 10, "set": {"ad_page": False}},
        {
            "every": 43,
            "for": 15,
            "set": {"ad_labels": ["Yes", "No <b>", "Maybe"], "ad_buttons": 3, "ad_right_button": "No <b>"},
        },
    ],
}


pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:only . of the . goals are touched by every drift"),
]


def read_page(env):
    page = env.unwrapped.page
    return page.text, page.text_rich, dict.fromkeys(page.clickables), page.has_search_bar, hide_session(page.path)


def compare_walks(envs, walker, episodes, steps=12):
    """Does the same in all environments; gives how many purchases there were."""
    first, *others = envs
    bought = 0
    for episode in range(episodes):
        seed = 5 if episode == 0 else None
        seen, info = first.reset(seed=seed)
        for other in others:
            assert other.reset(seed=seed) == (seen, info)
        for _ in range(steps):
            for other in others:
                assert read_page(other) == read_page(first)
            action = walker.choose(info)
            answer = first.step(action)
            for other in others:
                assert other.step(action) == answer, action
            info = answer[4]
            if answer[2]:
                bought += 1
                break
    return bought


@pytest.mark.parametrize("schedule", [RESTLESS, "webshop/explicit:transient", None], ids=["restless", "lossy", "none"])
def test_http_is_the_same_shop(make_shop, walker, schedule):
    envs = [make_shop(schedule, backend=name, text=True) for name in ("in_process", "http")]
    assert compare_walks(envs, walker, 50) > 0


def test_the_browser_is_the_same_shop(make_shop, walker, chromium):
    envs = [make_shop(RESTLESS, backend=name, text=True) for name in ("in_process", "browser")]
    assert compare_walks(envs, walker, 6, 10) > 0


def test_a_pause_does_not_end_an_episode_over_http(make_shop):
    env = make_shop(backend="http")
    env.reset(seed=0)
    store = env.unwrapped.backend.server._store
    later = store._clock() + 86_400
    store._clock = lambda: later
    assert env.step("search[sofa]")[4]["last_action_error"] is None


@pytest.mark.parametrize("is_native", [True, False])
def test_blanks_within_a_label_do_not_matter_in_the_browser(make_shop, chromium, is_native):
    env = make_shop(backend="browser", native_clicks=is_native)
    env.reset(seed=0)
    env.step("search[sofa]")
    assert env.step("click[back  to  search]")[4]["last_action_error"] is None
    assert env.unwrapped.page.has_search_bar


def test_documents_differ_in_the_session_alone(make_shop):
    documents = []
    for name in ("in_process", "http"):
        env = make_shop(backend=name, observation_mode="html")
        seen = [env.reset(seed=0)[0]]
        seen += [env.step(action)[0] for action in solve(copy.deepcopy(make_session(make_shop)))]
        session = re.search(r'action="/([^"]+)"', seen[0])[1]
        documents.append([text.replace(session, "SESSION") for text in seen])
    assert documents[0] == documents[1]


def make_session(make_shop):
    env = make_shop()
    env.reset(seed=0)
    return env.unwrapped.backend.session


@pytest.mark.parametrize("name", ["http", "browser"])
def test_a_session_on_a_server_cannot_be_copied(make_shop, name, request):
    if name == "browser":
        request.getfixturevalue("chromium")
    env = make_shop(backend=name)
    second = drift_envs.twin(env)
    env.reset(seed=0)
    assert second.reset()[0] == env.unwrapped.page.text
    for copying in (copy.deepcopy, pickle.dumps, drift_envs.twin, drift_envs.snapshot):
        with pytest.raises(StateError, match=re.escape(f"`backend='{name}'` cannot be ")):
            copying(env)
    second.close()


def test_a_closed_server_restarts_at_the_next_reset(make_shop):
    env = make_shop(backend="http")
    env.reset(seed=0)
    server = env.unwrapped.backend.server
    port = int(server.base_url.rpartition(":")[2])
    env.close()
    assert not server._thread.is_alive()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=1)
    with pytest.raises(StateError, match="`step` was called before `reset`"):
        env.step("search[sofa]")
    assert env.reset()[1]["actions"]


def test_a_garbage_collected_server_ends(make_shop):
    env = gym.make("DriftWebShop-v0", backend="http")
    env.reset(seed=0)
    thread = env.unwrapped.backend.server._thread
    assert thread.is_alive()
    del env
    gc.collect()
    assert not thread.is_alive()


def test_a_crashed_browser_is_replaced(make_shop, chromium):
    env = make_shop(backend="browser", render_mode="rgb_array")
    plain = make_shop()
    for each in (env, plain):
        each.reset(seed=0)
    actions = solve(copy.deepcopy(plain.unwrapped.backend.session))
    profiles = []
    for number, action in enumerate(actions):
        if number in (1, len(actions) - 1):
            driver = env.unwrapped.backend.driver
            profiles.append(profile_of(env))
            os.kill(driver.service.process.pid, signal.SIGKILL)
        assert env.step(action) == plain.step(action)
    assert number > 2
    picture = env.render()
    assert picture.dtype == np.uint8
    assert picture.shape[2] == 3
    assert len(np.unique(picture)) > 10
    env.close()
    assert processes_of(profiles) == []


def profile_of(env):
    parts = env.unwrapped.backend.driver.capabilities["chrome"].values()
    return next(str(part) for part in parts if "webshop-chromium-" in str(part))


def processes_of(profiles):
    """Processes that use one of these profiles, where the system tells; those that are ending get a moment."""
    for _ in range(200):
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = path.read_bytes().decode("utf-8", "replace")
                found += [words for profile in profiles if profile in words]
        if not found:
            break
        os.sched_yield()
    return found


def test_a_closed_browser_leaves_no_processes(make_shop, chromium):
    env = make_shop(backend="browser")
    env.reset(seed=0)
    driver = env.unwrapped.backend.driver
    profile = Path(profile_of(env))
    process = driver.service.process
    assert profile.is_dir()
    env.close()
    assert process.poll() is not None
    assert not profile.exists()


def test_a_covered_button_cannot_be_clicked(make_shop, chromium):
    env = make_shop(backend="browser")
    env.reset(seed=0)
    _, _, _, _, info = env.step("search[sofa]")
    driver = env.unwrapped.backend.driver
    driver.execute_script(
        "const cover = document.createElement('div');"
        "cover.style.position = 'fixed'; cover.style.inset = 0; cover.style.zIndex = 99; document.body.append(cover);"
    )
    with pytest.raises(StateError, match=r"the browser cannot do this: .*click intercepted"):
        env.step(info["actions"][2])


def test_other_hosts_cannot_be_resolved(make_shop, chromium):
    env = make_shop(backend="browser")
    env.reset(seed=0)
    driver = env.unwrapped.backend.driver
    with pytest.raises(Exception, match="ERR_NAME_NOT_RESOLVED"):
        driver.get("http://localhost.example/")


def test_a_missing_chromium_says_how_to_install_it(make_shop, monkeypatch):
    env = make_shop(backend="browser")
    monkeypatch.setattr(chromium_module.shutil, "which", lambda name: None)
    with pytest.raises(MissingDependencyError, match="apt-get install chromium chromium-driver"):
        env.reset(seed=0)
    monkeypatch.setattr(chromium_module.shutil, "which", lambda name: name if name == "chromium" else None)
    with pytest.raises(MissingDependencyError, match="Chromium's driver is not installed"):
        env.reset(seed=0)
    assert shutil.which("chromium") == "chromium"


def test_documents_are_equal_on_every_backend(chromium):
    documents = []
    for backend in ("in_process", "http", "browser"):
        with contextlib.closing(gym.make("DriftWebShop-v0", backend=backend, observation_mode="html")) as env:
            shown = [env.reset(seed=3)[0], env.reset()[0], env.reset(seed=3)[0]]
            assert shown[0] == shown[2]
            for action in ("search[made easy]", "click[next >]", "click[back to search]"):
                shown.append(env.step(action)[0])
            documents.append(shown)
    assert documents[0] == documents[1]
    assert documents[0] == documents[2]


LAYOUT = """
const box = element => element.getBoundingClientRect().toJSON();
const style = element => {
  const {color, backgroundColor, fontSize, borderColor} = getComputedStyle(element);
  return [color, backgroundColor, fontSize, borderColor, element.offsetWidth, element.offsetHeight].join();
};
const all = selector => [...document.querySelectorAll(selector)];
return {width: document.documentElement.scrollWidth, options: all('.option').map(box), ads: all('.btn-ad').map(style),
  images: [...document.images].map(image => image.naturalWidth)};
"""


def test_options_are_in_sight_and_advertised_buttons_look_alike(make_shop, chromium):
    env = make_shop(
        {"version": 1, "name": "ads", "base": {"ad_page": True, "ad_right_button": "C"}},
        backend="browser",
        render_mode="rgb_array",
    )
    most = 0
    for episode in range(3):
        _, info = env.reset(seed=episode)
        driver = env.unwrapped.backend.driver
        size = {"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        env.step(info["actions"][0])
        _, *_, info = env.step(
            next(one for one in env.step("click[nothing]")[4]["actions"] if one.startswith("click[b0"))
        )
        env.render()
        seen = driver.execute_script(LAYOUT)
        assert seen["width"] <= 1280
        assert min(seen["images"]) > 0, "every picture was drawn"
        most = max(most, len(seen["options"]))
        assert all(box["top"] >= 0 and box["bottom"] <= 900 and box["right"] <= 1280 for box in seen["options"])
        env.step("click[buy now]")
        env.render()
        seen = driver.execute_script(LAYOUT)
        assert len(seen["ads"]) == 5
        assert len(set(seen["ads"])) == 1, "size, colour and letters"
        assert min(seen["images"]) > 0
    assert most > 2
