"""Train the learned reader: a small network that reads the messages to a language model (docs/learned_reader.md).

    pip install "drift-envs[reader]"
    python -m examples.train_reader --out build/learned_reader

It writes the weights of the policy `learned_reader`: three trainings that differ in their seeds, and one on decisions
before any drift alone. Every part is a file in `--out`; a part that is there is not made again, so that the command
can be stopped at any time. About an hour of one idle core.

1. A rule-based message policy (`message_reader`) plays development lakes with random ties and random actions. Each
   prompt in the format `brief` is kept with the set of the equally good actions.
2. The network is trained on these decisions: the loss is the negative log-probability of that set.
3. DAgger (Ross, Gordon and Bagnell 2011): the network plays other development lakes, the rules label what it visits,
   and it is trained on all decisions so far. This is repeated.

In every prompt the names of the actions are permuted, so that a name has no meaning but that of its prompt. The lakes
are of the family `frozen_lake/explicit:family`, whose drifts are data of the training here; their seeds begin at
`LAKES`, and no experiment plays these.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from drift_agents.agent import Agent
from drift_agents.llm.rules import RuleModel
from drift_agents.memory.base import make_memory
from drift_agents.policy.base import Reply
from drift_agents.policy.brief import BRIEF
from drift_agents.policy.learned_reader.network import (
    HEADS,
    LATENTS,
    LAYERS,
    PADDING,
    UNKNOWN,
    WIDTH,
    Network,
    ReaderWeights,
    list_shapes,
    load_weights,
    save_weights,
)
from drift_agents.policy.learned_reader.reader import SHIPPED, SUFFIX, choose
from drift_agents.policy.learned_reader.words import read_words, split_text
from drift_agents.policy.llm import LanguageModelPolicy
from drift_agents.policy.message_reader.reader import MessageModel
from drift_agents.prompt.view import PromptView, Recollection, parse_prompt
from drift_agents.verifier.base import make_verifier
from drift_agents.verifier.prober.replay import ReplayProber

import drift_envs

SCHEDULE = "frozen_lake/explicit:family"
LAKES = 100_000
"""The first seed of the development lakes."""
SOURCE, ALL = 20, 60
"""Episodes before the first drift, and of all phases."""
RULES = ("none", "overwrite", "glove", "announce_only", "glove")
MEMORIES = ({"k": 5}, {"k": 5}, {"k": 1, "order": "newest"})
NOISE = (0.0, 0.1, 0.3, 0.5)
"""Shares of random actions of the rules that play; one an agent."""
KEPT = 3
"""How often a decision in the same state of an episode is kept, so that loops do not fill the data."""
RARE = 5
"""Words of fewer lines are unknown."""
BATCH = 96
DAGGER = 5
"""Rounds of DAgger."""
LIMIT = 40
"""Steps of an episode, so that a network that walks in circles costs little."""
MISSING = 'training needs PyTorch, run `pip install "drift-envs[reader]"`'

_MEANINGS = re.compile(r"(Actions: )(.*?)(\.?)$", re.DOTALL)


class Amounts(NamedTuple):
    """How much is played and trained.

    Args:
        taught: decisions of the rules in each of the two sets.
        played: decisions of the network in each round of DAgger.
        first: decisions that the first training reads.
        further: decisions that each further training reads.
    """

    taught: int = 50_000
    played: int = 9_000
    first: int = 90_000
    further: int = 45_000


@dataclass
class Decisions:
    """Prompts as lists of lines, with the candidates and which of them are right.

    Args:
        lines: the words of each distinct line.
        prompts: for each decision the numbers of its lines.
        candidates: likewise those of its actions, as lines.
        right: likewise which of them are right.
    """

    lines: dict[tuple[str, ...], int] = field(default_factory=dict)
    prompts: list[list[int]] = field(default_factory=list)
    candidates: list[list[int]] = field(default_factory=list)
    right: list[list[bool]] = field(default_factory=list)

    def add(self, text: str, actions: Sequence[str], right: Sequence[str]) -> None:
        """Keep a decision.

        Args:
            text: the messages.
            actions: the admissible actions.
            right: the equally good ones.
        """
        lines = dict.fromkeys(read_words(line) for line in split_text(text))
        self.prompts.append([self._number(line) for line in lines])
        self.candidates.append([self._number(read_words(action)) for action in actions])
        self.right.append([action in right for action in actions])

    def _number(self, words: tuple[str, ...]) -> int:
        return self.lines.setdefault(words, len(self.lines))

    def extend(self, other: Decisions) -> None:
        """Add all decisions of another object.

        Args:
            other: the decisions.
        """
        numbers = [self._number(line) for line in other.lines]
        self.prompts += [[numbers[line] for line in prompt] for prompt in other.prompts]
        self.candidates += [[numbers[line] for line in one] for one in other.candidates]
        self.right += other.right

    def save(self, path: Path) -> None:
        """Write a file.

        Args:
            path: the file.
        """
        lists: dict[str, Any] = {"prompts": self.prompts, "candidates": self.candidates, "right": self.right}
        arrays: dict[str, Any] = {}
        for name, entries in lists.items():
            arrays[name] = np.array([one for entry in entries for one in entry])
            arrays[f"{name} sizes"] = np.array([len(entry) for entry in entries])
        lines = np.frombuffer("\n".join(map(" ".join, self.lines)).encode(), np.uint8)
        np.savez_compressed(path, lines=lines, **arrays)

    @classmethod
    def load(cls, path: Path) -> Decisions:
        """Read a file of `save`.

        Args:
            path: the file.
        """
        with np.load(path, allow_pickle=False) as file:
            lines = file["lines"].tobytes().decode().split("\n")
            lists = [
                [part.tolist() for part in np.split(file[name], np.cumsum(file[f"{name} sizes"])[:-1])]
                for name in ("prompts", "candidates", "right")
            ]
        return cls({tuple(line.split(" ")): number for number, line in enumerate(lines)}, *lists)


class Player:
    """A policy that plays and keeps what the rules would have done.

    Args:
        decisions: where decisions are kept.
        network: what plays; the rules if not given.
        noise: the share of random actions.
    """

    name = "player"
    needs_history = True

    def __init__(self, decisions: Decisions, network: Network | None = None, noise: float = 0.0) -> None:
        self.decisions, self.network, self.noise = decisions, network, noise
        self.seen: Counter[str] = Counter()
        """States of the present episode."""
        self._rules = MessageModel()
        self._renderer = LanguageModelPolicy(RuleModel({}), format=BRIEF)  # renders, and is not called

    def decide(self, prompt: str, rng: np.random.Generator) -> Reply:
        """Answer a prompt, under permuted names.

        Args:
            prompt: the rendered text.
            rng: for the names, and for random actions.
        """
        view = parse_prompt(prompt)
        shuffled = [view.actions[place] for place in rng.permutation(len(view.actions))]
        names = dict(zip(view.actions, shuffled, strict=True))
        text = "\n".join(message.content for message in self._renderer.messages(rename_actions(view, names)))
        right = self._rules.choices(text, view.actions)
        self.seen[view.state] += 1
        if self.seen[view.state] <= KEPT:
            self.decisions.add(text, view.actions, right)
        if rng.random() < self.noise:
            chosen = view.actions[int(rng.integers(len(view.actions)))]
        elif self.network is None:
            chosen = right[int(rng.integers(len(right)))]
        else:
            chosen = choose(text, view.actions, self.network)
        return Reply(next(action for action, name in names.items() if name == chosen))


def rename_actions(view: PromptView, names: Mapping[str, str]) -> PromptView:
    """The same prompt with other names of the actions.

    Args:
        view: the prompt; its task ends with what the actions do.
        names: the new name of each action.

    Example:
        >>> view = PromptView("Go. Actions: 0 left, 1 right.", "{}", ("0", "1"), visits=(("0", 2),))
        >>> renamed = rename_actions(view, {"0": "1", "1": "0"})
        >>> renamed.task, renamed.visits
        ('Go. Actions: 0 right, 1 left.', (('1', 2),))
    """

    def renamed(items: Sequence[Recollection]) -> tuple[Recollection, ...]:
        return tuple(item._replace(action=names.get(item.action, item.action)) for item in items)

    def meanings(found: re.Match[str]) -> str:
        entries = [entry.partition(" ") for entry in found[2].split(", ")]
        return found[1] + ", ".join(sorted(f"{names[name]} {words}" for name, _, words in entries)) + found[3]

    return replace(
        view,
        task=_MEANINGS.sub(meanings, view.task),
        here=renamed(view.here),
        elsewhere=renamed(view.elsewhere),
        moves=renamed(view.moves),
        visits=None if view.visits is None else tuple((names[action], count) for action, count in view.visits),
    )


def play(
    first: int, count: int, episodes: int, network: Network | None = None, say: Callable[[str], None] = print
) -> Decisions:
    """Decisions on lakes, one agent a lake; rules, memories and noise take turns.

    Args:
        first: the seed of the first lake.
        count: how many decisions at the least.
        episodes: of each lake.
        network: what plays; the rules if not given.
        say: prints the result.
    """
    decisions, lake, scores, begin = Decisions(), first, [], time.process_time()
    while len(decisions.prompts) < count:
        turn = lake - first
        env = gym.make("DriftFrozenLake-v0", schedule=SCHEDULE, text=True, max_episode_steps=LIMIT)
        rule = RULES[turn % len(RULES)] if episodes > SOURCE else "none"
        options = {"prober": ReplayProber(drift_envs.twin(env))} if rule == "glove" else {}
        player = Player(decisions, network, NOISE[turn % len(NOISE)] if network is None else 0.0)
        memory = make_memory("vanilla", **MEMORIES[turn % len(MEMORIES)])
        agent = Agent(player, memory, make_verifier(rule, **options), seed=lake, keep_trace=False)
        for episode in range(episodes):
            player.seen.clear()
            scores.append(agent.run_episode(env, seed=None if episode else lake).score)
        env.close()
        lake += 1
    spent = time.process_time() - begin
    won = np.mean([score >= 1 for score in scores])
    say(f"  {len(decisions.prompts)} decisions on {lake - first} lakes, {won:.0%} of episodes won, {spent:.0f} s")
    return decisions


def learn_vocabulary(decisions: Decisions) -> tuple[str, ...]:
    """The words that occur in many lines, in alphabetical order.

    Args:
        decisions: the decisions of the rules.
    """
    counts = Counter(word for line in decisions.lines for word in set(line))
    return tuple(sorted(word for word, count in counts.items() if count >= RARE))


def make_weights(vocabulary: tuple[str, ...], rng: np.random.Generator) -> ReaderWeights:
    """Random weights.

    Args:
        vocabulary: the words.
        rng: draws them.
    """
    arrays = {}
    for name, shape in list_shapes(len(vocabulary) + UNKNOWN + 1).items():
        scale = 0.3 if name in ("word", "before", "after", "candidate", "latents") else shape[0] ** -0.5
        if name.endswith(("_out", "down")):
            scale /= (2 * LAYERS) ** 0.5
        arrays[name] = (rng.standard_normal(shape) * scale).astype(np.float32)
    return ReaderWeights(vocabulary, arrays)


class Batch(NamedTuple):
    """Decisions as arrays.

    Args:
        words: of the distinct lines and candidates, of the shape (lines, longest + 2), padded on both sides.
        prompts: rows of `words`, of the shape (batch, lines of a prompt); -1 behind a prompt.
        candidates: likewise, of the shape (batch, candidates).
        right: which candidates are right, of the same shape.
    """

    words: np.ndarray
    prompts: np.ndarray
    candidates: np.ndarray
    right: np.ndarray


def make_batch(decisions: Decisions, rows: Sequence[int], numbers: Sequence[list[int]]) -> Batch:
    """Put decisions into arrays.

    Args:
        decisions: all decisions.
        rows: which of them.
        numbers: of the words of each line of `decisions`.
    """
    prompts, candidates = ([entries[row] for row in rows] for entries in (decisions.prompts, decisions.candidates))
    used = dict.fromkeys(line for one in (*prompts, *candidates) for line in one)
    place = {line: row for row, line in enumerate(used)}
    words = np.full((len(used), max(len(numbers[line]) for line in used) + 2), PADDING)
    for row, line in enumerate(used):
        words[row, 1 : len(numbers[line]) + 1] = numbers[line]

    def pad(entries: list[list[int]]) -> np.ndarray:
        padded = np.full((len(entries), max(map(len, entries))), -1)
        for row, entry in enumerate(entries):
            padded[row, : len(entry)] = entry
        return padded

    placed = [pad([[place[line] for line in one] for one in entries]) for entries in (prompts, candidates)]
    right = pad([list(map(int, decisions.right[row])) for row in rows]) > 0
    return Batch(words, placed[0], placed[1], right)


def score_batch(torch: Any, arrays: Mapping[str, Any], batch: Batch) -> Any:
    """The same computation as `Network.score`, for a batch; the shape is (batch, candidates).

    Args:
        torch: the library.
        arrays: the parameters by name.
        batch: the decisions.
    """
    functional, size = torch.nn.functional, WIDTH // HEADS
    words, prompts, candidates = map(torch.from_numpy, batch[:3])

    def normalise(x: Any) -> Any:
        return functional.rms_norm(x, (WIDTH,), eps=1e-6)

    def split(x: Any, parts: int) -> Any:
        return x.view(*x.shape[:2], parts, HEADS, size).permute(2, 0, 3, 1, 4)

    def attend(query: Any, key: Any, value: Any, mask: Any) -> Any:
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return mixed.transpose(1, 2).flatten(2)

    middle = words[:, 1:-1]
    embedded = functional.embedding(middle, arrays["word"]) + functional.embedding(words[:, :-2], arrays["before"])
    embedded = (embedded + functional.embedding(words[:, 2:], arrays["after"])).relu()
    focus = (embedded @ arrays["focus"]).masked_fill((middle == PADDING)[:, :, None], -1e9)
    share = focus.softmax(dim=1).transpose(1, 2)[:, :, None]  # (lines, heads, 1, words)
    values = (embedded @ arrays["value"]).view(*embedded.shape[:2], HEADS, size).transpose(1, 2)
    lines = (share @ values).flatten(1) @ arrays["pooled"]
    lines = lines + (normalise(lines) @ arrays["up"]).relu() @ arrays["down"]

    own = lines[candidates.clamp(min=0)] + arrays["candidate"]
    x = torch.cat([own, arrays["latents"].expand(len(own), -1, -1)], dim=1)
    exists = (prompts >= 0)[:, None, None]
    latents = torch.cat([candidates >= 0, torch.ones(len(own), LATENTS, dtype=torch.bool)], dim=1)[:, None, None]
    known = normalise(lines)
    for layer in range(LAYERS):
        read = (known @ arrays[f"{layer}.read_lines"])[prompts.clamp(min=0)]
        (query,) = split(normalise(x) @ arrays[f"{layer}.read_query"], 1)
        key, value = split(read, 2)
        x = x + attend(query, key, value, exists) @ arrays[f"{layer}.read_out"]
        query, key, value = split(normalise(x) @ arrays[f"{layer}.mix"], 3)
        x = x + attend(query, key, value, latents) @ arrays[f"{layer}.mix_out"]
        x = x + (normalise(x) @ arrays[f"{layer}.up"]).relu() @ arrays[f"{layer}.down"]
    scores = (normalise(x[:, : candidates.shape[1]]) @ arrays["score"])[..., 0]
    return scores.masked_fill(candidates < 0, -1e9)


def draw_rows(sizes: Sequence[int], count: int, rng: np.random.Generator) -> Iterator[list[int]]:
    """Batches of row numbers: half of them of the last set, if there are several, the others of all sets.

    Args:
        sizes: of each set, in the order of the decisions.
        count: how many rows all batches have together.
        rng: draws them.
    """
    total, last = sum(sizes), sizes[-1] if len(sizes) > 1 else 0
    for _ in range(max(1, count // BATCH)):
        recent = BATCH // 2 if last else 0
        rows = rng.integers(total, size=BATCH - recent).tolist()
        yield rows + (total - last + rng.integers(last, size=recent)).tolist() if last else rows


def train(weights: ReaderWeights, sets: Sequence[Decisions], count: int, rate: float, seed: int) -> ReaderWeights:
    """Train on decisions, and print the loss.

    Args:
        weights: where it begins.
        sets: the decisions; of the last one more are drawn.
        count: how many decisions are read.
        rate: the highest learning rate.
        seed: of the order.

    Raises:
        SystemExit: if PyTorch is missing.
    """
    try:
        import torch
    except ImportError as error:
        raise SystemExit(f"{MISSING} ({error})") from error
    torch.set_num_threads(1)
    rng, begin, losses, hits = np.random.default_rng(seed), time.process_time(), [], []
    decisions = Decisions()
    for one in sets:
        decisions.extend(one)
    network = Network(weights)
    numbers = [network.number(line) for line in decisions.lines]
    arrays = {name: torch.nn.Parameter(torch.from_numpy(array.copy())) for name, array in weights.arrays.items()}
    optimizer = torch.optim.AdamW(arrays.values(), lr=rate, betas=(0.9, 0.98), weight_decay=0.01)
    steps = max(1, count // BATCH)
    for step, rows in enumerate(draw_rows([len(one.prompts) for one in sets], count, rng)):
        for group in optimizer.param_groups:  # warm-up, then a cosine down to a twentieth
            group["lr"] = rate * min((step + 1) / 100, 0.05 + 0.95 * (0.5 + 0.5 * np.cos(np.pi * step / steps)))
        batch = make_batch(decisions, rows, numbers)
        scores, right = score_batch(torch, arrays, batch), torch.from_numpy(batch.right)
        loss = (scores.logsumexp(dim=1) - scores.masked_fill(~right, -1e9).logsumexp(dim=1)).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(arrays.values(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        hits.append(right.gather(1, scores.argmax(dim=1, keepdim=True)).float().mean().item())
    late = slice(-max(1, steps // 10), None)
    spent = time.process_time() - begin
    print(
        f"  {steps * BATCH} decisions, loss {np.mean(losses[late]):.3f}, right {np.mean(hits[late]):.1%}, {spent:.0f} s"
    )
    return ReaderWeights(weights.vocabulary, {name: array.detach().numpy() for name, array in arrays.items()})


def make_part(path: Path, make: Callable[[], Decisions], say: Callable[[str], None]) -> Decisions:
    """The decisions of a file, which is made if it is not there.

    Args:
        path: the file.
        make: plays the decisions.
        say: prints its name.
    """
    if not path.is_file():
        say(path.stem)
        part = path.with_suffix(".part.npz")
        make().save(part)
        part.replace(path)  # at once, so that a torn file is never taken for the part
    return Decisions.load(path)


def train_reader(out: Path, name: str, amounts: Amounts, say: Callable[[str], None]) -> ReaderWeights:
    """Train one reader, part by part.

    Args:
        out: the folder of the parts.
        name: one of `SHIPPED`.
        amounts: how much is played and trained.
        say: prints the parts.
    """
    seed, episodes = SHIPPED.index(name), SOURCE if name == "source" else ALL
    taught = [make_part(out / "taught-source.npz", partial(play, LAKES, amounts.taught, SOURCE, say=say), say)]
    drifting = make_part(out / "taught-all.npz", partial(play, 2 * LAKES, amounts.taught, ALL, say=say), say)
    vocabulary = learn_vocabulary(taught[0])
    if episodes == ALL:
        taught.append(drifting)
        vocabulary = tuple(sorted({*vocabulary, *learn_vocabulary(drifting)}))
    weights, sets = make_weights(vocabulary, np.random.default_rng(seed)), list(taught)
    for number in range(DAGGER + 1):
        path = out / f"{name}-{number}{SUFFIX}"
        if number:
            network, first = Network(weights), (3 + seed) * LAKES + 10_000 * number
            played = out / f"{name}-{number}-played.npz"
            sets.append(make_part(played, partial(play, first, amounts.played, episodes, network, say), say))
        if not path.is_file():
            say(path.stem)
            count, rate = (amounts.further, 8e-4) if number else (amounts.first, 1.5e-3)
            trained = train(weights, sets, count, rate, 100 * seed + number)
            part = path.with_suffix(f".part{SUFFIX}")
            save_weights(part, trained)
            part.replace(path)
        weights = load_weights(path)
    return weights


def main(arguments: list[str] | None = None) -> None:
    """Train all readers.

    Args:
        arguments: those of the command line if not given.
    """
    parser = argparse.ArgumentParser(description="Train the policy `learned_reader`.")
    parser.add_argument("--out", type=Path, default=Path("build/learned_reader"), help="the folder of the parts")
    parser.add_argument("--weights", type=Path, help="a folder into which the finished weights are written")
    parser.add_argument("--only", choices=SHIPPED, nargs="*", default=SHIPPED, help="which readers")
    parser.add_argument("--share", type=float, default=1.0, help="of the decisions, for a short try")
    options = parser.parse_args(arguments)
    amounts = Amounts(*(max(BATCH, round(options.share * amount)) for amount in Amounts()))
    options.out.mkdir(parents=True, exist_ok=True)
    if options.weights is not None:
        options.weights.mkdir(parents=True, exist_ok=True)
    for name in options.only:
        weights = train_reader(options.out, name, amounts, lambda text: print(text, flush=True))
        if options.weights is not None:
            save_weights(options.weights / f"{name}{SUFFIX}", weights)
    size = sum(array.size for array in weights.arrays.values())
    print(f"{size:,} parameters; the weights are in {options.weights or options.out}")


if __name__ == "__main__":
    main()
