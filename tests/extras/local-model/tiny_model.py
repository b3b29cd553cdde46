"""A tiny transformer with random weights, as a file that llama.cpp can serve (GGUF, version 3)."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np

WIDTH, HEADS, INNER, LAYERS = 32, 2, 64, 2
TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant: "
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6
ALIGNMENT = 32
FORMATS = {bool: (7, "<?"), int: (4, "<I"), float: (6, "<f")}
STRING, ARRAY, SIGNED = 8, 9, 5


def write_tiny_model(path: Path, context: int) -> None:
    """Write a model of the Llama kind whose tokens are bytes; it has learnt nothing."""
    rng = np.random.default_rng(0)
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    values: dict[str, Any] = {
        "general.architecture": "llama",
        "general.name": "tiny",
        "general.file_type": 0,
        "llama.context_length": context,
        "llama.embedding_length": WIDTH,
        "llama.block_count": LAYERS,
        "llama.feed_forward_length": INNER,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": HEADS,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_count": WIDTH // HEADS,
        "llama.vocab_size": len(tokens),
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": [0.0] * len(tokens),
        "tokenizer.ggml.token_type": [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.chat_template": TEMPLATE,
    }
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (len(tokens), WIDTH),
        "output.weight": (len(tokens), WIDTH),
        "output_norm.weight": (WIDTH,),
    }
    for layer in range(LAYERS):
        shapes |= {f"blk.{layer}.{name}.weight": (WIDTH,) for name in ("attn_norm", "ffn_norm")}
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            shapes[f"blk.{layer}.{name}.weight"] = (WIDTH, WIDTH)
        shapes |= {f"blk.{layer}.{name}.weight": (INNER, WIDTH) for name in ("ffn_gate", "ffn_up")}
        shapes[f"blk.{layer}.ffn_down.weight"] = (WIDTH, INNER)
    tensors = {
        name: np.ones(shape, "<f4") if "norm" in name else (0.2 * rng.standard_normal(shape)).astype("<f4")
        for name, shape in shapes.items()
    }
    parts = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(values))]
    parts += [_text(key) + _value(value) for key, value in values.items()]
    offset = 0
    for name, tensor in tensors.items():
        sizes = tensor.shape[::-1]
        parts.append(_text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, 0, offset))
        offset += len(_padded(tensor.tobytes()))
    path.write_bytes(_padded(b"".join(parts)) + b"".join(_padded(tensor.tobytes()) for tensor in tensors.values()))


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % ALIGNMENT)


def _text(text: str) -> bytes:
    data = text.encode("utf-8")
    return struct.pack("<Q", len(data)) + data


def _value(value: Any) -> bytes:
    """A value with its type before it."""
    if isinstance(value, str):
        return struct.pack("<I", STRING) + _text(value)
    if isinstance(value, list):
        if isinstance(value[0], str):
            kind, items = STRING, b"".join(map(_text, value))
        elif isinstance(value[0], float):
            kind, items = FORMATS[float][0], struct.pack(f"<{len(value)}f", *value)
        else:
            kind, items = SIGNED, struct.pack(f"<{len(value)}i", *value)
        return struct.pack("<IIQ", ARRAY, kind, len(value)) + items
    kind, form = FORMATS[type(value)]
    return struct.pack("<I", kind) + struct.pack(form, value)
