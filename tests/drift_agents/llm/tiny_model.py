"""A tiny transformer with random weights, as a file that llama.cpp can serve."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

WIDTH, HEADS, INNER, LAYERS = 32, 2, 64, 2
TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant: "


def write_tiny_model(path: Path, context: int) -> None:
    """Write a model of the Llama kind whose tokens are bytes; it has learnt nothing."""
    gguf = pytest.importorskip("gguf")
    rng = np.random.default_rng(0)
    file = gguf.GGUFWriter(path, "llama")
    file.add_name("tiny")
    file.add_context_length(context)
    file.add_embedding_length(WIDTH)
    file.add_block_count(LAYERS)
    file.add_feed_forward_length(INNER)
    file.add_head_count(HEADS)
    file.add_head_count_kv(HEADS)
    file.add_layer_norm_rms_eps(1e-5)
    file.add_rope_dimension_count(WIDTH // HEADS)
    file.add_file_type(gguf.LlamaFileType.ALL_F32)
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL] + [gguf.TokenType.BYTE] * 256
    file.add_tokenizer_model("llama")
    file.add_token_list(tokens)
    file.add_token_scores([0.0] * len(tokens))
    file.add_token_types(kinds)
    file.add_unk_token_id(0)
    file.add_bos_token_id(1)
    file.add_eos_token_id(2)
    file.add_vocab_size(len(tokens))
    file.add_chat_template(TEMPLATE)

    def random(name: str, *shape: int) -> None:
        file.add_tensor(name, (0.2 * rng.standard_normal(shape)).astype(np.float32))

    def ones(name: str) -> None:
        file.add_tensor(name, np.ones(WIDTH, np.float32))

    random("token_embd.weight", len(tokens), WIDTH)
    random("output.weight", len(tokens), WIDTH)
    ones("output_norm.weight")
    for layer in range(LAYERS):
        for name in ("attn_norm", "ffn_norm"):
            ones(f"blk.{layer}.{name}.weight")
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            random(f"blk.{layer}.{name}.weight", WIDTH, WIDTH)
        for name in ("ffn_gate", "ffn_up"):
            random(f"blk.{layer}.{name}.weight", INNER, WIDTH)
        random(f"blk.{layer}.ffn_down.weight", WIDTH, INNER)
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()
