"""A lifetime as a dialogue: how messages are read, and that it ends."""

from __future__ import annotations

import pytest

from drift_envs.errors import ArgumentError
from drift_envs.integrations.dialogue import PATIENCE, Dialogue
from drift_envs.integrations.lifetime import TextLifetime

STILL = {"version": 1, "name": "still", "env": "DriftFrozenLake-v0", "base": {"map": ["SFF", "HHG"]}}


def test_an_unreadable_message_changes_nothing_until_patience_ends():
    lines = []
    dialogue = Dialogue(TextLifetime("DriftFrozenLake-v0", STILL, on_episode=lines.append, episodes=2))
    state = dialogue.open().split("State: ")[1]
    for _ in range(PATIENCE - 1):
        turn = dialogue.reply("I would rather not.")
        assert turn.message.startswith("No action was taken: `action` should be a number from 0 to 3")
        assert turn.message.split("State: ")[1] == state
    dialogue.reply("Action: 2")  # counts anew after an action
    for _ in range(PATIENCE):
        turn = dialogue.reply("")
    assert "abandoned after 3 messages" in turn.message
    assert "Episode 2" in turn.message
    assert [(line["ended"], line["steps"]) for line in lines] == [("abandoned", 1)]


@pytest.mark.parametrize("env_id", ["DriftMountainCar-v0", "DriftWebShop-v0", "DriftHouse-v0"])
def test_every_environment_of_text_ends_whatever_is_said(env_id):
    dialogue = Dialogue(TextLifetime(env_id, episodes=1))
    dialogue.open()
    turns = 0
    while not dialogue.reply("hm").is_over:
        turns += 1
        assert turns <= 300 * PATIENCE
    assert dialogue.episodes == 1


def test_a_dialogue_needs_an_end():
    with pytest.raises(ArgumentError, match="`life` should have `rounds` or `episodes`"):
        Dialogue(TextLifetime("DriftFrozenLake-v0"))
