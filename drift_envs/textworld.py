"""Games of TextWorld, ALFWorld's among them, as environments that drift; needs the extra `textworld`.

* `TextWorldGame` - one game after another, with knobs: which game, new words, lost commands
* `TEXTWORLD_KNOBS` - its knob table

The games are files that TextWorld has made (`tw-make`, or `textworld.make`), or ALFWorld's `game.tw-pddl`.
"""

from __future__ import annotations

import os
import re
import string
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar

import gymnasium as gym
from gymnasium import spaces

from drift_envs.errors import ArgumentError, KnobError, MissingDependencyError, StateError
from drift_envs.knobs import FrozenMapping, Knob, KnobTable
from drift_envs.tunable import KnobAttribute, TunableEnv

MAX_LENGTH = 65_536
"""No text is longer."""

MAX_ACTION = 200
"""No command is longer."""

MOST_GAMES = 10_000

_WORD = re.compile(r"[a-z]+")


def _parse_words(value: Mapping[str, Any]) -> FrozenMapping:
    """Words of the game, and the new words for them.

    Raises:
        KnobError: if one is no word of lower-case letters, or two words have one new word.
    """
    for word in (*value, *value.values()):
        if not isinstance(word, str) or not _WORD.fullmatch(word):
            raise KnobError(f"`words` should map words of lower-case letters. Received {word!r}")
    if len(set(value.values())) < len(value):
        raise KnobError(f"`words` should give two words two new ones. Received {dict(value)!r}")
    return FrozenMapping(value)


TEXTWORLD_KNOBS = KnobTable(
    (
        Knob("game", 0, (0, MOST_GAMES), "position of the game in the list; counted on from the end again", "integer"),
        Knob("words", FrozenMapping(), None, "word of the game: its new word", "mapping", None, _parse_words),
        Knob("transient", 0.0, (0.0, 1.0), "probability that a command is lost, once"),
    )
)


def _load_textworld() -> Any:
    try:
        return import_module("textworld")
    except ImportError as error:
        raise MissingDependencyError(
            '`textworld` is not installed, run `pip install "drift-envs[textworld]"`'
        ) from error


