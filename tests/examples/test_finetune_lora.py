"""The samples that the fine-tuning script reads."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

SCRIPT = str(Path(__file__).resolve().parents[2] / "examples" / "finetune_lora.py")


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
