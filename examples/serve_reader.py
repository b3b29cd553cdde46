"""Serve the learned reader: a small transformer that takes the messages to a language model.

    python examples/serve_reader.py results/learned_reader/lake.npz --port 8012
    drift-agents run examples/learned_reader.yaml --model learned-reader --base-url http://127.0.0.1:8012/v1

* `read_pieces` - a text as pieces, each with the text of the answer that begins there
* `Vocabulary` - pieces and phrases as numbers
* `Reader` - the transformer, in NumPy
* `make_server` - the chat-completions protocol on a loopback address

The model gets the messages and nothing else; it is not told which actions are admissible. It is an attention-sum
reader (Kadlec et al. 2016, "Text understanding with the attention sum reader network"): an encoder scores every
position of the prompt, and the answer is the text whose positions have the highest sum of probabilities. Words that
are not in the vocabulary are numbered in the order in which a prompt shows them (Hermann et al. 2015, "Teaching
machines to read and comprehend"), so that an item's number can be followed through the prompt. Of every word it is said
whether the goal has it too (the feature "exact match" of Chen et al. 2017, "Reading Wikipedia to answer open-domain
questions").
`examples/train_reader.py` trains it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # several threads take longer for matrices of this size
import numpy as np

NAME = "learned-reader"
"""The model's name at the server."""
FORM = "\n\nEnd your answer with: <action>"
"""What begins the description of the answer's form, which is not read: it lists the admissible actions."""
HEADS = 4
UNKNOWN = 96
"""Numbers for words that are not in the vocabulary; further ones share the last."""
COLUMNS = 48
"""Places within a segment; further ones share the last."""
SEPARATOR = "\x1f"
"""Between the pieces of a phrase."""

_PIECE = re.compile(
    r"(?P<action>(?:click|search)\[)|(?P<place>\[\d+, \d+\])|(?P<number>\d+(?:\.\d+)?(?![a-z0-9]))"
    r"|(?P<name>[a-z]*\d[a-z0-9]*)|(?P<word>[a-z][a-z']*)|(?P<sign>\S)",
    re.IGNORECASE,
)


_GOAL = re.compile(r"^(?:Goal|Instruction): (.*)", re.MULTILINE)
"""The goal; the last one counts, which is the instruction in the shop."""


class Piece(NamedTuple):
    """A part of a text.

    Args:
        text: in lower case; of a number above 99 its first two digits count.
        answer: the action that begins here, or the part itself.
        is_plain: whether it may be part of a phrase.
        segment: the number of its line, or of its element of a list.
    """

    text: str
    answer: str
    is_plain: bool
    segment: int


def read_pieces(text: str) -> list[Piece]:
    """A text as pieces: words, signs, numbers, positions such as `[1, 2]`, and the beginnings of actions.

    A segment is a line, or an element of a list in a line: it begins at a number or an action behind a comma.

    Args:
        text: the messages.

    Example:
        >>> [piece.text for piece in read_pieces("In [1, 2] action click[Buy now] at step 1374")]
        ['in', '[1, 2]', 'action', 'click[', 'buy', 'now', ']', 'at', 'step', '1300']
        >>> [piece.answer for piece in read_pieces("click[Buy now]")]
        ['click[Buy now]', 'Buy', 'now', ']']
        >>> [piece.segment for piece in read_pieces("0 left, 1 right")]
        [0, 0, 0, 1, 1]
    """
    pieces: list[Piece] = []
    segment = checked = action_end = 0
    has_comma = False
    for match in _PIECE.finditer(text):
        kind, found = str(match.lastgroup), match[0]
        inside = match.start() < action_end
        if "\n" in text[checked : match.start()] or (has_comma and kind in ("action", "number") and not inside):
            segment += 1
        checked = match.start()
        answer = found
        if kind == "action":
            end = text.find("]", match.end())
            action_end = end + 1 if end >= 0 else match.end()
            answer = text[match.start() : action_end]
        if kind == "number" and float(found) >= 100:
            whole = found.partition(".")[0]
            found = whole[:2] + "0" * (len(whole) - 2)
        is_plain = kind in ("word", "sign") and not inside
        has_comma = found == "," or (has_comma and found == '"')
        pieces.append(Piece(found.lower(), answer, is_plain, segment))
    return pieces


class EncodedText(NamedTuple):
    """What the model reads.

    Args:
        numbers: of each piece or phrase.
        segments: of each, from 0.
        columns: its place within the segment.
        matches: 1 where the goal has the same piece, else 0.
        answers: the answer that begins there.
    """

    numbers: list[int]
    segments: list[int]
    columns: list[int]
    matches: list[int]
    answers: list[str]


