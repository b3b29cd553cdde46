"""Environments behind OpenEnv's server, for trainers that speak its protocol; needs the extra `openenv`.

OpenEnv's own `GenericEnvClient` is all that a client needs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from pydantic import Field

from drift_envs.checks import check_integer
from drift_envs.errors import StateError, needs_extra
from drift_envs.integrations.dialogue import INSTRUCTIONS, Dialogue
from drift_envs.integrations.lifetime import OWN, TextLifetime, lifetime_scores
from drift_envs.integrations.loopback import LOOPBACK, MAX_BODY, HostRule, guard, listen
from drift_envs.wrappers.drift import Source

with needs_extra("openenv-core", "openenv"):
    import uvicorn
    from fastapi.responses import JSONResponse
    from openenv.core.env_server.http_server import create_fastapi_app
    from openenv.core.env_server.interfaces import Environment
    from openenv.core.env_server.types import Action, EnvironmentMetadata, Observation, State


class LifetimeAction(Action):  # type: ignore[misc, unused-ignore]
    """What an agent says.

    Args:
        message: a message with an action, see `drift_envs.messages.read_action`.
    """

    message: str


class LifetimeObservation(Observation):  # type: ignore[misc, unused-ignore]
    """What an agent is shown; `reward` is the score of an episode that has just ended, otherwise 0.

    Args:
        message: the next message of the dialogue, see `drift_envs.integrations.dialogue.Dialogue`.
        instructions: what belongs before the first message, from the system.
        episodes: the number of episodes that have ended.
        scores: score by phase, and recovery, when the lifetime is over; empty before.
    """

    message: str
    instructions: str = INSTRUCTIONS
    episodes: int = 0
    scores: dict[str, float] = Field(default_factory=dict)


class LifetimeEnvironment(Environment):  # type: ignore[misc, unused-ignore]
    """An environment of OpenEnv whose episode is a lifetime: all episodes of ours, one after the other.

    Args:
        env_id: one of the ids of this package, or with a schedule of any environment of Gymnasium.
        schedule: what drifts; by default that of the id.
        rounds: the first so many episodes of every phase; 2 if neither this nor `episodes` is given.
        episodes: so many episodes, during which time goes on.

    Raises:
        ArgumentError: an argument breaks a rule.
        ScheduleError: the schedule cannot be used.

    Example:
        >>> environment = LifetimeEnvironment("DriftFrozenLake-v0", "frozen_lake/implicit", rounds=1)
        >>> environment.reset(seed=0).message.splitlines()[-1]
        'Actions: 0 | 1 | 2 | 3'
        >>> observation = environment.step(LifetimeAction(message="Action: 1"))
        >>> observation.done, observation.reward
        (False, 0.0)
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(
        self, env_id: str, schedule: Source = OWN, *, rounds: int | None = None, episodes: int | None = None
    ) -> None:
        super().__init__()
        self._env = (env_id, schedule)
        self._plan: dict[str, Any] = {
            "rounds": 2 if rounds is None and episodes is None else rounds,
            "episodes": episodes,
        }
        self._life: TextLifetime | None = None
        self._dialogue: Dialogue | None = None
        self._lines: list[dict[str, Any]] = []
        self._state = State()
        TextLifetime(env_id, schedule, 0, None, **self._plan).close()  # mistakes are reported at once

    def reset(self, seed: int | None = None, episode_id: str | None = None, **arguments: Any) -> LifetimeObservation:
        """Begin a lifetime.

        Args:
            seed: of its instance, 0 if not given.
            episode_id: kept in `state`.
            **arguments: not used.
        """
        self.close()
        self._lines = []
        env_id, schedule = self._env
        self._life = TextLifetime(env_id, schedule, seed or 0, self._lines.append, **self._plan)
        self._dialogue = Dialogue(self._life)
        self._state = State(episode_id=episode_id, step_count=0)
        return LifetimeObservation(message=self._dialogue.open(), reward=0.0)

    def step(self, action: LifetimeAction, timeout_s: float | None = None, **arguments: Any) -> LifetimeObservation:
        """Answer an agent.

        Args:
            action: what it says.
            timeout_s: not used.
            **arguments: not used.

        Raises:
            StateError: no lifetime was begun, or it is over.
        """
        if self._dialogue is None or self._life is None:
            raise StateError("no lifetime was begun; call `reset`")
        turn = self._dialogue.reply(action.message)
        self._state.step_count += 1
        return LifetimeObservation(
            message=turn.message,
            reward=turn.reward,
            done=turn.is_over,
            episodes=self._dialogue.episodes,
            scores=lifetime_scores(self._lines, self._life.planned) if turn.is_over else {},
        )

    @property
    def state(self) -> Any:
        """OpenEnv's `State`: the client's id of the lifetime, and the messages answered."""
        return self._state

    def get_metadata(self) -> Any:
        """Name and description for OpenEnv's endpoint `/metadata`."""
        env_id, _ = self._env
        return EnvironmentMetadata(name=env_id, description="A lifetime in a text environment", version="1")

    def close(self) -> None:
        """Close the environment."""
        if self._life is not None:
            self._life.close()
            self._life = self._dialogue = None


def make_app(
    env_id: str,
    schedule: Source = OWN,
    *,
    rounds: int | None = None,
    episodes: int | None = None,
    sessions: int = 64,
) -> Any:
    """Make an application of FastAPI with OpenEnv's endpoints; each session has a lifetime of its own.

    Args:
        env_id: one of the ids of this package, or with a schedule of any environment of Gymnasium.
        schedule: what drifts; by default that of the id.
        rounds: see `LifetimeEnvironment`.
        episodes: see `LifetimeEnvironment`.
        sessions: how many there may be at a time.

    Raises:
        ArgumentError: an argument breaks a rule.
        ScheduleError: the schedule cannot be used.
    """
    check_integer("sessions", sessions, 1)

    def make() -> LifetimeEnvironment:
        return LifetimeEnvironment(env_id, schedule, rounds=rounds, episodes=episodes)

    make().close()
    app = create_fastapi_app(make, LifetimeAction, LifetimeObservation, max_concurrent_envs=sessions)
    app.add_exception_handler(StateError, _refuse_step)
    return app


async def _refuse_step(request: Any, error: Exception) -> JSONResponse:
    """Answer `POST /step`, for which OpenEnv makes an environment that no `reset` has begun."""
    reason = (
        "a lifetime needs a session, which requests to /reset and /step do not have: connect to the WebSocket /ws, "
        "as OpenEnv's GenericEnvClient does"
    )
    return JSONResponse({"detail": reason}, status_code=409)


def serve_openenv(app: Any, port: int = 0, allow_hosts: Iterable[str] = ()) -> None:
    """Serve clients on a loopback address, until the process is interrupted.

    OpenEnv's protocol has no authentication: every program of this machine can connect.

    Args:
        app: what `make_app` returned.
        port: 0 takes a free one; the address is printed on standard error.
        allow_hosts: names under which the server is addressed, beside `localhost`, this machine's name and IP
            addresses; requests to other names are refused.

    Raises:
        ArgumentError: the port cannot be used.
    """
    guarded = guard(app, HostRule(allow_hosts))
    with listen(port) as listener:
        print(f"serving http://{LOOPBACK}:{listener.getsockname()[1]}", file=sys.stderr, flush=True)
        config = uvicorn.Config(guarded, log_level="warning", timeout_graceful_shutdown=2, ws_max_size=MAX_BODY)
        uvicorn.Server(config).run([listener])
