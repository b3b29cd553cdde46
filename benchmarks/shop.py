"""How fast the shop is: `python -m benchmarks.shop`, or a part of it: `python -m benchmarks.shop walks`.

* `walks` - a random walk in process, with the admissible actions read at every step, as text and as HTML
  (targets on one core: 5,000 and 1,000 steps a second; the original does 48 to 90), and copies of a session
* `catalogue` - an import of generated files in the layout of the original's, end to end, and searches; fills the table
  of docs/webshop_server.md (`--sizes 1000,10000`: only these rows). Times are processor times, and each step runs in a
  process of its own.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import pickle
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from webshop_server.catalogue import Catalogue
from webshop_server.generate import generate_products
from webshop_server.importer import import_products
from webshop_server.index import get_index_path, open_index
from webshop_server.inventory import Inventory
from webshop_server.page_model import AvailableActions
from webshop_server.product import Product
from webshop_server.renderer import render_html
from webshop_server.shop import Shop

PARTS = ("walks", "catalogue")
_WORDS = "red blue shoes cotton lamp tea chocolate speaker rug women's dress machine washable sofa easy made"
WORDS = _WORDS.split(" ")
STEP_LIMIT = 30
ROUNDS = 10


def choose(rng: random.Random, actions: AvailableActions) -> str:
    if actions["has_search_bar"]:
        return f"search[{' '.join(rng.sample(WORDS, 3))}]"
    return f"click[{rng.choice(actions['clickables'])}]"


def walk(shop: Shop, *, is_html: bool, seconds: float, clock: Callable[[], float] = time.perf_counter) -> float:
    """Steps a second of a random shopper."""
    rng = random.Random(0)
    session, steps, count = shop.start(0), 0, 0
    begin = clock()
    while clock() - begin < seconds:
        if session.is_done or steps == STEP_LIMIT:
            session, steps = shop.start(rng.randrange(len(shop.goals))), 0
        session.act(choose(rng, session.available_actions))
        shown = render_html(session.page) if is_html else session.page.text
        if not shown:
            raise RuntimeError("a page without text")
        steps += 1
        count += 1
    return count / (clock() - begin)


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


def measure_in_process(seconds: float) -> None:
    begin = time.perf_counter()
    shop = Shop(Inventory.default())
    goals = len(shop.goals)
    print(f"opened the default shop ({goals} goals) in {time.perf_counter() - begin:.2f} s")
    for is_html, target in ((False, 5000), (True, 1000)):
        speed = walk(shop, is_html=is_html, seconds=seconds)
        name = "random walk in process, " + ("HTML" if is_html else "text")
        print(f"{name:40s} {speed:9.0f} steps/s (target {target}, {speed / target:.1f} times)")
    copies(shop)


# Catalogues.

SIZES = (1_000, 10_000, 100_000, 1_000_000)
PAGE = Path(__file__).resolve().parents[1] / "docs" / "webshop_server.md"
FILES = ("items_shuffle.json", "items_ins_v2.json", "items_human_ins.json")
QUERIES = 500
HUMAN_EVERY = 100
SECONDS = 5.0

COLUMNS = {
    "products": "products",
    "files": "files, MB",
    "import": "import, s",
    "import_memory": "its memory, MB",
    "index": "index alone, s",
    "index_memory": "its memory, MB",
    "catalogue_size": "catalogue, MB",
    "index_size": "index, MB",
    "open": "open, s",
    "words": "three words, ms",
    "instruction": "instruction, ms",
    "steps": "steps/s",
}
"""Of the table; those of searches are p50 and p99."""


def write_original_files(folder: Path, count: int) -> list[Path]:
    """Write a generated catalogue in the original's layout; every hundredth product has an instruction by a person."""
    paths = [folder / name for name in FILES]
    with paths[0].open("w") as items, paths[1].open("w") as instructions, paths[2].open("w") as human:
        for number, product in enumerate(generate_products(count, 0)):
            comma = "," if number else "{"
            items.write(("," if number else "[") + json.dumps(to_original(product)))
            asked: dict[str, Any] = {"attributes": product.attributes}
            if product.synthetic is not None:
                asked |= {
                    "instruction": product.synthetic.text,
                    "instruction_attributes": product.synthetic.attributes,
                }
            instructions.write(f"{comma}{json.dumps(product.asin)}: {json.dumps(asked)}")
            if number % HUMAN_EVERY == 0 and product.synthetic is not None:
                written = {
                    "asin": product.asin,
                    "instruction": f"i am looking for {product.query}",
                    "instruction_attributes": product.synthetic.attributes,
                    "instruction_options": [option.values[0] for option in product.options],
                }
                human.write(f"{comma}{json.dumps(product.asin)}: {json.dumps([written])}")
        for file, end in ((items, "]"), (instructions, "}"), (human, "}")):
            file.write(end)
    return paths


def to_original(product: Product) -> dict[str, Any]:
    """Return a record as `items_shuffle.json` has it."""
    return {
        "name": product.title,
        "full_description": product.description,
        "pricing": " - ".join(f"${price}" for price in product.prices),
        "images": [f"https://photos.example/{product.asin}-{number}.jpg" for number in range(5)],
        "product_category": product.product_category,
        "average_rating": product.rating,
        "small_description": product.bullets,
        "customization_options": {
            option.name: [{"is_selected": False, "value": value, "image": None} for value in option.values]
            for option in product.options
        },
        "asin": product.asin,
        "category": product.category,
        "query": product.query,
        "page": 1,
    }


