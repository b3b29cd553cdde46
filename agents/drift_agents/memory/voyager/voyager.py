"""Voyager: what a critic called a success counts more, or becomes a skill.

* `Voyager` - the memory, in two modes
* `MODES` - `glove`: transitions marked by the critic; `skills`: the original's skill library

Source: Wang et al., "Voyager: an open-ended embodied agent with large language models" (TMLR 2024),
section 2, as GLOVE uses it (appendix B.1): "we utilize its feedback-based refinement capability to
evaluate experience entries". `docs/memories/voyager.md` says what is faithful and what was decided here.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from drift_agents.embedding.base import Embedding
from drift_agents.embedding.hashed import HashedEmbedding
from drift_agents.errors import ArgumentError, MemoryStateError
from drift_agents.llm.base import Model, ask
from drift_agents.llm.rules import RuleModel
from drift_agents.llm.template import read_messages
from drift_agents.matching.base import Matching
from drift_agents.memory.citations import Citations
from drift_agents.memory.ledger import Ledger
from drift_agents.memory.ledgered import LedgerMemory
from drift_agents.memory.voyager.critic import CRITIQUE, RULES, SKILL, attempt_steps, cut, tell_attempt
from drift_agents.memory.voyager.skills import Skill, SkillLibrary
from drift_agents.types import (
    AgentClock,
    Episode,
    Experience,
    Note,
    Outcome,
    Plain,
    Record,
    RecordId,
    Removed,
    Retrieved,
)

MODES = ("glove", "skills")
ORDERS = ("oldest", "newest")
RANKS = {True: 0, None: 1, False: 2}
"""Which entries come first: those of successes, those not judged yet, those of failures."""


class Voyager(LedgerMemory):
    """What a critic called a success counts more, or becomes a skill.

    Every episode is an attempt at its task. When it ends, the critic judges it: {reasoning, success,
    critique}. After a failure the critique stands in the prompt of the next attempt, up to `attempts`
    attempts in a row; then, or when another task comes, the row begins anew. An attempt is an
    ordinary episode, so each is charged in full.

    `mode="glove"`: every transition is written. The critic's verdict marks all transitions of the
    attempt; those of successes are recalled first, those of failures with weight `failed`.

    `mode="skills"`: only a success is kept, as a skill: name, description, program, and the
    transitions that it consists of. A skill of the same name is overwritten. The `k` skills whose
    descriptions are most similar to the present state stand in the prompt, with their transitions;
    so do the transitions of the present row of attempts, as feedback from the world, and what a
    verifier vouches for. Nothing else is kept.

    Args:
        mode: `glove` or `skills`.
        k: `glove`: records recalled for each action of a state; `skills`: skills recalled; positive.
        attempts: attempts at one task in a row, after which its feedback is dropped; positive.
        failed: how much an entry of a failure weighs, in (0, 1]; used by `glove` alone.
        order: `oldest` or `newest`: which of equally marked entries come first; used by `glove` alone.
        cascade: what becomes of skills and critiques whose evidence goes (`drift_agents.memory.citations`).
        model: the critic, who also names and describes skills; declared rules if not given.
        embedding: of descriptions and states; hashed words and letters if not given.
        matching: when two states count as the same; texts must be equal if not given.

    Raises:
        ArgumentError: if an option is outside its range.

    Example:
        >>> memory = Voyager()
        >>> fell = Experience("a", "1", Outcome("hole", 0.0, True), 0.0, AgentClock())
        >>> memory.observe(fell, AgentClock())
        0
        >>> memory.end_episode(Episode("Reach the goal.", 0.0, 1, True), AgentClock(0, 1))
        >>> answer = memory.retrieve("a", None, AgentClock(1, 1))
        >>> answer.weights, answer.notes[0].text[-55:]
        ((0.5,), 'Do not take "1" in a: it ended the episode for nothing.')
    """

    name = "voyager"
    needs: frozenset[str] = frozenset({"outcome", "critic"})
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
        for name, count in (("k", k), ("attempts", attempts)):
            if not isinstance(count, int) or isinstance(count, bool) or count < 1:
                raise ArgumentError(f"`{name}` should be a positive whole number. Received {count!r}")
        for name, value, known in (("mode", mode, MODES), ("order", order, ORDERS)):
            if value not in known:
                raise ArgumentError(f"`{name}` should be one of {', '.join(known)}. Received {value!r}")
        if not isinstance(failed, (int, float)) or isinstance(failed, bool) or not 0 < failed <= 1:
            raise ArgumentError(f"`failed` should be a number in (0, 1]. Received {failed!r}")
        self.mode, self.k, self.attempts, self.failed, self.order = mode, k, attempts, float(failed), order
        self.cascade = cascade
        self.model: Model = RuleModel(RULES) if model is None else model
        self._ledger = Ledger(matching)
        self._library = SkillLibrary(HashedEmbedding() if embedding is None else embedding, cascade)
        self._marks: dict[RecordId, bool] = {}
        # The attempt under way, and those before it in the row: what was written then.
        self._today: dict[RecordId, None] = {}
        self._row: dict[RecordId, None] = {}
        self._task: str | None = None
        self._failures = 0
        self._critique: Note | None = None
        self._critiques = Citations(cascade)
        # The present moment and state, and the skills recalled for it, the best first.
        self._moment: tuple[AgentClock, str] | None = None
        self._active: tuple[RecordId, ...] = ()
        # What was answered about a state, by k: most states stay as they are from step to step.
        self._answers: dict[Hashable, dict[int, Retrieved]] = {}

    def retrieve(self, state: str, k: int | None, now: AgentClock) -> Retrieved:
        """What is recalled in this state.

        `skills`: the first question at a moment is about the present state and chooses the skills;
        later ones at that moment bring what these skills say of other states.
        """
        k = self.k if k is None else k
        notes = () if self._critique is None else (self._critique,)
        if self.mode == "skills":
            if self._moment is None or self._moment[0] != now:
                self._moment = now, state
                self._activate(skill.id for skill in self._library.nearest(state, k))
            if self._moment[1] == state:
                notes = (*(self._library.get(skill_id).note() for skill_id in self._active), *notes)
        answers = self._answers.setdefault(self._ledger.matching.state_key(state), {})
        if k not in answers:
            answers[k] = self._entries(state, k) if self.mode == "glove" else self._transitions(state)
        return answers[k] if not notes else answers[k]._replace(notes=notes)

    def _entries(self, state: str, k: int) -> Retrieved:
        """The `k` first records of every action, those of successes before those of failures."""
        chosen: list[Record] = []
        for records in self._ledger.at(state).values():
            if self.order == "newest":
                records.reverse()
            chosen += sorted(records, key=lambda record: RANKS[self.mark(record.id)])[:k]
        return Retrieved(tuple(chosen), tuple(self.failed if self.mark(r.id) is False else 1.0 for r in chosen))

    def _transitions(self, state: str) -> Retrieved:
        """What skills in use, the row of attempts and verifiers say about this state."""
        chosen = tuple(
            record
            for records in self._ledger.at(state).values()
            for record in records
            if self._is_held(record) or any(skill_id in self._active for skill_id in self._library.citing(record.id))
        )
        return Retrieved(chosen, (1.0,) * len(chosen))

    def _is_held(self, record: Record) -> bool:
        """Whether a record stays although no skill rests on it."""
        return record.verified or record.id in self._today or record.id in self._row

    def _activate(self, skill_ids: Iterable[RecordId]) -> None:
        before, self._active = self._active, tuple(skill_ids)
        if set(before) != set(self._active):
            self._answers.clear()

    def mark(self, record_id: RecordId) -> bool | None:
        """Whether the critic called a record's attempt a success; `None` before it spoke, `True` if verified."""
        record = self._ledger.get(record_id)
        return True if record is not None and record.verified else self._marks.get(record_id)

    def skills(self) -> tuple[Skill, ...]:
        """All skills, oldest first."""
        return tuple(self._library)

    def observe(self, experience: Experience, now: AgentClock) -> RecordId:
        """Append it; what it is worth is decided when the episode ends."""
        return self._written(experience.state, self._ledger.append(experience, now))

    def insert_summary(
        self, state: str, action: str, distribution: Sequence[tuple[Outcome, float]], n: int, now: AgentClock
    ) -> RecordId:
        """Append a verified summary: it needs no critic, and it stays.

        Raises:
            ArgumentError: if the distribution is empty, a probability is not positive, or `n` is not.
        """
        return self._written(state, self._ledger.append_summary(state, action, distribution, n, now))

    def _written(self, state: str, record_id: RecordId) -> RecordId:
        self._answers.pop(self._ledger.matching.state_key(state), None)
        self._today[record_id] = None
        return record_id

    def remove(self, ids: Iterable[RecordId]) -> Removed:
        """Remove these records; skills and critiques that rest on them fall, or are cut.

        In the mode `skills` the transitions that only a fallen skill, or a part cut off, consisted of go too.
        """
        gone = self._ledger.remove(ids)
        for record_id in gone:
            for held in (self._marks, self._today, self._row):
                held.pop(record_id, None)
        changed = self._library.fall(gone, self._ledger)
        more = self._forget(chain.from_iterable(skill.steps for skill in changed))
        notes = tuple(skill.id for skill in changed if skill.id not in self._library)
        if fell := self._critiques.fall(gone):
            self._critique, notes = None, notes + fell
        self._activate(skill_id for skill_id in self._active if skill_id in self._library)
        self._answers.clear()
        return Removed(gone + more, notes)

    def _forget(self, ids: Iterable[RecordId]) -> tuple[RecordId, ...]:
        """Remove those of these records that nothing holds any longer (`skills`)."""
        records = [record for record_id in dict.fromkeys(ids) if (record := self._ledger.get(record_id)) is not None]
        return self._ledger.remove(r.id for r in records if not self._is_held(r) and not self._library.citing(r.id))

    def end_episode(self, result: Episode, now: AgentClock) -> None:
        """Ask the critic what the attempt was worth.

        Raises:
            ModelError: if the model's answer does not have the form that it should have.
        """
        written = [record for record_id in self._today if (record := self._ledger.get(record_id)) is not None]
        steps = attempt_steps(written, self._ledger.matching.state_key)
        verdict = named = None
        if steps:
            # All questions come first, so that a model that fails leaves memory as it was.
            text = tell_attempt(result, steps)
            verdict = self._ask("critic", text, CRITIQUE)
            if self.mode == "skills" and verdict["success"]:
                named = self._ask("skill", text, SKILL)
        self._today = {}
        self._answers.clear()
        if result.task != self._task:
            self._begin_row(result.task)
        if verdict is None:
            return
        if self.mode == "glove":
            self._marks.update((record.id, verdict["success"]) for record in steps)
        else:
            self._row.update((record.id, None) for record in steps)
        if named is not None:
            self._learn(named, steps)
        self._failures += 1
        if verdict["success"] or self._failures >= self.attempts:
            self._begin_row(result.task)
        else:
            self._criticise(result.task, verdict["critique"], steps)

    def _ask(self, who: str, text: str, schema: Mapping[str, Any]) -> Any:
        return ask(self.model, read_messages(f"memory/templates/voyager_{who}.txt", attempt=text), schema).data

    def _begin_row(self, task: str) -> None:
        """Drop the feedback of the attempts so far."""
        row, self._row = self._row, {}
        self._task, self._failures = task, 0
        self._drop_critique()
        self._forget(row)

    def _drop_critique(self) -> None:
        if self._critique is not None:
            self._critiques.fall([self._critique.id])
            self._critique = None

    def _criticise(self, task: str, critique: str, steps: Sequence[Record]) -> None:
        """Keep what the critic would do otherwise, in the place of what it said before."""
        self._drop_critique()
        if critique:
            text = f"Critique of attempt {self._failures} of {self.attempts} at {cut(task)!r}: {critique}"
            self._critique = Note(self._ledger.new_id(), text, tuple(record.id for record in steps))
            self._critiques.add(self._critique.id, self._critique.evidence)

    def _learn(self, named: Mapping[str, str], steps: Sequence[Record]) -> None:
        """Write a skill; what the one of the same name consisted of goes with it."""
        old = self._library.named(named["name"])
        ids, actions = tuple(record.id for record in steps), tuple(record.action for record in steps)
        self._library.write(Skill(self._ledger.new_id(), named["name"], named["description"], actions, ids, len(ids)))
        if old is not None:
            self._forget(old.steps)

    def snapshot(self) -> dict[str, Any]:
        """The whole content as plain data."""
        note, moment = self._critique, self._moment
        return {
            "kind": self.name,
            "mode": self.mode,
            "ledger": self._ledger.snapshot(),
            "marks": [[record_id, success] for record_id, success in self._marks.items()],
            "today": list(self._today),
            "row": list(self._row),
            "task": self._task,
            "failures": self._failures,
            "critique": None if note is None else [note.id, note.text, list(note.evidence)],
            "skills": self._library.snapshot(),
            "moment": None if moment is None else [*moment[0], moment[1]],
            "active": list(self._active),
        }

    def restore(self, data: Plain) -> None:
        """Take back a snapshot; nothing changes when that fails.

        Raises:
            MemoryStateError: if the data is not a snapshot of this kind of memory in this mode.
        """
        if not isinstance(data, Mapping) or data.get("kind") != self.name or data.get("mode") != self.mode:
            raise MemoryStateError(
                f"not a snapshot of the memory {self.name!r} in the mode {self.mode!r}: {str(data)[:80]!r}"
            )
        ledger = Ledger(self._ledger.matching)
        ledger.restore(data.get("ledger", {}))
        try:
            library = self._library.restored(data["skills"], ledger)
            marks = {int(i): bool(success) for i, success in data["marks"]}
            today, row = ({int(i): None for i in data[name]} for name in ("today", "row"))
            task, failures = None if data["task"] is None else str(data["task"]), int(data["failures"])
            moment = None if data["moment"] is None else _read_moment(*data["moment"])
            active = tuple(map(int, data["active"]))
            critique, critiques = None, Citations(self.cascade)
            if data["critique"] is not None:
                note_id, text, evidence = data["critique"]
                critique = Note(int(note_id), str(text), tuple(map(int, evidence)))
                critiques.add(critique.id, evidence, {i for i in evidence if i not in ledger})
            if any(i not in ledger for i in (*marks, *today, *row)) or any(i not in library for i in active):
                raise ValueError("records of attempts and skills in use should be there")
            notes = [skill.id for skill in library] + ([] if critique is None else [critique.id])
            if any(i in ledger or i >= data["ledger"]["next_id"] for i in notes):
                raise ValueError("a skill and a critique should have an id of their own")
        except (KeyError, TypeError, ValueError) as error:
            raise MemoryStateError(
                f"not a snapshot of the memory {self.name!r}: {error!r} in {str(data)[:80]!r}"
            ) from error
        self._ledger, self._library, self._marks, self._today, self._row = ledger, library, marks, today, row
        self._task, self._failures, self._critique, self._critiques = task, failures, critique, critiques
        self._moment, self._active = moment, active
        self._answers.clear()


def _read_moment(episode: int, step: int, state: str) -> tuple[AgentClock, str]:
    return AgentClock(int(episode), int(step)), str(state)
