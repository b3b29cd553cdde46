"""Fuzzing: `make fuzz`, `make fuzz-short`, or `python -m tests.fuzz.run --inputs 100000 --targets schedules,logs`.

Chunks of inputs go to worker processes; equal options give equal inputs. Every input has to be accepted or refused
by an error of the project, within `tests.fuzz.targets.MOST_SECONDS`. What is found is written to
`tests/fuzz/corpus/TARGET/`, which the tests read again, and the exit status is 1. A run that is interrupted, or whose
`--minutes` are over, prints the table of the chunks that are done.

`--engine atheris` (the package `atheris`) lets the coverage of the code select the edits, for one target at a time.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import multiprocessing
import random
import signal
import sys
import threading
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple

CORPUS = Path(__file__).parent / "corpus"
CHUNK = 2000
"""Inputs of one Hypothesis test."""


class Chunk(NamedTuple):
    """Inputs of a target; with a seed of their own."""

    target: str
    inputs: int
    seed: int


class Outcome(NamedTuple):
    """What a chunk gave: inputs, accepted ones, processor seconds, the longest of one input, the finding."""

    chunk: Chunk
    inputs: int
    accepted: int
    seconds: float
    longest: float
    finding: tuple[str, str] | None


def play(chunk: Chunk) -> Outcome:
    """Give a target its inputs, until one fails."""
    from tests.fuzz.targets import TARGETS, make_test

    warnings.simplefilter("error")
    target = TARGETS[chunk.target]
    target.prepare()
    failed: list[str] = []
    counted, begin = target.inputs, time.process_time()
    accepted, target.longest = target.accepted, 0.0
    finding = None
    try:
        make_test(target, chunk.inputs, chunk.seed, failed.append)()
    except Exception as error:  # noqa: BLE001 - the finding
        finding = (failed[-1] if failed else "", f"{type(error).__name__}: {str(error)[:500]}")
    return Outcome(
        chunk,
        target.inputs - counted,
        target.accepted - accepted,
        time.process_time() - begin,
        target.longest,
        finding,
    )


def save(target: str, text: str, error: str) -> Path:
    """Write a finding to the corpus."""
    name = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    path = CORPUS / target / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"input": text, "error": error}, indent=1) + "\n", "utf-8")
    return path


def split(names: Sequence[str], inputs: int, seed: int) -> list[Chunk]:
    """The chunks of so many inputs, by the targets' shares: one of each target, then the others in a mixed order."""
    from tests.fuzz.targets import TARGETS

    total = sum(TARGETS[name].share for name in names)
    first, others = [], []
    for name in names:
        whole = left = round(inputs * TARGETS[name].share / total)
        while left > 0:
            number = int.from_bytes(hashlib.sha256(f"{seed} {name} {left}".encode()).digest()[:8], "big")
            (first if left == whole else others).append(Chunk(name, min(CHUNK, left), number))
            left -= CHUNK
    random.Random(seed).shuffle(others)
    return first + others


class Table:
    """What the chunks gave that are done, a row a target; writes findings to the corpus, each kind once."""

    def __init__(self) -> None:
        self._sums: dict[str, list[float]] = defaultdict(lambda: [0, 0, 0.0, 0.0, 0])
        self.kinds: set[tuple[str, str]] = set()

    def add(self, outcome: Outcome) -> None:
        """Add a chunk."""
        row = self._sums[outcome.chunk.target]
        row[0] += outcome.inputs
        row[1] += outcome.accepted
        row[2] += outcome.seconds
        row[3] = max(row[3], outcome.longest)
        if outcome.finding is None:
            return
        row[4] += 1
        kind = (outcome.chunk.target, outcome.finding[1][:80])
        if kind not in self.kinds:
            path = save(outcome.chunk.target, *outcome.finding)
            print(f"{outcome.chunk.target}: {outcome.finding[1]}\n    {path}", flush=True)
        self.kinds.add(kind)

    def print(self, seconds: float) -> None:
        """Print the rows; `seconds` are those of the whole run."""
        print(f"{'target':12} {'inputs':>8} {'accepted':>9} {'ms each':>8} {'longest s':>10} {'findings':>9}")
        for name, (count, accepted, used, longest, findings) in sorted(self._sums.items()):
            share = f"{accepted / count:9.0%} {used / count * 1e3:8.2f}" if count else f"{'':18}"
            print(f"{name:12} {count:8.0f} {share} {longest:10.2f} {findings:9.0f}")
        total = sum(row[0] for row in self._sums.values())
        print(f"{total:.0f} inputs in {seconds:.0f} s: {total / seconds:.0f} a second", flush=True)


