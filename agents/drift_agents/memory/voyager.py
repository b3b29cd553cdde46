"""Voyager: attempts that a critic judges a success weigh more, or become skills.

Source: Wang et al., "Voyager: an open-ended embodied agent with large language models" (TMLR 2024),
section 2, as GLOVE uses it (appendix B.1): "we utilize its feedback-based refinement capability to
evaluate experience entries". `docs/memories/items.md` says what is faithful and what was decided here.

The text that the critic reads contains the score at the end, as the environment returned it: so Voyager is supervised
by its own reward, whether a model or a rule answers.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from drift_agents.embedding.base import Embedding, HashedEmbedding, Vectors, cosine
from drift_agents.envs.matching import Matching
from drift_agents.errors import ArgumentError
from drift_agents.llm.base import Model, Rule, RuleModel, ask, object_schema, read_messages
from drift_agents.memory.citations import Citations, ItemStore
from drift_agents.memory.transcript import (
    attempt_steps,
    highest_score,
    read_steps,
    render_program,
    render_result,
    render_steps,
    split_attempt,
    truncate,
)
from drift_agents.memory.transitions import AnswerCache, TransitionStore, TransitionStoreMemory
from drift_agents.types import AgentClock, Episode, Note, Record, RecordId, Removed, Retrieved
from drift_envs.checks import check_choice, check_count, check_interval

MODES = ("glove", "skills")
ORDERS = ("oldest", "newest")
RANKS = {True: 0, None: 1, False: 2}
"""The order of records: those of successes, those not judged yet, those of failures."""


class Voyager(TransitionStoreMemory):
    """Attempts that a critic judges a success weigh more, or become skills.

    Every episode is an attempt at its task. When it ends, the critic judges it: {reasoning, success,
    critique}. After a failure the critique is in the prompt of the next attempt, up to `attempts`
    attempts in a row; then, or when the task changes, the row begins anew. An attempt is an
    ordinary episode, so all its steps count.

    `mode="glove"`: every transition is written. The critic's judgement marks all transitions of the
    attempt; those of successes are retrieved first, those of failures with weight `failed`.

    `mode="skills"`: only a success is stored, as a skill: name, description, program, and its
    transitions. A skill of the same name is overwritten. The `k` skills whose descriptions are most
    similar to the present state are in the prompt, with their transitions, the transitions of the
    present row of attempts (feedback from the environment), and verified summaries.

    Args:
        mode: `glove` or `skills`.
        k: `glove`: records retrieved for each action of a state; `skills`: skills retrieved; positive.
        attempts: attempts at one task in a row, after which its feedback is removed; positive.
        failed: the weight of a record of a failure, in (0, 1]; used by `glove` alone.
        order: `oldest` or `newest`: which of equally marked records come first; used by `glove` alone.
        cascade: what happens to skills and critiques whose evidence is removed (`drift_agents.memory.citations`).
        model: the critic, which also names and describes skills; fixed rules if not given.
        embedding: of descriptions and states; hashed words and letters if not given.
        matching: when two states count as the same; texts must be equal if not given.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> from drift_agents.types import Experience, Outcome
        >>> memory = Voyager()
        >>> fell = Experience("a", "1", Outcome("hole", 0.0, True), 0.0, AgentClock())
        >>> memory.observe(fell, AgentClock())
        0
        >>> memory.end_episode(Episode("Reach the goal.", 0.0, 1, True), AgentClock(0, 1))
        >>> retrieved = memory.retrieve("a", None, AgentClock(1, 1))
        >>> retrieved.weights, retrieved.notes[0].text[-55:]
        ((0.5,), 'Do not take "1" in a: it ended the episode for nothing.')
    """

    name = "voyager"
    supervision = "own reward"

    def __init__(
        self,
        *,
        mode: str = "glove",
        k: int = 5,
        attempts: int = 4,
        failed: float = 0.5,
        order: str = "oldest",
        cascade: str = "cut",
        model: Model | None = None,
        embedding: Embedding | None = None,
        matching: Matching | None = None,
    ) -> None:
        self.k, self.attempts = check_count("k", k), check_count("attempts", attempts)
        self.mode, self.order = check_choice("mode", mode, MODES), check_choice("order", order, ORDERS)
        self.failed = check_interval("failed", failed, "(0, 1]")
        self.cascade = cascade
        self.model: Model = RuleModel(RULES) if model is None else model
        self.transitions = TransitionStore(matching)
        self._library = SkillLibrary(HashedEmbedding() if embedding is None else embedding, cascade)
        self._marks: dict[RecordId, bool] = {}
        # The records of the present attempt, and of those before it in the row.
        self._written: dict[RecordId, None] = {}
        self._row: dict[RecordId, None] = {}
        self._task: str | None = None
        self._failures = 0
        self._critique: Note | None = None
        self._critiques = Citations(cascade)
        # The time and state of the first query, and the skills retrieved for it, the best first.
        self._focus: tuple[AgentClock, str] | None = None
        self._active: tuple[RecordId, ...] = ()
        self._cache = AnswerCache()

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """The records of this state, and the critique.

        `skills`: the first query at a time is about the present state and chooses the skills; later ones
        at that time return the transitions of these skills in other states.
        """
        k = self.k if k is None else k
        notes = () if self._critique is None else (self._critique,)
        if self.mode == "skills":
            if self._focus is None or self._focus[0] != now:
                self._focus = now, state
                self._activate(skill.id for skill in self._library.nearest(state, k))
            if self._focus[1] == state:
                notes = (*(self._library[skill_id].note() for skill_id in self._active), *notes)
        answers, key = self._cache[k], self.transitions.keys[state]
        if key not in answers:
            answers[key] = self._marked_records(state, k) if self.mode == "glove" else self._skill_records(state)
        return answers[key] if not notes else answers[key]._replace(notes=notes)

    def peek(self, state: str, now: AgentClock) -> Retrieved:
        """The records that `retrieve` would return; of skills, those that are chosen now."""
        return self._marked_records(state, self.k) if self.mode == "glove" else self._skill_records(state)

    def _marked_records(self, state: str, k: int) -> Retrieved:
        """The `k` first records of every action, those of successes before those of failures."""
        chosen: list[Record] = []
        for records in self.transitions.by_action(state).values():
            if self.order == "newest":
                records.reverse()
            chosen += sorted(records, key=lambda record: RANKS[self.mark(record.id)])[:k]
        return Retrieved(tuple(chosen), tuple(self.failed if self.mark(r.id) is False else 1.0 for r in chosen))

    def _skill_records(self, state: str) -> Retrieved:
        """The records of this state that belong to chosen skills or the row of attempts, or are verified."""
        chosen = tuple(
            record
            for records in self.transitions.by_action(state).values()
            for record in records
            if self._is_kept(record) or any(skill_id in self._active for skill_id in self._library.citing(record.id))
        )
        return Retrieved(chosen, (1.0,) * len(chosen))

    def _is_kept(self, record: Record) -> bool:
        """Whether a record is kept although no skill cites it."""
        return record.verified or record.id in self._written or record.id in self._row

    def _activate(self, skill_ids: Iterable[RecordId]) -> None:
        before, self._active = self._active, tuple(skill_ids)
        if set(before) != set(self._active):
            self._cache.clear()

    def mark(self, record_id: RecordId) -> bool | None:
        """Whether the critic judged a record's attempt a success; `None` before it did, `True` if verified."""
        if record_id in self.transitions and self.transitions[record_id].verified:
            return True
        return self._marks.get(record_id)

    def skills(self) -> tuple[Skill, ...]:
        """All skills, oldest first."""
        return tuple(self._library)

    def _note_written(self, record: Record) -> None:
        self._cache.forget(self.transitions.keys[record.state])
        self._written[record.id] = None

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Remove these records; skills and critiques that depend on them are removed, or cut.

        In the mode `skills` the transitions that only a removed skill, or a part cut off, cited are removed too.
        """
        removed = self.transitions.remove(ids)
        for record_id in removed:
            for kept in (self._marks, self._written, self._row):
                kept.pop(record_id, None)
        changed = self._library.remove_records(removed, self.transitions)
        more = self._remove_uncited(chain.from_iterable(skill.steps for skill in changed))
        notes = tuple(skill.id for skill in changed if skill.id not in self._library)
        if critiques := self._critiques.remove(removed):
            self._critique, notes = None, notes + critiques
        self._activate(skill_id for skill_id in self._active if skill_id in self._library)
        self._cache.clear()
        return Removed(removed + more, notes)

    def _remove_uncited(self, ids: Iterable[RecordId]) -> tuple[RecordId, ...]:
        """Remove those of these records that are neither kept nor cited by a skill (`skills`)."""
        records = self.transitions.select(dict.fromkeys(ids))
        return self.transitions.remove(r.id for r in records if not self._is_kept(r) and not self._library.citing(r.id))

    def end_episode(self, result: Episode, now: AgentClock) -> None:
        """Let the critic judge the attempt, and learn from the judgement.

        Raises:
            ModelError: if the model's answer has the wrong form.
        """
        key = self.transitions.matching.state_key
        steps = attempt_steps(self.transitions.select(self._written), key, now.episode)
        judgement = skill = None
        if steps:
            # Before anything changes, so that an error of the model leaves memory as it was.
            text = render_attempt(result, steps)
            judgement = self._query_model("critic", text, CRITIQUE)
            if self.mode == "skills" and judgement["success"]:
                skill = self._query_model("skill", text, SKILL)
        self._written = {}
        self._cache.clear()
        if result.task != self._task:
            self._begin_row(result.task)
        if judgement is None:
            return
        if self.mode == "glove":
            self._marks.update((record.id, judgement["success"]) for record in steps)
        else:
            self._row.update((record.id, None) for record in steps)
        if skill is not None:
            self._write_skill(skill, steps)
        self._failures += 1
        if judgement["success"] or self._failures >= self.attempts:
            self._begin_row(result.task)
        else:
            self._write_critique(result.task, judgement["critique"], steps)

    def _query_model(self, template: str, text: str, schema: Mapping[str, Any]) -> Any:
        return ask(self.model, read_messages(f"memory/templates/voyager_{template}.txt", attempt=text), schema).data

    def _begin_row(self, task: str) -> None:
        """Remove the feedback of the attempts so far."""
        row, self._row = self._row, {}
        self._task, self._failures = task, 0
        self._remove_critique()
        self._remove_uncited(row)

    def _remove_critique(self) -> None:
        if self._critique is not None:
            self._critiques.remove([self._critique.id])
            self._critique = None

    def _write_critique(self, task: str, critique: str, steps: Sequence[Record]) -> None:
        """Replace the critique of the attempt before."""
        self._remove_critique()
        if critique:
            text = f"Critique of attempt {self._failures} of {self.attempts} at {truncate(task)!r}: {critique}"
            self._critique = Note(self.transitions.new_id(), text, tuple(record.id for record in steps))
            self._critiques.add(self._critique.id, self._critique.evidence)

    def _write_skill(self, skill: Mapping[str, str], steps: Sequence[Record]) -> None:
        """Write a skill; the one of the same name is removed with its transitions."""
        old = self._library.named(skill["name"])
        ids, actions = tuple(record.id for record in steps), tuple(record.action for record in steps)
        self._library.write(
            Skill(self.transitions.new_id(), skill["name"], skill["description"], actions, ids, len(ids))
        )
        if old is not None:
            self._activate(skill_id for skill_id in self._active if skill_id in self._library)
            self._remove_uncited(old.steps)


class Skill(NamedTuple):
    """An action sequence that succeeded.

    Args:
        id: its number.
        name: its name; unique in a library.
        description: its effect in words; the embedding of this text is the key.
        actions: the program, one action for each step.
        steps: the records of these steps, as many as there are actions.
        length: the number of steps when it was written.

    Example:
        >>> Skill(3, "crossLake", "From the start to the goal.", ("1", "1", "2"), (0, 1, 2), 5).note().text
        'Skill crossLake, its last 3 of 5 steps: From the start to the goal. Program: "1" 2 times, "2".'
    """

    id: RecordId
    name: str
    description: str
    actions: tuple[str, ...]
    steps: tuple[RecordId, ...]
    length: int

    def note(self) -> Note:
        """The skill as it is in the prompt."""
        part = "" if len(self.steps) == self.length else f", its last {len(self.steps)} of {self.length} steps"
        text = f"Skill {self.name}{part}: {self.description} Program: {render_program(self.actions)}."
        return Note(self.id, text, self.steps)

    def keep_last(self, number: int) -> Skill:
        """The skill with its last steps alone."""
        return self._replace(actions=self.actions[-number:], steps=self.steps[-number:])


class SkillLibrary(ItemStore[Skill]):
    """All skills.

    Args:
        embedding: of descriptions and of queries.
        cascade: what happens to a skill with removed steps, one of `drift_agents.memory.citations.CASCADES`;
            `cut` keeps the steps after the last removed one.

    Raises:
        ArgumentError: if there is no such cascade.

    Example:
        >>> from drift_agents.embedding.base import HashedEmbedding
        >>> library = SkillLibrary(HashedEmbedding(), "cut")
        >>> library.write(Skill(2, "buyAxe", "Buy an axe.", ("search",), (0,), 1))
        >>> library.write(Skill(3, "buyHat", "Buy a hat.", ("search",), (1,), 1))
        >>> [skill.name for skill in library.nearest("a red hat", 1)]
        ['buyHat']
    """

    def __init__(self, embedding: Embedding, cascade: str) -> None:
        super().__init__(cascade)
        self.embedding = embedding
        # The numbers of the skills, and the vectors of their descriptions.
        self._vectors: tuple[tuple[RecordId, ...], Vectors] | None = None

    def named(self, name: str) -> Skill | None:
        """The skill of that name, or `None`."""
        return next((skill for skill in self if skill.name == name), None)

    def write(self, skill: Skill) -> None:
        """Write a skill; one of the same name is overwritten.

        Raises:
            ArgumentError: if it has no steps.
        """
        old = self.named(skill.name)
        self.add(skill)
        if old is not None:
            self.drop(old.id)

    def nearest(self, text: str, k: int) -> list[Skill]:
        """The `k` skills whose descriptions are most similar, the best first; of equal ones the newest."""
        skills = list(self)
        if len(skills) < 2:
            return skills
        numbers = tuple(self._items)
        if self._vectors is None or self._vectors[0] != numbers:
            self._vectors = numbers, self.embedding.embed([skill.description for skill in skills])
        similar = cosine(self.embedding.embed([text])[0], self._vectors[1]).tolist()
        places = sorted(range(len(skills)), key=lambda place: (-similar[place], -skills[place].id))
        return [skills[place] for place in places[:k]]


CRITIQUE = object_schema(
    "voyager_critique",
    reasoning={"type": "string", "maxLength": 4000},
    success={"type": "boolean"},
    critique={"type": "string", "maxLength": 2000},
)
SKILL = object_schema(
    "voyager_skill",
    name={"type": "string", "minLength": 1, "maxLength": 100},
    description={"type": "string", "minLength": 1, "maxLength": 2000},
)

NAME_WORDS = 6
"""The largest number of words of the task in a skill's name."""
_RESULT = re.compile(r"score (?P<score>\S+) after (?P<steps>\d+) steps?; (?P<end>the episode ended|time ran out)")
_WORD = re.compile(r"[^\W_]+")


