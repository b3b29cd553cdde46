"""The study behind `docs/research/when_to_verify.md`: its rules, its claims, and the numbers of the pages."""
