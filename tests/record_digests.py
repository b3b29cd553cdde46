"""Records what the project computes as digests, so that a change that should change nothing can prove it.

    python tests/record_digests.py            # check against what is recorded; exit status 1 if anything differs
    python tests/record_digests.py --short    # the part that the test suite checks every time
    python tests/record_digests.py --write    # record anew: only where behaviour was meant to change

It uses what people use: the command line, the ids of Gymnasium, and the names of `drift_agents` and
`drift_envs`. No other module is imported, so files may move as they like.

* `digests.json` - by name: every cell of the experiments in `digests/*.yaml` (episodes, scores, steps, probes, and
  a digest of its lines and of its kept steps), the hash of every configuration, what models were asked, every
  shipped schedule (drift log and trajectory), the wrapper, twins and snapshots, native vector environments
* `digests/prompts/*.txt` - two prompts of each environment, as the policy got them
* `digests/report_figures.txt`, `digests/leaderboard_figures.txt` - the figures of all tables, row by row, without the
  first column, headers and sentences, which may be reworded
* `record` - all of it as data: name -> digest, and name -> text
* `differences` - what differs from what is recorded, by name

Kept out: fields of lines that `FIELDS` and `EXTRA` do not name, descriptions of schedules (prose), versions, and the
configuration and the report of the experiment with language models (the one holds the port of the server, the other
seconds that were measured).
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":  # a script's own folder comes first, where `drift_envs` and `drift_agents` hold tests
    sys.path.pop(0)

import drift_agents
import gymnasium as gym
import numpy as np

import drift_envs
from drift_envs.errors import DriftWarning

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "digests"
INDEX = HERE / "digests.json"
SHORT = ("memories-lake", "policies", "teams")
"""The experiments of the short form."""
MODELS, RANKED = "models", "worlds"
"""The experiment that asks language models, and the one that is ranked."""

PREFIXES = {"frozen_lake": "DriftFrozenLake-v0", "mountain_car": "DriftMountainCar-v0"}
PREFIXES |= {"mountain_car_continuous": "DriftMountainCarContinuous-v0", "webshop": "DriftWebShop-v0"}
PREFIXES |= {"house": "DriftHouse-v0", "tools": "DriftTools-v0", "facts": "DriftFacts-v0"}
IN_WORDS = ("DriftFacts-v0", "DriftHouse-v0", "DriftTools-v0", "DriftWebShop-v0")
"""Environments whose actions are texts; they have no native vector form."""


class Recorded(NamedTuple):
    """What was computed, or what is on disk.

    Args:
        digests: name -> plain data.
        texts: path below `digests` -> text.
    """

    digests: dict[str, Any]
    texts: dict[str, str]


def digest(*parts: Any) -> str:
    """SHA-256 of texts or plain data, 16 hexadecimal digits."""
    told = hashlib.sha256()
    for part in parts:
        text = part if isinstance(part, str) else json.dumps(part, default=plain, sort_keys=True, separators=(",", ":"))
        told.update(text.encode() + b"\0")
    return told.hexdigest()[:16]


def plain(value: Any) -> Any:
    """An array, a number of NumPy or another mapping as data for JSON; numbers keep every digit."""
    if isinstance(value, np.ndarray):
        return [str(value.dtype), list(value.shape), value.ravel().tolist()]
    if isinstance(value, np.generic):
        return value.item()
    return dict(value)


# Experiments -------------------------------------------------------------------------------------------------------

WHO = ("schedule", "memory", "verifier", "controller", "team", "policy", "seed")


def play(file: Path, out: Path) -> Recorded:
    """Play an experiment with the command line and digest the run's folder."""
    name = file.stem
    if name == MODELS:
        with model_server() as (url, asked):
            options = ("--model", "stub", "--base-url", url, "--set", "models.concurrency=1")
            command("run", str(file), "--out", str(out), "--jobs", "1", *options)
        digests: dict[str, Any] = {f"asked/{name}": {"requests": len(asked), "bodies": digest(*sorted(asked))}}
    else:
        command("run", str(file), "--out", str(out), "--jobs", "1")
        manifest = json.loads((out / "run.json").read_text(encoding="utf-8"))
        digests = {f"config/{name}": digest(_only(manifest["experiment"], CONFIGURATION))}
    lines: dict[str, list[dict[str, Any]]] = {}
    for text in (out / "episodes.jsonl").read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        lines.setdefault(_who(line), []).append(_kept(line))
    traces = dict(_traces(out))
    for who, of_cell in lines.items():
        digests[f"cell/{name}/{who}"] = {
            "episodes": len(of_cell),
            "score": sum(line["score"] for line in of_cell),
            "steps": sum(line["steps"] for line in of_cell),
            "probes": sum(line["probe_steps"] for line in of_cell),
            "memory": of_cell[-1]["memory_size"],
            "lines": digest(*of_cell),
            "trace": traces.pop(who, None),
        }
    digests |= {f"trace without lines/{name}/{who}": told for who, told in traces.items()}
    texts = {} if name == MODELS else {f"report/{name}": figures((out / "report.md").read_text(encoding="utf-8"))}
    if name == RANKED:
        page = out / "leaderboard.md"
        command("leaderboard", str(out), "--out", str(page))
        texts["leaderboard_figures.txt"] = figures(page.read_text(encoding="utf-8"))
    return Recorded(digests, texts)