class Vocabulary:
    """Pieces and phrases as numbers.

    Args:
        entries: phrases and single pieces; the pieces of a phrase are joined by `SEPARATOR`.

    Example:
        >>> words = Vocabulary(["led" + SEPARATOR + "to", "led"])
        >>> read = words.encode("led to [1, 2] led")
        >>> read.answers, read.numbers
        (['led', '[1, 2]', 'led'], [0, 2, 1])
    """

    def __init__(self, entries: Sequence[str]) -> None:
        self.entries = list(entries)
        self._numbers = {entry: number for number, entry in enumerate(self.entries)}
        self._most = max((entry.count(SEPARATOR) + 1 for entry in self.entries), default=1)

    def __len__(self) -> int:
        """How many numbers there are, those of unknown words included."""
        return len(self.entries) + UNKNOWN

    def encode(self, text: str, rng: np.random.Generator | None = None) -> EncodedText:
        """A text as numbers; the longest phrase that fits is taken at every place.

        Args:
            text: the messages.
            rng: draws the numbers of unknown words, for training; without it they are those of the order.
        """
        pieces = read_pieces(text)
        goals = _GOAL.findall(text)
        goal = {piece.text for piece in read_pieces(goals[-1])} if goals else set()
        read = EncodedText([], [], [], [], [])
        unknown: dict[str, int] = {}
        order = range(UNKNOWN) if rng is None else rng.permutation(UNKNOWN).tolist()
        place = 0
        while place < len(pieces):
            piece = pieces[place]
            length, number = self._find(pieces, place)
            if number is None:
                nth = unknown.setdefault(piece.text, len(unknown))
                number = len(self.entries) + order[min(nth, UNKNOWN - 1)]
            is_next = bool(read.segments) and read.segments[-1] == piece.segment
            read.columns.append(min(read.columns[-1] + 1, COLUMNS - 1) if is_next else 0)
            read.numbers.append(number)
            read.segments.append(piece.segment)
            read.matches.append(int(all(one.text in goal for one in pieces[place : place + length])))
            read.answers.append(piece.answer)
            place += length
        return read

    def _find(self, pieces: Sequence[Piece], place: int) -> tuple[int, int | None]:
        """The length of the longest phrase at a place, and its number."""
        first = pieces[place]
        if first.is_plain:
            phrase, found = first.text, (1, self._numbers.get(first.text))
            for length, piece in enumerate(pieces[place + 1 : place + self._most], 2):
                if not piece.is_plain or piece.segment != first.segment:
                    break
                phrase += SEPARATOR + piece.text
                found = (length, self._numbers[phrase]) if phrase in self._numbers else found
            return found
        return 1, self._numbers.get(first.text)


