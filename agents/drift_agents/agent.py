"""The reference agent: memory, verifier and policy in one loop.

* `Recall` - what of memory goes into a prompt
* `Agent` - acts, remembers and verifies, on any Gymnasium environment that shows text
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from drift_agents.errors import ArgumentError
from drift_agents.matching import Exact, Matching
from drift_agents.memory.base import Memory
from drift_agents.memory.none import NoMemory
from drift_agents.policy.base import Policy, Reply
from drift_agents.prompt import PromptView, fold
from drift_agents.types import (
    AgentClock,
    Episode,
    Experience,
    Note,
    ProbeCost,
    Record,
    RecordId,
    StepTrace,
    Verdict,
)
from drift_agents.verifier.base import NoVerifier, Verifier
from drift_agents.world import check_text_world, read_outcome, to_env


@dataclass(frozen=True)
class Recall:
    """What of memory goes into a prompt.

    The present state is asked first, then every other state that memory knows, in order of first
    mention, so that a policy can join them into a model of the world (GLOVE, appendix B.6).

    Args:
        k: records for each question; `None` leaves it to the memory.
        states: how many other states are asked at the most.
    """

    k: int | None = None
    states: int = 256

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        if self.k is not None and self.k < 1:
            raise ArgumentError(f"`k` should be a positive whole number or None. Received {self.k!r}")
        if self.states < 0:
            raise ArgumentError(f"`states` should not be negative. Received {self.states!r}")


class Agent:
    """Acts, remembers and verifies (GLOVE, algorithm 1, when the verifier is GLOVE).

    The world must show text: its observations are strings, `info["task"]` is the task in words,
    `info["actions"]` the admissible actions and `info["score"]` the score so far, as
    `drift_envs.wrappers.text.TextObservation` gives them. The policy gets the rendered prompt and
    nothing else.

    Args:
        policy: rendered text in, text out.
        memory: what is remembered; nothing if not given.
        verifier: what becomes of an experience; all are written and none is doubted if not given.
        matching: when two states, and two outcomes, count as the same; give the memory the same one.
        recall: what of memory goes into a prompt.
        seed: of the agent's own generators: one for the policy's ties, one for the verifier.
        keep_trace: whether episodes carry their steps.
    """

    def __init__(
        self,
        policy: Policy,
        memory: Memory | None = None,
        verifier: Verifier | None = None,
        *,
        matching: Matching | None = None,
        recall: Recall | None = None,
        seed: int | np.random.SeedSequence = 0,
        keep_trace: bool = True,
    ) -> None:
        self.policy = policy
        self.memory: Memory = NoMemory() if memory is None else memory
        self.verifier: Verifier = NoVerifier() if verifier is None else verifier
        self.matching: Matching = Exact() if matching is None else matching
        self.recall = Recall() if recall is None else recall
        self.keep_trace = keep_trace
        self.clock = AgentClock()
        self.doubt_since: int | None = None
        sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        policy_seed, verifier_seed = sequence.spawn(2)
        self._rng = np.random.default_rng(policy_seed)
        self.verifier.bind(self.matching, np.random.default_rng(verifier_seed))

    def run_episode(
        self, world: gym.Env[str, Any], seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> Episode:
        """Play one episode to its end.

        Args:
            world: the environment; it is reset first.
            seed: handed to `reset`; a drifting world starts its schedule anew with a seed.
            options: handed to `reset`.

        Returns:
            What happened.

        Raises:
            ArgumentError: if the world does not show text.
        """
        observation, info = world.reset(seed=seed, options=None if options is None else dict(options))
        check_text_world(observation, info)
        self.verifier.begin_episode()
        task, started = str(info["task"]), self.clock.step
        prefix: list[str] = []
        trace: list[StepTrace] = []
        total = _Totals()
        state, score, terminated, truncated = str(observation), float(info["score"]), False, False
        while not (terminated or truncated):
            prompt, retrieved = self._prompt(task, state, tuple(info["actions"]))
            reply = self.policy.decide(prompt, self._rng)
            action, valid = _read_action(reply.text, info["actions"])
            now = self.clock
            observation, reward, terminated, truncated, info = world.step(to_env(world.action_space, action))
            outcome = read_outcome(observation, terminated, info)
            experience = Experience(state, action, outcome, float(reward), now)
            self.matching.learn(experience)
            verdict = self.verifier.verify(experience, self.memory, prefix, now)
            self._note_doubt(verdict, now)
            total.add(reply, verdict, valid)
            if self.keep_trace:
                trace.append(StepTrace(experience, prompt, reply.text, retrieved, verdict))
            prefix.append(action)
            self.clock = AgentClock(now.episode, now.step + 1)
            state, score = outcome.state, outcome.score
        episode = Episode(
            task, score, self.clock.step - started, bool(terminated), trace=tuple(trace), **total.as_arguments()
        )
        self.memory.end_episode(episode, self.clock)
        verdict_at_end = self.verifier.end_episode(episode, self.memory, self.clock)
        if verdict_at_end is not None:
            self._note_doubt(verdict_at_end, self.clock)
        self.clock = AgentClock(self.clock.episode + 1, self.clock.step)
        return episode

    def _note_doubt(self, verdict: Verdict, now: AgentClock) -> None:
        """Remember when memory was first found wrong: by the verifier, or by the eye where there is none."""
        wrong = verdict.surprise if isinstance(self.verifier, NoVerifier) else verdict.contradicted
        if wrong and self.doubt_since is None:
            self.doubt_since = now.step

    def _prompt(self, task: str, state: str, actions: tuple[str, ...]) -> tuple[str, tuple[RecordId, ...]]:
        here = self.memory.retrieve(state, self.recall.k, self.clock)
        key, asked = self.matching.state_key(state), 0
        elsewhere: list[Record] = []
        notes: dict[RecordId, Note] = {note.id: note for note in here.notes}
        seen = {record.id for record in here.records}
        for other in list(self.memory.states()):
            if asked >= self.recall.states:
                break
            if self.matching.state_key(other) == key:
                continue
            asked += 1
            answer = self.memory.retrieve(other, self.recall.k, self.clock)
            elsewhere += [record for record in answer.records if record.id not in seen]
            seen.update(record.id for record in answer.records)
            notes.update((note.id, note) for note in answer.notes)
        view = PromptView(
            task,
            state,
            actions,
            fold(here.records),
            fold(elsewhere),
            tuple(note.text for note in notes.values()),
            self.clock.step,
            self.doubt_since,
        )
        return view.render(), tuple(sorted(seen)) + tuple(notes)


class _Totals:
    """Sums over the steps of an episode."""

    def __init__(self) -> None:
        self.probes = ProbeCost()
        self.surprises = self.realignments = self.invalid_actions = 0
        self.model_calls = self.tokens_in = self.tokens_out = 0

    def add(self, reply: Reply, verdict: Verdict, valid: bool) -> None:
        self.probes += verdict.cost
        self.surprises += verdict.surprise
        self.realignments += verdict.realigned
        self.invalid_actions += not valid
        self.model_calls += reply.model_calls
        self.tokens_in += reply.tokens_in
        self.tokens_out += reply.tokens_out

    def as_arguments(self) -> dict[str, Any]:
        return dict(vars(self))


def _read_action(reply: str, admissible: list[str]) -> tuple[str, bool]:
    """The admissible action that the reply names, and whether it named one; the first one if it did not.

    An invalid answer still needs an action, since Gymnasium has no empty one; it is counted.
    """
    text = reply.strip()
    if text in admissible:
        return text, True
    return admissible[0], False
