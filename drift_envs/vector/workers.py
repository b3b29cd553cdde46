"""Native vector environments in several processes: `gym.make_vec(id, ..., num_workers=4)`.

* `WorkerVectorEnv` - one native vector environment in each process; results as in one process
* `WorkerPlan` - what a process builds

The calling process computes the first part itself, while the others compute theirs: it would wait otherwise, and what
it computes has not to be copied. Actions, observations, rewards and ends of the other parts are in shared memory; the
pipes carry one byte a step, and `info` where there is any.
"""

from __future__ import annotations

import multiprocessing
import pickle
import weakref
from collections.abc import Sequence
from itertools import pairwise
from multiprocessing.connection import Connection
from multiprocessing.shared_memory import SharedMemory
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode

from drift_envs.checks import check_integer
from drift_envs.errors import ArgumentError, StateError
from drift_envs.lazy import load_object
from drift_envs.schedule import Timeline
from drift_envs.vector.checked import CheckedVectorEnv
from drift_envs.vector.draws import Share
from drift_envs.vector.dynamics import Infos, IntegerActions, check_forces
from drift_envs.vector.reset_request import ResetRequest, read_request
from drift_envs.vector.watched import join_ended
from drift_envs.wrappers.clock import IdleRewinds
from drift_envs.wrappers.drift import DriftWrapper

MOST_WORKERS = 256
_LOST = (BrokenPipeError, ConnectionResetError, EOFError)
_PATIENCE = 5.0  # seconds in which a process ends by itself
_STEP = b"s"  # the order of a step, and its answer without `info`: no pickle is so short
_RESULTS = ("observations", "rewards", "terminations", "truncations")  # of a step, before `info`


class WorkerPlan(NamedTuple):
    """What a process builds.

    Args:
        build: what builds a single environment, as `module:name`.
        native: the class of the native vector environment, as `module:name`.
        max_episode_steps: the step limit of an episode.
        autoreset_mode: the autoreset mode.
        share_timeline: whether all sub-environments follow the timeline of the first.
        arguments: the arguments of the single environment.
    """

    build: str
    native: str
    max_episode_steps: int | None
    autoreset_mode: str
    share_timeline: bool
    arguments: dict[str, Any]

    def make(self, single_env: Any, part: Share) -> Any:
        """The vector environment of a part."""
        notify = self.arguments.get("notify", "none")
        limit, mode, shared = self.max_episode_steps, self.autoreset_mode, self.share_timeline
        envs = load_object(self.native)(single_env, part.number, limit, mode, shared, notify, part)
        envs._idle_rewinds.is_over = True  # `WorkerVectorEnv` counts for all parts
        return envs


class _Field(NamedTuple):
    """An array in the shared memory."""

    shape: tuple[int, ...]
    kind: str
    offset: int


