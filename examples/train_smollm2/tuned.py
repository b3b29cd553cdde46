"""The model with adapters, and its training.

* `Tuned` - the loss of decisions, and the answer to messages
* `load_model` - reads it from a file
* `train` - trains it for some minutes
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from drift_agents.llm.base import Completion
from drift_agents.types import Usage

from examples.train_smollm2.chats import GROUP, Chat, draw_groups

try:
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache
except ImportError as error:
    raise SystemExit(f'training needs more packages, run `pip install "drift-envs[finetune,llm]"` ({error})') from error

RATE, WARM_UP, LAST = 6e-4, 20, 0.4
"""The highest learning rate, the steps up to it, and the share of the steps in which it falls to zero."""
RANK = 16
"""Of the adapters."""
FIRST_LAYER = 10
"""Layers below stay as they are, which saves their gradients."""
LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
MOST = 8
"""Tokens of an answer where no other limit is given."""
SAVED = 25
"""Steps between two checkpoints."""


class Tuned:
    """A model with adapters.

    Args:
        model: a causal language model of the Llama architecture.
        tokenizer: its tokenizer, with a chat template.
        seed: of the adapters.
    """

    def __init__(self, model: Any, tokenizer: Any, seed: int = 0) -> None:
        torch.manual_seed(seed)
        depth = model.config.num_hidden_layers
        layers = list(range(min(FIRST_LAYER, depth - 1), depth))
        config = LoraConfig(
            r=RANK, lora_alpha=2 * RANK, target_modules=list(LINEAR), layers_to_transform=layers, task_type="CAUSAL_LM"
        )
        self.model, self.tokenizer = get_peft_model(model, config), tokenizer
        self.adapters = {name: part for name, part in self.model.named_parameters() if part.requires_grad}
        self._body = self.model.base_model.model
        self._end = tokenizer.eos_token_id
        self._cache, self._cached = DynamicCache(), list[int]()
        """Of the last prompt, with its tokens: the next one mostly begins as it does."""

    def load(self, path: Path) -> dict[str, Any]:
        """Take the adapters of a checkpoint, and return it.

        Args:
            path: the file.
        """
        saved: dict[str, Any] = torch.load(path, weights_only=True)
        self.model.load_state_dict(saved["adapters"], strict=False)
        self._cache, self._cached = DynamicCache(), []
        return saved

    def encode(self, chat: Chat) -> tuple[tuple[int, ...], list[int]]:
        """The tokens of the system message, and of the rest of the prompt.

        Args:
            chat: the messages.
        """
        messages = [{"role": "system", "content": chat.system}, {"role": "user", "content": chat.user}]
        system = self.tokenizer.apply_chat_template(messages[:1], tokenize=False)
        text = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        parts = (self.tokenizer(part, add_special_tokens=False) for part in (system, text.removeprefix(system)))
        head, rest = (part.input_ids for part in parts)
        return tuple(head), rest

    def _name(self, action: str) -> int:
        (token,) = self.tokenizer(action, add_special_tokens=False).input_ids
        return int(token)

    def score(self, chats: Sequence[Chat]) -> tuple[torch.Tensor, torch.Tensor]:
        """The log-probabilities of all first tokens of the answers, and of the end after a right one.

        Args:
            chats: decisions with the same system message.
        """
        system, rows = self.encode(chats[0])[0], [[*self.encode(one)[1], self._name(one.right[0])] for one in chats]
        tokens = torch.full((len(rows), max(map(len, rows))), self._end)  # what follows a row changes nothing before
        for number, row in enumerate(rows):
            tokens[number, : len(row)] = torch.tensor(row)
        cache = self._body.model(torch.tensor([system]), use_cache=True).past_key_values
        cache.batch_repeat_interleave(len(rows))
        hidden = self._body.model(tokens, past_key_values=cache, use_cache=True).last_hidden_state
        ends = torch.tensor([len(row) for row in rows])
        places = torch.stack([hidden[range(len(rows)), ends - 2], hidden[range(len(rows)), ends - 1]])
        first, then = self._body.lm_head(places).float().log_softmax(dim=-1)
        return first, then[:, self._end]

    def loss(self, chats: Sequence[Chat]) -> torch.Tensor:
        """The mean loss of decisions with the same system message.

        Args:
            chats: the decisions.
        """
        first, end = self.score(chats)
        sets = [row[list(map(self._name, chat.right))].logsumexp(0) for row, chat in zip(first, chats, strict=True)]
        return -(torch.stack(sets) + end).mean()

    def test(self, chats: Sequence[Chat], actions: Sequence[str]) -> tuple[float, float]:
        """The shares of right answers, and of admissible ones.

        Args:
            chats: the decisions.
            actions: the admissible answers.
        """
        with torch.no_grad():
            first = [(self.score([chat])[0].argmax().item(), chat.right) for chat in chats]
        right = [token in map(self._name, names) for token, names in first]
        return float(np.mean(right)), float(np.mean([token in map(self._name, actions) for token, _ in first]))

    def answer(self, chat: Chat, most: int = MOST) -> Completion:
        """The greedy answer.

        Args:
            chat: the messages.
            most: tokens of the answer.
        """
        system, rest = self.encode(chat)
        tokens, written, same = [*system, *rest], list[int](), 0
        while same < min(len(self._cached), len(tokens) - 1) and tokens[same] == self._cached[same]:
            same += 1
        if same < len(self._cached):
            self._cache.crop(same - len(self._cached))  # negative: so many are removed
        new = tokens[same:]
        while len(written) < most and self._end not in written:
            with torch.no_grad():
                output = self._body.model(torch.tensor([new]), past_key_values=self._cache, use_cache=True)
                new = [int(self._body.lm_head(output.last_hidden_state[:, -1]).argmax())]
            written += new
        self._cached = [*tokens, *written[:-1]]
        text = self.tokenizer.decode([token for token in written if token != self._end])
        finish = "stop" if self._end in written else "length"
        return Completion(text, usage=Usage(1, len(tokens), len(written)), finish=finish)


def load_model(file: Path) -> Tuned:
    """A model in 16 bits, on one core.

    Args:
        file: in the format GGUF.
    """
    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
    return Tuned(model.to(torch.bfloat16), tokenizer)


def train(tuned: Tuned, sets: Sequence[Sequence[Chat]], count: int, path: Path, minutes: float) -> bool:
    """Train for some minutes, from the checkpoint if there is one, and write one.

    Args:
        tuned: the model.
        sets: the decisions, of which the sets are read in turn.
        count: how many are read in all parts together.
        path: the checkpoint.
        minutes: of this part.

    Returns:
        Whether all are read.
    """
    optimizer = torch.optim.AdamW(tuned.adapters.values(), lr=RATE, betas=(0.9, 0.98), weight_decay=0.0)
    steps, done, losses = max(1, count // GROUP), 0, []
    if path.is_file():
        saved = tuned.load(path)
        done, losses = saved["step"], saved["losses"]
        optimizer.load_state_dict(saved["optimizer"])
    orders = [draw_groups(chats, 1 + count // len(chats), np.random.default_rng(0)) for chats in sets]
    begin, spent = time.monotonic(), time.process_time()
    for step in range(steps):
        group = next(orders[step % len(orders)])
        if step < done:
            continue
        for own in optimizer.param_groups:
            own["lr"] = RATE * min((step + 1) / WARM_UP, 1.0, (steps - step) / (LAST * steps))
        loss = tuned.loss(group)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(tuned.adapters.values(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        wall, cpu = time.monotonic() - begin, time.process_time() - spent
        is_over = wall > 60 * minutes
        if is_over or step + 1 == steps or step % SAVED == SAVED - 1:
            adapters = {name: part.detach() for name, part in tuned.adapters.items()}
            state = {"step": step + 1, "losses": losses, "adapters": adapters, "optimizer": optimizer.state_dict()}
            torch.save(state, path.with_suffix(".part"))
            path.with_suffix(".part").replace(path)
            late = np.mean(losses[-SAVED:])
            print(f"  step {step + 1} of {steps}: loss {late:.3f}; {wall:.0f} s, {cpu:.0f} s of a core", flush=True)
        if is_over and step + 1 < steps:
            return False
    return True
