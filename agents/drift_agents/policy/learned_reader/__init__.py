"""A small trained network that reads the messages to a language model (docs/research/readers.md)."""