def run(names: Sequence[str], inputs: int, jobs: int, seed: int, minutes: float = math.inf) -> int:
    """Fuzz with Hypothesis; the exit status."""
    begin = time.monotonic()
    # A signal sets a flag: an exception within `submit` could leave the pool with a process that it does not know.
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    table = Table()
    chunks = split(names, inputs, seed)
    done = 0
    for outcome in _play_all(chunks, jobs, lambda: stopped.is_set() or time.monotonic() - begin > minutes * 60):
        table.add(outcome)
        done += 1
    if stopped.is_set():
        print("interrupted", flush=True)
    elif done < len(chunks):
        print(f"{minutes:g} minutes are over", flush=True)
    table.print(time.monotonic() - begin)
    return 1 if table.kinds else 130 if stopped.is_set() else 0


def _play_all(chunks: list[Chunk], jobs: int, is_over: Callable[[], bool]) -> Iterator[Outcome]:
    """Play chunks in worker processes, until all are done or the time is over; the processes end with this function."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_ignore_interrupts) as pool:
        left = {pool.submit(play, chunk) for chunk in chunks}
        while left and not is_over():
            done, left = wait(left, timeout=0.1, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)
        if left:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in multiprocessing.active_children():
                child.terminate()


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the workers too


def run_atheris(name: str, inputs: int, seed: int) -> int:
    """Fuzz one target with atheris; it ends the process, at a finding with a status other than 0."""
    try:
        import atheris
    except ImportError:
        print("`atheris` is not installed, run `pip install atheris`", file=sys.stderr)
        return 2
    with atheris.instrument_imports(include=["drift_envs", "drift_agents", "webshop_server"]):
        from tests.fuzz.targets import TARGETS, make_test

        TARGETS[name].prepare()

    def report(text: str) -> None:
        print(f"{name}: {save(name, text, 'found by atheris')}", flush=True)

    test: Any = make_test(TARGETS[name], 1, 0, report).hypothesis.fuzz_one_input
    print(f"{name}: {inputs} runs of atheris", flush=True)
    atheris.Setup([sys.argv[0], f"-runs={inputs}", f"-seed={seed + 1}", "-max_len=512", "-len_control=0"], test)
    atheris.Fuzz()
    return 0


def main() -> int:
    """Read the options and fuzz."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run", description="Fuzz what reads files and replies.")
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after so many")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--targets", default="", help="such as schedules,logs (default: all)")
    parser.add_argument("--engine", choices=("hypothesis", "atheris"), default="hypothesis")
    given = parser.parse_args()
    if given.engine == "atheris":
        if not given.targets or "," in given.targets:
            parser.error("--engine atheris needs --targets with one name")
        return run_atheris(given.targets, given.inputs, given.seed)
    from tests.fuzz.targets import TARGETS

    names = given.targets.split(",") if given.targets else list(TARGETS)
    if unknown := sorted(set(names) - set(TARGETS)):
        parser.error(f"no target {', '.join(unknown)}; there are {', '.join(TARGETS)}")
    return run(names, given.inputs, given.jobs, given.seed, given.minutes)


if __name__ == "__main__":
    sys.exit(main())
