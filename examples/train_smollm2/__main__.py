"""Fine-tune SmolLM2-135M-Instruct on decisions of the rule-based message policy, and play with it.

    pip install "drift-envs[finetune,llm]"
    python -m examples.train_smollm2 --out build/smollm2
    python -m examples.train_smollm2 --out build/smollm2 --serve 8012
    drift-agents run examples/smollm2.yaml --model NAME --base-url http://127.0.0.1:8012/v1 --concurrency 1

The second command works in parts of `--minutes`, each of which ends with a checkpoint: the same command goes on where
it was, until the last training has ended. Then it prints how well the model answers on lakes that it never saw. The
third one serves the model until Ctrl-C, and prints the NAME for the fourth one, which another shell runs.

1. The rules (`message_reader`) play development lakes with random actions, under all rules of memory and with both
   drifts, and so do three weights of the learned reader, which go astray in other places. The rules say what they would
   have done; the names of the actions are permuted in every prompt (`examples.train_reader.teaching`).
2. The model, whose weights come from the file of `drift-agents serve-local --fetch`, reads the messages that the policy
   `llm` sends in the format `brief`. It learns to answer with the bare name of an action: the loss is the negative
   log-probability of the set of equally good ones, and of the end of the answer. Adapters (LoRA) are trained, the rest
   stays as it is, in 16 bits. Prompts with the same system message are read together, so that it is computed once.
3. DAgger: the model plays other development lakes, the rules label what it visits, and it is trained on these decisions
   and the first ones in turn. `--rounds` says how many trainings there are.
"""

from __future__ import annotations

import argparse
import hashlib
from contextlib import suppress
from pathlib import Path
from threading import Event

import numpy as np
from drift_agents.cli.serve_local import fetch_model_file
from drift_agents.llm.openai_compatible import name_file

from examples.train_smollm2.chats import Chat, collect
from examples.train_smollm2.serving import serve
from examples.train_smollm2.tuned import Tuned, load_model, train

LAKES, HELD_OUT = 700_000, 90_000
"""The first seeds of the lakes for training and for the test; no experiment plays these."""
LAKE_COUNT, HELD_OUT_COUNT = 60, 6
"""How many of them there are."""
PLAYED, LATER = 16, 560
"""Lakes that the model plays before each further training, and decisions that such a training reads."""
LONGEST = 560
"""Characters of a prompt in training: half of them are longer, and cost most."""
NAME = "smollm2-lakes"


def draw_tests(path: Path, count: int) -> list[Chat]:
    """Some decisions on lakes that the training does not see.

    Args:
        path: the folder of all of them.
        count: how many.
    """
    chats = collect(path, HELD_OUT, HELD_OUT_COUNT)
    return [chats[place] for place in np.random.default_rng(0).permutation(len(chats))[:count]]


def main(arguments: list[str] | None = None) -> None:
    """Train the model, or play with it.

    Args:
        arguments: those of the command line if not given.
    """
    parser = argparse.ArgumentParser(prog="python -m examples.train_smollm2", description="Fine-tune SmolLM2-135M.")
    parser.add_argument("--out", type=Path, default=Path("build/smollm2"), help="the folder of the parts")
    parser.add_argument("--minutes", type=float, default=40, help="of this part")
    parser.add_argument("--decisions", type=int, default=2000, help="that the first training reads")
    parser.add_argument("--rounds", type=int, default=2, help="trainings; before each but the first the model plays")
    parser.add_argument("--tests", type=int, default=200, help="decisions for the test before and after, 0 for none")
    parser.add_argument("--serve", type=int, metavar="PORT", help="serve the model instead; 0 for a free port")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    tuned = load_model(fetch_model_file())
    if options.serve is not None:
        serve_newest(tuned, options.out, options.serve)
        return
    tests = draw_tests(options.out / "held-out", options.tests)
    rules = collect(options.out / "decisions", LAKES, LAKE_COUNT)
    sets = [[chat for chat in rules if len(chat.user) <= LONGEST]]
    for number in range(options.rounds):
        if number:
            first = LAKES + 1000 * number
            path = options.out / f"played-{number}"
            sets.append(collect(path, first, PLAYED, lambda chat: tuned.answer(chat).text))
        elif tests and not (options.out / "checkpoint-0.pt").is_file():
            print("before: {:.1%} right, {:.1%} admissible".format(*tuned.test(tests, "0123")), flush=True)
        count = LATER if number else options.decisions
        if not train(tuned, sets, count, options.out / f"checkpoint-{number}.pt", options.minutes):
            print("start the same command again for the next part")
            return
    if tests:
        print("after: {:.1%} right, {:.1%} admissible".format(*tuned.test(tests, "0123")))


def serve_newest(tuned: Tuned, out: Path, port: int) -> None:
    """Serve the model with the newest checkpoint, until Ctrl-C.

    Args:
        tuned: the model.
        out: the folder of the parts.
        port: the port; 0 for a free one.
    """
    checkpoint = max(out.glob("checkpoint-*.pt"))
    tuned.load(checkpoint)
    model = name_file(NAME, hashlib.sha256(checkpoint.read_bytes()).hexdigest())
    with serve(tuned, port) as url:
        print(f"{checkpoint}: --model {model} --base-url {url}", flush=True)
        with suppress(KeyboardInterrupt):
            Event().wait()


if __name__ == "__main__":
    main()
