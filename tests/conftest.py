"""Settings of the whole suite."""

from __future__ import annotations

import os

import hypothesis

# Frames are drawn without a screen. Set before anything imports pygame.
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")

# Equal runs on every machine: no random start, no deadline that a busy machine would miss.
hypothesis.settings.register_profile("suite", derandomize=True, deadline=None, max_examples=50)
hypothesis.settings.load_profile("suite")
