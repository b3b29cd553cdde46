"""A small network that reads the messages to a language model: trained, not programmed (docs/learned_reader.md)."""