CONFIGURATION = (
    *("name", "schedules", "sweep", "agents", "references", "seeds", "rounds", "episodes", "train", "learning"),
    *("recall", "environments"),
)
"""Keys of an experiment that say what is played."""


def command(*arguments: str) -> str:
    """Run `drift-agents` in another folder than this one."""
    with tempfile.TemporaryDirectory() as elsewhere:
        done = subprocess.run(
            [sys.executable, "-m", "drift_agents", *arguments], cwd=elsewhere, capture_output=True, text=True
        )
    if done.returncode:
        raise RuntimeError(f"drift-agents {' '.join(arguments)} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def _who(line: Mapping[str, Any]) -> str:
    return " ".join(str(line[key]) for key in WHO)


FIELDS = (
    *("env", "schedule", "schedule_hash", "memory", "verifier", "controller", "team", "policy", "seed", "stage"),
    *("episode", "round", "phase", "tick", "success", "score", "steps"),
    *("probe_steps", "probe_resets", "probe_falls", "probe_purchases"),
    *("surprises", "realignments", "false_realignments", "detected", "detection_delay"),
    *("memory_size", "memory_truth_rate", "loop_steps", "regret"),
)
EXTRA = (
    *("items", "item_truth_rate", "shared_hits", "private_hits", "invalid_actions"),
    *("model_calls", "tokens_in", "tokens_out", "cost", "reasks", "fallbacks", "dropped_records"),
    *("refreshes", "tokens_estimated"),
)
"""Fields of a line that stand there only where they are neither zero nor null; `milliseconds` is wall-clock time."""


def _only(data: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {key: data[key] for key in keys if key in data}


def _kept(line: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a line that are digested."""
    flat = {**line, **line.get("extra", {})}
    return {**{key: flat[key] for key in FIELDS}, **{key: flat[key] for key in EXTRA if flat.get(key)}}


def _traces(out: Path) -> Iterator[tuple[str, str]]:
    for file in sorted(out.glob("traces/*")):
        content = file.read_bytes()
        text = (gzip.decompress(content) if file.suffix == ".gz" else content).decode()
        head, *rest = [json.loads(line) for line in text.splitlines()]
        head.pop("format", None)
        head.get("content", {}).pop("description", None)
        yield _who(head), digest(head, *_in_place(rest))


def _in_place(episodes: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The episodes of a trace with their texts and knobs in place, where lines name them by number."""
    texts: list[str] = []
    knobs: list[Any] = []

    def text(value: Any) -> Any:
        return texts[value] if isinstance(value, int) else value

    def lines(value: Any) -> Any:
        return "\n".join(map(text, value)) if isinstance(value, list) else value

    def outcome(value: Sequence[Any]) -> list[Any]:
        return [text(value[0]), *value[1:]]

    def removed(value: Mapping[str, Any]) -> dict[str, Any]:
        known = {"state": text(value["state"]), "outcome": outcome(value["outcome"])} if "state" in value else {}
        return {**value, **known}

    def verdict(value: Mapping[str, Any]) -> dict[str, Any]:
        told = dict(value)
        if "about" in told:
            told["about"] = [text(told["about"][0]), told["about"][1]]
        for key, change in (("probed", outcome), ("removed", removed)):
            if key in told:
                told[key] = list(map(change, told[key]))
        return told

    def knob(value: Any) -> Any:
        return knobs[value] if isinstance(value, int) else value

    def step(value: Mapping[str, Any]) -> dict[str, Any]:
        told = {**value, "knobs": knob(value["knobs"]), "state": text(value["state"])}
        told |= {"outcome": outcome(value["outcome"]), "prompt": lines(value["prompt"])}
        told |= {"verdict": verdict(value["verdict"])}
        told |= {key: list(map(verdict, value[key])) for key in ("checks",) if key in value}
        told |= {key: change(value[key]) for key, change in (("reply", text), ("strategy", lines)) if key in value}
        if "thought" in value:
            told["thought"] = {key: lines(part) for key, part in value["thought"].items()}
        return told

    for episode in episodes:
        texts += episode.pop("texts", [])
        knobs += episode.pop("knobs", [])
        told = {**episode, "knobs_at_start": knob(episode["knobs_at_start"]), "task": text(episode["task"])}
        told |= {"steps": list(map(step, episode["steps"])), "closing": list(map(verdict, episode["closing"]))}
        yield told


NUMBER = re.compile(r"(?<![\w.])(?<!\w[-−])[-+−]?\d[\d,]*(?:\.\d+)?(?!\w)")


def figures(markdown: str) -> str:
    """The figures of all tables: one line a row, `-` where a cell has none, a blank line between tables."""
    rows: list[str] = []
    body = False
    for line in markdown.splitlines():
        if not line.startswith("|"):
            body = False
        elif set(line) <= set("|-: "):
            body = True
            rows.append("")
        elif body:
            cells = re.split(r"(?<!\\)\|", line.strip())[2:-1]
            rows.append(" | ".join(" ".join(NUMBER.findall(cell)) or "-" for cell in cells))
    return "\n".join(rows).strip() + "\n"


# A server that answers as a language model would --------------------------------------------------------------------


@contextmanager
def model_server() -> Iterator[tuple[str, list[str]]]:
    """A server of chat completions whose answers depend on the question alone.

    Yields:
        Its address, and the list of all that it was asked.
    """
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None: ...

        def do_GET(self) -> None:
            self._send({"object": "list", "data": [{"id": "stub", "object": "model"}]})

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            text = json.dumps(request, sort_keys=True)
            asked.append(text)
            schema = request.get("response_format", {}).get("json_schema", {}).get("schema")
            message = json.dumps(filled(schema, schema, digest(text))) if schema else f"So be it: {digest(text)}."
            choice = {"index": 0, "message": {"role": "assistant", "content": message}, "finish_reason": "stop"}
            usage = {"prompt_tokens": len(text) // 4, "completion_tokens": 5, "total_tokens": 0}
            head = {"id": "x", "object": "chat.completion", "created": 0, "model": "stub"}
            self._send({**head, "choices": [choice], "usage": usage})

        def _send(self, body: Any) -> None:
            sent = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_address[1]}/v1", asked
    finally:
        http.shutdown()
        http.server_close()
        thread.join(timeout=10)


def filled(schema: Mapping[str, Any], root: Mapping[str, Any], key: str) -> Any:
    """A value that the schema allows, chosen by the key."""
    pick = int(digest(key), 16)
    if "$ref" in schema:
        for part in schema["$ref"].removeprefix("#/").split("/"):
            root = root[part]
        return filled(root, root, key)
    if "enum" in schema:
        return schema["enum"][pick % len(schema["enum"])]
    if "const" in schema:
        return schema["const"]
    if "anyOf" in schema:
        return filled(schema["anyOf"][0], root, key)
    kind = schema.get("type")
    if kind == "object":
        return {name: filled(part, root, key + name) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        least, most = schema.get("minItems", 0), schema.get("maxItems", 2)
        return [filled(schema.get("items", {}), root, f"{key}{n}") for n in range(min(max(least, 1), most))]
    if kind in ("integer", "number"):
        low = schema.get("minimum", 0)
        return low + pick % (int(schema.get("maximum", low + 10) - low) + 1)
    return bool(pick % 2) if kind == "boolean" else f"lesson {key[:4]}"


# Environments ------------------------------------------------------------------------------------------------------


def environment_of(schedule: str) -> str:
    """The id that a shipped schedule is for."""
    return PREFIXES[schedule.partition("/")[0]]


def actions_of(env: gym.Env, rng: np.random.Generator) -> Callable[[dict[str, Any]], Any]:
    """Seeded random actions: of the space, or of those that the info names."""
    spaces = env.action_space
    if isinstance(spaces, gym.spaces.Discrete):
        return lambda info: int(rng.integers(spaces.n))
    if isinstance(spaces, gym.spaces.Box):
        return lambda info: rng.uniform(spaces.low, spaces.high).astype(spaces.dtype)
    return lambda info: info["actions"][int(rng.integers(len(info["actions"])))]


def walk(env: gym.Env, episodes: int, steps: int) -> dict[str, Any]:
    """Episodes cut short, with seeded random actions: what was seen, and what drifted."""
    act = actions_of(env, np.random.default_rng(5))
    seen: list[Any] = []
    for episode in range(episodes):
        observation, info = env.reset(seed=11) if episode == 0 else env.reset()
        seen.append((observation, info))
        for _ in range(steps):
            observation, reward, terminated, truncated, info = env.step(act(info))
            seen.append((observation, reward, terminated, truncated, info))
            if terminated or truncated:
                break
    told = {"steps": len(seen) - episodes, "trajectory": digest(*seen)}
    try:
        log = env.get_wrapper_attr("drift_log").to_csv()
    except AttributeError:
        return told
    return {**told, "changes": log.count("\n") - 1, "log": digest(log)}


def environments(short: bool = False) -> dict[str, Any]:
    """Trajectories and drift logs of shipped schedules, of environments without one, and of native vector forms.

    Args:
        short: leave out the variants of schedules.
    """
    digests: dict[str, Any] = {}
    for schedule in drift_envs.shipped_schedules():
        if short and ":" in schedule:
            continue  # a variant differs from its file by a line
        content = _without_prose(drift_envs.load_schedule(schedule).to_dict())
        digests[f"schedule content/{schedule}"] = digest(content)
        if schedule.partition("/")[0] not in PREFIXES:
            continue  # the arithmetic of classic control, MuJoCo and Minigrid is that of other packages
        name = environment_of(schedule)
        in_words = name in IN_WORDS
        env = gym.make(name, schedule=schedule, notify="full", text=in_words)
        digests[f"schedule/{schedule}"] = walk(env, 62 if in_words else 205, 8 if in_words else 5)
        env.close()
        if not in_words and not schedule.endswith(":poison"):  # refused: visits are not counted there
            digests[f"vector/{schedule}"] = walk_vector(name, schedule)
    for name in PREFIXES.values():
        for text in (True,) if name in IN_WORDS else (False, True):
            env = gym.make(name, schedule=None, text=text)
            digests[f"no schedule/{name}{', text' if text else ''}"] = walk(env, 5, 40)
            env.close()
            env = gym.make(name, text=True)
            digests[f"text/{name}"] = walk(env, 25, 5)
            env.close()
    digests["wrapper/CartPole-v1"] = walk(wrapped("CartPole-v1", "masspole", 0.5), 20, 30)
    digests["wrapper/Acrobot-v1"] = walk(wrapped("Acrobot-v1", "reward_sign", "-"), 20, 30)
    digests["wrapper/Pendulum-v1"] = walk(wrapped("Pendulum-v1", "observation_noise", 0.1), 20, 30)
    digests["twin and snapshot"] = twins()
    return digests


def _without_prose(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key != "description"}


def wrapped(name: str, knob: str, value: Any) -> gym.Env:
    """An environment of Gymnasium's under the wrapper, with sudden, incremental and random drifts."""
    drifts = [{"name": "change", "at": 8, "set": {knob: value}}]
    drifts += [{"name": "ramp", "at": 4, "kind": "incremental", "over": 10, "scale": {"reward_scale": 2.0}}]
    drifts += [{"name": "storms", "rate": 0.2, "walk": {"reward_scale": 0.1}}]
    schedule = {"version": 1, "name": "own", "env": name, "clock": "episode", "drifts": drifts}
    return drift_envs.DriftWrapper(gym.make(name), schedule)


def walk_vector(name: str, schedule: str) -> dict[str, Any]:
    """Four environments at once, in short episodes, with seeded random actions."""
    envs = gym.make_vec(name, num_envs=4, schedule=schedule, max_episode_steps=4)
    rng = np.random.default_rng(7)
    space = envs.single_action_space
    seen: list[Any] = [envs.reset(seed=3)]
    for _ in range(230):
        if isinstance(space, gym.spaces.Discrete):
            actions = rng.integers(space.n, size=4)
        else:
            actions = rng.uniform(space.low, space.high, size=(4, *space.shape)).astype(space.dtype)
        seen.append(envs.step(actions))
    envs.close()
    return {"native": type(envs).__module__.startswith("drift_envs"), "trajectory": digest(*seen)}


def twins() -> str:
    """What a twin sees, and what comes after going back to a snapshot."""
    env = gym.make("DriftFrozenLake-v0", schedule="frozen_lake/slippery", text=True)
    env.reset(seed=2)
    twin = drift_envs.twin(env)
    seen: list[Any] = [twin.reset()]
    for action in (1, 2, 1, 2):
        saved = drift_envs.snapshot(env)
        first = env.step(action)
        saved.restore()
        seen += [first, env.step(action)]
        if first[2]:
            break
    for action in (1, 2, 1):
        step = twin.step(action)
        seen.append(step)
        if step[2]:
            break
    return digest(*seen)


# Prompts -----------------------------------------------------------------------------------------------------------

PROMPTED = {
    "lake": ("DriftFrozenLake-v0", "frozen_lake/implicit", 12, (0, -1)),
    "car": ("DriftMountainCar-v0", "mountain_car/reversed", 1, (20, -1)),
    "continuous-car": ("DriftMountainCarContinuous-v0", "mountain_car_continuous/reversed", 1, (20, -1)),
    "shop": ("DriftWebShop-v0", "webshop/explicit", 2, (1, 4)),
    "house": ("DriftHouse-v0", "house/implicit", 3, (1, 4)),
    "desk": ("DriftTools-v0", "tools/implicit", 3, (1, 4)),
}
"""Environment -> its id, a schedule, how many episodes are played, and which steps of the last one are kept."""


def prompts() -> dict[str, str]:
    """Two prompts of each environment, as the policy got them."""
    texts = {}
    for name, (env_id, schedule, episodes, steps) in PROMPTED.items():
        env = gym.make(env_id, schedule=schedule, text=True)
        agent = drift_agents.Agent(
            policy=drift_agents.make_policy("planner"),
            memory=drift_agents.make_memory("vanilla", k=3),
            verifier=drift_agents.Glove(prober=drift_agents.ReplayProber(drift_envs.twin(env))),
        )
        for round_ in range(episodes):
            episode = agent.run_episode(env, seed=0 if round_ == 0 else None)
        for number, step in enumerate(steps, start=1):
            texts[f"prompts/{name}-{number}.txt"] = episode.trace[step].prompt + "\n"
        env.close()
    return texts


# All of it ---------------------------------------------------------------------------------------------------------


def record(short: bool = False) -> Recorded:
    """Compute everything, or the short form: some experiments, environments and prompts.

    Args:
        short: leave out the other experiments, the leaderboard and the variants of schedules.
    """
    files = [file for file in sorted(FOLDER.glob("*.yaml")) if not short or file.stem in SHORT]
    digests: dict[str, Any] = {}
    texts: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(play, file, Path(folder) / file.stem) for file in files]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DriftWarning)  # walks are short: many end before the first drift
            digests |= environments(short)
            texts |= prompts()
        for file, run in zip(files, runs, strict=True):
            try:
                told = run.result()
            except RuntimeError as error:
                told = Recorded({f"failed/{file.stem}": str(error)}, {})
            digests |= told.digests
            texts |= told.texts
    reports = {key: texts.pop(key) for key in sorted(texts) if key.startswith("report/")}
    texts["report_figures.txt"] = "\n".join(f"# {key.removeprefix('report/')}\n{reports[key]}" for key in reports)
    return Recorded(digests, texts)


def recorded() -> Recorded:
    """What is on disk."""
    digests = json.loads(INDEX.read_text(encoding="utf-8"))
    texts = {str(file.relative_to(FOLDER).as_posix()): file.read_text("utf-8") for file in FOLDER.rglob("*.txt")}
    return Recorded(digests, texts)


def write(now: Recorded) -> None:
    """Put it on disk."""
    lines = [f"{json.dumps(key)}: {json.dumps(now.digests[key], sort_keys=True)}" for key in sorted(now.digests)]
    INDEX.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    for name, text in now.texts.items():
        (FOLDER / name).parent.mkdir(exist_ok=True, parents=True)
        (FOLDER / name).write_text(text, encoding="utf-8")


def differences(now: Recorded, before: Recorded, short: bool = False) -> list[str]:
    """What differs, one line each.

    Args:
        now: what was computed.
        before: what is recorded.
        short: whether only the short form was computed; what it leaves out is no difference.
    """
    found = []
    expected = {key: value for key, value in before.digests.items() if not short or _in_short(key)}
    for key in sorted(expected.keys() | now.digests.keys()):
        was, is_ = expected.get(key), now.digests.get(key)
        if was == is_:
            continue
        if isinstance(was, dict) and isinstance(is_, dict):
            unlike = [part for part in was | is_ if was.get(part) != is_.get(part)]
            parts = [f"{part} {was.get(part)} -> {is_.get(part)}" for part in unlike]
            found.append(f"{key}: {', '.join(parts)}")
        else:
            found.append(f"{key}: {was} -> {is_}")
    texts = {**before.texts, "report_figures.txt": _sections(before.texts["report_figures.txt"], short)}
    if short:
        texts.pop("leaderboard_figures.txt", None)
    for name in sorted(texts.keys() | now.texts.keys()):
        was, is_ = texts.get(name, "").splitlines(), now.texts.get(name, "").splitlines()
        rows = [n for n in range(max(len(was), len(is_))) if was[n : n + 1] != is_[n : n + 1]]
        if rows:
            first = f"{was[rows[0] : rows[0] + 1]} -> {is_[rows[0] : rows[0] + 1]}"
            found.append(f"{name}: {len(rows)} lines differ, the first is line {rows[0] + 1}: {first}")
    return found


def _in_short(key: str) -> bool:
    kind, _, rest = key.partition("/")
    if kind in ("schedule", "schedule content", "vector"):
        return ":" not in rest
    return kind not in ("cell", "config", "asked") or rest.partition("/")[0] in SHORT


def _sections(text: str, short: bool) -> str:
    """The report's figures, or those of the short form's experiments alone."""
    sections = re.split(r"^(?=# )", text, flags=re.MULTILINE)[1:]
    kept = [part for part in sections if not short or part[2:].partition("\n")[0] in SHORT]
    return "".join(kept).rstrip("\n") + "\n"


def main(arguments: list[str] | None = None) -> int:
    """The command line; see the top of this file."""
    parser = argparse.ArgumentParser(description="Check or record digests of all that the project computes.")
    parser.add_argument("--write", action="store_true", help="record anew")
    parser.add_argument("--short", action="store_true", help="check the short form alone")
    asked = parser.parse_args(arguments)
    if asked.write and asked.short:
        parser.error("--write records everything: leave --short out")
    now = record(asked.short)
    failed = [f"{key}: {told}" for key, told in now.digests.items() if key.startswith("failed/")]
    if asked.write and failed:
        print("\n".join(failed) + "\nnothing is recorded")
        return 1
    if asked.write:
        write(now)
        print(f"recorded {len(now.digests)} digests and {len(now.texts)} texts")
        return 0
    found = differences(now, recorded(), asked.short)
    print("\n".join(found) or f"nothing differs: {len(now.digests)} digests and {len(now.texts)} texts")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
