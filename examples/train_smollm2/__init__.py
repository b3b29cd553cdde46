"""Fine-tune SmolLM2-135M on decisions of the rule-based message policy, and play with it (docs/learned_reader.md)."""
