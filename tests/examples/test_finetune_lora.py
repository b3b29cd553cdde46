"""The fine-tuning script on a tiny random model: the loss falls, and the adapter loads."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

SCRIPT = str(Path(__file__).resolve().parents[2] / "examples" / "finetune_lora.py")
TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|> {{ message['content'] }} <|end|> {% endfor %}"
    "{% if add_generation_prompt %}<|assistant|> {% endif %}"
)


def write_samples(path: Path, count: int) -> None:
    lines = []
    for number in range(count):
        answer = json.dumps({"reasoning": "", "strategy": [f"go to place {number % 3} and then down"]})
        turns = [("system", "You make strategies."), ("user", f"You are at place {number % 3}."), ("assistant", answer)]
        lines.append(json.dumps({"messages": [{"role": role, "content": text} for role, text in turns]}))
    path.write_text("\n".join(lines) + "\n", "utf-8")


def test_a_sample_is_a_question_and_its_answer(tmp_path: Path) -> None:
    write_samples(tmp_path / "data.jsonl", 2)
    samples = runpy.run_path(SCRIPT)["read_chats"](tmp_path / "data.jsonl")
    assert [turn["role"] for turn in samples[0]["prompt"]] == ["system", "user"]
    assert [turn["role"] for turn in samples[0]["completion"]] == ["assistant"]


@pytest.mark.parametrize(("text", "message"), [("", "holds no sample"), ('{"a": 1}\n', ":1: not a sample")])
def test_other_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "data.jsonl").write_text(text)
    with pytest.raises(SystemExit, match=message):
        runpy.run_path(SCRIPT)["read_chats"](tmp_path / "data.jsonl")


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_the_loss_falls_and_the_adapter_loads(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="needs the extra `finetune`")
    pytest.importorskip("trl", reason="needs the extra `finetune`")
    peft = pytest.importorskip("peft", reason="needs the extra `finetune`")
    transformers = pytest.importorskip("transformers", reason="needs the extra `finetune`")
    tokenizers = pytest.importorskip("tokenizers", reason="needs the extra `finetune`")

    data, folder, out = tmp_path / "data.jsonl", tmp_path / "tiny", tmp_path / "adapter"
    write_samples(data, 24)
    raw = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<|unk|>"))
    raw.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    special = ["<|unk|>", "<|end|>", "<|pad|>", "<|system|>", "<|user|>", "<|assistant|>"]
    raw.train_from_iterator(
        [data.read_text("utf-8")], tokenizers.trainers.BpeTrainer(vocab_size=400, special_tokens=special)
    )
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=raw, unk_token="<|unk|>", eos_token="<|end|>", pad_token="<|pad|>", chat_template=TEMPLATE
    )
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=512,
        pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)

    arguments = [
        str(data),
        "--model",
        str(folder),
        "--out",
        str(out),
        "--rank",
        "8",
        "--epochs",
        "10",
        "--rate",
        "5e-3",
    ]
    losses = runpy.run_path(SCRIPT)["main"](
        [*arguments, "--batch", "4", "--global-batch", "4", "--length", "256", "--cpu"]
    )
    assert losses[-1] < 0.9 * losses[0]

    base = transformers.AutoModelForCausalLM.from_pretrained(folder)
    tuned = peft.PeftModel.from_pretrained(transformers.AutoModelForCausalLM.from_pretrained(folder), str(out))
    asked = tokenizer(
        "<|user|> You are at place 1. <|end|> <|assistant|>", return_tensors="pt", return_token_type_ids=False
    )
    with torch.no_grad():
        assert not torch.allclose(base(**asked).logits, tuned(**asked).logits)