class Reader:
    """The transformer, with normalisation first and rotary positions.

    A first layer reads every segment for itself, four heads sum it up as one vector, further layers relate the
    segments to each other, and every piece is scored by its own vector and that of its segment.

    Args:
        weights: arrays by their names, as `examples/train_reader.py` writes them.
        vocabulary: the numbers of words.
    """

    def __init__(self, weights: Mapping[str, np.ndarray], vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._weights = {name: np.asarray(value, np.float32) for name, value in weights.items()}
        self._layers = sum(name.endswith(".mix") for name in weights)

    @classmethod
    def load(cls, path: Path) -> Reader:
        """Read a file of `examples/train_reader.py`.

        Args:
            path: the file.
        """
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        entries = json.loads(arrays.pop("vocabulary").tobytes().decode("utf-8"))
        return cls(arrays, Vocabulary(entries))

    def scores(self, text: EncodedText) -> np.ndarray:
        """A score for every piece, as float32 of the shape (pieces,).

        Args:
            text: the prompt.
        """
        weights = self._weights
        segments = np.array(text.segments)
        same = np.where(segments[:, None] == segments, np.float32(0), np.float32(-1e9))
        pieces = self._layer(self._embed(text), 0, same)
        pieces = _normalise(pieces)
        focus = pieces @ weights["focus"].T  # (pieces, heads)
        belongs = np.where(np.arange(segments[-1] + 1)[:, None] == segments, np.float32(0), np.float32(-1e9))
        share = _softmax(focus.T[:, None, :] + belongs)  # (heads, segments, pieces)
        x = (share @ pieces).transpose(1, 0, 2).reshape(share.shape[1], -1) @ weights["sum"].T
        for layer in range(1, self._layers):
            x = self._layer(x, layer, np.float32(0))
        hidden = pieces @ weights["own"].T + (_normalise(x) @ weights["shared"].T)[segments]
        scored: np.ndarray = np.maximum(hidden, 0) @ weights["score"]
        return scored

    def _embed(self, text: EncodedText) -> np.ndarray:
        weights = self._weights
        embedded: np.ndarray = (
            weights["words"][text.numbers] + weights["columns"][text.columns] + weights["match"][text.matches]
        )
        return embedded

    def _layer(self, x: np.ndarray, layer: int, mask: Any) -> np.ndarray:
        names = f"layers.{layer}"
        size = x.shape[1] // HEADS
        turn = rotations(len(x), size)
        mixed = _normalise(x) @ self._weights[f"{names}.mix"].T
        parts = mixed.reshape(len(x), 3, HEADS, size).transpose(1, 2, 0, 3)
        query, key = _rotate(parts[0], turn), _rotate(parts[1], turn)
        share = _softmax(query @ key.transpose(0, 2, 1) / np.sqrt(np.float32(size)) + mask)
        x = x + (share @ parts[2]).transpose(1, 0, 2).reshape(x.shape) @ self._weights[f"{names}.out"].T
        hidden = np.maximum(_normalise(x) @ self._weights[f"{names}.up"].T, 0)
        return np.asarray(x + hidden @ self._weights[f"{names}.down"].T)

    def answer(self, text: str) -> str:
        """The text whose pieces have the highest sum of probabilities; of equal ones the first.

        Args:
            text: the messages.
        """
        encoded = self.vocabulary.encode(text)
        scores = self.scores(encoded).astype(np.float64)
        sums: dict[str, float] = {}
        for answer, weight in zip(encoded.answers, np.exp(scores - scores.max()), strict=True):
            sums[answer] = sums.get(answer, 0.0) + float(weight)
        return max(sums, key=lambda answer: sums[answer])


def rotations(length: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and sines of rotary positions, each of the shape (length, size / 2).

    Args:
        length: the number of places.
        size: the size of a head.
    """
    angles = np.arange(length)[:, None] * 100.0 ** -(np.arange(0, size, 2) / size)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def _rotate(x: np.ndarray, turn: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    first, second = np.split(x, 2, axis=-1)
    return np.concatenate([first * turn[0] - second * turn[1], first * turn[1] + second * turn[0]], axis=-1)


def _normalise(x: np.ndarray) -> np.ndarray:
    return np.asarray(x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + np.float32(1e-6)))


def _softmax(x: np.ndarray) -> np.ndarray:
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def join_messages(messages: Sequence[dict[str, str]]) -> str:
    """The text that the model reads: the contents of the messages without the description of the answer's form.

    Args:
        messages: as in a request of the protocol.
    """
    return "\n".join(message["content"].partition(FORM)[0] for message in messages)


def make_server(reader: Reader, port: int = 0) -> ThreadingHTTPServer:
    """A server of the chat-completions protocol at 127.0.0.1.

    It refuses constrained forms of the answer, so that nothing but the messages decides; the answer has the form
    `text` of `drift_agents.llm.answer_format`.

    Args:
        reader: the model.
        port: the port; 0 for a free one.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            """List the model."""
            self._send(200, {"object": "list", "data": [{"id": NAME, "object": "model", "owned_by": "drift-envs"}]})

        def do_POST(self) -> None:
            """Answer a request."""
            try:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if "response_format" in body:
                    self._send(400, {"error": {"message": "response_format is not supported"}})
                    return
                text = join_messages(body["messages"])
            except (ValueError, KeyError, TypeError) as error:
                self._send(400, {"error": {"message": f"not a request of the protocol: {error!r}"}})
                return
            content = f"<action>{reader.answer(text)}</action>"
            message = {"role": "assistant", "content": content}
            self._send(
                200,
                {
                    "id": "reply",
                    "object": "chat.completion",
                    "created": 0,
                    "model": NAME,
                    "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                },
            )

        def _send(self, status: int, body: dict[str, Any]) -> None:
            data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Requests are not printed."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def main(arguments: list[str] | None = None) -> None:
    """Serve until Ctrl-C.

    Args:
        arguments: those of the command line if not given.
    """
    parser = argparse.ArgumentParser(description="Serve the learned reader at a loopback address.")
    parser.add_argument("weights", type=Path, help="a file of examples/train_reader.py")
    parser.add_argument("--port", type=int, default=8012)
    options = parser.parse_args(arguments)
    with make_server(Reader.load(options.weights), options.port) as server:
        print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)


if __name__ == "__main__":
    main()
