"""The fine-tuning script on a tiny random model: the loss falls, and the adapter loads."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from tests.examples.test_finetune_lora import SCRIPT, write_samples

NEEDS = "needs tests/extras/finetune/requirements.txt"
torch = pytest.importorskip("torch", reason=NEEDS)
pytest.importorskip("trl", reason=NEEDS)
peft = pytest.importorskip("peft", reason=NEEDS)
transformers = pytest.importorskip("transformers", reason=NEEDS)
tokenizers = pytest.importorskip("tokenizers", reason=NEEDS)

TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|> {{ message['content'] }} <|end|> {% endfor %}"
    "{% if add_generation_prompt %}<|assistant|> {% endif %}"
)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_the_loss_falls_and_the_adapter_loads(tmp_path: Path) -> None:
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