def measure_import(folder: Path) -> dict[str, float]:
    """The catalogue and its index."""
    import_products(folder / "shop.sqlite", *(folder / name for name in FILES))
    return {"import": time.process_time(), "import_memory": read_memory()}


def measure_index(folder: Path) -> dict[str, float]:
    """The index, made again."""
    catalogue = Catalogue(folder / "shop.sqlite")
    shutil.rmtree(get_index_path(catalogue.path))
    begin = time.process_time()
    open_index(catalogue)
    return {"index": time.process_time() - begin, "index_memory": read_memory()}


def measure_use(folder: Path) -> dict[str, Any]:
    """Opening, searches and steps."""
    begin = time.process_time()
    inventory = Inventory.open(folder / "shop.sqlite")
    shop = Shop(inventory)
    shop.start(0)
    opened = time.process_time() - begin
    rng = random.Random(0)
    instructions = [shop.goals[rng.randrange(len(shop.goals))].text for _ in range(2 * QUERIES)]
    words = [" ".join(rng.sample(WORDS, 3)) for _ in range(2 * QUERIES)]
    index = inventory.index.text
    search: Callable[[str], list[int]] = index.search
    found = {"words": time_each(search, words), "instruction": time_each(search, instructions)}
    default, hits = index.skips, {}
    for skips in (True, False):
        index.skips = skips
        hits[skips] = [search(query) for query in words + instructions]
    index.skips = default
    if hits[True] != hits[False]:
        raise RuntimeError("a search with skipping finds something else")
    steps = walk(shop, is_html=False, seconds=SECONDS, clock=time.process_time)
    return {"open": opened, **found, "steps": steps}


def time_each(work: Callable[[str], object], queries: list[str]) -> str:
    """The median and the 99th percentile of the first `QUERIES`, in milliseconds, after the others as a warm-up."""
    times = []
    for query in queries[QUERIES:] + queries[:QUERIES]:
        begin = time.thread_time()
        work(query)
        times.append(time.thread_time() - begin)
    times = sorted(times[QUERIES:])
    return f"{times[len(times) // 2] * 1e3:.1f}, {times[int(len(times) * 0.99)] * 1e3:.1f}"


def read_memory() -> float:
    """The largest memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(count: int, folder: Path) -> dict[str, str]:
    """The row of a size, with a process for each step."""
    paths = write_original_files(folder, count)
    row: dict[str, Any] = {"products": count, "files": sum(path.stat().st_size for path in paths) / 1e6}
    for step in ("import", "index", "use"):
        command = [sys.executable, "-m", "benchmarks.shop", "catalogue", "--step", step, "--folder", str(folder)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        row |= json.loads(done.stdout)
    path = folder / "shop.sqlite"
    row["catalogue_size"] = path.stat().st_size / 1e6
    row["index_size"] = sum(file.stat().st_size for file in get_index_path(path).iterdir()) / 1e6
    return {name: format_value(name, row[name]) for name in COLUMNS}


def format_value(name: str, value: float | str) -> str:
    """A value as the table has it."""
    if isinstance(value, str):
        return value
    digits = 2 if name == "open" else 1 if value < 100 and name not in ("products", "steps") else 0
    return f"{value:,.{digits}f}"


def fill_table(text: str, rows: list[dict[str, str]]) -> str:
    """Put rows into the table between `<!-- catalogue -->` and `<!-- end -->`; rows of other sizes stay."""
    before, mark, rest = text.partition("<!-- catalogue -->\n")
    old, end, after = rest.partition("<!-- end -->")
    if not mark or not end:
        raise ValueError("the page should have the marks `<!-- catalogue -->` and `<!-- end -->`")
    known = {int(line.split("|")[1].replace(",", "")): line for line in old.splitlines() if re.match(r"\| *\d", line)}
    for row in rows:
        known[int(row["products"].replace(",", ""))] = f"| {' | '.join(row.values())} |"
    head = f"| {' | '.join(COLUMNS.values())} |\n|{'---:|' * len(COLUMNS)}\n"
    return before + mark + head + "".join(f"{known[size]}\n" for size in sorted(known)) + end + after


STEPS = {"import": measure_import, "index": measure_index, "use": measure_use}


def run_catalogues(sizes: list[int], folder: Path | None) -> None:
    """Import catalogues of these sizes, and write their rows into the page."""
    rows = []
    for size in sizes:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            rows.append(measure(size, Path(place)))
        print("; ".join(f"{title} {rows[-1][name]}" for name, title in COLUMNS.items()), flush=True)
        PAGE.write_text(fill_table(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")
    print(f"{os.path.relpath(PAGE)} has the table")


def main() -> None:
    parser = argparse.ArgumentParser(description="How fast the shop is.")
    parser.add_argument("parts", nargs="*", default=PARTS, metavar="PART", help=f"of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each walk (default: %(default)s)")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="of catalogues (default: %(default)s)")
    parser.add_argument("--folder", type=Path, help="for files and catalogues (default: a temporary one)")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if unknown := sorted(set(given.parts) - set(PARTS)):
        parser.error(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    if given.step:
        print(json.dumps(STEPS[given.step](given.folder)))
        return
    if "walks" in given.parts:
        measure_in_process(given.seconds)
    if "catalogue" in given.parts:
        run_catalogues(list(map(int, given.sizes.split(","))), given.folder)


if __name__ == "__main__":
    main()
