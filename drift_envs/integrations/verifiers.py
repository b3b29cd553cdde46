"""Lifetimes for verifiers, a library for reinforcement learning of language models; needs the extra `verifiers`.

This is version 1 of verifiers' interface, of `verifiers>=0.4,<0.5`. The package `examples/drift_lifetimes` gives all
of it a name for the command line: `vf-eval drift-lifetimes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field, model_validator

from drift_envs.errors import needs_extra
from drift_envs.integrations.dialogue import INSTRUCTIONS, Dialogue
from drift_envs.integrations.lifetime import TextLifetime, lifetime_reward, lifetime_scores, spread_lifetimes

with needs_extra("verifiers", "verifiers"):
    import httpx
    import verifiers.v1 as vf
    from verifiers.v1.dialects.chat import message_to_wire

__all__ = ["ChatHarness", "LifetimeEnv", "LifetimeTaskset"]  # what verifiers looks for: one of each kind


MOST_SECONDS = 3600.0
"""How long an answer of the model may take; verifiers sets the limits of a rollout."""


class LifetimeTasksetConfig(vf.TasksetConfig):  # type: ignore[misc, unused-ignore]
    """Which lifetimes are played: options `--env.taskset.NAME` of verifiers' commands.

    Args:
        schedules: shipped schedules or files; each names its environment. Lifetimes take them in turn.
        lifetimes: how many tasks there are.
        first_seed: the seed of the first round of schedules; each further round has the next seed.
        rounds: the first so many episodes of every phase are played; 2 if neither this nor `episodes` is given.
        episodes: so many episodes are played, during which time goes on.
    """

    schedules: list[str] = Field(["frozen_lake/explicit:family"], min_length=1)
    lifetimes: int = Field(100, ge=1)
    first_seed: int = Field(0, ge=0)
    rounds: int | None = None
    episodes: int | None = None

    @model_validator(mode="after")
    def check_schedules(self) -> LifetimeTasksetConfig:
        """Begin a lifetime of each schedule, so that mistakes are reported before a model is asked."""
        for schedule in self.schedules:
            TextLifetime.of_schedule(schedule, 0, rounds=self.rounds, episodes=self.episodes).close()
        return self


class LifetimeData(vf.TaskData):  # type: ignore[misc, unused-ignore]
    """A lifetime as a row; the model is shown none of it but `system_prompt`.

    Args:
        schedule: what drifts, and where.
        seed: of the instance.
        rounds: see `LifetimeTasksetConfig`.
        episodes: see `LifetimeTasksetConfig`.
    """

    schedule: str
    seed: int
    rounds: int | None
    episodes: int | None


class LifetimeTask(vf.Task[LifetimeData]):  # type: ignore[misc, unused-ignore]
    """A lifetime as a task; `LifetimeEnv` scores it."""


class LifetimeTaskset(vf.Taskset[LifetimeTask, LifetimeTasksetConfig]):  # type: ignore[misc, unused-ignore]
    """Lifetimes as tasks."""

    def load(self) -> Iterator[LifetimeTask]:
        """Yield the tasks: the schedules in turn, each time with the next seed."""
        config = self.config
        for schedule, seed in spread_lifetimes(config.schedules, config.lifetimes, config.first_seed):
            data = LifetimeData(
                name=f"{schedule}, seed {seed}",
                system_prompt=INSTRUCTIONS,
                schedule=schedule,
                seed=seed,
                rounds=config.rounds,
                episodes=config.episodes,
            )
            yield LifetimeTask(data, config.task)


class LifetimeEnvConfig(vf.EnvConfig):  # type: ignore[misc, unused-ignore]
    """The agent's place is on this machine: the harness starts no program that would need a sandbox.

    Args:
        agent: who plays, with limits such as `max_turns`.
    """

    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())


class LifetimeEnv(vf.Env[LifetimeEnvConfig]):  # type: ignore[misc, unused-ignore]
    """An environment of verifiers whose rollout is a lifetime, with the transcript as the model's memory.

    The reward `score` is the mean score of all episodes, with 0 for those that a limit cut away. The metrics are
    those of `drift_envs.integrations.lifetime.lifetime_scores`; `info["episodes"]` has a line for each episode.
    """

    async def run(self, task: LifetimeTask, agents: Any) -> None:
        """Play a lifetime.

        Args:
            task: the lifetime.
            agents: who plays, as `agents.agent`.
        """
        data = task.data
        lines: list[dict[str, Any]] = []
        life = TextLifetime.of_schedule(
            data.schedule, data.seed, lines.append, rounds=data.rounds, episodes=data.episodes
        )
        try:
            trace = await _play(Dialogue(life), task, agents.agent)
        finally:
            life.close()
        metrics = lifetime_scores(lines, life.planned)
        metrics.pop("score")  # of what was played, where the clock counts steps
        trace.record_reward("score", lifetime_reward(lines, life.length or 0))
        trace.record_metrics(metrics)
        trace.info["episodes"] = lines


async def _play(dialogue: Dialogue, task: LifetimeTask, agent: Any) -> Any:
    """Let an agent talk until the lifetime or its budget is over; the trace of it."""
    async with agent.interaction(task) as interaction:
        segment = await interaction.turn(dialogue.open())
        while not segment.terminated:
            turn = dialogue.reply(segment.last_reply)
            if turn.is_over:
                break
            segment = await interaction.turn(turn.message)
    return interaction.trace


class ChatHarness(vf.Harness[vf.HarnessConfig]):  # type: ignore[misc, unused-ignore]
    """One request for each message, from the process of the evaluation itself.

    verifiers' own harnesses are programs that are installed by downloads when a run begins.
    """

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        """Ask the model for the next message of the conversation so far.

        Args:
            ctx: the model.
            trace: what happened so far; verifiers keeps it.
            runtime: not used.
            endpoint: verifiers' address for requests to the model.
            secret: what opens it.
            mcp_urls: not used.
            data: with the conversation as its prompt.
        """
        system, messages = self.resolve_prompt(data)
        shown = [{"role": "system", "content": system}, *map(message_to_wire, messages or [])]
        async with httpx.AsyncClient(timeout=MOST_SECONDS, trust_env=False) as client:
            response = await client.post(
                f"{endpoint}/chat/completions",
                headers={"Authorization": f"Bearer {secret}"},
                json={"model": ctx.model, "messages": shown},
            )
        response.raise_for_status()
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")