def _layout(fields: dict[str, tuple[tuple[int, ...], Any]]) -> tuple[dict[str, _Field], int]:
    """The places of arrays in one block, each at a multiple of 64 bytes, and the size of the block."""
    found, offset = {}, 0
    for name, (shape, kind) in fields.items():
        found[name] = _Field(shape, np.dtype(kind).str, offset)
        offset += -(-int(np.prod(shape)) * np.dtype(kind).itemsize // 64) * 64
    return found, max(offset, 1)


def _arrays(memory: SharedMemory, fields: dict[str, _Field]) -> dict[str, np.ndarray]:
    return {
        name: np.ndarray(field.shape, field.kind, memory.buf, field.offset)  # type: ignore[call-overload]
        for name, field in fields.items()
    }


def _serve(pipe: Connection, name: str, fields: dict[str, _Field], plan: WorkerPlan, part: Share) -> None:
    """What a process does until its pipe is closed."""
    memory = SharedMemory(name)
    mine = {key: array[part.columns] for key, array in _arrays(memory, fields).items()}
    envs: Any = None
    try:
        while True:
            received = pipe.recv_bytes()
            order, given = ("step", None) if received == _STEP else pickle.loads(received)
            if order == "close":
                break
            try:
                if envs is None:
                    envs = plan.make(load_object(plan.build)(**plan.arguments), part)
                answer = _obey(envs, order, given, mine)
                if order == "step" and not answer:
                    pipe.send_bytes(_STEP)
                else:
                    pipe.send((True, answer))
            except Exception as error:  # noqa: BLE001 - the first process raises it
                pipe.send((False, error))
    except (*_LOST, KeyboardInterrupt):
        pass  # the first process has ended
    finally:
        if envs is not None:
            envs.close()
        mine.clear()
        memory.close()


def _obey(envs: Any, order: str, given: Any, mine: dict[str, np.ndarray]) -> Any:
    """Carry out one order on a part; arrays are read from and written to `mine`, all else is returned."""
    if order == "step":
        results = envs.step(mine["actions"])
        for name, result in zip(_RESULTS, results[:4], strict=True):
            mine[name][:] = result
        return results[4]
    if order == "reset":
        has_changed = envs.has_changed(given.seeds) if envs._is_reset else False
        mine["observations"][:], infos = envs.begin(given)
        return has_changed, infos
    if order == "set_attr":
        name, values, is_some = given
        envs.set_attr(name, values)
        # all processes draw as soon as one sub-environment needs it, so that the streams stay aligned
        if is_some and name == "transient":
            envs._has_false_responses = True
        if is_some and name == "slip":
            envs._can_slip = True
        return None
    if order == "render":
        return envs.render()
    name, args, kwargs = given
    return envs.call(name, *args, **kwargs)


class WorkerVectorEnv(CheckedVectorEnv):
    """Native sub-environments in several processes, with the results of a single process.

    Each process draws the random numbers of its own sub-environments, and skips those of the others. Processes are
    started by `spawn`: a program that uses them has to be importable (`if __name__ == "__main__":`).

    Args:
        single_env: the single environment of which all sub-environments are copies.
        plan: what each process builds.
        num_envs: the number of sub-environments.
        num_workers: the number of processes with this one, from 1 to the number of sub-environments.

    Raises:
        ArgumentError: if an argument is invalid.
        StateError: from `reset`, `step`, `call`, `get_attr`, `set_attr` and `render`, if a process has ended or the
            environment is closed.
    """

    def __init__(self, single_env: DriftWrapper, plan: WorkerPlan, num_envs: int, num_workers: int) -> None:
        self._set_up(single_env, num_envs, plan.max_episode_steps, plan.autoreset_mode)
        workers = check_integer("num_workers", num_workers, 1, min(MOST_WORKERS, num_envs))
        edges = np.linspace(0, num_envs, workers + 1).astype(int).tolist()
        self.parts = tuple(Share(num_envs, low, high - low) for low, high in pairwise(edges))
        self._first = plan.make(single_env, self.parts[0])  # checks the arguments, before processes start
        self._shares, self._seeds = plan.share_timeline, np.zeros(num_envs, np.int64)
        self._idle_rewinds = IdleRewinds(self._first.pool.schedule.name)
        self._ended = np.zeros(num_envs, bool)
        space = self.single_action_space
        self._integers = IntegerActions(num_envs, int(space.n)) if isinstance(space, Discrete) else None
        kind = np.int64 if self._integers is not None else np.float32
        shape = self.observation_space.shape or (num_envs,)
        fields, size = _layout(
            {
                "actions": (self.action_space.shape or (num_envs,), kind),
                "observations": (shape, self.observation_space.dtype),
                "rewards": ((num_envs,), np.float64),
                "terminations": ((num_envs,), bool),
                "truncations": ((num_envs,), bool),
            }
        )
        memory = SharedMemory(create=True, size=size)
        self._arrays = _arrays(memory, fields)
        context = multiprocessing.get_context("spawn")
        self.processes: list[Any] = []
        self._pipes: list[Connection] = []
        self._finalizer = weakref.finalize(self, _end, self.processes, self._pipes, self._arrays, memory)
        for part in self.parts[1:]:
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, memory.name, fields, plan, part), daemon=True)
            try:
                process.start()
            except BaseException:
                ours.close()
                self._finalizer()  # of those that have started, and of the memory
                raise
            finally:
                theirs.close()
            self._pipes.append(ours)
            self.processes.append(process)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start episodes, see `DriftVectorEnv.reset`.

        Args:
            seed: one seed, of which sub-environment `i` takes `seed + i`, or one for each.
            options: the options of `reset`.

        Raises:
            ArgumentError: if the seed or an option is invalid.
        """
        request = read_request(seed, options, self.num_envs, self._is_reset, self._timeline_of)
        entropy, seeds = request.entropy, dict(request.seeds)
        if not self._is_reset:
            if entropy is None:
                entropy = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
            seeds = {index: seeds.get(index, entropy + index) for index in range(self.num_envs)}
        if self._shares and seeds:
            seeds = dict.fromkeys(seeds, next(iter(seeds.values())))
        if entropy is not None:
            super().reset(seed=entropy)
        orders = [self._part_of(request._replace(entropy=entropy, seeds=seeds), part) for part in self.parts]
        found = self._ask([None if order is None else ("reset", order) for order in orders])
        if self._is_reset and seeds and self._first.pool.can_change and not self._idle_rewinds.is_over:
            self._idle_rewinds.count(any(each[0] for each in found if each is not None), stacklevel=2)
        for index, own in seeds.items():
            self._seeds[index] = own
        self._ended[request.indices] = False
        self._is_reset = True
        return self._arrays["observations"].copy(), self._join([None if each is None else each[1] for each in found])

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step all sub-environments, see `DriftVectorEnv.step`.

        Args:
            actions: an element of `action_space`.

        Raises:
            ArgumentError: if an action is invalid.
            StateError: before the first `reset`, or after the end of an episode with autoreset disabled.
        """
        self._check_step(self._ended if self._ended.any() else None)
        checked = check_forces(actions, self.num_envs)[0] if self._integers is None else self._integers.check(actions)
        self._check_open()
        own = self.parts[0].number
        self._arrays["actions"][own:] = checked[own:]
        results = {name: np.empty_like(self._arrays[name]) for name in _RESULTS}
        mine = {"actions": checked[:own], **{name: result[:own] for name, result in results.items()}}
        infos = self._ask([("step", None)] * len(self.parts), mine)
        for name, result in results.items():
            result[own:] = self._arrays[name][own:]
        observations, rewards, terminations, truncations = results.values()
        if self.autoreset_mode is AutoresetMode.DISABLED:
            self._ended = terminations | truncations
        return observations, rewards, terminations, truncations, self._join(infos)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of each sub-environment, or read an attribute.

        Args:
            name: a name of `SubEnvironment`; what it returns has to be picklable.
            *args: arguments of the method.
            **kwargs: keyword arguments of the method.
        """
        found = self._ask([("call", (name, args, kwargs))] * len(self.parts))
        return tuple(item for each in found for item in each)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Read an attribute of each sub-environment, see `SubEnvironment`."""
        return self.call(name)

    def set_attr(self, name: str, values: list[Any] | tuple[Any, ...] | Any) -> None:
        """Set an attribute of each sub-environment.

        Args:
            name: a knob that the schedule does not drive, or a part of the state.
            values: a list or tuple with one value for each, or one value for all.
        """
        if not isinstance(values, (list, tuple)):
            values = [values] * self.num_envs
        if len(values) != self.num_envs:
            raise ArgumentError(
                f"`values` should have one value for each of {self.num_envs} sub-environments. Received {len(values)}"
            )
        is_some = name in ("transient", "slip") and any(values)
        self._ask([("set_attr", (name, list(values[part.columns]), is_some)) for part in self.parts])

    def render(self) -> tuple[np.ndarray, ...] | None:
        """A frame of each sub-environment, or `None` without a `render_mode`."""
        if self.render_mode is None:
            return None
        return tuple(frame for each in self._ask([("render", None)] * len(self.parts)) for frame in each)

    def close_extras(self, **kwargs: Any) -> None:
        """End the processes, also where some have ended, and free the shared memory.

        Args:
            **kwargs: not used.
        """
        self._finalizer()
        super().close_extras(**kwargs)

    def _check_open(self) -> None:
        if not self._finalizer.alive:
            raise StateError("the vector environment is closed, and has to be made anew")

    def _ask(self, orders: Sequence[tuple[str, Any] | None], mine: dict[str, np.ndarray] | None = None) -> list[Any]:
        """Send an order to each process, carry out that of the first part, and return the answers.

        Args:
            orders: one for each part, `None` where there is none, which has the answer `None`.
            mine: the arrays of the first part, by default in the shared memory.
        """
        self._check_open()
        others = list(zip(self._pipes, orders[1:], strict=True))
        failed: Exception | None = None
        answers: list[Any] = [None]
        try:
            for pipe, order in others:
                if order is not None:
                    pipe.send_bytes(_STEP if order[0] == "step" else pickle.dumps(order))
            if orders[0] is not None:
                try:
                    answers[0] = self._obey_first(*orders[0], mine)
                except Exception as error:  # noqa: BLE001 - raised below, when the other processes have answered
                    failed = error
            for pipe, order in others:
                received = _STEP if order is None else pipe.recv_bytes()
                succeeded, answer = (True, None) if received == _STEP else pickle.loads(received)
                answers.append(answer)
                if not succeeded:
                    failed = failed or answer
        except _LOST as error:
            join_ended(self.processes, _PATIENCE)
            ended = ", ".join(
                f"the process of sub-environments {part.first} to {part.first + part.number - 1} ended with exit code "
                f"{process.exitcode}"
                for part, process in zip(self.parts[1:], self.processes, strict=True)
                if not process.is_alive()
            )
            self._finalizer()
            raise StateError(f"{ended}; the vector environment is closed, and has to be made anew") from error
        except BaseException:
            self._finalizer()  # interrupted: the answers that are still to come would be taken for later ones
            raise
        if failed is not None:
            raise failed
        return answers

    def _obey_first(self, order: str, given: Any, mine: dict[str, np.ndarray] | None) -> Any:
        if mine is None:
            columns = self.parts[0].columns
            mine = {name: array[columns] for name, array in self._arrays.items()}
        return _obey(self._first, order, given, mine)

    def _part_of(self, request: ResetRequest, part: Share) -> ResetRequest | None:
        """A request for the sub-environments of one process, `None` if it has none of them."""
        inside = (request.indices >= part.first) & (request.indices < part.first + part.number)
        if not inside.any():
            return None
        last = part.first + part.number
        seeds = {index - part.first: own for index, own in request.seeds.items() if part.first <= index < last}
        jumps = request.jumps
        if isinstance(jumps, list):
            jumps = [jump for jump, own in zip(jumps, inside.tolist(), strict=True) if own]
        return request._replace(indices=request.indices[inside] - part.first, seeds=seeds, jumps=jumps)

    def _timeline_of(self, index: int, seed: int | None) -> Timeline:
        """The timeline of a sub-environment, for the phases of reset options."""
        pool = self._first.pool
        return Timeline(pool.schedule, pool.table, int(self._seeds[index]) if seed is None else seed)

    def _join(self, infos: Sequence[Infos | None]) -> Infos:
        """`info` of all sub-environments."""
        found: Infos = {}
        keys = {key: None for each in infos if each for key in each if not key.startswith("_")}
        for key in keys:
            some = [each.get(key) if each else None for each in infos]
            masks = [
                np.zeros(part.number, bool) if each is None or f"_{key}" not in each else each[f"_{key}"]
                for part, each in zip(self.parts, infos, strict=True)
            ]
            example = next(each for each in some if each is not None)
            if isinstance(example, dict):
                found[key] = self._join(some)
            else:
                blank = None if example.dtype == object else np.zeros((), example.dtype)
                filled = [
                    np.full((part.number, *example.shape[1:]), blank, example.dtype) if each is None else each
                    for part, each in zip(self.parts, some, strict=True)
                ]
                found[key] = np.concatenate(filled)
            found[f"_{key}"] = np.concatenate(masks)
        return found


def _end(processes: list[Any], pipes: list[Connection], arrays: dict[str, np.ndarray], memory: SharedMemory) -> None:
    """End all processes and free the shared memory."""
    for pipe in pipes:
        try:
            pipe.send(("close", None))
        except (*_LOST, OSError):
            continue  # it has ended
    for process, pipe in zip(processes, pipes, strict=True):
        process.join(_PATIENCE)
        if process.is_alive():
            process.kill()
            process.join()
        pipe.close()
    arrays.clear()
    memory.close()
    memory.unlink()
