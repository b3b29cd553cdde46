"""How fast the drifting shop steps, in this process, behind a socket and in a browser.

`python -m benchmarks.webshop` prints steps a second of processor time on random walks with the admissible
actions read at every step, beside the original's, and milliseconds an action for the browser. The walks
take turns and medians are printed, so that other work on the machine moves them little. Without Chromium
the browser is left out.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from typing import Any

import gymnasium as gym

import drift_envs  # registers the ids

ORIGINAL = {"text": (48, 73), "html": (90, 90)}
"""Steps a second of the original, measured on 1,000 products with its search stubbed."""

CASES: list[tuple[str, dict[str, Any], int | None]] = [
    ("in_process, text", {"observation_mode": "text"}, 5000),
    ("in_process, text_rich", {"observation_mode": "text_rich"}, None),
    ("in_process, url+text", {"observation_mode": "url+text"}, None),
    ("in_process, html", {"observation_mode": "html"}, 1000),
    ("http, text", {"observation_mode": "text", "backend": "http"}, None),
]
"""Name, arguments, and the steps a second that are aimed at."""

BROWSER = {"reset": 72.0, "click": 100.0, "scripted": 141.0 / 3, "search": 208.0 / 3}
"""Milliseconds an action that are aimed at; `scripted` are clicks with `native_clicks=False`."""


def walk(env: gym.Env[Any, Any], steps: int, draw: random.Random) -> float:
    """Steps a second of processor time on a random walk, resets included."""
    base: Any = env.unwrapped
    env.reset()
    start = time.process_time()
    for _ in range(steps):
        available = base.get_available_actions()
        if available["has_search_bar"]:
            action = f"search[{base.instruction}]"
        else:
            action = f"click[{draw.choice(available['clickables'])}]"
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
    return steps / (time.process_time() - start)


def browse(episodes: int) -> dict[str, list[float]]:
    """Milliseconds of every action of some episodes in the browser, by kind."""
    taken: dict[str, list[float]] = {kind: [] for kind in BROWSER}
    for native in (True, False):
        env = gym.make("DriftWebShop-v0", backend="browser", native_clicks=native)
        base: Any = env.unwrapped
        env.reset(seed=0)
        draw = random.Random(0)
        for _ in range(episodes):
            done = False
            start = time.perf_counter()
            _, info = env.reset()
            if native:
                taken["reset"].append(1000 * (time.perf_counter() - start))
            for _ in range(12):
                action = info["actions"][0] if base.page.has_search_bar else draw.choice(info["actions"])
                kind = "search" if action.startswith("search") else "click" if native else "scripted"
                start = time.perf_counter()
                *_, done, _, info = env.step(action)
                taken[kind].append(1000 * (time.perf_counter() - start))
                if done:
                    break
        env.close()
    return taken


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="How fast the drifting shop steps.")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--episodes", type=int, default=10, help="episodes in the browser")
    options = parser.parse_args()
    envs = [gym.make("DriftWebShop-v0", **arguments) for _, arguments, _ in CASES]
    for env in envs:
        env.reset(seed=0)
    found: list[list[float]] = [[] for _ in CASES]
    for repeat in range(options.repeats):
        for env, speeds in zip(envs, found, strict=True):
            speeds.append(walk(env, options.steps, random.Random(repeat)))
    print(f"{'case':24} {'steps/s':>9} {'aim':>7} {'times the original':>20}")
    for (name, arguments, aim), speeds in zip(CASES, found, strict=True):
        speed = statistics.median(speeds)
        low, high = ORIGINAL["html" if arguments["observation_mode"] == "html" else "text"]
        print(f"{name:24} {speed:9.0f} {aim or '':>7} {speed / high:12.0f} to {speed / low:.0f}")
    for env in envs:
        env.close()
    try:
        taken = browse(options.episodes)
    except drift_envs.errors.MissingDependencyError as error:
        print(error)
        return
    print(f"\n{'browser':24} {'median ms':>9} {'p95':>7} {'aim':>7}")
    for kind, times in taken.items():
        ordered = sorted(times)
        print(f"{kind:24} {statistics.median(times):9.0f} {ordered[int(0.95 * len(times))]:7.0f} {BROWSER[kind]:7.0f}")


if __name__ == "__main__":
    main()
