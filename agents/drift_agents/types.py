"""Frozen, plain data that memories, verifiers, policies and the agent exchange."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from typing import NamedTuple

RecordId = int


class AgentClock(NamedTuple):
    """The agent's own time.

    Args:
        episode: episodes begun before this one.
        step: interactions (ordinary steps, no probes) before this one, over the agent's life.
    """

    episode: int = 0
    step: int = 0


CLOCK_UNITS = AgentClock._fields
"""What memories can count time in."""


class Outcome(NamedTuple):
    """The result of an action.

    Args:
        state: the next state as text.
        score: the score so far, as the agent sees it, in [0, 1].
        ended: whether the episode terminated there (running out of time does not count).
    """

    state: str
    score: float
    ended: bool


class Transition(NamedTuple):
    """A state, an action and an outcome: what a matching rule compares."""

    state: str
    action: str
    outcome: Outcome


class Experience(NamedTuple):
    """A transition of the agent.

    Args:
        state: the state before, as the text that the environment showed.
        action: the action as text, one of the environment's admissible actions or what was answered instead.
        outcome: what the environment answered.
        reward: the reward of this step as the environment paid it.
        now: when it happened.
    """

    state: str
    action: str
    outcome: Outcome
    reward: float
    now: AgentClock

    @property
    def transition(self) -> Transition:
        """What a matching rule compares."""
        return Transition(self.state, self.action, self.outcome)


class Record(NamedTuple):
    """What a memory holds about one (state, action).

    Args:
        id: the memory's own number for it; larger means written later.
        state: the state before.
        action: the action as text.
        outcomes: pairs of outcome and probability, most probable first; a single transition has one pair.
        n: how many responses the distribution rests on.
        now: when it was written.
        verified: whether a verifier wrote it after probing.
    """

    id: RecordId
    state: str
    action: str
    outcomes: tuple[tuple[Outcome, float], ...]
    n: int
    now: AgentClock
    verified: bool = False

    @property
    def outcome(self) -> Outcome:
        """The most probable outcome."""
        return self.outcomes[0][0]

    def transitions(self) -> tuple[tuple[Transition, float], ...]:
        """The transitions that the record stands for, each with the number of responses that support it."""
        return tuple((Transition(self.state, self.action, outcome), p * self.n) for outcome, p in self.outcomes)


class Note(NamedTuple):
    """A derived item in words: an insight, a skill, a strategy.

    Args:
        id: the memory's own number for it.
        text: what stands in the prompt.
        evidence: the ids of the records that it rests on.
        weight: how strongly the memory believes in it, in [0, 1].
    """

    id: RecordId
    text: str
    evidence: tuple[RecordId, ...] = ()
    weight: float = 1.0


class Retrieved(NamedTuple):
    """What a memory answers to one question.

    Args:
        records: records about transitions, in the order in which they should be read.
        weights: one for each record, how strongly the memory recalls it, in (0, 1].
        notes: derived items in words.
    """

    records: tuple[Record, ...] = ()
    weights: tuple[float, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def ids(self) -> tuple[RecordId, ...]:
        """The ids of all that was retrieved."""
        return tuple(r.id for r in self.records) + tuple(note.id for note in self.notes)


class Removed(NamedTuple):
    """Everything that fell when records were removed.

    Args:
        records: the ids of the records.
        notes: the ids of derived items that cited them and fell with them.
    """

    records: tuple[RecordId, ...] = ()
    notes: tuple[RecordId, ...] = ()


class ProbeCost(NamedTuple):
    """What probing cost, in interactions with the environment or its twin.

    Args:
        steps: every step, prefixes and retries included.
        resets: every reset.
        falls: probe episodes that ended without any score.
        purchases: probe episodes that ended with a score.
    """

    steps: int = 0
    resets: int = 0
    falls: int = 0
    purchases: int = 0

    def __add__(self, other: object) -> ProbeCost:
        """Both costs together."""
        if not isinstance(other, ProbeCost):
            return NotImplemented
        return ProbeCost(*(a + b for a, b in zip(self, other, strict=True)))


NO_COST = ProbeCost()


class Verdict(NamedTuple):
    """What a verifier did about one experience.

    Args:
        surprise: whether memory did not expect the outcome.
        statistic: the number on which that rests (for GLOVE: Q_hist of the outcome), if there is one.
        probed: the outcomes of the probes.
        cost: what the probes cost.
        removed: what fell out of memory.
        realigned: whether memory was rewritten because the environment was found to have changed.
        contradicted: whether memory is in doubt from this step on (`drift_agents.agent.agent.Agent`), by the verifier's
            own rule; for GLOVE, whether the probes contradicted memory.
        observed: the id under which the experience was written, or `None` when it was not.
        inserted: the id of the verified summary, or `None` when none was written.
        about: the state and action that it is about, where these are not the experience's.
        newest: for a verdict at the end of an episode, the step at which memory had last written
            about that, before the verdict; -1 if it knew nothing.
    """

    surprise: bool = False
    statistic: float | None = None
    probed: tuple[Outcome, ...] = ()
    cost: ProbeCost = NO_COST
    removed: Removed = Removed()
    realigned: bool = False
    contradicted: bool = False
    observed: RecordId | None = None
    inserted: RecordId | None = None
    about: tuple[str, str] | None = None
    newest: int = -1


class Usage(NamedTuple):
    """What language models cost; all zero where there is none.

    Args:
        model_calls: answers of a language model, re-asks included.
        tokens_in: tokens of all prompts.
        tokens_out: tokens of all answers.
        milliseconds: how long the answers took; as they were recorded, for recorded ones.
        cost: what the tokens cost, in the currency of the price that was given.
        reasks: repeated requests after invalid answers.
        fallbacks: how often a rule answered in the model's place.
        dropped_records: records that were left out of prompts which were too long.

    Example:
        >>> (Usage(1, 200, 10) + Usage(1, 300, 5)).tokens_in
        500
    """

    model_calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    milliseconds: int = 0
    cost: float = 0.0
    reasks: int = 0
    fallbacks: int = 0
    dropped_records: int = 0

    def __add__(self, other: object) -> Usage:
        """The sums, field by field."""
        if not isinstance(other, Usage):
            return NotImplemented
        return Usage(*(a + b for a, b in zip(self, other, strict=True)))  # type: ignore[arg-type]


NO_USAGE = Usage()


class UsageFields:
    """Read access to the fields of `usage`, for classes that hold one.

    Example:
        >>> Episode("Cross.", 1.0, 4, True, usage=Usage(model_calls=4)).model_calls
        4
    """

    usage: Usage

    @property
    def model_calls(self) -> int:
        """Answers of a language model, re-asks included."""
        return self.usage.model_calls

    @property
    def tokens_in(self) -> int:
        """Tokens of the prompts."""
        return self.usage.tokens_in

    @property
    def tokens_out(self) -> int:
        """Tokens of the answers."""
        return self.usage.tokens_out

    @property
    def milliseconds(self) -> int:
        """Latency in total."""
        return self.usage.milliseconds

    @property
    def cost(self) -> float:
        """In the currency of the price."""
        return self.usage.cost

    @property
    def reasks(self) -> int:
        """Answers that were requested again."""
        return self.usage.reasks

    @property
    def fallbacks(self) -> int:
        """Answers given by a rule instead."""
        return self.usage.fallbacks

    @property
    def dropped_records(self) -> int:
        """Records left out of prompts that were too long."""
        return self.usage.dropped_records


SUPERVISION = ("none", "own reward", "judge", "privileged")
"""What an agent learns beyond its own observations, from nothing to the truth."""


def strongest_supervision(*levels: str) -> str:
    """The strongest of several levels of `SUPERVISION`.

    Example:
        >>> strongest_supervision("none", "judge", "own reward")
        'judge'
    """
    return max(levels, key=SUPERVISION.index)


class Thought(NamedTuple):
    """How a strategy was made: what AdaMEM's fine-tuning set is made from (STEP-MFT).

    Args:
        instructions: the system message of the request for it.
        question: the user's message: the present state and the retrieved experiences.
        answer: the answer, as JSON.
        strategy: the text in prompts.
        baseline: the action that the policy chose without a strategy, where it did.
    """

    instructions: str
    question: str
    answer: str
    strategy: str
    baseline: str | None = None


@dataclass(frozen=True)
class StepTrace:
    """One step of an episode.

    Args:
        experience: what happened.
        prompt: the text of the view that the policy got.
        reply: the policy's output.
        retrieved: the ids of the records and items in the prompt.
        verdict: the verifier's, after the step.
        checks: the verifier's before the step, about actions that the policy proposed.
        thought: how the strategy was made, at a step at which one was.
        strategy: the strategy in force, if there was one.
    """

    experience: Experience
    prompt: str
    reply: str
    retrieved: tuple[RecordId, ...]
    verdict: Verdict
    checks: tuple[Verdict, ...] = ()
    thought: Thought | None = None
    strategy: str | None = None


@dataclass(frozen=True)
class Episode(UsageFields):
    """A finished episode.

    Args:
        task: the task in words.
        score: the score at the end, as the agent sees it, in [0, 1].
        steps: how many interactions it took.
        terminated: whether it ended by itself, not by the time limit.
        probes: what probing cost.
        surprises: how often an outcome contradicted memory.
        realignments: how often memory was rewritten.
        invalid_actions: how often the policy's answer was no admissible action.
        usage: what its language models cost; its fields can be read from the episode, too.
        refreshes: how many strategies were made.
        tokens_estimated: tokens of all prompts and replies of its decisions, as `drift_agents.llm.base`
            estimates them, with and without a language model.
        loop_steps: steps in circles longer than five steps (`drift_agents.agent.agent.count_loop_steps`).
        trace: the steps, one by one.
        closing: what the verifier found out when the episode was over.
        member: the member of a team that played; empty for an agent, and where all members decide together.
    """

    task: str
    score: float
    steps: int
    terminated: bool
    probes: ProbeCost = NO_COST
    surprises: int = 0
    realignments: int = 0
    invalid_actions: int = 0
    usage: Usage = NO_USAGE
    refreshes: int = 0
    tokens_estimated: int = 0
    loop_steps: int = 0
    trace: tuple[StepTrace, ...] = field(default=(), repr=False)
    closing: tuple[Verdict, ...] = ()
    member: str = ""

    def verdicts(self) -> Iterator[tuple[AgentClock, tuple[str, str] | None, Verdict]]:
        """Every verdict of the episode in order of time, as far as steps were kept.

        Yields:
            When it was spoken; the state and action that it is about, `None` if it is about all of
            memory; the verdict. What was said when the episode was over carries the time of its
            last step.
        """
        now = AgentClock()
        for step in self.trace:
            now, experience = step.experience.now, step.experience
            for verdict in step.checks:
                yield now, verdict.about, verdict
            yield now, (experience.state, experience.action), step.verdict
        for verdict in self.closing:
            yield now, verdict.about, verdict

    def _repr_html_(self) -> str:
        """The result and the steps as a table for notebooks; its colours are those of the page."""
        end = "ended" if self.terminated else "out of time"
        facts = [f"score {self.score:g}", f"{self.steps} steps", end, f"{self.surprises} surprises"]
        facts += [f"{self.realignments} realignments", f"{self.probes.steps} probe steps"]
        shown = f"<p><b>{escape(self.task)}</b><br>{escape(' · '.join(facts))}</p>"
        if not self.trace:
            return shown
        rows = []
        for step in self.trace[:SHOWN]:
            seen, verdict = step.experience, step.verdict
            noted = {"surprise": verdict.surprise, "realigned": verdict.realigned}
            cells = (str(seen.now.step), seen.state, seen.action, seen.outcome.state, f"{seen.outcome.score:g}")
            rows.append((*cells, ", ".join(word for word, is_so in noted.items() if is_so)))
        body = "".join(f"<tr>{''.join(f'{_CELL}{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
        heads = "".join(
            f'<th style="text-align:left">{head}</th>'
            for head in ("step", "state", "action", "outcome", "score", "verifier")
        )
        more = f"<p>and {len(self.trace) - SHOWN} more</p>" if len(self.trace) > SHOWN else ""
        table = f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{more}"
        return f"{shown}<details><summary>steps</summary>{table}</details>"


SHOWN = 100
"""Steps of an episode in a notebook."""

_CELL = '<td style="text-align:left;vertical-align:top;white-space:pre-wrap">'
