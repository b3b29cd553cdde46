"""How the shop's server holds its load: `python -m benchmarks.shop_server`, or a part: `... shop_server clients`.

* `shoppers` - 64 shoppers at once against `serve`, in turns with requests of its style sheet by the same client and
  connections (aims: half its rate, a p99 of at most three times its own), and the memory of the server
  (`--minutes 10`: for ten minutes). An action is a click or a search; some need a second request, since the server
  redirects.
* `clients` - pages a second of 1, 16 and 64 shoppers that keep their connections, in turns with as many that close them
  after each request (aim: at least as many)
* `requests` - `--requests 100000` by 64 shoppers against `--processes 1,2,4` with sessions in a file; half of them keep
  their connections, the others reach any process with each request

The status of every response is checked, and that every page has the session and the task of its shopper.
"""

from __future__ import annotations

import argparse
import asyncio
import html
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import quote

PARTS = ("shoppers", "clients", "requests")
STEP_LIMIT = 30
ROUNDS = 10
CLIENTS = (1, 16, 64)


class Connection:
    """A connection to the server; much cheaper than `http.client`, so that the server is what is measured.

    Args:
        port: the server's port on 127.0.0.1.
        is_kept: whether requests share the connection; otherwise each closes its own.
    """

    def __init__(self, port: int, *, is_kept: bool = True) -> None:
        self._port, self._is_kept = port, is_kept
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def request(self, method: str, path: str, body: str = "") -> tuple[int, str, str]:
        """Status, location and document of a response."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        kind = "Content-Type: application/x-www-form-urlencoded\r\n" if body else ""
        end = "" if self._is_kept else "Connection: close\r\n"
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{kind}{end}Content-Length: {len(body)}\r\n\r\n"
        writer.write((head + body).encode())
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        document = (await reader.readexactly(int(fields["content-length"]))).decode()
        if not self._is_kept:
            self.close()
        return int(lines[0].split()[1]), fields.get("location", ""), document

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


@dataclass
class Load:
    """Seconds of every action, number of requests, seconds in all, and processor seconds of the server."""

    times: list[float] = field(default_factory=list)
    request_times: list[float] = field(default_factory=list)
    seconds: float = 0.0
    server_seconds: float = 0.0

    @property
    def requests(self) -> int:
        """The number of requests."""
        return len(self.request_times)

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.requests / self.seconds

    @property
    def processor_time(self) -> float:
        """Processor seconds of the server for each request."""
        return self.server_seconds / self.requests

    def quantile(self, share: float, *, of_requests: bool = False) -> float:
        """Milliseconds of an action, or of a request."""
        times = sorted(self.request_times if of_requests else self.times)
        return times[int(len(times) * share)] * 1e3


class Shopper:
    """A session after the other, on one connection; searches words of its task and follows random links and forms."""

    def __init__(self, number: int, connection: Connection, load: Load) -> None:
        self._rng, self._connection, self._load = random.Random(number), connection, load
        self._number, self._name, self._task, self._steps = number, "", "", 0
        self._document = ""

    async def act(self) -> None:
        """One action, with its redirections."""
        begin = time.perf_counter()
        if not self._name or 'id="reward"' in self._document or self._steps == STEP_LIMIT:
            await self._start()
        else:
            await self._go(*self._choose())
        self._steps += 1
        self._load.times.append(time.perf_counter() - begin)

    async def _start(self) -> None:
        self._name, self._task, self._steps = "", "", 0
        self._number += 64
        await self._go("GET", f"/?goal={self._number % 3000}")
        found = TASK.search(self._document)
        if found is None:
            raise RuntimeError("a first page without a task")
        self._task = found[1]

    def _choose(self) -> tuple[str, str, str]:
        search = re.search(r'<form id="search"[^>]*action="([^"]*)"', self._document)
        if search:
            words = " ".join(self._rng.sample(re.findall(r"[a-z]{3,}", self._task), 3))
            return "POST", search[1], f"search_query={quote(words)}"
        targets = [("GET", path, "") for path in LINK.findall(self._document)]
        targets += [("POST", path, f"button={quote(label)}") for path, label in FORM.findall(self._document)]
        method, path, body = self._rng.choice(targets)
        return method, html.unescape(path), body

    async def _go(self, method: str, path: str, body: str = "") -> None:
        status = 303
        while status == 303:
            begin = time.perf_counter()
            status, location, self._document = await self._connection.request(method, path, body)
            self._load.request_times.append(time.perf_counter() - begin)
            if status == 303:
                method, path, body = "GET", location.removeprefix("http://127.0.0.1"), ""
        self._name = self._name or path.strip("/")
        names = set(NAME.findall(self._document))
        if status != 200 or names - {self._name} or (not names and 'id="reward"' not in self._document):
            raise RuntimeError(f"status {status}, a page of {names or 'no session'} in session {self._name}")
        if self._task and 'id="reward"' not in self._document and self._task not in self._document:
            raise RuntimeError(f"a page with the task of another session in session {self._name}")


LINK = re.compile(r'<a class="(?:btn|option|product-link)"[^>]*href="([^"]*)"')
FORM = re.compile(r'<form method="post" action="([^"]*)"><button[^>]* value="([^"]*)"')
NAME = re.compile(r'(?:href|action)="/(?:(?:search_results|item_page|item_sub_page|done)/)?([A-Za-z0-9_-]{16})[/"]')
TASK = re.compile(r'<p class="instruction">([^<]*)')


async def repeat(work: Callable[[], Awaitable[None]], is_over: Callable[[], bool]) -> None:
    while not is_over():
        await work()


async def act_for(acts: list[Callable[[], Awaitable[None]]], load: Load, server: int, seconds: float) -> None:
    """Let clients act at the same time; times are added to their load."""
    begin, used = time.perf_counter(), read_usage(server)[0]
    await asyncio.gather(*(repeat(act, lambda: time.perf_counter() - begin > seconds) for act in acts))
    load.seconds += time.perf_counter() - begin
    load.server_seconds += read_usage(server)[0] - used


async def load_server(
    server: int, port: int, shoppers: int, rounds: int, seconds: float
) -> tuple[Load, Load, list[float]]:
    """Take turns between the shop and its style sheet; returns both loads, and the memory after each round."""
    shop, static, memory = Load(), Load(), []
    connections = [Connection(port) for _ in range(shoppers)]
    crowd = [Shopper(number, connection, shop) for number, connection in enumerate(connections)]

    async def read(connection: Connection) -> None:
        begin = time.perf_counter()
        status, _, _ = await connection.request("GET", "/static/style.css")
        if status != 200:
            raise RuntimeError(f"status {status}")
        static.times.append(time.perf_counter() - begin)
        static.request_times.append(static.times[-1])

    for _ in range(rounds):
        await act_for([partial(read, connection) for connection in connections], static, server, 0.25 * seconds)
        await act_for([shopper.act for shopper in crowd], shop, server, seconds)
        memory.append(read_usage(server)[1])
    for connection in connections:
        connection.close()
    return shop, static, memory


def read_usage(process: int) -> tuple[float, float]:
    """Processor seconds and megabytes of a process and its children."""
    seconds = size = 0.0
    for place in Path("/proc").glob("[0-9]*"):
        try:
            fields = (place / "stat").read_text().rpartition(") ")[2].split()
        except OSError:  # it has ended
            continue
        if process in (int(place.name), int(fields[1])):
            seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            size += int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    return seconds, size


@contextmanager
def serve(options: list[str]) -> Iterator[tuple[int, int]]:
    """Run a server; the number of its process, and its port."""
    command = [sys.executable, "-m", "webshop_server", "serve", "--port", "0", *options]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        if server.stdout is None:
            raise RuntimeError("the server has no output")
        found = re.match(r"http://\S+:(\d+)", server.stdout.readline())
        if found is None:
            raise RuntimeError("the server did not start")
        yield server.pid, int(found[1])
    finally:
        server.terminate()
        server.wait(30)


def run_shoppers(shoppers: int, minutes: float, options: list[str]) -> None:
    """Shoppers at once in this process against a server in another."""
    with serve(options) as (process, port):
        shop, static, memory = asyncio.run(load_server(process, port, shoppers, ROUNDS, minutes * 60 / ROUNDS))
    actions = len(shop.times)
    print(f"{shoppers} shoppers at once for {shop.seconds:.0f} s, {actions} actions, no page of another session")
    for name, load in (("shop", shop), ("style sheet", static)):
        rates = f"{load.rate:6.0f} requests/s, {len(load.times) / load.seconds:6.0f} actions/s"
        times = f"p50 {load.quantile(0.5):5.0f} ms, p99 {load.quantile(0.99):5.0f} ms"
        print(f"{name:12s} {rates}, {times}, {load.processor_time * 1e6:5.0f} us of processor a request")
    for name, ratio, aim in (
        ("rate of requests", shop.rate / static.rate, 0.5),
        ("rate of actions", actions / shop.seconds / static.rate, 0.5),
        ("rate by processor time", static.processor_time / shop.processor_time, 0.5),
        ("p99 of requests", shop.quantile(0.99, of_requests=True) / static.quantile(0.99), 3.0),
        ("p99 of actions", shop.quantile(0.99) / static.quantile(0.99), 3.0),
    ):
        print(f"shop to style sheet: {name:24s} {ratio:.2f} (aim {aim:.1f})")
    print("memory of the server after each tenth, in MB: " + " ".join(f"{size:.0f}" for size in memory))


def make_crowd(count: int, port: int, load: Load, is_kept: Callable[[int], bool]) -> list[Shopper]:
    return [Shopper(number, Connection(port, is_kept=is_kept(number)), load) for number in range(count)]


async def load_clients(server: int, port: int, count: int, seconds: float) -> tuple[Load, Load]:
    """Take turns between clients that keep their connections and clients that close them; returns both loads."""
    kept, closed = Load(), Load()
    crowds = (
        (kept, make_crowd(count, port, kept, lambda _: True)),
        (closed, make_crowd(count, port, closed, lambda _: False)),
    )
    for _ in range(ROUNDS):
        for load, crowd in crowds:
            await act_for([shopper.act for shopper in crowd], load, server, seconds / ROUNDS)
    return kept, closed


def run_clients(seconds: float, options: list[str]) -> None:
    """Pages a second of clients that keep their connections, and of clients that close them."""
    for count in CLIENTS:
        with serve(options) as (process, port):
            loads = asyncio.run(load_clients(process, port, count, seconds))
        for name, load in zip(("kept", "closed"), loads, strict=True):
            times = (
                f"p99 {load.quantile(0.99, of_requests=True):4.0f} ms, {load.processor_time * 1e6:5.0f} us of processor"
            )
            print(f"{count:3d} clients, connections {name:6s} {load.rate:6.0f} pages/s, {times}")
        print(f"{count:3d} clients, kept to closed: {loads[0].rate / loads[1].rate:.2f} (aim 1.0)", flush=True)


async def load_processes(port: int, shoppers: int, requests: int) -> Load:
    """Let shoppers act until so many requests are answered."""
    load, begin = Load(), time.perf_counter()
    crowd = make_crowd(shoppers, port, load, lambda number: number % 2 == 0)
    await asyncio.gather(*(repeat(shopper.act, lambda: load.requests >= requests) for shopper in crowd))
    load.seconds = time.perf_counter() - begin
    return load


def run_requests(requests: int, shoppers: int, processes: list[int], options: list[str]) -> None:
    """So many requests against servers of several processes."""
    for number in processes:
        with tempfile.TemporaryDirectory() as folder:
            state = ["--state", str(Path(folder) / "state.sqlite"), "--processes", str(number)]
            with serve([*state, *options]) as (_, port):
                load = asyncio.run(load_processes(port, shoppers, requests))
        times = ", ".join(f"p{share} {load.quantile(share / 100, of_requests=True):.0f} ms" for share in (50, 99))
        print(
            f"{number} processes: {load.requests} requests, none failed; {load.rate:.0f} a second, {times}", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="How the shop's server holds its load.")
    parser.add_argument("parts", nargs="*", default=PARTS, metavar="PART", help=f"of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--shoppers", type=int, default=64, help="at once (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=0.25, help="of `shoppers` (default: %(default)s; in full: 10)")
    parser.add_argument("--seconds", type=float, default=10.0, help="for each of `clients` (default: %(default)s)")
    parser.add_argument("--requests", type=int, default=5000, help="(default: %(default)s; in full: 100000)")
    parser.add_argument("--processes", default="1,2,4", help="of `requests` (default: %(default)s)")
    parser.add_argument("--serve", default="", metavar="OPTIONS", help="of the server, such as '--threads 4'")
    given = parser.parse_args()
    if unknown := sorted(set(given.parts) - set(PARTS)):
        parser.error(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    options = given.serve.split()
    if "shoppers" in given.parts:
        run_shoppers(given.shoppers, given.minutes, options)
    if "clients" in given.parts:
        run_clients(given.seconds, options)
    if "requests" in given.parts:
        run_requests(given.requests, given.shoppers, list(map(int, given.processes.split(","))), options)


if __name__ == "__main__":
    main()
