"""The learned reader: messages as lists of words, what the network reads of them, and the policy.

Two things would be lost on a network that reads lines apart from each other and knows a fixed list of words, so that
they are said here. A listing's code becomes a number, and stands with the title and the price that the page shows below
it. Where messages name a task, every line and every action begins with how many words it has in common with it, and how
many not: the feature "exact match" of Chen et al. (2017), "Reading Wikipedia to answer open-domain questions",
section 3.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import NamedTuple

import numpy as np

from drift_agents.errors import ArgumentError
from drift_agents.llm.base import RuleModel
from drift_agents.policy.base import Reply
from drift_agents.policy.brief import BRIEF, unfold_alternatives
from drift_agents.policy.learned_reader.network import Array, Network, load_weights
from drift_agents.policy.llm import LanguageModelPolicy
from drift_agents.prompt.view import PromptView
from drift_envs.checks import check_interval

SUFFIX = ".npz"
DEFAULT = f"first{SUFFIX}"
"""The weights that come with the package, trained on lakes."""


class LearnedReader:
    """A small trained network that reads the messages to a language model, in the format `brief`.

    It was trained on decisions of a rule-based policy on lakes that no experiment plays
    (docs/research/readers.md). It has never seen messages of other environments.

    Args:
        weights: the path of an `.npz` file with other weights.
        temperature: an action is drawn with its probability at this temperature, since a network that always takes the
            likeliest one walks in circles where it is undecided; 0 takes the likeliest.

    Raises:
        ArgumentError: if the file cannot be used, or the temperature is no number from 0 on.

    Example:
        >>> LearnedReader(weights="second")
        Traceback (most recent call last):
        drift_envs.errors.ArgumentError: `weights` should be the path of an .npz file. Received 'second'
    """

    name = "learned_reader"
    needs_history = True

    def __init__(self, *, weights: str | None = None, temperature: float = 1.0) -> None:
        self._temperature = check_interval("temperature", temperature, "[0, inf)")
        if weights is not None and not (isinstance(weights, str) and weights.endswith(SUFFIX)):
            raise ArgumentError(f"`weights` should be the path of an {SUFFIX} file. Received {weights!r}")
        self._network = load_network(weights)
        self._renderer = LanguageModelPolicy(RuleModel({}), format=BRIEF)  # renders, and is not called

    def decide(self, view: PromptView, rng: np.random.Generator) -> Reply:
        """Choose an action."""
        if len(view.actions) == 1:
            return Reply(view.actions[0])
        text = "\n".join(message.content for message in self._renderer.messages(view))
        scores = self._network.score(*read_messages(text, view.actions))
        return Reply(view.actions[choose(scores, self._temperature, rng)])


@lru_cache(maxsize=8)
def load_network(weights: str | None) -> Network:
    """A network by the file of its weights.

    Args:
        weights: a path; `None` for `DEFAULT`.

    Raises:
        ArgumentError: if the file cannot be used.
    """
    if weights is None:
        with as_file(files("drift_agents.policy.learned_reader") / "weights" / DEFAULT) as path:
            return Network(load_weights(path))
    return Network(load_weights(Path(weights)))


def choose(scores: Array, temperature: float, rng: np.random.Generator) -> int:
    """The place of an action, drawn from the softmax of the scores.

    Args:
        scores: of each action, of the shape (actions,).
        temperature: divides the scores; with 0 the highest one is taken, of equal ones the first.

    Example:
        >>> scores = np.array([0.0, 3.0], np.float32)
        >>> [choose(scores, 1.0, rng) for rng in map(np.random.default_rng, range(3))], choose(scores, 0, None)
        ([1, 1, 1], 1)
    """
    if not temperature:
        return int(scores.argmax())
    shares = np.exp((scores.astype(np.float64) - scores.max()) / temperature)
    return int(rng.choice(len(shares), p=shares / shares.sum()))


_LIST = re.compile(r"^(?P<head>[^:\[]*): (?P<entries>[^;]*)$")
_COMMA = re.compile(r", (?!\d+\])")
_HEAD = re.compile(r"(?:^|\. )[A-Z][a-z ]*: ")
_SENTENCE = re.compile(r"(?<=\.) (?=[A-Z])")
_WORD = re.compile(r"(?P<place>\[\d+,|\d+\])|(?P<number>\d+)|(?P<word>[a-z']+)|(?P<sign>[^\s.,;:])")
NUMBERS = 30
"""Larger numbers are read as `MANY`, as are times."""
MANY = "#"
_ACTIONS = "Possible actions"
_TIMES = ("at", "step")


def split_text(text: str) -> Iterator[str]:
    """Messages as short lines: a sentence, or an entry of a list after what stands before the list.

    Example:
        >>> list(split_text("Go on. Stop." + chr(10) + "Actions: 0 left, 1 right"))
        ['Go on.', 'Stop.', 'Actions: 0 left', 'Actions: 1 right']
        >>> list(split_text("- old, score 0: [1, 2] at 4; [3, 4] at 2"))
        ['- old, score 0: [1, 2] at 4', '- old, score 0: [3, 4] at 2']
        >>> list(split_text("In your hand: nothing. Visited: bed 1 | shelf {1-2}."))
        ['In your hand: nothing.', 'Visited: bed 1.', 'Visited: shelf 1.', 'Visited: shelf 2.']
    """
    for line in text.split("\n"):
        if line.startswith("- "):
            head, mark, entries = line.partition(": ")
            yield from (f"{head}{mark}{entry}" for entry in entries.split("; "))
        elif line.startswith(_ACTIONS):  # they are the candidates
            continue
        elif len(_HEAD.findall(line)) > 1:
            yield from (entry for sentence in _SENTENCE.split(line) for entry in _split_list(sentence))
        elif _LIST.match(line):
            yield from _split_list(line)
        elif line:
            yield from _SENTENCE.split(line)


def _split_list(line: str) -> Iterator[str]:
    """The entries of a list, each after what stands before the list; the line itself if it is no list."""
    found = _LIST.match(line)
    if found is None:
        yield line
        return
    for entry in _COMMA.split(found["entries"]):
        folded, stop = (entry[:-1], ".") if entry.endswith(".") else (entry, "")
        unfolded = unfold_alternatives(folded) if "|" in entry or "{" in entry else [folded]
        yield from (f"{found['head']}: {one}{stop}" for one in unfolded)


@lru_cache(maxsize=65536)
def read_words(line: str) -> tuple[str, ...]:
    """A line as words, in lower case, without stops; numbers above `NUMBERS`, and times, are all one word.

    Args:
        line: one of `split_text`.

    Example:
        >>> read_words("- 2 led to [3, 4]. Last at 12. Score 1, in 40 more steps.")
        ('-', '2', 'led', 'to', '[3,', '4]', 'last', 'at', '#', 'score', '1', 'in', '#', 'more', 'steps')
    """
    words: list[str] = []
    for match in _WORD.finditer(line.lower()):
        is_time = bool(words) and words[-1] in _TIMES
        hidden = match["number"] is not None and (is_time or int(match["number"]) > NUMBERS)
        words.append(MANY if hidden else match[0])
    return tuple(words)


Words = tuple[str, ...]

_TASK = re.compile(r"^(?:Instruction|Task): (.*)$", re.MULTILINE)
_CODE = re.compile(r"\b(?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]{10}\b", re.IGNORECASE)
_CLICK = re.compile(rf"click\[({_CODE.pattern})\]", re.IGNORECASE)
_PLAIN = re.compile(r"[a-z']+|\d+")
_COMMON = frozenset(
    ["a", "an", "and", "at", "for", "from", "in", "is", "it", "me", "of", "on", "than", "the", "to", "with"]
)
"""Words that say nothing about what is wanted."""
_MOST = 9
"""Larger counts are read as this one."""


class ReadMessages(NamedTuple):
    """What the network reads.

    Args:
        lines: the words of each line.
        candidates: the words of each admissible action, in the order of the actions.
    """

    lines: tuple[Words, ...]
    candidates: tuple[Words, ...]


def read_messages(text: str, actions: Sequence[str]) -> ReadMessages:
    """Messages and admissible actions as words.

    Example:
        >>> read = read_messages("Task: put an egg in bed" + chr(10) + "You see egg 1.", ["take egg 1", "look"])
        >>> read.lines
        (('task', 'put', 'an', 'egg', 'in', 'bed'), ('has1', 'lacks3', 'you', 'see', 'egg', '1'))
        >>> read.candidates
        (('has1', 'lacks2', 'take', 'egg', '1'), ('has0', 'lacks1', 'look'))
    """
    text, names = _name_listings(text, actions)
    found = _TASK.search(text)
    task = frozenset(_PLAIN.findall(found[1].lower())) - _COMMON if found else None
    return ReadMessages(
        tuple(_read(line, None if _TASK.match(line) else task) for line in split_text(text)),
        tuple(_read(name, task) for name in names),
    )


@lru_cache(maxsize=65536)
def _read(line: str, task: frozenset[str] | None) -> Words:
    words = read_words(line)
    if task is None:
        return words
    own = frozenset(_PLAIN.findall(line.lower())) - _COMMON
    return (f"has{min(len(own & task), _MOST)}", f"lacks{min(len(own - task), _MOST)}", *words)


def _name_listings(text: str, actions: Sequence[str]) -> tuple[str, list[str]]:
    """The text with numbers for codes, and the actions with what the page shows below their codes."""
    codes = [found[1].lower() for action in actions if (found := _CLICK.fullmatch(action))]
    if "click[" not in text or not _CODE.search(text):
        return text, list(actions)
    numbers = {code: f"code {number}" for number, code in enumerate(dict.fromkeys(codes), 1)}
    lines = text.split("\n")
    shown = {
        line.lower(): " ".join(lines[row + 1 : row + 3]) for row, line in enumerate(lines) if _CODE.fullmatch(line)
    }

    def title(found: re.Match[str]) -> str:
        code = found[0].lower()
        return f"{numbers[code]} {shown.get(code, '')}".strip()

    names = [_CODE.sub(title, action) if _CLICK.fullmatch(action) else action for action in actions]
    return _CODE.sub(lambda found: numbers.get(found[0].lower(), "code 0"), text), names