def render_attempt(episode: Episode, steps: Iterable[Record]) -> str:
    """The text of an attempt.

    Args:
        episode: its task, score and length.
        steps: its records, oldest first.

    Example:
        >>> from drift_agents.types import AgentClock, Outcome
        >>> step = Record(0, "start", "1", ((Outcome("hole", 0.0, True), 1.0),), 1, AgentClock())
        >>> print(render_attempt(Episode("Reach the goal.", 0.0, 1, True), [step]))
        Task: Reach the goal.
        Steps:
        - in start action "1" led to hole (score 0; the episode ended)
        Result: score 0 after 1 step; the episode ended
    """
    end = "the episode ended" if episode.terminated else "time ran out"
    return f"{render_steps(episode, steps)}{render_result(episode)}; {end}"


class TaskAttempt(NamedTuple):
    """An attempt parsed from its text.

    Args:
        task: the task in words.
        steps: one match of `drift_agents.memory.transcript.STEP` for each.
        score: the score at the end.
        length: the number of steps.
        ended: whether it ended before the time limit.
    """

    task: str
    steps: tuple[re.Match[str], ...]
    score: float
    length: int
    ended: bool


def read_attempt(text: str) -> TaskAttempt:
    """Parse the text of an attempt.

    Args:
        text: the result of `render_attempt`.

    Raises:
        ArgumentError: if the text has another form.
    """
    task, lines, result = split_attempt(text, _RESULT)
    ended = result["end"] == "the episode ended"
    return TaskAttempt(task, read_steps(lines), float(result["score"]), int(result["steps"]), ended)


