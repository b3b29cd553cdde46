"""Fine-tune SmolLM2-135M-Instruct on decisions of the rule-based message policy, and play with it.

    pip install "drift-envs[finetune,llm]"
    python -m examples.train_smollm2 --out build/smollm2
    python -m examples.train_smollm2 --out build/smollm2 --serve 8012
    drift-agents run examples/smollm2.yaml --model NAME --base-url http://127.0.0.1:8012/v1 --concurrency 1

The second command works in parts of `--minutes`, each of which ends with a checkpoint: the same command goes on where
it was, until all decisions are read. Then it prints how well the model answers on lakes that it never saw. The third
one serves the model until Ctrl-C, and prints the NAME for the fourth one, which another shell runs.

1. The rules (`message_reader`) play development lakes with random actions, under all rules of memory and with both
   drifts, and so do three weights of the learned reader, which go astray in other places. The rules say what they would
   have done; the names of the actions are permuted in every prompt (`examples.train_reader.teaching`).
2. The model, whose weights come from the file of `drift-agents serve-local --fetch`, reads the messages that the policy
   `llm` sends in the format `brief`. It learns to answer with the bare name of an action: the loss is the negative
   log-probability of the set of equally good ones, and of the end of the answer. Adapters (LoRA) are trained, the rest
   stays as it is, in 16 bits. Prompts with the same system message are read together, so that it is computed once.
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
from examples.train_smollm2.tuned import Tuned, torch, train

LAKES, HELD_OUT = 700_000, 90_000
"""The first seeds of the lakes for training and for the test; no experiment plays these."""
LAKE_COUNT, HELD_OUT_COUNT = 60, 6
"""How many of them there are."""
LONGEST = 560
"""Characters of a prompt in training: half of them are longer, and cost most."""
NAME = "smollm2-lakes"


def load_model(path: Path | None = None) -> Tuned:
    """The model of `drift-agents serve-local --fetch`.

    Args:
        path: another file in the format GGUF.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    file = path or fetch_model_file()
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
    return Tuned(model.to(torch.bfloat16), tokenizer)


def draw_tests(path: Path, count: int) -> list[Chat]:
    """Some decisions on lakes that the training does not see.

    Args:
        path: the file of all of them.
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
    parser.add_argument("--decisions", type=int, default=2000, help="that are read in all parts together")
    parser.add_argument("--tests", type=int, default=200, help="decisions for the test before and after, 0 for none")
    parser.add_argument("--serve", type=int, metavar="PORT", help="serve the model instead; 0 for a free port")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    tuned, checkpoint = load_model(), options.out / "checkpoint.pt"
    if options.serve is not None:
        tuned.load(checkpoint)
        model = name_file(NAME, hashlib.sha256(checkpoint.read_bytes()).hexdigest())
        with serve(tuned, options.serve) as url:
            print(f"--model {model} --base-url {url}", flush=True)
            with suppress(KeyboardInterrupt):
                Event().wait()
        return
    chats = [chat for chat in collect(options.out / "decisions.jsonl", LAKES, LAKE_COUNT) if len(chat.user) <= LONGEST]
    tests = draw_tests(options.out / "held-out.jsonl", options.tests)
    if tests and not checkpoint.is_file():
        print("before: {:.1%} right, {:.1%} admissible".format(*tuned.test(tests, "0123")), flush=True)
    if not train(tuned, chats, options.decisions, checkpoint, options.minutes):
        print("start the same command again for the next part")
    elif tests:
        print("after: {:.1%} right, {:.1%} admissible".format(*tuned.test(tests, "0123")))


if __name__ == "__main__":
    main()
