"""Fine-tune a model on strategies with LoRA: the second half of AdaMEM's STEP-MFT, through TRL and PEFT.

    pip install -r tests/extras/finetune/requirements.txt
    drift-agents run mine.yaml --trace all          # an experiment with the controller adamem, effort high
    drift-agents export-stepmft runs/mine --out data.jsonl
    python examples/finetune_lora.py data.jsonl --model Qwen/Qwen3-4B-Instruct-2507 --out adapter

The defaults are the paper's (appendix A): rank 32, one epoch, a global batch of 64, a cosine schedule with a
warm-up of a tenth. It does not print its learning rate; 1e-4 is ours, as is alpha = 2 x rank. The loss is that
of equation 4: cross-entropy on the strategy alone, not on the state and what was retrieved.

Serve the result with vLLM (`--enable-lora --lora-modules strategies=adapter`) and name it as the model of the
policy: one model decides and makes strategies, as in the paper. For the set to compare with, export
`--outcome-only` and train again.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

MISSING = "fine-tuning needs more packages, run `pip install -r tests/extras/finetune/requirements.txt`"


def read_chats(path: Path) -> list[dict[str, Any]]:
    """The samples of a file of `drift-agents export-stepmft`, each as a question and its answer.

    Args:
        path: the file.

    Raises:
        SystemExit: if it holds no sample in chat format.
    """
    samples = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        try:
            *question, answer = json.loads(line)["messages"]
        except (ValueError, KeyError, TypeError) as error:
            raise SystemExit(f"{path}:{number}: not a sample in chat format: {error!r}") from error
        samples.append({"prompt": question, "completion": [answer]})
    if not samples:
        raise SystemExit(f"{path}: holds no sample")
    return samples


def train(model: Any, tokenizer: Any, samples: list[dict[str, Any]], options: argparse.Namespace) -> list[float]:
    """Train an adapter and save it.

    Args:
        model: a causal language model, or its name.
        tokenizer: its tokenizer, with a chat template.
        samples: what `read_chats` read.
        options: the command's.

    Returns:
        The loss at every step.

    Raises:
        SystemExit: if a package is missing.
    """
    try:
        from datasets import Dataset
        from peft import LoraConfig
        from trl import SFTConfig, SFTTrainer
    except ImportError as error:
        raise SystemExit(f"{MISSING} ({error})") from error
    adapter = LoraConfig(
        r=options.rank, lora_alpha=2 * options.rank, target_modules="all-linear", task_type="CAUSAL_LM"
    )
    settings = SFTConfig(
        output_dir=str(options.out),
        num_train_epochs=options.epochs,
        per_device_train_batch_size=options.batch,
        gradient_accumulation_steps=max(1, options.global_batch // options.batch),
        learning_rate=options.rate,
        lr_scheduler_type="cosine",
        warmup_steps=round(0.1 * options.epochs * -(-len(samples) // options.global_batch)),
        max_length=options.length,
        completion_only_loss=True,
        use_cpu=options.cpu,
        bf16=not options.cpu,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        seed=options.seed,
    )
    trainer = SFTTrainer(
        model=model,
        args=settings,
        train_dataset=Dataset.from_list(samples),
        processing_class=tokenizer,
        peft_config=adapter,
    )
    trainer.train()
    trainer.save_model(str(options.out))
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command's options.

    Args:
        arguments: those of the command line if not given.
    """
    parser = argparse.ArgumentParser(description="Fine-tune a model on strategies with LoRA.")
    parser.add_argument("data", type=Path, help="a file of `drift-agents export-stepmft`")
    parser.add_argument("--model", default="Qwen/Qwen3-4B-Instruct-2507", help="a model's name or folder")
    parser.add_argument("--out", type=Path, default=Path("adapter"), help="the adapter's folder")
    parser.add_argument("--rank", type=int, default=32, help="of the adapter")
    parser.add_argument("--epochs", type=float, default=1.0)
    parser.add_argument("--rate", type=float, default=1e-4, help="learning rate")
    parser.add_argument("--batch", type=int, default=1, help="samples on a device at a time")
    parser.add_argument("--global-batch", type=int, default=64, help="samples a step, by accumulation")
    parser.add_argument("--length", type=int, default=8192, help="tokens of a sample at the most; more is cut off")
    parser.add_argument("--cpu", action="store_true", help="train on the processor, in 32 bits")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> list[float]:
    """Fine-tune, and say how the loss went.

    Args:
        arguments: those of the command line if not given.

    Returns:
        The loss at every step.

    Raises:
        SystemExit: if the file cannot be used, or a package is missing.
    """
    options = parse(arguments)
    samples = read_chats(options.data)
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise SystemExit(f"{MISSING} ({error})") from error
    losses = train(str(options.model), AutoTokenizer.from_pretrained(options.model), samples, options)
    print(f"{len(samples)} samples, loss {losses[0]:.3f} -> {losses[-1]:.3f}; the adapter is in {options.out}")
    return losses


if __name__ == "__main__":
    main()
