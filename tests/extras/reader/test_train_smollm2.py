"""Fine-tuning on decisions: a tiny random model in the place of SmolLM2, a few steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("peft", reason="needs the extra `finetune`")
pytest.importorskip("transformers", reason="needs the extra `finetune`")

import torch
from drift_agents.llm.base import Message
from drift_agents.llm.openai_compatible import OpenAICompatible
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from examples.train_smollm2.chats import Chat, collect, draw_groups
from examples.train_smollm2.serving import serve
from examples.train_smollm2.tuned import Tuned, train

pytestmark = pytest.mark.filterwarnings("default")  # those of Transformers and PEFT
END = "<|im_end|>"
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CHATS = [
    Chat(f"The {one} is right.", f"{here} {'is ' * more}here.", [str(number)])
    for number, one in enumerate(("door", "window"))
    for here, more in (("Nobody", 0), ("Somebody", 3))
]


def make_tuned(seed: int = 0) -> Tuned:
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    raw.train_from_iterator([], trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, show_progress=False))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, eos_token=END)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>"]})
    tokenizer.chat_template = TEMPLATE
    torch.manual_seed(seed)
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = LlamaConfig(vocab_size=len(tokenizer), initializer_range=0.2, **sizes)
    return Tuned(LlamaForCausalLM(config), tokenizer)


def test_prompts_that_are_read_together_score_as_alone() -> None:
    """The common system message is read once, and shorter prompts are filled up; neither changes a score."""
    tuned = make_tuned()
    with torch.no_grad():
        first, end = tuned.score(CHATS[:2])
        for row, chat in enumerate(CHATS[:2]):
            system, rest = tuned.encode(chat)
            (answer,) = tuned.tokenizer(chat.right[0]).input_ids
            alone = tuned.model(torch.tensor([[*system, *rest, answer]])).logits[0].log_softmax(dim=-1)
            assert torch.allclose(first[row], alone[-2], atol=1e-4)
            assert torch.allclose(end[row], alone[-1, tuned.tokenizer.eos_token_id], atol=1e-4)


def test_every_decision_is_drawn_once_a_pass() -> None:
    groups = list(draw_groups(CHATS, 2, np.random.default_rng(0)))
    assert sorted(chat for group in groups for chat in group) == sorted(2 * CHATS)
    assert all(len({chat.system for chat in group}) == 1 for group in groups)


def test_parts_train_what_one_part_trains(tmp_path: Path) -> None:
    """A part of no minutes is one step."""
    whole, parted = make_tuned(), tmp_path / "parts.pt"
    assert train(whole, [CHATS], 40, tmp_path / "whole.pt", 10)
    parts = 1
    while not train(last := make_tuned(), [CHATS], 40, parted, 0):
        parts += 1
    assert parts == 5
    assert all(torch.equal(part, last.adapters[name]) for name, part in whole.adapters.items())


def test_it_learns_plays_and_is_served(tmp_path: Path) -> None:
    tuned = make_tuned()
    train(tuned, [CHATS], 1600, tmp_path / "checkpoint.pt", 10)
    assert tuned.test(CHATS, "01") == (1.0, 1.0)
    loaded = make_tuned()
    loaded.load(tmp_path / "checkpoint.pt")
    answers = [loaded.answer(chat, 8) for chat in CHATS]
    assert loaded.answer(CHATS[-1], 8) == answers[-1]  # with the whole prompt in the cache
    assert [(answer.text, answer.finish) for answer in answers] == [(chat.right[0], "stop") for chat in CHATS]
    with serve(loaded) as url:
        model = OpenAICompatible("tiny", base_url=url, form="text")
        served = [model.complete([Message("system", one.system), Message("user", one.user)]) for one in CHATS]
        model.close()
    assert [(one.text, one.usage[:3]) for one in served] == [(one.text, one.usage[:3]) for one in answers]


def test_decisions_are_those_of_the_rules(tmp_path: Path) -> None:
    """Played once; names of actions are permuted, and the instruction is that of the policy."""
    chats = collect(tmp_path / "chats", 0, 2, episodes=2)
    assert collect(tmp_path / "chats", 0, 2, episodes=2) == chats
    assert all(set(chat.right) <= set("0123") and chat.right for chat in chats)
    assert len({chat.system.partition("Actions: ")[2] for chat in chats}) > 4
    assert all(chat.user.endswith("</action>") for chat in chats)


def test_the_model_plays_and_the_rules_say_what_was_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes over after some episodes of the rules; only what it visits is kept."""
    monkeypatch.setattr("examples.train_smollm2.chats.BEGINS", (2,))
    monkeypatch.setattr("examples.train_smollm2.chats.MODEL_EPISODES", 1)
    seen: list[Chat] = []

    def answer(chat: Chat) -> str:
        seen.append(chat)
        return "nothing" if len(seen) == 1 else chat.right[0]

    chats = collect(tmp_path / "chats", 0, 1, answer)
    assert chats == [chat._replace(right=list(chat.right)) for chat in seen]