class TextWorldGame(TunableEnv, gym.Env[str, str]):
    """Games of TextWorld as an environment; `DriftWrapper` drifts it on a schedule.

    | knob | default | bounds | meaning |
    |---|---|---|---|
    | `game` | 0 | 0 to 10000 | position of the game in the list; counted on from the end again |
    | `words` | {} | | word of the game: its new word, in texts and in commands |
    | `transient` | 0.0 | 0 to 1 | probability that a command is lost |

    `game` takes effect at a reset. The reward is what the score has gained, as a share of the highest one.

    | info | meaning |
    |---|---|
    | `task` | the objective |
    | `actions` | the admissible commands |
    | `score` | the score, as a share of the highest one |
    | `won` | whether the game is won |

    Args:
        games: paths of the games.
        render_mode: `ansi` or `None`.

    Raises:
        ArgumentError: if a game is missing.
        MissingDependencyError: if TextWorld is not installed.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 2}  # noqa: RUF012 - as Gymnasium declares it
    knobs: ClassVar[KnobTable] = TEXTWORLD_KNOBS
    game = KnobAttribute()
    words = KnobAttribute()
    transient = KnobAttribute()
    _game: int
    _words: Mapping[str, str]
    _transient: float

    def __init__(self, games: Sequence[str | os.PathLike[str]], render_mode: str | None = None) -> None:
        textworld = _load_textworld()
        self._games = [os.fspath(game) for game in games]
        missing = [game for game in self._games if not os.path.isfile(game)]
        if missing or not self._games:
            raise ArgumentError(f"`games` should be files of games. Received {missing or list(games)!r}")
        if render_mode not in (None, "ansi"):
            raise ArgumentError(f"`render_mode` should be ansi or None. Received {render_mode!r}")
        self.render_mode = render_mode
        self._textworld = textworld
        self._wanted = textworld.EnvInfos(
            admissible_commands=True, won=True, lost=True, score=True, max_score=True, objective=True, feedback=True
        )
        for name, value in TEXTWORLD_KNOBS.defaults().items():
            setattr(self, f"_{name}", value)
        self._env: Any = None
        self._path = ""
        self._history: list[str] | None = None
        """The commands of the episode, as the game has got them; `None` before the first one."""
        self._state: Any = None
        self._text = ""
        charset = string.printable + "’‘“”–—é"
        self.observation_space = spaces.Text(MAX_LENGTH, min_length=0, charset=charset)
        self.action_space = spaces.Text(MAX_ACTION, min_length=0, charset=charset)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start the present game.

        Args:
            seed: seeds the environment's generator, of lost commands.
            options: none.

        Returns:
            The first text, and `info`.

        Raises:
            ArgumentError: if there are options.
        """
        if options:
            raise ArgumentError(f"`options` should be empty. Received {options!r}")
        super().reset(seed=seed)
        path = self._games[self._game % len(self._games)]
        if path != self._path:
            self.close()
        self._path, self._history = path, []
        self._start()
        return self._show(self._state.feedback), self._info()

    def _start(self) -> None:
        """Bring the game to the end of the history; games answer alike whenever they get the same commands."""
        if self._env is None:
            self._env = self._textworld.start(self._path, self._wanted)
        self._state = self._env.reset()
        for command in self._history or ():
            self._state, *_ = self._env.step(command)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Execute a command.

        Args:
            action: the command.

        Returns:
            The answer, the gain of the score, whether the game is won or lost, `False`, and `info`.

        Raises:
            ArgumentError: the action is not a string.
            StateError: before the first `reset`.
        """
        if not isinstance(action, str):
            raise ArgumentError(f"`action` should be a text. Received {type(action).__name__}")
        if self._history is None:
            raise StateError("`step` was called before `reset`; call `reset` first")
        if self._state is None:  # a copy, or a restored state
            self._start()
        if self._transient and self.np_random.random() < self._transient:
            return self._text, 0.0, False, False, self._info()
        before = self._score()
        command = self._translate(action, {new: old for old, new in self._words.items()})
        self._history.append(command)
        self._state, _, over = self._env.step(command)
        return self._show(self._state.feedback), self._score() - before, bool(over), False, self._info()

    def _show(self, text: str) -> str:
        shown = self._translate(text, self._words)
        allowed = self.observation_space.character_set  # type: ignore[attr-defined]
        self._text = "".join(letter if letter in allowed else "?" for letter in shown)[:MAX_LENGTH]
        return self._text

    @staticmethod
    def _translate(text: str, words: Mapping[str, str]) -> str:
        """Other words in a text; a capital stays one."""
        if not words:
            return text

        def other(found: re.Match[str]) -> str:
            new = words.get(found[0].lower(), found[0])
            return new.capitalize() if found[0][0].isupper() and new != found[0] else new

        return re.sub(r"[A-Za-z]+", other, text)

    def _score(self) -> float:
        return float(self._state.score or 0) / max(float(self._state.max_score or 1), 1.0)

    def _info(self) -> dict[str, Any]:
        state, words = self._state, self._words
        return {
            "task": self._translate(" ".join((state.objective or "").split()), words),
            "actions": [self._translate(command, words) for command in state.admissible_commands],
            "score": self._score(),
            "won": bool(state.won),
        }

    def save_state(self) -> dict[str, Any]:
        """The state of the episode: the game, and the commands that led there."""
        history = None if self._history is None else list(self._history)
        return {"path": self._path, "history": history, "text": self._text}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore the state of an episode.

        Args:
            state: from `save_state`.
        """
        if state["path"] != self._path:
            self.close()
        self._path, self._text = state["path"], state["text"]
        self._history = None if state["history"] is None else list(state["history"])
        self._state = None

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the running game, which a copy starts again."""
        return {**super().__getstate__(), "_env": None, "_state": None, "_textworld": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Load TextWorld again."""
        self.__dict__.update(state)
        self._textworld = _load_textworld()

    def render(self) -> str | None:
        """The last text."""
        return self._text if self.render_mode == "ansi" else None

    def close(self) -> None:
        """End the game."""
        if self._env is not None:
            self._env.close()
            self._env = self._state = None
