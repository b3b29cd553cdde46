"""Small models that memories ask: the protocol in `base`, the declared rules in `rules`."""
