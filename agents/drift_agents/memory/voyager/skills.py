"""Voyager's skill library: action sequences that succeeded, retrieved by their descriptions.

* `Skill` - an action sequence that succeeded, with name, description and evidence
* `SkillLibrary` - all skills; a skill overwrites the one of the same name
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple

from drift_agents.embedding.base import Embedding, Vectors, cosine
from drift_agents.memory.citations import Citations, valid_suffix
from drift_agents.memory.transcript import render_program
from drift_agents.types import Note, RecordId


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


class SkillLibrary:
    """All skills.

    Args:
        embedding: of descriptions and of queries.
        cascade: what happens to a skill with removed steps, one of `drift_agents.memory.citations.CASCADES`;
            `cut` keeps the steps after the last removed one.

    Raises:
        ArgumentError: if there is no such cascade.

    Example:
        >>> from drift_agents.embedding.hashed import HashedEmbedding
        >>> library = SkillLibrary(HashedEmbedding(), "cut")
        >>> library.write(Skill(2, "buyAxe", "Buy an axe.", ("search",), (0,), 1))
        >>> library.write(Skill(3, "buyHat", "Buy a hat.", ("search",), (1,), 1))
        >>> [skill.name for skill in library.nearest("a red hat", 1)]
        ['buyHat']
    """

    def __init__(self, embedding: Embedding, cascade: str) -> None:
        self.embedding, self.cascade = embedding, cascade
        self._citations = Citations(cascade)
        self._skills: dict[RecordId, Skill] = {}
        self._vectors: Vectors | None = None

    def __iter__(self) -> Iterator[Skill]:
        """All skills, oldest first."""
        return iter(self._skills.values())

    def __contains__(self, skill_id: object) -> bool:
        return skill_id in self._skills

    def get(self, skill_id: RecordId) -> Skill:
        """The skill of that number, which must be stored."""
        return self._skills[skill_id]

    def citing(self, record_id: RecordId) -> tuple[RecordId, ...]:
        """The numbers of the skills with this record among their steps."""
        return self._citations.citing(record_id)

    def named(self, name: str) -> Skill | None:
        """The skill of that name, or `None`."""
        return next((skill for skill in self if skill.name == name), None)

    def write(self, skill: Skill) -> None:
        """Write a skill; one of the same name is overwritten.

        Args:
            skill: the skill.

        Raises:
            ArgumentError: if it has no steps.
        """
        old = self.named(skill.name)
        self._citations.add(skill.id, skill.steps)
        if old is not None:
            self._drop(old.id)
        self._skills[skill.id] = skill
        self._vectors = None

    def nearest(self, text: str, k: int) -> list[Skill]:
        """The `k` skills whose descriptions are most similar, the best first; of equal ones the newest."""
        skills = list(self)
        if len(skills) < 2:
            return skills
        if self._vectors is None:
            self._vectors = self.embedding.embed([skill.description for skill in skills])
        similar = cosine(self.embedding.embed([text])[0], self._vectors).tolist()
        places = sorted(range(len(skills)), key=lambda place: (-similar[place], -skills[place].id))
        return [skills[place] for place in places[:k]]

    def remove_records(self, removed: Sequence[RecordId], present: Container[RecordId]) -> tuple[Skill, ...]:
        """Remove or cut the skills that depend on removed records.

        Args:
            removed: the numbers of the records.
            present: the records that remain.

        Returns:
            The skills removed or cut, as they were before.
        """
        if self.cascade != "cut":
            self._vectors = None
            return tuple(self._skills.pop(skill_id) for skill_id in self._citations.remove(removed))
        changed = [self._skills[skill_id] for skill_id in self._citations.citing_any(removed)]
        for skill in changed:
            length = len(valid_suffix(skill.steps, present))
            if length:
                suffix = skill._replace(actions=skill.actions[-length:], steps=skill.steps[-length:])
                self._citations.add(skill.id, suffix.steps)
                self._skills[skill.id] = suffix
            else:
                self._drop(skill.id)
        return tuple(changed)

    def _drop(self, skill_id: RecordId) -> None:
        self._citations.remove([skill_id])
        del self._skills[skill_id]
        self._vectors = None
