"""Facts about people that change: the environment, its knobs and its picture."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from drift_envs.checks import check_flag, check_integer
from drift_envs.envs.facts.world import (
    ASK,
    FACTS_KNOBS,
    FACTS_OF_A_WORLD,
    FATES,
    KINDS,
    MOST_WORLDS,
    NOTHING,
    PASS,
    WORDINGS,
    Counts,
    FactsEpisode,
    FactsModel,
    make_model,
)
from drift_envs.errors import ArgumentError
from drift_envs.knobs import KnobTable, Value
from drift_envs.registration import IDS, EnvParts
from drift_envs.show.drawing import draw_text, load_pygame, open_font, wrap_text
from drift_envs.tasks.invented_words import read_words
from drift_envs.tasks.recurring_tasks import (
    MOST_TASKS,
    CommandEnv,
    Conditions,
    NumberedTasks,
    TaskSequence,
    freeze_conditions,
    take_turns,
)

CHARACTERS = string.ascii_letters + string.digits + " \n" + "-:;,.'\"?[]{}"
"""Every character that an observation can have."""

MAX_LENGTH = 16_384
MAX_ACTION = 100


def _list_questions(world: int) -> range:
    return range(FACTS_OF_A_WORLD)


QUESTIONS = NumberedTasks("world", _list_questions, "question")  # a named function, since environments are pickled

_TASK = (
    "{} Answer with the value that holds today. `ask` tells it and costs {:g}; `pass` gives no answer. "
    "The highest score is 1."
)


class Facts(CommandEnv[int, FactsEpisode]):
    """An assistant hears statements over days, and answers a question a day.

    | action | meaning |
    |---|---|
    | a value, as `gemabi`, or `nothing` | the answer, which ends the day |
    | `ask` | verifies: the present value is told, at the cost `price` |
    | `pass` | no answer, which ends the day |

    The observation is a JSON object: `day`, `heard` (the sentences of this day), `asked` (how often), `question`;
    with `observation_mode="text"` it is a text. The first day in a world introduces all facts of the pool, and lasts
    until a step. The reward is 1 for the present value, else 0, minus the cost of asking; the right value is not shown
    after a wrong answer.

    Knobs, with defaults and bounds: `drift-envs list --env DriftFacts-v0`. Those of the kinds of change count the
    changes so far; each kind has facts of its own, among which its changes take turns.

    | info | meaning |
    |---|---|
    | `task` | the task in words |
    | `actions` | the values heard so far in alphabetical order, `nothing`, `ask` and `pass` |
    | `score` | the score |

    `world` takes effect at a reset; the other knobs act at once. `reset(options={"goal_index": i})` selects the
    fact that is asked about: `i` is 10,000 times the number of the world (0 to 1,000,000, each drawn from its
    number) plus the position of the fact in it; other numbers are refused. `day`, `since` (the numbers of changes
    on the day before) and `about` (the facts that are talked about) say what is heard, so that another instance has
    the same day.

    Args:
        render_mode: `human`, `rgb_array`, `ansi` or `None`.
        observation_mode: `state` or `text`.
        pool: the number of recurring questions; `None` asks about all facts of the world.
        order: `shuffled` (each question once in every round of the pool) or `fixed`.
        conditions: knob values, in temporal order, from which the pool is drawn.
        affected: whether facts come first that changes between the conditions hit, or those whose values stay the same.
        held_out: whether sentences have the wording that is held out for tests.

    Raises:
        ArgumentError: an argument breaks a rule.

    Example:
        >>> facts = Facts(pool=2)
        >>> facts.world = 7
        >>> state, info = facts.reset(seed=0)
        >>> info["task"][:50], info["actions"][-2:]
        ("Tell me Jonas's address. Answer with the value tha", ['ask', 'pass'])
        >>> facts.step("ask")[1]
        -0.1
    """

    knobs: ClassVar[KnobTable] = FACTS_KNOBS
    parts: ClassVar[EnvParts | None] = IDS["DriftFacts-v0"]
    window_title = "Facts"
    place_knob = "world"
    most_places = MOST_WORLDS
    observation_modes = ("text", "state")

    def __init__(
        self,
        render_mode: str | None = None,
        *,
        observation_mode: str = "state",
        pool: int | None = 8,
        order: str = "shuffled",
        conditions: Sequence[Mapping[str, Value]] = (),
        affected: bool = True,
        held_out: bool = False,
    ) -> None:
        self.held_out = check_flag("held_out", held_out)
        frozen = freeze_conditions(conditions, ("world", *KINDS))
        draw = partial(draw_questions, conditions=frozen, affected=check_flag("affected", affected))
        tasks = TaskSequence(pool, order, draw, QUESTIONS.numbers)
        super().__init__(render_mode, observation_mode, tasks, (MAX_LENGTH, MAX_ACTION), CHARACTERS)
        self._day, self._since = 0, None
        self._today: tuple[int, Counts | None, tuple[int, ...] | None] = (0, None, None)
        self._values: frozenset[str] = frozenset()
        self._told_place: int | None = None
        self._is_unplayed = False

    _since: Counts | None
    _model: FactsModel | None = None
    _about: tuple[int, ...] = ()

    @property
    def task(self) -> int:
        """The number of the fact that is asked about. For evaluators."""
        return self.episode.number

    def task_options(self) -> dict[str, Any] | None:
        """The reset options with which another instance has the same day."""
        return (
            None
            if self.goal_index is None
            else {"goal_index": self.goal_index, "day": self._today[0], "since": self._today[1], "about": self._about}
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start a day.

        Args:
            seed: seeds the environment's generator, draws a new pool of questions and, unless the knob `world` says
                which, a new world, whose first day it is.
            options: `goal_index` is the number of the question; `day`, `since` and `about` say what is heard.

        Returns:
            The observation and `info`.

        Raises:
            ArgumentError: no question has this number, or there is no such option.
        """
        options = dict(options or {})
        starts = seed is not None and not self._keeps_tasks
        # A day which introduces the facts lasts until something is done: experiments seed before they play.
        is_again = self._is_unplayed and self._today[1] is None
        day = 0 if starts else self._today[0] if is_again else self._day
        is_first = starts or is_again or self.place != self._told_place
        since = None if is_first else self._since
        if "day" in options:
            day = check_integer("day", options.pop("day"), 0)
        if "since" in options:
            since = _check_since(options.pop("since"))
        about = _check_about(options.pop("about")) if "about" in options else None
        before = self._today, self._values
        self._today = day, since, about
        if since is None:
            self._values = frozenset()
        try:
            result = super().reset(seed=seed, options=options)
        except ArgumentError:
            self._today, self._values = before
            raise
        self._day, self._since, self._is_unplayed = day + 1, self.episode.model.counts, True
        self._told_place = self.place
        return result

    def _find_task(self, number: int) -> tuple[int, int]:
        return QUESTIONS.find(number)

    def _begin(self, place: int, task: int) -> FactsEpisode:
        model, (day, since, about) = self._make_model(place), self._today
        numbers = self._about = _facts_of(self._tasks.pool(place)) if about is None else about
        heard = model.news(day, since, numbers, self.held_out)
        if task not in numbers:
            heard = (*model.news(day, None, (task,), self.held_out)[:1], *heard)
        self._values |= _values_of(heard)
        wording = WORDINGS if self.held_out else (task + day) % WORDINGS
        return FactsEpisode(model, task, day, heard, model.question(task, wording))

    def _update(self, episode: FactsEpisode) -> None:
        episode.model = self._make_model(episode.model.world)

    def set_knobs(self, values: Mapping[str, Value]) -> None:
        """Set these knobs to canonical values, all at once.

        Args:
            values: canonical values, by knob.
        """
        self._model = None
        super().set_knobs(values)

    def _make_model(self, world: int) -> FactsModel:
        if self._model is None or self._model.world != world:
            self._model = make_model(
                world, {name: getattr(self, f"_{name}") for name in (*KINDS, "price", "transient")}
            )
        return self._model

    def _execute(self, episode: FactsEpisode, command: str) -> None:
        self._is_unplayed = False
        asked = episode.asked
        if self._transient and " ".join(command.lower().split()) == ASK and self.np_random.random() < self._transient:
            episode.lose()
        else:
            episode.act(command)
        if episode.asked > asked:
            self._values |= _values_of(episode.heard[-1:])

    def _make_info(self) -> dict[str, Any]:
        episode = self.episode
        actions = [] if episode.is_over else [*_list_values(self._values), NOTHING, ASK, PASS]
        return {"task": _TASK.format(episode.question, episode.model.price), "actions": actions, "score": episode.score}

    def save_state(self) -> dict[str, Any]:
        """The state of the day and what was heard before, without knobs and random generators."""
        days = (self._day, self._since, self._today, self._values, self._told_place, self._is_unplayed)
        return {**super().save_state(), "days": days}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore a state.

        Args:
            state: from `save_state`.
        """
        super().load_state(state)
        self._day, self._since, self._today, self._values, self._told_place, self._is_unplayed = state["days"]

    def _draw_page(self) -> np.ndarray:
        return draw_facts_picture(self.episode)


def _check_since(given: Any) -> Counts | None:
    if given is None:
        return None
    if not isinstance(given, (tuple, list)) or len(given) != len(KINDS):
        raise ArgumentError(f"`since` should be None or {len(KINDS)} numbers. Received {given!r}")
    return tuple(check_integer("since", one, 0) for one in given)


def _check_about(given: Any) -> tuple[int, ...]:
    if not isinstance(given, (tuple, list)):
        raise ArgumentError(f"`about` should be a list of facts. Received {given!r}")
    return tuple(check_integer("about", one, 0, FACTS_OF_A_WORLD - 1) for one in given)


@lru_cache(maxsize=1024)
def _facts_of(pool: tuple[int, ...] | None) -> tuple[int, ...]:
    """The facts that are talked about."""
    return tuple(range(FACTS_OF_A_WORLD) if pool is None else (number % MOST_TASKS for number in pool))


@lru_cache(maxsize=1024)
def _values_of(heard: tuple[str, ...]) -> frozenset[str]:
    return frozenset(value for sentence in heard for value in read_words(sentence))


@lru_cache(maxsize=256)
def _list_values(values: frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted(values))


@lru_cache(maxsize=512)
def draw_questions(
    world: int,
    count: int,
    seed: int,
    without: tuple[int, ...] = (),
    *,
    conditions: Conditions,
    affected: bool = True,
) -> tuple[int, ...]:
    """Draw questions of a world, first those about facts that changes hit, also by a false statement.

    Args:
        world: the number of the world.
        count: how many.
        seed: of the stream.
        without: the numbers of questions that are excluded.
        conditions: knob values, in temporal order.
        affected: if not, facts come first whose values stay the same.

    Returns:
        The numbers of the questions; kinds of facts take turns.

    Raises:
        ArgumentError: if the world has too few.
    """
    models = [make_model(world, dict(condition)) for condition in conditions]

    def rank(number: int) -> tuple[bool, bool]:
        is_hit = len({model.version(number) for model in models}) > 1
        return not affected and len({model.value(number) for model in models}) > 1, not is_hit

    kinds = [FATES[number * len(FATES) // FACTS_OF_A_WORLD] for number in range(FACTS_OF_A_WORLD)]
    order = take_turns(kinds, FATES, np.random.default_rng(seed))
    left = [number for number in order if QUESTIONS.number(world, number) not in without]
    found = sorted(left, key=rank)[:count]
    if len(found) < count:
        raise ArgumentError(f"`pool` should be at most {len(left)}, the questions of a world. Received {count}")
    return tuple(QUESTIONS.number(world, number) for number in found)


WIDTH, HEIGHT = 640, 480
_PAPER, _INK, _FAINT, _QUESTION = (250, 248, 244), (40, 40, 46), (120, 120, 128), (214, 84, 31)
_LEADING, _EDGE = 18, 12


def draw_facts_picture(episode: FactsEpisode) -> NDArray[np.uint8]:
    """Draw what was heard on a day, the question, and what followed. It shows no more than the agent knows.

    Args:
        episode: the day.

    Returns:
        uint8, shape `(HEIGHT, WIDTH, 3)`.

    Raises:
        MissingDependencyError: if pygame is not installed.
    """
    pygame = load_pygame()
    surface = pygame.Surface((WIDTH, HEIGHT))
    surface.fill(_PAPER)
    draw_text(surface, f"Day {episode.day}", (_EDGE, _EDGE), 18, _INK, WIDTH - 2 * _EDGE, is_bold=True)
    font, top = open_font(13), _EDGE + 34
    lines = [line for sentence in episode.heard for line in wrap_text(font, sentence, WIDTH - 2 * _EDGE)]
    for line in lines[-((HEIGHT - top - 90) // _LEADING) :]:
        draw_text(surface, line, (_EDGE, top), 13, _INK, WIDTH - 2 * _EDGE)
        top += _LEADING
    foot = HEIGHT - 70
    draw_text(surface, episode.question, (_EDGE, foot), 16, _QUESTION, WIDTH - 2 * _EDGE, is_bold=True)
    draw_text(surface, f"{episode.answer} Score {episode.score:g}", (_EDGE, foot + 28), 13, _FAINT, WIDTH - 2 * _EDGE)
    picture: NDArray[np.uint8] = np.transpose(pygame.surfarray.array3d(surface), (1, 0, 2))
    return picture
