"""Voyager's skill library: what succeeded once, by name, recalled by its description.

* `Skill` - a way that succeeded: what it is called, what it does, its actions, and the steps that it rests on
* `SkillLibrary` - all skills; the same name overwrites
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from drift_agents.embedding.base import Embedding, Vectors, cosine
from drift_agents.memory.citations import Citations, kept_suffix
from drift_agents.memory.voyager.critic import tell_program
from drift_agents.types import Note, RecordId


class Skill(NamedTuple):
    """A way that succeeded.

    Args:
        id: its number.
        name: what it is called.
        description: what it does, in words; its embedding is the key.
        actions: what is done, step by step: the program.
        steps: the records of these steps, as many as there are actions.
        length: how many steps it had when it was written.

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
        """What stands in the prompt."""
        left = "" if len(self.steps) == self.length else f", its last {len(self.steps)} of {self.length} steps"
        text = f"Skill {self.name}{left}: {self.description} Program: {tell_program(self.actions)}."
        return Note(self.id, text, self.steps)


class SkillLibrary:
    """All skills.

    Args:
        embedding: of descriptions and of what is asked.
        cascade: what becomes of a skill whose steps go, one of `drift_agents.memory.citations.CASCADES`.
            `cut` leaves the steps behind the last one that went.

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
        """Whether a skill of that number is there."""
        return skill_id in self._skills

    def get(self, skill_id: RecordId) -> Skill:
        """The skill of that number, which must be there."""
        return self._skills[skill_id]

    def citing(self, record_id: RecordId) -> tuple[RecordId, ...]:
        """The numbers of the skills that a record is a step of."""
        return self._citations.citing(record_id)

    def named(self, name: str) -> Skill | None:
        """The skill of that name, if there is one."""
        return next((skill for skill in self if skill.name == name), None)

    def write(self, skill: Skill, lost: Container[RecordId] = ()) -> None:
        """Write a skill; one of the same name is overwritten.

        Args:
            skill: the skill.
            lost: which of its steps are gone, when it is read back from a snapshot.

        Raises:
            ArgumentError: if it has no steps.
        """
        old = self.named(skill.name)
        self._citations.add(skill.id, skill.steps, lost)
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

    def fall(self, gone: Sequence[RecordId], there: Container[RecordId]) -> tuple[Skill, ...]:
        """Take note that records went: skills fall, or are cut.

        Args:
            gone: the numbers of the records.
            there: what is still there.

        Returns:
            The skills as they were before, those that fell and those that were cut.
        """
        touched = dict.fromkeys(skill_id for record_id in gone for skill_id in self._citations.citing(record_id))
        changed = []
        if self.cascade == "cut":
            for skill in [self._skills[skill_id] for skill_id in touched]:
                changed.append(skill)
                left = len(kept_suffix(skill.steps, there))
                if left:
                    rest = skill._replace(actions=skill.actions[-left:], steps=skill.steps[-left:])
                    self._citations.add(skill.id, rest.steps)
                    self._skills[skill.id] = rest
                else:
                    self._drop(skill.id)
        else:
            for skill_id in self._citations.fall(gone):
                changed.append(self._skills.pop(skill_id))
                self._vectors = None
        return tuple(changed)

    def _drop(self, skill_id: RecordId) -> None:
        self._citations.fall([skill_id])
        del self._skills[skill_id]
        self._vectors = None

    def snapshot(self) -> list[Any]:
        """All skills as plain data."""
        return [[*skill[:3], list(skill.actions), list(skill.steps), skill.length] for skill in self]

    def restored(self, data: Iterable[Any], there: Container[RecordId]) -> SkillLibrary:
        """A library like this one with the skills of a snapshot.

        Args:
            data: what `snapshot` made.
            there: the records that there are.

        Raises:
            TypeError, ValueError: if the data is no snapshot of a library.
        """
        fresh = SkillLibrary(self.embedding, self.cascade)
        for skill_id, name, description, actions, steps, length in data:
            program, ids = tuple(map(str, actions)), tuple(map(int, steps))
            skill = Skill(int(skill_id), str(name), str(description), program, ids, int(length))
            if not 0 < len(skill.steps) == len(skill.actions) <= skill.length:
                raise ValueError(f"skill {skill.id} should have as many steps as actions, and at least one")
            fresh.write(skill, {step for step in skill.steps if step not in there})
        return fresh
