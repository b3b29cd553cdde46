"""Train the learned reader, a small network that reads the messages to a language model."""
