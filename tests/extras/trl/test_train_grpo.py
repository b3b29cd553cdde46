"""Training with TRL: five updates of a model of a million random parameters, on the processor, without any download."""

from __future__ import annotations

import os
import runpy
from pathlib import Path

import pytest
import yaml

os.environ["HF_HUB_OFFLINE"] = os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"  # read when the libraries are imported
pytest.importorskip("trl", reason="needs tests/extras/trl/requirements.txt")

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from trl.chat_template_utils import qwen3_chat_template

from drift_envs.integrations.trl import LifetimeRollout, lifetime_rows
from tests.extras.offline import offline  # noqa: F401

pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("default")]  # those of TRL, Transformers and PyTorch
SCRIPT = str(Path(__file__).resolve().parents[3] / "examples" / "train_grpo.py")
SIDES = {
    "version": 1, "name": "sides", "env": "DriftFrozenLake-v0",
    "base": {"map": ["HSG"]},
    "drifts": [{"name": "swapped", "at": 2, "set": {"map": ["GSH"]}}],
}  # fmt: skip
"""A lake of one row: one step to the goal, to the other side after two episodes."""

CALL = '<tool_call>\n{{"name": "act", "arguments": {{"action": "{}"}}}}\n</tool_call>'
CALLS = [CALL.format(action) for action in range(4)]
END = "<|im_end|>"


@pytest.fixture
def sides(tmp_path):
    path = tmp_path / "sides.yaml"
    path.write_text(yaml.safe_dump(SIDES), encoding="utf-8")
    return str(path)


def make_tokenizer(texts):
    """A tokenizer of these texts, with a token for each call of the tool, so that a random model can play."""
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    raw.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet, show_progress=False))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, eos_token=END, pad_token="<|endoftext|>")
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>"]})
    tokenizer.add_tokens(CALLS)
    tokenizer.chat_template = qwen3_chat_template
    return tokenizer


def make_model(tokenizer):
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=128, intermediate_size=512, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=4, head_dim=32, max_position_embeddings=4096, tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, bos_token_id=None,
    )  # fmt: skip
    return Qwen3ForCausalLM(config)


def test_five_updates(sides, tmp_path, monkeypatch):
    rewards, played, begun = [], [], []
    score, act, reset = LifetimeRollout.get_reward, LifetimeRollout.act, LifetimeRollout.reset

    def get_reward(self):
        rewards.append(score(self))
        return rewards[-1]

    def note_act(self, action: str) -> str:
        """Take one action.

        Args:
            action: One of the admissible actions.

        Returns:
            The next state.
        """
        played.append((action, act(self, action)))
        return played[-1][1]

    def note_reset(self, **row):
        begun.append((row["schedule"], row["seed"]))
        return reset(self, **row)

    note_act.__name__ = "act"
    for name, function in (("get_reward", get_reward), ("act", note_act), ("reset", note_reset)):
        monkeypatch.setattr(LifetimeRollout, name, function)

    example = runpy.run_path(SCRIPT)
    texts = [message["content"] for message in lifetime_rows([sides], 1)[0]["prompt"]]
    rollout = LifetimeRollout(rounds=1)
    texts += [rollout.reset(schedule=sides, seed=0), rollout.act("2"), rollout.act("2"), *CALLS]
    rewards.clear(), played.clear(), begun.clear()
    tokenizer = make_tokenizer(texts)
    model = make_model(tokenizer)
    assert 9e5 < model.num_parameters() < 1.2e6
    before = {name: values.clone() for name, values in model.named_parameters()}
    said = tokenizer.convert_tokens_to_ids([*CALLS, END])
    options = example["make_parser"]().parse_args(
        ["--model", "random", "--out", str(tmp_path / "out"), "--train", sides, "--held-out", sides, "--rounds", "1",
         "--updates", "5", "--group", "4", "--lifetimes", "8", "--eval-lifetimes", "1", "--tokens", "1500"]
    )  # fmt: skip
    trainer = example["train"](
        model, tokenizer, options, use_cpu=True, bf16=False, gradient_checkpointing=False, learning_rate=1e-3,
        save_strategy="no", disable_tqdm=True,
        generation_kwargs={"suppress_tokens": [token for token in range(len(tokenizer)) if token not in said]},
    )  # fmt: skip

    assert trainer.state.global_step == 5
    assert any(not torch.equal(before[name], values) for name, values in trainer.model.named_parameters())
    logged = [entry for entry in trainer.state.log_history if "reward" in entry]
    groups = [rewards[start : start + 4] for start in range(0, len(rewards), 4)]
    assert [entry["reward"] for entry in logged] == pytest.approx([sum(group) / 4 for group in groups[:5]], abs=1e-4)
    assert any(len(set(group)) > 1 for group in groups[:5])  # otherwise GRPO has nothing to learn from
    assert {0.5} & set(rewards)
    assert all(entry["tools/failure_frequency"] == 0 for entry in logged)
    # Each group plays one instance; evaluation plays one that no update has seen.
    assert all(len(set(begun[start : start + 4])) == 1 for start in range(0, len(begun), 4))
    trained = {seed for _, seed in begun[:20]}
    assert trained < set(range(8))
    assert {seed for _, seed in begun[20:]} == {1000}
    assert any("The episode has ended. Its score is 1" in answer for _, answer in played)
