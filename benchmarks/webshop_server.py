"""How fast the shop is.

`python -m benchmarks.webshop_server` measures

* a random walk in process, with the admissible actions read at every step, as text and as HTML
  (targets on one core: 5,000 and 1,000 steps a second; the original does 48 to 90),
* copies of a session, which probing rests on,
* 64 shoppers at once against `serve`, in processes of their own.

`--products N` measures, on a generated catalogue of that size, how long search takes, how much memory a
shop holds and how long it takes to open (targets at 1,000,000: p95 50 ms, 1.5 GB, 3 s). Making such a
catalogue takes some minutes the first time; `--cache DIR` says where it is kept.
"""

from __future__ import annotations

import argparse
import copy
import pickle
import random
import re
import resource
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

from webshop_server.action import AvailableActions
from webshop_server.client import Client
from webshop_server.generate import generate, get_cache_dir
from webshop_server.inventory import Inventory
from webshop_server.renderer import render_html
from webshop_server.shop import Shop

QUERIES = "red blue shoes cotton lamp tea chocolate speaker rug women's dress machine washable sofa easy made"
WORDS = QUERIES.split()
STEP_LIMIT = 30


def choose(rng: random.Random, actions: AvailableActions) -> str:
    if actions["has_search_bar"]:
        return f"search[{' '.join(rng.sample(WORDS, 3))}]"
    return f"click[{rng.choice(actions['clickables'])}]"


def walk(shop: Shop, *, is_html: bool, seconds: float) -> float:
    """Steps a second of a random shopper."""
    rng = random.Random(0)
    session, steps, count = shop.start(0), 0, 0
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds:
        if session.is_done or steps == STEP_LIMIT:
            session, steps = shop.start(rng.randrange(len(shop.goals))), 0
        session.act(choose(rng, session.available_actions))
        shown = render_html(session.page) if is_html else session.page.text
        if not shown:
            raise RuntimeError("a page without text")
        steps += 1
        count += 1
    return count / (time.perf_counter() - begin)


def copies(shop: Shop) -> None:
    session = shop.start(0)
    session.act("search[made easy]")
    for name, work in (
        ("deepcopy of a session", lambda: copy.deepcopy(session)),
        ("pickle of a session, there and back", lambda: pickle.loads(pickle.dumps(session))),
        ("start of a session", lambda: shop.start(0)),
    ):
        begin = time.perf_counter()
        for _ in range(500):
            work()
        print(f"{name:40s} {(time.perf_counter() - begin) / 500 * 1e6:9.0f} us")


def shopper(job: tuple[str, int, int]) -> list[float]:
    """One shopper's waiting times, in seconds; every page is checked to be of its own session."""
    base, number, steps = job
    client, rng, times = Client(base, timeout=60), random.Random(number), []
    session = client.start(number)
    task = session.page.parts[2]
    for step in range(steps):
        if session.is_done or step % STEP_LIMIT == STEP_LIMIT - 1:
            session = client.start(number)
        begin = time.perf_counter()
        session.act(choose(rng, session.available_actions))
        times.append(time.perf_counter() - begin)
        if task not in session.page.parts and not session.is_done:
            raise RuntimeError("a page of another session")
    client.close()
    return times


def many_shoppers(jobs: list[tuple[str, int, int]]) -> list[float]:
    with ThreadPoolExecutor(len(jobs)) as pool:
        return [seconds for times in pool.map(shopper, jobs) for seconds in times]


def run_sessions(shoppers: int, steps: int) -> None:
    """Shoppers at once, in two processes, against a server in a third."""
    command = [sys.executable, "-m", "webshop_server", "serve", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        if server.stdout is None:
            raise RuntimeError("the server has no output")
        found = re.match(r"http://\S+:\d+", server.stdout.readline())
        if found is None:
            raise RuntimeError("the server did not start")
        jobs = [(found[0], number, steps) for number in range(shoppers)]
        begin = time.perf_counter()
        with ProcessPoolExecutor(2) as pool:
            times = sorted(t for part in pool.map(many_shoppers, (jobs[::2], jobs[1::2])) for t in part)
        total = time.perf_counter() - begin
    finally:
        server.terminate()
        server.wait(30)
    middle, high = times[len(times) // 2], times[int(len(times) * 0.99)]
    print(f"{shoppers} shoppers at once, {len(times)} actions: {len(times) / total:.0f} actions/s, ", end="")
    print(f"p50 {middle * 1e3:.0f} ms, p99 {high * 1e3:.0f} ms; no page of another session")


def big(products: int, cache: Path) -> None:
    path = cache / f"benchmark-{products}.sqlite"
    if not path.exists():
        begin = time.perf_counter()
        generate(path, products)
        print(f"generated {products} products in {time.perf_counter() - begin:.0f} s")
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", OPEN, str(path)], check=True)
        print(f"indexed them in {time.perf_counter() - begin:.0f} s")
    begin = time.perf_counter()
    inventory = Inventory.open(path)
    shop = Shop(inventory)
    session = shop.start(0)
    print(f"open, goals and first page of {products} products: {time.perf_counter() - begin:.2f} s")
    rng = random.Random(0)
    queries = [shop.goals[rng.randrange(len(shop.goals))].text for _ in range(200)]
    queries += [" ".join(rng.sample(WORDS, rng.randint(1, 5))) for _ in range(200)]
    times = []
    for query in queries:
        begin = time.perf_counter()
        inventory.index.search(query)
        times.append(time.perf_counter() - begin)
    times.sort()
    p50, p95 = times[len(times) // 2], times[int(len(times) * 0.95)]
    print(f"search: p50 {p50 * 1e3:.1f} ms, p95 {p95 * 1e3:.1f} ms, longest {times[-1] * 1e3:.1f} ms")
    session.act("search[shirt]")
    print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB at most")


OPEN = "import sys; from webshop_server.inventory import Inventory; Inventory.open(sys.argv[1])"


def main() -> None:
    parser = argparse.ArgumentParser(description="How fast the shop is.")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each walk (default: %(default)s)")
    parser.add_argument("--products", type=int, help="measure a generated catalogue of this size instead")
    parser.add_argument("--cache", type=Path, default=get_cache_dir(), help="where big catalogues are kept")
    given = parser.parse_args()
    if given.products:
        big(given.products, given.cache)
        return
    begin = time.perf_counter()
    shop = Shop(Inventory.default())
    goals = len(shop.goals)
    print(f"opened the default shop ({goals} goals) in {time.perf_counter() - begin:.2f} s")
    for is_html, target in ((False, 5000), (True, 1000)):
        speed = walk(shop, is_html=is_html, seconds=given.seconds)
        name = "random walk in process, " + ("HTML" if is_html else "text")
        print(f"{name:40s} {speed:9.0f} steps/s (target {target}, {speed / target:.1f} times)")
    copies(shop)
    run_sessions(64, 60)


if __name__ == "__main__":
    main()
