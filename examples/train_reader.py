"""Train the learned reader: a small transformer from scratch, on decisions of development instances.

    pip install torch==2.13.0
    drift-agents run mine.yaml --trace all          # rules on development instances
    drift-agents export-choices runs/mine --out data.jsonl --prompt ranked
    python examples/train_reader.py data.jsonl --out weights.npz --minutes 40

It learns which action a decision took from the messages alone (`examples/serve_reader.py` describes the model). The
vocabulary has the words and phrases that occur in many prompts; words that are rare, such as items' numbers, are
numbered within each prompt, in training in a random order, so that only their equality counts.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from serve_reader import (
    COLUMNS,
    HEADS,
    SEPARATOR,
    EncodedText,
    Reader,
    Vocabulary,
    join_messages,
    read_pieces,
    rotations,
)

MISSING = "training needs PyTorch, run `pip install torch==2.13.0`"
HELD_BACK = 0.02
"""Share of the decisions that are not trained on, to measure the accuracy."""


class Choice(NamedTuple):
    """A decision.

    Args:
        text: the messages.
        action: what was done.
    """

    text: str
    action: str


def read_choices(path: Path, skip: str | None = None) -> Iterator[Choice]:
    """The decisions of a file of `drift-agents export-choices`.

    Args:
        path: the file, in the format `openai`.
        skip: a regular expression; decisions whose messages have it are left out.

    Raises:
        SystemExit: if a line is no decision in chat format.
    """
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                *question, answer = json.loads(line)["messages"]
                choice = Choice(join_messages(question), json.loads(answer["content"])["action"])
            except (ValueError, KeyError, TypeError) as error:
                raise SystemExit(f"{path}:{number}: not a decision in chat format: {error!r}") from error
            if skip is None or not re.search(skip, choice.text):
                yield choice


def learn_vocabulary(texts: Sequence[str], share: float, longest: int = 40, rounds: int = 60) -> list[str]:
    r"""Words and phrases that occur in at least a share of the texts; the most frequent pairs are joined first.

    Args:
        texts: prompts.
        share: of the texts, in (0, 1).
        longest: pieces of a phrase.
        rounds: how often pairs of phrases are joined.

    Example:
        >>> learn_vocabulary(["we go home", "we go out", "we go up", "we go in"], 0.9)
        ['go', 'home', 'in', 'out', 'up', 'we', 'we\x1fgo']
    """
    least = share * len(texts)
    read = [[(one.text, one.segment if one.is_plain else -1) for one in read_pieces(text)] for text in texts]
    counts = Counter(word for pieces in read for word in {text for text, _ in pieces})
    entries = [word for word, count in sorted(counts.items()) if count >= least / 4]
    for _ in range(rounds):
        pairs = Counter(
            pair
            for pieces in read
            for pair in {
                f"{first}{SEPARATOR}{second}"
                for (first, line), (second, other) in pairwise(pieces)
                if line == other >= 0
            }
        )
        found = {pair for pair, count in pairs.items() if count >= least and pair.count(SEPARATOR) < longest}
        if not found:
            break
        entries += sorted(found)
        read = [_join(pieces, found) for pieces in read]
    return list(dict.fromkeys(entries))


def _join(pieces: list[tuple[str, int]], found: set[str]) -> list[tuple[str, int]]:
    """Join the pairs that were found, in the order of the text; each piece has its segment, -1 outside of phrases."""
    joined: list[tuple[str, int]] = []
    for text, line in pieces:
        if joined and joined[-1][1] == line >= 0 and f"{joined[-1][0]}{SEPARATOR}{text}" in found:
            joined[-1] = (f"{joined[-1][0]}{SEPARATOR}{text}", line)
        else:
            joined.append((text, line))
    return joined


def make_batches(
    choices: Sequence[Choice], vocabulary: Vocabulary, pieces: int, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, ...]]:
    """Batches of decisions of similar length, for ever.

    Args:
        choices: the decisions.
        vocabulary: the numbers of words.
        pieces: of a batch, at the most.
        rng: draws the order, and the numbers of unknown words.

    Yields:
        The arrays of `pad`.
    """
    lengths = [len(choice.text) for choice in choices]
    while True:
        order = rng.permutation(len(choices))
        for start in range(0, len(order), 2048):
            # Neighbours in length share a batch, so that little is padded.
            block = sorted(order[start : start + 2048].tolist(), key=lengths.__getitem__)
            batches: list[list[tuple[EncodedText, list[bool]]]] = [[]]
            for index in block:
                read = vocabulary.encode(choices[index].text, rng)
                right = [answer == choices[index].action for answer in read.answers]
                if not any(right):
                    continue
                longest = max([len(read.numbers), *(len(one[0].numbers) for one in batches[-1])])
                if longest * (len(batches[-1]) + 1) > pieces and batches[-1]:
                    batches.append([])
                batches[-1].append((read, right))
            for batch in rng.permutation(len(batches)).tolist():
                if batches[batch]:
                    yield pad(batches[batch])


def pad(batch: Sequence[tuple[EncodedText, list[bool]]]) -> tuple[np.ndarray, ...]:
    """Numbers, segments (-1 behind a prompt), columns, matches and right pieces, each of the shape (batch, length).

    Args:
        batch: prompts with the pieces that are right.
    """
    shape = (len(batch), max(len(read.numbers) for read, _ in batch))
    numbers, columns, matches = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    segments, right = np.full(shape, -1), np.zeros(shape, bool)
    for row, (read, answers) in enumerate(batch):
        length = len(read.numbers)
        numbers[row, :length], segments[row, :length] = read.numbers, read.segments
        columns[row, :length], matches[row, :length], right[row, :length] = read.columns, read.matches, answers
    return numbers, segments, columns, matches, right


def make_model(torch: Any, words: int, width: int, layers: int) -> dict[str, Any]:
    """The parameters, by the names that `serve_reader.Reader` takes.

    Args:
        torch: the library.
        words: the size of the vocabulary.
        width: of the model.
        layers: how many, the one within segments included.
    """
    shapes: dict[str, tuple[tuple[int, ...], float]] = {
        "words": ((words, width), 0.5),
        "columns": ((COLUMNS, width), 0.2),
        "match": ((2, width), 0.2),
        "focus": ((HEADS, width), width**-0.5),
        "sum": ((width, HEADS * width), (HEADS * width) ** -0.5),
        "own": ((width, width), width**-0.5),
        "shared": ((width, width), width**-0.5),
        "score": ((width,), width**-0.5),
    }
    for layer in range(layers):
        shapes[f"layers.{layer}.mix"] = ((3 * width, width), width**-0.5)
        shapes[f"layers.{layer}.out"] = ((width, width), (width * 2 * layers) ** -0.5)
        shapes[f"layers.{layer}.up"] = ((3 * width, width), (2 / width) ** 0.5)
        shapes[f"layers.{layer}.down"] = ((width, 3 * width), (3 * width * 2 * layers) ** -0.5)
    return {name: torch.nn.Parameter(torch.randn(shape) * scale) for name, (shape, scale) in shapes.items()}


def score_pieces(torch: Any, model: dict[str, Any], numbers: Any, segments: Any, columns: Any, matches: Any) -> Any:
    """The same computation as `serve_reader.Reader.scores`, for a batch.

    Args:
        torch: the library.
        model: the parameters.
        numbers: of the shape (batch, length).
        segments: likewise; -1 behind a prompt.
        columns: likewise.
        matches: likewise.
    """
    functional = torch.nn.functional
    width = model["words"].shape[1]

    def normalise(x: Any) -> Any:
        return functional.rms_norm(x, (width,), eps=1e-6)

    def layer(x: Any, names: str, mask: Any) -> Any:
        batch, length, _ = x.shape
        cosine, sine = (torch.from_numpy(part) for part in rotations(length, width // HEADS))
        mixed = (normalise(x) @ model[f"{names}.mix"].T).view(batch, length, 3, HEADS, width // HEADS)
        query, key, value = mixed.permute(2, 0, 3, 1, 4)

        def rotate(x: Any) -> Any:
            first, second = x.chunk(2, dim=-1)
            return torch.cat([first * cosine - second * sine, first * sine + second * cosine], dim=-1)

        attended = functional.scaled_dot_product_attention(rotate(query), rotate(key), value, attn_mask=mask)
        x = x + attended.transpose(1, 2).reshape(batch, length, width) @ model[f"{names}.out"].T
        return x + functional.relu(normalise(x) @ model[f"{names}.up"].T) @ model[f"{names}.down"].T

    words = functional.embedding(numbers, model["words"]) + functional.embedding(columns, model["columns"])
    words = words + functional.embedding(matches, model["match"])
    same = (segments[:, :, None] == segments[:, None, :])[:, None]
    pieces = normalise(layer(words, "layers.0", same))
    focus = (pieces @ model["focus"].T).transpose(1, 2)  # (batch, heads, length)
    count = int(segments.max()) + 1
    belongs = torch.arange(count)[None, :, None] == segments[:, None, :]  # (batch, segments, length)
    share = focus[:, :, None, :].masked_fill(~belongs[:, None], -1e9).softmax(dim=-1)
    x = (share @ pieces[:, None]).transpose(1, 2).reshape(len(numbers), count, HEADS * width) @ model["sum"].T
    exists = belongs.any(dim=-1)[:, None, None, :]
    for number in range(1, sum(name.endswith(".mix") for name in model)):
        x = layer(x, f"layers.{number}", exists)
    shared = normalise(x) @ model["shared"].T
    shared = shared.gather(1, segments.clamp(min=0)[:, :, None].expand(-1, -1, width))
    scores = functional.relu(pieces @ model["own"].T + shared) @ model["score"]
    return scores.masked_fill(segments < 0, -1e9)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command's options.

    Args:
        arguments: those of the command line if not given.
    """
    parser = argparse.ArgumentParser(description="Train a small transformer on decisions.")
    parser.add_argument("data", type=Path, nargs="+", help="files of `drift-agents export-choices --prompt ranked`")
    parser.add_argument("--out", type=Path, default=Path("weights.npz"), help="the file of the weights")
    parser.add_argument("--minutes", type=float, default=40.0, help="CPU time of the training")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=5)
    parser.add_argument("--pieces", type=int, default=4096, help="pieces of a batch")
    parser.add_argument("--rate", type=float, default=1.5e-3, help="the highest learning rate")
    parser.add_argument("--skip", help="leave out decisions whose messages have this regular expression")
    parser.add_argument("--start", type=Path, help="weights to start from, with their vocabulary")
    parser.add_argument("--share", type=float, default=0.05, help="of the prompts that have a phrase of the vocabulary")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> float:
    """Train, and print the loss.

    Args:
        arguments: those of the command line if not given.

    Returns:
        The share of right answers among decisions that were not trained on.

    Raises:
        SystemExit: if a file cannot be used, or a package is missing.
    """
    options = parse(arguments)
    try:
        import torch
    except ImportError as error:
        raise SystemExit(f"{MISSING} ({error})") from error
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    rng = np.random.default_rng(options.seed)
    choices = [choice for path in options.data for choice in read_choices(path, options.skip)]
    choices = [choices[index] for index in rng.permutation(len(choices)).tolist()]
    kept = max(1, round(HELD_BACK * len(choices)))
    held, choices = choices[:kept], choices[kept:]
    if not choices:
        raise SystemExit("there are too few decisions")
    started = None
    if options.start is None:
        sample = [choice.text for choice in choices[:1000]]
        vocabulary = Vocabulary(learn_vocabulary(sample, options.share))
    else:
        with np.load(options.start, allow_pickle=False) as file:
            started = {name: file[name] for name in file.files}
        vocabulary = Vocabulary(json.loads(started.pop("vocabulary").tobytes().decode("utf-8")))
    model = make_model(torch, len(vocabulary), options.width, options.layers)
    if started is not None:
        for name, value in model.items():  # parameters that the file does not have begin at zero
            value.data = torch.from_numpy(started[name].astype(np.float32)) if name in started else value.data * 0
    size = sum(value.numel() for value in model.values())
    lengths = [len(vocabulary.encode(choice.text).numbers) for choice in choices[:500]]
    print(f"{len(choices)} decisions, {len(vocabulary)} words and phrases, {np.mean(lengths):.0f} pieces a prompt")
    print(f"{size} parameters", flush=True)
    optimizer = torch.optim.AdamW(model.values(), lr=options.rate, betas=(0.9, 0.98), weight_decay=0.01)
    begin, told, step, seen, losses = time.process_time(), 0.0, 0, 0, []
    for *read, right in make_batches(choices, vocabulary, options.pieces, rng):
        spent = (time.process_time() - begin) / 60 / options.minutes
        if spent >= 1:
            break
        step, seen = step + 1, seen + len(right)
        for group in optimizer.param_groups:  # warm-up, then a cosine down to a hundredth
            group["lr"] = options.rate * min(step / 200, 0.01 + 0.99 * (0.5 + 0.5 * np.cos(np.pi * spent)))
        scores = score_pieces(torch, model, *map(torch.from_numpy, read))
        best = scores.masked_fill(~torch.from_numpy(right), -1e9).logsumexp(dim=1)
        loss = (scores.logsumexp(dim=1) - best).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.values(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if spent - told >= 0.02:
            told = spent
            print(f"{spent:4.0%} step {step}, {seen} decisions, loss {np.mean(losses[-100:]):.3f}", flush=True)
            save(model, vocabulary, options.out)
    save(model, vocabulary, options.out)
    share = accuracy(held, options.out)
    print(f"{share:.1%} of {len(held)} other decisions are the same")
    return share


def accuracy(choices: Sequence[Choice], path: Path) -> float:
    """The share of decisions that saved weights take as well.

    Args:
        choices: decisions.
        path: the weights.
    """
    reader = Reader.load(path)
    return float(np.mean([reader.answer(choice.text) == choice.action for choice in choices[:1000]]))


def save(model: dict[str, Any], vocabulary: Vocabulary, path: Path) -> None:
    """Write the weights in half precision, with the vocabulary.

    Args:
        model: the parameters.
        vocabulary: the numbers of words.
        path: the file.
    """
    arrays = {name: value.detach().numpy().astype(np.float16) for name, value in model.items()}
    words = json.dumps(vocabulary.entries, ensure_ascii=False).encode("utf-8")
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, vocabulary=np.frombuffer(words, np.uint8), **arrays)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
