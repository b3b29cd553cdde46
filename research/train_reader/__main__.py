"""Train the learned reader: a small network that reads the messages to a language model.

    pip install -r research/requirements.txt
    python -m research.train_reader --out build/learned_reader --weights research/weights

It writes the weights of the policy `learned_reader`: three trainings on lakes that differ in their seeds, one on
decisions before any drift alone, and one on lakes, shops and houses together. Every part is a file in `--out`; a part
that is there is not made again, so that the command can be stopped at any time. About an hour of one idle core for the
lakes, and another hour and a half for `together`.

1. A rule-based message policy (`message_reader`) plays development instances with random ties and random actions. Each
   prompt in the format `brief` is kept with the set of the equally good actions.
2. The network is trained on these decisions: the loss is the negative log-probability of that set.
3. DAgger (Ross, Gordon and Bagnell 2011): the network plays other development instances, the rules label what it
   visits, and it is trained on all decisions so far. This is repeated.
4. The gate: the share of episodes before the drift that the network wins on instances that it never saw, beside that
   of the rules.

In every prompt of a lake the names of the actions are permuted, so that a name has no meaning but that of its prompt;
in the shop those of the advertisement's buttons. The other actions of the shop and the house are words, which keep
their meaning. The schedules are those of `LESSONS`, whose drifts are data of the training here; the seeds begin at
`INSTANCES`, those of the gate at `GATE`, and no experiment plays these.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from drift_agents.policy.learned_reader.network import Network, ReaderWeights, load_weights, save_weights
from drift_agents.policy.learned_reader.reader import SUFFIX

from research.train_reader.decisions import Decisions, learn_vocabulary
from research.train_reader.network import make_weights
from research.train_reader.teaching import ALL, LESSONS, play, win
from research.train_reader.training import BATCH, train

NAMES = ("first", "second", "third", "source", "together")
"""Three trainings on lakes that differ in their seeds, one on decisions before any drift alone, and one on lakes, shops
and houses together. The package has the first one."""
INSTANCES = 100_000
"""The first seed of the development instances."""
GATE, GATE_COUNT = 90_000, 20
"""The first seed of the instances of the gate, and how many there are."""
DAGGER = 5
"""Rounds of DAgger."""
WORDS = 800
"""Words that the reader of several environments knows at the most, so that all weights together stay small."""
TOGETHER = "together"
LAKES = ("lake", "goals")
"""Of `LESSONS`, what all readers learn."""

Say = Callable[[str], None]


class Amounts(NamedTuple):
    """How much is played and trained.

    Args:
        taught: decisions of the rules in each environment, before the first drift and in all phases.
        played: decisions of the network in each environment and each round of DAgger.
        first: decisions that the first training reads.
        further: decisions that each further training reads.
        last: decisions that the last one reads.
    """

    taught: int = 30_000
    played: int = 5_000
    first: int = 75_000
    further: int = 30_000
    last: int = 90_000


MORE = Amounts(taught=40_000, played=5_000, first=240_000, further=70_000, last=70_000)
"""Those of `TOGETHER`."""


def make_part(path: Path, make: Callable[[], Decisions], say: Say) -> Decisions:
    """The decisions of a file, which is made if it is not there.

    Args:
        make: plays the decisions.
        say: prints its name.
    """
    if not path.is_file():
        say(path.stem)
        part = path.with_suffix(".part.npz")
        make().save(part)
        part.replace(path)  # at once, so that a torn file is never taken for the part
    return Decisions.load(path)


def teach(out: Path, name: str, share: float, say: Say) -> tuple[list[Decisions], tuple[str, ...]]:
    """What the rules teach a reader, as sets of decisions, and the words that it knows.

    Args:
        out: the folder of the parts.
        name: one of `NAMES`.
        share: of the amounts.
        say: prints the parts.
    """

    def taught(environment: str, part: int, count: int, episodes: int | None) -> Decisions:
        first = (2 * tuple(LESSONS).index(environment) + part + 1) * INSTANCES
        make = partial(play, LESSONS[environment], first, scale(count, share), episodes, say=say)
        return make_part(out / f"taught-{environment}-{part}.npz", make, say)

    count, source, drifting = Amounts().taught, Decisions(), Decisions()
    for environment in LAKES:
        source.extend(taught(environment, 0, count, None))
    if name == "source":
        return [source], learn_vocabulary(source)
    for environment in LAKES:
        drifting.extend(taught(environment, 1, count, ALL))
    words = {*learn_vocabulary(source), *learn_vocabulary(drifting)}
    if name != TOGETHER:
        return [source, drifting], tuple(sorted(words))
    everything = Decisions()
    for environment in environments_of(name)[len(LAKES) :]:
        everything.extend(taught(environment, 1, MORE.taught, ALL))
    words.update(learn_vocabulary(everything, max(0, WORDS - len(words))))
    for one in (source, drifting):
        everything.extend(one)
    return [everything], tuple(sorted(words))


def train_reader(out: Path, name: str, share: float, say: Say) -> ReaderWeights:
    """Train one reader, part by part.

    Args:
        out: the folder of the parts.
        name: one of `NAMES`.
        share: of the amounts.
        say: prints the parts.
    """
    seed, episodes = NAMES.index(name), None if name == "source" else ALL
    amounts = MORE if name == TOGETHER else Amounts()
    sets, vocabulary = teach(out, name, share, say)
    weights = make_weights(vocabulary, np.random.default_rng(seed))
    for number in range(DAGGER + 1):
        path = out / f"{name}-{number}{SUFFIX}"
        if number:
            network, first = Network(weights), (10 + seed) * INSTANCES + 10_000 * number
            played = Decisions()
            for environment in environments_of(name):
                part = out / f"{name}-{number}-played-{environment}.npz"
                make = partial(play, LESSONS[environment], first, scale(amounts.played, share), episodes, network, say)
                played.extend(make_part(part, make, say))
            sets.append(played)
        if not path.is_file():
            say(path.stem)
            count, rate = (amounts.further, 8e-4) if number else (amounts.first, 1.5e-3)
            count = amounts.last if number == DAGGER else count
            trained = train(weights, sets, scale(count, share), rate, 100 * seed + number)
            part = path.with_suffix(f".part{SUFFIX}")
            save_weights(part, trained)
            part.replace(path)
        weights = load_weights(path)
    return weights


def environments_of(name: str) -> tuple[str, ...]:
    """The names of the environments that a reader learns.

    Args:
        name: one of `NAMES`.
    """
    return tuple(LESSONS) if name == TOGETHER else LAKES


def scale(amount: int, share: float) -> int:
    """A share of an amount; a batch at the least.

    Args:
        amount: the amount.
        share: the share.
    """
    return max(BATCH, round(share * amount))


def pass_gate(path: Path, name: str, weights: ReaderWeights, say: Say) -> Mapping[str, Mapping[str, float]]:
    """The share of episodes before the drift that are won on untouched instances, by environment; kept in a file.

    Args:
        path: the file; it is not made again.
        name: one of `NAMES`.
        weights: of the reader.
        say: prints the result.
    """
    if not path.is_file():
        network = Network(weights)
        rates = {
            environment: {
                "reader": win(LESSONS[environment], GATE, GATE_COUNT, network),
                "rules": win(LESSONS[environment], GATE, GATE_COUNT),
            }
            for environment in environments_of(name)
        }
        path.write_text(json.dumps(rates, indent=1) + "\n", encoding="utf-8")
    found: dict[str, dict[str, float]] = json.loads(path.read_text(encoding="utf-8"))
    for environment, rate in found.items():
        say(
            f"  gate, {GATE_COUNT} untouched instances of {LESSONS[environment].schedule}: {name} wins "
            f"{rate['reader']:.0%} of the episodes before the drift, the rules {rate['rules']:.0%}"
        )
    return found


def main(arguments: list[str] | None = None) -> None:
    """Train all readers.

    Args:
        arguments: those of the command line if not given.
    """
    parser = argparse.ArgumentParser(prog="python -m research.train_reader", description="Train `learned_reader`.")
    parser.add_argument("--out", type=Path, default=Path("build/learned_reader"), help="the folder of the parts")
    parser.add_argument("--weights", type=Path, help="a folder into which the finished weights are written")
    parser.add_argument("--only", choices=NAMES, nargs="*", default=NAMES, help="which readers")
    parser.add_argument("--share", type=float, default=1.0, help="of the decisions, for a short try")
    options = parser.parse_args(arguments)
    if not options.share > 0:
        parser.error(f"argument --share: should be above 0. Received {options.share:g}")
    options.out.mkdir(parents=True, exist_ok=True)
    if options.weights is not None:
        options.weights.mkdir(parents=True, exist_ok=True)
    say = partial(print, flush=True)
    for name in options.only:
        weights = train_reader(options.out, name, options.share, say)
        if options.weights is not None:
            save_weights(options.weights / f"{name}{SUFFIX}", weights)
        size = sum(array.size for array in weights.arrays.values())
        say(f"{name}: {size:,} parameters; the weights are in {options.weights or options.out}")
        pass_gate(options.out / f"{name}-gate.json", name, weights, say)


if __name__ == "__main__":
    main()
