"""Embeddings: texts as vectors, the protocol in `base`, names in `registry`."""