def judge_attempt(text: str) -> dict[str, Any]:
    r"""The rule that answers `CRITIQUE` offline: a success has the highest score that the task names.

    Args:
        text: the result of `render_attempt`.

    Returns:
        JSON by the schema `CRITIQUE`.

    Example:
        >>> steps = 'Steps:\n- in start action "1" led to hole (score 0; the episode ended)'
        >>> critique = judge_attempt(f"Task: go.\n{steps}\nResult: score 0 after 1 step; the episode ended")
        >>> critique["success"], critique["critique"]
        (False, 'Do not take "1" in start: it ended the episode for nothing.')
    """
    attempt = read_attempt(text)
    highest = highest_score(attempt.task)
    reasoning = f"The score is {attempt.score:g}, the highest is {highest:g}."
    if attempt.score >= highest:
        return {"reasoning": reasoning, "success": True, "critique": ""}
    if not attempt.ended:
        critique = f"Find a shorter way: time ran out after {attempt.length} steps."
    elif attempt.score > 0:
        critique = f"Look for another end: this one brought {attempt.score:g} where there is {highest:g}."
    elif attempt.steps and attempt.steps[-1]["ended"]:
        last = attempt.steps[-1]
        critique = (
            f"Do not take {truncate(last['action'])} in {truncate(last['state'])}: it ended the episode for nothing."
        )
    else:
        critique = "Do something else: the episode ended for nothing."
    return {"reasoning": reasoning, "success": False, "critique": critique}


