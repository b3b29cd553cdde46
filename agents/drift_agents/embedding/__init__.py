"""Embeddings: texts as vectors, the protocol in `base`."""
