"""ReasoningBank: distilled reasoning items."""