def describe_skill(text: str) -> dict[str, str]:
    r"""The rule that answers `SKILL` offline: one name for each task; task, start and end as the description.

    Args:
        text: the result of `render_attempt`.

    Returns:
        JSON by the schema `SKILL`.

    Raises:
        ArgumentError: if the text has another form, or no steps.

    Example:
        >>> steps = 'Steps:\n- in start action "1" led to goal (score 1; the episode ended)'
        >>> describe_skill(f"Task: Reach the goal.\n{steps}\nResult: score 1 after 1 step; the episode ended")
        {'name': 'reachTheGoal_b4eef556', 'description': 'Reach the goal. From start to goal. Score 1 after 1 steps.'}
    """
    attempt = read_attempt(text)
    if not attempt.steps:
        raise ArgumentError(f"a skill should have steps. Received {text[-80:]!r}")
    words = _WORD.findall(attempt.task.lower())[:NAME_WORDS]
    name = "".join(word if place == 0 else word.capitalize() for place, word in enumerate(words))
    first, last = attempt.steps[0], attempt.steps[-1]
    path = f"From {truncate(first['state'])} to {truncate(last['after'])}. "
    return {
        # Different tasks may begin with the same words, so a hash of the whole task follows them.
        "name": f"{name[:80]}_{zlib.crc32(attempt.task.encode('utf-8', 'surrogatepass')):08x}",
        "description": f"{attempt.task[:1000]} {path}Score {attempt.score:g} after {attempt.length} steps.",
    }


RULES: Mapping[str, Rule] = {CRITIQUE["title"]: judge_attempt, SKILL["title"]: describe_skill}
"""The table for `drift_agents.llm.base.RuleModel`."""
